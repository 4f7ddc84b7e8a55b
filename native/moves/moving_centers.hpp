// Centers that move with each point that joins or leaves their cluster, and what a look at a point tells of its
// distances to them. All is float64 and adds up in an order that no instruction set changes.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "dispatch.hpp"
#include "moves/phi.hpp"
#include "points/frame.hpp"
#include "points/source.hpp"

namespace powermeans {

// A move that gains less than this share of what the point contributes may be rounding.
constexpr double least_gain_of_a_move = 1e-9;
// A cluster keeps at least this share of its weight, so that its center has digits left.
constexpr double least_share = 1e-10;
constexpr int64_t most_neighbours = 12;

// Returns a power of two that keeps squares of differences within the range.
template <class Source>
double scale_with(const Source& source, const double* centers, int64_t n_centers) {
    double largest_origin = 0, largest_center = 0;
    for (double value : source.frame.origin) largest_origin = std::max(largest_origin, std::abs(value));
    for (int64_t i = 0; i < n_centers * source.n_features; ++i)
        largest_center = std::max(largest_center, std::abs(centers[i]));
    return scale_for<double>(std::max(source.frame.extent + largest_origin, largest_center));
}

// What a point of this weight costs its cluster, or would cost another, for each weight.
template <class Centers>
struct EuclideanCosts {
    static constexpr bool is_euclidean = true;

    template <class Look>
    double relief(const Look&, int64_t, double sq_own, double all, double weight) const {
        return all / (all - weight) * sq_own;
    }
    template <class Look>
    double burden(const Look& look, int64_t j, double all, double weight, double) const {
        return all / (all + weight) * static_cast<const Centers*>(this)->sq_dist(look, j);
    }
};

// ---- Dense points -------------------------------------------------------------------------------

// Few features add up one by one.
constexpr int64_t least_features_in_lanes = 6;

inline int64_t width_of(int64_t n_features) {
    const int64_t step = pair_distance_step;
    return n_features < least_features_in_lanes ? n_features : (n_features + step - 1) / step * step;
}

inline double sq_distance(PairDistance in_lanes, const double* a, const double* b, int64_t width) {
    if (width >= pair_distance_step) return in_lanes(a, b, width);
    double sum = 0;
    for (int64_t f = 0; f < width; ++f) sum += (a[f] - b[f]) * (a[f] - b[f]);
    return sum;
}

// Centers, and what a look at a point tells of its distances to them.
template <class V>
class MovingDenseCenters : public EuclideanCosts<MovingDenseCenters<V>> {
  public:
    using Look = std::vector<double>;   // the point, (width,)
    using State = std::vector<double>;  // a center, (width,)

    // `n_spare` more centers have no place yet.
    MovingDenseCenters(const DenseSource<V>& source, const Phi& phi, const double* centers, int64_t n_centers,
                       int64_t n_spare = 0)
        : source_(source),
          pair_distance_(chosen_instruction_set().pair_kernels->distance),
          n_features_(source.n_features),
          width_(width_of(n_features_)),
          scale_(scale_with(source, centers, n_centers)),
          unit_(phi.square / scale_ / scale_),
          centers_(std::size_t((n_centers + n_spare) * width_)),
          sums_(centers_.size()) {
        for (int64_t j = 0; j < n_centers; ++j)
            for (int64_t f = 0; f < n_features_; ++f)
                centers_[std::size_t(j * width_ + f)] = centers[j * n_features_ + f] * scale_;
    }

    Look new_look() const { return Look(std::size_t(width_)); }

    void look_at(int64_t i, Look& look) const {
        for_each_entry(source_.values, i * n_features_, n_features_,
                       [&](int64_t f, V value) { look[std::size_t(f)] = double(value) * scale_; });
    }

    // Squared distances are in this unit, which moves do not depend on.
    double unit() const { return unit_; }

    double sq_dist(const Look& look, int64_t j) const {
        return sq_distance(pair_distance_, look.data(), center(j), width_);
    }

    double sq_dist_between(int64_t j, int64_t other) const {
        return sq_distance(pair_distance_, center(j), center(other), width_);
    }

    double sq_dist_from(const State& state, int64_t j) const {
        return sq_distance(pair_distance_, state.data(), center(j), width_);
    }

    // Returns what rounding may change in a difference of these squared distances.
    double rounding(const Look&, double sq_a, double sq_b) const {
        return 4 * std::numeric_limits<double>::epsilon() * std::sqrt(double(n_features_)) *
               (std::sqrt(sq_a) + std::sqrt(sq_b));
    }

    // Moves a center towards the point, or away from it if the rate is negative.
    void shift(int64_t j, double rate, int64_t, const Look& look) {
        double* at = centers_.data() + j * width_;
        for (int64_t f = 0; f < n_features_; ++f) at[f] += rate * (look[std::size_t(f)] - at[f]);
    }

    // Sums of differences from the center lose no digits to a mean far from zero.
    void begin_sum(int64_t j) { std::fill_n(sums_.begin() + j * width_, width_, 0.0); }
    void begin_sums() { std::fill(sums_.begin(), sums_.end(), 0.0); }
    void add(int64_t j, double weight, int64_t i) {
        const double* at = center(j);
        double* sum = sums_.data() + j * width_;
        for_each_entry(source_.values, i * n_features_, n_features_,
                       [&](int64_t f, V value) { sum[f] += weight * (double(value) * scale_ - at[f]); });
    }
    void end_sums(int64_t j, double weight) {
        for (int64_t f = j * width_; f < (j + 1) * width_; ++f)
            centers_[std::size_t(f)] += sums_[std::size_t(f)] / weight;
    }

    // Returns and sets what a center is.
    State state(int64_t j) const { return State(center(j), center(j) + width_); }
    void set_state(int64_t j, const State& state) {
        std::copy(state.begin(), state.end(), centers_.begin() + j * width_);
    }

    void store(int64_t n_centers, double* centers) const {
        for (int64_t j = 0; j < n_centers; ++j)
            for (int64_t f = 0; f < n_features_; ++f) centers[j * n_features_ + f] = center(j)[f] / scale_;
    }

  private:
    const double* center(int64_t j) const { return centers_.data() + j * width_; }

    const DenseSource<V>& source_;
    PairDistance pair_distance_;
    int64_t n_features_;
    int64_t width_;  // of a center: features, padded by zeros to whole steps if there are many
    double scale_, unit_;
    std::vector<double> centers_, sums_;  // (n_centers, width)
};

// ---- Sparse points ------------------------------------------------------------------------------

// Center j is factor j times column j of the directions, so that a point with few entries changes the factor
// and those entries only.
template <class V>
class MovingCsrCenters : public EuclideanCosts<MovingCsrCenters<V>> {
  public:
    using State = std::vector<double>;
    struct Look {
        std::vector<double> products;  // (n_centers,) of the point and the centers
        double sq_norm;
    };

    MovingCsrCenters(const CsrSource<V>& source, const Phi& phi, const double* centers, int64_t n_centers,
                     int64_t n_spare = 0)
        : source_(source),
          n_centers_(n_centers + n_spare),
          scale_(scale_with(source, centers, n_centers)),
          unit_(phi.square / scale_ / scale_),
          directions_(std::size_t(source.n_features * n_centers_)),
          factors_(std::size_t(n_centers_), 1.0),
          sq_norms_(std::size_t(n_centers_)) {
        for (int64_t j = 0; j < n_centers; ++j) {
            for (int64_t f = 0; f < source_.n_features; ++f)
                direction(j, f) = centers[j * source_.n_features + f] * scale_;
            measure(j);
        }
    }

    Look new_look() const { return {std::vector<double>(std::size_t(n_centers_)), 0}; }

    void look_at(int64_t i, Look& look) const {
        look.sq_norm = 0;
        std::fill(look.products.begin(), look.products.end(), 0.0);
        double* products = look.products.data();
        for (int64_t e = source_.row_starts[i]; e < source_.row_starts[i + 1]; ++e) {
            const double x = entry(e);
            const double* row = directions_.data() + source_.columns[e] * n_centers_;
            look.sq_norm += x * x;
#pragma GCC ivdep
            for (int64_t j = 0; j < n_centers_; ++j) products[j] += x * row[j];
        }
        for (int64_t j = 0; j < n_centers_; ++j) products[j] *= factors_[std::size_t(j)];
    }

    double unit() const { return unit_; }

    double sq_dist(const Look& look, int64_t j) const {
        return std::max(0.0, look.sq_norm - 2 * look.products[std::size_t(j)] + sq_norms_[std::size_t(j)]);
    }

    // Returns the squared distance less the squared norm of the point, which all its distances share.
    double sq_dist_less_point(const Look& look, int64_t j) const {
        return sq_norms_[std::size_t(j)] - 2 * look.products[std::size_t(j)];
    }

    double sq_dist_between(int64_t j, int64_t other) const {
        const double one = factors_[std::size_t(j)], two = factors_[std::size_t(other)];
        double sum = 0;
        for (const double* row = directions_.data(); row != directions_.data() + directions_.size();
             row += n_centers_)
            sum += (one * row[j] - two * row[other]) * (one * row[j] - two * row[other]);
        return sum;
    }
    double sq_dist_from(const State& state, int64_t j) const {
        double sum = 0;
        for (int64_t f = 0; f < source_.n_features; ++f) {
            const double difference = state[std::size_t(f)] -
                                      factors_[std::size_t(j)] * directions_[std::size_t(f * n_centers_ + j)];
            sum += difference * difference;
        }
        return sum;
    }

    double rounding(const Look& look, double sq_a, double sq_b) const {
        return 64 * std::numeric_limits<double>::epsilon() * (look.sq_norm + sq_a + sq_b);
    }

    void shift(int64_t j, double rate, int64_t i, const Look& look) {
        const double kept = 1 - rate;
        double& sq_norm = sq_norms_[std::size_t(j)];
        double& factor = factors_[std::size_t(j)];
        sq_norm = kept * kept * sq_norm + 2 * rate * kept * look.products[std::size_t(j)] +
                  rate * rate * look.sq_norm;
        factor *= kept;
        const bool is_lost = factor < least_factor || factor > 1 / least_factor;
        if (is_lost) fold(j);
        for (int64_t e = source_.row_starts[i]; e < source_.row_starts[i + 1]; ++e)
            direction(j, source_.columns[e]) += rate / factor * entry(e);
        if (is_lost) measure(j);
    }

    void begin_sum(int64_t j) {
        sums_.resize(directions_.size());
        for (int64_t f = 0; f < source_.n_features; ++f) sums_[std::size_t(f * n_centers_ + j)] = 0;
    }
    void begin_sums() { sums_.assign(directions_.size(), 0.0); }
    void add(int64_t j, double weight, int64_t i) {
        for (int64_t e = source_.row_starts[i]; e < source_.row_starts[i + 1]; ++e)
            sums_[std::size_t(source_.columns[e] * n_centers_ + j)] += weight * entry(e);
    }
    void end_sums(int64_t j, double weight) {
        factors_[std::size_t(j)] = 1;
        for (int64_t f = 0; f < source_.n_features; ++f)
            direction(j, f) = sums_[std::size_t(f * n_centers_ + j)] / weight;
        measure(j);
    }

    State state(int64_t j) {
        fold(j);
        State state(std::size_t(source_.n_features));
        for (int64_t f = 0; f < source_.n_features; ++f) state[std::size_t(f)] = direction(j, f);
        return state;
    }
    void set_state(int64_t j, const State& state) {
        factors_[std::size_t(j)] = 1;
        for (int64_t f = 0; f < source_.n_features; ++f) direction(j, f) = state[std::size_t(f)];
        measure(j);
    }

    void store(int64_t n_centers, double* centers) {
        for (int64_t j = 0; j < n_centers; ++j) {
            fold(j);
            for (int64_t f = 0; f < source_.n_features; ++f)
                centers[j * source_.n_features + f] = direction(j, f) / scale_;
        }
    }

  private:
    // Below this factor directions are so long that sums with them lose digits.
    static constexpr double least_factor = 1e-3;

    double entry(int64_t e) const { return double(source_.values[e]) * scale_; }
    double& direction(int64_t j, int64_t f) { return directions_[std::size_t(f * n_centers_ + j)]; }

    void fold(int64_t j) {
        double& factor = factors_[std::size_t(j)];
        for (int64_t f = 0; f < source_.n_features; ++f) direction(j, f) *= factor;
        factor = 1;
    }

    void measure(int64_t j) {
        double sum = 0;
        for (int64_t f = 0; f < source_.n_features; ++f) sum += direction(j, f) * direction(j, f);
        sq_norms_[std::size_t(j)] = sum;
    }

    const CsrSource<V>& source_;
    int64_t n_centers_;
    double scale_, unit_;
    std::vector<double> directions_, sums_;  // (n_features, n_centers)
    std::vector<double> factors_;            // (n_centers,)
    std::vector<double> sq_norms_;           // (n_centers,) of the centers
};

template <class Source>
using MovingCenters = std::conditional_t<Source::is_dense, MovingDenseCenters<typename Source::Stored>,
                                         MovingCsrCenters<typename Source::Stored>>;

}  // namespace powermeans
