// Draws points with probability proportional to weight times a power of their distance.
#pragma once

#include <cstdint>
#include <vector>

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

// The point at which the cumulative mass passes `target`; rounding may ask for more than there is,
// then the last with any mass. cumulative[s] is the mass before stripe s, its last that of all.
int64_t point_passing(const Masses& masses, const std::vector<double>& cumulative, int64_t points_per_stripe,
                      double target);

// One index for each of the numbers in [0, 1). Where no point has any mass, the weights alone decide.
void draw(Masses masses, const double* uniforms, int64_t n_draws, Team& team, int64_t* indices);

}  // namespace powermeans
