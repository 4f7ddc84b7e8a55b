#include "kernels/pair_distance.hpp"

namespace powermeans {
namespace {

#if defined(__AVX512F__)
constexpr int lanes = 8;
#elif defined(__AVX__)
constexpr int lanes = 4;
#else
constexpr int lanes = 2;
#endif
constexpr int n_vectors = pair_distance_step / lanes;
typedef double Lanes __attribute__((vector_size(lanes * sizeof(double))));

Lanes load(const double* from) {
    Lanes loaded;
    __builtin_memcpy(&loaded, from, sizeof(loaded));
    return loaded;
}

double added(const Lanes (&sums)[n_vectors]) {
    double of_lane[pair_distance_step];
    __builtin_memcpy(of_lane, sums, sizeof(of_lane));
    return ((of_lane[0] + of_lane[4]) + (of_lane[2] + of_lane[6])) +
           ((of_lane[1] + of_lane[5]) + (of_lane[3] + of_lane[7]));
}

double pair_distance(const double* a, const double* b, int64_t width) {
    Lanes sums[n_vectors] = {};
    for (int64_t f = 0; f < width; f += pair_distance_step)
        for (int v = 0; v < n_vectors; ++v) {
            const Lanes difference = load(a + f + v * lanes) - load(b + f + v * lanes);
            sums[v] += difference * difference;
        }
    return added(sums);
}

// ---- Costs of a point that joins or leaves ------------------------------------------------------

typedef int64_t Whole __attribute__((vector_size(lanes * sizeof(int64_t))));
constexpr int64_t mantissa_bits = 52, bits_of_sqrt_half = 0x3fe6a09e667f3bcd;
constexpr double smallest_normal = 0x1p-1022, to_integer = 0x1.8p52, log_2 = 0x1.62e42fefa39efp-1;

// 2 atanh(s) / s - 2, for |s| below 0.18; the coefficients are printed by fit_polynomials.py.
Lanes atanh_tail(Lanes s) {
    const Lanes t = s * s, t_2 = t * t;
    const Lanes low = (0x1.5555555555558p-1 + 0x1.99999999949c3p-2 * t) +
                      t_2 * (0x1.2492492ef134dp-2 + 0x1.c71c61a265960p-3 * t);
    const Lanes high =
        (0x1.74630fb47b087p-3 + 0x1.39f2ac8e848c3p-3 * t) + t_2 * (t * 0 + 0x1.2be78035f90e7p-3);
    return t * (low + t_2 * t_2 * high);
}

// y - log(1 + y), or (1 + y) log(1 + y) - y. Where 1 + y is near one neither is a difference of larger numbers.
template <bool times_ratio>
Lanes log_gap(Lanes y, Lanes one_more) {
    const Lanes at_least = y * 0 + smallest_normal;
    const Lanes ratio = one_more > at_least ? one_more : at_least;
    const Whole bits = Whole(ratio), exponent = (bits - bits_of_sqrt_half) >> mantissa_bits;
    const Lanes mantissa = Lanes(bits - (exponent << mantissa_bits));
    const Whole is_near = exponent == 0;
    const Lanes s = (is_near ? y : mantissa - 1) / (is_near ? y + 2 : mantissa + 1);
    const Lanes tail = atanh_tail(s), near_gap = s * (y - tail);
    const Whole shifted = exponent + int64_t(0x4338000000000000);
    const Lanes log = (Lanes(shifted) - to_integer) * log_2 + s * (2 + tail);
    if constexpr (times_ratio) return is_near ? y * y - ratio * near_gap : ratio * log - y;
    return is_near ? near_gap : y - log;
}

// A point x, the mean with it and that without it, in one feature, or in some; y is (x - with) / with.
struct Feature {
    Lanes x, with, before, y;
    double share, back;

    // Where it leaves, rounding takes digits of what is left: at most this is left.
    Lanes without() const { return share > 0 ? before : with - back * (x - with) + 0x1p-50 * with; }
};

struct XLogX {
    static Lanes cost(const Feature& f) {
        Lanes terms = log_gap<true>(f.y, f.y + 1);
        if (f.back > 0) terms += log_gap<true>(-f.back * f.y, 1 - f.back * f.y) / f.back;
        return f.with * terms;
    }
};

struct MinusLog {
    static Lanes cost(const Feature& f) {
        // Of a small ratio 1 + y has few digits, and the logarithm takes it by itself.
        Lanes terms = log_gap<false>(f.y, f.x / f.with);
        if (f.back > 0) terms += log_gap<false>(-f.back * f.y, 1 - f.back * f.y) / f.back;
        return terms;
    }
};

struct Inverse {
    static Lanes cost(const Feature& f) {
        const Lanes square = f.y * f.y, own = square / f.x;
        return f.back > 0 ? own + f.back * square / f.without() : own;
    }
};

struct Square {
    static Lanes cost(const Feature& f) {
        const Lanes difference = f.x - f.with;
        return difference * difference * (1 + f.back);
    }
};

template <class Term>
double cost(const double* point, const double* mean, int64_t width, double share, double back, double limit) {
    Lanes sums[n_vectors] = {};
    for (int64_t f = 0; f < width; f += pair_distance_step) {
        for (int v = 0; v < n_vectors; ++v) {
            const Lanes x = load(point + f + v * lanes), before = load(mean + f + v * lanes);
            const Lanes m = before + share * (x - before);
            sums[v] += m > m * 0 ? Term::cost({x, m, before, (x - m) / m, share, back}) : m * 0;
        }
        if (added(sums) >= limit) break;
    }
    return added(sums);
}

}  // namespace

extern const PairKernels POWERMEANS_PAIR_DISTANCE;
const PairKernels POWERMEANS_PAIR_DISTANCE = {pair_distance, cost<XLogX>, cost<MinusLog>, cost<Inverse>,
                                              cost<Square>};

}  // namespace powermeans
