// What the kernels of seeding share with the rest of the core: no standard header that defines functions may
// come in here. A place is the index of a row, either of the points or of a copy in the order of the draws.
#pragma once

#include <stdint.h>

#include "kernels/sketches.hpp"
#include "kernels/sweep_kernels.hpp"

namespace powermeans {

// Candidates compared at once, one in each lane of a unit. If there are fewer, some are repeated.
inline constexpr int64_t candidates_per_panel = unit_lanes<double>;

// A stripe of places, whose masses and gains are added up before stripes are added in order.
inline constexpr int64_t places_per_stripe = 512;

// Dense points; the kernels see x * scale.
template <class V>
struct DenseRows {
    Entries<V> values;  // (n_points, n_features)
    double scale;       // a power of two
    int64_t n_features;
    Sketches sketches;
};

struct PanelSketch {
    const int8_t* codes;  // (width / codes_per_step, candidates_per_panel, codes_per_step)
    double steps[candidates_per_panel];
    double errors[candidates_per_panel];
    double sq_norms[candidates_per_panel];  // of step * (code - middle_code)
    double offsets[candidates_per_panel];   // what middle_code adds to the products
};

struct Panel {
    const int64_t* places;      // (candidates_per_panel,): which rows the candidates are
    const double* values;       // (n_features, candidates_per_panel), scaled and negated
    const float* floats;        // the same without scale and sign; null where squares leave the range
    const double* sq_norms;     // (candidates_per_panel,)
    const double* untouched;    // (n_seeds,): a point within this squared distance of the seed is not nearer
                                // to any candidate, by the triangle inequality
    const PanelSketch* sketch;  // or null
};

// The nearest seed of the point at each place. Places are padded to whole units by points at distance zero,
// so that no candidate is nearer.
struct Standings {
    double* nearest;       // squared distance to the nearest seed
    int32_t* seed;         // which that is
    const double* weight;  // or null
};

template <class Rows>
struct SeedKernels {
    // Squared distances of some places to the panel, (n_places, candidates_per_panel).
    void (*distances)(const Rows&, const Panel&, const int64_t* places, int64_t n_places, double* sq_dist);
    // Writes the inertia that each candidate would save, and for each place a bit for each nearer candidate.
    // Returns how many places the triangle inequality left to compare.
    int64_t (*compare)(const Rows&, const Panel&, const Standings&, int64_t begin, int64_t end, double* gains,
                       uint8_t* nearer);
    // Makes a candidate the seed of the places whose bit says that it is nearer.
    void (*take)(const Rows&, const Panel&, int lane, int32_t seed, const uint8_t* nearer, int64_t begin,
                 int64_t end, const Standings&);
};

// With a base for each type of rows, as KernelTable has.
struct SeedKernelTable : SeedKernels<DenseRows<float>>,
                         SeedKernels<DenseRows<double>>,
                         SeedKernels<Csr<float>>,
                         SeedKernels<Csr<double>> {};

}  // namespace powermeans
