// Products of the codes of points with those of centers. `CodeLanes` is all that an instruction set needs of
// its own; every one gives the same whole numbers.
#pragma once

#include "kernels/sketches.hpp"
#include "kernels/vectors.hpp"

namespace powermeans {
namespace {

// A vector of panels has `quad_codes` codes of each of its centers. Sums of the two products of a step fit
// 16 bits, because no code of a point is above middle_code + largest_code, which is 127.
constexpr int64_t panel_bytes = sketched_lanes * quad_codes;
constexpr int code_vectors = int(panel_bytes) / vector_bytes;

POWERMEANS_INLINE int32_t quad_at(const uint8_t* codes) {
    int32_t bits;
    __builtin_memcpy(&bits, codes, sizeof bits);
    return bits;
}

#if defined(__AVX512BW__)
struct CodeLanes {
    struct Step {
        __m512i first, second;
        explicit POWERMEANS_INLINE Step(const uint8_t* codes)
            : first(_mm512_set1_epi32(quad_at(codes))),
              second(_mm512_set1_epi32(quad_at(codes + quad_codes))) {}
    };
    __m512i sums = _mm512_setzero_si512();
    POWERMEANS_INLINE void add(const Step& step, const int8_t* panel) {
        const __m512i a = _mm512_loadu_si512(panel), b = _mm512_loadu_si512(panel + panel_bytes);
#if defined(__AVX512VNNI__)
        sums = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(sums, step.first, a), step.second, b);
#else
        const __m512i pairs =
            _mm512_add_epi16(_mm512_maddubs_epi16(step.first, a), _mm512_maddubs_epi16(step.second, b));
        sums = _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
#endif
    }
    POWERMEANS_INLINE void store(int32_t* to) const { _mm512_storeu_si512(to, sums); }
};
#elif defined(__AVX2__)
struct CodeLanes {
    struct Step {
        __m256i first, second;
        explicit POWERMEANS_INLINE Step(const uint8_t* codes)
            : first(_mm256_set1_epi32(quad_at(codes))),
              second(_mm256_set1_epi32(quad_at(codes + quad_codes))) {}
    };
    __m256i sums = _mm256_setzero_si256();
    POWERMEANS_INLINE void add(const Step& step, const int8_t* panel) {
        const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panel));
        const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panel + panel_bytes));
        const __m256i pairs =
            _mm256_add_epi16(_mm256_maddubs_epi16(step.first, a), _mm256_maddubs_epi16(step.second, b));
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
    POWERMEANS_INLINE void store(int32_t* to) const {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sums);
    }
};
#elif defined(__ARM_FEATURE_DOTPROD)
struct CodeLanes {
    struct Step {
        int8x16_t first, second;
        explicit POWERMEANS_INLINE Step(const uint8_t* codes)
            : first(vreinterpretq_s8_s32(vdupq_n_s32(quad_at(codes)))),
              second(vreinterpretq_s8_s32(vdupq_n_s32(quad_at(codes + quad_codes)))) {}
    };
    int32x4_t sums = vdupq_n_s32(0);
    POWERMEANS_INLINE void add(const Step& step, const int8_t* panel) {
        sums = vdotq_s32(sums, step.first, vld1q_s8(panel));
        sums = vdotq_s32(sums, step.second, vld1q_s8(panel + panel_bytes));
    }
    POWERMEANS_INLINE void store(int32_t* to) const { vst1q_s32(to, sums); }
};
#else
struct CodeLanes {
    static constexpr int n_lanes = vector_bytes / int(quad_codes);
    struct Step {
        const uint8_t* codes;
        explicit POWERMEANS_INLINE Step(const uint8_t* from) : codes(from) {}
    };
    int32_t sums[n_lanes] = {};
    POWERMEANS_INLINE void add(const Step& step, const int8_t* panel) {
        for (int lane = 0; lane < n_lanes; ++lane)
            for (int c = 0; c < quad_codes; ++c) {
                const int at = lane * int(quad_codes) + c;
                sums[lane] += int32_t(step.codes[c]) * int32_t(panel[at]) +
                              int32_t(step.codes[quad_codes + c]) * int32_t(panel[panel_bytes + at]);
            }
    }
    POWERMEANS_INLINE void store(int32_t* to) const {
        for (int lane = 0; lane < n_lanes; ++lane) to[lane] = sums[lane];
    }
};
#endif

template <int rows>
POWERMEANS_INLINE void multiply_rows(const uint8_t* const* codes, const int8_t* panel, int64_t width,
                                     int32_t* to, int64_t to_stride) {
    CodeLanes sums[rows][code_vectors];
    for (int64_t f = 0; f < width; f += codes_per_step) {
        const int8_t* step = panel + f * sketched_lanes;
#pragma GCC unroll 8
        for (int row = 0; row < rows; ++row) {
            const CodeLanes::Step of_row(codes[row] + f);
#pragma GCC unroll 4
            for (int v = 0; v < code_vectors; ++v) sums[row][v].add(of_row, step + v * vector_bytes);
        }
    }
    for (int row = 0; row < rows; ++row)
        for (int v = 0; v < code_vectors; ++v)
            sums[row][v].store(to + row * to_stride + v * vector_bytes / int(sizeof(int32_t)));
}

// Writes the products of n rows of codes with all centers, (n, centers.n_padded).
inline void multiply_codes(const uint8_t* const* codes, int64_t n, const CenterSketches& centers,
                           int32_t* to) {
    constexpr int tile_rows = vectors_per_unit == 4 ? 2 : 4;
    for (int64_t unit = 0; unit < centers.n_padded; unit += sketched_lanes) {
        const int8_t* panel = centers.panels + unit * centers.width;
        int64_t row = 0;
        for (; row + tile_rows <= n; row += tile_rows)
            multiply_rows<tile_rows>(codes + row, panel, centers.width, to + row * centers.n_padded + unit,
                                     centers.n_padded);
        for (; row < n; ++row)
            multiply_rows<1>(codes + row, panel, centers.width, to + row * centers.n_padded + unit,
                             centers.n_padded);
    }
}

}  // namespace
}  // namespace powermeans
