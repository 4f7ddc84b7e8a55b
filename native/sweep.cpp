#include "sweep.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "rounding.hpp"

namespace powermeans {
namespace {

constexpr int64_t block_bytes_of_distances = 1 << 19;
constexpr int64_t block_bytes_of_points = 1 << 20;
constexpr int64_t largest_block = 192;
constexpr int64_t block_step = 12;  // a whole number of tile rows
constexpr int64_t smallest_stripe = 192;
constexpr int64_t points_per_value_summed = 512;
constexpr int64_t points_per_value_summed_of_csr = 16;  // or wide sparse points would be one stripe

constexpr int64_t most_stripes = 256;
constexpr int64_t work_per_stripe = 1 << 22;  // half of it in a power sweep, which takes longer for it
// Waking a thread takes as long as this much work, and power sweeps do so many times that of hard ones.
constexpr double work_per_worker = 1 << 22;
constexpr double work_of_a_power = 3;
// Below these an order of the points takes longer to make than it saves.
constexpr int64_t centers_worth_an_order = 16;
constexpr int64_t distances_worth_an_order = 1 << 16;
// An order takes four bytes a point: up to so many points, or with so many bytes in each.
constexpr int64_t most_points_ordered = 8'000'000;
constexpr int64_t bytes_worth_an_order = 48;
// Centers as near as this to a block are few enough to be worth picking out.
constexpr double ratio_worth_nearness = 1.0 / 64;
constexpr int64_t features_worth_nearness = 6;
// Bytes of the sums of all centers in each lane: more would not stay near while group after group adds
// to them.
constexpr int64_t most_lane_sums = 192 << 10;
constexpr int64_t near_groups_per_block = 2;
// What a block of groups adds up is summed over its lanes once.
constexpr int64_t soft_groups_per_block = 32;
// The same of a memory of the sweep before, which takes eight or twelve bytes a point.
constexpr int64_t centers_worth_a_memory = 8;
// Few features and few centers are compared as fast as remembered.
constexpr int64_t features_worth_a_memory = 9;
constexpr int64_t vectors_worth_a_memory = 50;
constexpr int64_t distances_worth_a_memory = 1 << 14;
constexpr int64_t most_points_remembered = 4'000'000;
constexpr int64_t bytes_worth_a_memory = 128;
constexpr int64_t features_that_fill_lanes = 48;
// About how many centers are near to a group of points.
constexpr int64_t centers_near_a_group = 24;

bool shortcuts_wanted() {
    const char* wanted = std::getenv("POWERMEANS_SHORTCUTS");
    const std::string value = wanted ? wanted : "1";
    if (value != "0" && value != "1")
        throw std::runtime_error("POWERMEANS_SHORTCUTS=" + value + " must be 0 or 1: correct or unset it");
    return value == "1";
}

std::atomic<bool>& shortcuts() {
    static std::atomic<bool> taken(shortcuts_wanted());
    return taken;
}

bool is_hard(Task task) { return task == Task::hard_sums || task == Task::spread || task == Task::assign; }

bool sums_points(Task task) { return task == Task::hard_sums || task == Task::soft_sums; }

template <class Source>
constexpr bool is_dense = std::is_same_v<Source, DenseSource<typename Source::Stored>>;

// Values that a point has stored, on average.
template <class V>
int64_t stored_per_point(const DenseSource<V>& source) {
    return source.n_features;
}
template <class V>
int64_t stored_per_point(const CsrSource<V>& source) {
    return source.row_starts[source.n_points] / source.n_points + 1;
}

// Lanes hold centers or features, whichever wastes fewer of them; of many features few are wasted.
template <class T>
bool lanes_fit_features_better(int64_t n_features, int64_t n_centers) {
    const auto filled = [](int64_t n) { return double(n) / double(round_up(n, unit_lanes<T>)); };
    return n_features >= features_that_fill_lanes || filled(n_features) >= filled(n_centers);
}

template <class Source>
bool is_worth_an_order(const Source& source, int64_t n_centers) {
    const int64_t bytes = source.n_features * int64_t(sizeof(typename Source::Stored));
    return n_centers >= centers_worth_an_order && source.n_points * n_centers >= distances_worth_an_order &&
           (source.n_points <= most_points_ordered || bytes >= bytes_worth_an_order);
}

template <class Source>
bool is_affine(const Source& source) {
    return source.heights.values != nullptr;
}

template <class V>
bool is_worth_a_memory(const DenseSource<V>& source, int64_t n_centers) {
    if (is_affine(source)) return false;  // they know no triangle inequality
    const int64_t bytes = source.n_features * int64_t(sizeof(V));
    const bool is_long = source.n_features > direct_max_features ||
                         (source.n_features >= features_worth_a_memory &&
                          source.n_features * n_centers > vectors_worth_a_memory * unit_lanes<V>);
    return is_long && n_centers >= centers_worth_a_memory &&
           source.n_points * n_centers >= distances_worth_a_memory &&
           (source.n_points <= most_points_remembered || bytes >= bytes_worth_a_memory);
}
template <class V>
bool is_worth_a_memory(const CsrSource<V>&, int64_t) {
    return false;
}

template <class Source>
Plan plan_for(const Source& source, Task task, int64_t n_centers, double lowest_ratio) {
    using T = typename Source::Computed;
    constexpr int64_t bytes = sizeof(T);
    const int64_t d = source.n_features, n_padded = round_up(n_centers, unit_lanes<T>);
    Plan plan{};
    const bool has_few_features = is_dense<Source> && d <= direct_max_features;
    plan.direct = has_few_features && !is_affine(source);
    const bool has_shortcuts = takes_shortcuts() && source.swept_often;
    plan.recalled = is_hard(task) && has_shortcuts && is_worth_a_memory(source, n_centers);
    const bool is_near =
        task == Task::soft_sums && d <= features_worth_nearness && lowest_ratio >= ratio_worth_nearness;
    plan.ordered = plan.direct && !plan.recalled && has_shortcuts && (is_hard(task) || is_near) &&
                   is_worth_an_order(source, n_centers);
    const int64_t lane_sums = task == Task::soft_sums ? n_padded * (d + 1) * unit_lanes<T> : 0;
    const bool can_group = is_hard(task) || (task == Task::soft_sums && lane_sums * bytes <= most_lane_sums);
    plan.grouped = plan.ordered || (has_few_features && !plan.recalled && can_group);
    plan.lane_sums = plan.grouped ? lane_sums : 0;
    const bool in_units = is_dense<Source> && ((!plan.direct && !plan.grouped) || plan.recalled);
    plan.padded_features = in_units ? round_up(d, unit_lanes<T>) : d;
    plan.sums_by_center = task == Task::hard_sums ||
                          (is_dense<Source> && in_units && lanes_fit_features_better<T>(d, n_centers));
    const int64_t fitting = std::min(block_bytes_of_distances / (n_padded * bytes),
                                     block_bytes_of_points / (plan.padded_features * bytes));
    if (!plan.grouped)
        plan.block_points = std::clamp(fitting / block_step * block_step, block_step, largest_block);
    else if (is_hard(task))
        plan.block_points = points_per_group * groups_per_block;
    else
        plan.block_points = points_per_group * (plan.ordered ? near_groups_per_block : soft_groups_per_block);
    const int64_t stored = stored_per_point(source);
    const int64_t by_work = work_per_stripe / (is_hard(task) ? 1 : 2) / (n_padded * (stored + 16));
    // Adding up the sums of a stripe costs one pass over them, which few stored values do not repay.
    const int64_t per_value = is_dense<Source> ? points_per_value_summed : points_per_value_summed_of_csr;
    const int64_t by_sums = sums_points(task) ? per_value * d / stored : 0;
    plan.stripe_points = round_up(
        std::max({by_work, by_sums, source.n_points / most_stripes, smallest_stripe}), plan.block_points);
    return plan;
}

// Threads that the work is worth.
template <class Source>
int worthwhile_workers(const Source& source, Task task, const Plan& plan, int64_t n_centers,
                       const Team& team) {
    const int64_t n_seen = plan.ordered ? std::min(n_centers, centers_near_a_group) : n_centers;
    const double work = double(source.n_points) * double(n_seen + 8) * double(source.n_features + 16);
    const double worth = work * (task == Task::soft_sums ? work_of_a_power : 1) / work_per_worker;
    return int(std::clamp(worth, 1.0, double(team.n_threads())));
}

// The unit of points and that of square roots of distances, both powers of two.
struct Units {
    double scale, unit;
};

// The centers in the frame of the points, and every form of them that the kernels read.
template <class Source>
struct PackedCenters {
    using T = typename Source::Computed;
    Aligned<T> panels, rows, sq_norms;
    Aligned<double> rows_wide, sq_norms_wide;
    Centers<T> view;

    PackedCenters(const Source& source, const Plan& plan, const double* centers, int64_t n_centers,
                  const Units& units) {
        const int64_t d = source.n_features, n_padded = round_up(n_centers, unit_lanes<T>);
        panels = Aligned<T>(std::size_t(n_padded * d));
        rows = Aligned<T>(std::size_t(n_centers * plan.padded_features));
        if (!std::is_same_v<T, double>)
            rows_wide = Aligned<double>(std::size_t(n_centers * plan.padded_features));
        sq_norms = Aligned<T>(std::size_t(n_padded));
        sq_norms_wide = Aligned<double>(std::size_t(n_padded));
        double largest = 0;
        for (int64_t j = 0; j < n_padded; ++j) {
            double norm = j < n_centers ? first_norm(source, centers, j, units)
                                        : std::numeric_limits<double>::infinity();
            for (int64_t f = 0; f < d; ++f) {
                T value = padding(plan);
                if (j < n_centers) {
                    const std::size_t at = std::size_t(j * plan.padded_features + f);
                    const double wide = in_frame(source, centers, j, f, units);
                    value = rows[at] = T(wide);
                    if constexpr (!std::is_same_v<T, double>) rows_wide[at] = wide;
                    if (!is_affine(source)) norm += double(value) * double(value);
                }
                const bool is_as_read = plan.direct || is_affine(source);
                panels[panel_index(j, f, d, n_padded)] = is_as_read ? value : T(-2) * value;
            }
            sq_norms_wide[std::size_t(j)] = norm;
            sq_norms[std::size_t(j)] = T(norm);
            if (j < n_centers) largest = std::max(largest, std::abs(norm));
        }
        view = {n_centers,           n_padded, d,          panels.get(), sq_norms.get(),
                sq_norms_wide.get(), largest,  rows.get(), wide_rows()};
    }

    const double* wide_rows() const {
        if constexpr (std::is_same_v<T, double>)
            return rows.get();
        else
            return rows_wide.get();
    }

    static double first_norm(const Source& source, const double* centers, int64_t j, const Units& units) {
        if (!is_affine(source)) return 0;
        const int64_t d = source.n_features;
        return centers[j * (d + 1) + d] * units.unit * units.unit;
    }

    static double in_frame(const Source& source, const double* centers, int64_t j, int64_t f,
                           const Units& units) {
        const int64_t d = source.n_features;
        if (is_affine(source)) return -centers[j * (d + 1) + f] * units.unit / units.scale * units.unit;
        const double value = centers[j * d + f];
        if (source.frame.origin.empty()) return value * units.scale;
        return value * units.scale - source.frame.origin[std::size_t(f)] * units.scale;
    }

    // Centers of the padding are infinitely far; products leave that to their norms.
    static T padding(const Plan& plan) { return plan.direct ? std::numeric_limits<T>::infinity() : T(0); }

    static std::size_t panel_index(int64_t j, int64_t f, int64_t d, int64_t n_padded) {
        constexpr int64_t width = unit_lanes<T>;
        return std::size_t(is_dense<Source> ? (j / width * d + f) * width + j % width : f * n_padded + j);
    }
};

// The memory of one worker: a workspace for a block, and what its stripe adds up.
template <class T>
struct Bench {
    Workspace<T> work{};
    Partial partial{};
    int64_t n_sums, n_padded;
    int64_t sums_per_center;  // where those of a center lie together, else 0

    Bench(Room& room, const Plan& plan, int64_t n_padded_, int64_t n_sums_, bool folds, bool packs)
        : n_sums(n_sums_),
          n_padded(n_padded_),
          sums_per_center(plan.sums_by_center && n_sums_ ? plan.padded_features : 0) {
        const auto take = [&room](auto*& to, int64_t n) {
            to = room.take<std::remove_reference_t<decltype(*to)>>(std::size_t(n));
        };
        const int64_t block = plan.block_points, packed = block * plan.padded_features;
        if (packs) take(work.packed, packed);
        take(work.dist, n_padded * (plan.grouped ? points_per_group : block));
        if (folds) take(work.folded, block * n_padded);
        for (double** per_point :
             {&work.sq_norms, &work.nearest, &work.least, &work.softness, &work.factors, &work.second}) {
            take(*per_point, round_up(block, unit_lanes<double>));
            // Whole vectors of these are read.
            std::fill_n(*per_point, round_up(block, unit_lanes<double>), 1.0);
        }
        take(work.tied, n_padded);
        take(work.tied_dist, n_padded);
        if (plan.ordered) {
            take(work.outer, n_padded);
            take(work.inner, n_padded);
        }
        if (plan.ordered || plan.recalled) take(work.outer_panels, n_padded * plan.padded_features);
        if (plan.lane_sums) take(work.lane_sums, plan.lane_sums);
        if (plan.recalled) {
            take(work.gathered, packed);
            take(work.gathered_nearest, block);
            take(work.gathered_sq_norms, block);
            take(work.left, block);
        }
        take(partial.points, n_sums);
        std::fill_n(partial.points, n_sums, 0.0);
        for (double** per_center : {&partial.weights, &partial.error, &partial.utility}) {
            take(*per_center, n_padded);
            std::fill_n(*per_center, n_padded, 0.0);
        }
    }

    // Calls visit(first, last) for the ranges of sums that points have come to.
    template <class Visit>
    void each_used(const Visit& visit) const {
        if (!sums_per_center) return visit(0, n_sums);
        for (int64_t j = 0; j * sums_per_center < n_sums; ++j)
            if (partial.weights[j] != 0) visit(j * sums_per_center, (j + 1) * sums_per_center);
    }

    void clear() {
        each_used([this](int64_t first, int64_t last) {
            std::fill(partial.points + first, partial.points + last, 0.0);
        });
        for (double* per_center : {partial.weights, partial.error, partial.utility})
            std::fill_n(per_center, n_padded, 0.0);
        partial.objective = partial.inertia = partial.n_distances = 0;
    }

    void add(const Bench& other) {
        other.each_used([&](int64_t first, int64_t last) {
            for (int64_t i = first; i < last; ++i) partial.points[i] += other.partial.points[i];
        });
        for (int64_t j = 0; j < n_padded; ++j) {
            partial.weights[j] += other.partial.weights[j];
            partial.error[j] += other.partial.error[j];
            partial.utility[j] += other.partial.utility[j];
        }
        partial.objective += other.partial.objective;
        partial.inertia += other.partial.inertia;
        partial.n_distances += other.partial.n_distances;
    }
};

template <class T>
Dense<T> view_of(const DenseSource<T>& source, const T* origin, double scale, const Groups<T>* groups) {
    Dense<T> points{source.values, origin, T(scale), source.n_features, nullptr, nullptr, nullptr};
    if (!groups) return points;
    points.order = groups->order();
    // Packed in another scale they are packed anew; that is rare.
    if (groups->columns() && groups->scale() == scale) {
        points.columns = groups->columns();
        points.boxes = groups->boxes();
    }
    return points;
}

void run_stripe(const KernelTable& kernels, const DenseSource<float>& source, double scale,
                const float* origin, const Groups<float>* groups, const Job<float>& job,
                const Workspace<float>& work, int64_t begin, int64_t end, Partial& out) {
    const Dense<float> points = view_of(source, origin, scale, groups);
    kernels.dense_float(points, job, work, begin, end, out);
}

void run_stripe(const KernelTable& kernels, const DenseSource<double>& source, double scale,
                const double* origin, const Groups<double>* groups, const Job<double>& job,
                const Workspace<double>& work, int64_t begin, int64_t end, Partial& out) {
    const Dense<double> points = view_of(source, origin, scale, groups);
    kernels.dense_double(points, job, work, begin, end, out);
}

template <class V>
Csr<V> view_of(const CsrSource<V>& source, double scale) {
    return {source.values, source.columns, source.row_starts, scale, source.n_features};
}

void run_stripe(const KernelTable& kernels, const CsrSource<float>& source, double scale, const double*,
                const Groups<double>*, const Job<double>& job, const Workspace<double>& work, int64_t begin,
                int64_t end, Partial& out) {
    kernels.csr_float(view_of(source, scale), job, work, begin, end, out);
}

void run_stripe(const KernelTable& kernels, const CsrSource<double>& source, double scale, const double*,
                const Groups<double>*, const Job<double>& job, const Workspace<double>& work, int64_t begin,
                int64_t end, Partial& out) {
    kernels.csr_double(view_of(source, scale), job, work, begin, end, out);
}

template <class Source>
Aligned<typename Source::Computed> scaled_origin(const Source& source, double scale) {
    using T = typename Source::Computed;
    Aligned<T> origin(std::size_t(source.n_features));
    for (std::size_t f = 0; f < source.frame.origin.size(); ++f)
        origin[f] = T(source.frame.origin[f] * scale);
    return origin;
}

// A unit in which no affine distance is much larger than one, nor any part of it.
template <class Source>
Units units_of_affine(const Source& source, const double* planes, int64_t n_centers) {
    const int64_t d = source.n_features;
    double largest = source.heights.largest;
    for (int64_t j = 0; j < n_centers; ++j) {
        double size = std::abs(planes[j * (d + 1) + d]);
        for (int64_t f = 0; f < d; ++f) size += std::abs(planes[j * (d + 1) + f]) * source.frame.extent;
        largest = std::max(largest, size);
    }
    constexpr double most = 0x1p1022;
    const double unit = scale_for<double>(std::sqrt(std::min(largest, most)));
    return {scale_for<typename Source::Computed>(source.frame.extent), unit};
}

// Centers may lie far outside of the points, as when new points are asked about.
template <class Source>
Units units_of(const Source& source, const double* centers, int64_t n_centers) {
    if (is_affine(source)) return units_of_affine(source, centers, n_centers);
    const int64_t d = source.n_features;
    double extent = source.frame.extent;
    for (int64_t j = 0; j < n_centers; ++j)
        for (int64_t f = 0; f < d; ++f) {
            const double origin = source.frame.origin.empty() ? 0 : source.frame.origin[std::size_t(f)];
            extent = std::max(extent, std::abs(centers[j * d + f] - origin));
        }
    const double scale = scale_for<typename Source::Computed>(extent);
    return {scale, scale};
}

template <class V>
const Groups<V>* groups_of(const DenseSource<V>& source, const Plan& plan, Team& team) {
    if (!plan.grouped && !plan.ordered) return nullptr;
    const std::shared_ptr<Groups<V>>& groups = plan.ordered ? source.in_space : source.in_rows;
    return &groups->made_of(source.values, source.n_points, source.n_features, source.frame, plan.ordered,
                            team);
}
template <class V>
const Groups<double>* groups_of(const CsrSource<V>&, const Plan&, Team&) {
    return nullptr;
}

// Back from the frame and the layout of the kernels: sums of the points as they are.
template <class Source>
std::vector<double> unframed(const Source& source, const Plan& plan,
                             const Bench<typename Source::Computed>& total, int64_t n_centers, double scale) {
    const int64_t d = source.n_features;
    std::vector<double> points(std::size_t(n_centers * d));
    for (int64_t j = 0; j < n_centers; ++j)
        for (int64_t f = 0; f < d; ++f) {
            const int64_t at = plan.sums_by_center ? j * plan.padded_features + f : f * total.n_padded + j;
            double sum = total.partial.points[at] / scale;
            if (!source.frame.origin.empty())
                sum += total.partial.weights[j] * source.frame.origin[std::size_t(f)];
            points[std::size_t(j * d + f)] = sum;
        }
    return points;
}

template <class Source>
SweepResult result_of(const Source& source, const Request<Source>& request, const Plan& plan,
                      const Bench<typename Source::Computed>& total, const Units& units) {
    const double unscale = 1 / units.unit;
    const auto sq_unscaled = [unscale](double value) { return value * unscale * unscale; };
    const auto first_centers = [&](const double* values) {
        return std::vector<double>(values, values + request.n_centers);
    };
    SweepResult result;
    if (sums_points(request.task))
        result.points = unframed(source, plan, total, request.n_centers, units.scale);
    result.weights = first_centers(total.partial.weights);
    result.error = first_centers(total.partial.error);
    result.utility = first_centers(total.partial.utility);
    for (std::vector<double>* values : {&result.error, &result.utility})
        for (double& value : *values) value = sq_unscaled(value);
    if (request.task == Task::potentials)
        for (double& value : result.weights) value = value / nearest_scale(source) / nearest_scale(source);
    result.n_distances = total.partial.n_distances;
    result.inertia = sq_unscaled(total.partial.inertia);
    result.objective = is_hard(request.task) ? result.inertia : sq_unscaled(total.partial.objective);
    const bool is_of_powers = request.task == Task::soft_sums && request.rule == SoftRule::power;
    if (is_of_powers)  // M_s has the mean of the powers, the kernels their sum
        result.objective *= std::pow(double(request.n_centers), -(1 + request.mean_exponent) / request.power);
    if (request.task == Task::soft_sums && request.rule == SoftRule::gaussian && !request.shares) {
        double total_weight = 0;
        for (double weight : result.weights) total_weight += weight;
        result.objective += 2 * request.variance * std::log(double(request.n_centers)) * total_weight;
    }
    if (is_of_powers && request.mean_exponent != 0) {  // weights have a unit
        if (result.objective > 0) result.objective *= std::pow(unscale, 2 * request.mean_exponent);
        const double unit = std::pow(unscale / request.mean_unit * unscale, request.mean_exponent);
        for (std::vector<double>* values : {&result.points, &result.weights})
            for (double& value : *values) value *= unit;
    }
    return result;
}

// The memory of the points, or for all but one of several sweeps at a time a new one: the result is the
// same. Nothing where the plan has none.
template <class Source>
class HeldMemory {
    using T = typename Source::Computed;

  public:
    HeldMemory(const DenseSource<T>& source, const Plan& plan) {
        if (!plan.recalled) return;
        hold_ = source.memory->try_to_hold();
        memory_ = hold_ ? source.memory : std::make_shared<Memory<T>>();
    }
    template <class V>
    HeldMemory(const CsrSource<V>&, const Plan&) {}

    Recall<T> recall(const DenseSource<T>& source, const Request<Source>& request, double scale) const {
        if (!memory_) return {};
        return memory_->recall(source.values, source.n_points, source.n_features, request.centers,
                               request.n_centers, scale, request.task == Task::spread);
    }
    template <class V>
    Recall<T> recall(const CsrSource<V>&, const Request<Source>&, double) const {
        return {};
    }

    void keep(const Source& source, const Request<Source>& request) const {
        if (memory_) memory_->keep(request.centers, request.n_centers, source.n_features);
    }

  private:
    std::shared_ptr<Memory<T>> memory_;
    std::unique_lock<std::mutex> hold_;
};

// Up to this power ratios are raised to whole ones by squaring, not by the logarithm.
constexpr double highest_whole_power = 64;

int64_t whole_power(double power) {
    return -power <= highest_whole_power && power == std::nearbyint(power) ? int64_t(-power) : 0;
}

// A weight goes with (nearest / y)^(1 + |s|): the ratio at which that is `share` of the nearest's.
double ratio_at(double share, double power) { return std::pow(share, 1 / (1 - power)); }

// What a weight may be next to that of the nearest center and still be left out; and what the weight
// of a center must be next to all, so that what was left out is beyond its digits.
template <class T>
constexpr double negligible_share = sizeof(T) == 4 ? 1e-15 : 1e-25;
template <class T>
constexpr double smallest_safe_share = sizeof(T) == 4 ? 1e-7 : 1e-12;

// Beyond this every height but the highest vanishes, and in T it would be infinite.
constexpr double highest_sharpness = 1e30;

// 1 / (2 variance) in the unit of the kernels.
template <class Source>
double sharpness_of(const Request<Source>& request, double unit) {
    if (request.rule != SoftRule::gaussian) return 0;
    return std::min(0.5 / request.variance / unit / unit, highest_sharpness);
}

// What shares add to the squared distances from their Gaussians: those of small ones seem farther.
template <class T>
Aligned<T> offsets_of(const double* shares, int64_t n_centers, int64_t n_padded, double sharpness) {
    if (!shares) return {};
    Aligned<T> offsets(static_cast<std::size_t>(n_padded));
    for (int64_t j = 0; j < n_centers; ++j)
        offsets[std::size_t(j)] =
            T(std::min(-std::log(shares[j]) / sharpness, double(std::numeric_limits<T>::max())));
    return offsets;
}

bool is_safe(const SweepResult& result, double smallest_share) {
    double all = 0;
    for (double weight : result.weights) all += weight;
    return std::all_of(result.weights.begin(), result.weights.end(),
                       [&](double weight) { return weight >= smallest_share * all; });
}

template <class Source>
SweepResult sweep_down_to(double lowest_share, const Source& source, const Request<Source>& request,
                          Team& team) {
    using T = typename Source::Computed;
    const bool is_of_powers = request.task == Task::soft_sums && request.rule == SoftRule::power;
    const double lowest_ratio = is_of_powers ? ratio_at(lowest_share, request.power) : 0;
    const Plan plan = plan_for(source, request.task, request.n_centers, lowest_ratio);
    const Units units = units_of(source, request.centers, request.n_centers);
    const double scale = units.scale;
    const PackedCenters<Source> centers(source, plan, request.centers, request.n_centers, units);
    const Aligned<T> origin = scaled_origin(source, scale);
    const double sharpness = sharpness_of(request, units.unit);
    const Aligned<T> offsets =
        offsets_of<T>(request.shares, request.n_centers, centers.view.n_padded, sharpness);
    HeldMemory<Source> memory(source, plan);
    const Job<T> job{request.task,
                     request.rule,
                     request.power,
                     request.mean_exponent,
                     whole_power(request.power),
                     T(lowest_ratio),
                     sharpness,
                     offsets.get(),
                     T(std::log(lowest_share)),
                     request.sample_weight,
                     request.labels,
                     request.nearest,
                     request.distances,
                     source.heights.values,
                     1 / units.unit,
                     nearest_scale(source) / units.unit,
                     centers.view,
                     plan,
                     memory.recall(source, request, scale)};
    const Groups<T>* groups = groups_of(source, plan, team);
    const int64_t n_padded = centers.view.n_padded;
    const int64_t n_sums = !sums_points(request.task) ? 0
                           : plan.sums_by_center      ? request.n_centers * plan.padded_features
                                                      : source.n_features * n_padded;
    const bool folds = std::is_same_v<T, float> && !plan.direct && source.n_features > features_per_fold;
    const int n_workers = worthwhile_workers(source, request.task, plan, request.n_centers, team);
    const int64_t n_stripes = divide_up(source.n_points, plan.stripe_points);
    std::vector<std::optional<Bench<T>>> benches(static_cast<std::size_t>(n_workers));
    Room room;
    Bench<T> total(room, Plan{}, n_padded, n_sums, false, false);
    const KernelTable& kernels = *chosen_instruction_set().kernels;
    team.run(
        n_stripes, n_workers,
        [&](int worker, int64_t stripe) {
            std::optional<Bench<T>>& bench = benches[std::size_t(worker)];
            if (bench) {
                bench->clear();
            } else {
                team.room(worker).clear();
                bench.emplace(team.room(worker), plan, n_padded, n_sums, folds, is_dense<Source>);
            }
            const int64_t begin = stripe * plan.stripe_points;
            const int64_t end = std::min(source.n_points, begin + plan.stripe_points);
            run_stripe(kernels, source, scale, origin.get(), groups, job, bench->work, begin, end,
                       bench->partial);
        },
        [&](int worker, int64_t) { total.add(*benches[std::size_t(worker)]); });
    memory.keep(source, request);
    return result_of(source, request, plan, total, units);
}

}  // namespace

template <class Source>
SweepResult sweep(const Source& source, const Request<Source>& request, Team& team) {
    using T = typename Source::Computed;
    if (request.task != Task::soft_sums) return sweep_down_to(0, source, request, team);
    if (takes_shortcuts()) {
        SweepResult result = sweep_down_to(negligible_share<T>, source, request, team);
        if (is_safe(result, smallest_safe_share<T>)) return result;
    }
    // A center far from all points lives on shares that are negligible elsewhere.
    return sweep_down_to(std::numeric_limits<T>::min(), source, request, team);
}

bool takes_shortcuts() { return shortcuts(); }

void take_shortcuts(bool taken) { shortcuts() = taken; }

template SweepResult sweep(const DenseSource<float>&, const Request<DenseSource<float>>&, Team&);
template SweepResult sweep(const DenseSource<double>&, const Request<DenseSource<double>>&, Team&);
template SweepResult sweep(const CsrSource<float>&, const Request<CsrSource<float>>&, Team&);
template SweepResult sweep(const CsrSource<double>&, const Request<CsrSource<double>>&, Team&);

}  // namespace powermeans
