// The memory that a worker of a sweep writes to: a workspace for one block of points, and the sums of one
// stripe. Both lie in the worker's arena.
#pragma once

#include <cstdint>

#include "kernels/rounding.hpp"
#include "sweep/plan.hpp"
#include "threads/arena.hpp"

namespace powermeans {

template <class T>
Workspace<T> take_workspace(Arena& arena, const SweepShape& shape, const Plan& plan, int64_t n_padded) {
    Workspace<T> work{};
    const int64_t block = plan.block_points, packed = block * plan.padded_features;
    if (shape.is_dense) {
        arena.take(work.row, shape.n_features);
        arena.take(work.packed, packed);
    }
    arena.take(work.dist, n_padded * (plan.grouped ? points_per_group : block));
    const bool folds = sizeof(T) == 4 && !plan.direct && shape.n_features > features_per_fold;
    if (folds) arena.take(work.folded, block * n_padded);
    // Kernels read whole vectors of these: the values beyond the last point must be numbers.
    for (double** per_point :
         {&work.sq_norms, &work.nearest, &work.second, &work.least, &work.softness, &work.factors})
        arena.take_filled(*per_point, round_up(block, unit_lanes<double>), 1.0);
    arena.take(work.labels, block);
    arena.take(work.tied, n_padded);
    arena.take(work.tied_dist, n_padded);
    if (plan.ordered) {
        arena.take(work.outer, n_padded);
        arena.take(work.inner, n_padded);
    }
    if (plan.ordered || plan.bounded) arena.take(work.outer_panels, n_padded * plan.padded_features);
    if (plan.lane_sums) arena.take(work.lane_sums, plan.lane_sums);
    if (plan.bounded) {
        arena.take(work.gathered, packed);
        arena.take(work.gathered_sq_norms, block);
        arena.take(work.left, block);
    }
    if (plan.prefiltered) {
        const int64_t n_sketched = round_up(n_padded, sketched_lanes);
        arena.take(work.products, sketched_together * n_sketched);
        arena.take(work.scores, n_sketched);
    }
    return work;
}

class StripeSums {
  public:
    PartialSums partial{};

    StripeSums(Arena& arena, const SweepShape& shape, const Plan& plan, int64_t n_padded)
        : n_padded_(n_padded) {
        if (shape.sums_points()) {
            sums_per_center_ = plan.sums_by_center ? plan.padded_features : 0;
            n_sums_ =
                plan.sums_by_center ? shape.n_centers * plan.padded_features : shape.n_features * n_padded;
        }
        arena.take_filled(partial.points, n_sums_, 0.0);
        for (const auto sums : by_center) arena.take_filled(partial.*sums, n_padded, 0.0);
    }

    // Returns where partial.points has the sum of a feature for a center.
    int64_t index(int64_t center, int64_t feature) const {
        return sums_per_center_ ? center * sums_per_center_ + feature : feature * n_padded_ + center;
    }

    void clear() {
        each_used(0, n_sums_, [this](int64_t first, int64_t last) {
            std::fill(partial.points + first, partial.points + last, 0.0);
        });
        for (const auto sums : by_center) std::fill_n(partial.*sums, n_padded_, 0.0);
        for (const auto sum : of_all) partial.*sum = 0;
        partial.n_changed = 0;
    }

    // How many stripes of a worker may wait for those before them.
    int n_places() const {
        return int(std::clamp<int64_t>(most_sums_waiting / (n_sums_ + 3 * n_padded_), 1, most_places));
    }

    // Sums are added in this many parts, by several threads.
    int64_t n_parts() const { return std::clamp<int64_t>(n_sums_ / sums_per_part, 1, most_parts); }

    void add(const StripeSums& other, int64_t part, int64_t n_parts) {
        const int64_t begin = n_sums_ * part / n_parts, end = n_sums_ * (part + 1) / n_parts;
        other.each_used(begin, end, [&](int64_t first, int64_t last) {
            for (int64_t i = first; i < last; ++i) partial.points[i] += other.partial.points[i];
        });
        if (part != 0) return;
        for (const auto sums : by_center)
            for (int64_t j = 0; j < n_padded_; ++j) (partial.*sums)[j] += (other.partial.*sums)[j];
        for (const auto sum : of_all) partial.*sum += other.partial.*sum;
        partial.n_changed += other.partial.n_changed;
    }

  private:
    // A part takes longer to add than a thread to see that it is its turn.
    static constexpr int64_t sums_per_part = 1 << 12;
    static constexpr int64_t most_parts = 32;
    // While another process has the processor of a worker, some milliseconds, the others fill so many.
    static constexpr int64_t most_places = 16, most_sums_waiting = 1 << 19;
    static constexpr double* PartialSums::* by_center[] = {&PartialSums::weights, &PartialSums::error,
                                                           &PartialSums::utility};
    static constexpr double PartialSums::* of_all[] = {&PartialSums::objective, &PartialSums::inertia,
                                                       &PartialSums::n_distances};

    // Calls visit(first, last) for ranges of the sums `begin` to `end` that are not zero: a stripe of the hard
    // rule may have points of few centers.
    template <class Visit>
    void each_used(int64_t begin, int64_t end, const Visit& visit) const {
        const int64_t step = sums_per_center_;
        if (!step) return visit(begin, end);
        for (int64_t j = begin / step; j * step < end; ++j)
            if (partial.weights[j] != 0) visit(std::max(begin, j * step), std::min(end, (j + 1) * step));
    }

    int64_t n_padded_;
    int64_t n_sums_ = 0;
    int64_t sums_per_center_ = 0;  // 0 where the sums of a center do not lie together
};

template <class T>
struct WorkerMemory {
    Workspace<T> work;
    StripeSums sums;

    WorkerMemory(Arena& arena, const SweepShape& shape, const Plan& plan, int64_t n_padded)
        : work(take_workspace<T>(arena, shape, plan, n_padded)), sums(arena, shape, plan, n_padded) {}
};

}  // namespace powermeans
