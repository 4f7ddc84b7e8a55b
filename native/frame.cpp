#include "frame.hpp"

#include <algorithm>
#include <cmath>

#include "kernels.hpp"

namespace powermeans {
namespace {

constexpr int64_t values_per_stripe = 1 << 18;

struct Totals {
    std::vector<double> sums;
    double largest = 0, largest_shifted = 0;
};

// Adds visit(point, totals) over all points, stripe by stripe in order.
template <class V, class Visit>
Totals add_up(const V* values, int64_t n_points, int64_t n_features, Team& team, const Visit& visit) {
    const int64_t stripe_points = std::max<int64_t>(1, values_per_stripe / std::max<int64_t>(1, n_features));
    const int64_t n_stripes = (n_points + stripe_points - 1) / stripe_points;
    const Totals nothing{std::vector<double>(std::size_t(n_features)), 0, 0};
    Totals all = nothing;
    std::vector<Totals> parts(std::size_t(std::min<int64_t>(team.n_threads(), n_stripes)), nothing);
    const auto compute = [&](int worker, int64_t stripe) {
        Totals& part = parts[std::size_t(worker)] = nothing;
        const int64_t end = std::min(n_points, (stripe + 1) * stripe_points);
        for (int64_t i = stripe * stripe_points; i < end; ++i) visit(values + i * n_features, part);
    };
    const auto merge = [&](int worker, int64_t) {
        const Totals& part = parts[std::size_t(worker)];
        for (std::size_t f = 0; f < part.sums.size(); ++f) all.sums[f] += part.sums[f];
        all.largest = std::max(all.largest, part.largest);
        all.largest_shifted = std::max(all.largest_shifted, part.largest_shifted);
    };
    team.run(n_stripes, int(std::min<int64_t>(team.n_threads(), n_stripes)), compute, merge);
    return all;
}

}  // namespace

template <class V>
Moments moments_of(const V* values, int64_t n_points, int64_t n_features, Team& team) {
    Moments moments;
    const Totals first =
        add_up(values, n_points, n_features, team, [n_features](const V* point, Totals& part) {
            double largest = part.largest;
            for (int64_t f = 0; f < n_features; ++f) {
                part.sums[std::size_t(f)] += double(point[f]);
                largest = std::max(largest, std::abs(double(point[f])));
            }
            part.largest = largest;
        });
    moments.mean = first.sums;
    for (double& mean : moments.mean) mean /= double(n_points);
    // Squares of scaled deviations, so that neither tiny nor huge values leave the range.
    const double scale = scale_for<double>(first.largest);
    const double* mean = moments.mean.data();
    const Totals second = add_up(values, n_points, n_features, team, [=](const V* point, Totals& part) {
        double largest = part.largest_shifted;
        for (int64_t f = 0; f < n_features; ++f) {
            const double deviation = double(point[f]) - mean[f];
            part.sums[std::size_t(f)] += (deviation * scale) * (deviation * scale);
            largest = std::max(largest, std::abs(deviation));
        }
        part.largest_shifted = largest;
    });
    moments.variance = second.sums;
    for (double& variance : moments.variance) variance = variance / double(n_points) / scale / scale;
    moments.largest = first.largest;
    moments.largest_shifted = second.largest_shifted;
    return moments;
}

template <class V>
double scale_for(double largest) {
    constexpr int largest_exponent = sizeof(V) == 4 ? 126 : 1022;
    if (!(largest > 0)) return 1;
    int exponent;
    std::frexp(largest, &exponent);
    return std::ldexp(1.0, std::clamp(-exponent, -largest_exponent, largest_exponent));
}

namespace {

constexpr int64_t points_for_median = 255;

template <class V>
double median_of_some(const V* values, int64_t n_points, int64_t n_features, int64_t feature) {
    const int64_t step = (n_points + points_for_median - 1) / points_for_median;
    std::vector<V> some;
    for (int64_t i = 0; i < n_points; i += step) some.push_back(values[i * n_features + feature]);
    const auto middle = some.begin() + int64_t(some.size()) / 2;
    std::nth_element(some.begin(), middle, some.end());
    return double(*middle);
}

}  // namespace

template <class V>
Frame dense_frame(const V* values, int64_t n_points, int64_t n_features, const Moments& moments) {
    if (n_features <= direct_max_features && sizeof(V) == 8) return {{}, moments.largest};
    Frame frame{std::vector<double>(std::size_t(n_features)), 0};
    double farthest_from_mean = 0;
    for (int64_t f = 0; f < n_features; ++f) {
        double& origin = frame.origin[std::size_t(f)];
        origin = median_of_some(values, n_points, n_features, f);
        farthest_from_mean = std::max(farthest_from_mean, std::abs(origin - moments.mean[std::size_t(f)]));
    }
    frame.extent = moments.largest_shifted + farthest_from_mean;
    return frame;
}

template Moments moments_of(const float*, int64_t, int64_t, Team&);
template Moments moments_of(const double*, int64_t, int64_t, Team&);
template double scale_for<float>(double);
template double scale_for<double>(double);
template Frame dense_frame(const float*, int64_t, int64_t, const Moments&);
template Frame dense_frame(const double*, int64_t, int64_t, const Moments&);

}  // namespace powermeans
