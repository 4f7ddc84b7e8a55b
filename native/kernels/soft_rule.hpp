// The weights of the soft rules: power mean and Gaussians. A row of distances becomes a row of weights, which
// then multiply the points.
#pragma once

#include "kernels/distances.hpp"
#include "kernels/elementary.hpp"

namespace powermeans {
namespace {

// At a large power a rounded distance gives a wrong weight: the error of a soft weight e is about |s| e times
// the relative error of its distance. Centers with e above this over |s| are computed again in float64.
template <class T>
constexpr double tie_tolerance = sizeof(T) == 4 ? 8.0 : 128.0;

// Points whose factors are farther apart than this do not share one product: it would underflow.
template <class T>
constexpr double widest_factors = sizeof(T) == 4 ? 1e26 : 1e260;

double log_of_one(double x) { return log_of(broadcast(x))[0]; }
double exp_of_one(double x) { return exp_of<double>(broadcast(x))[0]; }

// Returns how many times the smallest a distance may be to be a near tie at this power; 1: there are none.
template <class T>
double tie_ratio_at(const Job<T>& job) {
    if (job.rule != SoftRule::power) return 1.0;
    const double log_limit = log_of_one(-job.power / tie_tolerance<T>);
    return log_limit > 0 ? exp_of_one(log_limit / -job.power) : 1.0;
}

// A distance may be off by this many roundings of T: of the squared norms if it is from a product, else of
// itself.
constexpr double rounding_of_sums = 4.0;

// Returns the largest distance of a near tie, which is less than the nearest where there are none. Rounding
// is in proportion to `size`.
template <class T>
double tie_limit(const Job<T>& job, double tie_ratio, double nearest, double size) {
    if (job.rule == SoftRule::power) return tie_ratio > 1 ? nearest * tie_ratio : -1.0;
    const double error = job.sharpness * size * rounding_of_sums / tie_tolerance<T>;
    return error > 1 ? nearest + log_of_one(error) / job.sharpness : -__builtin_inf();
}

template <class T>
double offset_of(const Job<T>& job, int64_t center) {
    return job.offsets ? double(job.offsets[center]) : 0.0;
}

// Lists the centers of near ties with their float64 distances, takes them out of the row, and returns how
// many there are. `nearest` becomes the smallest of the new distances.
template <class Points>
int64_t take_ties(const Block<Points>& block, int64_t p, double tie_ratio, double& nearest) {
    using T = typename Points::Computed;
    const Job<T>& job = block.job;
    const Workspace<T>& work = block.work;
    T* row = row_of(block, p);
    const double size = job.plan.direct ? nearest : work.sq_norms[p] + job.centers.largest_sq_norm;
    const T limit = T(tie_limit(job, tie_ratio, nearest, size));
    if (!has_two_up_to(row, job.centers.n_padded, limit)) return 0;
    int64_t n_tied = 0;
    for (int64_t j = 0; j < job.centers.n_padded; j += lanes<T>)
        for (unsigned mask = lanes_up_to<T>(load(row + j), broadcast(limit)); mask; mask &= mask - 1)
            work.tied[n_tied++] = j + __builtin_ctz(mask);
    for (int64_t t = 0; t < n_tied; ++t) {
        const int64_t j = work.tied[t];
        work.tied_dist[t] = precise_sq_dist(block, p, j) + offset_of(job, j);
        row[j] = T(__builtin_inf());
        if (t == 0 || work.tied_dist[t] < nearest) nearest = work.tied_dist[t];
    }
    return n_tied;
}

template <class T, class Put>
double densities_of_ties(const Job<T>& job, const Workspace<T>& work, int64_t n_tied, double nearest,
                         const Put& put) {
    double sum = 0;
    for (int64_t t = 0; t < n_tied; ++t) {
        const double log_density = (nearest - work.tied_dist[t]) * job.sharpness;
        const double density = log_density < double(job.lowest_log) ? 0 : exp_of_one(log_density);
        put(work.tied[t], T(density));
        sum += density;
    }
    return sum;
}

// Calls put(center, weight) for near ties; returns their part of S.
template <class T, class Put>
double soften_ties(const Job<T>& job, const Workspace<T>& work, int64_t n_tied, double nearest,
                   const Put& put) {
    if (job.rule == SoftRule::gaussian) return densities_of_ties(job, work, n_tied, nearest, put);
    const double abs_power = -job.power;
    double sum = 0;
    for (int64_t first = 0; first < n_tied; first += lanes<double>) {
        const int64_t n = smaller<int64_t>(n_tied - first, lanes<double>);
        double ratio[lanes<double>], soft[lanes<double>];
        for (int64_t t = 0; t < lanes<double>; ++t) {
            const double tied = work.tied_dist[first + (t < n ? t : 0)];
            ratio[t] = nearest > 0 ? nearest / tied : tied == 0;
        }
        const DoubleVector ratios = load(ratio), least = broadcast(Format<double>::smallest_normal);
        store(soft, keep_where_at_least<double>(ratios, least,
                                                exp_of<double>(abs_power * log_of(larger(ratios, least)))));
        for (int64_t t = 0; t < n; ++t) {
            put(work.tied[first + t], T(soft[t] * ratio[t]));
            sum += soft[t];
        }
    }
    return sum;
}

// Beyond this power every weight but the nearest's vanishes, and float32 would overflow.
constexpr double highest_abs_power = 1e30;

// Weights by the logarithm: (least / y)^(1 + |s|), zero where that is below the lowest share. y is finite and
// not below the least.
template <class T>
struct AnyPower {
    using Least = powermeans::Least<T>;
    T negative_exponent, lowest_log2;

    explicit AnyPower(const Job<T>& job)
        : negative_exponent(T(larger(job.power - 1, -highest_abs_power))),
          lowest_log2(larger(T(job.lowest_log * Format<T>::log2_e), Format<T>::smallest_exponent)) {}

    template <int n>
    POWERMEANS_INLINE void weigh(const Vector<T> (&y)[n], const Least (&least)[n],
                                 Vector<T> (&weights)[n]) const {
        const Vector<T> lowest = broadcast(lowest_log2);
        Vector<T> logs[n], kept[n];
        log2_over<T>(least, y, logs);
#pragma GCC unroll 4
        for (int v = 0; v < n; ++v) {
            logs[v] *= broadcast(negative_exponent);
            kept[v] = larger(logs[v], lowest);
        }
        exp2_of<T>(kept, weights);
#pragma GCC unroll 4
        for (int v = 0; v < n; ++v) weights[v] = keep_where_at_least<T>(logs[v], lowest, weights[v]);
    }
};

// Weights by squaring, for a whole |s|.
template <class T>
struct WholePower {
    using Least = Vector<T>;
    int64_t exponent;  // 1 + |s|
    T lowest_ratio;

    explicit WholePower(const Job<T>& job) : exponent(job.whole_power + 1), lowest_ratio(job.lowest_ratio) {}

    template <int n>
    POWERMEANS_INLINE void weigh(const Vector<T> (&y)[n], const Least (&least)[n],
                                 Vector<T> (&weights)[n]) const {
        Vector<T> squares[n];
#pragma GCC unroll 8
        for (int v = 0; v < n; ++v) {
            const Vector<T> ratio =
                near_quotient<T>(least[v], smaller(y[v], broadcast(Format<T>::largest_divisor)));
            squares[v] = keep_where_at_least<T>(ratio, broadcast(lowest_ratio), ratio);
        }
        int64_t left = exponent;
        for (; !(left & 1); left >>= 1)
#pragma GCC unroll 8
            for (int v = 0; v < n; ++v) squares[v] *= squares[v];
#pragma GCC unroll 8
        for (int v = 0; v < n; ++v) weights[v] = squares[v];
        while (left >>= 1)
#pragma GCC unroll 8
            for (int v = 0; v < n; ++v) {
                squares[v] *= squares[v];
                if (left & 1) weights[v] *= squares[v];
            }
    }
};

// Calls soften(power) with the faster way to weigh distances, and returns what that returns.
template <class T, class Soften>
auto with_power_of(const Job<T>& job, const Soften& soften) {
    if (job.whole_power) return soften(WholePower<T>(job));
    return soften(AnyPower<T>(job));
}

// A point with a smaller nearest squared distance gets another unit, so that ratios keep their digits.
template <class T>
constexpr T smallest_nearest = Format<T>::smallest_normal * (sizeof(T) == 4 ? T(0x1p20) : T(0x1p40));
template <class T>
constexpr T unit_of_small = sizeof(T) == 4 ? T(0x1p60) : T(0x1p500);

// Turns the row of distances y into exp((s - 1) a) with a = log(y / nearest), zero where nearest / y is below
// the lowest ratio; returns S = sum of exp(s a).
template <class T, class Power>
double soften_row(T* row, int64_t n_padded, T nearest, T lowest_ratio, const Power& power) {
    Vector<T> sums[vectors_per_unit] = {};
    const Vector<T> smallest = broadcast(nearest);
    typename Power::Least least[vectors_per_unit];
    for (auto& same : least) same = typename Power::Least(smallest);
    // Rounded up, so that no center at the lowest ratio is skipped.
    const Vector<T> limit = broadcast(nearest / lowest_ratio * (1 + 4 * rounding_of_distance<T>));
    for (int64_t j = 0; j < n_padded; j += unit_lanes<T>) {
        Vector<T> y[vectors_per_unit], weights[vectors_per_unit];
        unsigned found = 0;
        for (int v = 0; v < vectors_per_unit; ++v) {
            const Vector<T> stored = load(row + j + v * lanes<T>);
            found |= lanes_up_to<T>(stored, limit);
            y[v] = larger(smaller(stored, broadcast(Format<T>::largest)), smallest);
        }
        if (found) {
            power.weigh(y, least, weights);
            for (int v = 0; v < vectors_per_unit; ++v) sums[v] = multiply_add(weights[v], y[v], sums[v]);
        } else {
            for (Vector<T>& weight : weights) weight = Vector<T>{};
        }
        for (int v = 0; v < vectors_per_unit; ++v) store(row + j + v * lanes<T>, weights[v]);
    }
    return sum_of_lanes<T>(sums) / double(nearest);
}

template <class T>
double soften_row_of_zero(T* row, int64_t n_padded) {
    double n_zeros = 0;
    for (int64_t j = 0; j < n_padded; ++j) {
        row[j] = T(row[j] == 0);
        n_zeros += double(row[j]);
    }
    return n_zeros;
}

// Returns the density of a Gaussian over that of the nearest. `nearer` is at most zero.
template <class T>
POWERMEANS_INLINE Vector<T> density_of(Vector<T> nearer, const Job<T>& job) {
    const Vector<T> lowest = broadcast(job.lowest_log), logs = nearer * broadcast(T(job.sharpness));
    return keep_where_at_least<T>(logs, lowest, exp_of<T>(larger(logs, lowest)));
}

// Turns distances into densities over the highest; returns their sum.
template <class T>
double densities_of_row(T* row, int64_t n_padded, T nearest, const Job<T>& job) {
    Vector<T> sums[vectors_per_unit] = {};
    for (int64_t j = 0; j < n_padded; j += unit_lanes<T>)
        for (int v = 0; v < vectors_per_unit; ++v) {
            T* at = row + j + v * lanes<T>;
            const Vector<T> densities = density_of(broadcast(nearest) - load(at), job);
            sums[v] += densities;
            store(at, densities);
        }
    return sum_of_lanes<T>(sums);
}

template <class T>
double soften_row(T* row, int64_t n_padded, T nearest, const Job<T>& job) {
    if (job.rule == SoftRule::gaussian) return densities_of_row(row, n_padded, nearest, job);
    if (nearest == 0) return soften_row_of_zero(row, n_padded);
    if (nearest < smallest_nearest<T>) {
        nearest *= unit_of_small<T>;
        for (int64_t j = 0; j < n_padded; ++j) row[j] *= unit_of_small<T>;
    }
    return with_power_of(
        job, [&](const auto& power) { return soften_row(row, n_padded, nearest, job.lowest_ratio, power); });
}

// Returns the factor that the weights of a point share: 1/S, or S^(1/s - 1) times a power of the power mean.
// The sample weight is not in it, nor the number of centers in the mean.
template <class T>
POWERMEANS_INLINE DoubleVector factors_of(const Job<T>& job, DoubleVector softness, DoubleVector nearest) {
    if (job.rule == SoftRule::gaussian) return broadcast(1.0) / softness;
    const double exponent = job.mean_exponent;
    DoubleVector log_factors = log_of(softness) * ((1 + exponent) / job.power - 1);
    if (exponent != 0) {
        const DoubleVector least = broadcast(Format<double>::smallest_normal);
        log_factors += log_of(larger(nearest, least)) * exponent;
    }
    return exp_of<double>(log_factors);
}

// Returns what a point adds to the objective.
template <class T>
POWERMEANS_INLINE double objective_of(const Job<T>& job, double weight, double factor, double softness,
                                      double least) {
    if (job.rule == SoftRule::gaussian) return weight * (least - log_of_one(softness) / job.sharpness);
    return factor * softness * least;
}

template <class Points>
void take_factors(const Block<Points>& block) {
    const auto& work = block.work;
    for (int64_t p = 0; p < block.n; p += lanes<double>)
        store(work.factors + p, factors_of(block.job, load(work.softness + p), load(work.least + p)));
    for (int64_t p = 0; p < block.n; ++p) work.factors[p] *= weight_of(block, p);
}

// If fewer than one weight in ten is positive, points are added one by one.
constexpr int64_t few_positive = 10;

// Multiplies the weights of a point by its factor over `scale`; returns how many are positive.
template <class Points>
int64_t take_factor(const Block<Points>& block, int64_t p, double scale) {
    using T = typename Points::Computed;
    T* row = row_of(block, p);
    const Vector<T> factor = broadcast(T(block.work.factors[p] / scale));
    int64_t n_positive = 0;
    for (int64_t j = 0; j < block.job.centers.n_padded; j += lanes<T>) {
        const Vector<T> soft = load(row + j);
        const unsigned positive = lanes_above_zero<T>(soft);
        if (!positive) continue;
        n_positive += __builtin_popcount(positive);
        const Vector<T> weights = soft * factor;
        store(row + j, weights);
        add_to(block.out.weights + j, weights, scale);
    }
    return n_positive;
}

template <class Points>
void add_one_by_one(const Block<Points>& block, int64_t p, double scale) {
    using T = typename Points::Computed;
    const T* row = row_of(block, p);
    for (int64_t j = 0; j < block.job.centers.n_padded; j += lanes<T>)
        for (unsigned mask = lanes_above_zero<T>(load(row + j)); mask; mask &= mask - 1) {
            const int64_t center = j + __builtin_ctz(mask);
            add_point(block, p, center, double(row[center]) * scale);
        }
}

// Adds up points `first` to `first + n` of the block, with weights times factors.
template <class Points>
void add_weighted(const Block<Points>& block, int64_t first, int64_t n, double scale) {
    const auto& job = block.job;
    const auto& work = block.work;
    const int64_t last = first + n;
    for (int64_t p = first; p < last; ++p) {
        const double weight = weight_of(block, p);
        block.out.objective += objective_of(job, weight, work.factors[p], work.softness[p], work.least[p]);
        block.out.inertia += weight * work.nearest[p];
    }
    int64_t n_positive = 0;
    for (int64_t p = first; p < last; ++p) n_positive += take_factor(block, p, scale);
    if (!job.plan.sums_by_center || n_positive * few_positive > n * job.centers.n_padded)
        return add_weighted_points(block, first, n, scale);
    for (int64_t p = first; p < last; ++p) add_one_by_one(block, p, scale);
}

// Returns the smallest of the sums.
template <class T>
T add_offsets(const Job<T>& job, T* row) {
    for (int64_t j = 0; j < job.centers.n_padded; j += lanes<T>)
        store(row + j, load(row + j) + load(job.offsets + j));
    return smallest_in(row, job.centers.n_padded);
}

template <class Points>
void soft_block(const Block<Points>& block) {
    using T = typename Points::Computed;
    const Job<T>& job = block.job;
    const Workspace<T>& work = block.work;
    const double tie_ratio = tie_ratio_at(job);
    for (int64_t p = 0; p < block.n; ++p) {
        T* row = row_of(block, p);
        double least = work.nearest[p];
        if (job.offsets) least = double(add_offsets(job, row));
        const int64_t n_tied = take_ties(block, p, tie_ratio, least);
        if (!job.offsets) work.nearest[p] = least;
        work.least[p] = least;
        work.softness[p] = soften_row(row, job.centers.n_padded, T(least), job);
        work.softness[p] +=
            soften_ties(job, work, n_tied, least, [row](int64_t center, T weight) { row[center] = weight; });
    }
    take_factors(block);
    double lowest = __builtin_inf(), highest = 0;
    for (int64_t p = 0; p < block.n; ++p) {
        const double factor = work.factors[p];
        if (factor > 0) lowest = smaller(factor, lowest);
        highest = larger(factor, highest);
    }
    if (highest == 0) return;
    if (highest / lowest <= widest_factors<T>) return add_weighted(block, 0, block.n, highest);
    for (int64_t p = 0; p < block.n; ++p)
        if (work.factors[p] > 0) add_weighted(block, p, 1, work.factors[p]);
}

}  // namespace
}  // namespace powermeans
