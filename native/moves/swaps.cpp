#include "moves/swaps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "moves/bregman_centers.hpp"
#include "moves/moving_centers.hpp"
#include "points/items.hpp"
#include "threads/interrupts.hpp"

namespace powermeans {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
// Lists are made of so many, since neighbours change with each move.
constexpr int64_t most_listed = 24;
constexpr int most_rounds = 12;
constexpr int passes_of_a_split = 3;
// Centers that drift by less than this share of the mean squared distance of their points call for no repair.
constexpr double least_drift = 1e-3;
// A swap is given up once it needs more than this many times what the last round gained.
constexpr double hope = 1.5;
// Pairs are formed of so many clusters that are cheap to dissolve, and as many that gain by a split.
constexpr int64_t most_ranked = 48;
// So many pairs are tried before all are ranked anew.
constexpr std::ptrdiff_t most_pairs = 32;
// A split that gains less than this share of what the dissolved cluster costs hardly ever leads to a gain.
constexpr double least_promise = 0.2;
// What a swap promises is estimated from so many points of a cluster at most.
constexpr std::size_t most_estimated = 256;

struct Neighbour {
    double sq_dist;
    int32_t center;
};

struct Pair {
    double promise;  // what the split gains less what the dissolved cluster costs, before the repair
    int32_t dissolved, split;
};

template <class Centers>
class CenterSwaps {
  public:
    using Look = typename Centers::Look;

    CenterSwaps(Items items, Centers centers, const SwapsRequest& request)
        : request_(request),
          items_(std::move(items)),
          k_(request.n_centers),
          centers_(std::move(centers)),
          weights_(std::size_t(k_ + 2)),
          members_(std::size_t(k_)),
          place_(std::size_t(items_.size())),
          error_(std::size_t(k_)),
          radius_(std::size_t(k_)),
          cost_(std::size_t(k_)),
          gain_(std::size_t(k_)),
          seed_(std::size_t(k_), -1),
          version_(std::size_t(k_)),
          is_touched_(std::size_t(k_)),
          is_dirty_(std::size_t(k_)),
          in_round_(std::size_t(k_)),
          sq_own_(std::size_t(items_.size())),
          stamp_of_own_(std::size_t(items_.size()), -1),
          stamp_(std::size_t(k_)),
          side_(std::size_t(items_.size())),
          sq_drift_(std::size_t(k_)),
          look_(centers_.new_look()) {
        for (int64_t i = 0; i < items_.size(); ++i) enter(i, items_.label[std::size_t(i)]);
        for (int64_t j = 0; j < k_; ++j) {
            check_interrupt();
            add_up(j);
            measure(j);
            total_ += error_[std::size_t(j)];
        }
    }

    Swaps run() {
        if (k_ < 2) return done_;
        listed_.resize(std::size_t(k_));
        for (int64_t j = 0; j < k_; ++j) {
            check_interrupt();
            list(j);
        }
        for (int64_t j = 0; j < k_; ++j) {
            check_interrupt();
            estimate(j);
        }
        for (auto pairs = ranked_pairs(); !pairs.empty() && !is_enough(); pairs = ranked_pairs())
            for (const Pair& pair : pairs) {
                if (is_enough()) break;
                check_interrupt();
                const double before = total_;
                const bool is_kept = swap(pair);
                n_in_vain_ = total_ < before * (1 - request_.least_gain) ? 0 : n_in_vain_ + 1;
                if (is_kept) break;
            }
        for (int64_t j = 0; j < k_; ++j) add_up(j);
        centers_.store(k_, request_.centers);
        items_.store_labels(request_.labels);
        return done_;
    }

  private:
    int64_t row(int64_t i) const { return items_.row[std::size_t(i)]; }
    double weight_of(int64_t i) const { return items_.weight[std::size_t(i)]; }
    int32_t& label(int64_t i) { return items_.label[std::size_t(i)]; }
    std::vector<int32_t>& members(int64_t j) { return members_[std::size_t(j)]; }

    bool is_idle() const { return done_.n_distances < request_.least_distances; }
    bool is_enough() const {
        return done_.n_distances >= request_.most_distances ||
               (n_in_vain_ >= request_.most_in_vain && !is_idle());
    }

    double sq_dist(int64_t j) {
        ++done_.n_distances;
        return centers_.sq_dist(look_, j);
    }

    // Returns what the point looked at would add to this cluster for each weight.
    double burden(int64_t j, int64_t i, double limit = infinity) {
        ++done_.n_distances;
        return centers_.burden(look_, j, weights_[std::size_t(j)], weight_of(i), limit);
    }

    // Returns what its cluster would lose with the point looked at for each weight.
    double relief(int64_t j, int64_t i, double sq_own) {
        if (!Centers::is_euclidean) ++done_.n_distances;
        return centers_.relief(look_, j, sq_own, weights_[std::size_t(j)], weight_of(i));
    }

    void enter(int64_t i, int64_t to) {
        place_[std::size_t(i)] = int32_t(members(to).size());
        members(to).push_back(int32_t(i));
        weights_[std::size_t(to)] += weight_of(i);
        label(i) = int32_t(to);
    }

    void leave(int64_t i) {
        std::vector<int32_t>& all = members(label(i));
        all[std::size_t(place_[std::size_t(i)])] = all.back();
        place_[std::size_t(all.back())] = place_[std::size_t(i)];
        all.pop_back();
        weights_[std::size_t(label(i))] -= weight_of(i);
    }

    void add_up(int64_t j) {
        if (members(j).empty()) return;
        stamp_[std::size_t(j)] = ++n_stamps_;
        centers_.begin_sum(j);
        double weight = 0;
        for (int32_t i : members(j)) {
            centers_.add(j, weight_of(i), row(i));
            weight += weight_of(i);
        }
        centers_.end_sums(j, weight);
        weights_[std::size_t(j)] = weight;
    }

    // Measures the error of a cluster and how far its points lie from the center.
    void measure(int64_t j) {
        double error = 0, farthest = 0;
        for (int32_t i : members(j)) {
            centers_.look_at(row(i), look_);
            const double y = sq_dist(j);
            sq_own_[std::size_t(i)] = y;
            stamp_of_own_[std::size_t(i)] = stamp_[std::size_t(j)];
            error += weight_of(i) * y;
            farthest = std::max(farthest, y);
        }
        error_[std::size_t(j)] = error;
        radius_[std::size_t(j)] = std::sqrt(farthest);
    }

    // ---- What a swap promises ----

    // Estimates what it would cost to dissolve this cluster, and gain to split it.
    void estimate(int64_t j) {
        cost_[std::size_t(j)] = gain_[std::size_t(j)] = 0;
        if (members(j).empty()) return;
        const std::vector<Neighbour>& near = neighbours(j);
        const double whole = draw_some(j);
        double cost = 0;
        for (int32_t i : some_) {
            centers_.look_at(row(i), look_);
            cost += weight_of(i) * (least_burden(i, near).sq_dist - sq_own(i));
        }
        cost_[std::size_t(j)] = cost * weights_[std::size_t(j)] / whole;
        const typename Centers::State center = centers_.state(j);
        for (int64_t seed : seeds_of_a_split()) {
            centers_.set_state(k_, center);
            weights_[std::size_t(k_)] = whole;
            const double gain = split(some_, k_, k_ + 1, seed) * weights_[std::size_t(j)] / whole;
            // Both may lead to the same split, with the sides exchanged: rounding must not choose.
            if (gain <= gain_[std::size_t(j)] * (1 + 1e-9)) continue;
            gain_[std::size_t(j)] = gain;
            seed_[std::size_t(j)] = seed;
        }
    }

    // Takes every so many-th point of a cluster, and returns their weight.
    double draw_some(int64_t j) {
        some_.clear();
        const std::size_t step = (members(j).size() + most_estimated - 1) / most_estimated;
        double weight = 0;
        for (std::size_t place = 0; place < members(j).size(); place += step) {
            some_.push_back(members(j)[place]);
            weight += weight_of(some_.back());
        }
        return weight;
    }

    double sq_own(int64_t i) {
        const std::size_t own = std::size_t(label(i));
        if (stamp_of_own_[std::size_t(i)] != stamp_[own]) {
            sq_own_[std::size_t(i)] = sq_dist(int64_t(own));
            stamp_of_own_[std::size_t(i)] = stamp_[own];
        }
        return sq_own_[std::size_t(i)];
    }

    // Returns the cluster that takes the point looked at best, and what that adds for each weight.
    Neighbour least_burden(int64_t i, const std::vector<Neighbour>& near) {
        Neighbour least{infinity, -1};
        const double sq_dist_to_own = sq_own(i);
        for (const Neighbour& other : near) {
            // By the triangle inequality, nearly: shares are close to one.
            if (other.sq_dist > 4.5 * std::max(sq_dist_to_own, least.sq_dist)) break;
            const double added = burden(other.center, i, least.sq_dist);
            if (added < least.sq_dist) least = {added, other.center};
        }
        return least;
    }

    // Returns the one of some points that adds most to their error, and the one at half of it.
    std::vector<int64_t> seeds_of_a_split() {
        if (some_.size() < 2) return {};
        double most = -1, sum = 0, all = 0;
        int64_t farthest = -1, middle = -1;
        for (int32_t i : some_) all += weight_of(i) * sq_own(i);
        for (int32_t i : some_) {
            const double y = weight_of(i) * sq_own(i);
            if (y > most) most = y, farthest = i;
            sum += y;
            if (middle < 0 && 2 * sum >= all) middle = i;
        }
        if (farthest < 0) return {};
        if (middle < 0 || middle == farthest) return {farthest};
        return {farthest, middle};
    }

    // Splits points that are all of cluster a: they move one by one to cluster b, which begins with the seed,
    // and back. Returns what that gains, and leaves the sides.
    double split(const std::vector<int32_t>& points, int64_t a, int64_t b, int64_t seed) {
        for (int32_t i : points) side_[std::size_t(i)] = 0;
        weights_[std::size_t(b)] = 0;
        centers_.look_at(row(seed), look_);
        double gain = move_between(seed, a, b);
        for (int pass = 0; pass < passes_of_a_split; ++pass) {
            const double before = gain;
            for (int32_t i : points) {
                centers_.look_at(row(i), look_);
                gain += side_[std::size_t(i)] ? move_between(i, b, a) : move_between(i, a, b);
            }
            if (!(gain > before)) break;
        }
        return gain;
    }

    double move_between(int64_t i, int64_t from, int64_t to) {
        const double weight = weight_of(i), left = weights_[std::size_t(from)] - weight;
        if (left <= least_share * weights_[std::size_t(from)]) return 0;
        const double most = weight * relief(from, i, sq_dist(from));
        const double added = weights_[std::size_t(to)] > 0 ? weight * burden(to, i) : 0.0;
        if (!(most - added > least_gain_of_a_move * most)) return 0;
        shift(i, from, to);
        side_[std::size_t(i)] = !side_[std::size_t(i)];
        return most - added;
    }

    // Moves the centers along with a point, and the weight.
    void shift(int64_t i, int64_t from, int64_t to) {
        const double weight = weight_of(i);
        weights_[std::size_t(from)] -= weight;
        weights_[std::size_t(to)] += weight;
        centers_.shift(from, -weight / weights_[std::size_t(from)], row(i), look_);
        centers_.shift(to, weight / weights_[std::size_t(to)], row(i), look_);
    }

    std::vector<Pair> ranked_pairs() {
        const auto best = [&](const auto& is_better) {
            std::vector<int32_t> ranked;
            for (int64_t j = 0; j < k_; ++j) ranked.push_back(int32_t(j));
            const int64_t n = std::min(k_, most_ranked);
            std::partial_sort(ranked.begin(), ranked.begin() + n, ranked.end(), is_better);
            ranked.resize(std::size_t(n));
            return ranked;
        };
        const auto cheap = best([&](int32_t a, int32_t b) {
            const double x = cost_[std::size_t(a)], y = cost_[std::size_t(b)];
            return x < y || (x == y && a < b);
        });
        const auto gainful = best([&](int32_t a, int32_t b) {
            const double x = gain_[std::size_t(a)], y = gain_[std::size_t(b)];
            return x > y || (x == y && a < b);
        });
        std::vector<Pair> pairs;
        for (int32_t dissolved : cheap)
            for (int32_t split : gainful) {
                const double gain = gain_[std::size_t(split)], cost = cost_[std::size_t(dissolved)];
                if (split == dissolved || !(gain > 0) || cost == infinity ||
                    (gain < least_promise * cost && !is_idle()))
                    continue;
                if (was_tried(dissolved, split)) continue;
                pairs.push_back({gain - cost, dissolved, split});
            }
        const auto n = std::min(most_pairs, std::ptrdiff_t(pairs.size()));
        std::partial_sort(pairs.begin(), pairs.begin() + n, pairs.end(), [](const Pair& a, const Pair& b) {
            if (a.promise != b.promise) return a.promise > b.promise;
            return a.dissolved != b.dissolved ? a.dissolved < b.dissolved : a.split < b.split;
        });
        pairs.resize(std::size_t(n));
        return pairs;
    }

    int64_t key(int64_t dissolved, int64_t split) const { return dissolved * k_ + split; }
    int64_t versions(int64_t dissolved, int64_t split) const {
        return version_[std::size_t(dissolved)] + version_[std::size_t(split)];  // neither ever falls
    }
    bool was_tried(int64_t dissolved, int64_t split) const {
        const auto found = tried_.find(key(dissolved, split));
        return found != tried_.end() && found->second == versions(dissolved, split);
    }

    // ---- A swap ----

    struct Saved {
        int64_t center;
        typename Centers::State state;
        double weight, error, radius;
        std::vector<int32_t> members;
    };

    void touch(int64_t j) {
        if (is_touched_[std::size_t(j)]) return;
        is_touched_[std::size_t(j)] = 1;
        saved_.push_back({j, centers_.state(j), weights_[std::size_t(j)], error_[std::size_t(j)],
                          radius_[std::size_t(j)], members(j)});
    }

    void dirty(int64_t j) {
        touch(j);
        if (is_dirty_[std::size_t(j)]) return;
        is_dirty_[std::size_t(j)] = 1;
        dirty_.push_back(int32_t(j));
    }

    // A cluster is looked at again once its center has drifted by a share of the spread of its points.
    void note_drift(int64_t j, double sq_shift) {
        double& drift = sq_drift_[std::size_t(j)];
        drift += sq_shift;
        if (drift * weights_[std::size_t(j)] > least_drift * error_[std::size_t(j)]) dirty(j);
    }

    // Returns whether the swap lowered the sum of squares; undoes it otherwise.
    bool swap(const Pair& pair) {
        ++done_.n_tried;
        tried_[key(pair.dissolved, pair.split)] = versions(pair.dissolved, pair.split);
        saved_.clear();
        dirty_.clear();
        rise_ = 0;
        bool is_hopeful = dissolve(pair.dissolved);
        const bool is_possible = is_hopeful;
        come_ = pair.dissolved;
        split_ = pair.split;
        if (is_possible) divide(pair.split, pair.dissolved);
        for (int round = 0; round < most_rounds && !dirty_.empty() && is_hopeful; ++round) {
            const double before = rise_;
            repair();
            is_hopeful = rise_ <= hope * (before - rise_);
        }
        for (int32_t j : dirty_) is_dirty_[std::size_t(j)] = 0;
        come_ = split_ = -1;
        const bool is_kept = is_possible && rise_ < -1e-9 * total_;
        if (is_kept)
            keep();
        else
            undo();
        for (const Saved& saved : saved_) {
            is_touched_[std::size_t(saved.center)] = 0;
            sq_drift_[std::size_t(saved.center)] = 0;
        }
        return is_kept;
    }

    void keep() {
        ++done_.n_kept;
        for (const Saved& saved : saved_) {
            total_ -= saved.error;
            add_up(saved.center);
            measure(saved.center);
            total_ += error_[std::size_t(saved.center)];
            ++version_[std::size_t(saved.center)];
        }
        for (const Saved& saved : saved_) list(saved.center);
        // Those around the new place have a new neighbour.
        for (int32_t other : listed_[std::size_t(saved_.front().center)]) list(other);
        for (const Saved& saved : saved_) estimate(saved.center);
    }

    void undo() {
        for (const Saved& saved : saved_) {
            const std::size_t j = std::size_t(saved.center);
            centers_.set_state(saved.center, saved.state);
            stamp_[j] = ++n_stamps_;
            weights_[j] = saved.weight;
            error_[j] = saved.error;
            radius_[j] = saved.radius;
            members_[j] = saved.members;
            for (std::size_t place = 0; place < members_[j].size(); ++place) {
                const int32_t i = members_[j][place];
                place_[std::size_t(i)] = int32_t(place);
                label(i) = int32_t(saved.center);
            }
        }
    }

    // Moves each point to the cluster that takes it best; returns false where no cluster takes one of them.
    bool dissolve(int64_t j) {
        touch(j);
        rise_ -= error_[std::size_t(j)];
        const std::vector<Neighbour>& near = neighbours(j);
        const std::vector<int32_t> points = members(j);
        for (int32_t i : points) {
            centers_.look_at(row(i), look_);
            const auto [least, to] = least_burden(i, near);
            if (to < 0) return false;
            rise_ += weight_of(i) * least;
            dirty(to);
            leave(i);
            enter(i, to);
            centers_.shift(to, weight_of(i) / weights_[std::size_t(to)], row(i), look_);
            stamp_[std::size_t(to)] = ++n_stamps_;
        }
        members(j).clear();
        weights_[std::size_t(j)] = 0;
        return true;
    }

    void divide(int64_t j, int64_t empty) {
        dirty(j);
        dirty(empty);
        const std::vector<int32_t> points = members(j);
        const int64_t seed = seed_[std::size_t(j)];
        const double all = weights_[std::size_t(j)];
        rise_ -= split(points, j, empty, seed);
        stamp_[std::size_t(j)] = ++n_stamps_;
        stamp_[std::size_t(empty)] = ++n_stamps_;
        const double taken = weights_[std::size_t(empty)];
        weights_[std::size_t(j)] = all;
        weights_[std::size_t(empty)] = 0;
        for (int32_t i : points)
            if (side_[std::size_t(i)]) {
                leave(i);
                enter(i, empty);
            }
        weights_[std::size_t(empty)] = taken;
        weights_[std::size_t(j)] = all - taken;
    }

    // Lets the points of clusters that changed move, and those beside them move to these.
    void repair() {
        const std::vector<int32_t> changed = dirty_;
        dirty_.clear();
        for (int32_t j : changed) is_dirty_[std::size_t(j)] = 0;
        for (int32_t j : changed) sq_drift_[std::size_t(j)] = 0;
        for (int32_t j : changed) in_round_[std::size_t(j)] = 1;
        for (int32_t j : changed) {
            const std::vector<Neighbour>& near = neighbours(j);
            batch_ = members(j);
            for (int32_t i : batch_) move_to_best(i, near);
            for (const Neighbour& other : near) {
                if (in_round_[std::size_t(other.center)]) continue;
                // No point of it is nearer to the other center.
                if (std::sqrt(other.sq_dist) > 2.2 * radius_[std::size_t(other.center)]) continue;
                batch_ = members(other.center);
                only_ = {{other.sq_dist, j}};
                for (int32_t i : batch_) move_to_best(i, only_);
            }
        }
        for (int32_t j : changed) in_round_[std::size_t(j)] = 0;
    }

    void move_to_best(int64_t i, const std::vector<Neighbour>& near) {
        const int64_t own = label(i);
        const double weight = weight_of(i), left = weights_[std::size_t(own)] - weight;
        if (members(own).size() < 2 || left <= least_share * weights_[std::size_t(own)]) return;
        bool is_looked_at = false;
        const auto look = [&] {
            if (!is_looked_at) centers_.look_at(row(i), look_);
            is_looked_at = true;
        };
        if (!Centers::is_euclidean || stamp_of_own_[std::size_t(i)] != stamp_[std::size_t(own)]) look();
        const double sq_to_own = sq_own(i), most = relief(own, i, sq_to_own);
        double least = most;
        int64_t to = -1;
        for (const Neighbour& other : near) {
            // By the triangle inequality, nearly: shares are close to one.
            if (other.sq_dist > 4.5 * std::max(sq_to_own, most)) break;
            if (other.center == own) continue;
            look();
            const double added = burden(other.center, i, least);
            if (added < least) least = added, to = other.center;
        }
        if (to < 0 || !(most - least > least_gain_of_a_move * most)) return;
        rise_ -= weight * (most - least);
        touch(own);
        touch(to);
        const double all_of_other = weights_[std::size_t(to)] + weight;
        note_drift(own, weight / left * (weight / left) * sq_to_own);
        note_drift(to, weight / all_of_other * (weight / weights_[std::size_t(to)]) * least);
        leave(i);
        enter(i, to);
        centers_.shift(own, -weight / weights_[std::size_t(own)], row(i), look_);
        centers_.shift(to, weight / weights_[std::size_t(to)], row(i), look_);
        stamp_[std::size_t(own)] = ++n_stamps_;
        stamp_[std::size_t(to)] = ++n_stamps_;
    }

    static bool is_nearer(const Neighbour& a, const Neighbour& b) {
        return a.sq_dist < b.sq_dist || (a.sq_dist == b.sq_dist && a.center < b.center);
    }

    // Lists the clusters around one, among which to look for its neighbours.
    void list(int64_t j) {
        std::vector<Neighbour>& others = near_;
        others.clear();
        for (int64_t other = 0; other < k_; ++other)
            if (other != j) others.push_back({centers_.sq_dist_between(j, other), int32_t(other)});
        done_.n_distances += double(k_);
        const auto n = std::min<std::ptrdiff_t>(most_listed, std::ptrdiff_t(others.size()));
        std::nth_element(others.begin(), others.begin() + (n - 1), others.end(), is_nearer);
        listed_[std::size_t(j)].clear();
        for (auto other = others.begin(); other != others.begin() + n; ++other)
            listed_[std::size_t(j)].push_back(other->center);
    }

    // Returns the nearest clusters that have points, the nearest first.
    const std::vector<Neighbour>& neighbours(int64_t j) {
        near_.clear();
        const auto add = [&](int64_t other) {
            if (other == j || members(other).empty()) return;
            near_.push_back({centers_.sq_dist_between(j, other), int32_t(other)});
        };
        // The cluster that a swap dissolved has come to where another is split.
        const bool has_come = j == come_;
        if (has_come) add(split_);
        for (int32_t other : listed_[std::size_t(has_come ? split_ : j)])
            if (other != come_) add(other);
        if (come_ >= 0 && !has_come) add(come_);
        done_.n_distances += double(near_.size());
        const auto n = std::min<std::ptrdiff_t>(most_neighbours, std::ptrdiff_t(near_.size()));
        std::partial_sort(near_.begin(), near_.begin() + n, near_.end(), is_nearer);
        near_.resize(std::size_t(n));
        return near_;
    }

    const SwapsRequest& request_;
    Items items_;
    int64_t k_;
    Centers centers_;
    std::vector<double> weights_;                         // (n_centers + 2,)
    std::vector<std::vector<int32_t>> members_;           // (n_centers,) points that have weight
    std::vector<int32_t> place_;                          // (n_points,) in the members
    std::vector<double> error_, radius_, cost_, gain_;    // (n_centers,)
    std::vector<int64_t> seed_;                           // (n_centers,) of the best split
    std::vector<int64_t> version_;                        // (n_centers,)
    std::vector<char> is_touched_, is_dirty_, in_round_;  // (n_centers,)
    // The squared distance of a point to its own center, as long as the stamps agree.
    std::vector<double> sq_own_;         // (n_points,)
    std::vector<int64_t> stamp_of_own_;  // (n_points,)
    std::vector<int64_t> stamp_;         // (n_centers,)
    int64_t n_stamps_ = 0;
    std::vector<char> side_;        // (n_points,) of a split
    std::vector<double> sq_drift_;  // (n_centers,)
    std::vector<int32_t> dirty_, batch_, some_;
    int64_t n_in_vain_ = 0;
    std::vector<std::vector<int32_t>> listed_;  // (n_centers,)
    std::vector<Neighbour> near_, only_;
    int64_t come_ = -1, split_ = -1;  // of the present swap
    std::vector<Saved> saved_;
    std::unordered_map<int64_t, int64_t> tried_;
    double total_ = 0;  // sum of squares
    double rise_ = 0;   // of it, in the present swap
    Swaps done_;
    Look look_;
};

}  // namespace

template <class Source>
Swaps swap_centers(const Source& source, const SwapsRequest& request) {
    Items items = items_of(source, request.order, request.sample_weight, request.labels);
    return with_centers(source, request.phi, [&](auto kind) {
        using Centers = typename decltype(kind)::Type;
        Centers centers(source, request.phi, request.centers, request.n_centers, 2);
        return CenterSwaps<Centers>(std::move(items), std::move(centers), request).run();
    });
}

template Swaps swap_centers(const DenseSource<float>&, const SwapsRequest&);
template Swaps swap_centers(const DenseSource<double>&, const SwapsRequest&);
template Swaps swap_centers(const CsrSource<float>&, const SwapsRequest&);
template Swaps swap_centers(const CsrSource<double>&, const SwapsRequest&);

}  // namespace powermeans
