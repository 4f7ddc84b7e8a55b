#include "line/line.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "dispatch.hpp"
#include "threads/interrupts.hpp"

namespace powermeans {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// ---- Sums in twice the digits -------------------------------------------------------------------

// The unevaluated sum of two numbers, of which the second is less than the last digit of the first.
struct Twofold {
    double high, low;
};

Twofold exact_sum(double a, double b) {
    const double sum = a + b, from_b = sum - a;
    return {sum, (a - (sum - from_b)) + (b - from_b)};
}

Twofold exact_product(double a, double b) {
    const double factor = 0x1p27 + 1;
    const auto upper_half = [factor](double x) {
        const double wide = factor * x;
        return wide - (wide - x);
    };
    const double product = a * b, a_high = upper_half(a), b_high = upper_half(b);
    const double a_low = a - a_high, b_low = b - b_high;
    return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

Twofold operator+(Twofold a, Twofold b) {
    const Twofold high = exact_sum(a.high, b.high), low = exact_sum(a.low, b.low);
    const Twofold sum = exact_sum(high.high, high.low + low.high);
    return exact_sum(sum.high, sum.low + low.low);
}

Twofold operator-(Twofold a, Twofold b) { return a + Twofold{-b.high, -b.low}; }

Twofold operator*(Twofold a, Twofold b) {
    const Twofold product = exact_product(a.high, b.high);
    return exact_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

Twofold operator/(Twofold a, Twofold b) {
    const double first = a.high / b.high;
    const Twofold left = a - Twofold{first, 0} * b;
    return exact_sum(first, left.high / b.high);
}

// ---- The cost of a run --------------------------------------------------------------------------

// Sums over the values between the median and a place, negative to the left of the median. So what is summed up
// between two places holds no larger values than these.
struct Sums {
    // Each is (n_values + 1,), and padded.
    std::vector<double> weights, weights_low, firsts, firsts_low, seconds, seconds_low;

    explicit Sums(const LineRequest& request) {
        const int64_t n = request.n_values, middle = n / 2;
        for (std::vector<double>* each :
             {&weights, &weights_low, &firsts, &firsts_low, &seconds, &seconds_low})
            each->resize(std::size_t(n + 1 + line_padding));
        const auto put = [&](int64_t i, int64_t from, int64_t at, double sign) {
            const Twofold x = exact_sum(request.values[at], -request.values[middle]);
            const Twofold weight{sign * request.weights[at], 0}, first = weight * x;
            put_sum(weights, weights_low, i, from, weight);
            put_sum(firsts, firsts_low, i, from, first);
            put_sum(seconds, seconds_low, i, from, first * x);
        };
        for (int64_t i = middle; i < n; ++i) put(i + 1, i, i, 1);
        for (int64_t i = middle; i-- > 0;) put(i, i + 1, i, -1);
    }

    LineSums pointers() const {
        return {weights.data(),    weights_low.data(), firsts.data(),
                firsts_low.data(), seconds.data(),     seconds_low.data()};
    }

    // The sum of squares of all values about the median.
    double all() const { return seconds[seconds.size() - 1 - line_padding] - seconds[0]; }

  private:
    using Numbers = std::vector<double>;

    static void put_sum(Numbers& high, Numbers& low, int64_t to, int64_t from, Twofold term) {
        const Twofold sum = Twofold{high[std::size_t(from)], low[std::size_t(from)]} + term;
        high[std::size_t(to)] = sum.high, low[std::size_t(to)] = sum.low;
    }
};

// What is left of a second moment loses as many digits as the run is narrower than it is far from the median.
struct Fast {
    static int64_t best_beginning(const LineSums& sums, const double* costs, int64_t first, int64_t last,
                                  int64_t j, double* best_cost) {
        if (last - first > 1)
            return chosen_instruction_set().line_kernels->best_beginning(sums, costs, first, last, j,
                                                                         best_cost);
        const double of_first = costs[first] + cost(sums, first, j),
                     of_last = costs[last] + cost(sums, last, j);
        *best_cost = std::min(of_first, of_last);
        return of_first <= of_last ? first : last;
    }

    // In the order of the kernels, to the last bit.
    static double cost(const LineSums& sums, int64_t i, int64_t j) {
        const auto from = [i, j](const double* high, const double* low) {
            return (high[j] - high[i]) + (low[j] - low[i]);
        };
        const double first = from(sums.firsts, sums.firsts_low);
        const double about = first * first / from(sums.weights, sums.weights_low);
        const double run = from(sums.seconds, sums.seconds_low) - about;
        return run > 0 && j - i != 1 ? run : 0.0;
    }
};

// In twice the digits; it need not look at runs that cost more than the best by themselves.
struct Careful {
    static int64_t best_beginning(const LineSums& sums, const double* costs, int64_t first, int64_t last,
                                  int64_t j, double* best_cost) {
        int64_t best = last;
        *best_cost = infinite;
        for (int64_t i = last; i >= first; --i) {
            const double last_run = cost(sums, i, j), sum = costs[i] + last_run;
            if (last_run > *best_cost) break;
            if (sum <= *best_cost) *best_cost = sum, best = i;
        }
        return best;
    }

    static double cost(const LineSums& sums, int64_t i, int64_t j) {
        if (j - i == 1) return 0;
        const auto from = [i, j](const double* high, const double* low) {
            return Twofold{high[j], low[j]} - Twofold{high[i], low[i]};
        };
        const Twofold first = from(sums.firsts, sums.firsts_low);
        const Twofold about = first * first / from(sums.weights, sums.weights_low);
        return std::max(0.0, (from(sums.seconds, sums.seconds_low) - about).high);
    }
};

// ---- The runs -----------------------------------------------------------------------------------

// Layer m has for each place j the least cost of the values before j in m runs, and where the last of these
// begins. By one more run it begins no earlier, nor where j is later (the costs of runs are Monge): so a layer is
// filled by halves, each of which leaves fewer beginnings to try.
template <class Arithmetic>
class Divisions {
  public:
    Divisions(const LineRequest& request, const LineSums& sums, Team& team)
        : request_(request),
          sums_(sums),
          team_(team),
          n_(request.n_values),
          in_block_(request.most_runs * n_ <= most_kept ? request.most_runs : root(request.most_runs)) {}

    void run() {
        for (int64_t first = 1; first <= request_.most_runs; first += in_block_) {
            begin_block(first);
            for (int64_t m = first; m < end_of(first); ++m) {
                add_layer(m, n_);
                request_.costs[m - 1] = costs_[std::size_t(n_)];
            }
        }
        trace();
    }

  private:
    using Places = std::vector<int32_t>;

    // Beginnings of runs that are kept at once, in 256 MB. With more, layers are filled a second time.
    static constexpr int64_t most_kept = int64_t(1) << 26;

    static int64_t root(int64_t n) { return int64_t(std::ceil(std::sqrt(double(n)))); }

    int64_t end_of(int64_t first) const { return std::min(first + in_block_, request_.most_runs + 1); }

    // Blocks of layers are filled from the first to the last, and then traced back in turn.
    void begin_block(int64_t first) {
        begun_.resize(std::size_t((first - 1) / in_block_));
        begun_.push_back(costs_);
        beginnings_.clear();
    }

    void add_layer(int64_t m, int64_t end) {
        check_interrupt();
        const int32_t* earliest = beginnings_.empty() ? nullptr : beginnings_.back().data();
        Places beginnings(std::size_t(n_ + 1));
        fewer_.swap(costs_);
        if (m == 1) {  // of no values in no runs
            fewer_.assign(std::size_t(n_ + 1 + line_padding), infinite);
            fewer_[0] = 0;
        }
        costs_.assign(fewer_.size(), infinite);
        const Layer layer{earliest, beginnings.data()};
        std::vector<Stretch> stretches{{m, end, m - 1, m == 1 ? 0 : end - 1}};
        while (int64_t(stretches.size()) < n_stretches && (end - m) / n_stretches > least_in_stretch) {
            std::vector<Stretch> halves;
            for (const Stretch& stretch : stretches)
                halve(stretch, layer, [&](Stretch half) { halves.push_back(half); });
            stretches.swap(halves);
        }
        team_.run(int64_t(stretches.size()), team_.n_threads(),
                  [&](int, int64_t s) { fill(stretches[std::size_t(s)], layer); });
        beginnings_.push_back(std::move(beginnings));
    }

    struct Layer {
        const int32_t* earliest;  // beginnings by one run less, or null
        int32_t* beginnings;
    };

    // Places from `first` to `last`, whose last run begins between `lowest` and `highest`.
    struct Stretch {
        int64_t first, last, lowest, highest;
    };

    // Stretches that threads fill at the same time; shorter ones are not worth it.
    static constexpr int64_t n_stretches = 32, least_in_stretch = 256;

    void fill(const Stretch& stretch, const Layer& layer) {
        halve(stretch, layer, [&](const Stretch& half) { fill(half, layer); });
    }

    // Fills the place in the middle, and calls `each` with what is left on either side.
    template <class Each>
    void halve(const Stretch& stretch, const Layer& layer, const Each& each) {
        const auto [first, last, lowest, highest] = stretch;
        if (first > last) return;
        const int64_t j = first + (last - first) / 2, latest = std::min(highest, j - 1);
        // Rounding may put the earliest after the latest.
        const int64_t earliest = layer.earliest ? std::max(lowest, int64_t(layer.earliest[j])) : lowest;
        const int64_t best = Arithmetic::best_beginning(sums_, fewer_.data(), std::min(latest, earliest),
                                                        latest, j, &costs_[std::size_t(j)]);
        layer.beginnings[j] = int32_t(best);
        each({first, j - 1, lowest, best});
        each({j + 1, last, best, highest});
    }

    // Goes back from the end of each division to where its runs begin.
    void trace() {
        const int64_t least = request_.least_runs, most = request_.most_runs;
        std::vector<int64_t> ends(std::size_t(most + 1), n_);
        for (int64_t first = 1 + (most - 1) / in_block_ * in_block_; first >= 1; first -= in_block_) {
            if (end_of(first) <= most) refill(first, ends);
            for (int64_t m = end_of(first) - 1; m >= first; --m)
                for (int64_t k = std::max(m, least); k <= most; ++k) {
                    int64_t& end = ends[std::size_t(k)];
                    end = beginnings_[std::size_t(m - first)][std::size_t(end)];
                    request_.starts[(k * (k - 1) - least * (least - 1)) / 2 + m - 1] = end;
                }
        }
    }

    void refill(int64_t first, const std::vector<int64_t>& ends) {
        costs_ = begun_[std::size_t((first - 1) / in_block_)];
        const int64_t farthest =
            *std::max_element(ends.begin() + std::max(first, request_.least_runs), ends.end());
        beginnings_.clear();
        for (int64_t m = first; m < end_of(first); ++m) add_layer(m, farthest);
    }

    const LineRequest& request_;
    const LineSums sums_;
    Team& team_;
    int64_t n_, in_block_;
    std::vector<double> costs_, fewer_;       // of the layer, and with one run less
    std::vector<std::vector<double>> begun_;  // costs before the first layer of each block
    std::vector<Places> beginnings_;          // of each layer of the block
};

}  // namespace

void divide_line(const LineRequest& request, Team& team) {
    const Sums sums(request);
    Divisions<Fast>(request, sums.pointers(), team).run();
    const double rounding = 16 * std::numeric_limits<double>::epsilon() * sums.all();
    if (request.costs[request.most_runs - 1] < 1e8 * rounding)
        Divisions<Careful>(request, sums.pointers(), team).run();
}

}  // namespace powermeans
