// Drives every task of the sweeps, dense and sparse, through every instruction set's kernels, for the
// sanitizers to watch. What is computed is checked in Python; here only that parts agree.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "../draw.hpp"
#include "../sweep.hpp"

using namespace powermeans;

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what);
    std::exit(1);
}

template <class V>
std::vector<V> random_values(std::size_t n, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<double> normal;
    std::vector<V> values(n);
    for (V& value : values) value = V(normal(generator));
    return values;
}

template <class Source>
void run_every_task(const Source& source, int64_t n_centers, int n_threads) {
    Team team(n_threads);
    const std::vector<double> centers = random_values<double>(std::size_t(n_centers * source.n_features), 7);
    const std::vector<double> weight(std::size_t(source.n_points), 0.5);
    std::vector<int32_t> labels(std::size_t(source.n_points));
    std::vector<double> nearest(std::size_t(source.n_points), INFINITY);
    std::vector<typename Source::Computed> distances(std::size_t(source.n_points * n_centers));
    Request<Source> request{};
    request.centers = centers.data();
    request.n_centers = n_centers;
    request.sample_weight = weight.data();
    request.labels = labels.data();
    request.nearest = nearest.data();
    request.distances = distances.data();
    double total_weight[2];
    for (Task task : {Task::hard_sums, Task::spread}) {
        request.task = task;
        double sum = 0;
        for (double value : sweep(source, request, team).weights) sum += value;
        total_weight[task == Task::spread] = sum;
    }
    require(std::abs(total_weight[0] - 0.5 * double(source.n_points)) < 1e-9, "hard weights add to all");
    require(total_weight[0] == total_weight[1], "spread counts the same points");
    request.task = Task::power_sums;
    for (double power : {-0.1, -3.0, -1000.0, -1e6}) {
        request.power = power;
        require(std::isfinite(sweep(source, request, team).objective), "finite objective");
    }
    for (Task task : {Task::assign, Task::distances, Task::approach, Task::potentials}) {
        request.task = task;
        sweep(source, request, team);
    }
    const std::vector<double> uniforms{0.0, 0.3, 0.999999};
    std::vector<int64_t> drawn(uniforms.size());
    draw({nearest.data(), weight.data(), nullptr, source.n_points, 2.0}, uniforms.data(), 3, team,
         drawn.data());
    for (int64_t i : drawn) require(0 <= i && i < source.n_points, "drawn points exist");
}

template <class V>
void dense(int64_t n_points, int64_t n_features, int64_t n_centers, int n_threads) {
    const std::vector<V> values = random_values<V>(std::size_t(n_points * n_features), 1);
    Team team(n_threads);
    const Moments moments = moments_of(values.data(), n_points, n_features, team);
    run_every_task(DenseSource<V>{values.data(), n_points, n_features, dense_frame<V>(moments)}, n_centers,
                   n_threads);
}

template <class V>
void sparse(int64_t n_points, int64_t n_features, int64_t n_centers, int n_threads) {
    const std::vector<V> all = random_values<V>(std::size_t(n_points * n_features), 2);
    std::vector<V> values;
    std::vector<int32_t> columns;
    std::vector<int64_t> row_starts{0};
    for (int64_t i = 0; i < n_points; ++i) {
        for (int64_t f = 0; f < n_features; ++f)
            if (all[std::size_t(i * n_features + f)] > V(0.5)) {
                values.push_back(all[std::size_t(i * n_features + f)]);
                columns.push_back(int32_t(f));
            }
        row_starts.push_back(int64_t(values.size()));
    }
    const CsrSource<V> source{values.data(), columns.data(), row_starts.data(),
                              n_points,      n_features,     Frame{{}, scale_for<double>(4.0)}};
    run_every_task(source, n_centers, n_threads);
}

// Large enough that every thread has stripes of its own.
void threads_share_a_sweep() {
    const int64_t n_points = 20000, n_features = 3, n_centers = 40;
    const std::vector<double> values = random_values<double>(std::size_t(n_points * n_features), 1);
    const std::vector<double> centers = random_values<double>(std::size_t(n_centers * n_features), 7);
    std::vector<std::vector<double>> sums;
    for (int n_threads : {1, 4}) {
        Team team(n_threads);
        const Frame frame = dense_frame<double>(moments_of(values.data(), n_points, n_features, team));
        const DenseSource<double> source{values.data(), n_points, n_features, frame};
        Request<DenseSource<double>> request{};
        request.task = Task::power_sums;
        request.power = -3;
        request.centers = centers.data();
        request.n_centers = n_centers;
        sums.push_back(sweep(source, request, team).points);
        require(int(team.stripes_by_worker().size()) == n_threads, "as many threads as asked for");
        for (int64_t stripes : team.stripes_by_worker()) require(stripes > 0, "every thread worked");
    }
    require(sums[0] == sums[1], "threads change no bit");
}

void failures_reach_the_caller() {
    Team team(4);
    bool caught = false;
    try {
        team.run(
            50, 4,
            [](int, int64_t stripe) {
                if (stripe == 17) throw std::runtime_error("stripe 17");
            },
            [](int, int64_t) {});
    } catch (const std::runtime_error&) {
        caught = true;
    }
    require(caught, "a failed stripe is thrown by run");
    int64_t n_merged = 0;
    team.run(
        50, 4, [](int, int64_t) {},
        [&](int, int64_t stripe) { require(stripe == n_merged++, "merged in order"); });
    require(n_merged == 50, "the team works on after a failure");
}

}  // namespace

int main() {
    for (const InstructionSet& set : instruction_sets()) {
        if (!set.supported) continue;
        use_instruction_set(set.name);
        for (int n_threads : {1, 4}) {
            dense<double>(3001, 2, 5, n_threads);
            dense<float>(3001, 2, 17, n_threads);
            dense<double>(701, 33, 100, n_threads);
            dense<float>(701, 300, 9, n_threads);
            dense<float>(7, 17, 1, n_threads);
            dense<double>(1, 1, 1, n_threads);
            sparse<double>(701, 40, 9, n_threads);
            sparse<float>(701, 17, 20, n_threads);
        }
        threads_share_a_sweep();
        std::printf("%s: every task ran\n", set.name);
    }
    failures_reach_the_caller();
    return 0;
}
