#include "moves/online.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "kernels/rounding.hpp"
#include "moves/moving_centers.hpp"
#include "threads/aligned.hpp"

namespace powermeans {
namespace {

// A pass looks this often whether it is to end.
constexpr int64_t most_points_between_looks = 256;
constexpr int64_t work_between_looks = 1 << 22;

struct Winner {
    int64_t center;
    double sq_dist;
};

// ---- Dense points -------------------------------------------------------------------------------

constexpr int64_t lanes = 8, lanes_per_vector = 2, vectors = lanes / lanes_per_vector;
typedef double Vector __attribute__((vector_size(lanes_per_vector * sizeof(double))));

Vector load(const double* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof(vector));
    return vector;
}

// Centers in panels of eight, one in each lane, so that squared distances add up their features in order.
template <class V>
class DenseCenters {
  public:
    DenseCenters(const DenseSource<V>& source, const OnlineRequest& request)
        : values_(source.values),
          n_features_(source.n_features),
          n_centers_(request.n_centers),
          n_panels_(divide_up(request.n_centers, lanes)),
          scale_(scale_with(source, request.centers, request.n_centers)),
          point_(std::size_t(source.n_features)),
          panels_(std::size_t(n_panels_ * source.n_features * lanes)) {
        // No point is near to the padding.
        std::fill_n(panels_.get(), n_panels_ * n_features_ * lanes, std::numeric_limits<double>::infinity());
        for (int64_t j = 0; j < n_centers_; ++j)
            for (int64_t f = 0; f < n_features_; ++f)
                coordinate(j, f) = request.centers[j * n_features_ + f] * scale_;
    }

    Winner nearest_to(int64_t i) {
        for_each_entry(values_, i * n_features_, n_features_,
                       [&](int64_t f, V value) { point_[std::size_t(f)] = double(value) * scale_; });
        Winner winner{0, std::numeric_limits<double>::infinity()};
        for (int64_t panel = 0; panel < n_panels_; ++panel) {
            double sq_dist[lanes];
            sq_distances_to(panel, sq_dist);
            for (int64_t lane = 0; lane < lanes; ++lane)
                if (sq_dist[lane] < winner.sq_dist) winner = {panel * lanes + lane, sq_dist[lane]};
        }
        return winner;
    }

    // Moves towards the point of the last nearest_to.
    void move(int64_t center, double rate) {
        for (int64_t f = 0; f < n_features_; ++f) {
            double& value = coordinate(center, f);
            value += rate * (point_[std::size_t(f)] - value);
        }
    }

    void store(double* centers) {
        for (int64_t j = 0; j < n_centers_; ++j)
            for (int64_t f = 0; f < n_features_; ++f)
                centers[j * n_features_ + f] = coordinate(j, f) / scale_;
    }

    // Squared distances are in this unit.
    double unit() const { return 1 / scale_ / scale_; }

  private:
    double& coordinate(int64_t center, int64_t f) {
        return panels_[std::size_t((center / lanes * n_features_ + f) * lanes + center % lanes)];
    }

    void sq_distances_to(int64_t panel, double* sq_dist) const {
        const double* column = panels_.get() + panel * n_features_ * lanes;
        Vector sums[vectors] = {};
        for (int64_t f = 0; f < n_features_; ++f, column += lanes)
            for (int64_t v = 0; v < vectors; ++v) {
                const Vector difference = point_[std::size_t(f)] - load(column + v * lanes_per_vector);
                sums[v] += difference * difference;
            }
        std::memcpy(sq_dist, sums, sizeof(sums));
    }

    Entries<V> values_;
    int64_t n_features_, n_centers_, n_panels_;
    double scale_;
    std::vector<double> point_;
    Aligned<double> panels_;  // (n_panels, n_features, lanes)
};

// ---- Sparse points ------------------------------------------------------------------------------

// Centers as in moves, whose distances lack what all of a point have alike.
template <class V>
class CsrCenters {
  public:
    CsrCenters(const CsrSource<V>& source, const OnlineRequest& request)
        : n_centers_(request.n_centers),
          centers_(source, {1, 0, 0, 0, 0}, request.centers, request.n_centers),
          look_(centers_.new_look()) {}

    Winner nearest_to(int64_t i) {
        point_ = i;
        centers_.look_at(i, look_);
        Winner winner{0, std::numeric_limits<double>::infinity()};
        for (int64_t j = 0; j < n_centers_; ++j) {
            const double sq_dist = centers_.sq_dist_less_point(look_, j);
            if (sq_dist < winner.sq_dist) winner = {j, sq_dist};
        }
        winner.sq_dist = std::max(0.0, winner.sq_dist + look_.sq_norm);
        return winner;
    }

    // Moves towards the point of the last nearest_to.
    void move(int64_t center, double rate) { centers_.shift(center, rate, point_, look_); }

    void store(double* centers) { centers_.store(n_centers_, centers); }

    double unit() const { return centers_.unit(); }

  private:
    int64_t n_centers_;
    MovingCsrCenters<V> centers_;
    typename MovingCsrCenters<V>::Look look_;
    int64_t point_ = 0;
};

double weight_of(const OnlineRequest& request, int64_t i) {
    return request.sample_weight ? request.sample_weight[i] * request.weight_unit : 1.0;
}

// A weight counts copies of the point, each of which makes a step of this rate.
double rate_of_copies(double rate, double weight) {
    return weight == 1 ? rate : 1 - std::pow(1 - rate, weight);
}

void require_enough_rates(const OnlineRequest& request, int64_t n_points) {
    int64_t n_steps = 0;
    for (int64_t i = 0; i < n_points; ++i) n_steps += weight_of(request, i) > 0;
    if (n_steps > request.n_rates) throw std::invalid_argument("rates must have one entry for each step");
}

}  // namespace

template <class Source>
double present(const Source& source, const OnlineRequest& request, const Interrupt& in_between) {
    if (request.rates) require_enough_rates(request, source.n_points);
    using V = typename Source::Stored;
    std::conditional_t<Source::is_dense, DenseCenters<V>, CsrCenters<V>> centers(source, request);
    double inertia = 0;
    const double* rate = request.rates;
    const int64_t work = request.n_centers * (source.stored_per_point() + 16);
    const int64_t points_between_looks =
        std::clamp<int64_t>(work_between_looks / work, 1, most_points_between_looks);
    for (int64_t place = 0; place < source.n_points; ++place) {
        if (place % points_between_looks == 0) in_between();
        const int64_t i = request.order ? request.order[place] : place;
        const double weight = weight_of(request, i);
        if (!(weight > 0)) continue;
        const Winner winner = centers.nearest_to(i);
        double& count = request.counts[winner.center];
        count += weight;
        centers.move(winner.center, rate ? rate_of_copies(*rate++, weight) : weight / count);
        inertia += weight * winner.sq_dist;
    }
    centers.store(request.centers);
    return inertia * centers.unit();
}

template double present(const DenseSource<float>&, const OnlineRequest&, const Interrupt&);
template double present(const DenseSource<double>&, const OnlineRequest&, const Interrupt&);
template double present(const CsrSource<float>&, const OnlineRequest&, const Interrupt&);
template double present(const CsrSource<double>&, const OnlineRequest&, const Interrupt&);

}  // namespace powermeans
