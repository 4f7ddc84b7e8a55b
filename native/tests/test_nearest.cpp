// Compares the labels, weights and inertia of hard sweeps with those of a search by the definition, for
// every instruction set. It catches kernels that a compiler translates wrongly.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "../sweep.hpp"
#include "testing.hpp"

using namespace powermeans;

namespace {

template <class V>
constexpr double tolerance = sizeof(V) == 4 ? 1e-4 : 1e-12;

template <class V>
struct Points {
    std::vector<V> values;
    int64_t n_points, n_features;
};

template <class V>
double sq_dist(const Points<V>& points, int64_t i, const std::vector<double>& centers, int64_t j) {
    double sum = 0;
    for (int64_t f = 0; f < points.n_features; ++f) {
        const double difference = double(points.values[std::size_t(i * points.n_features + f)]) -
                                  centers[std::size_t(j * points.n_features + f)];
        sum += difference * difference;
    }
    return sum;
}

// Squared distance of each point to its nearest center.
template <class V>
std::vector<double> nearest_by_definition(const Points<V>& points, const std::vector<double>& centers) {
    std::vector<double> nearest(std::size_t(points.n_points), std::numeric_limits<double>::infinity());
    for (int64_t i = 0; i < points.n_points; ++i)
        for (int64_t j = 0; j < int64_t(centers.size()) / points.n_features; ++j)
            nearest[std::size_t(i)] = std::min(nearest[std::size_t(i)], sq_dist(points, i, centers, j));
    return nearest;
}

template <class V>
void compare(const Points<V>& points, const DenseSource<V>& source, const std::vector<double>& centers,
             const std::vector<double>& nearest, Team& team) {
    std::vector<int32_t> labels(std::size_t(points.n_points), -1);
    Request<DenseSource<V>> request{};
    request.task = Task::hard_sums;
    request.centers = centers.data();
    request.n_centers = int64_t(centers.size()) / points.n_features;
    request.labels = labels.data();
    const SweepResult found = sweep(source, request, team);
    std::vector<double> weights(std::size_t(request.n_centers));
    double inertia = 0;
    for (int64_t i = 0; i < points.n_points; ++i) {
        const int32_t label = labels[std::size_t(i)];
        require(0 <= label && label < request.n_centers, "labels are centers");
        const double least = nearest[std::size_t(i)];
        require(sq_dist(points, i, centers, label) <= least * (1 + tolerance<V>),
                "no center is nearer to a point than that of its label");
        weights[std::size_t(label)] += 1;
        inertia += least;
    }
    require(found.weights == weights, "a center weighs as much as the points with its label");
    require(std::abs(found.inertia - inertia) <= tolerance<V> * inertia,
            "the inertia is the sum of the squared distances to the nearest centers");
}

// Sweeps three times, so that later sweeps can use what earlier ones left: most centers move a little,
// and every ninth moves far.
template <class V>
void compare_sweeps(int64_t n_points, int64_t n_features, int64_t n_centers) {
    const Points<V> points{random_values<V>(std::size_t(n_points * n_features), 1), n_points, n_features};
    std::vector<std::vector<double>> centers{random_values<double>(std::size_t(n_centers * n_features), 2)};
    for (unsigned s = 0; s < 2; ++s) {
        const std::vector<double> steps = random_values<double>(centers[s].size(), 3 + s);
        centers.push_back(centers[s]);
        for (std::size_t i = 0; i < steps.size(); ++i)
            centers.back()[i] += steps[i] * (int64_t(i) / n_features % 9 == 0 ? 1 : 1e-3);
    }
    std::vector<std::vector<double>> nearest;
    for (const std::vector<double>& places : centers)
        nearest.push_back(nearest_by_definition(points, places));
    Team team(2);
    const Moments moments = moments_of(points.values.data(), n_points, n_features, team);
    for (const InstructionSet& set : instruction_sets()) {
        if (!set.supported) continue;
        use_instruction_set(set.name);
        const DenseSource<V> source{points.values.data(), n_points, n_features, dense_frame<V>(moments)};
        for (std::size_t s = 0; s < centers.size(); ++s)
            compare(points, source, centers[s], nearest[s], team);
    }
}

}  // namespace

int main() {
    for (const int64_t n_features : {2, 3, 16, 64})
        for (const int64_t n_centers : {8, 50, 300}) {
            compare_sweeps<float>(2000, n_features, n_centers);
            compare_sweeps<double>(2000, n_features, n_centers);
        }
    std::puts("labels are the nearest centers'");
    return 0;
}
