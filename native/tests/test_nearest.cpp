// Compares the labels, weights and inertia of hard sweeps with a search by the definition, for every
// instruction set. It catches loops that a compiler gets wrong.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

#include "sweep/sweep.hpp"
#include "testing.hpp"

using namespace powermeans;

namespace {

template <class V>
constexpr double tolerance = sizeof(V) == 4 ? 1e-4 : 1e-12;

template <class V>
double sq_dist(const DenseSource<V>& source, int64_t i, const std::vector<double>& centers, int64_t j) {
    double sum = 0;
    for (int64_t f = 0; f < source.n_features; ++f) {
        const double difference = double(entry_at(source.values, i * source.n_features + f)) -
                                  centers[std::size_t(j * source.n_features + f)];
        sum += difference * difference;
    }
    return sum;
}

// Returns the squared distance of each point to its nearest center.
template <class V>
std::vector<double> nearest_by_definition(const DenseSource<V>& source, const std::vector<double>& centers) {
    std::vector<double> nearest(std::size_t(source.n_points), std::numeric_limits<double>::infinity());
    for (int64_t i = 0; i < source.n_points; ++i)
        for (int64_t j = 0; j < int64_t(centers.size()) / source.n_features; ++j)
            nearest[std::size_t(i)] = std::min(nearest[std::size_t(i)], sq_dist(source, i, centers, j));
    return nearest;
}

template <class V>
void compare(const DenseSource<V>& source, const std::vector<double>& centers,
             const std::vector<double>& nearest) {
    Team team(2);
    std::vector<int32_t> labels(std::size_t(source.n_points), -1);
    Request<V> request{};
    request.task = Task::hard_sums;
    request.raw_centers = centers.data();
    request.n_centers = int64_t(centers.size()) / source.n_features;
    request.labels = labels.data();
    const SweepResult found = sweep(source, request, team);
    std::vector<double> weights(std::size_t(request.n_centers));
    double inertia = 0;
    for (int64_t i = 0; i < source.n_points; ++i) {
        const int32_t label = labels[std::size_t(i)];
        require(0 <= label && label < request.n_centers, "labels are centers");
        const double least = nearest[std::size_t(i)];
        require(sq_dist(source, i, centers, label) <= least * (1 + tolerance<V>),
                "no center is nearer to a point than that of its label");
        weights[std::size_t(label)] += 1;
        inertia += least;
    }
    require(found.weights == weights, "a center weighs as much as the points with its label");
    require(std::abs(found.inertia - inertia) <= tolerance<V> * inertia,
            "the inertia is the sum of the squared distances to the nearest centers");
}

// Sweeps three times, so that later sweeps use the bounds that earlier ones left. Most centers move a little
// in between, and every ninth moves far.
template <class V>
void compare_sweeps(int64_t n_points, int64_t n_features, int64_t n_centers) {
    std::vector<double> centers[3] = {random_values<double>(n_centers * n_features, 2)}, nearest[3];
    for (unsigned s = 0; s < 3; ++s) {
        if (s > 0) {
            centers[s] = random_values<double>(n_centers * n_features, 2 + s);
            for (int64_t i = 0; i < n_centers * n_features; ++i) {
                double& value = centers[s][std::size_t(i)];
                value = centers[s - 1][std::size_t(i)] + value * (i / n_features % 9 == 0 ? 1 : 1e-3);
            }
        }
        nearest[s] = nearest_by_definition(DensePoints<V>(n_points, n_features).source, centers[s]);
    }
    for_each_instruction_set([&](const char*) {
        const DensePoints<V> points(n_points, n_features);
        for (int s : {0, 1, 2}) compare(points.source, centers[s], nearest[s]);
    });
}

}  // namespace

int main() {
    for (const int64_t n_features : {2, 3, 16, 64})
        for (const int64_t n_centers : {4, 8, 50, 300}) {
            compare_sweeps<float>(2000, n_features, n_centers);
            compare_sweeps<double>(2000, n_features, n_centers);
        }
    // Features in lanes, with bounds of earlier sweeps and without.
    for (const auto [n_features, n_centers] : {std::pair{257, 9}, {400, 12}, {784, 10}, {300, 5}}) {
        compare_sweeps<float>(2000, n_features, n_centers);
        compare_sweeps<double>(2000, n_features, n_centers);
    }
    // Compilers of LLVM once left out the padding of these centers.
    for (const int64_t n_features : {2, 3, 16}) compare_sweeps<double>(20000, n_features, 50);
    std::puts("labels are the nearest centers'");
    return 0;
}
