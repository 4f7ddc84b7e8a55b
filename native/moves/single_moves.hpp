// Moves of single points (Hartigan 1975, "Clustering Algorithms", chapter 4). A point of weight w goes from
// cluster a to b where that lowers the sum of squares, by
//     n_a / (n_a - w) w d_a^2 - n_b / (n_b + w) w d_b^2,
// since the centers go along with it. Lloyd's algorithm only compares d_a with d_b, and so stops earlier. For other
// divergences see bregman_centers.hpp.
#pragma once

#include <cstdint>

#include "moves/phi.hpp"
#include "points/source.hpp"
#include "threads/team.hpp"

namespace powermeans {

struct MovesRequest {
    Phi phi;
    const double* sample_weight;  // in (n_points,), or null
    const int64_t* order;         // in (n_points,): the order of the moves, with equal points side by side
    int64_t n_centers;
    int64_t max_passes;
    int32_t* labels;  // in and out (n_points,)
    double* centers;  // in and out (n_centers, n_features): in for clusters without weight, out the means
};

// Returns how many times a point moved. Each pass looks for points to move with the centers as they are, in
// stripes, and then moves them one after another; the last one finds none. No
// cluster loses its last point.
template <class Source>
int64_t move_points(const Source& source, const MovesRequest& request, Team& team);

// Computes the divergence of each point from its own center, of which no digits cancel.
template <class Source>
void distances_to_own(const Source& source, const Phi& phi,
                      const double* centers,  // in (n_centers, n_features)
                      int64_t n_centers,
                      const int32_t* labels,  // in (n_points,)
                      Team& team,
                      double* distances);  // out (n_points,)

}  // namespace powermeans
