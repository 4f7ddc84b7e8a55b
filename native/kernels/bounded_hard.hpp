// The hard rule with bounds from the last sweep. Most points keep their center: their distances to it and to
// the few centers that moved far prove it.
#pragma once

#include "kernels/elementary.hpp"
#include "kernels/few_centers.hpp"
#include "kernels/groups.hpp"
#include "kernels/hard_rule.hpp"
#include "kernels/prefilter.hpp"

namespace powermeans {
namespace {

// A point keeps its center if that is nearer than all others can be by this relative margin, which is more
// than rounding can change.
template <class T>
constexpr double margin_of_bounds = sizeof(T) == 4 ? 1e-3 : 1e-9;

// How sketches did in a stripe so far. It gives up on them if too few points have few candidates.
struct SketchesTried {
    int64_t n_points = 0;
    int64_t n_in_vain = 0;
    bool are_worth_it() const { return 2 * n_in_vain <= n_points; }
};

template <class T>
struct BoundedHardBlock {
    const Block<Dense<T>>& block;
    SketchesTried& tried;
    const Job<T>& job = block.job;
    const Workspace<T>& work = block.work;
    const Bounds<T>& bounds = block.job.bounds;

    void run() const {
        pack(block);
        if (bounds.is_known && bounds.n_movers) compare_with_movers();
        int64_t n_left = 0;
        for (int64_t p = 0; p < block.n; ++p)
            if (!(bounds.is_known && settle(p))) work.left[n_left++] = int32_t(p);
        if (job.sketched.points.codes) n_left = compare_with_candidates(n_left);
        if (n_left) compare_with_all(n_left);
        const double n_looked = bounds.is_known ? double(block.n * (1 + bounds.n_movers)) : 0.0;
        block.out.n_distances += n_looked + double(n_left * job.centers.n_centers);
        for (int64_t p = 0; p < block.n; ++p) {
            const int64_t center = bounds.labels[block.begin + p];
            take_point(block, p, center, work.nearest[p], work.second[p]);
            if (job.task == Task::hard_sums) add_point(block, p, center, weight_of(block, p));
        }
        count_changed(block, bounds.labels + block.begin);
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
        if (bounds.n_movers && !(limit_of_movers(best) < second)) return false;
        store_bound(i, nearest, second);
        // The same bits that a comparison with all centers gives.
        work.nearest[p] = nearest == own ? best : double(sq_dist_from_differences(block, p, nearest));
        return true;
    }

    // No coordinate is above one, and so no squared norm above the number of features.
    double limit_of_movers(double best) const {
        const int64_t d = job.centers.n_features;
        return limit_of_differences(job, double(d), d, best);
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
        const int64_t width = job.plan.padded_features;
        Workspace<T> gathered = work;
        gathered.sq_norms = work.gathered_sq_norms;
        if (n_left < block.n) {
            gathered.packed = work.gathered;
            for (int64_t t = 0; t < n_left; ++t)
                __builtin_memcpy(gathered.packed + t * width, packed_point(block, work.left[t]),
                                 sizeof(T) * uint64_t(width));
        }
        if (!job.plan.has_exact_rows())
            for (int64_t t = 0; t < n_left; ++t)
                gathered.sq_norms[t] = sq_norm(gathered.packed + t * width, width);
        const Block<Dense<T>> left{block.points, job, gathered, block.out, block.begin, n_left};
        if (job.plan.few_centers)
            FewCenters<T>{left, left.work.packed}.compare_all();
        else
            distances_of_packed(left);
        for (int64_t t = 0; t < n_left; ++t) {
            const int64_t p = work.left[t];
            const ComparedRow<T> compared{block, p, row_of(left, t), gathered.sq_norms[t]};
            const TwoSmallestOfLanes<T> smallest = two_smallest_of(left, t);
            const Found found = compared.nearest(smallest);
            take(p, found);
            if (!wants_second(p)) continue;
            const double others = double(compared.least_but(found.center, smallest));
            store_bound(block.begin + p, found.center,
                        larger(others - error_in_row(gathered.sq_norms[t]), 0.0));
            if (job.task == Task::spread)
                work.second[p] = compared.nearest(compared.without(found.center)).sq_dist;
        }
    }

    // Compares the points in work.left with the centers that their sketches leave; returns how many points
    // are still to be compared with all.
    int64_t compare_with_candidates(int64_t n_left) const {
        const Prefilter<T> prefilter{block};
        int64_t n_kept = 0, at = 0;
        for (; at < n_left && tried.are_worth_it(); at += sketched_together) {
            const int64_t n_here = smaller(sketched_together, n_left - at), n_before = n_kept;
            prefilter.multiply(work.left + at, n_here);
            for (int64_t t = 0; t < n_here; ++t) {
                const int64_t p = work.left[at + t], n = prefilter.list(p, t, wants_second(p));
                if (n)
                    compare_listed(p, n);
                else
                    work.left[n_kept++] = int32_t(p);
            }
            tried.n_points += n_here;
            tried.n_in_vain += n_kept - n_before;
        }
        for (; at < n_left; ++at) work.left[n_kept++] = work.left[at];
        return n_kept;
    }

    void compare_listed(int64_t p, int64_t n) const {
        block.out.n_distances += double(n);
        const Found found = nearest_listed(block, p, n);
        take(p, found);
        if (!wants_second(p)) return;
        int64_t n_others = 0;
        for (int64_t t = 0; t < n; ++t) {
            if (work.tied[t] == found.center) continue;
            work.tied[n_others] = work.tied[t];
            work.tied_dist[n_others++] = work.tied_dist[t];
        }
        work.second[p] = n_others ? nearest_listed(block, p, n_others).sq_dist : 0;
        store_bound(block.begin + p, found.center, work.second[p]);
    }

    void take(int64_t p, const Found& found) const {
        work.nearest[p] = found.sq_dist;
        bounds.labels[block.begin + p] = int32_t(found.center);
    }

    // Whether the point gets a bound, or its second distance is asked for.
    bool wants_second(int64_t p) const {
        return job.task == Task::spread || (block.begin + p) % bounds.step == 0;
    }

    TwoSmallestOfLanes<T> two_smallest_of(const Block<Dense<T>>& left, int64_t t) const {
        if (!job.plan.has_exact_rows()) return complete_row<TwoSmallestOfLanes>(job, left.work, t);
        return two_smallest_in(row_of(left, t), job.centers.n_padded);
    }

    double error_in_row(double sq_norm) const {
        return job.plan.has_exact_rows() ? 0 : error_of_product(job, sq_norm);
    }
};

template <class T>
void bounded_hard_sweep(const Block<Dense<T>>& stripe) {
    const Bounds<T>& bounds = stripe.job.bounds;
    if (bounds.is_known) gather_panels(stripe.job, bounds.movers, bounds.n_movers, stripe.work.outer_panels);
    SketchesTried tried;
    for_each_block(stripe, [&](const Block<Dense<T>>& block) { BoundedHardBlock<T>{block, tried}.run(); });
}

}  // namespace
}  // namespace powermeans
