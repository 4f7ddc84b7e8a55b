// What a hard sweep leaves for the next one: each point's center, and a lower bound on its distance to all
// others. From how the centers have moved since, the next one knows which points can keep their center.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "kernels/sweep_kernels.hpp"

namespace powermeans {

template <class T>
class LastSweep {
  public:
    // One sweep at a time may hold it; one that cannot goes without.
    std::unique_lock<std::mutex> try_to_hold() { return std::unique_lock(held_, std::try_to_lock); }

    // Looks at how the centers have moved, and forgets what is too old to help. A spread compares every
    // point with all centers. The result points into this.
    Bounds<T> bounds_for(const T* values, int64_t n_points, int64_t n_features, const Request<T>& request,
                         double scale);

    // The sweep is complete: what it left belongs to these centers.
    void keep(const Request<T>& request, int64_t n_features);

  private:
    void follow_centers(const double* centers, int64_t n_centers, int64_t n_features, double scale);
    bool choose_movers(const T* values, int64_t n_points, int64_t n_features, const double* centers,
                       int64_t n_centers, double scale);

    std::mutex held_;
    std::vector<int32_t> labels_;
    std::vector<T> lower_;
    std::vector<double> centers_;  // of the last sweep; empty when there was none
    std::vector<int32_t> new_index_, movers_;
    std::vector<double> shift_;  // by new center, infinite where it is nobody's
    double rest_shift_ = 0;
    int64_t step_ = 1;         // one point in so many is a sample to judge by
    bool bounds_all_ = false;  // and not the sample only
};

}  // namespace powermeans
