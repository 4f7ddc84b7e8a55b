// Centers by Bregman divergences that move with each point that joins or leaves their cluster. With the error
// sum w D(x, mean) of a cluster of weight W, a point of weight w that joins adds
//     w D(x, mean') + W D(mean, mean')
// to it, where mean' is the mean with the point, and one that leaves takes as much away, where mean' is the mean
// before it left (Telgarsky and Vattani 2010, "Hartigan's method"). No term is negative, so nothing cancels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "dispatch.hpp"
#include "moves/moving_centers.hpp"
#include "moves/phi.hpp"
#include "points/source.hpp"

namespace powermeans {

// ---- Divergences --------------------------------------------------------------------------------

struct LookAtPoint {
    std::vector<double> point;  // (width,)
    double size;                // rounding is in proportion to its root
};

inline int64_t padded(int64_t n_features) {
    return (n_features + pair_distance_step - 1) / pair_distance_step * pair_distance_step;
}

// A sum over the features of numbers of at least zero.
class OfFeatures {
  public:
    static constexpr double padding = 1;  // adds nothing

    OfFeatures(const Phi& phi, int64_t n_features, int64_t)
        : unit_(largest(phi)),
          phi_{phi.square / unit_, phi.x_log_x / unit_, phi.minus_log / unit_, phi.inverse / unit_, 0},
          lowest_share_(phi.minus_log > 0 || phi.inverse > 0 ? 0x1p-52 : 0),
          n_features_(n_features),
          width_(padded(n_features)) {
        const PairKernels& kernels = *chosen_instruction_set().pair_kernels;
        const Term all[] = {{phi_.square, kernels.square},
                            {phi_.x_log_x, kernels.x_log_x},
                            {phi_.minus_log, kernels.minus_log},
                            {phi_.inverse, kernels.inverse}};
        for (const Term& term : all)
            if (term.factor > 0) terms_.push_back(term);
    }

    // Divergences are in this unit, which moves do not depend on.
    double unit() const { return unit_; }

    // Where no mean is zero, one that rounds to less keeps about the digits that it has left.
    double lowest(double before) const { return lowest_share_ * before; }

    void note(int64_t, const double*) {}

    // The size is the sum of x^2 times half of the second derivative, or up to twice that.
    void prepare(LookAtPoint& look) const {
        const double *begin = look.point.data(), *end = begin + n_features_;
        look.size = phi_.minus_log * double(n_features_);
        if (phi_.x_log_x > 0) look.size += phi_.x_log_x * std::accumulate(begin, end, 0.0);
        if (phi_.inverse > 0)
            for (const double* x = begin; x < end; ++x) look.size += 2 * phi_.inverse / *x;
        if (phi_.square > 0)
            for (const double* x = begin; x < end; ++x) look.size += 2 * phi_.square * *x * *x;
    }

    double distance(const LookAtPoint& look, int64_t, const double* mean) const {
        return cost(look.point.data(), mean, 0, 0, infinite);
    }
    double relief(const LookAtPoint& look, int64_t, const double* mean, double all, double weight) const {
        return cost(look.point.data(), mean, 0, weight / (all - weight), infinite);
    }
    double burden(const LookAtPoint& look, int64_t, const double* mean, double all, double weight,
                  double limit) const {
        return cost(look.point.data(), mean, weight / (all + weight), weight / all, limit);
    }
    double between(int64_t, const double* mean, int64_t, const double* other) const {
        return cost(mean, other, 0.5, 1, infinite);
    }

  private:
    struct Term {
        double factor;
        PointCost cost;
    };

    static double largest(const Phi& phi) {
        return std::max(std::max(phi.square, phi.x_log_x), std::max(phi.minus_log, phi.inverse));
    }

    double cost(const double* point, const double* mean, double share, double back, double limit) const {
        if (terms_.size() == 1) return terms_[0].cost(point, mean, width_, share, back, limit);
        double sum = 0;
        for (const Term& term : terms_)
            sum += term.factor * term.cost(point, mean, width_, share, back, (limit - sum) / term.factor);
        return sum;
    }

    static constexpr double infinite = std::numeric_limits<double>::infinity();
    double unit_;
    Phi phi_;  // in the unit
    double lowest_share_;
    int64_t n_features_, width_;
    std::vector<Term> terms_;  // one of them has the factor one
};

// |x| - <x, m> / |m|, the divergence of the length: one minus the cosine for points of unit length. Below, a and
// b are the lengths of the sum of a cluster and of the weighted point, and h is one minus their cosine.
class OfLength {
  public:
    static constexpr double padding = 0;

    OfLength(const Phi& phi, int64_t n_features, int64_t n_centers)
        : unit_(phi.length),
          width_(padded(n_features)),
          pair_distance_(chosen_instruction_set().pair_kernels->distance),
          lengths_(std::size_t(n_centers)),
          directions_(std::size_t(n_centers * width_)) {}

    double unit() const { return unit_; }
    double lowest(double) const { return -std::numeric_limits<double>::infinity(); }

    void note(int64_t j, const double* mean) {
        lengths_[std::size_t(j)] = to_direction(mean, directions_.data() + j * width_);
    }

    // Replaces the point by its direction.
    void prepare(LookAtPoint& look) const { look.size = to_direction(look.point.data(), look.point.data()); }

    double distance(const LookAtPoint& look, int64_t j, const double*) const {
        return look.size * apart(look, j);
    }

    double relief(const LookAtPoint& look, int64_t j, const double*, double all, double weight) const {
        const double a = all * lengths_[std::size_t(j)], b = weight * look.size, h = apart(look, j);
        const double left = std::sqrt((a - b) * (a - b) + 2 * a * b * h);
        const double along = a * b * (1 - h) - b * b;
        const double across =
            along > 0 ? a * b * (a * b) * h * (2 - h) / (left * b + along) : left * b - along;
        return a + b > 0 ? 2 * across / (left + b + a) / weight : 0;
    }

    double burden(const LookAtPoint& look, int64_t j, const double*, double all, double weight,
                  double) const {
        return rise(all * lengths_[std::size_t(j)], weight * look.size, apart(look, j)) / weight;
    }

    double between(int64_t j, const double*, int64_t other, const double*) const {
        const double* directions = directions_.data();
        const double h = pair_distance_(directions + j * width_, directions + other * width_, width_) / 2;
        return rise(lengths_[std::size_t(j)], lengths_[std::size_t(other)], h);
    }

  private:
    double apart(const LookAtPoint& look, int64_t j) const {
        return pair_distance_(look.point.data(), directions_.data() + j * width_, width_) / 2;
    }

    // Returns a + b less the length of the sum.
    static double rise(double a, double b, double h) {
        const double sum = std::sqrt((a - b) * (a - b) + 2 * a * b * (2 - h));
        return a + b > 0 ? 2 * a * b * h / (a + b + sum) : 0;
    }

    double to_direction(const double* from, double* to) const {
        double sq_length = 0;
        for (int64_t f = 0; f < width_; ++f) sq_length += from[f] * from[f];
        const double length = std::sqrt(sq_length), unit = length > 0 ? 1 / length : 0;
        for (int64_t f = 0; f < width_; ++f) to[f] = unit * from[f];
        return length;
    }

    double unit_;
    int64_t width_;
    PairDistance pair_distance_;
    std::vector<double> lengths_, directions_;  // of the centers
};

// ---- Centers ------------------------------------------------------------------------------------

// Writes a point to the first n_features entries; sparse points are filled up, so that they give the bits of
// dense ones. A function of the run keeps all that follows from being compiled for each type of points.
using ReadPoint = std::function<void(int64_t, std::vector<double>&)>;

template <class V>
ReadPoint reader_of(const DenseSource<V>& source) {
    return [&source](int64_t i, std::vector<double>& point) {
        for_each_entry(source.values, i * source.n_features, source.n_features,
                       [&](int64_t f, V value) { point[std::size_t(f)] = double(value); });
    };
}

template <class V>
ReadPoint reader_of(const CsrSource<V>& source) {
    return [&source](int64_t i, std::vector<double>& point) {
        std::fill_n(point.begin(), source.n_features, 0.0);
        for (int64_t e = source.row_starts[i]; e < source.row_starts[i + 1]; ++e)
            point[std::size_t(source.columns[e])] = double(source.values[e]);
    };
}

// See `MovingDenseCenters`.
template <class Divergence>
class MovingBregmanCenters {
  public:
    static constexpr bool is_euclidean = false;
    using State = std::vector<double>;  // a center, (width,)
    using Look = LookAtPoint;

    template <class Source>
    MovingBregmanCenters(const Source& source, const Phi& phi, const double* centers, int64_t n_centers,
                         int64_t n_spare = 0)
        : read_(reader_of(source)),
          n_features_(source.n_features),
          width_(padded(n_features_)),
          centers_(std::size_t((n_centers + n_spare) * width_), Divergence::padding),
          sums_(centers_.size()),
          row_(std::size_t(width_), Divergence::padding),
          divergence_(phi, n_features_, n_centers + n_spare) {
        for (int64_t j = 0; j < n_centers; ++j) {
            std::copy_n(centers + j * n_features_, n_features_, at(j));
            divergence_.note(j, at(j));
        }
    }

    Look new_look() const { return {std::vector<double>(std::size_t(width_), Divergence::padding), 0}; }

    void look_at(int64_t i, Look& look) const {
        read_(i, look.point);
        divergence_.prepare(look);
    }

    double unit() const { return divergence_.unit(); }
    double sq_dist(const Look& look, int64_t j) const { return divergence_.distance(look, j, at(j)); }
    double relief(const Look& look, int64_t j, double, double all, double weight) const {
        return divergence_.relief(look, j, at(j), all, weight);
    }
    double burden(const Look& look, int64_t j, double all, double weight, double limit) const {
        return all > 0 ? divergence_.burden(look, j, at(j), all, weight, limit) : 0;
    }

    // Returns twice what it costs to merge two clusters of weight one: the square of a metric.
    double sq_dist_between(int64_t j, int64_t other) const {
        return 2 * divergence_.between(j, at(j), other, at(other));
    }

    double rounding(const Look& look, double a, double b) const {
        return 16 * std::numeric_limits<double>::epsilon() * std::sqrt(look.size) *
               (std::sqrt(a) + std::sqrt(b));
    }

    void shift(int64_t j, double rate, int64_t i, const Look&) {
        read_(i, row_);
        double* center = at(j);
        for (int64_t f = 0; f < n_features_; ++f)
            center[f] = std::max(center[f] + rate * (row_[std::size_t(f)] - center[f]),
                                 divergence_.lowest(center[f]));
        divergence_.note(j, center);
    }

    void begin_sum(int64_t j) { std::fill_n(sums_.begin() + j * width_, width_, 0.0); }
    void begin_sums() { std::fill(sums_.begin(), sums_.end(), 0.0); }
    void add(int64_t j, double weight, int64_t i) {
        read_(i, row_);
        double* sum = sums_.data() + j * width_;
        for (int64_t f = 0; f < n_features_; ++f) sum[f] += weight * row_[std::size_t(f)];
    }
    void end_sums(int64_t j, double weight) {
        for (int64_t f = 0; f < n_features_; ++f) at(j)[f] = sums_[std::size_t(j * width_ + f)] / weight;
        divergence_.note(j, at(j));
    }

    State state(int64_t j) const { return State(at(j), at(j) + width_); }
    void set_state(int64_t j, const State& state) {
        std::copy(state.begin(), state.end(), at(j));
        divergence_.note(j, at(j));
    }

    void store(int64_t n_centers, double* centers) const {
        for (int64_t j = 0; j < n_centers; ++j) std::copy_n(at(j), n_features_, centers + j * n_features_);
    }

  private:
    const double* at(int64_t j) const { return centers_.data() + j * width_; }
    double* at(int64_t j) { return centers_.data() + j * width_; }

    ReadPoint read_;
    int64_t n_features_, width_;
    std::vector<double> centers_, sums_;  // (n_centers, width)
    std::vector<double> row_;             // (width,)
    Divergence divergence_;
};

template <class T>
struct Named {
    using Type = T;
};

// Calls `work` with the kind of centers of this divergence.
template <class Source, class Work>
auto with_centers(const Source&, const Phi& phi, const Work& work) {
    if (phi.length > 0) return work(Named<MovingBregmanCenters<OfLength>>{});
    if (phi.x_log_x > 0 || phi.minus_log > 0 || phi.inverse > 0)
        return work(Named<MovingBregmanCenters<OfFeatures>>{});
    return work(Named<MovingCenters<Source>>{});
}

}  // namespace powermeans
