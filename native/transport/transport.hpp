// Least-cost assignment of points to centers whose clusters have wished sizes: a transport problem, solved by
// successive shortest paths over the clusters.
#pragma once

#include <cstdint>

namespace powermeans {

// A point may go to the centers of its list, which has its own among them. Labels come from prices: each point
// is at the center of least distance and price, so that they are the best for the sizes they have.
struct TransportRequest {
    int64_t n_points, n_centers;
    const int64_t* starts;      // in (n_points + 1,): of the lists
    const int32_t* choices;     // in (n_listed,): centers
    const double* distances;    // in (n_listed,)
    const double* weights;      // in (n_points,), or null
    const double* least_sizes;  // in (n_centers,)
    const double* most_sizes;   // in (n_centers,)
    double mean_size;
    double curvature;  // a size costs curvature / 2 times its squared difference from the mean
    int32_t* labels;   // in and out (n_points,)
    double* sizes;     // in and out (n_centers,), those of points without a list too
    double* prices;    // in and out (n_centers,)
};

// Returns by how much weight the sizes miss the limits. Points are moved whole: where weights differ, a
// cluster may miss its limits by less than the weight of a point.
double transport(const TransportRequest& request);

}  // namespace powermeans
