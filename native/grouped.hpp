// The hard rule for points of few features, group by group.
#pragma once

#include "groups.hpp"
#include "hard_rule.hpp"

namespace powermeans {
namespace {

template <class T>
struct GroupedSweep {
    const Dense<T>& points;
    const Job<T>& job;
    const Workspace<T>& work;
    Partial& out;

    int64_t n_features() const { return points.n_features; }

    void stripe(int64_t begin, int64_t end) const {
        for (int64_t at = begin; at < end; at += job.plan.block_points) {
            const int64_t n = at + job.plan.block_points < end ? job.plan.block_points : end - at;
            block(BlockOfGroups<T>(points, work, at, n));
        }
    }

    void block(const BlockOfGroups<T>& groups) const {
        if (!points.order) {
            for (int64_t g = 0; g < groups.count(); ++g) group(groups, g, nullptr, job.centers.n_centers);
            return;
        }
        const CenterList<T> list = centers_near(groups.box());
        bool is_worth_it = true;
        for (int64_t g = 0; g < groups.count(); ++g) {
            const int32_t* near = nullptr;
            int64_t n_near = job.centers.n_centers;
            if (is_worth_it) {
                near = work.inner;
                n_near =
                    candidates(list, n_features(), groups.box(g), n_wanted(), T(1), work.dist, work.inner);
                // Where most centers are near to one group, so they are to its neighbours.
                is_worth_it = 10 * n_near < 7 * job.centers.n_centers;
            }
            group(groups, g, near, n_near);
        }
    }

    int n_wanted() const { return job.task == Task::spread ? 2 : 1; }

    CenterList<T> centers_near(const Box<T>& box) const {
        const CenterList<T> all{job.centers.panels, nullptr, job.centers.n_centers};
        const int64_t n = candidates(all, n_features(), box, n_wanted(), T(1), work.dist, work.outer);
        gather_panels(job.centers, job.plan.padded_features, work.outer, n, work.outer_panels);
        return {work.outer_panels, work.outer, n};
    }

    static bool are_equal(const Index<T>* index) {
        for (int64_t p = 1; p < points_per_group; ++p)
            if (index[p] != index[0]) return false;
        return true;
    }

    // A whole group to one center.
    void add_group(const T* columns, int64_t begin, int64_t center) const {
        double weights[points_per_group];
        for (int64_t p = 0; p < points_per_group; ++p)
            weights[p] = weight_of(job, place_of(points, begin + p));
        for (int64_t f = 0; f < n_features(); ++f)
            out.points[center * job.plan.padded_features + f] +=
                weighted_sum(columns + f * points_per_group, weights);
    }

    // Of all centers; points are not in another order where distances are affine.
    void nearest_by_affine(int64_t begin, int64_t n, T* nearest, T* second, Index<T>* index) const {
        const AffineGroup group(points, job, begin, n);
        double best[points_per_group], next[points_per_group];
        Index<double> which[points_per_group];
        const int32_t* const all = nullptr;
        nearest_of_group<true, true>(group.columns, group.heights, wide_centers(job.centers),
                                     job.plan.padded_features, all, job.centers.n_centers, best, next, which);
        for (int64_t p = 0; p < points_per_group; ++p) {
            nearest[p] = T(best[p]);
            second[p] = T(next[p]);
            index[p] = Index<T>(which[p]);
        }
    }

    void group(const BlockOfGroups<T>& groups, int64_t g, const int32_t* chosen, int64_t n_chosen) const {
        const T* columns = groups.columns(g);
        const int64_t begin = groups.first(g), n = groups.size(g);
        T nearest[points_per_group], second[points_per_group];
        Index<T> index[points_per_group];
        const T* const no_heights = nullptr;
        if (job.heights)
            nearest_by_affine(begin, n, nearest, second, index);
        else if (job.task == Task::spread)
            nearest_of_group<true, false>(columns, no_heights, job.centers, job.plan.padded_features, chosen,
                                          n_chosen, nearest, second, index);
        else
            nearest_of_group<false, false>(columns, no_heights, job.centers, job.plan.padded_features, chosen,
                                           n_chosen, nearest, second, index);
        out.n_distances += double(n * n_chosen);
        const bool together = job.task == Task::hard_sums && n == points_per_group && are_equal(index);
        if (together) add_group(columns, begin, index[0]);
        for (int64_t p = 0; p < n; ++p) {
            const int64_t i = place_of(points, begin + p), center = index[p];
            const double second_dist = job.task == Task::spread ? double(second[p]) : 0.0;
            take_point(job, i, center, double(nearest[p]), second_dist, out);
            if (job.task != Task::hard_sums || together) continue;
            const double weight = weight_of(job, i);
            double* to = out.points + center * job.plan.padded_features;
            for (int64_t f = 0; f < n_features(); ++f)
                to[f] = multiply_add(double(columns[f * points_per_group + p]), weight, to[f]);
        }
    }
};

}  // namespace
}  // namespace powermeans
