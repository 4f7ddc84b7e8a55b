#include "seeds/draw.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "kernels/rounding.hpp"

namespace powermeans {
namespace {

constexpr int64_t points_per_draw_stripe = 1 << 14;

// Returns the mass of the points before each stripe, and at the end that of all points.
std::vector<double> cumulative_masses(const Masses& masses, Team& team) {
    const int64_t n_stripes = divide_up(masses.n_points, points_per_draw_stripe);
    std::vector<double> cumulative(std::size_t(n_stripes) + 1);
    const auto compute = [&](int, int64_t stripe) {
        const int64_t begin = stripe * points_per_draw_stripe;
        const int64_t end = std::min(masses.n_points, begin + points_per_draw_stripe);
        cumulative[std::size_t(stripe) + 1] = masses.between(begin, end);
    };
    const auto merge = [&](int, int64_t stripe) {
        cumulative[std::size_t(stripe) + 1] += cumulative[std::size_t(stripe)];
    };
    team.run(n_stripes, int(std::min<int64_t>(team.n_threads(), n_stripes / 4 + 1)), compute, merge);
    return cumulative;
}

double farthest_of(const Masses& masses) {
    double farthest = 0;
    for (int64_t i = 0; i < masses.n_points; ++i)
        if (!masses.sample_weight || masses.sample_weight[i] > 0)
            farthest = std::max(farthest, masses.nearest[i]);
    return farthest;
}

}  // namespace

int64_t point_passing(const Masses& masses, const std::vector<double>& cumulative, int64_t points_per_stripe,
                      double target) {
    const auto above = std::upper_bound(cumulative.begin() + 1, cumulative.end(), target);
    int64_t stripe = std::min<int64_t>(above - cumulative.begin() - 1, int64_t(cumulative.size()) - 2);
    for (; stripe >= 0; --stripe) {
        double sum = cumulative[std::size_t(stripe)];
        int64_t last = -1;
        const int64_t end = std::min(masses.n_points, (stripe + 1) * points_per_stripe);
        for (int64_t i = stripe * points_per_stripe; i < end; ++i) {
            const double mass = masses.of_point(masses.point_at(i));
            if (!(mass > 0)) continue;
            last = i;
            sum += mass;
            if (sum > target) return masses.point_at(i);
        }
        if (last >= 0) return masses.point_at(last);
    }
    throw std::invalid_argument("no point has a weight: give one of them a positive weight");
}

void draw(Masses masses, const double* uniforms, int64_t n_draws, Team& team, int64_t* indices) {
    if (masses.nearest && masses.exponent != 2.0) masses.farthest = farthest_of(masses);
    const std::vector<double> cumulative = cumulative_masses(masses, team);
    const double total = cumulative.back();
    // All masses are infinite before there is a center, and zero once every point is at one.
    if (masses.nearest && !(0 < total && total < std::numeric_limits<double>::infinity())) {
        masses.nearest = nullptr;
        return draw(masses, uniforms, n_draws, team, indices);
    }
    for (int64_t i = 0; i < n_draws; ++i)
        indices[i] = point_passing(masses, cumulative, points_per_draw_stripe, uniforms[i] * total);
}

}  // namespace powermeans
