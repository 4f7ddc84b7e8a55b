// The sweep over one stripe of points. Compiled once for each instruction set, with its flags on
// this file alone and POWERMEANS_TABLE naming the table it defines.
#include "kernels.hpp"

#include "elementary.hpp"
#include "groups.hpp"
#include "tile.hpp"

namespace powermeans {
namespace {

// Features whose panels of centers stay in the first-level cache while rows of points pass.
constexpr int64_t features_at_once = 128;

// Below this share of |x|^2 + |center|^2 a distance from a product has lost too many digits and is
// taken again from differences.
template <class T>
constexpr T cancellation = sizeof(T) == 4 ? T(1) / 64 : T(1) / 1024;

// At a large power a rounded distance is a wrong weight: the error of a soft weight e is about
// |s| e times that of its distance. Centers whose e is above this over |s| are taken in float64.
template <class T>
constexpr double tie_tolerance = sizeof(T) == 4 ? 8.0 : 128.0;

// Factors further apart than this do not share one product without underflow.
template <class T>
constexpr double widest_factors = sizeof(T) == 4 ? 1e26 : 1e260;

// Sum of the lanes of whole units in one order for all instruction sets: halves onto halves.
template <class T, int n_vectors>
POWERMEANS_INLINE double sum_of_lanes(const Vector<T> (&vectors)[n_vectors]) {
    T lane[n_vectors * lanes<T>];
    for (int v = 0; v < n_vectors; ++v) store(lane + v * lanes<T>, vectors[v]);
    double sums[n_vectors * lanes<T> / 2];
    constexpr int half = n_vectors * lanes<T> / 2;
    for (int i = 0; i < half; ++i) sums[i] = double(lane[i]) + double(lane[i + half]);
    for (int left = half / 2; left > 0; left /= 2)
        for (int i = 0; i < left; ++i) sums[i] += sums[i + left];
    return sums[0];
}

POWERMEANS_INLINE double weighted_sum(const double* values, const double* weights) {
    DoubleVector sums[vectors_per_unit] = {};
    for (int64_t p = 0; p < points_per_group; p += unit_lanes<double>)
        for (int v = 0; v < vectors_per_unit; ++v)
            sums[v] = multiply_add(load(values + p + v * lanes<double>),
                                   load(weights + p + v * lanes<double>), sums[v]);
    return sum_of_lanes<double>(sums);
}

POWERMEANS_INLINE double weighted_sum(const float* values, const double* weights) {
    double wide[points_per_group];
    for (int64_t p = 0; p < points_per_group; ++p) wide[p] = double(values[p]);
    return weighted_sum(wide, weights);
}

template <class T>
POWERMEANS_INLINE T smallest_lane(Vector<T> v) {
    T lane[lanes<T>];
    store(lane, v);
    for (int left = lanes<T> / 2; left > 0; left /= 2)
        for (int i = 0; i < left; ++i)
            if (lane[i + left] < lane[i]) lane[i] = lane[i + left];
    return lane[0];
}

template <class T>
POWERMEANS_INLINE T smallest_in(const T* row, int64_t n_padded) {
    Vector<T> smallest = load(row);
    for (int64_t j = lanes<T>; j < n_padded; j += lanes<T>) smallest = smaller(smallest, load(row + j));
    return smallest_lane<T>(smallest);
}

template <class T>
POWERMEANS_INLINE bool has_two_up_to(const T* row, int64_t n_padded, T limit) {
    const Vector<T> limits = broadcast(limit);
    Bits<T> counts = {};
    for (int64_t j = 0; j < n_padded; j += lanes<T>) counts -= Bits<T>(load(row + j) <= limits);
    int64_t count = 0;
    for (int lane = 0; lane < lanes<T>; ++lane) count += counts[lane];
    return count > 1;
}

// The first center at this distance; the first of all where none is, as when a distance is NaN.
template <class T>
POWERMEANS_INLINE int64_t first_equal(const T* row, int64_t n_padded, T value) {
    const Vector<T> wanted = broadcast(value);
    for (int64_t j = 0; j < n_padded; j += lanes<T>) {
        const int lane = first_lane_equal(load(row + j), wanted);
        if (lane >= 0) return j + lane;
    }
    return 0;
}

template <class T>
POWERMEANS_INLINE double weight_of(const Job<T>& job, int64_t i) {
    return job.sample_weight ? job.sample_weight[i] : 1.0;
}

// ---- Dense points -------------------------------------------------------------------------------

POWERMEANS_INLINE double sq_norm(const double* packed, int64_t padded_features) {
    DoubleVector sums[vectors_per_unit] = {};
    for (int64_t f = 0; f < padded_features; f += unit_lanes<double>)
        for (int v = 0; v < vectors_per_unit; ++v) {
            const DoubleVector x = load(packed + f + v * lanes<double>);
            sums[v] = multiply_add(x, x, sums[v]);
        }
    return sum_of_lanes<double>(sums);
}

POWERMEANS_INLINE double sq_norm(const float* packed, int64_t padded_features) {
    DoubleVector sums[2 * vectors_per_unit] = {};
    for (int64_t f = 0; f < padded_features; f += unit_lanes<float>)
        for (int v = 0; v < vectors_per_unit; ++v) {
            DoubleVector low, high;
            widen(load(packed + f + v * lanes<float>), low, high);
            sums[2 * v] = multiply_add(low, low, sums[2 * v]);
            sums[2 * v + 1] = multiply_add(high, high, sums[2 * v + 1]);
        }
    return sum_of_lanes<double>(sums);
}

// Shifts and scales a block of points into `packed`, padding with zeros.
template <class T>
void pack(const Dense<T>& points, const Plan& plan, int64_t begin, int64_t n, const Workspace<T>& work) {
    const int64_t d = points.n_features;
    for (int64_t p = 0; p < n; ++p) {
        const T* from = points.values + place_of(points, begin + p) * d;
        T* to = work.packed + p * plan.padded_features;
        int64_t f = 0;
        for (; f + lanes<T> <= d; f += lanes<T>)
            store(to + f,
                  multiply_add(load(from + f), broadcast(points.scale), -load(points.scaled_origin + f)));
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

// Fills work.dist with squared differences, or with -2 <x, center>.
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
    packed_distances(job, work, n, points.n_features);
}

template <class T>
T sq_dist_from_differences(const Dense<T>&, const Job<T>& job, const Workspace<T>& work, int64_t, int64_t p,
                           int64_t j) {
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

POWERMEANS_INLINE void widened(const double* from, DoubleVector (&to)[vectors_per_unit]) {
    for (int v = 0; v < vectors_per_unit; ++v) to[v] = load(from + v * lanes<double>);
}

POWERMEANS_INLINE void widened(const float* from, DoubleVector (&to)[2 * vectors_per_unit]) {
    for (int v = 0; v < vectors_per_unit; ++v) widen(load(from + v * lanes<float>), to[2 * v], to[2 * v + 1]);
}

// From the point as stored, which `packed` has rounded.
template <class T>
double precise_sq_dist(const Dense<T>& points, const Job<T>& job, const Workspace<T>&, int64_t begin,
                       int64_t p, int64_t j) {
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
}

template <class V>
double sq_dist_from_differences(const Csr<V>& points, const Job<double>& job, const Workspace<double>&,
                                int64_t begin, int64_t p, int64_t j) {
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

// row = |x|^2 + |center|^2 + row, at least zero; returns the smallest.
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

// Takes the distances that cancellation has spoilt again; returns the smallest distance of the row.
template <class Storage, class T>
T mend_row(const Storage& points, const Job<T>& job, const Workspace<T>& work, int64_t begin, int64_t p) {
    T* row = work.dist + p * job.centers.n_padded;
    for (int64_t j = 0; j < job.centers.n_centers; ++j)
        if (row[j] < cancellation<T> * (T(work.sq_norms[p]) + job.centers.sq_norms[j]))
            row[j] = sq_dist_from_differences(points, job, work, begin, p, j);
    return smallest_in(row, job.centers.n_padded);
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
        if (double(nearest) < double(cancellation<T>) * (work.sq_norms[p] + job.centers.largest_sq_norm))
            nearest = mend_row(points, job, work, begin, p);
        work.nearest[p] = double(nearest);
    }
}

template <class Storage, class T>
void distances(const Storage& points, const Job<T>& job, const Workspace<T>& work, int64_t begin, int64_t n) {
    raw_distances(points, job, work, begin, n);
    complete_distances(points, job, work, begin, n);
}

// ---- Rules --------------------------------------------------------------------------------------

double log_of_one(double x) { return log_of(broadcast(x))[0]; }
double exp_of_one(double x) { return exp_of<double>(broadcast(x))[0]; }

// Distances up to this times the smallest are near ties at this power; 1 where there are none.
template <class T>
double tie_ratio_at(double power) {
    const double log_limit = log_of_one(-power / tie_tolerance<T>);
    return log_limit > 0 ? exp_of_one(log_limit / -power) : 1.0;
}

// Lists the centers of near ties with their float64 distances, takes them out of the row, and
// returns how many there are.
template <class Storage, class T>
int64_t take_ties(const Storage& points, const Job<T>& job, const Workspace<T>& work, int64_t begin,
                  int64_t p, double tie_ratio) {
    T* row = work.dist + p * job.centers.n_padded;
    const T limit = T(work.nearest[p] * tie_ratio);
    if (!(tie_ratio > 1) || !has_two_up_to(row, job.centers.n_padded, limit)) return 0;
    int64_t n_tied = 0;
    for (int64_t j = 0; j < job.centers.n_padded; j += lanes<T>)
        for (unsigned mask = lanes_up_to(load(row + j), broadcast(limit)); mask; mask &= mask - 1)
            work.tied[n_tied++] = j + __builtin_ctz(mask);
    for (int64_t t = 0; t < n_tied; ++t) {
        work.tied_dist[t] = precise_sq_dist(points, job, work, begin, p, work.tied[t]);
        row[work.tied[t]] = T(__builtin_inf());
        if (t == 0 || work.tied_dist[t] < work.nearest[p]) work.nearest[p] = work.tied_dist[t];
    }
    return n_tied;
}

// Puts the centers of near ties back into a softened row; returns their part of S.
template <class T>
double soften_ties(const Workspace<T>& work, T* row, int64_t n_tied, double nearest, double abs_power) {
    double sum = 0;
    for (int64_t first = 0; first < n_tied; first += lanes<double>) {
        const int64_t n = n_tied - first < lanes<double> ? n_tied - first : lanes<double>;
        double ratio[lanes<double>], soft[lanes<double>];
        for (int64_t t = 0; t < lanes<double>; ++t) {
            const double tied = work.tied_dist[first + (t < n ? t : 0)];
            ratio[t] = nearest > 0 ? nearest / tied : tied == 0;
        }
        const DoubleVector ratios = load(ratio), least = broadcast(Format<double>::smallest_normal);
        store(soft, keep_where_at_least<double>(ratios, least,
                                                exp_of<double>(abs_power * log_of(larger(ratios, least)))));
        for (int64_t t = 0; t < n; ++t) {
            row[work.tied[first + t]] = T(soft[t] * ratio[t]);
            sum += soft[t];
        }
    }
    return sum;
}

constexpr double highest_abs_power = 1e30;

// ratio^|s| by the logarithm.
template <class T>
struct AnyPower {
    T abs_power;
    POWERMEANS_INLINE Vector<T> operator()(Vector<T> ratio) const {
        return exp_of<T>(broadcast(abs_power) * log_of(ratio));
    }
};

// ratio^|s| by squaring, where |s| is a whole number.
template <class T>
struct WholePower {
    int64_t abs_power;
    POWERMEANS_INLINE Vector<T> operator()(Vector<T> ratio) const {
        Vector<T> raised = abs_power & 1 ? ratio : broadcast(T(1));
        for (int64_t left = abs_power >> 1; left; left >>= 1) {
            ratio *= ratio;
            if (left & 1) raised *= ratio;
        }
        return raised;
    }
};

// row = exp((s - 1) a) with a = log(y / nearest), zero where nearest / y is below the lowest ratio;
// returns S = sum of exp(s a).
template <class T, class Raise>
double soften_row(T* row, int64_t n_padded, T nearest, T lowest_ratio, Raise raised) {
    if (nearest == 0) {
        double n_zeros = 0;
        for (int64_t j = 0; j < n_padded; ++j) {
            row[j] = T(row[j] == 0);
            n_zeros += double(row[j]);
        }
        return n_zeros;
    }
    Vector<T> sums[vectors_per_unit] = {};
    const Vector<T> smallest = broadcast(nearest), lowest = broadcast(lowest_ratio);
    // Rounded up, so that nothing of the lowest ratio is skipped.
    const Vector<T> limit = broadcast(nearest / lowest_ratio * (1 + 4 * rounding_of_distance<T>));
    for (int64_t j = 0; j < n_padded; j += unit_lanes<T>)
        for (int v = 0; v < vectors_per_unit; ++v) {
            T* at = row + j + v * lanes<T>;
            const Vector<T> y = load(at);
            if (lanes_up_to(y, limit) == 0) {
                store(at, Vector<T>{});
                continue;
            }
            const Vector<T> ratio = smaller(smallest / y, broadcast(T(1)));
            const Vector<T> kept = keep_where_at_least<T>(ratio, lowest, ratio);
            const Vector<T> soft = keep_where_at_least<T>(ratio, lowest, raised(larger(kept, lowest)));
            sums[v] += soft;
            store(at, soft * kept);
        }
    return sum_of_lanes<T>(sums);
}

template <class T>
double soften_row(T* row, int64_t n_padded, T nearest, const Job<T>& job) {
    if (job.whole_power)
        return soften_row(row, n_padded, nearest, job.lowest_ratio, WholePower<T>{job.whole_power});
    // Far below the highest power every weight but the nearest's vanishes; beyond T it would be infinite.
    const T abs_power = T(-job.power < highest_abs_power ? -job.power : highest_abs_power);
    return soften_row(row, n_padded, nearest, job.lowest_ratio, AnyPower<T>{abs_power});
}

// factor = sample weight * S^(1/s - 1), common to all weights of a point.
template <class Storage, class T>
void take_factors(const Storage& points, const Job<T>& job, const Workspace<T>& work, int64_t begin,
                  int64_t n) {
    for (int64_t p = 0; p < n; p += lanes<double>)
        store(work.factors + p, exp_of<double>(log_of(load(work.softness + p)) * (1 / job.power - 1)));
    for (int64_t p = 0; p < n; ++p) work.factors[p] *= weight_of(job, place_of(points, begin + p));
}

// Where fewer weights than one in so many are positive, they are added one by one.
constexpr int64_t few_positive = 10;

// Turns rows first .. first + n into weights in units of `scale`, and adds them up.
template <class Storage, class T>
void add_weighted(const Storage& points, const Job<T>& job, const Workspace<T>& work, int64_t begin,
                  int64_t first, int64_t n, double scale, Partial& out) {
    int64_t n_positive = 0;
    for (int64_t p = first; p < first + n; ++p) {
        out.objective += work.factors[p] * work.softness[p] * work.nearest[p];
        out.inertia += weight_of(job, place_of(points, begin + p)) * work.nearest[p];
        T* row = work.dist + p * job.centers.n_padded;
        const Vector<T> factor = broadcast(T(work.factors[p] / scale));
        for (int64_t j = 0; j < job.centers.n_padded; j += lanes<T>) {
            const Vector<T> soft = load(row + j);
            const unsigned positive = lanes_above_zero(soft);
            if (!positive) continue;
            n_positive += __builtin_popcount(positive);
            const Vector<T> weights = soft * factor;
            store(row + j, weights);
            add_to(out.weights + j, weights, scale);
        }
    }
    if (!job.plan.sums_by_center || n_positive * few_positive > n * job.centers.n_padded)
        return add_block(points, job, work, begin, first, n, scale, out);
    for (int64_t p = first; p < first + n; ++p) {
        const T* row = work.dist + p * job.centers.n_padded;
        for (int64_t j = 0; j < job.centers.n_padded; j += lanes<T>)
            for (unsigned mask = lanes_above_zero(load(row + j)); mask; mask &= mask - 1) {
                const int64_t center = j + __builtin_ctz(mask);
                add_point(points, job, work, begin, p, center, double(row[center]) * scale, out);
            }
    }
}

template <class Storage, class T>
void power_sums(const Storage& points, const Job<T>& job, const Workspace<T>& work, int64_t begin, int64_t n,
                Partial& out) {
    const double tie_ratio = tie_ratio_at<T>(job.power);
    for (int64_t p = 0; p < n; ++p) {
        T* row = work.dist + p * job.centers.n_padded;
        const int64_t n_tied = take_ties(points, job, work, begin, p, tie_ratio);
        work.softness[p] = soften_row(row, job.centers.n_padded, T(work.nearest[p]), job) +
                           soften_ties(work, row, n_tied, work.nearest[p], -job.power);
    }
    take_factors(points, job, work, begin, n);
    double lowest = __builtin_inf(), highest = 0;
    for (int64_t p = 0; p < n; ++p) {
        const double factor = work.factors[p];
        if (factor > 0 && factor < lowest) lowest = factor;
        if (factor > highest) highest = factor;
    }
    if (highest == 0) return;
    if (highest / lowest <= widest_factors<T>)
        return add_weighted(points, job, work, begin, 0, n, highest, out);
    for (int64_t p = 0; p < n; ++p)
        if (work.factors[p] > 0) add_weighted(points, job, work, begin, p, 1, work.factors[p], out);
}

// Powers at which far centers weigh nothing: each block of neighbours sees only those near to it.
template <class T>
struct NearPowerSweep {
    const Dense<T>& points;
    const Job<T>& job;
    const Workspace<T>& work;
    Partial& out;

    int64_t n_features() const { return points.n_features; }

    void stripe(int64_t begin, int64_t end) const {
        for (int64_t at = begin; at < end; at += job.plan.block_points)
            block(at, at + job.plan.block_points < end ? job.plan.block_points : end - at);
    }

    void block(int64_t begin, int64_t n) const {
        pack(points, job.plan, begin, n, work);
        const CenterList<T> all{job.centers.panels, nullptr, job.centers.n_centers};
        const int64_t n_near =
            candidates(all, n_features(), box_of(n), 1, 1 / job.lowest_ratio, work.dist, work.outer);
        out.n_distances += double(n * n_near);
        Job<T> near = job;
        gather_centers(n_near, near.centers);
        Partial sums{work.near_points, work.near_weights, nullptr, nullptr, 0, 0, 0};
        for (int64_t i = 0; i < n_features() * near.centers.n_padded; ++i) sums.points[i] = 0;
        for (int64_t j = 0; j < near.centers.n_padded; ++j) sums.weights[j] = 0;
        packed_distances(near, work, n, n_features());
        complete_distances(points, near, work, begin, n);
        power_sums(points, near, work, begin, n, sums);
        out.objective += sums.objective;
        out.inertia += sums.inertia;
        for (int64_t t = 0; t < n_near; ++t) {
            const int64_t j = work.outer[t];
            out.weights[j] += sums.weights[t];
            for (int64_t f = 0; f < n_features(); ++f)
                out.points[f * job.centers.n_padded + j] += sums.points[f * near.centers.n_padded + t];
        }
    }

    Box<T> box_of(int64_t n) const {
        Box<T> box;
        for (int64_t f = 0; f < n_features(); ++f) {
            box.low[f] = box.high[f] = work.packed[f];
            for (int64_t p = 1; p < n; ++p) {
                const T x = work.packed[p * n_features() + f];
                if (x < box.low[f]) box.low[f] = x;
                if (x > box.high[f]) box.high[f] = x;
            }
        }
        return box;
    }

    void gather_centers(int64_t n_near, Centers<T>& near) const {
        const int64_t d = n_features();
        gather_panels(job.centers, d, work.outer, n_near, work.outer_panels);
        for (int64_t t = 0; t < n_near; ++t)
            for (int64_t f = 0; f < d; ++f)
                work.near_rows[t * d + f] = job.centers.rows_wide[work.outer[t] * d + f];
        near.n_centers = n_near;
        near.n_padded = (n_near + unit_lanes<T> - 1) / unit_lanes<T> * unit_lanes<T>;
        near.panels = work.outer_panels;
        near.rows = nullptr;  // what is near is near: no distance of differences is mended
        near.rows_wide = work.near_rows;
    }
};

// What the hard rule does with a point, once its nearest center is known.
template <class T>
POWERMEANS_INLINE void take_point(const Job<T>& job, int64_t i, int64_t center, double nearest, double second,
                                  Partial& out) {
    const double weight = weight_of(job, i);
    if (job.labels) job.labels[i] = int32_t(center);
    out.weights[center] += weight;
    out.inertia += weight * nearest;
    if (job.task != Task::spread) return;
    out.error[center] += weight * nearest;
    if (job.centers.n_centers > 1) out.utility[center] += weight * (second - nearest);
}

template <class Storage, class T>
void hard_block(const Storage& points, const Job<T>& job, const Workspace<T>& work, int64_t begin, int64_t n,
                Partial& out) {
    const int64_t n_padded = job.centers.n_padded;
    for (int64_t p = 0; p < n; ++p) {
        T* row = work.dist + p * n_padded;
        const int64_t center = first_equal(row, n_padded, T(work.nearest[p]));
        double second = 0;
        if (job.task == Task::spread) {
            row[center] = T(__builtin_inf());
            second = double(smallest_in(row, n_padded));
        }
        take_point(job, begin + p, center, work.nearest[p], second, out);
        if (job.task == Task::hard_sums)
            add_point(points, job, work, begin, p, center, weight_of(job, begin + p), out);
    }
}

}  // namespace
}  // namespace powermeans

#include "recall.hpp"

namespace powermeans {
namespace {

// Points of few features, hard rule.
template <class T>
struct GroupedSweep {
    const Dense<T>& points;
    const Job<T>& job;
    const Workspace<T>& work;
    Partial& out;

    int64_t n_features() const { return points.n_features; }

    // Of the group that begins with point `begin`, the g-th of its block.
    const T* columns_of(int64_t begin, int64_t g) const {
        const T* first = points.columns ? points.columns + begin * n_features() : work.packed;
        return first + g * points_per_group * n_features();
    }

    void stripe(int64_t begin, int64_t end) const {
        for (int64_t at = begin; at < end; at += points_per_block_of_groups)
            block(at, at + points_per_block_of_groups < end ? at + points_per_block_of_groups : end);
    }

    void block(int64_t begin, int64_t end) const {
        const int64_t n_groups = (end - begin + points_per_group - 1) / points_per_group;
        if (!points.columns)
            for (int64_t g = 0; g < n_groups; ++g)
                pack_group(points, begin + g * points_per_group, in_group(begin, end, g),
                           work.packed + g * points_per_group * n_features());
        if (!points.order) return groups(begin, end, n_groups);
        Box<T> boxes[groups_per_block], around;
        for (int64_t g = 0; g < n_groups; ++g) {
            boxes[g] = points.boxes
                           ? stored_box(points.boxes + (begin / points_per_group + g) * 2 * n_features(),
                                        n_features())
                           : box_of_group(columns_of(begin, g), n_features());
            if (g == 0)
                around = boxes[g];
            else
                widen_box(around, boxes[g], n_features());
        }
        const CenterList<T> list = centers_near(around);
        for (int64_t g = 0; g < n_groups; ++g) {
            const int64_t n =
                candidates(list, n_features(), boxes[g], n_wanted(), T(1), work.dist, work.inner);
            group(columns_of(begin, g), begin + g * points_per_group, in_group(begin, end, g), work.inner, n);
        }
    }

    // With all centers.
    void groups(int64_t begin, int64_t end, int64_t n_groups) const {
        for (int64_t g = 0; g < n_groups; ++g)
            group(columns_of(begin, g), begin + g * points_per_group, in_group(begin, end, g), nullptr,
                  job.centers.n_centers);
    }

    static int64_t in_group(int64_t begin, int64_t end, int64_t group) {
        const int64_t left = end - begin - group * points_per_group;
        return left < points_per_group ? left : points_per_group;
    }

    int n_wanted() const { return job.task == Task::spread ? 2 : 1; }

    CenterList<T> centers_near(const Box<T>& box) const {
        const CenterList<T> all{job.centers.panels, nullptr, job.centers.n_centers};
        const int64_t n = candidates(all, n_features(), box, n_wanted(), T(1), work.dist, work.outer);
        gather_panels(job.centers, job.plan.padded_features, work.outer, n, work.outer_panels);
        return {work.outer_panels, work.outer, n};
    }

    static bool are_equal(const Index<T>* index) {
        for (int64_t p = 1; p < points_per_group; ++p)
            if (index[p] != index[0]) return false;
        return true;
    }

    // A whole group to one center.
    void add_group(const T* columns, int64_t begin, int64_t center) const {
        double weights[points_per_group];
        for (int64_t p = 0; p < points_per_group; ++p)
            weights[p] = weight_of(job, place_of(points, begin + p));
        for (int64_t f = 0; f < n_features(); ++f)
            out.points[center * job.plan.padded_features + f] +=
                weighted_sum(columns + f * points_per_group, weights);
    }

    void group(const T* columns, int64_t begin, int64_t n, const int32_t* chosen, int64_t n_chosen) const {
        T nearest[points_per_group], second[points_per_group];
        Index<T> index[points_per_group];
        if (job.task == Task::spread)
            nearest_of_group<true>(columns, job.centers, job.plan.padded_features, chosen, n_chosen, nearest,
                                   second, index);
        else
            nearest_of_group<false>(columns, job.centers, job.plan.padded_features, chosen, n_chosen, nearest,
                                    second, index);
        out.n_distances += double(n * n_chosen);
        const bool together = job.task == Task::hard_sums && n == points_per_group && are_equal(index);
        if (together) add_group(columns, begin, index[0]);
        for (int64_t p = 0; p < n; ++p) {
            const int64_t i = place_of(points, begin + p), center = index[p];
            const double second_dist = job.task == Task::spread ? double(second[p]) : 0.0;
            take_point(job, i, center, double(nearest[p]), second_dist, out);
            if (job.task != Task::hard_sums || together) continue;
            const double weight = weight_of(job, i);
            double* to = out.points + center * job.plan.padded_features;
            for (int64_t f = 0; f < n_features(); ++f)
                to[f] = multiply_add(double(columns[f * points_per_group + p]), weight, to[f]);
        }
    }
};

// Shortcuts that sparse points do not have.
template <class Storage, class T>
POWERMEANS_INLINE bool took_a_shortcut(const Storage&, const Job<T>&, const Workspace<T>&, int64_t, int64_t,
                                       Partial&) {
    return false;
}

template <class T>
bool took_a_shortcut(const Dense<T>& points, const Job<T>& job, const Workspace<T>& work, int64_t begin,
                     int64_t end, Partial& out) {
    if (job.plan.grouped)
        GroupedSweep<T>{points, job, work, out}.stripe(begin, end);
    else if (job.plan.recalled)
        RecalledSweep<T>{points, job, work, out}.stripe(begin, end);
    else if (job.plan.ordered)
        NearPowerSweep<T>{points, job, work, out}.stripe(begin, end);
    return job.plan.grouped || job.plan.recalled || job.plan.ordered;
}

template <class T>
void copy_distances(const Job<T>& job, const Workspace<T>& work, int64_t begin, int64_t n) {
    for (int64_t p = 0; p < n; ++p)
        for (int64_t j = 0; j < job.centers.n_centers; ++j)
            job.distances[(begin + p) * job.centers.n_centers + j] =
                T(double(work.dist[p * job.centers.n_padded + j]) * job.unscale * job.unscale);
}

template <class T>
void potentials(const Job<T>& job, const Workspace<T>& work, int64_t begin, int64_t n, Partial& out) {
    for (int64_t p = 0; p < n; ++p) {
        const double weight = weight_of(job, begin + p), known = job.nearest[begin + p];
        for (int64_t j = 0; j < job.centers.n_centers; ++j) {
            const double y =
                double(work.dist[p * job.centers.n_padded + j]) * job.to_nearest_unit * job.to_nearest_unit;
            out.weights[j] += weight * (y < known ? y : known);
        }
    }
}

template <class T>
void approach(const Job<T>& job, const Workspace<T>& work, int64_t begin, int64_t n) {
    for (int64_t p = 0; p < n; ++p) {
        const double y = work.nearest[p] * job.to_nearest_unit * job.to_nearest_unit;
        if (y < job.nearest[begin + p]) job.nearest[begin + p] = y;
    }
}

template <class Storage, class T>
void sweep_stripe(const Storage& points, const Job<T>& job, const Workspace<T>& work, int64_t begin,
                  int64_t end, Partial& out) {
    if (took_a_shortcut(points, job, work, begin, end, out)) return;
    out.n_distances += double((end - begin) * job.centers.n_centers);
    for (int64_t at = begin; at < end; at += job.plan.block_points) {
        const int64_t n = at + job.plan.block_points < end ? job.plan.block_points : end - at;
        distances(points, job, work, at, n);
        switch (job.task) {
            case Task::hard_sums:
            case Task::spread:
            case Task::assign:
                hard_block(points, job, work, at, n, out);
                break;
            case Task::power_sums:
                power_sums(points, job, work, at, n, out);
                break;
            case Task::distances:
                copy_distances(job, work, at, n);
                break;
            case Task::potentials:
                potentials(job, work, at, n, out);
                break;
            case Task::approach:
                approach(job, work, at, n);
                break;
        }
    }
}

template <class T, Vector<T> (*function)(Vector<T>)>
void elementwise(const T* in, int64_t n, T* out) {
    T padded[lanes<T>];
    for (int64_t i = 0; i < n; i += lanes<T>) {
        const int64_t n_here = i + lanes<T> <= n ? lanes<T> : n - i;
        for (int64_t lane = 0; lane < lanes<T>; ++lane) padded[lane] = in[i + (lane < n_here ? lane : 0)];
        store(padded, function(load(padded)));
        for (int64_t lane = 0; lane < n_here; ++lane) out[i + lane] = padded[lane];
    }
}

}  // namespace

extern const KernelTable POWERMEANS_TABLE;
const KernelTable POWERMEANS_TABLE = {
    sweep_stripe<Dense<float>, float>, sweep_stripe<Dense<double>, double>, sweep_stripe<Csr<float>, double>,
    sweep_stripe<Csr<double>, double>, elementwise<float, log_of>,          elementwise<double, log_of>,
    elementwise<float, exp_of<float>>, elementwise<double, exp_of<double>>,
};

}  // namespace powermeans
