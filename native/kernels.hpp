// What the kernels of every instruction set share with the rest of the core: plain structures and a
// table of functions. Included by files compiled for one instruction set: no standard header that
// defines functions may come in here.
#pragma once

#include <stdint.h>

namespace powermeans {

// Sizes below are padded to whole units of this many bytes, whatever the vectors of the machine, so
// that sums over lanes add up in the same order on all of them.
inline constexpr int64_t unit_bytes = 64;
template <class T>
inline constexpr int64_t unit_lanes = unit_bytes / int64_t{sizeof(T)};

// Distances of few features are summed from squared differences; those of more from products.
inline constexpr int64_t direct_max_features = 16;

// Points of few features are taken in groups: a point in each lane, the centers one after another.
// A group sees only the centers that can be nearest within its box; a block of groups is looked at
// first, where there are many centers.
inline constexpr int64_t points_per_group = 32;
inline constexpr int64_t groups_per_block = 8;

// Features after which a float32 sum of products is folded into float64.
inline constexpr int64_t features_per_fold = 256;

enum class Task {
    hard_sums,   // nearest center takes the point; labels too where asked for
    soft_sums,   // weights of a soft rule
    spread,      // error and utility of each center
    assign,      // labels and inertia
    distances,   // all squared distances
    potentials,  // inertia left by each center if it joined those that `nearest` knows
    approach,    // lower `nearest` where a center is nearer
};

// How distances become soft weights.
enum class SoftRule {
    power,     // those of the power mean, times a power of that
    gaussian,  // posteriors of Gaussians of one variance
};

// Points in memory, row after row. The kernels see (x - origin) * scale.
template <class T>
struct Dense {
    const T* values;         // (n_points, n_features)
    const T* scaled_origin;  // (n_features,), already multiplied by scale
    T scale;                 // a power of two
    int64_t n_features;
    const int32_t* order;  // (n_points,): which points lie together, or null
    const T* columns;      // (n_groups, n_features, points_per_group): packed already, or null
    const T* boxes;        // (n_groups, 2, n_features): least and most of the columns, or null
};

// Sparse points; the kernels see x * scale, in float64.
template <class T>
struct Csr {
    const T* values;            // (n_stored,)
    const int32_t* columns;     // (n_stored,), sorted within a row
    const int64_t* row_starts;  // (n_points + 1,)
    double scale;               // a power of two
    int64_t n_features;
};

// Centers as the kernels read them: shifted, scaled, padded. Of affine distances, which are
// height of the point + lift of the center - <x, slope of the center>, lifts stand for the squared norms
// and negative slopes for the centers, rows and panels alike.
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

// What a stripe of points adds up. Which layout `points` has, `Plan` says.
struct Partial {
    double* points;
    double* weights;  // (n_padded,): weights; potentials of the task of that name
    double* error;    // (n_padded,)
    double* utility;  // (n_padded,)
    double objective;
    double inertia;
    double n_distances;  // computed, of points x centers
};

// How a sweep is cut up: fixed by the sizes alone, never by threads or instruction set.
struct Plan {
    int64_t block_points;     // points handled together while they are in cache
    int64_t stripe_points;    // points added up in order before stripes are added in order
    int64_t padded_features;  // length of a packed point
    int64_t lane_sums;        // values that groups of points add up, in the soft rules
    bool direct;              // squared differences rather than products
    bool grouped;             // points in lanes
    bool recalled;            // the hard rule with a memory of the sweep before
    bool ordered;             // points in spatial order, centers far from a group skipped
    bool sums_by_center;      // layout of Partial::points: (n_centers, padded_features),
                              // else (n_features, n_padded)
};

// What the hard sweep before found, and how the centers have moved since.
template <class T>
struct Recall {
    int32_t* label;         // (n_points,): the nearest center, of those before; then of these
    T* others;              // (n_points,): no other one of those was closer, in the unit of the points;
                            // only of every `step` points
    const int32_t* own;     // for each center before, which it is now, or -1
    const int32_t* movers;  // (n_movers,): those to look at in any case
    int64_t n_movers;
    double rest_shift;  // all others have moved by at most this
    double rounding;    // what a distance may be off
    double scale;       // from the unit of the points to that of the kernels
    bool is_known;      // whether all that is known from the sweep before
    int64_t step;       // of every so many points to remember how near others are
};

// Memory of one thread. T is the type that distances are computed in.
template <class T>
struct Workspace {
    T* packed;  // (block_points, padded_features)
    T* dist;    // (block_points, n_padded), or (n_centers, points_per_group) where points are in lanes:
    // distances, then weights
    double* folded;     // (block_points, n_padded), only for long float32 sums, else null
    double* sq_norms;   // (block_points,)
    double* nearest;    // (block_points,): smallest distance
    double* least;      // (block_points,): the same with the offsets of the rule
    double* softness;   // (block_points,): S_i
    double* factors;    // (block_points,): what is common to a point's weights
    int64_t* tied;      // (n_padded,): centers nearly as near as the nearest
    double* tied_dist;  // (n_padded,): their distances in float64
    int32_t* outer;     // (n_padded,): centers near a block of groups
    int32_t* inner;     // (n_padded,): centers near a group
    T* outer_panels;    // (n_padded, n_features): panels of the outer ones
    T* lane_sums;       // (n_padded, n_features + 1, unit_lanes): points and weights of a block of groups
    double* second;     // (block_points,): smallest distance but one
    T* gathered;        // (block_points, padded_features): the points left to be compared with all
    double* gathered_nearest;
    double* gathered_sq_norms;
    int32_t* left;  // (block_points,): which these are
};

template <class T>
struct Job {
    Task task;
    SoftRule rule;                // only for soft_sums, as what follows
    double power;                 // of the rule of that name
    double mean_exponent;         // its weights are those of the power mean, times the mean to this
    int64_t whole_power;          // |power| where that is whole and small, else 0
    T lowest_ratio;               // of nearest / y: below it a weight is zero
    double sharpness;             // of the Gaussian rule: 1 / (2 variance)
    const T* offsets;             // (n_padded,), added to the distances by the Gaussian rule, or null
    T lowest_log;                 // of a height over the highest: below it a weight is zero
    const double* sample_weight;  // (n_points,) or null
    int32_t* labels;              // (n_points,) or null
    double* nearest;              // (n_points,), only for potentials and approach
    T* distances;                 // (n_points, n_centers), only for distances
    const double* heights;        // (n_points,): of the points, where distances are affine, else null
    double unscale;               // 1 / unit of distances; applied twice, since its square may underflow
    double to_nearest_unit;       // unit of `nearest` / unit of distances; applied twice
    Centers<T> centers;
    Plan plan;
    Recall<T> recall;
};

struct KernelTable {
    void (*dense_float)(const Dense<float>&, const Job<float>&, const Workspace<float>&, int64_t begin,
                        int64_t end, Partial& out);
    void (*dense_double)(const Dense<double>&, const Job<double>&, const Workspace<double>&, int64_t begin,
                         int64_t end, Partial& out);
    void (*csr_float)(const Csr<float>&, const Job<double>&, const Workspace<double>&, int64_t begin,
                      int64_t end, Partial& out);
    void (*csr_double)(const Csr<double>&, const Job<double>&, const Workspace<double>&, int64_t begin,
                       int64_t end, Partial& out);
    void (*log_float)(const float* in, int64_t n, float* out);
    void (*log_double)(const double* in, int64_t n, double* out);
    void (*exp_float)(const float* in, int64_t n, float* out);
    void (*exp_double)(const double* in, int64_t n, double* out);
};

}  // namespace powermeans
