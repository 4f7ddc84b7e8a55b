// Where the last run of values on a line begins best. See `line/line.cpp`.
#pragma once

#include <stdint.h>

namespace powermeans {

// Sums over the values before a place, each in two numbers, (n_values + 1 + line_padding,).
struct LineSums {
    const double *weights, *weights_low;
    const double *firsts, *firsts_low;  // moments
    const double *seconds, *seconds_low;
};

inline constexpr int64_t line_padding = 8;  // that kernels may read

struct LineKernels {
    // Of runs that end before j and begin between `first` and `last` (or shortly after it, before j), returns the
    // beginning of the one that costs least together with what costs[beginning] says.
    int64_t (*best_beginning)(const LineSums&, const double* costs, int64_t first, int64_t last, int64_t j,
                              double* best_cost);
};

}  // namespace powermeans
