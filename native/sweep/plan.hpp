// Decides how a sweep is cut up and which shortcuts it takes. Every threshold stands in plan.cpp; another
// plan gives results that differ by rounding.
#pragma once

#include "kernels/sweep_kernels.hpp"

namespace powermeans {

// All that a plan depends on. Nothing here differs between machines, so that results do not either.
struct SweepShape {
    Task task;
    int64_t n_points, n_features, n_centers;
    int64_t stored_per_point;  // values, on average
    int64_t value_bytes;       // of the type that distances are computed in
    bool is_dense;
    bool is_affine;
    bool has_shortcuts;
    bool can_be_sketched;  // in affordable memory
    double lowest_ratio;   // of nearest / y: below it a weight is left out
    bool is_nearby;        // each point is compared with few centers, and no bounds are kept

    bool is_hard() const { return task == Task::hard_sums || task == Task::spread || task == Task::assign; }
    bool is_soft() const { return task == Task::soft_sums; }
    bool gives_to_one() const { return task == Task::hard_sums || task == Task::priced_sums; }
    bool sums_points() const { return is_soft() || gives_to_one(); }
    int64_t lanes() const { return unit_bytes / value_bytes; }  // of a unit
};

Plan plan_for(const SweepShape& shape);

// Returns how many points of a stripe take milliseconds, in whole blocks.
int64_t points_per_call(const SweepShape& shape, const Plan& plan);

// Returns how many threads repay the time to wake them.
int worthwhile_workers(const SweepShape& shape, const Plan& plan, int n_threads);

}  // namespace powermeans
