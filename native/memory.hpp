// What a hard sweep leaves for the next one: each point's center, and how near others may be.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "kernels.hpp"

namespace powermeans {

template <class T>
class Memory {
  public:
    // One sweep at a time may hold it; one that cannot goes without.
    std::unique_lock<std::mutex> try_to_hold() { return std::unique_lock(held_, std::try_to_lock); }

    // Looks at how the centers have moved, and forgets what is too old to help. With `afresh` every
    // point is compared with all centers. The result points into this.
    Recall<T> recall(const T* values, int64_t n_points, int64_t n_features, const double* centers,
                     int64_t n_centers, double scale, bool afresh);

    // The sweep is complete: what it left belongs to these centers.
    void keep(const double* centers, int64_t n_centers, int64_t n_features);

  private:
    void follow_centers(const double* centers, int64_t n_centers, int64_t n_features, double scale);
    bool choose_movers(const T* values, int64_t n_points, int64_t n_features, const double* centers,
                       int64_t n_centers, double scale);

    std::mutex held_;
    std::vector<int32_t> label_;
    std::vector<T> others_;
    std::vector<double> centers_;  // of the sweep before; empty when there was none
    std::vector<int32_t> own_, movers_;
    std::vector<double> shift_;  // by new center, infinite where it is nobody's
    double rest_shift_ = 0;
    int64_t step_ = 1;            // of every so many points to judge by
    bool remembers_all_ = false;  // and not those alone
};

}  // namespace powermeans
