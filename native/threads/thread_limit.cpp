#include "threads/thread_limit.hpp"

namespace {
thread_local int thread_limit = 0;
}

int powermeans_get_num_threads() { return thread_limit; }
void powermeans_set_num_threads(int n_threads) { thread_limit = n_threads > 0 ? n_threads : 0; }
