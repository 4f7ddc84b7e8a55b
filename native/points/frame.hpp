// The shift and the scale under which the kernels see the points. With them no square overflows or vanishes,
// and products lose no digits to a mean far from zero.
#pragma once

#include <cstdint>
#include <vector>

#include "points/entries.hpp"
#include "threads/aligned.hpp"
#include "threads/team.hpp"

namespace powermeans {

struct Frame {
    std::vector<double> origin;  // (n_features,), or empty for none
    double extent = 0;           // no |x - origin| is larger

    double origin_of(int64_t feature) const { return origin.empty() ? 0 : origin[std::size_t(feature)]; }
};

struct Moments {
    std::vector<double> mean;      // (n_features,), every point counted once
    std::vector<double> variance;  // (n_features,)
    std::vector<double> median;    // (n_features,), of some points
    double largest = 0;            // largest |x|
    double largest_shifted = 0;    // largest |x - mean|
};

// `values` is (n_points, n_features).
template <class V>
Moments moments_of(const Entries<V>& values, int64_t n_points, int64_t n_features, Team& team);

// Returns a power of two, normal in V, that brings `largest` to between 1/2 and 1, or below if it is smaller than
// 2^-900; returns 1 for zero.
template <class V>
double scale_for(double largest);

// Takes the median of some points as origin: unlike the mean, it stays with most points however far away a
// few are. Direct float64 differences need no shift. V is the type of the points.
template <class V>
Frame dense_frame(const Moments& moments);

// Affine distances are products, which need the shift whatever the type of the points.
Frame frame_about_median(const Moments& moments);

template <class T>
Aligned<T> scaled_origin(const Frame& frame, int64_t n_features, double scale) {
    Aligned<T> origin(static_cast<std::size_t>(n_features));
    for (int64_t f = 0; f < n_features; ++f) origin[std::size_t(f)] = T(frame.origin_of(f) * scale);
    return origin;
}

}  // namespace powermeans
