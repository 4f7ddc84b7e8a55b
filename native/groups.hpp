// Points of few features: a point in each lane, and only the centers that can matter to its group.
#pragma once

#include "rounding.hpp"
#include "vectors.hpp"

namespace powermeans {
namespace {

// An index as wide as a T, so that lanes of indices are chosen by comparing lanes of T.
template <class T>
struct IndexTypes;
template <>
struct IndexTypes<float> {
    using Index = int32_t;
};
template <>
struct IndexTypes<double> {
    using Index = int64_t;
};
template <class T>
using Index = typename IndexTypes<T>::Index;

// Relative rounding of a squared distance, generously.
template <class T>
constexpr T rounding_of_distance = sizeof(T) == 4 ? T(1e-5) : T(1e-13);

template <class T>
struct Box {
    T low[direct_max_features];
    T high[direct_max_features];
};

template <class T>
POWERMEANS_INLINE int64_t place_of(const Dense<T>& points, int64_t position) {
    return points.order ? points.order[position] : position;
}

template <class V>
POWERMEANS_INLINE int64_t place_of(const Csr<V>&, int64_t position) {
    return position;
}

// Shifts and scales points `begin` .. `begin + n` into columns (n_features, points_per_group), the
// first one repeated up to the end of the group.
template <class T>
void pack_group(const Dense<T>& points, int64_t begin, int64_t n, T* columns) {
    for (int64_t p = 0; p < points_per_group; ++p) {
        const T* from = points.values + place_of(points, begin + (p < n ? p : 0)) * points.n_features;
        for (int64_t f = 0; f < points.n_features; ++f)
            columns[f * points_per_group + p] = from[f] * points.scale - points.scaled_origin[f];
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
            if (low[lane] < box.low[f]) box.low[f] = low[lane];
            if (high[lane] > box.high[f]) box.high[f] = high[lane];
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
        if (other.low[f] < box.low[f]) box.low[f] = other.low[f];
        if (other.high[f] > box.high[f]) box.high[f] = other.high[f];
    }
}

// Some groups of neighbours, packed where they were not yet.
template <class T>
class BlockOfGroups {
  public:
    BlockOfGroups(const Dense<T>& points, const Workspace<T>& work, int64_t begin, int64_t n)
        : points_(points), begin_(begin), n_(n), columns_(work.packed) {
        if (points.columns)
            columns_ = points.columns + begin * points.n_features;
        else
            for (int64_t g = 0; g < count(); ++g)
                pack_group(points, first(g), size(g), work.packed + g * points_per_group * points.n_features);
    }

    int64_t count() const { return divide_up(n_, points_per_group); }
    // Where the g-th group begins in the order of the points, and how many points it has.
    int64_t first(int64_t g) const { return begin_ + g * points_per_group; }
    int64_t size(int64_t g) const {
        const int64_t left = n_ - g * points_per_group;
        return left < points_per_group ? left : points_per_group;
    }
    const T* columns(int64_t g) const { return columns_ + g * points_per_group * points_.n_features; }

    Box<T> box(int64_t g) const {
        if (!points_.boxes) return box_of_group(columns(g), points_.n_features);
        return stored_box(points_.boxes + first(g) / points_per_group * 2 * points_.n_features,
                          points_.n_features);
    }

    // Around all groups.
    Box<T> box() const {
        Box<T> around = box(0);
        for (int64_t g = 1; g < count(); ++g) widen_box(around, box(g), points_.n_features);
        return around;
    }

  private:
    const Dense<T>& points_;
    int64_t begin_, n_;
    const T* columns_;
};

// Some of the centers, in the order of their indices, in panels as `Centers` has them.
template <class T>
struct CenterList {
    const T* panels;
    const int32_t* indices;  // null for all centers
    int64_t n;
};

// The centers that can be among the `n_wanted` (one or two) nearest of a point in the box, or whose
// squared distance can be within `slack` times the nearest's. `room` holds a T for each center.
template <class T>
int64_t candidates(const CenterList<T>& list, int64_t n_features, const Box<T>& box, int n_wanted, T slack,
                   T* room, int32_t* chosen) {
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
            store(room + j + lane, least);
            second = smaller(second, larger(nearest, most));
            nearest = smaller(nearest, most);
        }
    // The smallest, and the smallest but one, of all lanes.
    T first_most = nearest[0], second_most = second[0];
    for (int lane = 1; lane < lanes<T>; ++lane) {
        const T loser = nearest[lane] > first_most ? nearest[lane] : first_most;
        if (nearest[lane] < first_most) first_most = nearest[lane];
        if (loser < second_most) second_most = loser;
        if (second[lane] < second_most) second_most = second[lane];
    }
    const T limit = (n_wanted == 1 ? first_most : second_most) * (slack + 4 * rounding_of_distance<T>);
    const Vector<T> limits = broadcast(limit);
    int64_t n_chosen = 0;
    for (int64_t j = 0; j < list.n; j += lanes<T>)
        for (unsigned mask = lanes_up_to<T>(load(room + j), limits); mask; mask &= mask - 1) {
            const int64_t at = j + __builtin_ctz(mask);
            if (at < list.n) chosen[n_chosen++] = list.indices ? list.indices[at] : int32_t(at);
        }
    return n_chosen;
}

// Panels of the chosen centers alone; the padding is infinitely far.
template <class T>
void gather_panels(const Centers<T>& centers, int64_t row_length, const int32_t* chosen, int64_t n_chosen,
                   T* panels) {
    constexpr int64_t width = unit_lanes<T>;
    const int64_t d = centers.n_features;
    // Not `j < n_chosen || j % width`: LLVM drops the remainder, and leaves the padding as it was.
    const int64_t n_padded = round_up(n_chosen, width);
    for (int64_t j = 0; j < n_padded; ++j)
        for (int64_t f = 0; f < d; ++f)
            panels[j / width * width * d + f * width + j % width] =
                j < n_chosen ? centers.rows[chosen[j] * row_length + f] : T(__builtin_inf());
}

// Adds feature by feature the squared differences from a center, or the products with its negative slope.
template <bool affine, class T>
POWERMEANS_INLINE Vector<T> and_feature(Vector<T> y, Vector<T> x, Vector<T> center) {
    if constexpr (affine) return multiply_add(x, center, y);
    const Vector<T> difference = x - center;
    return multiply_add(difference, difference, y);
}

// The nearest of the chosen centers for each point of a group, the first of several; and the squared
// distance of the nearest but one. Affine distances begin with heights and lifts.
template <bool wants_second, bool affine, class T>
void nearest_of_group(const T* columns, const T* heights, const Centers<T>& centers, int64_t row_length,
                      const int32_t* chosen, int64_t n_chosen, T* nearest, T* second, Index<T>* index) {
    constexpr int n_vectors = 4;
    static_assert(points_per_group % (n_vectors * lanes<T>) == 0 || lanes<T> * n_vectors > points_per_group);
    constexpr int n_here =
        lanes<T> * n_vectors > points_per_group ? int(points_per_group) / lanes<T> : n_vectors;
    const int64_t d = centers.n_features;
    for (int64_t first = 0; first < points_per_group; first += n_here * lanes<T>) {
        Vector<T> best[n_here], next[n_here];
        Bits<T> which[n_here] = {};
        for (int v = 0; v < n_here; ++v) best[v] = next[v] = broadcast(T(__builtin_inf()));
        for (int64_t t = 0; t < n_chosen; ++t) {
            const int64_t j = chosen ? chosen[t] : t;
            const T* center = centers.rows + j * row_length;
            Vector<T> y[n_here] = {};
            if constexpr (affine)
                for (int v = 0; v < n_here; ++v)
                    y[v] = load(heights + first + v * lanes<T>) + broadcast(centers.sq_norms[j]);
            for (int64_t f = 0; f < d; ++f) {
                const Vector<T> place = broadcast(center[f]);
#pragma GCC unroll 4
                for (int v = 0; v < n_here; ++v)
                    y[v] = and_feature<affine, T>(
                        y[v], load(columns + f * points_per_group + first + v * lanes<T>), place);
            }
            if constexpr (affine)
                for (int v = 0; v < n_here; ++v) y[v] = larger(y[v], Vector<T>{});
            const Bits<T> here = Bits<T>{} + Index<T>(j);
#pragma GCC unroll 4
            for (int v = 0; v < n_here; ++v) {
                if constexpr (wants_second) next[v] = smaller(next[v], larger(best[v], y[v]));
                keep_smaller<T>(y[v], here, best[v], which[v]);
            }
        }
        for (int v = 0; v < n_here; ++v) {
            store(nearest + first + v * lanes<T>, best[v]);
            if constexpr (wants_second) store(second + first + v * lanes<T>, next[v]);
            store_bits<T>(index + first + v * lanes<T>, which[v]);
        }
    }
}

}  // namespace
}  // namespace powermeans
