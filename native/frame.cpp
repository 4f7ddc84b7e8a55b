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

template <class V>
Frame dense_frame(const Moments& moments) {
    const bool direct = int64_t(moments.mean.size()) <= direct_max_features;
    if (direct && sizeof(V) == 8)
        return {std::vector<double>(moments.mean.size()), scale_for<V>(moments.largest)};
    Frame frame{moments.mean, scale_for<V>(moments.largest_shifted)};
    for (double& origin : frame.origin) origin = double(V(origin));
    return frame;
}

template Moments moments_of(const float*, int64_t, int64_t, Team&);
template Moments moments_of(const double*, int64_t, int64_t, Team&);
template double scale_for<float>(double);
template double scale_for<double>(double);
template Frame dense_frame<float>(const Moments&);
template Frame dense_frame<double>(const Moments&);

}  // namespace powermeans
