// The sweep over one stripe of points. This file is compiled once for each instruction set; POWERMEANS_TABLE
// names the table that it defines.
#include "kernels/sweep_kernels.hpp"

#include "kernels/bounded_hard.hpp"
#include "kernels/elementary.hpp"
#include "kernels/few_centers.hpp"
#include "kernels/grouped_hard.hpp"
#include "kernels/grouped_soft.hpp"
#include "kernels/sketching.hpp"
#include "kernels/soft_rule.hpp"
#include "kernels/widening.hpp"

namespace powermeans {
namespace {

template <class Points>
void copy_distances(const Block<Points>& block) {
    const auto& job = block.job;
    for (int64_t p = 0; p < block.n; ++p) {
        auto* copies = job.distances + (block.begin + p) * job.centers.n_centers;
        for (int64_t j = 0; j < job.centers.n_centers; ++j)
            copies[j] = typename Points::Computed(double(row_of(block, p)[j]) * job.unscale * job.unscale);
        if (mends_copies(block)) mend_copies(block, p, copies);
    }
}

template <class Points>
void potentials(const Block<Points>& block) {
    const auto& job = block.job;
    for (int64_t p = 0; p < block.n; ++p) {
        const double weight = weight_of(block, p), known = job.nearest[block.begin + p];
        for (int64_t j = 0; j < job.centers.n_centers; ++j) {
            const double y = double(row_of(block, p)[j]) * job.to_nearest_unit * job.to_nearest_unit;
            block.out.weights[j] += weight * smaller(y, known);
        }
    }
}

template <class Points>
void approach(const Block<Points>& block) {
    const auto& job = block.job;
    for (int64_t p = 0; p < block.n; ++p) {
        double& nearest = job.nearest[block.begin + p];
        nearest = smaller(block.work.nearest[p] * job.to_nearest_unit * job.to_nearest_unit, nearest);
    }
}

template <class Points>
void do_task(const Block<Points>& block) {
    switch (block.job.task) {
        case Task::hard_sums:
        case Task::spread:
        case Task::assign:
            return hard_block(block);
        case Task::soft_sums:
            return soft_block(block);
        case Task::priced_sums:
            return priced_block(block);
        case Task::near_lists:
            return list_near(block);
        case Task::distances:
            return copy_distances(block);
        case Task::potentials:
            return potentials(block);
        case Task::approach:
            return approach(block);
    }
}

// Compares every point with every center.
template <class Points>
void sweep_all(const Block<Points>& stripe) {
    stripe.out.n_distances += double(stripe.n * stripe.job.centers.n_centers);
    for_each_block(stripe, [](const Block<Points>& block) {
        distances(block);
        do_task(block);
    });
}

template <class T>
void compare_all(const Block<Dense<T>>& stripe) {
    stripe.out.n_distances += double(stripe.n * stripe.job.centers.n_centers);
    for_each_block(stripe, [](const Block<Dense<T>>& block) { hard_block_by_comparison(block); });
}

template <class V>
void sweep_stripe(const Block<Csr<V>>& stripe) {
    sweep_all(stripe);
}

template <class T>
void sweep_stripe(const Block<Dense<T>>& stripe) {
    const Plan& plan = stripe.job.plan;
    const Task task = stripe.job.task;
    const bool is_hard = task == Task::hard_sums || task == Task::spread || task == Task::assign;
    if (plan.grouped && task == Task::soft_sums)
        for_each_block(stripe, [tie_ratio = tie_ratio_at(stripe.job)](const Block<Dense<T>>& block) {
            grouped_soft_block(block, tie_ratio);
        });
    else if (plan.grouped)
        for_each_block(stripe, [](const Block<Dense<T>>& block) { GroupedHardBlock<T>{block}.run(); });
    else if (plan.bounded)
        bounded_hard_sweep(stripe);
    else if (plan.few_centers)
        compare_few(stripe);
    else if (is_hard && !stripe.job.heights)
        compare_all(stripe);
    else
        sweep_all(stripe);
}

template <class T, Vector<T> (*function)(Vector<T>)>
void elementwise(const T* in, int64_t n, T* out) {
    T padded[lanes<T>];
    for (int64_t i = 0; i < n; i += lanes<T>) {
        const int64_t n_here = smaller<int64_t>(lanes<T>, n - i);
        for (int64_t lane = 0; lane < lanes<T>; ++lane) padded[lane] = in[i + (lane < n_here ? lane : 0)];
        store(padded, function(load(padded)));
        for (int64_t lane = 0; lane < n_here; ++lane) out[i + lane] = padded[lane];
    }
}

}  // namespace

extern const KernelTable POWERMEANS_TABLE;
const KernelTable POWERMEANS_TABLE = {
    {sweep_stripe<float>},
    {sweep_stripe<double>},
    {sweep_stripe<float>},
    {sweep_stripe<double>},
    {draw_sketch<float>},
    {draw_sketch<double>},
    {widen},
    {elementwise<float, log_of>, elementwise<float, exp_of<float>>},
    {elementwise<double, log_of>, elementwise<double, exp_of<double>>},
};

}  // namespace powermeans
