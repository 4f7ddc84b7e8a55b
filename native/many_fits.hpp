// Lloyd's algorithm for many small problems: threads share the problems, and each is solved on one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "team.hpp"

namespace powermeans {

template <class V>
struct Problem {
    const V* values;              // in  (n_points, n_features)
    const double* sample_weight;  // in  (n_points,), or null
    int64_t n_points;
    int32_t* labels;  // out (n_points,)
};

// What all problems are asked for, and where the results go.
struct ManyFits {
    int64_t n_features, n_centers, n_runs, n_candidates;
    int64_t max_iter;
    double tol;  // times the mean variance: the squared shift of settled centers
    // in (n_problems, n_runs, 1 + (n_centers - 1) * n_candidates), in [0, 1): they draw the seeds
    const double* uniforms;
    double* centers;  // out (n_problems, n_centers, n_features), exact in the type of the points
    double* inertia;  // out (n_problems,)
    int64_t* n_iter;  // out (n_problems,): sweeps of the best run

    int64_t uniforms_per_run() const { return 1 + (n_centers - 1) * n_candidates; }
};

template <class V>
void fit_many(const std::vector<Problem<V>>& problems, const ManyFits& asked, Team& team);

}  // namespace powermeans
