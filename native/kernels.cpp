// The sweep over one stripe of points. Compiled once for each instruction set, with its flags on
// this file alone and POWERMEANS_TABLE naming the table it defines.
#include "kernels.hpp"

#include "elementary.hpp"
#include "grouped.hpp"
#include "grouped_soft.hpp"
#include "recall.hpp"
#include "soft_rule.hpp"

namespace powermeans {
namespace {

// Ways that sparse points do not have.
template <class Storage, class T>
POWERMEANS_INLINE bool took_its_own_way(const Storage&, const Job<T>&, const Workspace<T>&, int64_t, int64_t,
                                        Partial&) {
    return false;
}

template <class T>
bool took_its_own_way(const Dense<T>& points, const Job<T>& job, const Workspace<T>& work, int64_t begin,
                      int64_t end, Partial& out) {
    if (job.plan.grouped && job.task == Task::soft_sums)
        GroupedSoftSweep<T>{points, job, work, out}.stripe(begin, end);
    else if (job.plan.grouped)
        GroupedSweep<T>{points, job, work, out}.stripe(begin, end);
    else if (job.plan.recalled)
        RecalledSweep<T>{points, job, work, out}.stripe(begin, end);
    return job.plan.grouped || job.plan.recalled;
}

template <class T>
void copy_distances(const Job<T>& job, const Workspace<T>& work, int64_t begin, int64_t n) {
    for (int64_t p = 0; p < n; ++p)
        for (int64_t j = 0; j < job.centers.n_centers; ++j)
            job.distances[(begin + p) * job.centers.n_centers + j] =
                T(double(work.dist[p * job.centers.n_padded + j]) * job.unscale * job.unscale);
}

template <class T>
void potentials(const Job<T>& job, const Workspace<T>& work, int64_t begin, int64_t n, Partial& out) {
    for (int64_t p = 0; p < n; ++p) {
        const double weight = weight_of(job, begin + p), known = job.nearest[begin + p];
        for (int64_t j = 0; j < job.centers.n_centers; ++j) {
            const double y =
                double(work.dist[p * job.centers.n_padded + j]) * job.to_nearest_unit * job.to_nearest_unit;
            out.weights[j] += weight * (y < known ? y : known);
        }
    }
}

template <class T>
void approach(const Job<T>& job, const Workspace<T>& work, int64_t begin, int64_t n) {
    for (int64_t p = 0; p < n; ++p) {
        const double y = work.nearest[p] * job.to_nearest_unit * job.to_nearest_unit;
        if (y < job.nearest[begin + p]) job.nearest[begin + p] = y;
    }
}

template <class Storage, class T>
void sweep_stripe(const Storage& points, const Job<T>& job, const Workspace<T>& work, int64_t begin,
                  int64_t end, Partial& out) {
    if (took_its_own_way(points, job, work, begin, end, out)) return;
    out.n_distances += double((end - begin) * job.centers.n_centers);
    for (int64_t at = begin; at < end; at += job.plan.block_points) {
        const int64_t n = at + job.plan.block_points < end ? job.plan.block_points : end - at;
        distances(points, job, work, at, n);
        switch (job.task) {
            case Task::hard_sums:
            case Task::spread:
            case Task::assign:
                hard_block(points, job, work, at, n, out);
                break;
            case Task::soft_sums:
                soft_sums(points, job, work, at, n, out);
                break;
            case Task::distances:
                copy_distances(job, work, at, n);
                break;
            case Task::potentials:
                potentials(job, work, at, n, out);
                break;
            case Task::approach:
                approach(job, work, at, n);
                break;
        }
    }
}

template <class T, Vector<T> (*function)(Vector<T>)>
void elementwise(const T* in, int64_t n, T* out) {
    T padded[lanes<T>];
    for (int64_t i = 0; i < n; i += lanes<T>) {
        const int64_t n_here = i + lanes<T> <= n ? lanes<T> : n - i;
        for (int64_t lane = 0; lane < lanes<T>; ++lane) padded[lane] = in[i + (lane < n_here ? lane : 0)];
        store(padded, function(load(padded)));
        for (int64_t lane = 0; lane < n_here; ++lane) out[i + lane] = padded[lane];
    }
}

}  // namespace

extern const KernelTable POWERMEANS_TABLE;
const KernelTable POWERMEANS_TABLE = {
    sweep_stripe<Dense<float>, float>, sweep_stripe<Dense<double>, double>, sweep_stripe<Csr<float>, double>,
    sweep_stripe<Csr<double>, double>, elementwise<float, log_of>,          elementwise<double, log_of>,
    elementwise<float, exp_of<float>>, elementwise<double, exp_of<double>>,
};

}  // namespace powermeans
