// The register tile of both matrix products of a sweep: distances of points and centers, and sums of weighted
// points. Values of rows are broadcast, columns lie in lanes.
#pragma once

#include "kernels/vectors.hpp"

namespace powermeans {
namespace {

// With more rows a tile of `units` columns does not fit the registers.
#if defined(__ARM_NEON)
constexpr int rows_of_one_unit = 6;
#else
constexpr int rows_of_one_unit = vectors_per_unit == 1 ? 16 : vectors_per_unit == 2 ? 6 : 2;
#endif
template <int units>
constexpr int tile_rows = units == 4   ? 6
                          : units == 2 ? 12
                                       : rows_of_one_unit;
constexpr int largest_tile_units = vectors_per_unit == 1 ? 4 : 1;

// Rows of the left operand: element (row, step) is at first[row * row_stride + step * step_stride].
template <class T>
struct Left {
    const T* first;
    int64_t row_stride;
    int64_t step_stride;
};

// Columns of the right operand: units side by side, each stepping through memory.
template <class T>
struct Right {
    const T* first;
    int64_t unit_stride;
    int64_t step_stride;
};

template <class T, int rows, int units>
struct Accumulators {
    Vector<T> at[rows][units * vectors_per_unit];
};

// acc(row, column) += sum over the steps, in order, of left * right or (left - right)^2.
template <class T, int rows, int units, bool squared_differences>
POWERMEANS_INLINE void accumulate(Left<T> left, Right<T> right, int64_t n_steps,
                                  Accumulators<T, rows, units>& acc) {
    constexpr int n_vectors = units * vectors_per_unit;
    for (int64_t step = 0; step < n_steps; ++step) {
        Vector<T> column[n_vectors];
#pragma GCC unroll 16
        for (int v = 0; v < n_vectors; ++v)
            column[v] = load(right.first + (v / vectors_per_unit) * right.unit_stride +
                             step * right.step_stride + (v % vectors_per_unit) * lanes<T>);
#pragma GCC unroll 16
        for (int row = 0; row < rows; ++row) {
            const Vector<T> value = broadcast(left.first[row * left.row_stride + step * left.step_stride]);
#pragma GCC unroll 16
            for (int v = 0; v < n_vectors; ++v) {
                if constexpr (squared_differences) {
                    const Vector<T> difference = column[v] - value;
                    acc.at[row][v] = multiply_add(difference, difference, acc.at[row][v]);
                } else {
                    acc.at[row][v] = multiply_add(value, column[v], acc.at[row][v]);
                }
            }
        }
    }
}

// Calls with_tile<rows, units>(first_row, first_unit) until all rows and units are covered. Units are
// outermost, so that a panel of columns stays in cache while the rows pass.
template <class Body>
struct Tiling {
    const Body& body;
    int64_t n_rows;

    template <int units>
    POWERMEANS_INLINE void all_rows(int64_t first_unit) const {
        int64_t row = 0;
        for (; row + tile_rows<units> <= n_rows; row += tile_rows<units>)
            body.template with_tile<tile_rows<units>, units>(row, first_unit);
        if constexpr (tile_rows<units> > 8)
            for (; row + 8 <= n_rows; row += 8) body.template with_tile<8, units>(row, first_unit);
        if constexpr (tile_rows<units> > 4)
            for (; row + 4 <= n_rows; row += 4) body.template with_tile<4, units>(row, first_unit);
        for (; row < n_rows; ++row) body.template with_tile<1, units>(row, first_unit);
    }

    POWERMEANS_INLINE void all(int64_t n_units) const {
        int64_t unit = 0;
        if constexpr (largest_tile_units == 4) {
            for (; unit + 4 <= n_units; unit += 4) all_rows<4>(unit);
            for (; unit + 2 <= n_units; unit += 2) all_rows<2>(unit);
        }
        for (; unit < n_units; ++unit) all_rows<1>(unit);
    }
};

// dist(row, column) (+)= products or squared differences of packed points and center panels.
template <class T, bool squared_differences>
struct DistanceTiles {
    const T* packed;  // (n_rows, padded_features)
    int64_t padded_features;
    Centers<T> centers;
    int64_t first_feature;
    int64_t n_steps;
    bool starts_at_zero;
    T* dist;  // (n_rows, n_padded)

    template <int rows, int units>
    POWERMEANS_INLINE void with_tile(int64_t first_row, int64_t first_unit) const {
        constexpr int64_t width = unit_lanes<T>;
        const int64_t n_features = centers.n_features, n_padded = centers.n_padded;
        Accumulators<T, rows, units> acc;
        T* corner = dist + first_row * n_padded + first_unit * width;
#pragma GCC unroll 16
        for (int row = 0; row < rows; ++row)
#pragma GCC unroll 16
            for (int v = 0; v < units * vectors_per_unit; ++v)
                acc.at[row][v] = starts_at_zero ? Vector<T>{} : load(corner + row * n_padded + v * lanes<T>);
        const Left<T> left{packed + first_row * padded_features + first_feature, padded_features, 1};
        const Right<T> right{centers.panels + (first_unit * n_features + first_feature) * width,
                             n_features * width, width};
        accumulate<T, rows, units, squared_differences>(left, right, n_steps, acc);
#pragma GCC unroll 16
        for (int row = 0; row < rows; ++row)
#pragma GCC unroll 16
            for (int v = 0; v < units * vectors_per_unit; ++v)
                store(corner + row * n_padded + v * lanes<T>, acc.at[row][v]);
    }
};

// sums(row, column) += factor * products over the points of a block, in float64.
template <class T>
struct SumTiles {
    Left<T> left;  // steps are points
    Right<T> right;
    int64_t n_points;
    double factor;
    double* sums;
    int64_t sums_stride;

    template <int rows, int units>
    POWERMEANS_INLINE void with_tile(int64_t first_row, int64_t first_unit) const {
        Accumulators<T, rows, units> acc{};
        const Left<T> at_rows{left.first + first_row * left.row_stride, left.row_stride, left.step_stride};
        const Right<T> at_units{right.first + first_unit * right.unit_stride, right.unit_stride,
                                right.step_stride};
        accumulate<T, rows, units, false>(at_rows, at_units, n_points, acc);
        double* corner = sums + first_row * sums_stride + first_unit * unit_lanes<T>;
#pragma GCC unroll 16
        for (int row = 0; row < rows; ++row)
#pragma GCC unroll 16
            for (int v = 0; v < units * vectors_per_unit; ++v)
                add_to(corner + row * sums_stride + v * lanes<T>, acc.at[row][v], factor);
    }
};

}  // namespace
}  // namespace powermeans
