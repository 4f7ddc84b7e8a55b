// Compares points of fewer bits with floats of the same values: entries, moments, seeds, sweeps and moves.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "moves/single_moves.hpp"
#include "seeds/seed.hpp"
#include "sweep/sweep.hpp"
#include "testing.hpp"

using namespace powermeans;

namespace {

struct Narrow {
    EntryType type;
    std::vector<unsigned char> bytes;
    std::vector<float> values;  // by definition

    Narrow(EntryType type_, int64_t n) : type(type_) {
        std::mt19937 generator(7);
        for (int64_t i = 0; i < n; ++i) {
            const uint16_t bits = uint16_t(generator());
            if (bytes_of_entry(type, 4) == 1) {
                bytes.push_back(static_cast<unsigned char>(bits));
                values.push_back(type == EntryType::uint8 ? float(uint8_t(bits)) : float(int8_t(bits)));
                continue;
            }
            // Exponents below the largest, so that numbers are finite, and some of them subnormal.
            const uint16_t kept = type == EntryType::float16 ? bits & 0xbfff : (bits & 0x80ff) | 0x3f00;
            bytes.push_back(static_cast<unsigned char>(kept & 0xff));
            bytes.push_back(static_cast<unsigned char>(kept >> 8));
            values.push_back(type == EntryType::float16 ? of_half(kept) : of_bfloat(kept));
        }
    }

    Entries<float> entries() const { return {bytes.data(), type}; }

  private:
    static float of_half(uint16_t bits) {
        const int exponent = bits >> 10 & 31, fraction = bits & 1023;
        const double size = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
        return float(bits & 0x8000 ? -size : size);
    }

    static float of_bfloat(uint16_t bits) {
        const double size = std::ldexp(128 + (bits & 127), (bits >> 7 & 255) - 134);
        return float(bits & 0x8000 ? -size : size);
    }
};

DenseSource<float> source_of(const Entries<float>& entries, int64_t n_points, int64_t n_features,
                             Team& team) {
    const Moments moments = moments_of(entries, n_points, n_features, team);
    return {entries, n_points, n_features, dense_frame<float>(moments)};
}

std::vector<int64_t> seeds_of(const DenseSource<float>& source, int64_t n_seeds, Team& team) {
    std::vector<int64_t> order(static_cast<std::size_t>(source.n_points)), indices(std::size_t(n_seeds), -1);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = int64_t(order.size() - 1 - i);
    const std::vector<double> others(std::size_t(2 * n_seeds), 0.37);
    SeedRequest asked{};
    asked.order = order.data();
    asked.first = 0.6;
    asked.others = others.data();
    asked.n_seeds = n_seeds;
    asked.n_candidates = 2;
    asked.seconds = std::numeric_limits<double>::infinity();
    greedy_seeds(source, asked, team, [] {}, indices.data());
    return indices;
}

void compare_sweeps(const DenseSource<float>& narrow, const DenseSource<float>& wide, int64_t n_centers,
                    Team& team) {
    std::vector<double> centers = random_values<double>(n_centers * wide.n_features, 3);
    for (const Task task : {Task::hard_sums, Task::hard_sums, Task::soft_sums, Task::spread}) {
        Request<float> request{};
        request.task = task;
        request.power = -3;
        request.raw_centers = centers.data();
        request.n_centers = n_centers;
        const SweepResult found = sweep(narrow, request, team), expected = sweep(wide, request, team);
        require(found.points == expected.points && found.weights == expected.weights &&
                    found.error == expected.error && found.inertia == expected.inertia,
                "sweeps over narrow entries give the same bits");
        for (double& value : centers) value *= 1.01;
    }
    std::vector<int32_t> labels[2];
    std::vector<double> moved[2] = {centers, centers};
    for (int i : {0, 1}) {
        labels[i].assign(std::size_t(wide.n_points), 0);
        std::vector<int64_t> order(static_cast<std::size_t>(wide.n_points));
        for (std::size_t p = 0; p < order.size(); ++p) order[p] = int64_t(p);
        const MovesRequest asked{Phi{1, 0, 0, 0, 0}, nullptr,        order.data(), n_centers, 2,
                                 labels[i].data(),   moved[i].data()};
        move_points(i ? wide : narrow, asked, team);
    }
    require(labels[0] == labels[1] && moved[0] == moved[1], "points move alike");
}

void compare(EntryType type, int64_t n_points, int64_t n_features, int64_t n_centers) {
    const Narrow points(type, n_points * n_features);
    std::vector<float> widened(points.values.size());
    chosen_instruction_set().kernels->widen(points.bytes.data(), type, int64_t(widened.size()),
                                            widened.data());
    require(!std::memcmp(widened.data(), points.values.data(), widened.size() * sizeof(float)),
            "entries are widened without a change");
    Team team(2);
    const DenseSource<float> narrow = source_of(points.entries(), n_points, n_features, team);
    const DenseSource<float> wide =
        source_of(Entries<float>(points.values.data()), n_points, n_features, team);
    require(narrow.frame.origin == wide.frame.origin && narrow.frame.extent == wide.frame.extent,
            "moments are the same");
    require(seeds_of(narrow, n_centers, team) == seeds_of(wide, n_centers, team), "seeds are the same");
    compare_sweeps(narrow, wide, n_centers, team);
}

}  // namespace

int main() {
    for_each_instruction_set([](const char*) {
        for (const EntryType type :
             {EntryType::float16, EntryType::bfloat16, EntryType::int8, EntryType::uint8}) {
            compare(type, 1000, 3, 20);
            compare(type, 600, 40, 9);
            compare(type, 600, 40, 3);
            compare(type, 700, 131, 40);
        }
    });
    std::puts("narrow entries give what floats give");
    return 0;
}
