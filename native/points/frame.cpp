#include "points/frame.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/rounding.hpp"
#include "kernels/sweep_kernels.hpp"

namespace powermeans {
namespace {

constexpr int64_t values_per_stripe = 1 << 18;

// Calls add_points(begin, end, totals) for stripes of points, and adds their totals in order.
template <class Totals, class AddPoints>
Totals add_up(int64_t n_points, int64_t n_features, Team& team, const Totals& nothing,
              const AddPoints& add_points) {
    const int64_t stripe_points = std::max<int64_t>(1, values_per_stripe / std::max<int64_t>(1, n_features));
    const int64_t n_stripes = divide_up(n_points, stripe_points);
    const int n_workers = int(std::min<int64_t>(team.n_threads(), n_stripes));
    Totals all = nothing;
    std::vector<Totals> parts(std::size_t(n_workers), nothing);
    const auto compute = [&](int worker, int64_t stripe) {
        Totals& part = parts[std::size_t(worker)] = nothing;
        add_points(stripe * stripe_points, std::min(n_points, (stripe + 1) * stripe_points), part);
    };
    team.run(n_stripes, n_workers, compute,
             [&](int worker, int64_t) { all.add(parts[std::size_t(worker)]); });
    return all;
}

constexpr int64_t points_for_median = 255;
constexpr int64_t features_at_once = 64;
constexpr int64_t points_at_once = 4;
// One pass about the median gives the variance, unless the mean is so far from the median that subtracting
// its square cancels digits, or squares leave the range.
constexpr double most_of_the_mean = 0.9;
constexpr double smallest_deviation = 1e-140, largest_deviation = 1e140;

template <class V>
std::vector<double> medians_of_some(const Entries<V>& values, int64_t n_points, int64_t n_features) {
    const int64_t step = divide_up(n_points, points_for_median);
    const int64_t n = divide_up(n_points, step);
    std::vector<double> medians(static_cast<std::size_t>(n_features));
    std::vector<V> columns(std::size_t(n * features_at_once));
    for (int64_t first = 0; first < n_features; first += features_at_once) {
        const int64_t last = std::min(n_features, first + features_at_once);
        for (int64_t p = 0; p < n; ++p)
            for_each_entry(values, p * step * n_features + first, last - first,
                           [&](int64_t f, V value) { columns[std::size_t(f * n + p)] = value; });
        for (int64_t f = first; f < last; ++f) {
            const auto begin = columns.begin() + (f - first) * n, middle = begin + n / 2;
            std::nth_element(begin, middle, begin + n);
            medians[std::size_t(f)] = double(*middle);
        }
    }
    return medians;
}

// What points add up to about an origin, for each feature.
template <class V>
struct Deviations {
    std::vector<double> sums, squares;
    std::vector<V> lowest, highest;

    explicit Deviations(std::size_t n_features)
        : sums(n_features),
          squares(n_features),
          lowest(n_features, std::numeric_limits<V>::infinity()),
          highest(n_features, -std::numeric_limits<V>::infinity()) {}

    // Adds n points together, so that the sums are read and written once for all of them.
    template <int64_t n>
    void add(const V* points, const double* origin) {
        const int64_t d = int64_t(sums.size());
        double *sum = sums.data(), *square = squares.data();
        V *low = lowest.data(), *high = highest.data();
#pragma GCC ivdep
        for (int64_t f = 0; f < d; ++f) {
            double total = sum[f], total_square = square[f];
            V least = low[f], most = high[f];
            for (int64_t p = 0; p < n; ++p) {
                const V x = points[p * d + f];
                const double deviation = double(x) - origin[f];
                total += deviation;
                total_square += deviation * deviation;
                least = x < least ? x : least;
                most = x > most ? x : most;
            }
            sum[f] = total;
            square[f] = total_square;
            low[f] = least;
            high[f] = most;
        }
    }

    void add(const Deviations& other) {
        for (std::size_t f = 0; f < sums.size(); ++f) {
            sums[f] += other.sums[f];
            squares[f] += other.squares[f];
            lowest[f] = std::min(lowest[f], other.lowest[f]);
            highest[f] = std::max(highest[f], other.highest[f]);
        }
    }
};

template <class V>
Deviations<V> deviations_from(const std::vector<double>& origin, const Entries<V>& values, int64_t n_points,
                              Team& team) {
    const int64_t d = int64_t(origin.size());
    const auto add_points = [&](int64_t begin, int64_t end, Deviations<V>& to) {
        std::vector<V> buffer(values.are_narrow() ? std::size_t(points_at_once * d) : 0);
        const auto points = [&](int64_t i, int64_t n) {
            return entries_at(values, i * d, n * d, buffer.data());
        };
        int64_t i = begin;
        for (; i + points_at_once <= end; i += points_at_once)
            to.template add<points_at_once>(points(i, points_at_once), origin.data());
        for (; i < end; ++i) to.template add<1>(points(i, 1), origin.data());
    };
    return add_up(n_points, d, team, Deviations<V>(origin.size()), add_points);
}

// Fills in the moments from one pass; returns false where rounding may have spoilt them.
template <class V>
bool moments_about_median(const Deviations<V>& deviations, int64_t n_points, Moments& moments) {
    double largest = 0, largest_shifted = 0;
    for (std::size_t f = 0; f < moments.median.size(); ++f) {
        const double low = double(deviations.lowest[f]), high = double(deviations.highest[f]);
        const double shift = deviations.sums[f] / double(n_points);
        const double square = deviations.squares[f] / double(n_points);
        const double mean = moments.median[f] + shift, widest = std::max(high - mean, mean - low);
        if (!(shift * shift <= most_of_the_mean * square)) return false;
        if (!(widest == 0 || (widest > smallest_deviation && widest < largest_deviation))) return false;
        moments.mean[f] = mean;
        moments.variance[f] = square - shift * shift;
        largest = std::max({largest, std::abs(low), std::abs(high)});
        largest_shifted = std::max(largest_shifted, widest);
    }
    moments.largest = largest;
    moments.largest_shifted = largest_shifted;
    return true;
}

struct Totals {
    std::vector<double> sums;
    double largest = 0;

    void add(const Totals& other) {
        for (std::size_t f = 0; f < sums.size(); ++f) sums[f] += other.sums[f];
        largest = std::max(largest, other.largest);
    }
};

// Adds up term(deviation) over the points, for each feature.
template <class V, class Term>
Totals totals_of(const Entries<V>& values, int64_t n_points, const std::vector<double>& origin, Team& team,
                 const Term& term) {
    const int64_t d = int64_t(origin.size());
    const auto add_points = [&](int64_t begin, int64_t end, Totals& to) {
        double largest = to.largest;
        for (int64_t i = begin; i < end; ++i)
            for_each_entry(values, i * d, d, [&](int64_t f, V value) {
                const double deviation = double(value) - origin[std::size_t(f)];
                to.sums[std::size_t(f)] += term(deviation);
                largest = std::max(largest, std::abs(deviation));
            });
        to.largest = largest;
    };
    return add_up(n_points, d, team, Totals{std::vector<double>(origin.size())}, add_points);
}

template <class V>
void moments_in_two_passes(const Entries<V>& values, int64_t n_points, Team& team, Moments& moments) {
    const std::vector<double> zero(moments.mean.size());
    const Totals first = totals_of(values, n_points, zero, team, [](double x) { return x; });
    moments.mean = first.sums;
    for (double& mean : moments.mean) mean /= double(n_points);
    // Squares of scaled deviations, so that neither tiny nor huge values leave the range.
    const double scale = scale_for<double>(first.largest);
    const Totals second = totals_of(values, n_points, moments.mean, team,
                                    [scale](double x) { return (x * scale) * (x * scale); });
    moments.variance = second.sums;
    for (double& variance : moments.variance) variance = variance / double(n_points) / scale / scale;
    moments.largest = first.largest;
    moments.largest_shifted = second.largest;
}

}  // namespace

template <class V>
Moments moments_of(const Entries<V>& values, int64_t n_points, int64_t n_features, Team& team) {
    Moments moments;
    moments.median = medians_of_some(values, n_points, n_features);
    moments.mean = moments.variance = moments.median;
    const Deviations<V> deviations = deviations_from(moments.median, values, n_points, team);
    if (!moments_about_median(deviations, n_points, moments))
        moments_in_two_passes(values, n_points, team, moments);
    return moments;
}

template <class V>
double scale_for(double largest) {
    constexpr int least_exponent = sizeof(V) == 4 ? -126 : -1022;
    // Times the square of a larger one, sums of the smallest variances would overflow.
    constexpr int largest_exponent = sizeof(V) == 4 ? 126 : 900;
    if (!(largest > 0)) return 1;
    int exponent;
    std::frexp(largest, &exponent);
    return std::ldexp(1.0, std::clamp(-exponent, least_exponent, largest_exponent));
}

template <class V>
Frame dense_frame(const Moments& moments) {
    if (int64_t(moments.median.size()) <= direct_max_features && sizeof(V) == 8) return {{}, moments.largest};
    return frame_about_median(moments);
}

Frame frame_about_median(const Moments& moments) {
    Frame frame{moments.median, 0};
    double farthest_from_mean = 0;
    for (std::size_t f = 0; f < frame.origin.size(); ++f)
        farthest_from_mean = std::max(farthest_from_mean, std::abs(frame.origin[f] - moments.mean[f]));
    frame.extent = moments.largest_shifted + farthest_from_mean;
    return frame;
}

template Moments moments_of(const Entries<float>&, int64_t, int64_t, Team&);
template Moments moments_of(const Entries<double>&, int64_t, int64_t, Team&);
template double scale_for<float>(double);
template double scale_for<double>(double);
template Frame dense_frame<float>(const Moments&);
template Frame dense_frame<double>(const Moments&);

}  // namespace powermeans
