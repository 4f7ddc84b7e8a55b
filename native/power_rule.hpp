// The weights of the power mean.
#pragma once

#include "distances.hpp"
#include "elementary.hpp"

namespace powermeans {
namespace {

// At a large power a rounded distance is a wrong weight: the error of a soft weight e is about
// |s| e times that of its distance. Centers whose e is above this over |s| are taken in float64.
template <class T>
constexpr double tie_tolerance = sizeof(T) == 4 ? 8.0 : 128.0;

// Factors further apart than this do not share one product without underflow.
template <class T>
constexpr double widest_factors = sizeof(T) == 4 ? 1e26 : 1e260;

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
    // A ratio that is off by a unit is far off when raised to a large power.
    static constexpr bool takes_near_ratios = false;
    T abs_power;
    POWERMEANS_INLINE Vector<T> operator()(Vector<T> ratio) const {
        return exp_of<T>(broadcast(abs_power) * log_of(ratio));
    }
};

// ratio^|s| by squaring, where |s| is a whole number.
template <class T>
struct WholePower {
    static constexpr bool takes_near_ratios = true;
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
template <bool is_normal, class T, class Raise>
double soften_row(T* row, int64_t n_padded, T nearest, T lowest_ratio, Raise raised) {
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
            Vector<T> ratio;
            if constexpr (is_normal && Raise::takes_near_ratios)
                ratio = near_quotient<T>(smallest, smaller(y, broadcast(Reciprocal<T>::largest)));
            else
                ratio = smallest / y;
            ratio = smaller(ratio, broadcast(T(1)));
            const Vector<T> kept = keep_where_at_least<T>(ratio, lowest, ratio);
            const Vector<T> soft = keep_where_at_least<T>(ratio, lowest, raised(larger(kept, lowest)));
            sums[v] += soft;
            store(at, soft * kept);
        }
    return sum_of_lanes<T>(sums);
}

template <class T, class Raise>
double soften_row(T* row, int64_t n_padded, T nearest, T lowest_ratio, Raise raised) {
    if (nearest >= Format<T>::smallest_normal)
        return soften_row<true>(row, n_padded, nearest, lowest_ratio, raised);
    if (nearest > 0) return soften_row<false>(row, n_padded, nearest, lowest_ratio, raised);
    double n_zeros = 0;
    for (int64_t j = 0; j < n_padded; ++j) {
        row[j] = T(row[j] == 0);
        n_zeros += double(row[j]);
    }
    return n_zeros;
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

// Multiplies the weights of a point by its factor, in units of `scale`; returns how many are positive.
template <class T>
int64_t take_factor(const Job<T>& job, const Workspace<T>& work, int64_t p, double scale, Partial& out) {
    T* row = work.dist + p * job.centers.n_padded;
    const Vector<T> factor = broadcast(T(work.factors[p] / scale));
    int64_t n_positive = 0;
    for (int64_t j = 0; j < job.centers.n_padded; j += lanes<T>) {
        const Vector<T> soft = load(row + j);
        const unsigned positive = lanes_above_zero(soft);
        if (!positive) continue;
        n_positive += __builtin_popcount(positive);
        const Vector<T> weights = soft * factor;
        store(row + j, weights);
        add_to(out.weights + j, weights, scale);
    }
    return n_positive;
}

// Adds up rows first .. first + n, their weights times their factors.
template <class Storage, class T>
void add_weighted(const Storage& points, const Job<T>& job, const Workspace<T>& work, int64_t begin,
                  int64_t first, int64_t n, double scale, Partial& out) {
    for (int64_t p = first; p < first + n; ++p) {
        out.objective += work.factors[p] * work.softness[p] * work.nearest[p];
        out.inertia += weight_of(job, place_of(points, begin + p)) * work.nearest[p];
    }
    if (job.plan.direct && points.n_features < job.centers.n_centers)
        return add_scaled_block(points, job, work, first, n, scale, out);
    int64_t n_positive = 0;
    for (int64_t p = first; p < first + n; ++p) n_positive += take_factor(job, work, p, scale, out);
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

}  // namespace
}  // namespace powermeans
