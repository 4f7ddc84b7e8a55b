// The points that a sweep reads, dense or sparse, in arrays of the caller. With them is what all sweeps over
// the same points share: groups, sketches, and what the last sweep left.
#pragma once

#include <cstdint>
#include <memory>

#include "points/entries.hpp"
#include "points/frame.hpp"
#include "points/last_sweep.hpp"
#include "points/packed_groups.hpp"
#include "points/sketched_points.hpp"
#include "threads/forks.hpp"
#include "threads/interrupts.hpp"

namespace powermeans {

// Of affine distances, which are height of the point + lift of the center - <x, slope of the center>.
struct Heights {
    const double* values = nullptr;  // (n_points,), or null where distances are squared Euclidean
    double largest = 0;              // of the absolute values
};

template <class V>
struct DenseSource {
    using Stored = V;
    using Computed = V;  // the type of distances
    static constexpr bool is_dense = true;
    Entries<V> values;  // (n_points, n_features)
    int64_t n_points, n_features;
    Frame frame;
    Heights heights{};
    bool swept_often = true;  // so that shortcuts repay their making
    using Groups = MadeOnce<PackedGroups<V>>;
    std::shared_ptr<Groups> groups_as_stored = std::make_shared<Groups>();
    std::shared_ptr<Groups> groups_in_space = std::make_shared<Groups>();
    std::shared_ptr<SketchedPoints<V>> sketches = std::make_shared<SketchedPoints<V>>();
    std::shared_ptr<LastSweep<V>> last_sweep = std::make_shared<LastSweep<V>>();
    std::shared_ptr<LastLabels> last_labels = std::make_shared<LastLabels>();

    int64_t stored_per_point() const { return n_features; }
};

template <class V>
struct CsrSource {
    using Stored = V;
    using Computed = double;
    static constexpr bool is_dense = false;
    const V* values;
    const int32_t* columns;
    const int64_t* row_starts;
    int64_t n_points, n_features;
    Frame frame;
    Heights heights{};
    bool swept_often = true;
    std::shared_ptr<LastLabels> last_labels = std::make_shared<LastLabels>();

    // On average, and at least one.
    int64_t stored_per_point() const { return row_starts[n_points] / n_points + 1; }
};

template <class Source>
bool is_affine(const Source& source) {
    return source.heights.values != nullptr;
}

// Returns the unit of Request::nearest, which has to be the same for all centers.
template <class Source>
double nearest_scale(const Source& source) {
    return is_affine(source) ? 1 : scale_for<typename Source::Computed>(source.frame.extent);
}

}  // namespace powermeans
