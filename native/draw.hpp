// Draws points with probability proportional to weight times a power of their distance.
#pragma once

#include <cstdint>

#include "team.hpp"

namespace powermeans {

struct Masses {
    const double* nearest;        // (n_points,): squared distances, or null before there is a center
    const double* sample_weight;  // (n_points,) or null
    const int64_t* order;         // (n_points,): how the draws walk along the points, or null
    int64_t n_points;
    double exponent;      // of the distance, not of its square
    double farthest = 1;  // filled in by draw
};

// One index for each of the numbers in [0, 1). Where no point has any mass, the weights alone decide.
void draw(Masses masses, const double* uniforms, int64_t n_draws, Team& team, int64_t* indices);

}  // namespace powermeans
