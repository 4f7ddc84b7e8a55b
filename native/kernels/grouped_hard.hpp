// The hard rule for points of few features, group by group. In spatial order, a group is compared only with
// the centers near its box.
#pragma once

#include "kernels/groups.hpp"
#include "kernels/hard_rule.hpp"

namespace powermeans {
namespace {

// A search for near centers pays while fewer tenths of all centers than this are near.
constexpr int64_t near_tenths_worth_it = 7;

template <class T>
struct GroupedHardBlock {
    const Block<Dense<T>>& block;
    const Job<T>& job = block.job;
    const Workspace<T>& work = block.work;
    PartialSums& out = block.out;

    int64_t n_features() const { return block.points.n_features; }
    int n_wanted() const { return job.task == Task::spread ? 2 : 1; }

    void run() const {
        const Groups<T> groups(block);
        const int64_t n_centers = job.centers.n_centers;
        bool is_worth_it = block.points.order != nullptr;
        const CenterList<T> list = is_worth_it ? centers_near(groups.box()) : CenterList<T>{};
        for (int64_t g = 0; g < groups.count(); ++g) {
            const int32_t* near = nullptr;
            int64_t n_near = n_centers;
            if (is_worth_it) {
                near = work.inner;
                n_near = find_candidates(list, n_features(), groups.box(g), n_wanted(), T(1), work.dist,
                                         work.inner);
                // If most centers are near one group, they are near its neighbors too.
                is_worth_it = 10 * n_near < near_tenths_worth_it * n_centers;
            }
            add_group(groups[g], groups.columns(g), near, n_near);
        }
    }

    CenterList<T> centers_near(const Box<T>& box) const {
        const CenterList<T> all{job.centers.panels, nullptr, job.centers.n_centers};
        const int64_t n = find_candidates(all, n_features(), box, n_wanted(), T(1), work.dist, work.outer);
        gather_panels(job, work.outer, n, work.outer_panels);
        return {work.outer_panels, work.outer, n};
    }

    void add_group(const Block<Dense<T>>& group, const T* columns, const int32_t* chosen,
                   int64_t n_chosen) const {
        Nearest<T> found;
        const T* const no_heights = nullptr;
        const bool is_precise = wants_digits_of_stored(group);
        if (job.heights)
            find_nearest_affine(group, found);
        else if (job.task == Task::spread || is_precise)
            find_nearest<true, false>(columns, no_heights, job.centers, job.plan.padded_features, chosen,
                                      n_chosen, found);
        else
            find_nearest<false, false>(columns, no_heights, job.centers, job.plan.padded_features, chosen,
                                       n_chosen, found);
        out.n_distances += double(group.n * n_chosen);
        const bool is_summed = job.task == Task::hard_sums;
        const bool together = is_summed && group.n == points_per_group && are_equal(found.index);
        if (together) add_together(group, columns, found.index[0]);
        for (int64_t p = 0; p < group.n; ++p) {
            const int64_t center =
                is_precise ? nearest_stored(group, p, found, chosen, n_chosen) : int64_t(found.index[p]);
            const bool is_second_wanted = job.task == Task::spread || job.margins;
            const double second = is_second_wanted ? double(found.second[p]) : 0.0;
            take_point(group, p, center, double(found.nearest[p]), second);
            if (is_summed && !together)
                add_point(group, columns, p, out.points + center * job.plan.padded_features);
        }
        count_changed(group, found.index);
    }

    // Returns the nearest of the chosen centers, by exact comparison where rounding may have changed it.
    int64_t nearest_stored(const Block<Dense<T>>& group, int64_t p, const Nearest<T>& found,
                           const int32_t* chosen, int64_t n_chosen) const {
        const int64_t d = n_features();
        const double limit = limit_of_differences(job, double(d), d, double(found.nearest[p]));
        int64_t nearest = found.index[p];
        if (double(found.second[p]) > limit) return nearest;
        double least = precise_sq_dist(group, p, nearest);
        for (int64_t t = 0; t < n_chosen; ++t) {
            const int64_t j = chosen ? int64_t(chosen[t]) : t;
            const double sq_dist = precise_sq_dist(group, p, j);
            if (sq_dist > least || (sq_dist == least && j > nearest)) continue;
            least = sq_dist;
            nearest = j;
        }
        return nearest;
    }

    void add_point(const Block<Dense<T>>& group, const T* columns, int64_t p, double* to) const {
        const double weight = weight_of(group, p);
        int64_t f = 0;
        if (!group.points.order) {  // else the point lies where memory is slow
            const Dense<T>& points = group.points;
            const T* const from = stored_point(group, p);
            for (; f + lanes<T> <= n_features(); f += lanes<T>)
                add_to(to + f,
                       multiply_add(load(from + f), broadcast(points.scale), -load(points.scaled_origin + f)),
                       weight);
            if constexpr (lanes<T> > 4)
                for (; f + 4 <= n_features(); f += 4)
                    add_four(to + f, from + f, points.scale, points.scaled_origin + f, weight);
        }
        for (; f < n_features(); ++f)
            to[f] = multiply_add(double(columns[f * points_per_group + p]), weight, to[f]);
    }

    // Compares with all centers: affine distances have no spatial order.
    void find_nearest_affine(const Block<Dense<T>>& group, Nearest<T>& found) const {
        const AffineGroup affine(group);
        Centers<double> wide{};
        wide.n_features = job.centers.n_features;
        wide.rows = job.centers.rows_wide;
        wide.sq_norms = job.centers.sq_norms_wide;
        Nearest<double> found_wide;
        const int32_t* const all = nullptr;
        find_nearest<true, true>(affine.columns, affine.heights, wide, job.plan.padded_features, all,
                                 job.centers.n_centers, found_wide);
        for (int64_t p = 0; p < points_per_group; ++p) {
            found.nearest[p] = T(found_wide.nearest[p]);
            found.second[p] = T(found_wide.second[p]);
            found.index[p] = Index<T>(found_wide.index[p]);
        }
    }

    static bool are_equal(const Index<T>* index) {
        for (int64_t p = 1; p < points_per_group; ++p)
            if (index[p] != index[0]) return false;
        return true;
    }

    // Adds a whole group to one center.
    void add_together(const Block<Dense<T>>& group, const T* columns, int64_t center) const {
        double weights[points_per_group];
        for (int64_t p = 0; p < points_per_group; ++p) weights[p] = weight_of(group, p);
        for (int64_t f = 0; f < n_features(); ++f)
            out.points[center * job.plan.padded_features + f] +=
                weighted_sum(columns + f * points_per_group, weights);
    }
};

}  // namespace
}  // namespace powermeans
