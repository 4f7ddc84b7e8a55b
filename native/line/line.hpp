// Values on a line in the runs that have the least sum of squares: dynamic programming.
#pragma once

#include <cstdint>

#include "threads/team.hpp"

namespace powermeans {

struct LineRequest {
    int64_t n_values;
    const double* values;   // rising, none twice
    const double* weights;  // positive
    int64_t least_runs;     // of the divisions to return
    int64_t most_runs;      // at most n_values
    double* costs;          // out (most_runs,): the least sums of squares with 1, 2, ... runs
    int64_t* starts;        // out: where the runs of each division begin, those of the fewest runs first
};

// The number of threads changes no bit.
void divide_line(const LineRequest& request, Team& team);

}  // namespace powermeans
