// Draws points with probability proportional to weight times a power of distance. A draw adds up the masses
// of the points in an order that the caller gives.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "threads/team.hpp"

namespace powermeans {

struct Masses {
    const double* nearest;        // (n_points,): squared distances, or null before there is a center
    const double* sample_weight;  // (n_points,) or null
    const int64_t* order;         // (n_points,): points in the order of the sums; null: as stored
    int64_t n_points;
    double exponent;      // of the distance, not of its square
    double farthest = 1;  // squared distance of the farthest point; filled in by draw

    int64_t point_at(int64_t place) const { return order ? order[place] : place; }

    double of_point(int64_t i) const {
        const double weight = sample_weight ? sample_weight[i] : 1.0;
        if (!nearest) return weight;
        if (exponent == 2.0) return weight * nearest[i];
        // In units of the farthest, so that no exponent overflows.
        return weight * std::pow(nearest[i] / farthest, exponent / 2);
    }

    double between(int64_t begin, int64_t end) const {
        double sum = 0;
        for (int64_t place = begin; place < end; ++place) sum += of_point(point_at(place));
        return sum;
    }
};

// Returns the point at which the cumulative mass passes `target`. Rounding may make the target larger than
// the total: then it returns the last point with any mass. cumulative[s] is the mass before stripe s.
int64_t point_passing(const Masses& masses, const std::vector<double>& cumulative, int64_t points_per_stripe,
                      double target);

// Draws an index for each of the numbers in [0, 1): by weight where no point has any mass.
void draw(Masses masses, const double* uniforms, int64_t n_draws, Team& team, int64_t* indices);

}  // namespace powermeans
