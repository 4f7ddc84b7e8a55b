#include "points/sketched_points.hpp"

#include <algorithm>
#include <vector>

#include "dispatch.hpp"
#include "kernels/rounding.hpp"

namespace powermeans {
namespace {

// Sketches may take this many bytes, and a sixteenth of those of the points.
constexpr int64_t affordable_bytes = 40 << 20;
constexpr int64_t bytes_beside_codes = 28;
constexpr int64_t values_per_stripe = 1 << 18;

}  // namespace

template <class V>
bool SketchedPoints<V>::are_affordable(const Entries<V>& values, int64_t n_points, int64_t n_features) {
    const int64_t width = round_up(n_features, codes_per_step);
    return width <= widest_sketch && n_points * (width + bytes_beside_codes) <=
                                         affordable_bytes + n_points * n_features * values.bytes_each() / 16;
}

template <class V>
SketchedPoints<V>::Made::Made(int64_t n_points, int64_t n_features)
    : codes(new uint8_t[std::size_t(n_points * round_up(n_features, codes_per_step))]),
      steps(new double[std::size_t(n_points)]),
      errors(new double[std::size_t(n_points)]),
      norms(new double[std::size_t(n_points)]),
      sq_norms(new int32_t[std::size_t(n_points)]),
      view{codes.get(),    steps.get(), errors.get(),
           sq_norms.get(), norms.get(), round_up(n_features, codes_per_step)} {}

template <class V>
const Sketches& SketchedPoints<V>::made_of(const Entries<V>& values, int64_t n_points, int64_t n_features,
                                           const Frame& frame, Team& team) {
    const auto make = [&] {
        Made made(n_points, n_features);
        std::vector<double> origin = frame.origin;
        origin.resize(std::size_t(n_features));  // there may be none
        const SketchKernel<V>& kernel = *chosen_instruction_set().kernels;
        const double scale = scale_for<double>(frame.extent);
        const int64_t stripe_points = std::max<int64_t>(1, values_per_stripe / n_features);
        team.run(divide_up(n_points, stripe_points), team.n_threads(), [&](int, int64_t stripe) {
            const int64_t begin = stripe * stripe_points, end = std::min(n_points, begin + stripe_points);
            std::vector<V> row(static_cast<std::size_t>(n_features));
            kernel.sketch(values, n_features, origin.data(), scale, begin, end, row.data(), made.view);
        });
        return made;
    };
    return made_.get(make).view;
}

template class SketchedPoints<float>;
template class SketchedPoints<double>;

}  // namespace powermeans
