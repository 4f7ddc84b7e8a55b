// An order of the points in which neighbors in space follow each other, for points of few features.
#pragma once

#include <cstdint>
#include <vector>

#include "points/entries.hpp"
#include "threads/team.hpp"

namespace powermeans {

// Returns the order, in which groups of points_per_group are compact. Where too few points fill too many
// dimensions for that, it is empty: points as stored serve as well. It depends on the points, never on threads.
// `scale` keeps squares of values in the range.
template <class V>
std::vector<int32_t> spatial_order(const Entries<V>& values,  // in  (n_points, n_features)
                                   int64_t n_points, int64_t n_features, double scale, Team& team);

}  // namespace powermeans
