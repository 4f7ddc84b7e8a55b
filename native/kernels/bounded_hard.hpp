// The hard rule with bounds from the last sweep. Most points keep their center: their distances to it and to
// the few centers that moved far prove it.
#pragma once

#include "elementary.hpp"
#include "groups.hpp"
#include "hard_rule.hpp"

namespace powermeans {
namespace {

// A point keeps its center if that is nearer than all others can be by this relative margin, which is more
// than rounding can change.
template <class T>
constexpr double margin_of_bounds = sizeof(T) == 4 ? 1e-3 : 1e-9;

template <class T>
struct BoundedHardBlock {
    const Block<Dense<T>>& block;
    const Job<T>& job = block.job;
    const Workspace<T>& work = block.work;
    const Bounds<T>& bounds = block.job.bounds;

    void run() const {
        pack(block);
        if (bounds.is_known && bounds.n_movers) compare_with_movers();
        int64_t n_left = 0;
        for (int64_t p = 0; p < block.n; ++p)
            if (!(bounds.is_known && settle(p))) work.left[n_left++] = int32_t(p);
        if (n_left) compare_with_all(n_left);
        const double n_looked = bounds.is_known ? double(block.n * (1 + bounds.n_movers)) : 0.0;
        block.out.n_distances += n_looked + double(n_left * job.centers.n_centers);
        for (int64_t p = 0; p < block.n; ++p) {
            const int64_t center = bounds.labels[block.begin + p];
            take_point(block, p, center, work.nearest[p], work.second[p]);
            if (job.task == Task::hard_sums) add_point(block, p, center, weight_of(block, p));
        }
    }

    // Finds the nearest center among the point's own and the movers; returns false where another may be
    // nearer.
    bool settle(int64_t p) const {
        const int64_t i = block.begin + p, own = bounds.new_index[bounds.labels[i]];
        if (own < 0) return false;
        const double others = double(bounds.lower[i]) * bounds.scale - bounds.rest_shift;
        if (!(others > 0)) return false;
        int64_t nearest = own;
        double best = sq_dist_from_differences(block, p, own), second = others * others;
        for (int64_t m = 0; m < bounds.n_movers; ++m) {
            const double y = double(work.dist[p * n_movers_padded() + m]);
            if (bounds.movers[m] == own) continue;
            second = smaller(larger(best, y), second);
            if (y < best) {
                best = y;
                nearest = bounds.movers[m];
            }
        }
        if (!(best * (1 + margin_of_bounds<T>) < second)) return false;
        store_bound(i, nearest, second);
        // The same bits that a comparison with all centers gives.
        work.nearest[p] = nearest == own ? best : double(sq_dist_from_differences(block, p, nearest));
        return true;
    }

    int64_t n_movers_padded() const { return round_up(bounds.n_movers, unit_lanes<T>); }

    // Squared distances to the movers, in work.dist.
    void compare_with_movers() const {
        Centers<T> movers = job.centers;
        movers.panels = work.outer_panels;
        movers.n_padded = n_movers_padded();
        add_features<true>(block, movers, 0, movers.n_features);
    }

    void store_bound(int64_t i, int64_t center, double second_sq_dist) const {
        const double shortened = __builtin_sqrt(second_sq_dist) * (1 - margin_of_bounds<T>);
        const double bound = larger(shortened - bounds.rounding, 0.0) / bounds.scale;
        bounds.labels[i] = int32_t(center);
        // In the unit of the points the bound may overflow a T; a lower one is valid too.
        bounds.lower[i] = T(smaller<double>(bound, Format<T>::largest));
    }

    // Compares the points in work.left with every center, and gathers them first unless they are all of the
    // block.
    void compare_with_all(int64_t n_left) const {
        const int64_t n_padded = job.centers.n_padded, width = job.plan.padded_features;
        Workspace<T> gathered = work;
        gathered.nearest = work.gathered_nearest;
        gathered.sq_norms = work.gathered_sq_norms;
        if (n_left < block.n) {
            gathered.packed = work.gathered;
            for (int64_t t = 0; t < n_left; ++t)
                __builtin_memcpy(gathered.packed + t * width, packed_point(block, work.left[t]),
                                 sizeof(T) * uint64_t(width));
        }
        if (!job.plan.direct)
            for (int64_t t = 0; t < n_left; ++t)
                gathered.sq_norms[t] = sq_norm(gathered.packed + t * width, width);
        const Block<Dense<T>> left{block.points, job, gathered, block.out, block.begin, n_left};
        distances_of_packed(left);
        complete_distances(left);
        int64_t next = round_up(block.begin, bounds.step);  // the next point to get a bound
        for (int64_t t = 0; t < n_left; ++t) {
            T* row = row_of(left, t);
            const int64_t p = work.left[t], i = block.begin + p;
            const int64_t center = first_equal(row, n_padded, T(gathered.nearest[t]));
            work.nearest[p] = sq_dist_from_differences(block, p, center);
            bounds.labels[i] = int32_t(center);
            if (i < next) continue;
            next = i + bounds.step;
            row[center] = T(__builtin_inf());
            work.second[p] = double(smallest_in(row, n_padded));
            store_bound(i, center, work.second[p]);
        }
    }
};

template <class T>
void bounded_hard_sweep(const Block<Dense<T>>& stripe) {
    const Bounds<T>& bounds = stripe.job.bounds;
    if (bounds.is_known) gather_panels(stripe.job, bounds.movers, bounds.n_movers, stripe.work.outer_panels);
    for_each_block(stripe, [](const Block<Dense<T>>& block) { BoundedHardBlock<T>{block}.run(); });
}

}  // namespace
}  // namespace powermeans
