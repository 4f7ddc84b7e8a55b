#include "many_fits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "interrupts.hpp"
#include "seed.hpp"
#include "source.hpp"
#include "sweep.hpp"

namespace powermeans {
namespace {

// A mean of equal points may miss them by this share of their length.
constexpr double rounding_of_a_mean = 1e3 * std::numeric_limits<double>::epsilon();
// What is left of a weight after another has been subtracted is rounding up to this share of that.
constexpr double rounding_of_weights = 1e-9;

struct Outcome {
    std::vector<double> centers;
    std::vector<int32_t> labels;
    double inertia = std::numeric_limits<double>::infinity();
    int64_t n_iter = 0;
};

template <class V>
class Fit {
  public:
    Fit(const Problem<V>& problem, const ManyFits& asked, const int64_t* order, Team& team)
        : Fit(problem, asked, order, team,
              moments_of(Entries<V>(problem.values), problem.n_points, asked.n_features, team)) {}

    Outcome run(const double* uniforms) {
        Outcome found;
        found.centers = seeds(uniforms);
        while (found.n_iter < asked_.max_iter && !has_settled_)
            found.centers = swept(found.centers), ++found.n_iter;
        for (double& value : found.centers) value = double(V(value));
        found.labels.resize(std::size_t(problem_.n_points));
        Request<V> request = requested(Task::assign, found.centers);
        request.labels = found.labels.data();
        found.inertia = sweep(source_, request, team_).inertia;
        return found;
    }

  private:
    Fit(const Problem<V>& problem, const ManyFits& asked, const int64_t* order, Team& team,
        const Moments& moments)
        : problem_(problem),
          asked_(asked),
          order_(order),
          team_(team),
          source_{problem.values, problem.n_points, asked.n_features, dense_frame<V>(moments)},
          tolerance_(asked.tol * std::accumulate(moments.variance.begin(), moments.variance.end(), 0.0) /
                     double(asked.n_features)) {}

    std::vector<double> seeds(const double* uniforms) {
        has_settled_ = false;
        SeedRequest request{};
        request.sample_weight = problem_.sample_weight;
        request.order = order_;
        request.first = uniforms[0];
        request.others = uniforms + 1;
        request.n_seeds = asked_.n_centers;
        request.n_candidates = asked_.n_candidates;
        std::vector<int64_t> indices(std::size_t(asked_.n_centers));
        greedy_seeds(source_, request, team_, check_interrupt, indices.data());
        std::vector<double> centers;
        for (const int64_t i : indices) centers.insert(centers.end(), row(i), row(i) + asked_.n_features);
        return centers;
    }

    // Returns the means of the points nearest to each center.
    std::vector<double> swept(const std::vector<double>& centers) {
        SweepResult sums = sweep(source_, requested(Task::hard_sums, centers), team_);
        if (*std::min_element(sums.weights.begin(), sums.weights.end()) <= 0) relocate_empty(centers, sums);
        std::vector<double> moved = centers;
        double sq_shift = 0;
        for (std::size_t at = 0; at < moved.size(); ++at) {
            const double weight = sums.weights[at / std::size_t(asked_.n_features)];
            if (weight > 0) moved[at] = sums.points[at] / weight;
            const double step = moved[at] - centers[at];
            sq_shift += step * step;
        }
        has_settled_ = moved == centers || (asked_.tol > 0 && sq_shift <= tolerance_);
        return moved;
    }

    // Moves each empty cluster to the point that adds most to the error, as scikit-learn does.
    void relocate_empty(const std::vector<double>& centers, SweepResult& sums) {
        const std::size_t n = std::size_t(problem_.n_points), d = std::size_t(asked_.n_features);
        std::vector<int32_t> labels(n);
        std::vector<double> nearest(n, std::numeric_limits<double>::infinity());
        Request<V> assigning = requested(Task::assign, centers);
        assigning.labels = labels.data();
        sweep(source_, assigning, team_);
        approach(centers, nearest);
        std::vector<std::size_t> empty;
        for (std::size_t j = 0; j < sums.weights.size(); ++j)
            if (sums.weights[j] <= 0) empty.push_back(j);
        for (const std::size_t j : empty) {
            const std::size_t far = farthest(nearest);
            const std::size_t former = std::size_t(labels[far]);
            const std::vector<double> point(row(int64_t(far)), row(int64_t(far)) + d);
            if (weight_of(far) * nearest[far] == 0 || is_at(point, centers.data() + former * d)) break;
            move(point, weight_of(far), former, j, sums);
            approach(point, nearest);
        }
    }

    void move(const std::vector<double>& point, double weight, std::size_t from, std::size_t to,
              SweepResult& sums) const {
        const std::size_t d = point.size();
        const bool is_last = (sums.weights[from] -= weight) <= rounding_of_weights * weight;
        for (std::size_t f = 0; f < d; ++f) {
            sums.points[from * d + f] -= weight * point[f];
            sums.points[to * d + f] = weight * point[f];
        }
        sums.weights[to] = weight;
        if (is_last) sums.weights[from] = 0;
    }

    void approach(const std::vector<double>& centers, std::vector<double>& nearest) {
        Request<V> request = requested(Task::approach, centers);
        request.nearest = nearest.data();
        sweep(source_, request, team_);
    }

    std::size_t farthest(const std::vector<double>& nearest) const {
        std::size_t far = 0;
        for (std::size_t i = 1; i < nearest.size(); ++i)
            if (weight_of(i) * nearest[i] > weight_of(far) * nearest[far]) far = i;
        return far;
    }

    static bool is_at(const std::vector<double>& point, const double* center) {
        double sq_dist = 0, sq_norm = 0;
        for (std::size_t f = 0; f < point.size(); ++f) {
            sq_dist += (point[f] - center[f]) * (point[f] - center[f]);
            sq_norm += point[f] * point[f];
        }
        return std::sqrt(sq_dist) <= rounding_of_a_mean * std::sqrt(sq_norm);
    }

    Request<V> requested(Task task, const std::vector<double>& centers) const {
        Request<V> request{};
        request.task = task;
        request.raw_centers = centers.data();
        request.n_centers = int64_t(centers.size()) / asked_.n_features;
        request.sample_weight = problem_.sample_weight;
        return request;
    }

    const V* row(int64_t i) const { return problem_.values + i * asked_.n_features; }
    double weight_of(std::size_t i) const { return problem_.sample_weight ? problem_.sample_weight[i] : 1.0; }

    const Problem<V>& problem_;
    const ManyFits& asked_;
    const int64_t* order_;  // in which the masses of the seeds' draws add up
    Team& team_;
    DenseSource<V> source_;
    double tolerance_;
    bool has_settled_ = false;
};

template <class V>
void fit_one(const Problem<V>& problem, int64_t number, const ManyFits& asked, const int64_t* order,
             Team& alone) {
    Fit<V> fit(problem, asked, order, alone);
    Outcome best;
    for (int64_t run = 0; run < asked.n_runs; ++run) {
        Outcome found = fit.run(asked.uniforms + (number * asked.n_runs + run) * asked.uniforms_per_run());
        if (run == 0 || found.inertia < best.inertia) best = std::move(found);
    }
    std::copy(best.centers.begin(), best.centers.end(),
              asked.centers + number * asked.n_centers * asked.n_features);
    std::copy(best.labels.begin(), best.labels.end(), problem.labels);
    asked.inertia[number] = best.inertia;
    asked.n_iter[number] = best.n_iter;
}

}  // namespace

template <class V>
void fit_many(const std::vector<Problem<V>>& problems, const ManyFits& asked, Team& team) {
    int64_t most_points = 0;
    for (const Problem<V>& problem : problems) most_points = std::max(most_points, problem.n_points);
    std::vector<int64_t> order(static_cast<std::size_t>(most_points));
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::unique_ptr<Team>> alone(static_cast<std::size_t>(team.n_threads()));
    for (std::unique_ptr<Team>& one : alone) one = std::make_unique<Team>(1);
    team.run(int64_t(problems.size()), team.n_threads(), [&](int worker, int64_t number) {
        fit_one(problems[std::size_t(number)], number, asked, order.data(), *alone[std::size_t(worker)]);
    });
}

template void fit_many(const std::vector<Problem<float>>&, const ManyFits&, Team&);
template void fit_many(const std::vector<Problem<double>>&, const ManyFits&, Team&);

}  // namespace powermeans
