// The centers in every form that the kernels of a sweep read. They are shifted and scaled as the points
// are, in units that keep all squares within the range.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/rounding.hpp"
#include "points/source.hpp"
#include "threads/aligned.hpp"
#include "threads/team.hpp"

namespace powermeans {

// The unit of points and that of square roots of distances, both powers of two.
struct Units {
    double scale, unit;
};

// Returns units in which no affine distance, nor any term of one, is much larger than one.
template <class Source>
Units units_of_affine(const Source& source, const double* planes, int64_t n_centers) {
    const int64_t d = source.n_features;
    double largest = source.heights.largest;
    for (int64_t j = 0; j < n_centers; ++j) {
        double size = std::abs(planes[j * (d + 1) + d]);
        for (int64_t f = 0; f < d; ++f) size += std::abs(planes[j * (d + 1) + f]) * source.frame.extent;
        largest = std::max(largest, size);
    }
    constexpr double most = 0x1p1022;  // the size may have overflowed
    const double unit = scale_for<double>(std::sqrt(std::min(largest, most)));
    return {scale_for<typename Source::Computed>(source.frame.extent), unit};
}

// Centers may lie far outside the points, for example those of a fit to other points.
template <class Source>
Units units_of(const Source& source, const double* centers, int64_t n_centers) {
    if (is_affine(source)) return units_of_affine(source, centers, n_centers);
    const int64_t d = source.n_features;
    double extent = source.frame.extent;
    for (int64_t j = 0; j < n_centers; ++j)
        for (int64_t f = 0; f < d; ++f)
            extent = std::max(extent, std::abs(centers[j * d + f] - source.frame.origin_of(f)));
    const double scale = scale_for<typename Source::Computed>(extent);
    return {scale, scale};
}

template <class Source>
class PackedCenters {
    using T = typename Source::Computed;

  public:
    PackedCenters(const Source& source, const Plan& plan, const double* raw, int64_t n_centers,
                  const Units& units, Team& team)
        : source_(source),
          plan_(plan),
          raw_(raw),
          units_(units),
          n_padded_(round_up(n_centers, unit_lanes<T>)),
          panels_(std::size_t(n_padded_ * source.n_features)),
          rows_(std::size_t(n_centers * plan.padded_features)),
          sq_norms_(std::size_t(n_padded_)),
          sq_norms_wide_(std::size_t(n_padded_)) {
        if (is_rounded) rows_wide_ = Aligned<double>(std::size_t(n_centers * plan.padded_features));
        const int64_t n_at_once = std::max<int64_t>(1, values_at_once / source.n_features);
        team.run(divide_up(n_centers, n_at_once), team.n_threads(), [&](int, int64_t stripe) {
            const int64_t end = std::min(n_centers, (stripe + 1) * n_at_once);
            for (int64_t j = stripe * n_at_once; j < end; ++j) pack(j);
        });
        for (int64_t j = 0; j < n_centers; ++j)
            view_.largest_sq_norm = std::max(view_.largest_sq_norm, std::abs(sq_norms_wide_[std::size_t(j)]));
        for (int64_t j = n_centers; j < n_padded_; ++j) pad(j);
        view_.n_centers = n_centers;
        view_.n_padded = n_padded_;
        view_.n_features = source.n_features;
        view_.panels = panels_.get();
        view_.sq_norms = sq_norms_.get();
        view_.sq_norms_wide = sq_norms_wide_.get();
        view_.rows = rows_.get();
        if constexpr (is_rounded)
            view_.rows_wide = rows_wide_.get();
        else
            view_.rows_wide = rows_.get();
    }

    const Centers<T>& view() const { return view_; }

  private:
    static constexpr int64_t values_at_once = 1 << 16;  // fewer are packed before a thread is awake
    static constexpr bool is_rounded = !std::is_same_v<T, double>;

    void pack(int64_t j) {
        const bool is_as_read = plan_.direct || is_affine(source_);
        double norm = is_affine(source_) ? raw(j, source_.n_features) * units_.unit * units_.unit : 0;
        for (int64_t f = 0; f < source_.n_features; ++f) {
            const double wide = in_frame(j, f);
            const std::size_t at = std::size_t(j * plan_.padded_features + f);
            const T value = rows_[at] = T(wide);
            if (is_rounded) rows_wide_[at] = wide;
            in_panel(j, f) = is_as_read ? value : T(-2) * value;
            if (!is_affine(source_)) norm += double(value) * double(value);
        }
        take_norm(j, norm);
    }

    // Centers of the padding are infinitely far: their coordinates where distances are direct, else their
    // norms.
    void pad(int64_t j) {
        for (int64_t f = 0; plan_.direct && f < source_.n_features; ++f)
            in_panel(j, f) = std::numeric_limits<T>::infinity();
        take_norm(j, std::numeric_limits<double>::infinity());
    }

    void take_norm(int64_t j, double norm) {
        sq_norms_wide_[std::size_t(j)] = norm;
        sq_norms_[std::size_t(j)] = T(norm);
    }

    double raw(int64_t j, int64_t f) const {
        return raw_[j * (source_.n_features + (is_affine(source_) ? 1 : 0)) + f];
    }

    double in_frame(int64_t j, int64_t f) const {
        if (is_affine(source_)) return -raw(j, f) * units_.unit / units_.scale * units_.unit;
        return raw(j, f) * units_.scale - source_.frame.origin_of(f) * units_.scale;
    }

    T& in_panel(int64_t j, int64_t f) {
        constexpr int64_t width = unit_lanes<T>;
        const int64_t dense = (j / width * source_.n_features + f) * width + j % width;
        return panels_[std::size_t(Source::is_dense ? dense : f * n_padded_ + j)];
    }

    const Source& source_;
    const Plan& plan_;
    const double* raw_;
    const Units units_;
    int64_t n_padded_;
    Aligned<T> panels_, rows_;
    Aligned<double> rows_wide_;  // only where T is not double
    Aligned<T> sq_norms_;
    Aligned<double> sq_norms_wide_;
    Centers<T> view_{};
};

// Returns what prices or shares add to squared distances: a Gaussian with a small share counts as farther
// away.
template <class T>
Aligned<T> offsets_of(const Request<T>& request, int64_t n_padded, double sharpness, double unit) {
    if (!request.shares && !request.prices) return {};
    constexpr double most = std::numeric_limits<T>::max();
    Aligned<T> offsets(static_cast<std::size_t>(n_padded));
    for (int64_t j = 0; j < request.n_centers; ++j) {
        const double offset =
            request.prices ? request.prices[j] * unit * unit : -std::log(request.shares[j]) / sharpness;
        offsets[std::size_t(j)] = T(std::clamp(offset, -most, most));
    }
    return offsets;
}

}  // namespace powermeans
