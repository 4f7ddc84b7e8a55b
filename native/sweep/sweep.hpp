// A sweep compares every point with every center that matters to it, and adds up the results. The team
// shares stripes of points, whose sums are added in order.
#pragma once

#include <optional>
#include <vector>

#include "points/source.hpp"
#include "threads/team.hpp"

namespace powermeans {

struct SweepResult {
    std::vector<double> points;   // (n_centers, n_features), only from the tasks that sum
    std::vector<double> weights;  // (n_centers,)
    std::vector<double> error;    // (n_centers,)
    std::vector<double> utility;  // (n_centers,)
    double objective = 0;
    double inertia = 0;
    double n_distances = 0;  // computed, of points x centers
    // Points whose label is not that of the last sweep for sums; all of them in the first. None where labels
    // are not kept: in soft sweeps, and where points are swept few times or by several callers at a time.
    std::optional<int64_t> n_changed;
};

template <class Source>
SweepResult sweep(const Source& source, const Request<typename Source::Computed>& request, Team& team);

// Which centers a point is compared with: those listed beside the center that it has so far.
struct Nearby {
    const int32_t* labels;      // (n_points,): of the center so far
    const int32_t* neighbours;  // (n_centers, n_listed): of each center, with itself first
    int64_t n_listed;
};

// Lists the centers nearest to each, with itself first, (n_centers, n_listed). The points are the centers.
// `prices`, which are added to squared distances, may be null.
template <class T>
void list_nearby(const DenseSource<T>& source, const double* raw_centers, const double* prices,
                 int64_t n_listed, Team& team, int32_t* lists);

// Sweeps with the hard rule, and compares each point only with the centers nearby. Points have more than
// `direct_max_features`: with fewer, a sweep skips far centers anyway.
template <class T>
SweepResult sweep_nearby(const DenseSource<T>& source, const Request<T>& request, const Nearby& nearby,
                         Team& team);

}  // namespace powermeans
