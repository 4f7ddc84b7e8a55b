// Which centers may be the nearest of a point, from products of bytes. A point is q + r, where q is its
// sketch and |r| at most its error, and a center likewise. Two bounds hold for every center: the distance of
// the sketches is off by at most both errors, and the product <x, c> differs from <q_x, q_c> by at most
// |r_x| |c| + |q_x| |r_c|. The first is the closer one among near centers, the second where points are
// farther from all centers than these from each other.
#pragma once

#include "kernels/byte_products.hpp"
#include "kernels/nearest.hpp"

namespace powermeans {
namespace {

// Scores are in float32: what rounding adds is below this share of |x|^2 + |center|^2, beside an underflow.
constexpr double rounding_of_scores = 4e-6;
constexpr double underflow_of_scores = 1e-30;

// A point with more candidates than this share of the centers, and than a few, is compared with all.
constexpr int64_t centers_per_candidate = 8;
constexpr int64_t few_candidates = 4;

template <class T>
struct Prefilter {
    const Block<Dense<T>>& block;
    const Workspace<T>& work = block.work;
    const CenterSketches& centers = block.job.sketched.centers;

    void multiply(const int32_t* points, int64_t n) const {
        const Sketches& sketches = block.job.sketched.points;
        const uint8_t* codes[sketched_together];
        for (int64_t t = 0; t < n; ++t)
            codes[t] = sketches.codes + (block.begin + points[t]) * sketches.width;
        multiply_codes(codes, n, centers, work.products);
    }

    // Lists in work.tied, with their distances, the centers that may be the nearest, or the two nearest, of
    // point p, whose products are the t-th; returns how many there are, or zero where there are too many.
    int64_t list(int64_t p, int64_t t, bool wants_two) const {
        const Job<T>& job = block.job;
        const Sketches& sketches = job.sketched.points;
        const int64_t i = block.begin + p, width = job.plan.padded_features;
        const double step = sketches.steps[i] * job.sketched.scale;
        const double error = sketches.errors[i] * job.sketched.scale;
        const double sketched_norm = step * step * double(sketches.sq_norms[i]);
        const double norm = sketches.norms[i] * job.sketched.scale * job.sketched.scale;
        const Known known = score(work.products + t * centers.n_padded, step, p, wants_two);
        const double least = larger(known.second_sq_dist, known.first_sq_dist);
        const double upper = limit_of_differences(job, norm, width / unit_lanes<T>, least);
        const double slack = rounding_of_scores * (norm + job.centers.largest_sq_norm) + underflow_of_scores;
        const int64_t n = list_up_to({upper - norm + slack, 2 * error, 2 * __builtin_sqrt(sketched_norm),
                                      sketched_norm - slack, __builtin_sqrt(upper) + error});
        for (int64_t c = 0; c < n; ++c)
            work.tied_dist[c] = work.tied[c] == known.first    ? known.first_sq_dist
                                : work.tied[c] == known.second ? known.second_sq_dist
                                                               : sq_dist(p, work.tied[c]);
        return n;
    }

  private:
    struct Limits {
        double score;  // of a candidate, less the next two times its length and error
        double per_length, per_error;
        double sketched_norm;
        double reach;  // no candidate's sketch is farther than this and its error
    };

    // The centers that the sketches have nearest.
    struct Known {
        int64_t first, second;
        double first_sq_dist, second_sq_dist;
    };

    double sq_dist(int64_t p, int64_t center) const {
        return double(sq_dist_from_differences(block, p, center));
    }

    // Writes |c|^2 - 2 <q_x, q_c> to work.scores; returns the center of the smallest, or of the two smallest.
    Known score(const int32_t* products, double step, int64_t p, bool wants_two) const {
        const FloatVector minus_two_steps = broadcast(float(-2 * step));
        FloatVector smallest = broadcast(__builtin_inff());
        for (int64_t j = 0; j < centers.n_padded; j += lanes<float>) {
            Bits<float> product, offset;
            __builtin_memcpy(&product, products + j, sizeof product);
            __builtin_memcpy(&offset, centers.offsets + j, sizeof offset);
            const FloatVector scaled = minus_two_steps * load(centers.steps + j);
            const FloatVector y = multiply_add(scaled, __builtin_convertvector(product - offset, FloatVector),
                                               load(centers.sq_norms + j));
            store(work.scores + j, y);
            smallest = smaller(y, smallest);
        }
        const float least = smallest_lane<float>(smallest);
        Known known{};
        known.second = -1;
        known.first = first_equal(work.scores, centers.n_padded, least);
        known.first_sq_dist = sq_dist(p, known.first);
        if (!wants_two) return known;
        work.scores[known.first] = __builtin_inff();
        known.second = first_equal(work.scores, centers.n_padded, smallest_in(work.scores, centers.n_padded));
        known.second_sq_dist = sq_dist(p, known.second);
        work.scores[known.first] = least;
        return known;
    }

    int64_t list_up_to(const Limits& limits) const {
        const FloatVector limit = broadcast(float(limits.score)), reach = broadcast(float(limits.reach));
        const FloatVector per_length = broadcast(float(-limits.per_length));
        const FloatVector per_error = broadcast(float(-limits.per_error));
        const FloatVector sketched_norm = broadcast(float(limits.sketched_norm));
        const int64_t most = larger(block.job.centers.n_centers / centers_per_candidate, few_candidates);
        int64_t n = 0;
        for (int64_t j = 0; j < centers.n_padded; j += lanes<float>) {
            const FloatVector y = load(work.scores + j), error = load(centers.errors + j);
            const FloatVector lowest =
                multiply_add(per_length, load(centers.lengths + j), multiply_add(per_error, error, y));
            const FloatVector sq_dist = y + load(centers.norm_changes + j) + sketched_norm;
            const FloatVector farthest = error + reach;
            unsigned mask =
                lanes_up_to<float>(lowest, limit) & lanes_up_to<float>(sq_dist, farthest * farthest);
            if (!mask) continue;
            if (n + __builtin_popcount(mask) > most) return 0;
            for (; mask; mask &= mask - 1) work.tied[n++] = j + __builtin_ctz(mask);
        }
        return n;
    }
};

}  // namespace
}  // namespace powermeans
