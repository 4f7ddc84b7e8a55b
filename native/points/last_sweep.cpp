#include "points/last_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace powermeans {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int64_t sampled_points = 128;
// The cost for a point to be compared with its own center, and with each of the movers, which fill whole
// units. A comparison with all centers costs one for each of them.
constexpr double cost_of_own = 6.0;
constexpr double cost_of_a_mover = 2.0;
// Bounds are not used above this share of the cost of comparing every point with every center.
constexpr double worthwhile_share = 0.8;

template <class A, class B>
double distance(const A* a, const B* b, int64_t n_features, double scale) {
    double sums[4] = {};
    for (int64_t f = 0; f < n_features; ++f) {
        const double difference = (double(a[f]) - double(b[f])) * scale;
        sums[f % 4] += difference * difference;
    }
    return std::sqrt(sums[0] + sums[1] + sums[2] + sums[3]);
}

}  // namespace

template <class T>
Bounds<T> LastSweep<T>::bounds_for(const Entries<T>& values, int64_t n_points, int64_t n_features,
                                   const Request<T>& request, double scale) {
    labels_.resize(std::size_t(n_points));
    lower_.resize(std::size_t(n_points));
    step_ = std::max<int64_t>(1, n_points / sampled_points);
    const bool afresh = request.task == Task::spread;
    bool is_worthwhile = false;
    movers_.clear();
    if (!centers_.empty() && !afresh) {
        follow_centers(request.raw_centers, request.n_centers, n_features, scale);
        is_worthwhile =
            choose_movers(values, n_points, n_features, request.raw_centers, request.n_centers, scale);
    }
    // No coordinate of a point or a center is above one, so that rounding grows with the dimension only.
    const double rounding = 16 * double(std::numeric_limits<T>::epsilon()) * std::sqrt(double(n_features));
    Bounds<T> bounds{};
    bounds.labels = labels_.data();
    bounds.lower = lower_.data();
    bounds.new_index = new_index_.data();
    bounds.movers = movers_.data();
    bounds.n_movers = int64_t(movers_.size());
    bounds.rest_shift = rest_shift_ + rounding;
    bounds.rounding = rounding;
    bounds.scale = scale;
    bounds.is_known = is_worthwhile && bounds_all_;
    // If bounds for all points would have paid now, they will pay next time.
    bounds_all_ = is_worthwhile || afresh;
    bounds.step = bounds_all_ ? 1 : step_;
    centers_.clear();  // until this sweep is complete
    return bounds;
}

template <class T>
void LastSweep<T>::keep(const Request<T>& request, int64_t n_features) {
    centers_.assign(request.raw_centers, request.raw_centers + request.n_centers * n_features);
}

// Matches the centers with those of the last sweep. Centers keep their order, though some may have been
// taken out, and others put at the end.
template <class T>
void LastSweep<T>::follow_centers(const double* centers, int64_t n_centers, int64_t n_features,
                                  double scale) {
    const int64_t n_before = int64_t(centers_.size()) / n_features;
    const int64_t n_missing = std::max<int64_t>(0, n_before - n_centers);
    new_index_.assign(std::size_t(n_before), -1);
    shift_.assign(std::size_t(n_centers), infinity);
    int64_t first = 0;
    for (int64_t j = 0; j < n_centers && first < n_before; ++j) {
        int64_t nearest = first;
        for (int64_t a = first; a <= std::min(j + n_missing, n_before - 1); ++a) {
            const double shift =
                distance(centers + j * n_features, centers_.data() + a * n_features, n_features, scale);
            if (shift >= shift_[std::size_t(j)]) continue;
            shift_[std::size_t(j)] = shift;
            nearest = a;
        }
        new_index_[std::size_t(nearest)] = int32_t(j);
        first = nearest + 1;
    }
}

// Chooses the centers that moved farthest, to be compared with every point: as many as make the sweep
// cheapest for a sample of the points.
template <class T>
bool LastSweep<T>::choose_movers(const Entries<T>& values, int64_t n_points, int64_t n_features,
                                 const double* centers, int64_t n_centers, double scale) {
    std::vector<double> gaps;
    std::vector<T> row(static_cast<std::size_t>(n_features));
    for (int64_t i = 0; i < n_points; i += step_) {
        const int64_t own = new_index_[std::size_t(labels_[std::size_t(i)])];
        const T* point = entries_at(values, i * n_features, n_features, row.data());
        gaps.push_back(own < 0 ? -infinity
                               : double(lower_[std::size_t(i)]) * scale -
                                     distance(point, centers + own * n_features, n_features, scale));
    }
    std::sort(gaps.begin(), gaps.end());
    std::vector<int32_t> by_shift(static_cast<std::size_t>(n_centers));
    std::iota(by_shift.begin(), by_shift.end(), 0);
    std::stable_sort(by_shift.begin(), by_shift.end(),
                     [&](int32_t a, int32_t b) { return shift_[std::size_t(a)] > shift_[std::size_t(b)]; });
    double least_cost = worthwhile_share * double(n_centers);
    int64_t n_movers = -1;
    for (int64_t n = 0; n < n_centers; n += unit_lanes<T>) {
        const double rest = shift_[std::size_t(by_shift[std::size_t(n)])];
        const auto settled = gaps.end() - std::upper_bound(gaps.begin(), gaps.end(), rest);
        const double share_left = 1 - double(settled) / double(gaps.size());
        const double n_padded = std::ceil(double(n) / unit_lanes<T>) * unit_lanes<T>;
        const double cost = cost_of_own + cost_of_a_mover * n_padded + share_left * double(n_centers);
        if (cost >= least_cost) continue;
        least_cost = cost;
        n_movers = n;
        rest_shift_ = rest;
    }
    if (n_movers < 0) return false;
    movers_.assign(by_shift.begin(), by_shift.begin() + n_movers);
    std::sort(movers_.begin(), movers_.end());
    return true;
}

template class LastSweep<float>;
template class LastSweep<double>;

}  // namespace powermeans
