// What the native tests share: a check that ends the program, and points. Random numbers are the same in
// every run.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "dispatch.hpp"
#include "points/source.hpp"

namespace powermeans {

inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what);
    std::exit(1);
}

template <class V>
std::vector<V> random_values(int64_t n, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<double> normal;
    std::vector<V> values(static_cast<std::size_t>(n));
    for (V& value : values) value = V(normal(generator));
    return values;
}

template <class V>
struct DensePoints {
    std::vector<V> values;
    DenseSource<V> source;

    DensePoints(int64_t n_points, int64_t n_features, int n_threads = 2)
        : values(random_values<V>(n_points * n_features, 1)) {
        Team team(n_threads);
        const Moments moments = moments_of(Entries<V>(values.data()), n_points, n_features, team);
        source = {values.data(), n_points, n_features, dense_frame<V>(moments)};
    }
};

constexpr EntryType narrow_types[] = {EntryType::float16, EntryType::bfloat16, EntryType::int8,
                                      EntryType::uint8};

// Points of fewer bits than floats. Exponents are up to that of one, so that numbers are finite.
struct NarrowPoints {
    std::vector<unsigned char> bytes;
    DenseSource<float> source;

    NarrowPoints(EntryType type, int64_t n_points, int64_t n_features) {
        std::mt19937 generator(7);
        const int64_t bytes_each = bytes_of_entry(type, 4);
        for (int64_t at = 0; at < n_points * n_features * bytes_each; ++at) {
            const unsigned byte = generator() & 0xff;
            const bool is_low = at % bytes_each + 1 < bytes_each || bytes_each == 1;
            const unsigned high = type == EntryType::float16 ? byte & 0xbf : (byte & 0x80) | 0x3f;
            bytes.push_back(static_cast<unsigned char>(is_low ? byte : high));
        }
        Team team(2);
        const Entries<float> entries(bytes.data(), type);
        source = {entries, n_points, n_features,
                  dense_frame<float>(moments_of(entries, n_points, n_features, team))};
    }
};

template <class V>
struct SparsePoints {
    std::vector<V> values;
    std::vector<int32_t> columns;
    std::vector<int64_t> row_starts{0};
    CsrSource<V> source;

    // Stores the values of `all` that are above `least`.
    SparsePoints(const std::vector<V>& all, int64_t n_features, V least) {
        for (std::size_t at = 0; at < all.size(); ++at) {
            if (all[at] > least) {
                values.push_back(all[at]);
                columns.push_back(int32_t(int64_t(at) % n_features));
            }
            if (int64_t(at + 1) % n_features == 0) row_starts.push_back(int64_t(values.size()));
        }
        double largest = 0;
        for (V value : values) largest = std::max(largest, std::abs(double(value)));
        const int64_t n_points = int64_t(all.size()) / n_features;
        source = {values.data(), columns.data(), row_starts.data(), n_points, n_features, Frame{{}, largest}};
    }
};

// Calls body(name) with each instruction set of this machine in use.
template <class Body>
void for_each_instruction_set(const Body& body) {
    for (const InstructionSet& set : instruction_sets()) {
        if (!set.supported) continue;
        use_instruction_set(set.name);
        body(set.name);
    }
}

}  // namespace powermeans
