// What sweeps at a power need around the kernels: which weights they may leave out, and the unit of their sums.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/sweep_kernels.hpp"

namespace powermeans {

// A weight is left out below this share of the nearest center's. What is left out is beyond the digits of a
// center that has at least the second share of all weight.
template <class T>
inline constexpr double negligible_share = sizeof(T) == 4 ? 1e-15 : 1e-25;
template <class T>
inline constexpr double smallest_safe_share = sizeof(T) == 4 ? 1e-7 : 1e-12;

template <class T>
bool is_of_powers(const Request<T>& request) {
    return request.task == Task::soft_sums && request.rule == SoftRule::power;
}

// Weights go with (nearest / y)^(1 + |s|). Returns the ratio at which that is `share`.
inline double ratio_at(double share, double power) { return std::pow(share, 1 / (1 - power)); }

// Whole powers up to this one are taken by squaring, which is faster than the logarithm.
inline constexpr double highest_whole_power = 64;

inline int64_t whole_power(double power) {
    return -power <= highest_whole_power && power == std::nearbyint(power) ? int64_t(-power) : 0;
}

// Kernels have the sum of the powers: makes it M_s, which has their mean. Where weights are multiplied by a
// power of it they have a unit, which they get here.
template <class T>
void complete_powers(const Request<T>& request, double unscale, double& objective,
                     std::vector<double>& points, std::vector<double>& weights) {
    const double exponent = request.mean_exponent;
    objective *= std::pow(double(request.n_centers), -(1 + exponent) / request.power);
    if (exponent == 0) return;
    if (objective > 0) objective *= std::pow(unscale, 2 * exponent);
    const double unit = std::pow(unscale / request.mean_unit * unscale, exponent);
    for (std::vector<double>* values : {&points, &weights})
        for (double& value : *values) value *= unit;
}

}  // namespace powermeans
