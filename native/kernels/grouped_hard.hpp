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
        const bool is_second_wanted = job.task == Task::spread || job.margins;
        if (!is_precise && !is_second_wanted)
            add_up(group, columns, found);
        else
            for (int64_t p = 0; p < group.n; ++p) {
                const int64_t center =
                    is_precise ? nearest_stored(group, p, found, chosen, n_chosen) : int64_t(found.index[p]);
                const double second = is_second_wanted ? double(found.second[p]) : 0.0;
                take_point(group, p, center, double(found.nearest[p]), second);
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

    // Gives the points to their nearest centers, one kind of sum after another: each loop is short, and reads
    // nothing that it writes but the sums.
    void add_up(const Block<Dense<T>>& group, const T* columns, const Nearest<T>& found) const {
        double weights[points_per_group], inertia = out.inertia;
        for (int64_t p = 0; p < group.n; ++p) weights[p] = weight_of(group, p);
        for (int64_t p = 0; p < group.n; ++p) out.weights[found.index[p]] += weights[p];
        for (int64_t p = 0; p < group.n; ++p) inertia += weights[p] * double(found.nearest[p]);
        out.inertia = inertia;
        if (job.labels)
            for (int64_t p = 0; p < group.n; ++p) job.labels[index_of(group, p)] = int32_t(found.index[p]);
        if (job.task != Task::hard_sums) return;
        if (group.n == points_per_group && are_equal(found.index))
            add_together(columns, weights, found.index[0]);
        else
            add_points(group, columns, weights, found.index);
    }

    // Adds up the points, a few features of all at a time.
    void add_points(const Block<Dense<T>>& group, const T* columns, const double* weights,
                    const Index<T>* centers) const {
        const Dense<T> points = group.points;  // a copy, since stores of vectors may alias anything
        const int64_t n = group.n, d = points.n_features;
        double* const sums = out.points;
        int64_t f = 0;
        if (!points.order && !points.values.are_narrow()) {  // else the points lie where memory is slow
            const T* const stored = points.values.computed() + group.begin * d;
            for (; f + lanes<T> <= d; f += lanes<T>) {
                const Vector<T> scale = broadcast(points.scale), origin = load(points.scaled_origin + f);
                for (int64_t p = 0; p < n; ++p)
                    add_to(sums + centers[p] * d + f, multiply_add(load(stored + p * d + f), scale, -origin),
                           weights[p]);
            }
            if constexpr (lanes<T> > 4)
                for (; f + 4 <= d; f += 4)
                    for (int64_t p = 0; p < n; ++p)
                        add_four(sums + centers[p] * d + f, stored + p * d + f, points.scale,
                                 points.scaled_origin + f, weights[p]);
        }
        for (; f < d; ++f)
            for (int64_t p = 0; p < n; ++p) {
                double& sum = sums[centers[p] * d + f];
                sum = multiply_add(double(columns[f * points_per_group + p]), weights[p], sum);
            }
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
    void add_together(const T* columns, const double* weights, int64_t center) const {
        for (int64_t f = 0; f < n_features(); ++f)
            out.points[center * n_features() + f] += weighted_sum(columns + f * points_per_group, weights);
    }
};

}  // namespace
}  // namespace powermeans
