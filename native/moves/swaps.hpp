// Swaps with a local repair: a cluster is dissolved, another is split, and points near either move one by one
// (see single_moves.hpp) until none gains. What does not lower the sum of squares is undone. Clusters far from
// both are not looked at.
#pragma once

#include <cstdint>

#include "moves/single_moves.hpp"
#include "points/source.hpp"

namespace powermeans {

struct SwapsRequest {
    Phi phi;
    const double* sample_weight;  // in (n_points,), or null
    const int64_t* order;         // in (n_points,): the order of the moves, with equal points side by side
    int64_t n_centers;
    int64_t most_in_vain;    // swaps tried in a row
    double most_distances;   // of a point to a center, computed before no swap is begun any more
    double least_distances;  // before which swaps in vain do not end them
    double least_gain;       // share of the sum of squares below which a swap counts as in vain
    int32_t* labels;         // in and out (n_points,)
    double* centers;  // in and out (n_centers, n_features): in for clusters without weight, out the means
};

struct Swaps {
    int64_t n_tried = 0;
    int64_t n_kept = 0;
    double n_distances = 0;
};

// Runs on one thread: a swap looks at few points.
template <class Source>
Swaps swap_centers(const Source& source, const SwapsRequest& request);

}  // namespace powermeans
