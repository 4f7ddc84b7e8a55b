// The weights of the soft rules for points of few features, group by group: a point in each lane, so
// that nothing is added across lanes before a block is done.
#pragma once

#include "groups.hpp"
#include "soft_rule.hpp"

namespace powermeans {
namespace {

// Terms of S after which a sum in T is folded into float64.
constexpr int64_t centers_per_fold = 64;

// Ratios below it that are worth being looked for, to leave out what has them.
constexpr double lowest_ratio_worth_skipping = 1.0 / 64;

// A point whose nearest squared distance is below this is taken in another unit.
template <class T>
constexpr T smallest_nearest = Format<T>::smallest_normal * (sizeof(T) == 4 ? T(0x1p20) : T(0x1p40));
template <class T>
constexpr T unit_of_small = sizeof(T) == 4 ? T(0x1p60) : T(0x1p500);

// Factors outside of this range would make a T of a weight vanish or overflow.
template <class T>
constexpr double smallest_factor = sizeof(T) == 4 ? 1e-18 : 1e-240;

template <class T>
struct GroupedSoftSweep {
    static constexpr int n_vectors = int(points_per_group) / lanes<T>;

    const Dense<T>& points;
    const Job<T>& job;
    const Workspace<T>& work;
    Partial& out;

    // Some or all of the centers.
    struct List {
        const int32_t* chosen;  // null for all
        int64_t n;
        int64_t operator[](int64_t t) const { return chosen ? chosen[t] : t; }
    };

    int64_t n_features() const { return points.n_features; }
    T* weights_of(int64_t t) const { return work.dist + t * points_per_group; }
    T* sums_of(int64_t t) const { return work.lane_sums + t * (n_features() + 1) * unit_lanes<T>; }

    void stripe(int64_t begin, int64_t end) const {
        const double tie_ratio = tie_ratio_at(job);
        for (int64_t at = begin; at < end; at += job.plan.block_points) {
            const int64_t n = at + job.plan.block_points < end ? job.plan.block_points : end - at;
            block(BlockOfGroups<T>(points, work, at, n), n, tie_ratio);
        }
    }

    void block(const BlockOfGroups<T>& groups, int64_t n, double tie_ratio) const {
        List list{nullptr, job.centers.n_centers};
        if (points.order) {
            const CenterList<T> all{job.centers.panels, nullptr, job.centers.n_centers};
            list.n =
                candidates(all, n_features(), groups.box(), 1, 1 / job.lowest_ratio, work.dist, work.outer);
            list.chosen = work.outer;
        }
        out.n_distances += double(n * list.n);
        for (int64_t i = 0; i < list.n * (n_features() + 1) * unit_lanes<T>; ++i) work.lane_sums[i] = 0;
        for (int64_t g = 0; g < groups.count(); ++g) group(groups, g, list, tie_ratio);
        for (int64_t t = 0; t < list.n; ++t) {
            for (int64_t f = 0; f < n_features(); ++f)
                out.points[f * job.centers.n_padded + list[t]] += sum_of_unit(sums_of(t) + f * unit_lanes<T>);
            out.weights[list[t]] += sum_of_unit(sums_of(t) + n_features() * unit_lanes<T>);
        }
    }

    static double sum_of_unit(const T* from) {
        Vector<T> vectors[vectors_per_unit];
        for (int v = 0; v < vectors_per_unit; ++v) vectors[v] = load(from + v * lanes<T>);
        return sum_of_lanes<T>(vectors);
    }

    void group(const BlockOfGroups<T>& groups, int64_t g, const List& list, double tie_ratio) const {
        const T* columns = groups.columns(g);
        T nearest[points_per_group], least[points_per_group];
        double nearest_wide[points_per_group], least_wide[points_per_group];
        double softness[points_per_group] = {}, factors[points_per_group];
        if (job.heights)
            affine_distances(groups.first(g), groups.size(g), list, nearest);
        else
            distances(columns, list, nearest);
        for (int64_t p = 0; p < points_per_group; ++p) least[p] = nearest[p];
        if (job.offsets) add_offsets_of_centers(list, least);
        for (int64_t p = 0; p < points_per_group; ++p) least_wide[p] = double(least[p]);
        bool has_ties = false;
        if (tie_ratio > 1 || job.rule == SoftRule::gaussian)
            has_ties = take_ties(groups, g, list, tie_ratio, least, least_wide, softness);
        for (int64_t p = 0; p < points_per_group; ++p)
            nearest_wide[p] = job.offsets ? double(nearest[p]) : least_wide[p];
        if (job.rule == SoftRule::power) enlarge_small(list, least);
        if (job.rule == SoftRule::gaussian)
            soften_by_height(list, least, has_ties, softness);
        else if (job.whole_power)
            soften(list, least, WholePower<T>{job.whole_power}, has_ties, softness);
        else
            // Far below the highest power every weight but the nearest's vanishes; beyond T it would be
            // infinite.
            soften(list, least,
                   AnyPower<T>{T(-job.power < highest_abs_power ? -job.power : highest_abs_power)}, has_ties,
                   softness);
        take_factors(groups.first(g), groups.size(g), nearest_wide, least_wide, softness, factors);
        add(columns, list, factors);
    }

    // Affine distances of a group, and the smallest of each point.
    void affine_distances(int64_t begin, int64_t n, const List& list, T* nearest) const {
        constexpr int n_wide = int(points_per_group) / lanes<double>;
        const AffineGroup group(points, job, begin, n);
        const int64_t d = n_features();
        for (int64_t p = 0; p < points_per_group; ++p) nearest[p] = T(__builtin_inf());
        for (int64_t t = 0; t < list.n; ++t) {
            const double* negative_slope = job.centers.rows_wide + list[t] * job.plan.padded_features;
            const DoubleVector lift = broadcast(job.centers.sq_norms_wide[list[t]]);
            DoubleVector y[n_wide];
#pragma GCC unroll 16
            for (int v = 0; v < n_wide; ++v) y[v] = load(group.heights + v * lanes<double>) + lift;
            for (int64_t f = 0; f < d; ++f) {
                const DoubleVector here = broadcast(negative_slope[f]);
                const double* column = group.columns + f * points_per_group;
#pragma GCC unroll 16
                for (int v = 0; v < n_wide; ++v)
                    y[v] = multiply_add(load(column + v * lanes<double>), here, y[v]);
            }
            double wide[points_per_group];
#pragma GCC unroll 16
            for (int v = 0; v < n_wide; ++v) store(wide + v * lanes<double>, larger(y[v], DoubleVector{}));
            T* to = weights_of(t);
            for (int64_t p = 0; p < points_per_group; ++p) to[p] = T(wide[p]);
            for (int v = 0; v < n_vectors; ++v)
                store(nearest + v * lanes<T>, smaller(load(nearest + v * lanes<T>), load(to + v * lanes<T>)));
        }
    }

    // Squared distances of a group, and the smallest of each point.
    void distances(const T* columns, const List& list, T* nearest) const {
        switch (n_features()) {
            case 1:
                return distances<1>(columns, list, nearest);
            case 2:
                return distances<2>(columns, list, nearest);
            case 3:
                return distances<3>(columns, list, nearest);
            case 4:
                return distances<4>(columns, list, nearest);
            default:
                return distances<0>(columns, list, nearest);
        }
    }

    // Of so many features; of any number if that is zero.
    template <int known_features>
    void distances(const T* columns, const List& list, T* nearest) const {
        const int64_t d = known_features ? known_features : n_features(), stride = job.plan.padded_features;
        const T* const centers = job.centers.rows;
        const int32_t* const chosen = list.chosen;
        T* to = weights_of(0);
        Vector<T> smallest[n_vectors];
        for (int v = 0; v < n_vectors; ++v) smallest[v] = broadcast(T(__builtin_inf()));
        for (int64_t t = 0, n = list.n; t < n; ++t, to += points_per_group) {
            const T* place = centers + (chosen ? chosen[t] : t) * stride;
            Vector<T> y[n_vectors] = {};
#pragma GCC unroll 4
            for (int64_t f = 0; f < d; ++f) {
                const Vector<T> here = broadcast(place[f]);
#pragma GCC unroll 8
                for (int v = 0; v < n_vectors; ++v) {
                    const Vector<T> difference = load(columns + f * points_per_group + v * lanes<T>) - here;
                    y[v] = multiply_add(difference, difference, y[v]);
                }
            }
#pragma GCC unroll 8
            for (int v = 0; v < n_vectors; ++v) {
                smallest[v] = smaller(smallest[v], y[v]);
                store(to + v * lanes<T>, y[v]);
            }
        }
        for (int v = 0; v < n_vectors; ++v) store(nearest + v * lanes<T>, smallest[v]);
    }

    // Adds them to the distances; the smallest sums of the points become their least.
    void add_offsets_of_centers(const List& list, T* least) const {
        Vector<T> smallest[n_vectors];
        for (int v = 0; v < n_vectors; ++v) smallest[v] = broadcast(T(__builtin_inf()));
        for (int64_t t = 0; t < list.n; ++t)
            for (int v = 0; v < n_vectors; ++v) {
                T* at = weights_of(t) + v * lanes<T>;
                const Vector<T> y = load(at) + broadcast(job.offsets[list[t]]);
                store(at, y);
                smallest[v] = smaller(smallest[v], y);
            }
        for (int v = 0; v < n_vectors; ++v) store(least + v * lanes<T>, smallest[v]);
    }

    // Distances become heights over the highest; adds up S, the sum of these.
    void soften_by_height(const List& list, const T* least, bool has_ties, double* softness) const {
        Vector<T> smallest[n_vectors];
        for (int v = 0; v < n_vectors; ++v) smallest[v] = load(least + v * lanes<T>);
        for (int64_t t = 0; t < list.n; ++t) {
            T heights[points_per_group];
            for (int v = 0; v < n_vectors; ++v) {
                T* at = weights_of(t) + v * lanes<T>;
                const Vector<T> y = load(at);
                Vector<T> height = height_of(smallest[v] - y, job);
                if (has_ties) height = keep_where_at_least<T>(y, Vector<T>{}, height);
                store(heights + v * lanes<T>, height);
                store(at, has_ties ? height + larger(-y, Vector<T>{}) : height);
            }
            for (int64_t p = 0; p < points_per_group; ++p) softness[p] += double(heights[p]);
        }
    }

    // Takes the distances of centers nearly as near as the nearest anew, in float64, and leaves the
    // negative of their weights in their place; adds their part of S to `softness`.
    bool take_ties(const BlockOfGroups<T>& groups, int64_t g, const List& list, double tie_ratio, T* nearest,
                   double* nearest_wide, double* softness) const {
        Bits<T> counts[n_vectors] = {};
        Vector<T> limits[n_vectors];
        T limit_of[points_per_group];
        for (int64_t p = 0; p < points_per_group; ++p)
            limit_of[p] = T(tie_limit(job, tie_ratio, nearest_wide[p], nearest_wide[p]));
        for (int v = 0; v < n_vectors; ++v) limits[v] = load(limit_of + v * lanes<T>);
        for (int64_t t = 0; t < list.n; ++t)
#pragma GCC unroll 8
            for (int v = 0; v < n_vectors; ++v)
                counts[v] -= Bits<T>(load(weights_of(t) + v * lanes<T>) <= limits[v]);
        bool has_ties = false;
        for (int64_t p = 0; p < groups.size(g); ++p) {
            if (counts[p / lanes<T>][p % lanes<T>] < 2) continue;
            has_ties = true;
            const T limit = limit_of[p];
            int64_t n_tied = 0;
            for (int64_t t = 0; t < list.n; ++t) {
                if (!(weights_of(t)[p] <= limit)) continue;
                work.tied[n_tied] = t;
                work.tied_dist[n_tied] =
                    precise_sq_dist(points, job, work, groups.first(g), p, list[t]) + offset_of(job, list[t]);
                if (n_tied == 0 || work.tied_dist[n_tied] < nearest_wide[p])
                    nearest_wide[p] = work.tied_dist[n_tied];
                ++n_tied;
            }
            nearest[p] = T(nearest_wide[p]);
            softness[p] = soften_ties(job, work, n_tied, nearest_wide[p], [&](int64_t t, T weight) {
                const T least = Format<T>::smallest_normal;
                weights_of(t)[p] = -(weight > least ? weight : least);
            });
        }
        return has_ties;
    }

    // Where the nearest is zero, or so small that ratios would lose digits.
    void enlarge_small(const List& list, T* nearest) const {
        for (int64_t p = 0; p < points_per_group; ++p) {
            if (nearest[p] >= smallest_nearest<T>) continue;
            const bool is_zero = nearest[p] == 0;
            nearest[p] = is_zero ? T(1) : nearest[p] * unit_of_small<T>;
            for (int64_t t = 0; t < list.n; ++t) {
                T& y = weights_of(t)[p];
                if (y < 0) continue;  // the weight of a tie
                y = !is_zero ? y * unit_of_small<T> : y == 0 ? T(1) : T(__builtin_inf());
            }
        }
    }

    template <class Raise>
    void soften(const List& list, const T* nearest, const Raise& power, bool has_ties,
                double* softness) const {
        if (has_ties)
            soften<true>(list, nearest, power, softness);
        else
            soften<false>(list, nearest, power, softness);
    }

    // Distances become (nearest / y)^(1 + |s|), zero for ratios below the lowest; adds up S, the sum of
    // (nearest / y)^|s|.
    template <bool has_ties, class Raise>
    void soften(const List& list, const T* nearest, const Raise& power, double* softness) const {
        const Vector<T> lowest = broadcast(job.lowest_ratio);
        const bool skips = job.lowest_ratio >= lowest_ratio_worth_skipping;
        Vector<T> smallest[n_vectors], limits[n_vectors];
        for (int v = 0; v < n_vectors; ++v) {
            smallest[v] = load(nearest + v * lanes<T>);
            // Rounded up, so that nothing of the lowest ratio is skipped.
            limits[v] = smallest[v] / lowest * broadcast(T(1) + 4 * rounding_of_distance<T>);
        }
        for (int64_t first = 0; first < list.n; first += centers_per_fold) {
            Vector<T> sums[n_vectors] = {};
            const int64_t last = first + centers_per_fold < list.n ? first + centers_per_fold : list.n;
            for (int64_t t = first; t < last; ++t) {
                T* weights = weights_of(t);
                if (skips && none_up_to(weights, limits))
                    for (int v = 0; v < n_vectors; ++v) store(weights + v * lanes<T>, Vector<T>{});
                else
                    soften<has_ties>(weights, smallest, lowest, power, sums);
            }
            T partial[points_per_group];
            for (int v = 0; v < n_vectors; ++v) store(partial + v * lanes<T>, sums[v]);
            for (int64_t p = 0; p < points_per_group; ++p) softness[p] += double(partial[p]);
        }
    }

    static bool none_up_to(const T* values, const Vector<T> (&limits)[n_vectors]) {
        unsigned found = 0;
        for (int v = 0; v < n_vectors; ++v) found |= lanes_up_to<T>(load(values + v * lanes<T>), limits[v]);
        return !found;
    }

    template <bool has_ties, class Raise>
    POWERMEANS_INLINE static void soften(T* weights, const Vector<T> (&smallest)[n_vectors], Vector<T> lowest,
                                         const Raise& power, Vector<T> (&sums)[n_vectors]) {
        Vector<T> y[n_vectors], ratios[n_vectors], raised[n_vectors];
#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; ++v) {
            y[v] = load(weights + v * lanes<T>);
            if constexpr (Raise::takes_near_ratios)
                ratios[v] = near_quotient<T>(smallest[v], smaller(y[v], broadcast(Reciprocal<T>::largest)));
            else
                ratios[v] = smallest[v] / y[v];
            ratios[v] = keep_where_at_least<T>(ratios[v], lowest, smaller(ratios[v], broadcast(T(1))));
        }
        power.raise(ratios, raised);
#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; ++v) {
            Vector<T> weight = raised[v] * ratios[v];
            if constexpr (has_ties) {
                raised[v] = keep_where_at_least<T>(y[v], Vector<T>{}, raised[v]);
                weight = keep_where_at_least<T>(y[v], Vector<T>{}, weight) + larger(-y[v], Vector<T>{});
            }
            sums[v] += raised[v];
            store(weights + v * lanes<T>, weight);
        }
    }

    // factor = sample weight * S^(1/s - 1), common to all weights of a point.
    void take_factors(int64_t begin, int64_t n, const double* nearest, const double* least,
                      const double* softness, double* factors) const {
        for (int64_t p = 0; p < points_per_group; p += lanes<double>)
            store(factors + p, factors_of(job, load(softness + p), load(least + p)));
        for (int64_t p = 0; p < points_per_group; ++p) {
            const double weight = p < n ? weight_of(job, place_of(points, begin + p)) : 0.0;
            factors[p] *= weight;
            if (p >= n) continue;
            out.objective += objective_of(job, weight, factors[p], softness[p], least[p]);
            out.inertia += weight * nearest[p];
        }
    }

    void add(const T* columns, const List& list, const double* factors) const {
        for (int64_t p = 0; p < points_per_group; ++p) {
            const bool fits = factors[p] >= smallest_factor<T> && factors[p] <= 1 / smallest_factor<T>;
            if (!fits && factors[p] != 0) return add_one_by_one(columns, list, factors);
        }
        // The points take their factors, so that the weights need not.
        T scaled[(direct_max_features + 1) * points_per_group];
        const int64_t d = n_features();
        for (int64_t p = 0; p < points_per_group; ++p) scaled[d * points_per_group + p] = T(factors[p]);
        for (int64_t f = 0; f < d; ++f)
            for (int64_t p = 0; p < points_per_group; p += lanes<T>)
                store(scaled + f * points_per_group + p,
                      load(columns + f * points_per_group + p) * load(scaled + d * points_per_group + p));
        const T* from = weights_of(0);
        T* to = sums_of(0);
        for (int64_t t = 0, n = list.n; t < n; ++t, from += points_per_group) {
            Vector<T> weights[n_vectors];
#pragma GCC unroll 8
            for (int v = 0; v < n_vectors; ++v) weights[v] = load(from + v * lanes<T>);
            const T* x = scaled;
            for (int64_t f = 0; f <= d; ++f, x += points_per_group, to += unit_lanes<T>)
#pragma GCC unroll 4
                for (int u = 0; u < vectors_per_unit; ++u) {
                    Vector<T> sum = load(to + u * lanes<T>);
#pragma GCC unroll 8
                    for (int v = u; v < n_vectors; v += vectors_per_unit)
                        sum = multiply_add(weights[v], load(x + v * lanes<T>), sum);
                    store(to + u * lanes<T>, sum);
                }
        }
    }

    // Where factors are too far apart for products in T.
    void add_one_by_one(const T* columns, const List& list, const double* factors) const {
        for (int64_t t = 0; t < list.n; ++t)
            for (int64_t p = 0; p < points_per_group; ++p) {
                const double weight = double(weights_of(t)[p]) * factors[p];
                out.weights[list[t]] += weight;
                for (int64_t f = 0; f < n_features(); ++f) {
                    double& sum = out.points[f * job.centers.n_padded + list[t]];
                    sum = multiply_add(double(columns[f * points_per_group + p]), weight, sum);
                }
            }
    }
};

}  // namespace
}  // namespace powermeans
