// Greedy k-means++. For each seed some candidates are drawn by weight times squared distance to the nearest
// seed so far, and the one that leaves the least inertia is kept.
#pragma once

#include <cstdint>
#include <limits>

#include "points/source.hpp"
#include "threads/team.hpp"

namespace powermeans {

struct SeedRequest {
    const double* sample_weight;  // (n_points,) or null
    const int64_t* order;         // (n_points,): points in the order of the draws' sums
    double first;                 // number in [0, 1) that draws the first seed
    const double* others;         // (n_seeds - 1, n_candidates): numbers that draw the candidates
    int64_t n_seeds;
    int64_t n_candidates;
    // Seeds beside earlier ones, and how far each point is from those, (n_points,): squared, in the units of
    // the points. Then `first` draws nothing, and each row of `others` draws a seed.
    const double* nearest = nullptr;
    // Seeds beside earlier ones end, after one at least, once this share of the inertia is left or less.
    double least_share = 0;
    // No seed is compared after this time, and fewer than n_seeds may be found.
    double seconds = std::numeric_limits<double>::infinity();
};

// Writes the indices of the seeds and returns their number. Calls before_seed() before each seed that is
// compared with others.
template <class Source>
int64_t greedy_seeds(const Source& source, const SeedRequest& request, Team& team,
                     const Interrupt& before_seed, int64_t* indices);

}  // namespace powermeans
