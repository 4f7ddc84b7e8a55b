// How many threads a caller allows, as OpenMP has it: threadpoolctl reads and sets it through the two
// functions below, for the calling thread.
#pragma once

extern "C" {
__attribute__((visibility("default"))) int powermeans_get_num_threads();  // 0: no limit was set
__attribute__((visibility("default"))) void powermeans_set_num_threads(int n_threads);
}
