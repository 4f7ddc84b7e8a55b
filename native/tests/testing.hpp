// What the native tests share: a check that ends the program, and points to compute with.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

inline void require(bool holds, const char* what) {
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
