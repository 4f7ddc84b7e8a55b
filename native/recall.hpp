// The hard rule with a memory of the sweep before: most points keep their center, and show it by
// their distance to that one and to the few that moved far.
#pragma once

#include "elementary.hpp"
#include "hard_rule.hpp"

namespace powermeans {
namespace {

// A center is kept by a point where its distance is below what is known of all others by so much
// that neither rounding here nor in a product could tell otherwise.
template <class T>
constexpr double margin_of_recall = sizeof(T) == 4 ? 1e-3 : 1e-9;

double square_root(double x) { return __builtin_sqrt(x); }

// Whole units of them.
template <class T>
void copy_values(const T* from, int64_t n, T* to) {
    for (int64_t f = 0; f < n; f += lanes<T>) store(to + f, load(from + f));
}

template <class T>
struct RecalledSweep {
    const Dense<T>& points;
    const Job<T>& job;
    const Workspace<T>& work;
    Partial& out;

    const Recall<T>& recall() const { return job.recall; }

    void stripe(int64_t begin, int64_t end) const {
        if (recall().is_known)
            gather_panels(job.centers, job.plan.padded_features, recall().movers, recall().n_movers,
                          work.outer_panels);
        for (int64_t at = begin; at < end; at += job.plan.block_points)
            block(at, at + job.plan.block_points < end ? job.plan.block_points : end - at);
    }

    void block(int64_t begin, int64_t n) const {
        pack(points, job.plan, begin, n, work);
        if (recall().is_known && recall().n_movers) compare_with_movers(n);
        int64_t n_left = 0;
        for (int64_t p = 0; p < n; ++p)
            if (!(recall().is_known && settle(begin, p))) work.left[n_left++] = int32_t(p);
        if (n_left) look_at_all(begin, n_left, n);
        const double n_looked = recall().is_known ? double(n * (1 + recall().n_movers)) : 0.0;
        out.n_distances += n_looked + double(n_left * job.centers.n_centers);
        for (int64_t p = 0; p < n; ++p) {
            const int64_t i = begin + p, center = recall().label[i];
            take_point(job, i, center, work.nearest[p], work.second[p], out);
            if (job.task == Task::hard_sums)
                add_point(points, job, work, begin, p, center, weight_of(job, i), out);
        }
    }

    bool settle(int64_t begin, int64_t p) const {
        const int64_t i = begin + p;
        int64_t nearest = recall().own[recall().label[i]];
        if (nearest < 0) return false;
        const double others = double(recall().others[i]) * recall().scale - recall().rest_shift;
        if (!(others > 0)) return false;
        const int64_t own = nearest;
        double best = sq_dist_from_differences(points, job, work, begin, p, own), second = others * others;
        for (int64_t m = 0; m < recall().n_movers; ++m) {
            const double y = double(work.dist[p * n_movers_padded() + m]);
            if (recall().movers[m] == own) continue;
            if (y < best) {
                second = best < second ? best : second;
                best = y;
                nearest = recall().movers[m];
            } else if (y < second) {
                second = y;
            }
        }
        if (!(best * (1 + margin_of_recall<T>) < second)) return false;
        remember(i, nearest, second);
        // To the last bit what a look at all finds.
        work.nearest[p] =
            nearest == own ? best : double(sq_dist_from_differences(points, job, work, begin, p, nearest));
        return true;
    }

    int64_t n_movers_padded() const { return round_up(recall().n_movers, unit_lanes<T>); }

    // Squared distances of a block to the movers, in work.dist.
    void compare_with_movers(int64_t n) const {
        Job<T> moved = job;
        moved.centers.panels = work.outer_panels;
        moved.centers.n_padded = n_movers_padded();
        tiles_of_features<T, true>(moved, work, n, 0, points.n_features);
    }

    // A lower bound, in the unit of the points.
    void remember(int64_t i, int64_t center, double second_sq_dist) const {
        const double distance = square_root(second_sq_dist) * (1 - margin_of_recall<T>)-recall().rounding;
        recall().label[i] = int32_t(center);
        const double bound = (distance > 0 ? distance : 0) / recall().scale;
        // Less is a bound too, and in the unit of the points a distance may be beyond a T.
        recall().others[i] = T(bound < Format<T>::largest ? bound : Format<T>::largest);
    }

    // Where not every point is remembered, all are looked at.
    void look_at_all(int64_t begin, int64_t n_left, int64_t n) const {
        const int64_t n_padded = job.centers.n_padded, width = job.plan.padded_features;
        Workspace<T> gathered = work;
        if (n_left < n) {
            gathered.packed = work.gathered;
            for (int64_t t = 0; t < n_left; ++t)
                copy_values(work.packed + work.left[t] * width, width, gathered.packed + t * width);
        }
        gathered.nearest = work.gathered_nearest;
        gathered.sq_norms = work.gathered_sq_norms;
        if (!job.plan.direct)
            for (int64_t t = 0; t < n_left; ++t)
                gathered.sq_norms[t] = sq_norm(gathered.packed + t * width, width);
        packed_distances(job, gathered, n_left, points.n_features);
        complete_distances(points, job, gathered, begin, n_left);
        int64_t next = round_up(begin, recall().step);
        for (int64_t t = 0; t < n_left; ++t) {
            T* row = gathered.dist + t * n_padded;
            const int64_t p = work.left[t], i = begin + p;
            const int64_t center = first_equal(row, n_padded, T(gathered.nearest[t]));
            work.nearest[p] = sq_dist_from_differences(points, job, work, begin, p, center);
            recall().label[i] = int32_t(center);
            if (i < next) continue;
            next = i + recall().step;
            row[center] = T(__builtin_inf());
            work.second[p] = double(smallest_in(row, n_padded));
            remember(i, center, work.second[p]);
        }
    }
};

}  // namespace
}  // namespace powermeans
