// What the kernels of the sweeps share with the rest of the core: plain structures and a table of
// functions. Files compiled for one instruction set include it, so no standard header that defines
// functions may come in here.
#pragma once

#include <stdint.h>

#include "kernels/entries.hpp"
#include "kernels/sketches.hpp"

namespace powermeans {

// Sizes are padded to whole units of this many bytes, whatever the vectors of the machine, so that sums
// over lanes add up in the same order on all machines.
inline constexpr int64_t unit_bytes = 64;
template <class T>
inline constexpr int64_t unit_lanes = unit_bytes / int64_t{sizeof(T)};

// Distances of few features are summed from squared differences; those of more from products.
inline constexpr int64_t direct_max_features = 16;

// Points of few features are taken in groups: a point in each lane, the centers one after another.
inline constexpr int64_t points_per_group = 32;

// Features after which a float32 sum of products is folded into float64.
inline constexpr int64_t features_per_fold = 256;

enum class Task {
    hard_sums,    // the nearest center takes the point; labels too where asked for
    soft_sums,    // weights of a soft rule
    priced_sums,  // the center of least distance and price takes the point; labels and margins where asked for
    near_lists,   // the centers of least distance and price, for each point
    spread,       // error and utility of each center
    assign,       // labels and inertia
    distances,    // all squared distances
    potentials,   // inertia left by each center if it joined those that `nearest` knows
    approach,     // lower `nearest` where a center is nearer
};

// How distances become soft weights.
enum class SoftRule {
    power,     // those of the power mean, times a power of that mean
    gaussian,  // posteriors of Gaussians of one variance
};

// For each point the center of its label first, and then those that cost least, the cheapest first.
struct NearLists {
    int64_t n_most = 0;           // centers in a list
    double reach = 0;             // listed are centers that cost at most this more than the own one
    int32_t* centers = nullptr;   // out (n_points, n_most), -1 where fewer are in reach
    double* distances = nullptr;  // out (n_points, n_most)
};

// What a sweep is asked for, in the units of the caller. T is the type that distances are computed in.
template <class T>
struct Request {
    Task task;
    SoftRule rule = SoftRule::power;  // this and the next five: only for soft_sums
    double power = 0;                 // s
    double mean_exponent = 0;         // of the power mean that multiplies the weights: p/2 - 1 in KHM_p
    double mean_unit = 1;             // squared distance by which that mean is divided before
    double variance = 0;              // of the Gaussians
    const double* shares = nullptr;   // (n_centers,) of the Gaussians; null where they are equal
    const double* prices = nullptr;   // (n_centers,), only for priced_sums and near_lists
    const double* raw_centers;        // (n_centers, n_features); where distances are affine
                                      // (n_centers, n_features + 1): slopes of x - origin, and lifts
    int64_t n_centers;
    const double* sample_weight = nullptr;  // (n_points,) or null
    int32_t* labels = nullptr;              // (n_points,) or null
    double* nearest = nullptr;              // (n_points,), only for potentials and approach
    double* margins = nullptr;              // (n_points,) or null: how much less it costs than the second
    T* distances = nullptr;                 // (n_points, n_centers), only for distances
    NearLists near{};                       // only for near_lists
};

// Points in memory, row after row. The kernels see (x - origin) * scale.
template <class T>
struct Dense {
    using Computed = T;
    Entries<T> values;       // (n_points, n_features)
    const T* scaled_origin;  // (n_features,), already multiplied by scale
    T scale;                 // a power of two
    int64_t n_features;
    const int32_t* order = nullptr;  // (n_points,): which points lie together, or null
    const T* columns = nullptr;      // (n_groups, n_features, points_per_group): already packed, or null
    const T* boxes = nullptr;        // (n_groups, 2, n_features): least and most of the columns, or null
};

// Sparse points; the kernels see x * scale, in float64.
template <class T>
struct Csr {
    using Computed = double;
    static constexpr const int32_t* order = nullptr;
    const T* values;            // (n_stored,)
    const int32_t* columns;     // (n_stored,), sorted within a row
    const int64_t* row_starts;  // (n_points + 1,)
    double scale;               // a power of two
    int64_t n_features;
};

// Centers as the kernels read them: shifted, scaled, padded. Affine distances are
// height of the point + lift of the center - <x, slope of the center>: there lifts stand in the place of
// the squared norms, and negative slopes in that of the centers, in rows and panels alike.
template <class T>
struct Centers {
    int64_t n_centers;
    int64_t n_padded;  // a multiple of unit_lanes<T>
    int64_t n_features;
    const T* panels;    // dense: (n_padded / lanes, n_features, lanes); sparse: (n_features, n_padded).
                        // Centers for direct differences, else centers times -2
    const T* sq_norms;  // (n_padded,), infinite in the padding
    const double* sq_norms_wide;  // the same in float64
    double largest_sq_norm;       // of their absolute values
    const T* rows;                // (n_centers, padded_features)
    const double* rows_wide;      // the same before rounding to T
};

// What a stripe of points adds up. `Plan` says which layout `points` has.
struct PartialSums {
    double* points;
    double* weights;  // (n_padded,): weights; potentials of the task of that name
    double* error;    // (n_padded,)
    double* utility;  // (n_padded,)
    double objective;
    double inertia;
    double n_distances;  // computed, of points x centers
    int64_t n_changed;   // points whose label is not the last one
};

// How a sweep is cut up: fixed by the sizes, never by threads or instruction set.
struct Plan {
    int64_t block_points;     // points handled together while they are in cache
    int64_t stripe_points;    // points added up in order before stripes are added in order
    int64_t padded_features;  // length of a packed point
    int64_t lane_sums;        // values that groups of points add up, in the soft rules
    bool direct;              // squared differences rather than products
    bool grouped;             // points in lanes
    bool bounded;             // the hard rule with the bounds that the last sweep left
    bool prefiltered;         // candidates for the nearest center from products of bytes
    bool few_centers;         // the hard rule with features in lanes
    bool ordered;             // points in spatial order, centers far from a group skipped
    bool sums_by_center;      // layout of PartialSums::points: (n_centers, padded_features),
                              // else (n_features, n_padded)

    // Whether distances to all centers are summed from differences, and nothing cancels.
    bool has_exact_rows() const { return direct || few_centers; }
};

// What the last hard sweep found, and how the centers have moved since.
template <class T>
struct Bounds {
    int32_t* labels;           // (n_points,): the nearest of the centers before; then of these
    T* lower;                  // (n_points,): no other center was closer, in the unit of the points
    const int32_t* new_index;  // for each center before, which it is now, or -1
    const int32_t* movers;     // (n_movers,): centers that moved far, compared with every point
    int64_t n_movers;
    double rest_shift;  // all others have moved by at most this
    double rounding;    // what a distance may be off
    double scale;       // from the unit of the points to that of the kernels
    bool is_known;      // whether there is a last sweep; else this one only leaves bounds
    int64_t step;       // one point in so many gets a new bound
};

// Memory of one thread. T is the type that distances are computed in.
template <class T>
struct Workspace {
    T* row;          // (n_features,): a point whose entries had to be widened
    T* packed;       // (block_points, padded_features)
    T* dist;         // (block_points, n_padded), or (n_centers, points_per_group) where points are in lanes:
                     // distances, then weights
    double* folded;  // (block_points, n_padded), only for long float32 sums, else null
    double* sq_norms;   // (block_points,)
    double* nearest;    // (block_points,): smallest distance
    double* second;     // (block_points,): smallest distance but one
    double* least;      // (block_points,): the smallest with the offsets of the rule
    double* softness;   // (block_points,): S_i
    double* factors;    // (block_points,): what is common to a point's weights
    int32_t* labels;    // (block_points,): of the hard rule, where it has no other array of them
    int64_t* tied;      // (n_padded,): centers nearly as near as the nearest
    double* tied_dist;  // (n_padded,): their distances in float64
    int32_t* outer;     // (n_padded,): centers near a block of groups
    int32_t* inner;     // (n_padded,): centers near a group
    T* outer_panels;    // (n_padded, n_features): panels of the outer ones
    T* lane_sums;       // (n_padded, n_features + 1, unit_lanes): points and weights of a block of groups
    T* gathered;        // (block_points, padded_features): the points left to be compared with all centers
    double* gathered_sq_norms;
    int32_t* left;      // (block_points,): which these are
    int32_t* products;  // (sketched_together, n_padded) of codes, padded to whole panels
    float* scores;      // (n_padded,), padded likewise
};

// A request in the units of the kernels.
template <class T>
struct Job : Request<T> {
    int64_t whole_power;     // |power| where that is whole and small, else 0
    T lowest_ratio;          // of nearest / y: below it a weight is zero
    T lowest_log;            // of a density over the highest: below it a weight is zero
    double sharpness;        // of the Gaussian rule: 1 / (2 variance)
    const T* offsets;        // (n_padded,), added to the distances by Gaussian rule and prices, or null
    const double* heights;   // (n_points,): of the points, where distances are affine, else null
    double unscale;          // 1 / unit of distances; applied twice, since its square may underflow
    double to_nearest_unit;  // unit of `nearest` / unit of distances; applied twice
    Centers<T> centers;
    Plan plan;
    Bounds<T> bounds;
    Sketched sketched;
    int32_t* last_labels =
        nullptr;  // (n_points,) in the order of the blocks, replaced by this sweep; or null
};

// Points `begin` to `begin + n`, Dense or Csr, with all that the kernels read and write. A stripe is a block
// too, which the kernels cut into smaller ones.
template <class Points>
struct Block {
    const Points& points;
    const Job<typename Points::Computed>& job;
    const Workspace<typename Points::Computed>& work;
    PartialSums& out;
    int64_t begin, n;
};

// Tables have a base for each type of points, by which a caller that knows the type finds its kernel.
template <class Points>
struct SweepKernel {
    void (*sweep)(const Block<Points>& stripe);
};

template <class T>
struct ElementaryKernels {
    void (*log)(const T* in, int64_t n, T* out);
    void (*exp)(const T* in, int64_t n, T* out);
};

struct KernelTable : SweepKernel<Dense<float>>,
                     SweepKernel<Dense<double>>,
                     SweepKernel<Csr<float>>,
                     SweepKernel<Csr<double>>,
                     SketchKernel<float>,
                     SketchKernel<double>,
                     WidenKernel,
                     ElementaryKernels<float>,
                     ElementaryKernels<double> {};

}  // namespace powermeans
