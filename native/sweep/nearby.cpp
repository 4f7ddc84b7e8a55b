// Sweeps in which a point is compared only with the centers near the one that it has so far. The points of a
// center are a cell: together they are compared with the few centers listed beside it. The lists are made here
// too.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "dispatch.hpp"
#include "kernels/rounding.hpp"
#include "sweep/packed_centers.hpp"
#include "sweep/plan.hpp"
#include "sweep/powers.hpp"
#include "sweep/sweep.hpp"
#include "sweep/worker_memory.hpp"

namespace powermeans {
namespace {

// A stripe of cells takes milliseconds, so that handing it out costs nothing beside it.
constexpr int64_t work_per_stripe = 1 << 23;
// So many centers are compared with all at a time, each time reading all from memory.
constexpr int64_t listed_together = 96;

// The points in the order of their labels.
struct Cells {
    std::vector<int32_t> points;  // (n_points,)
    std::vector<int64_t> starts;  // (n_centers + 1,): where those of each label begin

    Cells(const int32_t* labels, int64_t n_points, int64_t n_centers)
        : points(std::size_t(n_points)), starts(std::size_t(n_centers + 1)) {
        for (int64_t i = 0; i < n_points; ++i) ++starts[std::size_t(labels[i]) + 1];
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        std::vector<int64_t> next(starts.begin(), starts.end() - 1);
        for (int64_t i = 0; i < n_points; ++i)
            points[std::size_t(next[std::size_t(labels[i])]++)] = int32_t(i);
    }

    int64_t size(int64_t cell) const { return starts[std::size_t(cell) + 1] - starts[std::size_t(cell)]; }
};

// Returns where stripes of cells begin, each of about the same work, and the number of cells at the end.
std::vector<int64_t> stripes_of(const Cells& cells, int64_t n_cells, int64_t n_listed, int64_t n_features) {
    std::vector<int64_t> starts{0};
    int64_t work = 0;
    for (int64_t cell = 0; cell < n_cells; ++cell) {
        // Packing the centers takes as long as comparing them with a few points.
        work += (cells.size(cell) + 8) * n_listed * n_features;
        if (work < work_per_stripe) continue;
        starts.push_back(cell + 1);
        work = 0;
    }
    if (starts.back() != n_cells) starts.push_back(n_cells);
    return starts;
}

// What the cells of a stripe add to the centers that got weight from their points.
struct CellSums {
    std::vector<int32_t> centers;
    std::vector<double> values;  // for each: weight, error, utility, and the sums of the features
    double objective = 0, inertia = 0, n_distances = 0;
};

template <class T>
SweepShape shape_of_cells(const DenseSource<T>& source, const Request<T>& request, int64_t n_centers) {
    SweepShape shape{};
    shape.task = request.task;
    shape.n_points = source.n_points;
    shape.n_features = source.n_features;
    shape.n_centers = n_centers;
    shape.stored_per_point = source.n_features;
    shape.value_bytes = sizeof(T);
    shape.is_dense = true;
    shape.is_nearby = true;
    return shape;
}

// The centers listed beside a cell, copied from those of all cells.
template <class T>
class ListedCenters {
  public:
    ListedCenters(const Centers<T>& all, const Plan& plan, int64_t n_listed)
        : all_(all),
          width_(plan.padded_features),
          panels_(std::size_t(round_up(n_listed, unit_lanes<T>) * all.n_features)),
          rows_(std::size_t(n_listed * width_)),
          rows_wide_(std::size_t(n_listed * width_)),
          sq_norms_(std::size_t(round_up(n_listed, unit_lanes<T>))),
          sq_norms_wide_(std::size_t(round_up(n_listed, unit_lanes<T>))),
          offsets_(std::size_t(round_up(n_listed, unit_lanes<T>))) {
        view_ = all;
        view_.n_centers = n_listed;
        view_.n_padded = round_up(n_listed, unit_lanes<T>);
        view_.panels = panels_.get();
        view_.rows = rows_.get();
        view_.rows_wide = rows_wide_.get();
        view_.sq_norms = sq_norms_.get();
        view_.sq_norms_wide = sq_norms_wide_.data();
        for (int64_t t = n_listed; t < view_.n_padded; ++t)
            take_norm(t, std::numeric_limits<double>::infinity());
    }

    // `offsets`, of all centers, may be null.
    const Centers<T>& gather(const int32_t* listed, const T* offsets) {
        for (int64_t t = 0; t < view_.n_centers; ++t) {
            const int64_t j = listed[t];
            const T* row = all_.rows + j * width_;
            std::copy_n(row, width_, rows_.get() + t * width_);
            std::copy_n(all_.rows_wide + j * width_, width_, rows_wide_.get() + t * width_);
            constexpr int64_t lanes = unit_lanes<T>;
            T* column = panels_.get() + t / lanes * all_.n_features * lanes + t % lanes;
            for (int64_t f = 0; f < all_.n_features; ++f) column[f * lanes] = T(-2) * row[f];
            take_norm(t, all_.sq_norms_wide[j]);
            if (offsets) offsets_.get()[t] = offsets[j];
        }
        return view_;
    }

    const T* offsets() const { return offsets_.get(); }

  private:
    void take_norm(int64_t t, double norm) {
        sq_norms_wide_[std::size_t(t)] = norm;
        sq_norms_[std::size_t(t)] = T(norm);
    }

    const Centers<T>& all_;
    int64_t width_;
    Aligned<T> panels_, rows_;
    Aligned<double> rows_wide_;
    Aligned<T> sq_norms_;
    std::vector<double> sq_norms_wide_;
    Aligned<T> offsets_;
    Centers<T> view_;
};

// Compares the points of one cell after another with the centers listed beside theirs.
template <class T>
class CellSweep {
  public:
    CellSweep(const DenseSource<T>& source, const Request<T>& request, const Nearby& nearby, Team& team)
        : source_(source),
          request_(request),
          nearby_(nearby),
          team_(team),
          cells_(nearby.labels, source.n_points, request.n_centers),
          starts_(stripes_of(cells_, request.n_centers, nearby.n_listed, source.n_features)),
          shape_(shape_of_cells(source, request, nearby.n_listed)),
          plan_(plan_for(shape_)),
          units_(units_of(source, request.raw_centers, request.n_centers)),
          centers_(source, plan_, request.raw_centers, request.n_centers, units_, team),
          origin_(scaled_origin<T>(source.frame, source.n_features, units_.scale)),
          offsets_(offsets_of(request, centers_.view().n_padded, 0, units_.unit)) {}

    SweepResult run() {
        const int64_t k = request_.n_centers, d = source_.n_features;
        SweepResult total;
        for (std::vector<double>* values : {&total.weights, &total.error, &total.utility})
            values->resize(std::size_t(k));
        if (shape_.sums_points()) total.points.resize(std::size_t(k * d));
        std::vector<CellSums> sums(std::size_t(team_.n_threads()));
        const auto compute = [&](int worker, int64_t stripe) {
            sums[std::size_t(worker)] = CellSums{};
            sweep_stripe(stripe, team_.arena(worker), sums[std::size_t(worker)]);
        };
        const StripeWork merge = [&](int worker, int64_t) { add(sums[std::size_t(worker)], total); };
        team_.run(int64_t(starts_.size()) - 1, team_.n_threads(), compute, merge);
        back_from_frame(total);
        return total;
    }

  private:
    void sweep_stripe(int64_t stripe, Arena& arena, CellSums& sums) {
        arena.clear();
        const int64_t n_padded = round_up(nearby_.n_listed, unit_lanes<T>);
        WorkerMemory<T> memory(arena, shape_, plan_, n_padded);
        ListedCenters<T> listed(centers_.view(), plan_, nearby_.n_listed);
        for (int64_t cell = starts_[std::size_t(stripe)]; cell < starts_[std::size_t(stripe) + 1]; ++cell) {
            if (!cells_.size(cell)) continue;
            check_interrupt();
            memory.sums.clear();
            const Centers<T>& near =
                listed.gather(nearby_.neighbours + cell * nearby_.n_listed, offsets_.get());
            sweep_cell(cell, memory, near, listed.offsets());
            keep(cell, memory.sums, sums);
        }
    }

    void sweep_cell(int64_t cell, WorkerMemory<T>& memory, const Centers<T>& listed, const T* offsets) {
        Job<T> job{};
        static_cast<Request<T>&>(job) = request_;
        job.n_centers = nearby_.n_listed;
        if (is_of_powers(request_)) {
            job.whole_power = whole_power(request_.power);
            job.lowest_ratio = T(ratio_at(negligible_share<T>, request_.power));
            job.lowest_log = T(std::log(negligible_share<T>));
        }
        job.offsets = offsets;
        job.unscale = 1 / units_.unit;
        job.centers = listed;
        job.plan = plan_;
        const int32_t* neighbours = nearby_.neighbours + cell * nearby_.n_listed;
        const Dense<T> points{source_.values, origin_.get(), T(units_.scale), source_.n_features,
                              cells_.points.data()};
        const int64_t begin = cells_.starts[std::size_t(cell)], end = cells_.starts[std::size_t(cell) + 1];
        const SweepKernel<Dense<T>>& kernel = *chosen_instruction_set().kernels;
        const bool lists = request_.task == Task::near_lists;
        if (lists)
            for (int64_t at = begin; at < end; ++at) request_.labels[cells_.points[std::size_t(at)]] = 0;
        kernel.sweep({points, job, memory.work, memory.sums.partial, begin, end - begin});
        if (shape_.is_soft()) return;
        // Until here, numbers are of places in the list.
        const int64_t n_most = request_.near.n_most;
        for (int64_t at = begin; at < end; ++at) {
            const int64_t point = cells_.points[std::size_t(at)];
            request_.labels[point] = neighbours[request_.labels[point]];
            if (!lists) continue;
            int32_t* listed = request_.near.centers + point * n_most;
            for (int64_t t = 0; t < n_most && listed[t] >= 0; ++t) listed[t] = neighbours[listed[t]];
        }
    }

    int64_t values_each() const { return 3 + (shape_.sums_points() ? source_.n_features : 0); }

    void keep(int64_t cell, const StripeSums& from, CellSums& sums) const {
        const PartialSums& partial = from.partial;
        const int32_t* neighbours = nearby_.neighbours + cell * nearby_.n_listed;
        for (int64_t t = 0; t < nearby_.n_listed; ++t) {
            if (partial.weights[t] == 0) continue;
            sums.centers.push_back(neighbours[t]);
            for (const double value : {partial.weights[t], partial.error[t], partial.utility[t]})
                sums.values.push_back(value);
            if (!shape_.sums_points()) continue;
            for (int64_t f = 0; f < source_.n_features; ++f)
                sums.values.push_back(partial.points[from.index(t, f)]);
        }
        sums.objective += partial.objective;
        sums.inertia += partial.inertia;
        sums.n_distances += partial.n_distances;
    }

    void add(const CellSums& sums, SweepResult& total) const {
        const int64_t d = source_.n_features, width = values_each();
        for (std::size_t t = 0; t < sums.centers.size(); ++t) {
            const double* values = sums.values.data() + int64_t(t) * width;
            const std::size_t j = std::size_t(sums.centers[t]);
            total.weights[j] += values[0];
            total.error[j] += values[1];
            total.utility[j] += values[2];
            for (int64_t f = 3; f < width; ++f)
                total.points[j * std::size_t(d) + std::size_t(f - 3)] += values[f];
        }
        total.objective += sums.objective;
        total.inertia += sums.inertia;
        total.n_distances += sums.n_distances;
    }

    void back_from_frame(SweepResult& total) const {
        const int64_t d = source_.n_features;
        for (std::size_t i = 0; i < total.points.size(); ++i) {
            const int64_t j = int64_t(i) / d, f = int64_t(i) % d;
            total.points[i] =
                total.points[i] / units_.scale + total.weights[std::size_t(j)] * source_.frame.origin_of(f);
        }
        const double unscale = 1 / units_.unit;
        for (std::vector<double>* values : {&total.error, &total.utility})
            for (double& value : *values) value = value * unscale * unscale;
        total.inertia = total.inertia * unscale * unscale;
        total.objective = shape_.is_hard() ? total.inertia : total.objective * unscale * unscale;
        if (is_of_powers(request_))
            complete_powers(request_, unscale, total.objective, total.points, total.weights);
    }

    const DenseSource<T>& source_;
    const Request<T>& request_;
    const Nearby& nearby_;
    Team& team_;
    const Cells cells_;
    const std::vector<int64_t> starts_;
    const SweepShape shape_;
    const Plan plan_;
    const Units units_;
    const PackedCenters<DenseSource<T>> centers_;
    const Aligned<T> origin_;
    const Aligned<T> offsets_;  // of prices, or none
};

// Writes the number of a center and those of the ones nearest to it, nearest first and then in their order.
template <class T>
class NearestFew {
  public:
    explicit NearestFew(int64_t n_listed) : n_others_(std::size_t(n_listed - 1)) {}

    // `offsets`, which are added to the distances, may be null.
    void list(const T* sq_dist, const T* offsets, int64_t n_centers, int64_t own, int32_t* list) {
        nearest_.clear();
        for (int64_t j = 0; j < n_centers; ++j)
            if (j != own) offer({sq_dist[j] + (offsets ? offsets[j] : T(0)), int32_t(j)});
        std::sort_heap(nearest_.begin(), nearest_.end());
        *list = int32_t(own);
        for (const Listed& other : nearest_) *++list = other.second;
    }

  private:
    using Listed = std::pair<T, int32_t>;

    void offer(const Listed& other) {
        if (nearest_.size() == n_others_) {
            if (!n_others_ || !(other < nearest_.front())) return;
            std::pop_heap(nearest_.begin(), nearest_.end());
            nearest_.pop_back();
        }
        nearest_.push_back(other);
        std::push_heap(nearest_.begin(), nearest_.end());
    }

    std::size_t n_others_;
    std::vector<Listed> nearest_;  // a heap
};

}  // namespace

template <class T>
void list_nearby(const DenseSource<T>& source, const double* raw_centers, const double* prices,
                 int64_t n_listed, Team& team, int32_t* lists) {
    const int64_t k = source.n_points, d = source.n_features;
    Request<T> request{};
    request.task = Task::distances;
    request.n_centers = k;
    request.prices = prices;
    const SweepShape shape = shape_of_cells(source, request, k);
    Plan plan = plan_for(shape);
    plan.block_points = listed_together;
    const Units units = units_of(source, raw_centers, k);
    const PackedCenters<DenseSource<T>> centers(source, plan, raw_centers, k, units, team);
    const Aligned<T> origin = scaled_origin<T>(source.frame, d, units.scale);
    const Aligned<T> offsets = offsets_of(request, k, 0, units.unit);
    const SweepKernel<Dense<T>>& kernel = *chosen_instruction_set().kernels;
    team.run(divide_up(k, listed_together), team.n_threads(), [&](int worker, int64_t stripe) {
        check_interrupt();
        Arena& arena = team.arena(worker);
        arena.clear();
        WorkerMemory<T> memory(arena, shape, plan, centers.view().n_padded);
        Job<T> job{};
        static_cast<Request<T>&>(job) = request;
        job.unscale = 1;
        job.centers = centers.view();
        job.plan = plan;
        arena.take(job.distances, listed_together * k);
        const int64_t begin = stripe * listed_together, n = std::min(listed_together, k - begin);
        const Dense<T> points{source.values.from(begin * d), origin.get(), T(units.scale), d};
        kernel.sweep({points, job, memory.work, memory.sums.partial, 0, n});
        NearestFew<T> nearest(n_listed);
        for (int64_t p = 0; p < n; ++p)
            nearest.list(job.distances + p * k, offsets.get(), k, begin + p, lists + (begin + p) * n_listed);
    });
}

template void list_nearby(const DenseSource<float>&, const double*, const double*, int64_t, Team&, int32_t*);
template void list_nearby(const DenseSource<double>&, const double*, const double*, int64_t, Team&, int32_t*);

template <class T>
SweepResult sweep_nearby(const DenseSource<T>& source, const Request<T>& request, const Nearby& nearby,
                         Team& team) {
    return CellSweep<T>(source, request, nearby, team).run();
}

template SweepResult sweep_nearby(const DenseSource<float>&, const Request<float>&, const Nearby&, Team&);
template SweepResult sweep_nearby(const DenseSource<double>&, const Request<double>&, const Nearby&, Team&);

}  // namespace powermeans
