// Distances of points to a panel of candidate seeds, whose lanes are the candidates. Compiled once for
// each instruction set, as kernels.cpp is; POWERMEANS_SEED_TABLE names the table.
#include "seed_kernels.hpp"

#include "vectors.hpp"

namespace powermeans {
namespace {

constexpr int tile_points = vectors_per_unit == 1 ? 8 : vectors_per_unit == 2 ? 4 : 2;

// Below this share of |x|^2 + |candidate|^2 a distance from a product has lost too many digits.
constexpr double cancellation = 1.0 / 1024;

struct Lanes {
    DoubleVector at[vectors_per_unit];
};

POWERMEANS_INLINE Lanes load_lanes(const double* from) {
    Lanes loaded;
    for (int v = 0; v < vectors_per_unit; ++v) loaded.at[v] = load(from + v * lanes<double>);
    return loaded;
}

POWERMEANS_INLINE void store_lanes(double* to, const Lanes& values) {
    for (int v = 0; v < vectors_per_unit; ++v) store(to + v * lanes<double>, values.at[v]);
}

// One bit for each lane above zero.
POWERMEANS_INLINE unsigned positive_lanes(DoubleVector v) {
#if defined(__AVX512F__)
    return _mm512_cmp_pd_mask(v, _mm512_setzero_pd(), _CMP_GT_OQ);
#elif defined(__AVX2__)
    return unsigned(_mm256_movemask_pd(_mm256_cmp_pd(v, _mm256_setzero_pd(), _CMP_GT_OQ)));
#else
    unsigned bits = 0;
    for (int lane = 0; lane < lanes<double>; ++lane) bits |= unsigned(v[lane] > 0) << lane;
    return bits;
#endif
}

template <class Walk>
POWERMEANS_INLINE int64_t point_at(const Walk& walk, int64_t place) {
    return walk.order ? walk.order[place] : place;
}

template <class V>
POWERMEANS_INLINE void tile_distances(const DenseWalk<V>& walk, const Panel& panel,
                                      const int64_t (&places)[tile_points], Lanes (&sq_dist)[tile_points]) {
    const V* rows[tile_points];
    for (int t = 0; t < tile_points; ++t) {
        rows[t] = walk.values + point_at(walk, places[t]) * walk.n_features;
        sq_dist[t] = {};
    }
    const DoubleVector scale = broadcast(walk.scale);
    for (int64_t f = 0; f < walk.n_features; ++f) {
        const Lanes candidates = load_lanes(panel.values + f * candidates_per_panel);
#pragma GCC unroll 8
        for (int t = 0; t < tile_points; ++t) {
            const DoubleVector x = broadcast(double(rows[t][f]));
#pragma GCC unroll 4
            for (int v = 0; v < vectors_per_unit; ++v) {
                // The product is exact, so that it does not matter where it is fused.
                const DoubleVector difference = multiply_add(x, scale, candidates.at[v]);
                sq_dist[t].at[v] = multiply_add(difference, difference, sq_dist[t].at[v]);
            }
        }
    }
}

// |x - candidate|^2 from both rows, column by column.
template <class V>
double sq_dist_from_differences(const CsrWalk<V>& walk, int64_t place, int64_t candidate) {
    int64_t i = walk.row_starts[point_at(walk, place)], j = walk.row_starts[point_at(walk, candidate)];
    const int64_t i_end = walk.row_starts[point_at(walk, place) + 1];
    const int64_t j_end = walk.row_starts[point_at(walk, candidate) + 1];
    double sum = 0;
    while (i < i_end || j < j_end) {
        const bool x_is_next = j == j_end || (i < i_end && walk.columns[i] <= walk.columns[j]);
        const int32_t column = walk.columns[x_is_next ? i : j];
        double difference = 0;
        for (; i < i_end && walk.columns[i] == column; ++i) difference += double(walk.values[i]) * walk.scale;
        for (; j < j_end && walk.columns[j] == column; ++j) difference -= double(walk.values[j]) * walk.scale;
        sum = multiply_add(difference, difference, sum);
    }
    return sum;
}

template <class V>
POWERMEANS_INLINE Lanes sparse_distances(const CsrWalk<V>& walk, const Panel& panel, int64_t place) {
    Lanes products = {};
    double sq_norm = 0;
    const int64_t point = point_at(walk, place);
    for (int64_t e = walk.row_starts[point]; e < walk.row_starts[point + 1]; ++e) {
        const double value = double(walk.values[e]) * walk.scale;
        const Lanes candidates = load_lanes(panel.values + walk.columns[e] * candidates_per_panel);
        sq_norm = multiply_add(value, value, sq_norm);
        for (int v = 0; v < vectors_per_unit; ++v)
            products.at[v] = multiply_add(broadcast(value), candidates.at[v], products.at[v]);
    }
    const Lanes sq_norms = load_lanes(panel.sq_norms);
    double sq_dist[candidates_per_panel], both[candidates_per_panel];
    for (int v = 0; v < vectors_per_unit; ++v) {
        const DoubleVector norms = broadcast(sq_norm) + sq_norms.at[v];
        store(both + v * lanes<double>, norms);
        store(sq_dist + v * lanes<double>, multiply_add(products.at[v], broadcast(2.0), norms));
    }
    for (int lane = 0; lane < candidates_per_panel; ++lane)
        if (sq_dist[lane] < cancellation * both[lane])
            sq_dist[lane] = sq_dist_from_differences(walk, place, panel.places[lane]);
    return load_lanes(sq_dist);
}

template <class V>
POWERMEANS_INLINE void tile_distances(const CsrWalk<V>& walk, const Panel& panel,
                                      const int64_t (&places)[tile_points], Lanes (&sq_dist)[tile_points]) {
    for (int t = 0; t < tile_points; ++t)
        sq_dist[t] =
            t && places[t] == places[t - 1] ? sq_dist[t - 1] : sparse_distances(walk, panel, places[t]);
}

// Calls with_distances(i, lanes) for each of the places in order.
template <class Walk, class Body>
POWERMEANS_INLINE void for_each_place(const Walk& walk, const Panel& panel, const int64_t* places,
                                      int64_t n_places, const Body& with_distances) {
    for (int64_t at = 0; at < n_places; at += tile_points) {
        int64_t tile[tile_points];
        for (int t = 0; t < tile_points; ++t) tile[t] = places[at + t < n_places ? at + t : n_places - 1];
        Lanes sq_dist[tile_points];
        tile_distances(walk, panel, tile, sq_dist);
        for (int t = 0; t < tile_points && at + t < n_places; ++t) with_distances(at + t, sq_dist[t]);
    }
}

template <class Walk>
void distances(const Walk& walk, const Panel& panel, const int64_t* places, int64_t n_places,
               double* sq_dist) {
    for_each_place(walk, panel, places, n_places,
                   [&](int64_t i, const Lanes& y) { store_lanes(sq_dist + i * candidates_per_panel, y); });
}

template <class Walk>
int64_t compare(const Walk& walk, const Panel& panel, const Standings& standings, int64_t begin, int64_t end,
                double* gains, uint8_t* nearer) {
    int64_t places[places_per_stripe];
    int64_t n_places = 0;
    for (int64_t place = begin; place < end; ++place) {
        nearer[place] = 0;
        places[n_places] = place;
        n_places += standings.nearest[place] > panel.untouched[standings.seed[place]];
    }
    Lanes sums = {};
    for_each_place(walk, panel, places, n_places, [&](int64_t i, const Lanes& sq_dist) {
        const int64_t place = places[i];
        const DoubleVector nearest = broadcast(standings.nearest[place]);
        const DoubleVector weight = broadcast(standings.weight ? standings.weight[place] : 1.0);
        unsigned bits = 0;
        for (int v = 0; v < vectors_per_unit; ++v) {
            const DoubleVector saved = larger(nearest - sq_dist.at[v], DoubleVector{});
            sums.at[v] = multiply_add(saved, weight, sums.at[v]);
            bits |= positive_lanes(saved) << (v * lanes<double>);
        }
        nearer[place] = uint8_t(bits);
    });
    store_lanes(gains, sums);
    return n_places;
}

double mass_of(const Standings& standings, int64_t begin, int64_t end) {
    double lane[candidates_per_panel] = {};
    Lanes sums = {};
    int64_t place = begin;
    for (; place + candidates_per_panel <= end; place += candidates_per_panel)
        for (int v = 0; v < vectors_per_unit; ++v) {
            const int64_t at = place + v * lanes<double>;
            const DoubleVector nearest = load(standings.nearest + at);
            sums.at[v] += standings.weight ? load(standings.weight + at) * nearest : nearest;
        }
    store_lanes(lane, sums);
    for (; place < end; ++place)
        lane[place % candidates_per_panel] +=
            (standings.weight ? standings.weight[place] : 1.0) * standings.nearest[place];
    double sum = 0;
    for (double value : lane) sum += value;
    return sum;
}

template <class Walk>
double take(const Walk& walk, const Panel& panel, int lane, int32_t seed, const uint8_t* nearer,
            int64_t begin, int64_t end, const Standings& standings) {
    int64_t places[places_per_stripe];
    int64_t n_places = 0;
    for (int64_t place = begin; place < end; ++place) {
        places[n_places] = place;
        n_places += nearer[place] >> lane & 1;
    }
    for_each_place(walk, panel, places, n_places, [&](int64_t i, const Lanes& y) {
        double sq_dist[candidates_per_panel];
        store_lanes(sq_dist, y);
        standings.nearest[places[i]] = sq_dist[lane];
        standings.seed[places[i]] = seed;
    });
    return mass_of(standings, begin, end);
}

template <class Walk>
constexpr SeedKernels<Walk> kernels_for = {distances<Walk>, compare<Walk>, take<Walk>};

}  // namespace

extern const SeedKernelTable POWERMEANS_SEED_TABLE;
const SeedKernelTable POWERMEANS_SEED_TABLE = {kernels_for<DenseWalk<float>>, kernels_for<DenseWalk<double>>,
                                               kernels_for<CsrWalk<float>>, kernels_for<CsrWalk<double>>};

}  // namespace powermeans
