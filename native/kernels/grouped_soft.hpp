// The soft rules for points of few features, group by group: a point in each lane, so that nothing is added
// across lanes before a block is done. The rows of work.dist belong to centers here, not to points.
#pragma once

#include "kernels/groups.hpp"
#include "kernels/soft_rule.hpp"

namespace powermeans {
namespace {

// Terms of S after which a sum in T is folded into float64.
constexpr int64_t centers_per_fold = 64;

// From this lowest ratio on, many centers are beyond it, so that looking for them pays.
constexpr double lowest_ratio_worth_skipping = 1.0 / 64;

// With smaller factors, or larger ones than the inverse, weights in T would vanish or overflow.
template <class T>
constexpr double smallest_factor = sizeof(T) == 4 ? 1e-18 : 1e-240;

// Some or all of the centers, and what the groups of a block add to each of them.
template <class T>
struct BlockCenters {
    const int32_t* chosen;  // null for all
    int64_t n;
    int64_t n_features;
    T* sums;  // (n, n_features + 1, unit_lanes): points and weights

    int64_t operator[](int64_t t) const { return chosen ? chosen[t] : t; }
    T* sums_of(int64_t t) const { return sums + t * (n_features + 1) * unit_lanes<T>; }
};

// A group on its way from distances to weighted sums.
template <class T>
struct SoftGroup {
    static constexpr int n_vectors = int(points_per_group) / lanes<T>;
    using PerPoint = Vector<T>[n_vectors];

    SoftGroup(const Block<Dense<T>>& group_, const T* columns_, const BlockCenters<T>& centers_,
              double tie_ratio_)
        : group(group_), columns(columns_), centers(centers_), tie_ratio(tie_ratio_) {}

    const Block<Dense<T>>& group;
    const T* const columns;
    const BlockCenters<T>& centers;
    const double tie_ratio;
    const Job<T>& job = group.job;
    const Workspace<T>& work = group.work;
    PartialSums& out = group.out;

    // Of each point: the smallest distance without and with the offsets of the rule, S, and the common
    // factor of its weights.
    T nearest[points_per_group], least[points_per_group];
    double nearest_wide[points_per_group], least_wide[points_per_group];
    double softness[points_per_group] = {}, factors[points_per_group];
    bool has_ties = false;

    int64_t n_features() const { return group.points.n_features; }
    // The distances from a center, then the weights for it.
    T* weights_of(int64_t t) const { return work.dist + t * points_per_group; }

    static void load_all(const T* from, PerPoint& to) {
        for (int v = 0; v < n_vectors; ++v) to[v] = load(from + v * lanes<T>);
    }
    static void store_all(T* to, const PerPoint& from) {
        for (int v = 0; v < n_vectors; ++v) store(to + v * lanes<T>, from[v]);
    }
    static void fill(PerPoint& to, T value) {
        for (int v = 0; v < n_vectors; ++v) to[v] = broadcast(value);
    }
    void add_to_softness(const PerPoint& terms) {
        T values[points_per_group];
        store_all(values, terms);
        for (int64_t p = 0; p < points_per_group; ++p) softness[p] += double(values[p]);
    }

    void run() {
        if (job.heights)
            affine_distances();
        else
            distances();
        for (int64_t p = 0; p < points_per_group; ++p) least[p] = nearest[p];
        if (job.offsets) add_offsets_of_centers();
        for (int64_t p = 0; p < points_per_group; ++p) least_wide[p] = double(least[p]);
        if (tie_ratio > 1 || job.rule == SoftRule::gaussian) take_ties_of_group();
        for (int64_t p = 0; p < points_per_group; ++p)
            nearest_wide[p] = job.offsets ? double(nearest[p]) : least_wide[p];
        soften_distances();
        take_factors_of_group();
        add_points();
    }

    void affine_distances() {
        constexpr int n_wide = int(points_per_group) / lanes<double>;
        const AffineGroup affine(group);
        const int64_t d = n_features();
        PerPoint smallest;
        fill(smallest, T(__builtin_inf()));
        for (int64_t t = 0; t < centers.n; ++t) {
            const double* negative_slope = wide_center_of(job, centers[t]);
            const DoubleVector lift = broadcast(job.centers.sq_norms_wide[centers[t]]);
            DoubleVector y[n_wide];
#pragma GCC unroll 16
            for (int v = 0; v < n_wide; ++v) y[v] = load(affine.heights + v * lanes<double>) + lift;
            for (int64_t f = 0; f < d; ++f) {
                const DoubleVector here = broadcast(negative_slope[f]);
                const double* column = affine.columns + f * points_per_group;
#pragma GCC unroll 16
                for (int v = 0; v < n_wide; ++v)
                    y[v] = multiply_add(load(column + v * lanes<double>), here, y[v]);
            }
            double wide[points_per_group];
#pragma GCC unroll 16
            for (int v = 0; v < n_wide; ++v) store(wide + v * lanes<double>, larger(y[v], DoubleVector{}));
            T* to = weights_of(t);
            for (int64_t p = 0; p < points_per_group; ++p) to[p] = T(wide[p]);
            for (int v = 0; v < n_vectors; ++v) smallest[v] = smaller(smallest[v], load(to + v * lanes<T>));
        }
        store_all(nearest, smallest);
    }

    // The compiler unrolls a known number of features.
    void distances() {
        const int64_t d = n_features();
        if (d == 1) return distances_of<1>();
        if (d == 2) return distances_of<2>();
        if (d == 3) return distances_of<3>();
        if (d == 4) return distances_of<4>();
        distances_of<0>();
    }

    template <int known_features>
    void distances_of() {
        const int64_t d = known_features ? known_features : n_features(), stride = job.plan.padded_features;
        const T *const rows = job.centers.rows, *const from = columns;
        const int32_t* const chosen = centers.chosen;
        T* to = weights_of(0);
        PerPoint smallest;
        fill(smallest, T(__builtin_inf()));
        for (int64_t t = 0, n = centers.n; t < n; ++t, to += points_per_group) {
            const T* center = rows + (chosen ? chosen[t] : t) * stride;
            PerPoint y = {};
#pragma GCC unroll 4
            for (int64_t f = 0; f < d; ++f) {
                const Vector<T> here = broadcast(center[f]);
#pragma GCC unroll 8
                for (int v = 0; v < n_vectors; ++v) {
                    const Vector<T> difference = load(from + f * points_per_group + v * lanes<T>) - here;
                    y[v] = multiply_add(difference, difference, y[v]);
                }
            }
#pragma GCC unroll 8
            for (int v = 0; v < n_vectors; ++v) {
                smallest[v] = smaller(smallest[v], y[v]);
                store(to + v * lanes<T>, y[v]);
            }
        }
        store_all(nearest, smallest);
    }

    void add_offsets_of_centers() {
        PerPoint smallest;
        fill(smallest, T(__builtin_inf()));
        for (int64_t t = 0; t < centers.n; ++t)
            for (int v = 0; v < n_vectors; ++v) {
                T* at = weights_of(t) + v * lanes<T>;
                const Vector<T> y = load(at) + broadcast(job.offsets[centers[t]]);
                store(at, y);
                smallest[v] = smaller(smallest[v], y);
            }
        store_all(least, smallest);
    }

    // Computes the distances of near ties again, in float64, and replaces them by the negative of their
    // weights.
    void take_ties_of_group() {
        Bits<T> counts[n_vectors] = {};
        PerPoint limits;
        T limit_of[points_per_group];
        for (int64_t p = 0; p < points_per_group; ++p)
            limit_of[p] = T(tie_limit(job, tie_ratio, least_wide[p], least_wide[p]));
        load_all(limit_of, limits);
        for (int64_t t = 0; t < centers.n; ++t)
#pragma GCC unroll 8
            for (int v = 0; v < n_vectors; ++v)
                counts[v] -= Bits<T>(load(weights_of(t) + v * lanes<T>) <= limits[v]);
        for (int64_t p = 0; p < group.n; ++p)
            if (counts[p / lanes<T>][p % lanes<T>] >= 2) take_ties_of(p, limit_of[p]);
    }

    void take_ties_of(int64_t p, T limit) {
        int64_t n_tied = 0;
        for (int64_t t = 0; t < centers.n; ++t) {
            if (!(weights_of(t)[p] <= limit)) continue;
            const double tied = precise_sq_dist(group, p, centers[t]) + offset_of(job, centers[t]);
            if (n_tied == 0 || tied < least_wide[p]) least_wide[p] = tied;
            work.tied[n_tied] = t;
            work.tied_dist[n_tied++] = tied;
        }
        has_ties = true;
        least[p] = T(least_wide[p]);
        softness[p] = soften_ties(job, work, n_tied, least_wide[p], [&](int64_t t, T weight) {
            weights_of(t)[p] = -larger(weight, Format<T>::smallest_normal);
        });
    }

    // Turns distances into weights without their factors, and adds up S.
    void soften_distances() {
        if (job.rule == SoftRule::gaussian) return soften_by_density();
        enlarge_small();
        with_power_of(job, [this](const auto& power) {
            has_ties ? soften_by_power<true>(power) : soften_by_power<false>(power);
        });
    }

    // Turns distances into densities over the highest.
    void soften_by_density() {
        PerPoint smallest, densities;
        load_all(least, smallest);
        for (int64_t t = 0; t < centers.n; ++t) {
            for (int v = 0; v < n_vectors; ++v) {
                T* at = weights_of(t) + v * lanes<T>;
                const Vector<T> y = load(at);
                densities[v] = density_of(smallest[v] - y, job);
                if (has_ties) densities[v] = keep_where_at_least<T>(y, Vector<T>{}, densities[v]);
                store(at, has_ties ? densities[v] + larger(-y, Vector<T>{}) : densities[v]);
            }
            add_to_softness(densities);
        }
    }

    // Changes the unit of points whose nearest distance is zero or very small.
    void enlarge_small() {
        for (int64_t p = 0; p < points_per_group; ++p) {
            if (least[p] >= smallest_nearest<T>) continue;
            const bool is_zero = least[p] == 0;
            least[p] = is_zero ? T(1) : least[p] * unit_of_small<T>;
            for (int64_t t = 0; t < centers.n; ++t) {
                T& y = weights_of(t)[p];
                if (y < 0) continue;  // the weight of a tie
                y = !is_zero ? smaller(y * unit_of_small<T>, Format<T>::largest)
                    : y == 0 ? T(1)
                             : Format<T>::largest;
            }
        }
    }

    // Turns distances into (nearest / y)^(1 + |s|), zero for ratios below the lowest; S is the sum of the
    // products of these with y / nearest.
    template <bool has_ties, class Power>
    void soften_by_power(const Power& power) {
        const Vector<T> lowest = broadcast(job.lowest_ratio);
        const bool skips = job.lowest_ratio >= lowest_ratio_worth_skipping;
        PerPoint smallest, limits;
        typename Power::Least leasts[n_vectors];
        load_all(least, smallest);
        for (int v = 0; v < n_vectors; ++v) {
            leasts[v] = typename Power::Least(smallest[v]);
            // Rounded up, so that no center at the lowest ratio is skipped.
            limits[v] = smallest[v] / lowest * broadcast(T(1) + 4 * rounding_of_distance<T>);
        }
        for (int64_t first = 0; first < centers.n; first += centers_per_fold) {
            PerPoint sums = {};
            const int64_t last = smaller(first + centers_per_fold, centers.n);
            for (int64_t t = first; t < last; ++t) {
                T* weights = weights_of(t);
                if (skips && none_up_to(weights, limits))
                    for (int v = 0; v < n_vectors; ++v) store(weights + v * lanes<T>, Vector<T>{});
                else
                    soften_center<has_ties>(weights, smallest, leasts, power, sums);
            }
            for (int v = 0; v < n_vectors; ++v) sums[v] = sums[v] / smallest[v];
            add_to_softness(sums);
        }
    }

    static bool none_up_to(const T* values, const PerPoint& limits) {
        unsigned found = 0;
        for (int v = 0; v < n_vectors; ++v) found |= lanes_up_to<T>(load(values + v * lanes<T>), limits[v]);
        return !found;
    }

    template <bool has_ties, class Power>
    POWERMEANS_INLINE static void soften_center(T* weights, const PerPoint& smallest,
                                                const typename Power::Least (&leasts)[n_vectors],
                                                const Power& power, PerPoint& sums) {
        constexpr int n = n_vectors < 4 ? n_vectors : 4;  // as many as registers hold
        for (int first = 0; first < n_vectors; first += n) {
            Vector<T> stored[n], y[n], weighed[n];
            typename Power::Least least[n];
#pragma GCC unroll 4
            for (int v = 0; v < n; ++v) {
                stored[v] = y[v] = load(weights + (first + v) * lanes<T>);
                least[v] = leasts[first + v];
                if constexpr (has_ties) y[v] = larger(y[v], smallest[first + v]);
            }
            power.weigh(y, least, weighed);
#pragma GCC unroll 4
            for (int v = 0; v < n; ++v) {
                if constexpr (has_ties)
                    weighed[v] = keep_where_at_least<T>(stored[v], Vector<T>{}, weighed[v]);
                sums[first + v] = multiply_add(weighed[v], y[v], sums[first + v]);
                if constexpr (has_ties) weighed[v] = weighed[v] + larger(-stored[v], Vector<T>{});
                store(weights + (first + v) * lanes<T>, weighed[v]);
            }
        }
    }

    // factor = sample weight * S^(1/s - 1), common to all weights of a point.
    void take_factors_of_group() {
        for (int64_t p = 0; p < points_per_group; p += lanes<double>)
            store(factors + p, factors_of(job, load(softness + p), load(least_wide + p)));
        for (int64_t p = group.n; p < points_per_group; ++p) factors[p] = 0;
        for (int64_t p = 0; p < group.n; ++p) {
            const double weight = weight_of(group, p);
            factors[p] *= weight;
            out.objective += objective_of(job, weight, factors[p], softness[p], least_wide[p]);
            out.inertia += weight * nearest_wide[p];
        }
    }

    void add_points() const {
        for (int64_t p = 0; p < points_per_group; ++p) {
            const bool fits = factors[p] >= smallest_factor<T> && factors[p] <= 1 / smallest_factor<T>;
            if (!fits && factors[p] != 0) return add_one_by_one();
        }
        // Points are multiplied by their factors: they are fewer than the weights.
        T scaled[(direct_max_features + 1) * points_per_group];
        const int64_t d = n_features();
        for (int64_t p = 0; p < points_per_group; ++p) scaled[d * points_per_group + p] = T(factors[p]);
        for (int64_t f = 0; f < d; ++f)
            for (int64_t p = 0; p < points_per_group; p += lanes<T>)
                store(scaled + f * points_per_group + p,
                      load(columns + f * points_per_group + p) * load(scaled + d * points_per_group + p));
        const T* from = weights_of(0);
        T* to = centers.sums;
        for (int64_t t = 0, n = centers.n; t < n; ++t, from += points_per_group) {
            PerPoint weights;
            load_all(from, weights);
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

    // For factors that do not fit T.
    void add_one_by_one() const {
        for (int64_t t = 0; t < centers.n; ++t)
            for (int64_t p = 0; p < points_per_group; ++p) {
                const double weight = double(weights_of(t)[p]) * factors[p];
                out.weights[centers[t]] += weight;
                for (int64_t f = 0; f < n_features(); ++f) {
                    double& sum = out.points[f * job.centers.n_padded + centers[t]];
                    sum = multiply_add(double(columns[f * points_per_group + p]), weight, sum);
                }
            }
    }
};

template <class T>
BlockCenters<T> centers_of_block(const Block<Dense<T>>& block, const Groups<T>& groups) {
    const Workspace<T>& work = block.work;
    const int64_t d = block.points.n_features, n_centers = block.job.centers.n_centers;
    if (!block.points.order) return {nullptr, n_centers, d, work.lane_sums};
    const CenterList<T> all{block.job.centers.panels, nullptr, n_centers};
    const T slack = 1 / block.job.lowest_ratio;
    const int64_t n_near = find_candidates(all, d, groups.box(), 1, slack, work.dist, work.outer);
    return {work.outer, n_near, d, work.lane_sums};
}

template <class T>
double sum_of_unit(const T* from) {
    Vector<T> vectors[vectors_per_unit];
    for (int v = 0; v < vectors_per_unit; ++v) vectors[v] = load(from + v * lanes<T>);
    return sum_of_lanes<T>(vectors);
}

template <class T>
void grouped_soft_block(const Block<Dense<T>>& block, double tie_ratio) {
    const Groups<T> groups(block);
    const BlockCenters<T> centers = centers_of_block(block, groups);
    const int64_t d = centers.n_features, n_sums = centers.n * (d + 1) * unit_lanes<T>;
    block.out.n_distances += double(block.n * centers.n);
    for (int64_t i = 0; i < n_sums; ++i) centers.sums[i] = 0;
    for (int64_t g = 0; g < groups.count(); ++g) {
        const Block<Dense<T>> group = groups[g];
        SoftGroup<T>(group, groups.columns(g), centers, tie_ratio).run();
    }
    for (int64_t t = 0; t < centers.n; ++t) {
        const T* sums = centers.sums_of(t);
        for (int64_t f = 0; f < d; ++f)
            block.out.points[f * block.job.centers.n_padded + centers[t]] +=
                sum_of_unit(sums + f * unit_lanes<T>);
        block.out.weights[centers[t]] += sum_of_unit(sums + d * unit_lanes<T>);
    }
}

}  // namespace
}  // namespace powermeans
