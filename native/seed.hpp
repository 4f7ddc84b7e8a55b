// Greedy k-means++: seeds are drawn by weight times squared distance to the nearest seed so far, some
// candidates for each, and the candidate that leaves the least inertia is kept.
#pragma once

#include <cstdint>

#include "source.hpp"
#include "team.hpp"

namespace powermeans {

struct SeedRequest {
    const double* sample_weight;  // (n_points,) or null
    const int64_t* order;         // (n_points,): which point the draws count when
    double first;                 // number of [0, 1) that draws the first seed
    const double* others;         // (n_seeds - 1, n_candidates): those of the candidates for the others
    int64_t n_seeds;
    int64_t n_candidates;
};

// Calls before_seed() before each seed but the first; if that throws, so does this.
template <class Source>
void greedy_seeds(const Source& source, const SeedRequest& request, Team& team, const Interrupt& before_seed,
                  int64_t* indices);

}  // namespace powermeans
