// The centers of a sweep in bytes, in the layout that products of codes read.
#pragma once

#include <cstdint>

#include "kernels/sketches.hpp"
#include "threads/aligned.hpp"

namespace powermeans {

class SketchedCenters {
  public:
    SketchedCenters() = default;
    // `rows` are (n_centers, row_width), of which the first `width` features may differ from zero.
    SketchedCenters(const double* rows, int64_t n_centers, int64_t row_width, int64_t width);

    const CenterSketches& view() const { return view_; }

  private:
    void put(int64_t center, const uint8_t* codes, double step, double error, double sq_norm);

    Aligned<int8_t> panels_;
    Aligned<int32_t> offsets_;
    Aligned<float> steps_, errors_, sq_norms_, norm_changes_, lengths_;
    CenterSketches view_{};
};

}  // namespace powermeans
