#include "line/line.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "threads/interrupts.hpp"

namespace powermeans {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double least_price = std::numeric_limits<double>::min();

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
    struct Before {
        Twofold weight, first, second;  // moments
    };

    explicit Sums(const LineRequest& request) : before(std::size_t(request.n_values + 1)) {
        const int64_t n = request.n_values, middle = n / 2;
        const auto put = [&](int64_t i, int64_t from, int64_t at, double sign) {
            const Twofold x = exact_sum(request.values[at], -request.values[middle]);
            const Twofold weight{sign * request.weights[at], 0}, first = weight * x;
            const Before& sums = before[std::size_t(from)];
            before[std::size_t(i)] = {sums.weight + weight, sums.first + first, sums.second + first * x};
        };
        for (int64_t i = middle; i < n; ++i) put(i + 1, i, i, 1);
        for (int64_t i = middle; i-- > 0;) put(i, i + 1, i, -1);
    }

    // The sum of squares of all values about the median.
    double all() const { return before.back().second.high - before.front().second.high; }

    std::vector<Before> before;  // (n_values + 1,)
};

// What is left of a second moment loses as many digits as the run is narrower than it is far from the median.
struct Fast {
    static double cost(const Sums::Before& begin, const Sums::Before& end) {
        const auto from = [](Twofold first, Twofold last) {
            return (last.high - first.high) + (last.low - first.low);
        };
        const double first = from(begin.first, end.first);
        return from(begin.second, end.second) - first * first / from(begin.weight, end.weight);
    }
};

// In twice the digits.
struct Careful {
    static double cost(const Sums::Before& begin, const Sums::Before& end) {
        const Twofold first = end.first - begin.first;
        return (end.second - begin.second - first * first / (end.weight - begin.weight)).high;
    }
};

// ---- The runs -----------------------------------------------------------------------------------

using Places = std::vector<int32_t>;

struct Division {
    double price = 0, cost = 0;   // of each run besides its cost; of all runs without it
    std::vector<int64_t> starts;  // of the runs, none if there is no division

    int64_t n_runs() const { return int64_t(starts.size()); }
    double with_prices(double each) const { return cost + each * double(n_runs()); }
};

// Finds the division that costs least, at a price for each run: the higher, the fewer runs. The costs of runs are
// Monge: of two beginnings, the later one is better from some place on.
template <class Arithmetic>
class Divider {
  public:
    // Runs may begin at these places, of which the last is the end of all values.
    Divider(const Sums& sums, Places places)
        : sums_(sums), places_(std::move(places)), costs_(places_.size()), begins_(places_.size()) {}

    // Where rounding hides what more runs would save, they begin at any places.
    Division completed(Division found, int64_t n_runs) const {
        std::vector<int64_t> others;
        std::set_difference(places_.begin(), places_.end() - 1, found.starts.begin(), found.starts.end(),
                            std::back_inserter(others));
        found.starts.insert(found.starts.end(), others.begin(), others.begin() + (n_runs - found.n_runs()));
        std::sort(found.starts.begin(), found.starts.end());
        return found;
    }

    Division divide(double price) {
        price_ = price;
        beginnings_.assign(1, {0, 1});
        next_ = 0;
        for (int64_t j = 1; j <= last(); ++j) {
            if (j % 65536 == 0) check_interrupt();
            if (next_ + 1 < beginnings_.size() && beginnings_[next_ + 1].from <= j) ++next_;
            const int64_t i = beginnings_[next_].place;
            costs_[std::size_t(j)] = cost(i, j);
            begins_[std::size_t(j)] = int32_t(i);
            add(j);
        }
        return traced();
    }

  private:
    // A place to begin a run, the best one for runs that end at `from` or later, before the next one takes over.
    struct Beginning {
        int64_t place, from;
    };

    int64_t last() const { return int64_t(places_.size()) - 1; }

    double run(int64_t i, int64_t j) const {
        const int32_t first = places_[std::size_t(i)], end = places_[std::size_t(j)];
        if (end - first == 1) return 0;
        return std::max(0.0,
                        Arithmetic::cost(sums_.before[std::size_t(first)], sums_.before[std::size_t(end)]));
    }

    // Of the best division of the values before j whose last run begins at i.
    double cost(int64_t i, int64_t j) const { return costs_[std::size_t(i)] + price_ + run(i, j); }

    void add(int64_t place) {
        int64_t end = last() + 1;
        while (beginnings_.size() > next_) {
            const auto [former, since] = beginnings_.back();
            const int64_t from = std::max(since, place + 1);
            if (from >= end) break;
            const auto is_better = [&, former = former](int64_t j) {
                return cost(place, j) <= cost(former, j);
            };
            if (!is_better(from)) {
                end = first_after(from, end, is_better);
                break;
            }
            end = from;
            beginnings_.pop_back();
        }
        if (end <= last()) beginnings_.push_back({place, end});
    }

    // Returns the first place after `low` and before `high` where it holds, `high` if it does nowhere. It is near.
    template <class Holds>
    static int64_t first_after(int64_t low, int64_t high, const Holds& holds) {
        for (int64_t reach = 1; low + reach < high; reach *= 2) {
            if (holds(low + reach)) {
                high = low + reach;
                break;
            }
            low += reach;
        }
        while (high - low > 1) {
            const int64_t middle = low + (high - low) / 2;
            (holds(middle) ? high : low) = middle;
        }
        return high;
    }

    Division traced() const {
        Division found;
        found.price = price_;
        for (int64_t j = last(); j > 0;) {
            const int64_t i = begins_[std::size_t(j)];
            found.cost += run(i, j);
            found.starts.push_back(places_[std::size_t(i)]);
            j = i;
        }
        std::reverse(found.starts.begin(), found.starts.end());
        return found;
    }

    const Sums& sums_;
    const Places places_;
    double price_ = 0;
    std::vector<double> costs_;  // before each place, with prices
    std::vector<int32_t> begins_;
    std::vector<Beginning> beginnings_;
    std::size_t next_ = 0;
};

// Two divisions are best at the same price, one with too few runs and one with too many. Where a run of the first
// holds one of the second, both can change to the other, and are as good as before: costs are Monge.
Division between(const Division& fewer, const Division& more, int64_t n_runs) {
    const int64_t shift = n_runs - fewer.n_runs();
    int64_t i = 1;
    while (i < fewer.n_runs() && fewer.starts[std::size_t(i)] < more.starts[std::size_t(i + shift)]) ++i;
    Division found = more;
    found.starts.resize(std::size_t(i + shift));
    found.starts.insert(found.starts.end(), fewer.starts.begin() + i, fewer.starts.end());
    return found;
}

// Returns a price to try between those of too few runs and too many: where it would be if the number were a power
// of it, where both divisions are as good, or in the middle.
double price_between(const Division& fewer, const Division& more, int64_t n_runs, int trial) {
    const double lowest = std::max(more.price, least_price);
    double share = 0.5;
    if (trial % 3 == 0) return (fewer.cost - more.cost) / double(more.n_runs() - fewer.n_runs());
    if (trial % 3 == 1)
        share = std::log(double(more.n_runs()) / double(n_runs)) /
                std::log(double(more.n_runs()) / double(fewer.n_runs()));
    return lowest * std::pow(fewer.price / lowest, share);
}

// The least cost of a number of runs is convex: so one price gives the number wanted, or two others around it.
template <class Arithmetic>
Division with_runs(int64_t n_runs, Divider<Arithmetic> divider, double price) {
    Division fewer, more;
    fewer.price = infinite;
    for (int trial = 0;; ++trial) {
        Division found = divider.divide(price);
        if (found.n_runs() == n_runs) {
            const double middle = 2 * found.cost / double(n_runs);
            if (more.price < middle && middle < fewer.price) found.price = middle;
            return found;
        }
        if (found.n_runs() < n_runs && price <= least_price) return divider.completed(found, n_runs);
        const bool is_between = fewer.n_runs() > 0 && more.n_runs() > 0;
        const double known = std::max(fewer.with_prices(price), more.with_prices(price));
        if (is_between && (found.with_prices(price) >= known * (1 - 1e-14) || trial > 300))
            return between(fewer, more, n_runs);
        const double share = double(found.n_runs()) / double(n_runs);
        (found.n_runs() < n_runs ? fewer : more) = std::move(found);
        if (fewer.n_runs() > 0 && more.n_runs() > 0)
            price = price_between(fewer, more, n_runs, trial);
        else  // ever farther: at no price there are as many runs as values
            price *= std::pow(share, 3) * std::pow(1.3, share > 1 ? 1 + trial : -1 - trial);
        price = std::max(price, least_price);
    }
}

Places all_places(int64_t n_values) {
    Places places(std::size_t(n_values + 1));
    std::iota(places.begin(), places.end(), 0);
    return places;
}

// Places about as many to each run of the best division, whose runs are the longer the third root of the density
// says (Panter and Dite 1951).
Places some_places(const LineRequest& request, int64_t n_places) {
    std::vector<double> before(std::size_t(request.n_values + 1));
    for (int64_t i = 1; i < request.n_values; ++i) {
        const double gap = request.values[i] - request.values[i - 1];
        before[std::size_t(i)] = before[std::size_t(i - 1)] + std::cbrt(gap * gap * request.weights[i]);
    }
    Places places{0};
    const double each = before[std::size_t(request.n_values - 1)] / double(n_places);
    double next = each;
    for (int64_t i = 1; i < request.n_values; ++i)
        if (before[std::size_t(i)] >= next) {
            places.push_back(int32_t(i));
            next = before[std::size_t(i)] + each;
        }
    places.push_back(int32_t(request.n_values));
    return places;
}

}  // namespace

void divide_line(const LineRequest& request) {
    const Sums sums(request);
    const int64_t n_runs = request.n_runs, n_places = 32 * n_runs + 1024;
    double price = 2 * sums.all() / std::pow(double(n_runs), 3);  // of values spread evenly
    if (n_places < request.n_values / 8) {
        const Places places = some_places(request, n_places);
        if (int64_t(places.size()) > 2 * n_runs)  // not where most values are close to each other
            price = with_runs(n_runs, Divider<Fast>(sums, places), price).price;
    }
    Division found = with_runs(n_runs, Divider<Fast>(sums, all_places(request.n_values)), price);
    const double rounding = 16 * std::numeric_limits<double>::epsilon() * sums.all();
    if (found.cost < 1e8 * rounding)
        found = with_runs(n_runs, Divider<Careful>(sums, all_places(request.n_values)), found.price);
    std::copy(found.starts.begin(), found.starts.end(), request.starts);
}

}  // namespace powermeans
