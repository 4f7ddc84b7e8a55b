// Groups of points of few features, a point in each lane. The bounding box of a group tells which centers can
// matter to it.
#pragma once

#include "kernels/blocks.hpp"
#include "kernels/rounding.hpp"

namespace powermeans {
namespace {

template <class T>
struct Box {
    T low[direct_max_features];
    T high[direct_max_features];
};

// Shifts and scales the points of a group into columns (n_features, points_per_group), the first point
// repeated up to the end of the group.
template <class T>
void pack_group(const Block<Dense<T>>& group, T* columns) {
    const Dense<T>& points = group.points;
    const int64_t d = points.n_features;
    T copied[points_per_group * direct_max_features];
    const T* rows = copied;
    if (group.n == points_per_group && !points.order && !points.values.are_narrow())
        rows = stored_point(group, 0);
    else
        for (int64_t p = 0; p < points_per_group; ++p) {
            const T* from = stored_point(group, p < group.n ? p : 0);
            for (int64_t f = 0; f < d; ++f) copied[p * d + f] = from[f];
        }
    for (int64_t f = 0; f < d; ++f) {
        const T scale = points.scale, origin = points.scaled_origin[f];
        for (int64_t p = 0; p < points_per_group; ++p)
            columns[f * points_per_group + p] = rows[p * d + f] * scale - origin;
    }
}

template <class T>
Box<T> box_of_group(const T* columns, int64_t n_features) {
    Box<T> box;
    for (int64_t f = 0; f < n_features; ++f) {
        Vector<T> low = load(columns + f * points_per_group), high = low;
        for (int64_t p = lanes<T>; p < points_per_group; p += lanes<T>) {
            const Vector<T> x = load(columns + f * points_per_group + p);
            low = smaller(low, x);
            high = larger(high, x);
        }
        box.low[f] = low[0];
        box.high[f] = high[0];
        for (int lane = 1; lane < lanes<T>; ++lane) {
            box.low[f] = smaller<T>(low[lane], box.low[f]);
            box.high[f] = larger<T>(high[lane], box.high[f]);
        }
    }
    return box;
}

template <class T>
Box<T> stored_box(const T* lows_and_highs, int64_t n_features) {
    Box<T> box;
    for (int64_t f = 0; f < n_features; ++f) {
        box.low[f] = lows_and_highs[f];
        box.high[f] = lows_and_highs[n_features + f];
    }
    return box;
}

template <class T>
void widen_box(Box<T>& box, const Box<T>& other, int64_t n_features) {
    for (int64_t f = 0; f < n_features; ++f) {
        box.low[f] = smaller(other.low[f], box.low[f]);
        box.high[f] = larger(other.high[f], box.high[f]);
    }
}

// The groups of a block, which are packed here unless they are kept packed.
template <class T>
class Groups {
  public:
    explicit Groups(const Block<Dense<T>>& block) : block_(block), columns_(block.work.packed) {
        const Dense<T>& points = block.points;
        if (points.columns)
            columns_ = points.columns + block.begin * points.n_features;
        else
            for (int64_t g = 0; g < count(); ++g)
                pack_group((*this)[g], block.work.packed + g * points_per_group * points.n_features);
    }

    int64_t count() const { return divide_up(block_.n, points_per_group); }
    Block<Dense<T>> operator[](int64_t g) const {
        const int64_t before = g * points_per_group;
        return part_of(block_, block_.begin + before, smaller(block_.n - before, points_per_group));
    }
    const T* columns(int64_t g) const { return columns_ + g * points_per_group * n_features(); }

    Box<T> box(int64_t g) const {
        if (!block_.points.boxes) return box_of_group(columns(g), n_features());
        const int64_t index = block_.begin / points_per_group + g;
        return stored_box(block_.points.boxes + index * 2 * n_features(), n_features());
    }

    // Returns the box around all groups.
    Box<T> box() const {
        Box<T> around = box(0);
        for (int64_t g = 1; g < count(); ++g) widen_box(around, box(g), n_features());
        return around;
    }

  private:
    int64_t n_features() const { return block_.points.n_features; }

    const Block<Dense<T>>& block_;
    const T* columns_;
};

// A group of points with affine distances, in float64: they cancel, and with few features float64 costs
// little.
struct AffineGroup {
    double columns[direct_max_features * points_per_group];
    double heights[points_per_group];

    template <class T>
    explicit AffineGroup(const Block<Dense<T>>& group) {
        const Dense<T>& points = group.points;
        for (int64_t p = 0; p < points_per_group; ++p) {
            const int64_t here = p < group.n ? p : 0;
            const T* from = stored_point(group, here);
            heights[p] = height_of(group, here);
            for (int64_t f = 0; f < points.n_features; ++f)
                columns[f * points_per_group + p] =
                    double(from[f]) * double(points.scale) - double(points.scaled_origin[f]);
        }
    }
};

// Some of the centers, in the order of their indices, in panels as `Centers` has them.
template <class T>
struct CenterList {
    const T* panels;
    const int32_t* indices;  // null for all centers
    int64_t n;
};

// Returns by how much more squared distances up to this one may be apart because packing rounded points and
// centers, which moved a distance by at most e: no coordinate is above one.
template <class T>
T room_for_packing(int64_t n_features, T sq_dist) {
    if (sizeof(T) == sizeof(double)) return 0;
    const double e = 4 * 0x1p-24 * __builtin_sqrt(double(n_features));
    return T(2 * e * __builtin_sqrt(double(sq_dist)) + e * e);
}

// Finds the centers that can be among the `n_wanted` (one or two) nearest of a point in the box, or whose
// squared distance can be within `slack` times the nearest's. `least_of` gets a T for each center.
template <class T>
int64_t find_candidates(const CenterList<T>& list, int64_t n_features, const Box<T>& box, int n_wanted,
                        T slack, T* least_of, int32_t* chosen) {
    constexpr int64_t width = unit_lanes<T>;
    Vector<T> nearest = broadcast(T(__builtin_inf())), second = nearest;
    const Vector<T> zero{};
    for (int64_t j = 0; j < list.n; j += width)
        for (int64_t lane = 0; lane < width; lane += lanes<T>) {
            Vector<T> least{}, most{};
            for (int64_t f = 0; f < n_features; ++f) {
                const Vector<T> center = load(list.panels + j * n_features + f * width + lane);
                const Vector<T> above = center - broadcast(box.low[f]),
                                below = broadcast(box.high[f]) - center;
                const Vector<T> outside = larger(zero, -smaller(above, below)), across = larger(above, below);
                least = multiply_add(outside, outside, least);
                most = multiply_add(across, across, most);
            }
            store(least_of + j + lane, least);
            second = smaller(second, larger(nearest, most));
            nearest = smaller(nearest, most);
        }
    // The smallest and second smallest of all lanes.
    T first_most = nearest[0], second_most = second[0];
    for (int lane = 1; lane < lanes<T>; ++lane) {
        const T loser = larger<T>(nearest[lane], first_most);
        first_most = smaller<T>(nearest[lane], first_most);
        second_most = smaller<T>(second[lane], smaller(loser, second_most));
    }
    const T most = n_wanted == 1 ? first_most : second_most;
    const T limit = most * (slack + 4 * rounding_of_distance<T>)+room_for_packing(n_features, most);
    const Vector<T> limits = broadcast(limit);
    int64_t n_chosen = 0;
    for (int64_t j = 0; j < list.n; j += lanes<T>)
        for (unsigned mask = lanes_up_to<T>(load(least_of + j), limits); mask; mask &= mask - 1) {
            const int64_t at = j + __builtin_ctz(mask);
            if (at < list.n) chosen[n_chosen++] = list.indices ? list.indices[at] : int32_t(at);
        }
    return n_chosen;
}

// Packs the chosen centers; the padding is infinitely far.
template <class T>
void gather_panels(const Job<T>& job, const int32_t* chosen, int64_t n_chosen, T* panels) {
    constexpr int64_t width = unit_lanes<T>;
    const int64_t d = job.centers.n_features;
    // Not `j < n_chosen || j % width`: LLVM 14 to 22 drop the remainder, and leave the padding as it was.
    const int64_t n_padded = round_up(n_chosen, width);
    for (int64_t j = 0; j < n_padded; ++j)
        for (int64_t f = 0; f < d; ++f)
            panels[j / width * width * d + f * width + j % width] =
                j < n_chosen ? center_of(job, chosen[j])[f] : T(__builtin_inf());
}

// Adds the squared difference from a center in one feature, or the product with its negative slope.
template <bool affine, class T>
POWERMEANS_INLINE Vector<T> and_feature(Vector<T> y, Vector<T> x, Vector<T> center) {
    if constexpr (affine) return multiply_add(x, center, y);
    const Vector<T> difference = x - center;
    return multiply_add(difference, difference, y);
}

// The nearest center of each point of a group, the first of equals, and the squared distances of the nearest
// and the second nearest.
template <class T>
struct Nearest {
    T nearest[points_per_group], second[points_per_group];
    Index<T> index[points_per_group];
};

// The nearest centers so far of the points in some vectors of a group.
template <bool wants_second, bool affine, int n_vectors, class T>
struct LaneSearch {
    const T* columns;  // of the first of these points
    const T* heights;
    const Centers<T>& centers;
    int64_t row_length;
    Vector<T> best[n_vectors], next[n_vectors];
    Bits<T> which[n_vectors];

    // Compares with several centers at a time, because sums of one center wait for each other.
    template <int n>
    POWERMEANS_INLINE void compare(const int64_t (&index)[n]) {
        Vector<T> y[n][n_vectors] = {};
        if constexpr (affine)
            for (int c = 0; c < n; ++c)
                for (int v = 0; v < n_vectors; ++v)
                    y[c][v] = load(heights + v * lanes<T>) + broadcast(centers.sq_norms[index[c]]);
        const int64_t d = centers.n_features;
        for (int64_t f = 0; f < d; ++f) {
            Vector<T> place[n];
            for (int c = 0; c < n; ++c) place[c] = broadcast(centers.rows[index[c] * row_length + f]);
#pragma GCC unroll 4
            for (int v = 0; v < n_vectors; ++v) {
                const Vector<T> x = load(columns + f * points_per_group + v * lanes<T>);
#pragma GCC unroll 4
                for (int c = 0; c < n; ++c) y[c][v] = and_feature<affine, T>(y[c][v], x, place[c]);
            }
        }
#pragma GCC unroll 4
        for (int c = 0; c < n; ++c) take(index[c], y[c]);
    }

    POWERMEANS_INLINE void take(int64_t index, Vector<T> (&y)[n_vectors]) {
        const Bits<T> here = Bits<T>{} + Index<T>(index);
#pragma GCC unroll 4
        for (int v = 0; v < n_vectors; ++v) {
            if constexpr (affine) y[v] = larger(y[v], Vector<T>{});
            if constexpr (wants_second) next[v] = smaller(next[v], larger(best[v], y[v]));
            keep_smaller<T>(y[v], here, best[v], which[v]);
        }
    }
};

// With fewer features than this, centers one by one keep the units of the processor busy.
constexpr int64_t features_worth_pairs = 4;

// Searches the chosen centers, or all where `chosen` is null. Affine distances begin with heights and lifts.
template <bool wants_second, bool affine, class T>
void find_nearest(const T* columns, const T* heights, const Centers<T>& centers, int64_t row_length,
                  const int32_t* chosen, int64_t n_chosen, Nearest<T>& found) {
    constexpr int n_vectors = 4;
    static_assert(points_per_group % (n_vectors * lanes<T>) == 0 || lanes<T> * n_vectors > points_per_group);
    constexpr int n_here =
        lanes<T> * n_vectors > points_per_group ? int(points_per_group) / lanes<T> : n_vectors;
    const auto index = [chosen](int64_t t) { return chosen ? int64_t(chosen[t]) : t; };
    for (int64_t first = 0; first < points_per_group; first += n_here * lanes<T>) {
        LaneSearch<wants_second, affine, n_here, T> search{
            columns + first, affine ? heights + first : nullptr, centers, row_length, {}, {}, {}};
        for (int v = 0; v < n_here; ++v) search.best[v] = search.next[v] = broadcast(T(__builtin_inf()));
        int64_t t = 0;
        if (centers.n_features >= features_worth_pairs)
            for (; t + 2 <= n_chosen; t += 2) search.compare({index(t), index(t + 1)});
        for (; t < n_chosen; ++t) search.compare({index(t)});
        for (int v = 0; v < n_here; ++v) {
            store(found.nearest + first + v * lanes<T>, search.best[v]);
            if constexpr (wants_second) store(found.second + first + v * lanes<T>, search.next[v]);
            store_bits<T>(found.index + first + v * lanes<T>, search.which[v]);
        }
    }
}

}  // namespace
}  // namespace powermeans
