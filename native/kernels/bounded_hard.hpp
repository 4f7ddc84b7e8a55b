// The hard rule with bounds from the last sweep. Most points keep their center, and show it by their
// distance to that one and to the few centers that moved far.
#pragma once

#include "elementary.hpp"
#include "groups.hpp"
#include "hard_rule.hpp"

namespace powermeans {
namespace {

// A center is kept by a point where its distance is below what is known of all others by so much
// that neither rounding here nor in a product could tell otherwise.
template <class T>
constexpr double margin_of_bounds = sizeof(T) == 4 ? 1e-3 : 1e-9;

// Copies whole units.
template <class T>
void copy_values(const T* from, int64_t n, T* to) {
    for (int64_t f = 0; f < n; f += lanes<T>) store(to + f, load(from + f));
}

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
        // To the last bit what a comparison with all finds.
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
        // Less is a bound too, and in the unit of the points a distance may be beyond a T.
        bounds.lower[i] = T(smaller<double>(bound, Format<T>::largest));
    }

    // Compares the points in work.left with every center; where that is not all of the block, they are
    // gathered first.
    void compare_with_all(int64_t n_left) const {
        const int64_t n_padded = job.centers.n_padded, width = job.plan.padded_features;
        Workspace<T> gathered = work;
        gathered.nearest = work.gathered_nearest;
        gathered.sq_norms = work.gathered_sq_norms;
        if (n_left < block.n) {
            gathered.packed = work.gathered;
            for (int64_t t = 0; t < n_left; ++t)
                copy_values(packed_point(block, work.left[t]), width, gathered.packed + t * width);
        }
        if (!job.plan.direct)
            for (int64_t t = 0; t < n_left; ++t)
                gathered.sq_norms[t] = sq_norm(gathered.packed + t * width, width);
        const Block<Dense<T>> left{block.points, job, gathered, block.out, block.begin, n_left};
        distances_of_packed(left);
        complete_distances(left);
        int64_t next = round_up(block.begin, bounds.step);  // point that gets a new bound
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
