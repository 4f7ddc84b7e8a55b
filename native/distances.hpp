// Squared distances of blocks of points, dense or sparse, to all centers; and adding points up.
#pragma once

#include "groups.hpp"
#include "reductions.hpp"
#include "tile.hpp"

namespace powermeans {
namespace {

// Features whose panels of centers stay in the first-level cache while rows of points pass.
constexpr int64_t features_at_once = 128;

// Below this share of |x|^2 + |center|^2 a distance from a product has lost too many digits and is
// taken again from differences.
template <class T>
constexpr T cancellation = sizeof(T) == 4 ? T(1) / 64 : T(1) / 1024;

template <class T>
POWERMEANS_INLINE double weight_of(const Job<T>& job, int64_t i) {
    return job.sample_weight ? job.sample_weight[i] : 1.0;
}

// ---- Dense points -------------------------------------------------------------------------------

POWERMEANS_INLINE void widened(const double* from, DoubleVector (&to)[vectors_per_unit]) {
    for (int v = 0; v < vectors_per_unit; ++v) to[v] = load(from + v * lanes<double>);
}

POWERMEANS_INLINE void widened(const float* from, DoubleVector (&to)[2 * vectors_per_unit]) {
    for (int v = 0; v < vectors_per_unit; ++v) widen(load(from + v * lanes<float>), to[2 * v], to[2 * v + 1]);
}

template <class T>
double sq_norm(const T* packed, int64_t padded_features) {
    constexpr int n_vectors = int(unit_lanes<T>) / lanes<double>;
    DoubleVector sums[n_vectors] = {}, x[n_vectors];
    for (int64_t f = 0; f < padded_features; f += unit_lanes<T>) {
        widened(packed + f, x);
        for (int v = 0; v < n_vectors; ++v) sums[v] = multiply_add(x[v], x[v], sums[v]);
    }
    return sum_of_lanes<double>(sums);
}

// Points come from far away, and blocks of them are too short for the machine to see that.
constexpr uintptr_t bytes_fetched_ahead = 2048;

template <class T>
POWERMEANS_INLINE void fetch_ahead(const T* from) {
    __builtin_prefetch(
        reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(from) + bytes_fetched_ahead));
}

// Shifts and scales a block of points into `packed`, padding with zeros.
template <class T>
void pack(const Dense<T>& points, const Plan& plan, int64_t begin, int64_t n, const Workspace<T>& work) {
    const int64_t d = points.n_features;
    for (int64_t p = 0; p < n; ++p) {
        const T* from = points.values + place_of(points, begin + p) * d;
        T* to = work.packed + p * plan.padded_features;
        int64_t f = 0;
        for (; f + lanes<T> <= d; f += lanes<T>) {
            fetch_ahead(from + f);
            store(to + f,
                  multiply_add(load(from + f), broadcast(points.scale), -load(points.scaled_origin + f)));
        }
        for (; f < d; ++f) to[f] = from[f] * points.scale - points.scaled_origin[f];
        for (; f < plan.padded_features; ++f) to[f] = 0;
        if (!plan.direct && !plan.recalled) work.sq_norms[p] = sq_norm(to, plan.padded_features);
    }
}

template <class T, bool squared_differences>
void tiles_of_features(const Job<T>& job, const Workspace<T>& work, int64_t n, int64_t first, int64_t last) {
    for (int64_t f = first; f < last; f += features_at_once) {
        const int64_t n_steps = f + features_at_once < last ? features_at_once : last - f;
        const DistanceTiles<T, squared_differences> tiles{work.packed,
                                                          job.plan.padded_features,
                                                          job.centers.panels,
                                                          job.centers.n_features,
                                                          f,
                                                          n_steps,
                                                          f == first,
                                                          work.dist,
                                                          job.centers.n_padded};
        Tiling<DistanceTiles<T, squared_differences>>{tiles, n}.all(job.centers.n_padded / unit_lanes<T>);
    }
}

template <class T>
void fold(const Workspace<T>& work, int64_t n_values, bool first) {
    if (first)
        for (int64_t i = 0; i < n_values; ++i) work.folded[i] = 0;
    for (int64_t i = 0; i < n_values; i += lanes<T>) add_to(work.folded + i, load(work.dist + i), 1.0);
}

// What an affine distance has of the point, in the unit of distances.
template <class T>
POWERMEANS_INLINE double point_height(const Job<T>& job, int64_t i) {
    return job.heights[i] / job.unscale / job.unscale;
}

// In the place of squared norms, where distances are affine.
template <class T>
void take_heights(const Job<T>& job, const Workspace<T>& work, int64_t begin, int64_t n) {
    for (int64_t p = 0; p < n; ++p) work.sq_norms[p] = point_height(job, begin + p);
}

// Fills work.dist with squared differences, with -2 <x, center>, or with -<x, slope>.
template <class T>
void packed_distances(const Job<T>& job, const Workspace<T>& work, int64_t n, int64_t d) {
    if (job.plan.direct) return tiles_of_features<T, true>(job, work, n, 0, d);
    if (!work.folded) return tiles_of_features<T, false>(job, work, n, 0, d);
    for (int64_t f = 0; f < d; f += features_per_fold) {
        tiles_of_features<T, false>(job, work, n, f, f + features_per_fold < d ? f + features_per_fold : d);
        fold(work, n * job.centers.n_padded, f == 0);
    }
}

template <class T>
void raw_distances(const Dense<T>& points, const Job<T>& job, const Workspace<T>& work, int64_t begin,
                   int64_t n) {
    pack(points, job.plan, begin, n, work);
    if (job.heights) take_heights(job, work, begin, n);
    packed_distances(job, work, n, points.n_features);
}

// An affine distance in float64, from the point as stored.
template <class T>
double affine_distance(const Dense<T>& points, const Job<T>& job, int64_t begin, int64_t p, int64_t j) {
    const T* point = points.values + (begin + p) * points.n_features;
    const double* negative_slope = job.centers.rows_wide + j * job.plan.padded_features;
    double sum = point_height(job, begin + p) + job.centers.sq_norms_wide[j];
    for (int64_t f = 0; f < points.n_features; ++f) {
        const double x = double(point[f]) * double(points.scale) - double(points.scaled_origin[f]);
        sum = multiply_add(x, negative_slope[f], sum);
    }
    return sum > 0 ? sum : 0;
}

template <class T>
T sq_dist_from_differences(const Dense<T>& points, const Job<T>& job, const Workspace<T>& work, int64_t begin,
                           int64_t p, int64_t j) {
    if (job.heights) return T(affine_distance(points, job, begin, p, j));
    const T* point = work.packed + p * job.plan.padded_features;
    const T* center = job.centers.rows + j * job.plan.padded_features;
    Vector<T> sums[vectors_per_unit] = {};
    for (int64_t f = 0; f < job.plan.padded_features; f += unit_lanes<T>)
        for (int v = 0; v < vectors_per_unit; ++v) {
            const Vector<T> difference = load(point + f + v * lanes<T>) - load(center + f + v * lanes<T>);
            sums[v] = multiply_add(difference, difference, sums[v]);
        }
    return T(sum_of_lanes<T>(sums));
}

// From the point as stored, which `packed` has rounded.
template <class T>
double precise_sq_dist(const Dense<T>& points, const Job<T>& job, const Workspace<T>&, int64_t begin,
                       int64_t p, int64_t j) {
    if (job.heights) return affine_distance(points, job, begin, p, j);
    constexpr int n_vectors = int(unit_lanes<T>) / lanes<double>;
    const T* point = points.values + place_of(points, begin + p) * points.n_features;
    const double* center = job.centers.rows_wide + j * job.plan.padded_features;
    const double scale = double(points.scale);
    DoubleVector sums[n_vectors] = {}, x[n_vectors], origin[n_vectors];
    int64_t f = 0;
    for (; f + unit_lanes<T> <= points.n_features; f += unit_lanes<T>) {
        widened(point + f, x);
        widened(points.scaled_origin + f, origin);
        for (int v = 0; v < n_vectors; ++v) {
            const DoubleVector shifted = x[v] * scale - origin[v];
            const DoubleVector difference = shifted - load(center + f + v * lanes<double>);
            sums[v] = multiply_add(difference, difference, sums[v]);
        }
    }
    double sum = sum_of_lanes<double>(sums);
    for (; f < points.n_features; ++f) {
        const double difference = double(point[f]) * scale - double(points.scaled_origin[f]) - center[f];
        sum = multiply_add(difference, difference, sum);
    }
    return sum;
}

template <class T>
void add_point(const Dense<T>&, const Job<T>& job, const Workspace<T>& work, int64_t, int64_t p,
               int64_t center, double weight, Partial& out) {
    const T* point = work.packed + p * job.plan.padded_features;
    double* to = out.points + center * job.plan.padded_features;
    int64_t f = 0;
    for (; f + lanes<T> <= job.plan.padded_features; f += lanes<T>) add_to(to + f, load(point + f), weight);
    for (; f < job.plan.padded_features; ++f) to[f] = multiply_add(double(point[f]), weight, to[f]);
}

// Adds the block's points, weighted by the rows of work.dist, to every center.
template <class T>
void add_block(const Dense<T>& points, const Job<T>& job, const Workspace<T>& work, int64_t, int64_t first,
               int64_t n, double factor, Partial& out) {
    const int64_t n_padded = job.centers.n_padded, width = job.plan.padded_features;
    const T* packed = work.packed + first * width;
    const T* weights = work.dist + first * n_padded;
    if (job.plan.sums_by_center) {
        const SumTiles<T> tiles{
            {weights, 1, n_padded}, {packed, unit_lanes<T>, width}, n, factor, out.points, width};
        Tiling<SumTiles<T>>{tiles, job.centers.n_centers}.all(width / unit_lanes<T>);
    } else {
        const SumTiles<T> tiles{
            {packed, 1, width}, {weights, unit_lanes<T>, n_padded}, n, factor, out.points, n_padded};
        Tiling<SumTiles<T>>{tiles, points.n_features}.all(n_padded / unit_lanes<T>);
    }
}

// ---- Sparse points ------------------------------------------------------------------------------

template <class V>
void raw_distances(const Csr<V>& points, const Job<double>& job, const Workspace<double>& work, int64_t begin,
                   int64_t n) {
    const int64_t n_padded = job.centers.n_padded;
    for (int64_t p = 0; p < n; ++p) {
        double* row = work.dist + p * n_padded;
        for (int64_t j = 0; j < n_padded; ++j) row[j] = 0;
        double norm = 0;
        for (int64_t e = points.row_starts[begin + p]; e < points.row_starts[begin + p + 1]; ++e) {
            const double value = double(points.values[e]) * points.scale;
            const double* panel = job.centers.panels + points.columns[e] * n_padded;
            norm = multiply_add(value, value, norm);
            for (int64_t j = 0; j < n_padded; j += lanes<double>) add_to(row + j, load(panel + j), value);
        }
        work.sq_norms[p] = norm;
    }
    if (job.heights) take_heights(job, work, begin, n);
}

template <class V>
double affine_distance(const Csr<V>& points, const Job<double>& job, int64_t begin, int64_t p, int64_t j) {
    const double* negative_slope = job.centers.rows_wide + j * job.plan.padded_features;
    double sum = point_height(job, begin + p) + job.centers.sq_norms_wide[j];
    for (int64_t e = points.row_starts[begin + p]; e < points.row_starts[begin + p + 1]; ++e)
        sum = multiply_add(double(points.values[e]) * points.scale, negative_slope[points.columns[e]], sum);
    return sum > 0 ? sum : 0;
}

template <class V>
double sq_dist_from_differences(const Csr<V>& points, const Job<double>& job, const Workspace<double>&,
                                int64_t begin, int64_t p, int64_t j) {
    if (job.heights) return affine_distance(points, job, begin, p, j);
    const double* center = job.centers.rows + j * job.plan.padded_features;
    int64_t e = points.row_starts[begin + p];
    const int64_t end = points.row_starts[begin + p + 1];
    double sum = 0;
    for (int64_t f = 0; f < points.n_features; ++f) {
        double difference = -center[f];
        for (; e < end && points.columns[e] == f; ++e) difference += double(points.values[e]) * points.scale;
        sum = multiply_add(difference, difference, sum);
    }
    return sum;
}

template <class V>
double precise_sq_dist(const Csr<V>& points, const Job<double>& job, const Workspace<double>& work,
                       int64_t begin, int64_t p, int64_t j) {
    return sq_dist_from_differences(points, job, work, begin, p, j);
}

template <class V>
void add_point(const Csr<V>& points, const Job<double>& job, const Workspace<double>&, int64_t begin,
               int64_t p, int64_t center, double weight, Partial& out) {
    double* to = out.points + center * job.plan.padded_features;
    for (int64_t e = points.row_starts[begin + p]; e < points.row_starts[begin + p + 1]; ++e) {
        double& sum = to[points.columns[e]];
        sum = multiply_add(double(points.values[e]) * points.scale, weight, sum);
    }
}

template <class V>
void add_block(const Csr<V>& points, const Job<double>& job, const Workspace<double>& work, int64_t begin,
               int64_t first, int64_t n, double factor, Partial& out) {
    const int64_t n_padded = job.centers.n_padded;
    for (int64_t p = first; p < first + n; ++p) {
        const double* weights = work.dist + p * n_padded;
        for (int64_t e = points.row_starts[begin + p]; e < points.row_starts[begin + p + 1]; ++e) {
            const double value = double(points.values[e]) * points.scale * factor;
            double* sums = out.points + points.columns[e] * n_padded;
            for (int64_t j = 0; j < n_padded; j += lanes<double>) add_to(sums + j, load(weights + j), value);
        }
    }
}

// ---- From raw sums to distances -----------------------------------------------------------------

// row = |x|^2 + |center|^2 + row, or height + lift + row; at least zero. Returns the smallest.
template <class T>
T complete_row(const Job<T>& job, const Workspace<T>& work, int64_t p) {
    const int64_t n_padded = job.centers.n_padded;
    T* row = work.dist + p * n_padded;
    Vector<T> smallest = broadcast(T(__builtin_inf()));
    if (work.folded) {
        const double* folded = work.folded + p * n_padded;
        for (int64_t j = 0; j < n_padded; ++j)
            row[j] = T(work.sq_norms[p] + job.centers.sq_norms_wide[j] + folded[j]);
    }
    const Vector<T> norm = broadcast(T(work.sq_norms[p]));
    for (int64_t j = 0; j < n_padded; j += lanes<T>) {
        Vector<T> y = load(row + j);
        if (!work.folded) y = (norm + load(job.centers.sq_norms + j)) + y;
        y = larger(y, Vector<T>{});
        store(row + j, y);
        smallest = smaller(smallest, y);
    }
    return smallest_lane<T>(smallest);
}

template <class T>
POWERMEANS_INLINE T absolute(T value) {
    return value < 0 ? -value : value;
}

// Affine distances have no differences to be taken from: what helps them is float64.
template <class T>
bool can_mend(const Job<T>& job) {
    return !job.heights || sizeof(T) < sizeof(double);
}

// Takes the distances that cancellation has spoilt again; returns the smallest distance of the row.
template <class Storage, class T>
T mend_row(const Storage& points, const Job<T>& job, const Workspace<T>& work, int64_t begin, int64_t p) {
    T* row = work.dist + p * job.centers.n_padded;
    for (int64_t j = 0; j < job.centers.n_centers; ++j)
        if (row[j] < cancellation<T> * (T(work.sq_norms[p]) + absolute(job.centers.sq_norms[j])))
            row[j] = sq_dist_from_differences(points, job, work, begin, p, j);
    return smallest_in(row, job.centers.n_padded);
}

// A group of points whose distances are affine. In float64 throughout: sums of few products are soon made,
// and cancel.
struct AffineGroup {
    double columns[direct_max_features * points_per_group];
    double heights[points_per_group];

    // Points `begin` .. `begin + n`, the first one repeated up to the end of the group.
    template <class T>
    AffineGroup(const Dense<T>& points, const Job<T>& job, int64_t begin, int64_t n) {
        for (int64_t p = 0; p < points_per_group; ++p) {
            const int64_t i = begin + (p < n ? p : 0);
            const T* from = points.values + i * points.n_features;
            heights[p] = point_height(job, i);
            for (int64_t f = 0; f < points.n_features; ++f)
                columns[f * points_per_group + p] =
                    double(from[f]) * double(points.scale) - double(points.scaled_origin[f]);
        }
    }
};

template <class T>
Centers<double> wide_centers(const Centers<T>& centers) {
    Centers<double> wide{};
    wide.n_centers = centers.n_centers;
    wide.n_features = centers.n_features;
    wide.rows = centers.rows_wide;
    wide.sq_norms = centers.sq_norms_wide;
    return wide;
}

// From raw sums in work.dist to squared distances, the smallest of each point in work.nearest.
template <class Storage, class T>
void complete_distances(const Storage& points, const Job<T>& job, const Workspace<T>& work, int64_t begin,
                        int64_t n) {
    for (int64_t p = 0; p < n; ++p) {
        if (job.plan.direct) {
            work.nearest[p] = double(smallest_in(work.dist + p * job.centers.n_padded, job.centers.n_padded));
            continue;
        }
        T nearest = complete_row(job, work, p);
        const double size = work.sq_norms[p] + job.centers.largest_sq_norm;
        if (can_mend(job) && double(nearest) < double(cancellation<T>) * size)
            nearest = mend_row(points, job, work, begin, p);
        work.nearest[p] = double(nearest);
    }
}

template <class Storage, class T>
void distances(const Storage& points, const Job<T>& job, const Workspace<T>& work, int64_t begin, int64_t n) {
    raw_distances(points, job, work, begin, n);
    complete_distances(points, job, work, begin, n);
}

}  // namespace
}  // namespace powermeans
