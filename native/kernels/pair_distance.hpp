// Sums over the features of a point and a center, in eight sums that every instruction set adds up alike.
#pragma once

#include <stdint.h>

namespace powermeans {

inline constexpr int64_t pair_distance_step = 8;

// The width is a multiple of the step.
using PairDistance = double (*)(const double* a, const double* b, int64_t width);

// D(x, m) + D(m - back (x - m), m) / back, with m = mean + share (x - mean), or D(x, m) if `back` is zero. A sum
// that reaches `limit` may end there. No number is negative, and features where m is zero do not count.
using PointCost = double (*)(const double* point, const double* mean, int64_t width, double share,
                             double back, double limit);

// One cost for each term that a convex function of positive numbers may have.
struct PairKernels {
    PairDistance distance;
    PointCost x_log_x, minus_log, inverse, square;
};

}  // namespace powermeans
