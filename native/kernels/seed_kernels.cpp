// Distances of points to a panel of candidate seeds, a candidate in each lane. This file is compiled once for
// each instruction set; POWERMEANS_SEED_TABLE names the table that it defines.
#include "kernels/seed_kernels.hpp"

#include "kernels/vectors.hpp"
#include "kernels/widening.hpp"

namespace powermeans {
namespace {

constexpr int tile_points = vectors_per_unit == 1 ? 8 : vectors_per_unit == 2 ? 4 : 2;

// Below this share of |x|^2 + |candidate|^2 a distance from a product has lost too many digits.
constexpr double cancellation = 1.0 / 1024;

// What this many places need stays in cache until it is used.
constexpr int64_t places_at_once = 64;

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

// Places that are compared together, the next ones, which are prefetched, and the distances.
struct Tile {
    int64_t places[tile_points], next[tile_points];
    Lanes sq_dist[tile_points];
};

// Prefetches some features of the places: the hardware cannot predict which rows come next.
template <class V>
POWERMEANS_INLINE void fetch(const DenseRows<V>& rows, const int64_t (&places)[tile_points], int64_t f) {
    for (int64_t place : places) __builtin_prefetch(rows.values.at(place * rows.n_features + f), 0, 2);
}

// Differences of floats are nearly exact. The squares of this many are added up before they are folded into
// float64, so few that the sums are as well.
constexpr int64_t features_at_once = 64;

// Some features of the places of a tile.
template <class V>
struct TileRows {
    const V* at[tile_points];
    V widened[tile_points][features_at_once];

    POWERMEANS_INLINE TileRows(const DenseRows<V>& rows, const Tile& tile, int64_t first, int64_t n) {
        for (int t = 0; t < tile_points; ++t)
            at[t] = entries_at(rows.values, tile.places[t] * rows.n_features + first, n, widened[t]);
    }
};

template <class V>
POWERMEANS_INLINE void tile_in_doubles(const DenseRows<V>& rows, const Panel& panel, Tile& tile) {
    for (Lanes& sq_dist : tile.sq_dist) sq_dist = {};
    const DoubleVector scale = broadcast(rows.scale);
    for (int64_t first = 0; first < rows.n_features; first += features_at_once) {
        const int64_t n = smaller(features_at_once, rows.n_features - first);
        const TileRows<V> row(rows, tile, first, n);
        for (int64_t f = 0; f < n; ++f) {
            if (f % unit_lanes<V> == 0) fetch(rows, tile.next, first + f);
            const Lanes candidates = load_lanes(panel.values + (first + f) * candidates_per_panel);
#pragma GCC unroll 8
            for (int t = 0; t < tile_points; ++t) {
                const DoubleVector x = broadcast(double(row.at[t][f]));
#pragma GCC unroll 4
                for (int v = 0; v < vectors_per_unit; ++v) {
                    // The scale is a power of two: the product is exact, fused or not.
                    const DoubleVector difference = multiply_add(x, scale, candidates.at[v]);
                    tile.sq_dist[t].at[v] = multiply_add(difference, difference, tile.sq_dist[t].at[v]);
                }
            }
        }
    }
}

// A float for each candidate, whatever the machine's vectors are.
typedef float Floats __attribute__((vector_size(candidates_per_panel * sizeof(float))));

POWERMEANS_INLINE Floats add_product(Floats a, Floats b, Floats c) {
#if defined(__FMA__)
    return Floats(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
#elif defined(__ARM_NEON)
    Floats sum;
    for (int lane = 0; lane < candidates_per_panel; ++lane)
        sum[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
    return sum;
#else
    return a * b + c;
#endif
}

POWERMEANS_INLINE void tile_in_floats(const DenseRows<float>& rows, const Panel& panel, Tile& tile) {
    for (Lanes& sq_dist : tile.sq_dist) sq_dist = {};
    const double sq_scale = rows.scale * rows.scale;
    for (int64_t first = 0; first < rows.n_features; first += features_at_once) {
        const int64_t n = smaller(features_at_once, rows.n_features - first);
        const TileRows<float> row(rows, tile, first, n);
        Floats sums[tile_points] = {};
        for (int64_t f = 0; f < n; f += unit_lanes<float>) fetch(rows, tile.next, first + f);
        for (int64_t f = 0; f < n; ++f) {
            Floats candidates;
            __builtin_memcpy(&candidates, panel.floats + (first + f) * candidates_per_panel,
                             sizeof candidates);
#pragma GCC unroll 8
            for (int t = 0; t < tile_points; ++t) {
                const Floats difference = candidates - row.at[t][f];
                sums[t] = add_product(difference, difference, sums[t]);
            }
        }
        for (int t = 0; t < tile_points; ++t) {
            double wide[candidates_per_panel];
            for (int lane = 0; lane < candidates_per_panel; ++lane) wide[lane] = double(sums[t][lane]);
            const Lanes part = load_lanes(wide);
            for (int v = 0; v < vectors_per_unit; ++v)
                tile.sq_dist[t].at[v] = multiply_add(part.at[v], broadcast(sq_scale), tile.sq_dist[t].at[v]);
        }
    }
}

POWERMEANS_INLINE void tile_distances(const DenseRows<double>& rows, const Panel& panel, Tile& tile) {
    tile_in_doubles(rows, panel, tile);
}

POWERMEANS_INLINE void tile_distances(const DenseRows<float>& rows, const Panel& panel, Tile& tile) {
    if (panel.floats)
        tile_in_floats(rows, panel, tile);
    else
        tile_in_doubles(rows, panel, tile);
}

// Returns |x - candidate|^2 from both rows, column by column.
template <class V>
double sq_dist_from_differences(const Csr<V>& rows, int64_t place, int64_t candidate) {
    int64_t i = rows.row_starts[place], j = rows.row_starts[candidate];
    const int64_t i_end = rows.row_starts[place + 1];
    const int64_t j_end = rows.row_starts[candidate + 1];
    double sum = 0;
    while (i < i_end || j < j_end) {
        const bool x_is_next = j == j_end || (i < i_end && rows.columns[i] <= rows.columns[j]);
        const int32_t column = rows.columns[x_is_next ? i : j];
        double difference = 0;
        for (; i < i_end && rows.columns[i] == column; ++i) difference += double(rows.values[i]) * rows.scale;
        for (; j < j_end && rows.columns[j] == column; ++j) difference -= double(rows.values[j]) * rows.scale;
        sum = multiply_add(difference, difference, sum);
    }
    return sum;
}

template <class V>
POWERMEANS_INLINE Lanes sparse_distances(const Csr<V>& rows, const Panel& panel, int64_t place) {
    Lanes products = {};
    double sq_norm = 0;
    for (int64_t e = rows.row_starts[place]; e < rows.row_starts[place + 1]; ++e) {
        const double value = double(rows.values[e]) * rows.scale;
        const Lanes candidates = load_lanes(panel.values + rows.columns[e] * candidates_per_panel);
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
            sq_dist[lane] = sq_dist_from_differences(rows, place, panel.places[lane]);
    return load_lanes(sq_dist);
}

template <class V>
POWERMEANS_INLINE void tile_distances(const Csr<V>& rows, const Panel& panel, Tile& tile) {
    for (int t = 0; t < tile_points; ++t) {
        const bool is_repeated = t && tile.places[t] == tile.places[t - 1];
        tile.sq_dist[t] = is_repeated ? tile.sq_dist[t - 1] : sparse_distances(rows, panel, tile.places[t]);
    }
}

// Calls with_distances(i, lanes) for each of the places in order.
template <class Rows, class Body>
POWERMEANS_INLINE void for_each_place(const Rows& rows, const Panel& panel, const int64_t* places,
                                      int64_t n_places, const Body& with_distances) {
    for (int64_t at = 0; at < n_places; at += tile_points) {
        Tile tile;
        for (int t = 0; t < tile_points; ++t) {
            tile.places[t] = places[smaller(at + t, n_places - 1)];
            tile.next[t] = places[smaller(at + tile_points + t, n_places - 1)];
        }
        tile_distances(rows, panel, tile);
        for (int t = 0; t < tile_points && at + t < n_places; ++t) with_distances(at + t, tile.sq_dist[t]);
    }
}

template <class Rows>
void distances(const Rows& rows, const Panel& panel, const int64_t* places, int64_t n_places,
               double* sq_dist) {
    for_each_place(rows, panel, places, n_places,
                   [&](int64_t i, const Lanes& y) { store_lanes(sq_dist + i * candidates_per_panel, y); });
}

// ---- Sketches -----------------------------------------------------------------------------------

// Returns the products of the codes of a place with those of the panel.
POWERMEANS_INLINE Lanes products_of_codes(const uint8_t* codes, const int8_t* panel, int64_t width) {
    Lanes products;
#if defined(__AVX512F__)
    __m512i sums = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int64_t f = 0; f < width; f += codes_per_step) {
        int64_t bits;
        __builtin_memcpy(&bits, codes + f, codes_per_step);
        const __m512i step = _mm512_loadu_si512(panel + f * candidates_per_panel);
        const __m512i pairs = _mm512_maddubs_epi16(_mm512_set1_epi64(bits), step);
        sums = _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
    }
    sums = _mm512_add_epi32(sums, _mm512_srli_epi64(sums, 32));
    products.at[0] = _mm512_cvtepi32_pd(_mm512_cvtepi64_epi32(sums));
#elif defined(__AVX2__)
    __m256i sums[2] = {};
    for (int64_t f = 0; f < width; f += codes_per_step) {
        int64_t bits;
        __builtin_memcpy(&bits, codes + f, codes_per_step);
        const __m256i* steps = reinterpret_cast<const __m256i*>(panel + f * candidates_per_panel);
        for (int v = 0; v < 2; ++v) {
            const __m256i pairs =
                _mm256_maddubs_epi16(_mm256_set1_epi64x(bits), _mm256_loadu_si256(steps + v));
            sums[v] = _mm256_add_epi32(sums[v], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
        }
    }
    // Adding neighbors leaves the candidates in the order 0 1 4 5 2 3 6 7.
    const __m256i added = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sums[0], sums[1]), 0xd8);
    products.at[0] = _mm256_cvtepi32_pd(_mm256_castsi256_si128(added));
    products.at[1] = _mm256_cvtepi32_pd(_mm256_extracti128_si256(added, 1));
#else
    int32_t sums[candidates_per_panel] = {};
    for (int64_t f = 0; f < width; f += codes_per_step)
        for (int lane = 0; lane < candidates_per_panel; ++lane)
            for (int c = 0; c < codes_per_step; ++c)
                sums[lane] += int32_t(codes[f + c]) *
                              int32_t(panel[f * candidates_per_panel + lane * codes_per_step + c]);
    double wide[candidates_per_panel];
    for (int lane = 0; lane < candidates_per_panel; ++lane) wide[lane] = double(sums[lane]);
    products = load_lanes(wide);
#endif
    return products;
}

// Returns whether a candidate may be nearer than the nearest seed, by the sketches.
POWERMEANS_INLINE bool may_be_nearer(const Sketches& sketches, const PanelSketch& panel, int64_t place,
                                     double nearest) {
    const Lanes products =
        products_of_codes(sketches.codes + place * sketches.width, panel.codes, sketches.width);
    const Lanes steps = load_lanes(panel.steps), errors = load_lanes(panel.errors);
    const Lanes sq_norms = load_lanes(panel.sq_norms), offsets = load_lanes(panel.offsets);
    const double step = sketches.steps[place], reach = __builtin_sqrt(nearest) + sketches.errors[place];
    const double sq_norm = step * step * double(sketches.sq_norms[place]);
    unsigned bits = 0;
    for (int v = 0; v < vectors_per_unit; ++v) {
        const DoubleVector product = steps.at[v] * (products.at[v] - offsets.at[v]);
        const DoubleVector sq_dist = sq_norms.at[v] + sq_norm - (2 * step) * product;
        const DoubleVector bound = errors.at[v] + reach;
        bits |= lanes_above_zero<double>(bound * bound - sq_dist);
    }
    return bits != 0;
}

// Keeps the places that may be nearer to a candidate than to their seed.
template <class V>
int64_t keep_near(const DenseRows<V>& rows, const Panel& panel, const Standings& standings, int64_t* places,
                  int64_t n_places) {
    if (!panel.sketch) return n_places;
    int64_t n_kept = 0;
    for (int64_t i = 0; i < n_places; ++i) {
        const int64_t place = places[i];
        if (!may_be_nearer(rows.sketches, *panel.sketch, place, standings.nearest[place])) continue;
        places[n_kept++] = place;
    }
    return n_kept;
}

template <class V>
int64_t keep_near(const Csr<V>&, const Panel&, const Standings&, int64_t*, int64_t n_places) {
    return n_places;
}

// ---- Comparing and taking -----------------------------------------------------------------------

template <class Rows>
void compare_places(const Rows& rows, const Panel& panel, const Standings& standings, int64_t* places,
                    int64_t n_places, Lanes& sums, uint8_t* nearer) {
    n_places = keep_near(rows, panel, standings, places, n_places);
    for_each_place(rows, panel, places, n_places, [&](int64_t i, const Lanes& sq_dist) {
        const int64_t place = places[i];
        const DoubleVector nearest = broadcast(standings.nearest[place]);
        const DoubleVector weight = broadcast(standings.weight ? standings.weight[place] : 1.0);
        unsigned bits = 0;
        for (int v = 0; v < vectors_per_unit; ++v) {
            const DoubleVector saved = larger(nearest - sq_dist.at[v], DoubleVector{});
            sums.at[v] = multiply_add(saved, weight, sums.at[v]);
            bits |= lanes_above_zero<double>(saved) << (v * lanes<double>);
        }
        nearer[place] = uint8_t(bits);
    });
}

template <class Rows>
int64_t compare(const Rows& rows, const Panel& panel, const Standings& standings, int64_t begin, int64_t end,
                double* gains, uint8_t* nearer) {
    int64_t places[places_per_stripe];
    int64_t n_touched = 0;
    for (int64_t place = begin; place < end; ++place) {
        nearer[place] = 0;
        places[n_touched] = place;
        n_touched += standings.nearest[place] > panel.untouched[standings.seed[place]];
    }
    Lanes sums = {};
    for (int64_t at = 0; at < n_touched; at += places_at_once) {
        const int64_t n_here = smaller(places_at_once, n_touched - at);
        compare_places(rows, panel, standings, places + at, n_here, sums, nearer);
    }
    store_lanes(gains, sums);
    return n_touched;
}

template <class Rows>
void take(const Rows& rows, const Panel& panel, int lane, int32_t seed, const uint8_t* nearer, int64_t begin,
          int64_t end, const Standings& standings) {
    int64_t places[places_per_stripe + 1];  // the last may be written and not count
    const uint64_t lane_of_each = uint64_t{0x0101010101010101} << lane;
    int64_t n_places = 0;
    for (int64_t unit = begin; unit < end; unit += candidates_per_panel) {
        uint64_t bits;
        __builtin_memcpy(&bits, nearer + unit, candidates_per_panel);
        if (!(bits & lane_of_each)) continue;
        for (int64_t place = unit; place < unit + candidates_per_panel; ++place) {
            places[n_places] = place;
            n_places += nearer[place] >> lane & 1;
        }
    }
    for_each_place(rows, panel, places, n_places, [&](int64_t i, const Lanes& y) {
        double sq_dist[candidates_per_panel];
        store_lanes(sq_dist, y);
        standings.nearest[places[i]] = sq_dist[lane];
        standings.seed[places[i]] = seed;
    });
}

template <class Rows>
constexpr SeedKernels<Rows> kernels_for = {distances<Rows>, compare<Rows>, take<Rows>};

}  // namespace

extern const SeedKernelTable POWERMEANS_SEED_TABLE;
const SeedKernelTable POWERMEANS_SEED_TABLE = {
    kernels_for<DenseRows<float>>,
    kernels_for<DenseRows<double>>,
    kernels_for<Csr<float>>,
    kernels_for<Csr<double>>,
};

}  // namespace powermeans
