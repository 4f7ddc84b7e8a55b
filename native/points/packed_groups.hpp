// Points of few features in groups, a point in each lane, as the kernels read them. In spatial order each
// group is compact, so that few centers are near it.
#pragma once

#include <cstdint>
#include <vector>

#include "points/entries.hpp"
#include "points/frame.hpp"
#include "threads/aligned.hpp"
#include "threads/team.hpp"

namespace powermeans {

// The order, and the packed points where they take little memory.
template <class T>
class PackedGroups {
  public:
    // `ordered` asks for spatial order, else points stay as stored.
    PackedGroups(const Entries<T>& values, int64_t n_points, int64_t n_features, const Frame& frame,
                 bool ordered, Team& team);

    // Which points lie together; null where they are as stored.
    const int32_t* order() const { return order_.empty() ? nullptr : order_.data(); }
    // (n_groups, n_features, points_per_group), shifted and scaled; null where they are not kept.
    const T* columns() const { return columns_.get(); }
    // (n_groups, 2, n_features): the least and the most of each feature of `columns`.
    const T* boxes() const { return boxes_.get(); }
    double scale() const { return scale_; }

  private:
    void pack(const Entries<T>& values, int64_t n_points, int64_t n_features, const Frame& frame, Team& team);

    std::vector<int32_t> order_;
    Aligned<T> columns_, boxes_;
    double scale_ = 0;
};

}  // namespace powermeans
