#include "pair_distance.hpp"

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

double pair_distance(const double* a, const double* b, int64_t width) {
    Lanes sums[n_vectors] = {};
    for (int64_t f = 0; f < width; f += pair_distance_step)
        for (int v = 0; v < n_vectors; ++v) {
            const Lanes difference = load(a + f + v * lanes) - load(b + f + v * lanes);
            sums[v] += difference * difference;
        }
    double of_lane[pair_distance_step];
    __builtin_memcpy(of_lane, sums, sizeof(of_lane));
    return ((of_lane[0] + of_lane[4]) + (of_lane[2] + of_lane[6])) +
           ((of_lane[1] + of_lane[5]) + (of_lane[3] + of_lane[7]));
}

}  // namespace

extern const PairDistance POWERMEANS_PAIR_DISTANCE;
const PairDistance POWERMEANS_PAIR_DISTANCE = pair_distance;

}  // namespace powermeans
