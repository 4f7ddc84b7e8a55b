// The number of threads that the calling thread may use, as OpenMP has it. threadpoolctl reads and sets it
// through these two functions.
#pragma once

extern "C" {
__attribute__((visibility("default"))) int powermeans_get_num_threads();  // 0: no limit
__attribute__((visibility("default"))) void powermeans_set_num_threads(int n_threads);
}
