#include "threads/forks.hpp"

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace powermeans {
namespace {

std::atomic<int64_t> forks_so_far{0};

#if !defined(_WIN32)
const int watches_forks = pthread_atfork(nullptr, nullptr, [] { ++forks_so_far; });
#endif

}  // namespace

int64_t n_forks() { return forks_so_far; }

}  // namespace powermeans
