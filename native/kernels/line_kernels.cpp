// The best beginning of a run, a beginning in each lane. This file is compiled once for each instruction set;
// POWERMEANS_LINE_TABLE names the table that it defines.
#include "kernels/line_kernels.hpp"

#include "kernels/vectors.hpp"

namespace powermeans {
namespace {

constexpr double infinite = __builtin_huge_val();

struct To {
    DoubleVector high, low;

    POWERMEANS_INLINE DoubleVector from(const double* highs, const double* lows) const {
        return (high - load(highs)) + (low - load(lows));
    }
};

int64_t best_beginning(const LineSums& sums, const double* costs, int64_t first, int64_t last, int64_t j,
                       double* best_cost) {
    const To weight{broadcast(sums.weights[j]), broadcast(sums.weights_low[j])};
    const To moment{broadcast(sums.firsts[j]), broadcast(sums.firsts_low[j])};
    const To square{broadcast(sums.seconds[j]), broadcast(sums.seconds_low[j])};
    const DoubleVector none = broadcast(0.0), never = broadcast(infinite);
    Bits<double> beginning, best{};
    for (int lane = 0; lane < lanes<double>; ++lane) beginning[lane] = first + lane;
    DoubleVector least = never;
    for (int64_t i = first; i <= last; i += lanes<double>, beginning += lanes<double>) {
        const DoubleVector w = weight.from(sums.weights + i, sums.weights_low + i);
        const DoubleVector m = moment.from(sums.firsts + i, sums.firsts_low + i);
        const DoubleVector run = square.from(sums.seconds + i, sums.seconds_low + i) - m * m / w;
        // A run of one value costs nothing, without rounding.
        const DoubleVector cost = run > none && beginning != j - 1 ? run : none;
        const DoubleVector sum = beginning < j ? load(costs + i) + cost : never;
        best = sum < least ? beginning : best;
        least = sum < least ? sum : least;
    }
    int best_lane = 0;
    for (int lane = 1; lane < lanes<double>; ++lane)
        if (least[lane] < least[best_lane] ||
            (least[lane] == least[best_lane] && best[lane] < best[best_lane]))
            best_lane = lane;
    *best_cost = least[best_lane];
    return best[best_lane];
}

}  // namespace

extern const LineKernels POWERMEANS_LINE_TABLE;
const LineKernels POWERMEANS_LINE_TABLE = {best_beginning};

}  // namespace powermeans
