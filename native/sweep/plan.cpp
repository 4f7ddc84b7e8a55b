#include "sweep/plan.hpp"

#include <algorithm>
#include <limits>

#include "kernels/rounding.hpp"

namespace powermeans {
namespace {

// ---- Thresholds ---------------------------------------------------------------------------------

// The distances and the packed points of a block stay in the second-level cache from kernel to kernel.
constexpr int64_t block_bytes_of_distances = 512 << 10;
constexpr int64_t block_bytes_of_points = 1 << 20;
// Blocks read all centers once: longer ones save little of that.
constexpr int64_t largest_block = 192;
// Twelve rows fill whole tiles of most shapes, so that few rows are left over.
constexpr int64_t block_step = 12;

// Neighboring groups share most of their near centers, which are searched for once for a block.
constexpr int64_t hard_groups_per_block = 8;
// Soft weights reach farther, so that only close neighbors share the centers that matter.
constexpr int64_t near_groups_per_block = 2;
// Where no center is skipped, a long block adds up its lanes less often.
constexpr int64_t soft_groups_per_block = 32;

// Each stripe costs a merge of its sums: more stripes would cost more than they balance,
constexpr int64_t stripes_of_short_sweeps = 256;
// but long sweeps have enough for a thousand threads: stripes of this many products, or of so many times the
// points that repay a merge.
constexpr int64_t most_stripes = 4096;
constexpr int64_t work_per_long_stripe = 1 << 27;
constexpr int64_t merges_repaid = 8;
// A stripe of this many products takes milliseconds, so that handing it out costs nothing beside it. Power
// sweeps take longer for each, and get half as many.
constexpr int64_t work_per_stripe = 1 << 22;
// A sweep looks after this many products whether it is to end: some ten milliseconds.
constexpr int64_t work_per_call = 1 << 26;
// Shorter stripes would cut blocks short.
constexpr int64_t smallest_stripe = 192;
// A merge is one pass over the sums, which this many points for each stored value repay.
constexpr int64_t points_per_value_summed = 512;
// With the same number, wide sparse points would be one stripe, for one thread.
constexpr int64_t points_per_value_summed_of_csr = 16;

// Waking a thread takes as long as this much work.
constexpr double work_per_worker = 1 << 22;
// Raising a distance to a power takes so much longer than computing it that the work of a sweep triples.
constexpr double work_of_a_power = 3;
// About how many centers are near a group of points, however many there are.
constexpr int64_t centers_near_a_group = 24;

// Below these an order of the points takes longer to make than it saves.
constexpr int64_t centers_worth_an_order = 16;
constexpr int64_t distances_worth_an_order = 1 << 16;
// An order takes four bytes a point: too much beside many short points.
constexpr int64_t most_points_ordered = 8'000'000;
constexpr int64_t bytes_worth_an_order = 48;
constexpr int64_t most_ordinals = std::numeric_limits<int32_t>::max();
// Power sweeps skip far centers only at powers where weights end at this ratio or nearer,
constexpr double ratio_worth_nearness = 1.0 / 64;
// and in few dimensions, because in many all centers are about equally far.
constexpr int64_t features_worth_nearness = 6;
// Groups add to sums of all centers in every lane, which leave the second-level cache above this size.
constexpr int64_t most_lane_sums = 192 << 10;

// More centers fill lanes well enough, since differences take twice the work of products.
constexpr int64_t most_few_centers = 12;
// The sum over the lanes of a distance takes as long as this many units of features, for each center but one.
constexpr int64_t units_per_sum_of_lanes = 2;

// Below these, bounds take longer to keep than they save.
constexpr int64_t centers_worth_bounds = 8;
constexpr int64_t distances_worth_bounds = 1 << 14;
// With few features or few centers, a comparison is as fast as a look at the bounds.
constexpr int64_t features_worth_bounds = 9;
constexpr int64_t vectors_worth_bounds = 50;
// Bounds take eight or twelve bytes a point: too much beside many short points.
constexpr int64_t most_points_bounded = 4'000'000;
constexpr int64_t bytes_worth_bounds = 128;

// Below these, products of bytes take longer than they save: beside them a point has its scores and two or
// three exact distances. Distances in float64 take twice as long, so that half the features and half the
// centers are enough.
constexpr int64_t feature_bytes_worth_sketches = 384;
constexpr int64_t center_bytes_worth_sketches = 128;
// Centers are sketched in each sweep, by one thread.
constexpr int64_t points_worth_sketches = 512;

// From this many features on, padding wastes little.
constexpr int64_t features_that_fill_lanes = 48;

// ---- Decisions ----------------------------------------------------------------------------------

int64_t point_bytes(const SweepShape& shape) { return shape.n_features * shape.value_bytes; }

int64_t padded_centers(const SweepShape& shape) { return round_up(shape.n_centers, shape.lanes()); }

// Lanes hold centers or features, whichever leaves fewer lanes empty.
bool lanes_fit_features_better(const SweepShape& shape) {
    const auto filled = [&](int64_t n) { return double(n) / double(round_up(n, shape.lanes())); };
    return shape.n_features >= features_that_fill_lanes ||
           filled(shape.n_features) >= filled(shape.n_centers);
}

bool is_worth_an_order(const SweepShape& shape) {
    return shape.n_points <= most_ordinals && shape.n_centers >= centers_worth_an_order &&
           shape.n_points * shape.n_centers >= distances_worth_an_order &&
           (shape.n_points <= most_points_ordered || point_bytes(shape) >= bytes_worth_an_order);
}

bool skips_far_centers(const SweepShape& shape) {
    return shape.is_hard() || (shape.is_soft() && shape.n_features <= features_worth_nearness &&
                               shape.lowest_ratio >= ratio_worth_nearness);
}

bool is_worth_bounds(const SweepShape& shape) {
    // Sparse points have no kernel for bounds, and affine distances have no triangle inequality.
    if (!shape.is_dense || shape.is_affine || shape.is_nearby) return false;
    const bool is_long = shape.n_features > direct_max_features ||
                         (shape.n_features >= features_worth_bounds &&
                          shape.n_features * shape.n_centers > vectors_worth_bounds * shape.lanes());
    return is_long && shape.n_centers >= centers_worth_bounds &&
           shape.n_points * shape.n_centers >= distances_worth_bounds &&
           (shape.n_points <= most_points_bounded || point_bytes(shape) >= bytes_worth_bounds);
}

// With features in lanes, distances are faster where centers would leave lanes empty.
bool has_few_centers(const SweepShape& shape) {
    if (!shape.is_dense || shape.is_affine || shape.is_nearby || shape.n_features <= direct_max_features)
        return false;
    return shape.n_centers <= most_few_centers && round_up(shape.n_features, shape.lanes()) / shape.lanes() >=
                                                      units_per_sum_of_lanes * (shape.n_centers - 1);
}

bool is_worth_sketches(const SweepShape& shape) {
    return shape.can_be_sketched && point_bytes(shape) >= feature_bytes_worth_sketches &&
           shape.n_centers * shape.value_bytes >= center_bytes_worth_sketches &&
           shape.n_points >= points_worth_sketches;
}

int64_t block_points(const SweepShape& shape, const Plan& plan) {
    if (!plan.grouped) {
        const int64_t by_distances = block_bytes_of_distances / (padded_centers(shape) * shape.value_bytes);
        const int64_t by_points = block_bytes_of_points / (plan.padded_features * shape.value_bytes);
        const int64_t fitting = std::min(by_distances, by_points);
        return std::clamp(fitting / block_step * block_step, block_step, largest_block);
    }
    if (shape.is_hard()) return points_per_group * hard_groups_per_block;
    return points_per_group * (plan.ordered ? near_groups_per_block : soft_groups_per_block);
}

int64_t stripe_points(const SweepShape& shape, const Plan& plan) {
    const int64_t stored = shape.stored_per_point;
    const int64_t by_work =
        work_per_stripe / (shape.is_hard() ? 1 : 2) / (padded_centers(shape) * (stored + 16));
    const int64_t per_value = shape.is_dense ? points_per_value_summed : points_per_value_summed_of_csr;
    const int64_t by_sums = shape.sums_points() ? per_value * shape.n_features / stored : 0;
    const int64_t by_long_work =
        std::max(work_per_long_stripe / work_per_stripe * by_work, merges_repaid * by_sums);
    const int64_t by_number = std::max(std::min(shape.n_points / stripes_of_short_sweeps, by_long_work),
                                       shape.n_points / most_stripes);
    return round_up(std::max({by_work, by_sums, by_number, smallest_stripe}), plan.block_points);
}

}  // namespace

Plan plan_for(const SweepShape& shape) {
    const int64_t d = shape.n_features;
    Plan plan{};
    const bool has_few_features = shape.is_dense && d <= direct_max_features;
    plan.direct = has_few_features && !shape.is_affine;
    plan.bounded = shape.is_hard() && is_worth_bounds(shape);
    plan.few_centers = shape.is_hard() && has_few_centers(shape);
    plan.prefiltered = plan.bounded && shape.has_shortcuts && is_worth_sketches(shape);
    plan.ordered = plan.direct && !plan.bounded && shape.has_shortcuts && skips_far_centers(shape) &&
                   is_worth_an_order(shape);
    const int64_t lane_sums = shape.is_soft() ? padded_centers(shape) * (d + 1) * shape.lanes() : 0;
    const bool can_group =
        shape.is_hard() || (shape.is_soft() && lane_sums * shape.value_bytes <= most_lane_sums);
    plan.grouped = plan.ordered || (has_few_features && !plan.bounded && can_group);
    plan.lane_sums = plan.grouped ? lane_sums : 0;
    const bool in_units = shape.is_dense && ((!plan.direct && !plan.grouped) || plan.bounded);
    plan.padded_features = in_units ? round_up(d, shape.lanes()) : d;
    plan.sums_by_center = shape.gives_to_one() || (in_units && lanes_fit_features_better(shape));
    plan.block_points = block_points(shape, plan);
    plan.stripe_points = stripe_points(shape, plan);
    return plan;
}

int64_t points_per_call(const SweepShape& shape, const Plan& plan) {
    const int64_t n_points = work_per_call / (padded_centers(shape) * (shape.stored_per_point + 16));
    return round_up(std::clamp<int64_t>(n_points, 1, plan.stripe_points), plan.block_points);
}

int worthwhile_workers(const SweepShape& shape, const Plan& plan, int n_threads) {
    const int64_t n_met = plan.ordered ? std::min(shape.n_centers, centers_near_a_group) : shape.n_centers;
    const double work = double(shape.n_points) * double(n_met + 8) * double(shape.n_features + 16);
    const double worth = work * (shape.is_soft() ? work_of_a_power : 1) / work_per_worker;
    return int(std::clamp(worth, 1.0, double(n_threads)));
}

}  // namespace powermeans
