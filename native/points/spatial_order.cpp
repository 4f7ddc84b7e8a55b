#include "points/spatial_order.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/rounding.hpp"
#include "kernels/sweep_kernels.hpp"

namespace powermeans {
namespace {

// Points are sorted a million at a time: more would take more memory, and make groups hardly smaller.
constexpr int64_t points_sorted_together = int64_t{1} << 20;
constexpr int64_t points_per_stripe = int64_t{1} << 15;
// A tree over some of the points leads to leaves of about so many, which one thread splits into groups.
constexpr int64_t points_per_leaf = 8 * points_per_group;
constexpr int64_t sampled_per_leaf = 8;
constexpr int64_t leaves_per_stripe = 32;
constexpr int most_levels = 12;
// If leaves hold more of the squared spread than this, their groups are near most centers.
constexpr double most_spread_left = 0.18;

// Selects among distinct values. std::nth_element would do, but it branches at every comparison, and every other
// guess about those is wrong.
class Selection {
  public:
    // Brings the n_left least of the values to the front, and the least of the others behind them.
    void select(uint64_t* values, int64_t n, int64_t n_left) {
        state_ = 0;
        while (n > few) {
            const int64_t n_low = part(values, n);
            if (n_left < n_low) {
                n = n_low;
            } else {
                values += n_low;
                n -= n_low;
                n_left -= n_low;
            }
        }
        std::sort(values, values + n);
    }

  private:
    static constexpr int64_t few = 6;

    // Returns how many values are in the lower part, which has neither none nor all of them.
    int64_t part(uint64_t* values, int64_t n) {
        const uint64_t pivot = pivot_among(values, n);
        parted_.resize(std::size_t(n));
        uint64_t *low = parted_.data(), *high = low + n - 1;
        for (int64_t i = 0; i < n; ++i) {
            // One of both places is the right one; the other is written over.
            *low = *high = values[i];
            const bool is_low = values[i] <= pivot;
            low += is_low;
            high -= !is_low;
        }
        std::copy_n(parted_.begin(), n, values);
        return low - parted_.data();
    }

    // Returns the median of three at random places, which is never the largest value.
    uint64_t pivot_among(const uint64_t* values, int64_t n) {
        const uint64_t third = uint64_t(n / 3);
        const auto in_third = [&](uint64_t which) {
            state_ = state_ * 6364136223846793005u + 1442695040888963407u;
            return values[which * third + ((state_ >> 32) * third >> 32)];
        };
        const uint64_t a = in_third(0), b = in_third(1), c = in_third(2);
        return std::max(std::min(a, b), std::min(std::max(a, b), c));
    }

    std::vector<uint64_t> parted_;
    uint64_t state_ = 0;
};

template <class V>
struct Branch {
    V threshold;  // the least of the right side
    int32_t feature;
};

// Some points, copied, which are halved again and again at the median of the feature in which their box is
// longest. A half gets its part of the box, though its points may fill less: that saves looking at them again.
template <class V>
class Halving {
  public:
    explicit Halving(int64_t n_features)
        : d_(n_features), low_(std::size_t(n_features)), high_(std::size_t(n_features)) {}

    void copy(const Entries<V>& values, const int32_t* points, int64_t n) {
        rows_.resize(std::size_t(n * d_));
        order_.resize(std::size_t(n));
        keyed_.resize(std::size_t(n));
        std::iota(order_.begin(), order_.end(), 0);
        for (int64_t i = 0; i < n; ++i)
            for_each_entry(values, points[i] * d_, d_,
                           [&](int64_t f, V value) { rows_[std::size_t(i * d_ + f)] = value; });
        for (int64_t f = 0; f < d_; ++f) {
            V low = rows_[std::size_t(f)], high = low;
            for (int64_t i = 1; i < n; ++i) {
                low = std::min(low, rows_[std::size_t(i * d_ + f)]);
                high = std::max(high, rows_[std::size_t(i * d_ + f)]);
            }
            low_[std::size_t(f)] = double(low) / 2;
            high_[std::size_t(f)] = double(high) / 2;
        }
    }

    // Fills in the branches below `root`, where those of a branch b are 2 b + 1 and 2 b + 2.
    void grow(std::vector<Branch<V>>& branches, std::size_t root, int64_t begin, int64_t end) {
        if (root >= branches.size()) return;
        const int64_t middle = begin + (end - begin) / 2;
        branches[root] = split(
            begin, middle, end, [&] { grow(branches, 2 * root + 1, begin, middle); },
            [&] { grow(branches, 2 * root + 2, middle, end); });
    }

    // Orders the points so that groups are compact; the last need not be whole.
    void split_into_groups(const Entries<V>& values, int32_t* points, int64_t n) {
        if (n <= points_per_group) return;
        copy(values, points, n);
        split_down(0, n);
        points_.assign(points, points + n);
        for (int64_t i = 0; i < n; ++i) points[i] = points_[std::size_t(order_[std::size_t(i)])];
    }

    // Adds squared deviations from the mean of these rows.
    double sq_spread(int64_t begin, int64_t end, double scale) const {
        double total = 0;
        for (int64_t f = 0; f < d_; ++f) {
            double mean = 0;
            for (int64_t i = begin; i < end; ++i) mean += at(i, f) * scale / double(end - begin);
            for (int64_t i = begin; i < end; ++i) {
                const double deviation = at(i, f) * scale - mean;
                total += deviation * deviation;
            }
        }
        return total;
    }

  private:
    void split_down(int64_t begin, int64_t end) {
        if (end - begin <= points_per_group) return;
        const int64_t middle = begin + divide_up(end - begin, points_per_group) / 2 * points_per_group;
        split(begin, middle, end, [&] { split_down(begin, middle); }, [&] { split_down(middle, end); });
    }

    double at(int64_t i, int64_t f) const {
        return double(rows_[std::size_t(order_[std::size_t(i)] * d_ + f)]);
    }

    // Splits the rows, and calls both functions while the box is that of one half.
    template <class AtLow, class AtHigh>
    Branch<V> split(int64_t begin, int64_t middle, int64_t end, const AtLow& at_low, const AtHigh& at_high) {
        std::size_t f = 0;
        for (std::size_t other = 1; other < low_.size(); ++other)
            if (high_[other] - low_[other] > high_[f] - low_[f]) f = other;
        const double low = low_[f], high = high_[f];
        sort_apart(int64_t(f), begin, middle, end);
        const V threshold = rows_[std::size_t(order_[std::size_t(middle)] * d_) + f];
        high_[f] = double(threshold) / 2;
        at_low();
        low_[f] = std::exchange(high_[f], high);
        at_high();
        low_[f] = low;
        return {threshold, int32_t(f)};
    }

    // Brings the rows that are least in a feature to the front.
    void sort_apart(int64_t feature, int64_t begin, int64_t middle, int64_t end) {
        constexpr double most = double(UINT32_MAX);
        const double low = low_[std::size_t(feature)], width = high_[std::size_t(feature)] - low;
        const double steps = width > 0 ? std::min(most / width, std::numeric_limits<double>::max()) : 0;
        int32_t* const rows = order_.data() + begin;
        for (int64_t i = 0; i < end - begin; ++i) {
            const double x = double(rows_[std::size_t(rows[i] * d_ + feature)]) / 2;
            const double place = std::clamp((x - low) * steps, 0.0, most);
            keyed_[std::size_t(i)] = uint64_t(int64_t(place)) << 32 | uint32_t(rows[i]);
        }
        selection_.select(keyed_.data(), end - begin, middle - begin);
        for (int64_t i = 0; i < end - begin; ++i) rows[i] = int32_t(uint32_t(keyed_[std::size_t(i)]));
    }

    int64_t d_;
    std::vector<double> low_, high_;  // half the bounds of the box, because its length may overflow
    std::vector<V> rows_;
    std::vector<int32_t> order_, points_;
    std::vector<uint64_t> keyed_;  // a place between the bounds of the feature, and the row
    Selection selection_;
};

// A tree over a sample of the points, which sends each point to a leaf.
template <class V>
class Tree {
  public:
    Tree(const Entries<V>& values, int64_t n_points, int64_t n_features, double scale) : d_(n_features) {
        while (n_levels_ < most_levels && n_points >> n_levels_ > points_per_leaf) ++n_levels_;
        const int64_t n_sampled = std::min(n_points, sampled_per_leaf << n_levels_);
        std::vector<int32_t> sample(static_cast<std::size_t>(n_sampled));
        for (int64_t i = 0; i < n_sampled; ++i)
            sample[std::size_t(i)] = int32_t(double(i) / double(n_sampled) * double(n_points));
        Halving<V> halving(n_features);
        halving.copy(values, sample.data(), n_sampled);
        branches_.resize(std::size_t(n_leaves() - 1));
        const double spread = halving.sq_spread(0, n_sampled, scale);
        halving.grow(branches_, 0, 0, n_sampled);
        double left = 0;
        for (int64_t begin = 0; begin < n_sampled; begin += sampled_per_leaf)
            left += halving.sq_spread(begin, std::min(n_sampled, begin + sampled_per_leaf), scale);
        if (n_levels_ > 0 && spread > 0) spread_left_ = left / spread;
    }

    int64_t n_leaves() const { return int64_t{1} << n_levels_; }

    // The share of the squared spread that lies within leaves.
    double spread_left() const { return spread_left_; }

    // Finds the leaves of n points, several at a time, since each waits for memory at every branch.
    void find_leaves(const V* points, int64_t n, int16_t* leaves) const {
        int64_t i = 0;
        for (; i + at_a_time <= n; i += at_a_time) leaves_of<at_a_time>(points + i * d_, leaves + i);
        for (; i < n; ++i) leaves_of<1>(points + i * d_, leaves + i);
    }

  private:
    static constexpr int at_a_time = 8;

    template <int n>
    void leaves_of(const V* points, int16_t* leaves) const {
        uint32_t at[n] = {};
        for (int level = 0; level < n_levels_; ++level)
            for (int i = 0; i < n; ++i) {
                const Branch<V>& branch = branches_[at[i]];
                at[i] = 2 * at[i] + 1 + uint32_t(!(points[i * d_ + branch.feature] < branch.threshold));
            }
        for (int i = 0; i < n; ++i) leaves[i] = int16_t(at[i] - uint32_t(branches_.size()));
    }

    int64_t d_;
    int n_levels_ = 0;
    std::vector<Branch<V>> branches_;
    double spread_left_ = 0;
};

// Puts the points begin to end in order.
template <class V>
class Sorting {
  public:
    Sorting(const Entries<V>& values, int64_t n_features, int64_t begin, int64_t end, const Tree<V>& tree,
            Team& team)
        : values_(values), d_(n_features), begin_(begin), end_(end), tree_(tree), team_(team) {}

    void write(int32_t* order) {
        n_stripes_ = divide_up(end_ - begin_, points_per_stripe);
        find_leaves();
        find_starts();
        team_.run(n_stripes_, team_.n_threads(), [&](int, int64_t stripe) { gather(stripe); });
        std::vector<Halving<V>> halvings(std::size_t(team_.n_threads()), Halving<V>(d_));
        team_.run(divide_up(tree_.n_leaves(), leaves_per_stripe), team_.n_threads(),
                  [&](int worker, int64_t stripe) {
                      const int64_t last = std::min(tree_.n_leaves(), (stripe + 1) * leaves_per_stripe);
                      for (int64_t leaf = stripe * leaves_per_stripe; leaf < last; ++leaf)
                          split_leaf(leaf, halvings[std::size_t(worker)], order);
                  });
        halvings[0].split_into_groups(values_, left_over_.data(), int64_t(left_over_.size()));
        std::copy(left_over_.begin(), left_over_.end(), order + end_ - left_over_.size());
    }

  private:
    int64_t first_of(int64_t stripe) const { return begin_ + stripe * points_per_stripe; }
    int64_t last_of(int64_t stripe) const { return std::min(end_, first_of(stripe + 1)); }
    int64_t& start(int64_t stripe, int64_t leaf) {
        return starts_[std::size_t(stripe * tree_.n_leaves() + leaf)];
    }

    void find_leaves() {
        leaf_of_.resize(std::size_t(end_ - begin_));
        starts_.assign(std::size_t(n_stripes_ * tree_.n_leaves()), 0);
        team_.run(n_stripes_, team_.n_threads(), [&](int, int64_t stripe) {
            const int64_t first = first_of(stripe), last = last_of(stripe);
            int16_t* const leaves = &leaf_of_[std::size_t(first - begin_)];
            std::vector<V> buffer(values_.are_narrow() ? std::size_t((last - first) * d_) : 0);
            const V* points = entries_at(values_, first * d_, (last - first) * d_, buffer.data());
            tree_.find_leaves(points, last - first, leaves);
            for (int64_t i = 0; i < last - first; ++i) ++start(stripe, leaves[i]);
        });
    }

    // Turns how many points of a leaf are in a stripe into the place of the first of them.
    void find_starts() {
        int64_t place = 0;
        for (int64_t leaf = 0; leaf < tree_.n_leaves(); ++leaf) {
            leaves_.push_back({place, n_grouped_, place - n_grouped_});
            for (int64_t stripe = 0; stripe < n_stripes_; ++stripe)
                place += std::exchange(start(stripe, leaf), place);
            n_grouped_ += (place - leaves_.back().start) / points_per_group * points_per_group;
        }
        leaves_.push_back({place, n_grouped_, place - n_grouped_});
        by_leaf_.resize(std::size_t(place));
        left_over_.resize(std::size_t(place - n_grouped_));
    }

    void gather(int64_t stripe) {
        for (int64_t i = first_of(stripe); i < last_of(stripe); ++i)
            by_leaf_[std::size_t(start(stripe, leaf_of_[std::size_t(i - begin_)])++)] = int32_t(i);
    }

    void split_leaf(int64_t leaf, Halving<V>& halving, int32_t* order) {
        const Leaf &here = leaves_[std::size_t(leaf)], &next = leaves_[std::size_t(leaf) + 1];
        int32_t* const points = by_leaf_.data() + here.start;
        halving.split_into_groups(values_, points, next.start - here.start);
        const int64_t n_grouped = next.grouped - here.grouped;
        std::copy_n(points, n_grouped, order + begin_ + here.grouped);
        std::copy_n(points + n_grouped, next.left_over - here.left_over, left_over_.begin() + here.left_over);
    }

    // Where the points of a leaf begin: all of them, those in whole groups, and those left over.
    struct Leaf {
        int64_t start, grouped, left_over;
    };

    Entries<V> values_;
    int64_t d_, begin_, end_, n_stripes_ = 0;
    const Tree<V>& tree_;
    Team& team_;
    std::vector<int16_t> leaf_of_;
    std::vector<int64_t> starts_;  // (n_stripes, n_leaves)
    std::vector<Leaf> leaves_;
    int64_t n_grouped_ = 0;
    std::vector<int32_t> by_leaf_, left_over_;
};

}  // namespace

template <class V>
std::vector<int32_t> spatial_order(const Entries<V>& values, int64_t n_points, int64_t n_features,
                                   double scale, Team& team) {
    std::vector<int32_t> order(static_cast<std::size_t>(n_points));
    for (int64_t begin = 0; begin < n_points; begin += points_sorted_together) {
        const int64_t end = std::min(n_points, begin + points_sorted_together);
        const Tree<V> tree(values.from(begin * n_features), end - begin, n_features, scale);
        if (begin == 0 && tree.spread_left() > most_spread_left) return {};
        Sorting<V>(values, n_features, begin, end, tree, team).write(order.data());
    }
    return order;
}

template std::vector<int32_t> spatial_order(const Entries<float>&, int64_t, int64_t, double, Team&);
template std::vector<int32_t> spatial_order(const Entries<double>&, int64_t, int64_t, double, Team&);

}  // namespace powermeans
