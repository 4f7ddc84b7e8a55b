// Online k-means (Bottou & Bengio 1995, equations 4 and 7). Points come one after another, and each moves the
// center nearest to it.
#pragma once

#include <cstdint>

#include "points/source.hpp"

namespace powermeans {

struct OnlineRequest {
    const double* sample_weight;  // in (n_points,), or null
    double weight_unit;           // in, that of sample_weight
    const int64_t* order;         // in (n_points,): the order of the points, or null for as stored
    const double* rates;          // in (n_rates,): of one step for each point that has weight, each in
                                  // [0, 1]; null for weight / count
    int64_t n_rates;
    int64_t n_centers;
    double* centers;  // in and out (n_centers, n_features)
    double* counts;   // in and out (n_centers,): weight of the points that each center has won
};

// Returns the weighted sum of squared distances to the nearest centers, as each was when the point came.
// Calls in_between() every few points; if that throws, the centers stay as they were.
template <class Source>
double present(const Source& source, const OnlineRequest& request, const Interrupt& in_between);

}  // namespace powermeans
