// What a hard sweep leaves for the next one: labels, by which that counts the points that change theirs, and
// a lower bound on the distance of each point to all other centers. The next sweep knows how far the centers
// have moved, and so which points keep their center.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "kernels/sweep_kernels.hpp"
#include "points/entries.hpp"

namespace powermeans {

// The labels of the last sweep that asked for sums, in the order in which it took the points.
class LastLabels {
  public:
    // One sweep at a time may use them.
    std::unique_lock<std::mutex> try_to_hold() { return std::unique_lock(held_, std::try_to_lock); }

    // Returns the labels, -1 where the last sweep took the points in another order or there was none.
    int32_t* in_order(const int32_t* order, int64_t n_points) {
        if (labels_.empty() || order_ != order) labels_.assign(std::size_t(n_points), -1);
        order_ = order;
        return labels_.data();
    }

  private:
    std::mutex held_;
    std::vector<int32_t> labels_;
    const int32_t* order_ = nullptr;
};

template <class T>
class LastSweep {
  public:
    // One sweep at a time may use it.
    std::unique_lock<std::mutex> try_to_hold() { return std::unique_lock(held_, std::try_to_lock); }

    // Returns bounds for a sweep with these centers, which point into this. A spread compares every point
    // with all centers.
    Bounds<T> bounds_for(const Entries<T>& values, int64_t n_points, int64_t n_features,
                         const Request<T>& request, double scale);

    // Says that the sweep is complete, so that the bounds it left belong to these centers.
    void keep(const Request<T>& request, int64_t n_features);

  private:
    void follow_centers(const double* centers, int64_t n_centers, int64_t n_features, double scale);
    bool choose_movers(const Entries<T>& values, int64_t n_points, int64_t n_features, const double* centers,
                       int64_t n_centers, double scale);

    std::mutex held_;
    std::vector<int32_t> labels_;
    std::vector<T> lower_;
    std::vector<double> centers_;  // of the last complete sweep; empty if there is none
    std::vector<int32_t> new_index_, movers_;
    std::vector<double> shift_;  // of each new center, infinite where it was none before
    double rest_shift_ = 0;
    int64_t step_ = 1;         // one point in `step_` is in the sample
    bool bounds_all_ = false;  // not only the sample
};

}  // namespace powermeans
