// A sweep compares every point with every center that matters to it, and adds up the results. The team
// shares stripes of points, whose sums are added in order.
#pragma once

#include <vector>

#include "source.hpp"
#include "team.hpp"

namespace powermeans {

struct SweepResult {
    std::vector<double> points;   // (n_centers, n_features), only from the tasks that sum
    std::vector<double> weights;  // (n_centers,)
    std::vector<double> error;    // (n_centers,)
    std::vector<double> utility;  // (n_centers,)
    double objective = 0;
    double inertia = 0;
    double n_distances = 0;  // computed, of points x centers
};

template <class Source>
SweepResult sweep(const Source& source, const Request<typename Source::Computed>& request, Team& team);

}  // namespace powermeans
