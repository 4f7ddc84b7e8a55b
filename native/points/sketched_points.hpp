// The sketches of points in memory, which seeding and hard sweeps share.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/sketches.hpp"
#include "points/entries.hpp"
#include "points/frame.hpp"
#include "threads/forks.hpp"
#include "threads/team.hpp"

namespace powermeans {

// Made at the first call and then kept.
template <class V>
class SketchedPoints {
  public:
    // Every call gives the same points. `origin` has an entry for each feature.
    const Sketches& made_of(const Entries<V>& values, int64_t n_points, int64_t n_features,
                            const Frame& frame, Team& team);

    // Whether sketches take little memory beside the points, and products of codes fit their type.
    static bool are_affordable(const Entries<V>& values, int64_t n_points, int64_t n_features);

  private:
    struct Made {
        std::unique_ptr<uint8_t[]> codes;  // not set to zero first, which would take as long as a sketch
        std::unique_ptr<double[]> steps, errors, norms;
        std::unique_ptr<int32_t[]> sq_norms;
        Sketches view{};
        Made(int64_t n_points, int64_t n_features);
    };
    MadeOnce<Made> made_;
};

}  // namespace powermeans
