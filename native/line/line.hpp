// Values on a line in the runs that have the least sum of squares: dynamic programming.
#pragma once

#include <cstdint>

namespace powermeans {

struct LineRequest {
    int64_t n_values;
    const double* values;   // rising, none twice
    const double* weights;  // positive
    int64_t n_runs;         // at most n_values
    int64_t* starts;        // out (n_runs,): where the runs begin
};

void divide_line(const LineRequest& request);

}  // namespace powermeans
