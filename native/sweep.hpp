// Sweeps over all points: cut into stripes, shared by the team, added in order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "aligned.hpp"
#include "dispatch.hpp"
#include "frame.hpp"
#include "kernels.hpp"
#include "memory.hpp"
#include "order.hpp"
#include "team.hpp"

namespace powermeans {

struct SweepResult {
    std::vector<double> points;   // (n_centers, n_features), only from the tasks that sum
    std::vector<double> weights;  // (n_centers,)
    std::vector<double> error;    // (n_centers,)
    std::vector<double> utility;  // (n_centers,)
    double objective = 0;
    double inertia = 0;
    double n_distances = 0;  // computed, of points x centers
};

// What affine distances have of the points: height of the point + lift of the center - <x, slope>.
struct Heights {
    const double* values = nullptr;  // (n_points,), or null where distances are squared Euclidean
    double largest = 0;              // of the absolute values
};

// Where a sweep reads its points. V is the type stored, Computed that of the distances.
template <class V>
struct DenseSource {
    using Stored = V;
    using Computed = V;
    const V* values;  // (n_points, n_features)
    int64_t n_points, n_features;
    Frame frame;
    Heights heights{};
    bool swept_often = true;  // shortcuts are worth their making
    std::shared_ptr<Groups<V>> in_rows = std::make_shared<Groups<V>>();
    std::shared_ptr<Groups<V>> in_space = std::make_shared<Groups<V>>();
    std::shared_ptr<Memory<V>> memory = std::make_shared<Memory<V>>();
};

template <class V>
struct CsrSource {
    using Stored = V;
    using Computed = double;
    const V* values;
    const int32_t* columns;
    const int64_t* row_starts;
    int64_t n_points, n_features;
    Frame frame;
    Heights heights{};
    bool swept_often = true;
};

template <class Source>
struct Request {
    Task task;
    SoftRule rule = SoftRule::power;  // what follows is for soft sums alone
    double power = 0;
    double mean_exponent = 0;        // of the power mean that multiplies its weights: p/2 - 1 in KHM_p
    double mean_unit = 1;            // which that mean is divided by before, a squared distance
    double variance = 0;             // of the Gaussians
    const double* shares = nullptr;  // (n_centers,) of the Gaussians; null where they are equal
    const double* centers;           // (n_centers, n_features); where distances are affine
                                     // (n_centers, n_features + 1): slopes of x - origin, and lifts
    int64_t n_centers;
    const double* sample_weight = nullptr;           // (n_points,)
    int32_t* labels = nullptr;                       // (n_points,)
    double* nearest = nullptr;                       // (n_points,), of the points times nearest_scale
    typename Source::Computed* distances = nullptr;  // (n_points, n_centers)
};

// The unit of Request::nearest, which unlike the unit of a sweep does not depend on the centers.
template <class Source>
double nearest_scale(const Source& source) {
    if (source.heights.values) return 1;
    return scale_for<typename Source::Computed>(source.frame.extent);
}

template <class Source>
SweepResult sweep(const Source& source, const Request<Source>& request, Team& team);

// Whether sweeps may leave out work that cannot change their result: points that keep their center,
// centers too far from a group of points, weights beyond the digits. Without it every point meets every
// center, which is of use to measuring and debugging alone. POWERMEANS_SHORTCUTS, 0 or 1, says so at the
// start; throws if it says anything else.
bool takes_shortcuts();
void take_shortcuts(bool taken);

}  // namespace powermeans
