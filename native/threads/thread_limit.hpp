// The number of threads that the calling thread may use, as OpenMP has it. threadpoolctl reads and sets it
// through these two functions.
#pragma once

#if defined(_WIN32)
#define POWERMEANS_EXPORTED __declspec(dllexport)
#else
#define POWERMEANS_EXPORTED __attribute__((visibility("default")))
#endif

extern "C" {
POWERMEANS_EXPORTED int powermeans_get_num_threads();  // 0: no limit
POWERMEANS_EXPORTED void powermeans_set_num_threads(int n_threads);
}
