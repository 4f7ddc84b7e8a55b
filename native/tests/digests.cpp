// Prints digests of what the core computes, so that builds for different machines can be compared. Points are
// made from integers, and no function of the C library comes in, so that they are the same everywhere.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "moves/online.hpp"
#include "moves/single_moves.hpp"
#include "seeds/draw.hpp"
#include "seeds/seed.hpp"
#include "sweep/sweep.hpp"
#include "testing.hpp"

using namespace powermeans;

namespace {

constexpr int64_t n_points = 1000;
constexpr int64_t n_seeds = 15, n_candidates = 5;

// Numbers in [0, 1), with 53 random bits.
struct Uniforms {
    std::uint64_t state;

    double operator()() {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const std::uint64_t mixed = (state ^ (state >> 29)) * 0x9e3779b97f4a7c15u;
        return double(mixed >> 11) * 0x1p-53;
    }

    template <class V>
    std::vector<V> values(int64_t n) {
        std::vector<V> found(static_cast<std::size_t>(n));
        for (V& value : found) value = V(4 * (*this)() - 2);
        return found;
    }
};

// The hash FNV-1a of all bytes.
class Digest {
  public:
    template <class T>
    Digest& add(const T* values, std::size_t n) {
        std::vector<unsigned char> bytes(n * sizeof(T));
        if (n) std::memcpy(bytes.data(), values, bytes.size());
        for (unsigned char byte : bytes) hash_ = (hash_ ^ byte) * 0x100000001b3u;
        return *this;
    }

    template <class T>
    Digest& add(const std::vector<T>& values) {
        return add(values.data(), values.size());
    }

    Digest& add(double value) { return add(&value, 1); }

    void print(const std::string& name) const {
        std::printf("%s\t%016llx\n", name.c_str(), static_cast<unsigned long long>(hash_));
    }

  private:
    std::uint64_t hash_ = 0xcbf29ce484222325u;
};

// What there is to compute with one kind of points.
template <class Source>
class Digests {
  public:
    using T = typename Source::Computed;

    Digests(std::string name, Source source, std::vector<double> centers, Team& team)
        : name_(std::move(name)), source_(std::move(source)), centers_(std::move(centers)), team_(team) {}

    void print_all() {
        print_sweeps();
        print_seeds();
        print_draws();
        print_pass();
    }

    void print_sweeps() {
        print_sweep(request(Task::hard_sums), "hard");
        for (double power : {-3.0, -30.0, -1000.0}) {
            Request<T> powers = request(Task::soft_sums);
            powers.power = power;
            print_sweep(powers, "power " + std::to_string(int(power)));
        }
        Request<T> harmonic = request(Task::soft_sums);
        harmonic.power = -1.75;
        harmonic.mean_exponent = 0.75;
        print_sweep(harmonic, "harmonic");
        Request<T> gaussian = request(Task::soft_sums);
        gaussian.rule = SoftRule::gaussian;
        gaussian.variance = 0.1;
        print_sweep(gaussian, "gaussian");
        print_sweep(request(Task::spread), "spread");
        print_sweep(request(Task::assign), "assign");
        // From the second time on, hard sweeps use what the one before left.
        for (const char* what : {"hard again", "hard a third time"}) {
            for (double& value : centers_) value *= 1 + 0x1p-10;
            print_sweep(request(Task::hard_sums), what);
        }
    }

    void print_moves(const char* terms, const Phi& phi) {
        const int64_t n_centers = int64_t(centers_.size()) / source_.n_features;
        std::vector<int64_t> order = shuffled_order();
        std::vector<int32_t> labels;
        for (int64_t i = 0; i < source_.n_points; ++i) labels.push_back(int32_t(i % n_centers));
        std::vector<double> centers = centers_, distances(std::size_t(source_.n_points));
        const MovesRequest moves{phi, nullptr, order.data(), n_centers, 3, labels.data(), centers.data()};
        const double n_moves = double(move_points(source_, moves, team_));
        distances_to_own(source_, phi, centers.data(), n_centers, labels.data(), team_, distances.data());
        Digest().add(labels).add(centers).add(distances).add(n_moves).print(name_ + " " + terms);
    }

  private:
    Request<T> request(Task task) const {
        Request<T> request{};
        request.task = task;
        request.raw_centers = centers_.data();
        const int64_t width = source_.n_features + (source_.heights.values ? 1 : 0);
        request.n_centers = int64_t(centers_.size()) / width;
        return request;
    }

    void print_sweep(Request<T> request, const std::string& what) {
        std::vector<int32_t> labels(std::size_t(source_.n_points), -1);
        request.labels = labels.data();
        const SweepResult found = sweep(source_, request, team_);
        Digest digest;
        digest.add(found.points).add(found.weights).add(found.error).add(found.utility).add(labels);
        digest.add(found.objective).add(found.inertia).print(name_ + " " + what);
    }

    std::vector<int64_t> shuffled_order() const {
        std::vector<int64_t> order;
        // 101 shares no factor with the number of points.
        for (int64_t i = 0; i < source_.n_points; ++i) order.push_back((i * 101 + 7) % source_.n_points);
        return order;
    }

    void print_seeds() {
        Uniforms uniforms{11};
        std::vector<double> numbers;
        for (int64_t i = 0; i < (n_seeds - 1) * n_candidates; ++i) numbers.push_back(uniforms());
        const std::vector<int64_t> order = shuffled_order();
        std::vector<int64_t> seeds(std::size_t{n_seeds});
        const SeedRequest request{nullptr, order.data(), 0.5, numbers.data(), n_seeds, n_candidates};
        greedy_seeds(source_, request, team_, [] {}, seeds.data());
        Digest().add(seeds).print(name_ + " seeds");
    }

    void print_draws() {
        std::vector<double> nearest(std::size_t(source_.n_points), std::numeric_limits<double>::infinity());
        Request<T> asked = request(Task::approach);
        asked.n_centers = 3;
        asked.nearest = nearest.data();
        sweep(source_, asked, team_);
        asked = request(Task::potentials);
        asked.nearest = nearest.data();
        Digest().add(nearest).add(sweep(source_, asked, team_).weights).print(name_ + " nearest");
        const std::vector<double> numbers{0, 0.1, 0.3, 0.5, 0.999};
        std::vector<int64_t> drawn(numbers.size());
        draw({nearest.data(), nullptr, nullptr, source_.n_points, 2.0}, numbers.data(),
             int64_t(numbers.size()), team_, drawn.data());
        Digest().add(drawn).print(name_ + " drawn");
    }

    void print_pass() {
        std::vector<double> centers = centers_;
        const Request<T> asked = request(Task::assign);
        std::vector<double> counts(std::size_t(asked.n_centers), 0.0);
        const OnlineRequest pass{nullptr,        1.0,          nullptr, nullptr, 0, asked.n_centers,
                                 centers.data(), counts.data()};
        const double inertia = present(source_, pass, [] {});
        Digest().add(centers).add(counts).add(inertia).print(name_ + " online");
    }

    std::string name_;
    Source source_;
    std::vector<double> centers_;
    Team& team_;
};

template <class V>
void print_shape(const std::string& instruction_set, int64_t n_features, int64_t n_centers) {
    Team team(2);
    Uniforms uniforms{std::uint64_t(n_features)};
    const std::vector<V> points = uniforms.values<V>(n_points * n_features);
    const std::vector<double> centers = uniforms.values<double>(n_centers * n_features);
    const std::vector<double> planes = uniforms.values<double>(n_centers * (n_features + 1));
    const std::vector<double> heights(std::size_t{n_points}, 9.0);
    const std::string name = instruction_set + (sizeof(V) == 4 ? "\tfloat32" : "\tfloat64") +
                             " d=" + std::to_string(n_features) + " k=" + std::to_string(n_centers);
    const Moments moments = moments_of(Entries<V>(points.data()), n_points, n_features, team);
    Digest().add(moments.mean).add(moments.variance).add(moments.median).print(name + " moments");
    DenseSource<V> dense{points.data(), n_points, n_features, dense_frame<V>(moments)};
    Digests<DenseSource<V>>(name + " dense", dense, centers, team).print_all();
    const SparsePoints<V> sparse(points, n_features, V(0.7));
    Digests<CsrSource<V>>(name + " sparse", sparse.source, centers, team).print_all();
    DenseSource<V> affine{points.data(), n_points, n_features, frame_about_median(moments),
                          Heights{heights.data(), 9.0}};
    Digests<DenseSource<V>>(name + " affine", affine, planes, team).print_sweeps();
    // Positive numbers, for divergences of such.
    std::vector<V> counts = points;
    for (V& count : counts) count += V(2.5);
    std::vector<double> means = centers;
    for (double& mean : means) mean += 2.5;
    const Moments of_counts = moments_of(Entries<V>(counts.data()), n_points, n_features, team);
    DenseSource<V> positive{counts.data(), n_points, n_features, dense_frame<V>(of_counts)};
    Digests<DenseSource<V>> moves(name + " moves", positive, means, team);
    moves.print_moves("x log x", {0, 1, 0, 0, 0});
    moves.print_moves("-log x", {0, 0, 1, 0, 0});
    moves.print_moves("1 / x", {0, 0, 0, 1, 0});
    moves.print_moves("x^2 - 3 log x", {1, 0, 3, 0, 0});
    moves.print_moves("|x|", {0, 0, 0, 0, 1});
    moves.print_moves("x^2", {1, 0, 0, 0, 0});
}

// Points of fewer bits, which the tests of Python compare with floats.
void print_narrow(const std::string& instruction_set, int64_t n_features, int64_t n_centers) {
    Team team(2);
    const std::vector<double> centers = Uniforms{7}.values<double>(n_centers * n_features);
    std::vector<float> widened(std::size_t(n_points * n_features));
    for (const EntryType type : narrow_types) {
        const NarrowPoints points(type, n_points, n_features);
        const std::string name =
            instruction_set + "\tnarrow " + std::to_string(int(type)) + " d=" + std::to_string(n_features);
        chosen_instruction_set().kernels->widen(points.bytes.data(), type, int64_t(widened.size()),
                                                widened.data());
        Digest().add(widened).print(name + " widened");
        Digests<DenseSource<float>> digests(name, points.source, centers, team);
        digests.print_all();
        digests.print_moves("x^2", {1, 0, 0, 0, 0});
    }
}

// Digests are equal wherever products and sums are fused, and wherever they are not.
std::string arithmetic_of(const std::string& instruction_set) {
#if defined(__ARM_NEON)
    return "fused\t" + instruction_set;
#else
    return (instruction_set == "baseline" ? "rounded twice\t" : "fused\t") + instruction_set;
#endif
}

}  // namespace

int main() {
    // Small enough for an emulator, and with every kind of plan.
    const int64_t shapes[][2] = {{2, 8},  {2, 50}, {3, 300},  {16, 50}, {20, 100},
                                 {64, 8}, {64, 4}, {300, 20}, {257, 9}};
    for_each_instruction_set([&](const std::string& name) {
        print_narrow(arithmetic_of(name), 3, 20);
        print_narrow(arithmetic_of(name), 131, 40);
        for (const auto [n_features, n_centers] : shapes) {
            print_shape<float>(arithmetic_of(name), n_features, n_centers);
            print_shape<double>(arithmetic_of(name), n_features, n_centers);
        }
    });
    return 0;
}
