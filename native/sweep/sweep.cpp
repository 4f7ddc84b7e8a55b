#include "sweep/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>

#include "dispatch.hpp"
#include "sweep/packed_centers.hpp"
#include "sweep/plan.hpp"
#include "sweep/powers.hpp"
#include "sweep/shortcuts.hpp"
#include "sweep/sketched_centers.hpp"
#include "sweep/worker_memory.hpp"

namespace powermeans {
namespace {

template <class Source>
using RequestFor = Request<typename Source::Computed>;

// ---- Which weights may be left out --------------------------------------------------------------

bool is_safe(const SweepResult& result, double smallest_share) {
    double all = 0;
    for (double weight : result.weights) all += weight;
    return std::all_of(result.weights.begin(), result.weights.end(),
                       [&](double weight) { return weight >= smallest_share * all; });
}

// ---- From a request to a job --------------------------------------------------------------------

template <class Source>
SweepShape shape_of(const Source& source, const RequestFor<Source>& request, double lowest_ratio) {
    SweepShape shape{};
    shape.task = request.task;
    shape.n_points = source.n_points;
    shape.n_features = source.n_features;
    shape.n_centers = request.n_centers;
    shape.stored_per_point = source.stored_per_point();
    shape.value_bytes = sizeof(typename Source::Computed);
    shape.is_dense = Source::is_dense;
    shape.is_affine = is_affine(source);
    shape.has_shortcuts = takes_shortcuts() && source.swept_often;
    if constexpr (Source::is_dense)
        shape.can_be_sketched = SketchedPoints<typename Source::Stored>::are_affordable(
            source.values, source.n_points, source.n_features);
    shape.lowest_ratio = lowest_ratio;
    return shape;
}

// Beyond this every density but the highest vanishes, and T would overflow.
template <class T>
constexpr double highest_sharpness = sizeof(T) == 4 ? 1e30 : 1e300;

// Returns 1 / (2 variance) in the unit of the kernels.
template <class T>
double sharpness_of(const Request<T>& request, double unit) {
    if (request.rule != SoftRule::gaussian) return 0;
    return std::min(0.5 / request.variance / unit / unit, highest_sharpness<T>);
}

// What the last hard sweep left, where the plan uses it. Of several sweeps at a time, only one gets it; the
// others start from nothing, with the same results.
template <class T>
struct HeldBounds {
    std::shared_ptr<LastSweep<T>> last_sweep;
    std::unique_lock<std::mutex> hold;
};

template <class Source>
HeldBounds<typename Source::Computed> hold_bounds(const Source& source, const Plan& plan) {
    HeldBounds<typename Source::Computed> held;
    if constexpr (Source::is_dense) {
        if (!plan.bounded) return held;
        if (takes_shortcuts() && source.swept_often) held.hold = source.last_sweep->try_to_hold();
        held.last_sweep =
            held.hold ? source.last_sweep : std::make_shared<LastSweep<typename Source::Computed>>();
    }
    return held;
}

template <class Source>
std::unique_lock<std::mutex> hold_labels(const Source& source, Task task) {
    if (task != Task::hard_sums || !source.swept_often) return {};
    return source.last_labels->try_to_hold();
}

template <class T>
Dense<T> points_of(const DenseSource<T>& source, const Plan& plan, const T* origin, double scale,
                   Team& team) {
    Dense<T> points{source.values, origin, T(scale), source.n_features};
    if (!plan.grouped || !source.swept_often) return points;  // else the kernels pack them
    const PackedGroups<T>& groups =
        (plan.ordered ? source.groups_in_space : source.groups_as_stored)->get([&] {
            return PackedGroups<T>(source.values, source.n_points, source.n_features, source.frame,
                                   plan.ordered, team);
        });
    points.order = groups.order();
    // Where centers far away demand another scale, which is rare, the kernels pack the points again.
    if (groups.columns() && groups.scale() == scale) {
        points.columns = groups.columns();
        points.boxes = groups.boxes();
    }
    return points;
}

template <class T>
Sketched sketched_job(const DenseSource<T>& source, const Job<T>& job, double scale, Team& team,
                      SketchedCenters& centers) {
    const int64_t d = source.n_features;
    const Sketches& points = source.sketches->made_of(source.values, source.n_points, d, source.frame, team);
    centers =
        SketchedCenters(job.centers.rows_wide, job.centers.n_centers, job.plan.padded_features, points.width);
    return {points, scale / scale_for<double>(source.frame.extent), centers.view()};
}

template <class V>
Csr<V> points_of(const CsrSource<V>& source, const Plan&, const double*, double scale, Team&) {
    return {source.values, source.columns, source.row_starts, scale, source.n_features};
}

template <class Points, class T>
void add_stripes(const Points& points, const Job<T>& job, const SweepShape& shape, Team& team,
                 StripeSums& total) {
    const SweepKernel<Points>& kernel = *chosen_instruction_set().kernels;
    const int n_workers = worthwhile_workers(shape, job.plan, team.n_threads());
    const int64_t call_points = points_per_call(shape, job.plan);
    const int n_places = total.n_places();
    std::vector<std::optional<Workspace<T>>> works(static_cast<std::size_t>(n_workers));
    std::vector<std::vector<StripeSums>> sums(works.size());
    const auto sums_at = [&](int place) -> StripeSums& {
        return sums[std::size_t(place / n_places)][std::size_t(place % n_places)];
    };
    const auto compute = [&](int place, int64_t stripe) {
        const std::size_t worker = std::size_t(place / n_places);
        Arena& arena = team.arena(int(worker));
        if (!works[worker]) {
            arena.clear();
            works[worker] = take_workspace<T>(arena, shape, job.plan, job.centers.n_padded);
        }
        // Places are first taken in their order.
        if (std::size_t(place % n_places) == sums[worker].size())
            sums[worker].emplace_back(arena, shape, job.plan, job.centers.n_padded);
        else
            sums_at(place).clear();
        PartialSums& partial = sums_at(place).partial;
        const int64_t end = std::min(shape.n_points, (stripe + 1) * job.plan.stripe_points);
        // The sums are the same however many calls a stripe takes, as long as blocks stay whole.
        for (int64_t begin = stripe * job.plan.stripe_points; begin < end; begin += call_points) {
            check_interrupt();
            const int64_t n = std::min(call_points, end - begin);
            kernel.sweep({points, job, *works[worker], partial, begin, n});
        }
    };
    const int64_t n_parts = total.n_parts();
    const auto add = [&](int place, int64_t, int64_t part) { total.add(sums_at(place), part, n_parts); };
    const Merge merge{n_parts, add, n_places};
    team.run(divide_up(shape.n_points, job.plan.stripe_points), n_workers, compute, merge);
}

// ---- From sums to a result ----------------------------------------------------------------------

// Returns sums of the points, back from the frame and the layout of the kernels.
template <class Source>
std::vector<double> unframed(const Source& source, const StripeSums& total, int64_t n_centers, double scale) {
    const int64_t d = source.n_features;
    std::vector<double> points(std::size_t(n_centers * d));
    for (int64_t j = 0; j < n_centers; ++j)
        for (int64_t f = 0; f < d; ++f) {
            double& sum = points[std::size_t(j * d + f)] = total.partial.points[total.index(j, f)] / scale;
            if (!source.frame.origin.empty()) sum += total.partial.weights[j] * source.frame.origin_of(f);
        }
    return points;
}

// Adds the term of equal shares to the objective, which the kernels leave out.
template <class T>
void complete_equal_shares(const Request<T>& request, SweepResult& result) {
    double total_weight = 0;
    for (double weight : result.weights) total_weight += weight;
    result.objective += 2 * request.variance * std::log(double(request.n_centers)) * total_weight;
}

template <class Source>
SweepResult result_of(const Source& source, const RequestFor<Source>& request, const SweepShape& shape,
                      const StripeSums& total, const Units& units) {
    const double unscale = 1 / units.unit;
    const auto sq_unscaled = [unscale](double value) { return value * unscale * unscale; };
    const auto by_center = [&](const double* values) {
        return std::vector<double>(values, values + request.n_centers);
    };
    SweepResult result;
    if (shape.sums_points()) result.points = unframed(source, total, request.n_centers, units.scale);
    result.weights = by_center(total.partial.weights);
    result.error = by_center(total.partial.error);
    result.utility = by_center(total.partial.utility);
    for (std::vector<double>* values : {&result.error, &result.utility})
        for (double& value : *values) value = sq_unscaled(value);
    if (request.task == Task::potentials)
        for (double& value : result.weights) value = value / nearest_scale(source) / nearest_scale(source);
    result.n_distances = total.partial.n_distances;
    result.inertia = sq_unscaled(total.partial.inertia);
    result.objective = shape.is_hard() ? result.inertia : sq_unscaled(total.partial.objective);
    if (is_of_powers(request))
        complete_powers(request, unscale, result.objective, result.points, result.weights);
    else if (shape.is_soft() && !request.shares)
        complete_equal_shares(request, result);
    return result;
}

// Sweeps, and leaves out weights below this share of the nearest center's.
template <class Source>
SweepResult sweep_down_to(double lowest_share, const Source& source, const RequestFor<Source>& request,
                          Team& team) {
    using T = typename Source::Computed;
    const double lowest_ratio = is_of_powers(request) ? ratio_at(lowest_share, request.power) : 0;
    const SweepShape shape = shape_of(source, request, lowest_ratio);
    const Plan plan = plan_for(shape);
    const Units units = units_of(source, request.raw_centers, request.n_centers);
    const PackedCenters<Source> centers(source, plan, request.raw_centers, request.n_centers, units, team);
    const Aligned<T> origin = scaled_origin<T>(source.frame, source.n_features, units.scale);
    const double sharpness = sharpness_of(request, units.unit);
    const Aligned<T> offsets = offsets_of(request, centers.view().n_padded, sharpness, units.unit);
    const HeldBounds<T> held = hold_bounds(source, plan);
    const std::unique_lock<std::mutex> labels = hold_labels(source, request.task);
    Job<T> job{};
    static_cast<Request<T>&>(job) = request;
    job.whole_power = whole_power(request.power);
    job.lowest_ratio = T(lowest_ratio);
    job.lowest_log = T(std::log(lowest_share));
    job.sharpness = sharpness;
    job.offsets = offsets.get();
    job.heights = source.heights.values;
    job.unscale = 1 / units.unit;
    job.to_nearest_unit = nearest_scale(source) / units.unit;
    job.centers = centers.view();
    job.plan = plan;
    if constexpr (Source::is_dense)
        if (held.last_sweep)
            job.bounds = held.last_sweep->bounds_for(source.values, source.n_points, source.n_features,
                                                     request, units.scale);
    SketchedCenters sketched;
    if constexpr (Source::is_dense)
        if (plan.prefiltered) job.sketched = sketched_job(source, job, units.scale, team, sketched);
    Arena arena;
    StripeSums total(arena, shape, plan, job.centers.n_padded);
    const auto points = points_of(source, plan, origin.get(), units.scale, team);
    if (labels) job.last_labels = source.last_labels->in_order(points.order, source.n_points);
    add_stripes(points, job, shape, team, total);
    if (held.last_sweep) held.last_sweep->keep(request, source.n_features);
    SweepResult result = result_of(source, request, shape, total, units);
    if (labels) result.n_changed = total.partial.n_changed;
    return result;
}

}  // namespace

template <class Source>
SweepResult sweep(const Source& source, const Request<typename Source::Computed>& request, Team& team) {
    using T = typename Source::Computed;
    if (request.task != Task::soft_sums) return sweep_down_to(0, source, request, team);
    if (takes_shortcuts()) {
        SweepResult result = sweep_down_to(negligible_share<T>, source, request, team);
        if (is_safe(result, smallest_safe_share<T>)) return result;
    }
    // The sums of a center far from all points consist of weights that are negligible elsewhere.
    return sweep_down_to(std::numeric_limits<T>::min(), source, request, team);
}

template SweepResult sweep(const DenseSource<float>&, const Request<float>&, Team&);
template SweepResult sweep(const DenseSource<double>&, const Request<double>&, Team&);
template SweepResult sweep(const CsrSource<float>&, const Request<double>&, Team&);
template SweepResult sweep(const CsrSource<double>&, const Request<double>&, Team&);

}  // namespace powermeans
