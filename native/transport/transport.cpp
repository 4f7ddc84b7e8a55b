#include "transport/transport.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <vector>

#include "threads/interrupts.hpp"

namespace powermeans {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int64_t nothing = -1;

// Of the total weight: less than this is rounding.
constexpr double rounding = 1e-12;
// Of the mean weight of a point. Without it parts would get ever smaller, as remainders of remainders.
constexpr double smallest_part = 1e-2;
// All pairs of fewer points may change places in milliseconds; among more, single points fill the limits well.
constexpr int64_t most_items_exchanged = 256;
constexpr int most_passes = 8;

// A point that may leave a cluster for another, and what that costs for each unit of its weight.
struct Offer {
    double cost;
    int32_t item;
    bool operator>(const Offer& other) const {
        return cost != other.cost ? cost > other.cost : item > other.item;
    }
};

// The offers of one cluster to another. Those of items that have left are dropped once they come first.
struct Arc {
    int32_t from, to;
    std::size_t place_there, place_back;  // among those from the one cluster, and those to the other
    std::vector<Offer> offers;            // a heap, the cheapest first
};

// An arc as a search comes by it. Most are too costly to look at more of them.
struct Passing {
    double least;     // no offer costs less
    int32_t cluster;  // at the other end
    int32_t arc;
};

// How a shortest path goes on from a cluster towards the place where the search began.
struct Reached {
    double distance = infinity;
    int64_t next = nothing;
    int32_t item = nothing;  // that moves; none on the arcs to and from the ground
    int64_t search = nothing;
    bool is_settled = false;
};

// The clusters, and a ground that trades wishes: from a cluster to the ground, the cluster wishes one more;
// back, one fewer. Shortest paths lead from clusters that have more than they wish to the ground or to those
// that have less, and then from the ground to the latter. Prices keep the cost of every arc, with the price of
// its end and less that of its begin, at least zero; that of the ground is zero.
class Transport {
  public:
    explicit Transport(const TransportRequest& request)
        : asked_(request),
          ground_(request.n_centers),
          known_(std::size_t(request.n_centers)),
          there_(std::size_t(request.n_centers)),
          back_(std::size_t(request.n_centers)),
          wished_(std::size_t(request.n_centers)),
          prices_(request.prices, request.prices + request.n_centers),
          reached_(std::size_t(request.n_centers + 1)) {
        prices_.push_back(0);  // of the ground
        for (int64_t i = 0; i < asked_.n_points; ++i)
            items_.push_back({int32_t(i), asked_.labels[i], asked_.weights ? asked_.weights[i] : 1.0});
        for (int64_t i = 0; i < asked_.n_points; ++i) offer(int32_t(i), false);
        for (Arc& arc : arcs_) std::make_heap(arc.offers.begin(), arc.offers.end(), std::greater<>());
        for (int64_t j = 0; j < ground_; ++j) total_ += asked_.sizes[j];
        others_.assign(asked_.sizes, asked_.sizes + ground_);
        double listed = 0;
        for (const Item& item : items_) {
            others_[std::size_t(item.label)] -= item.amount;
            listed += item.amount;
        }
        least_ = rounding * total_;
        if (asked_.weights && asked_.n_points > 0)
            least_ = std::max(least_, smallest_part * listed / double(asked_.n_points));
        for (int64_t j = 0; j < ground_; ++j) wished_[std::size_t(j)] = wish(j);
    }

    double run() {
        for (const bool is_forward : {true, false}) {
            is_forward_ = is_forward;
            for (int64_t j = 0; j < ground_; ++j)
                while (is_out_of_balance(j, is_forward_) && send(j)) check_interrupt();
        }
        std::copy_n(prices_.begin(), ground_, asked_.prices);
        if (asked_.weights) join_parts();
        for (const Item& item : items_)
            if (item.amount > 0) asked_.labels[item.point] = item.label;
        return missed();
    }

  private:
    // A point, or a part of its weight.
    struct Item {
        int32_t point, label;
        double amount;
    };

    // ---- What clusters wish ---------------------------------------------------------------------

    double wish(int64_t j) const {
        const double least = asked_.least_sizes[j], most = asked_.most_sizes[j], price = asked_.prices[j];
        if (asked_.curvature > 0) {
            const double size = asked_.mean_size + price / asked_.curvature;
            return std::clamp(asked_.weights ? size : std::nearbyint(size), least, most);
        }
        return price > 0 ? most : price < 0 ? least : std::clamp(asked_.sizes[j], least, most);
    }

    double imbalance(int64_t j) const { return asked_.sizes[j] - wished_[std::size_t(j)]; }

    // Whether a cluster has more than it wishes, or less.
    bool is_out_of_balance(int64_t j, bool has_more) const {
        return has_more ? imbalance(j) > least_ : imbalance(j) < -least_;
    }

    // A wish for one more costs this; with -1, for one fewer.
    double cost_of_wish(int64_t j, double change) const {
        return change * asked_.curvature * (wished_[std::size_t(j)] + change * step() / 2 - asked_.mean_size);
    }

    double step() const { return asked_.weights ? 0 : 1; }

    double missed() const {
        double sum = 0;
        for (int64_t j = 0; j < ground_; ++j)
            sum += std::max(
                {asked_.sizes[j] - asked_.most_sizes[j], asked_.least_sizes[j] - asked_.sizes[j], 0.0});
        return sum > least_ ? sum : 0;
    }

    // ---- Offers ---------------------------------------------------------------------------------

    double distance_to(int32_t point, int32_t center) const {
        for (int64_t at = asked_.starts[point]; at < asked_.starts[point + 1]; ++at)
            if (asked_.choices[at] == center) return asked_.distances[at];
        return infinity;
    }

    int32_t arc(int32_t from, int32_t to) {
        auto& known = known_[std::size_t(from)];
        auto &there = there_[std::size_t(from)], &back = back_[std::size_t(to)];
        const auto place = std::lower_bound(known.begin(), known.end(), std::pair{to, int32_t(0)});
        if (place != known.end() && place->first == to) return place->second;
        const int32_t added = int32_t(arcs_.size());
        known.insert(place, {to, added});
        arcs_.push_back({from, to, there.size(), back.size(), {}});
        there.push_back({infinity, to, added});
        back.push_back({infinity, from, added});
        return added;
    }

    double& least(const Arc& arc) { return there_[std::size_t(arc.from)][arc.place_there].least; }

    void set_least(const Arc& arc, double cost) {
        least(arc) = cost;
        back_[std::size_t(arc.to)][arc.place_back].least = cost;
    }

    // Offers an item to the other centers of its list.
    void offer(int32_t item, bool are_heaps) {
        const Item& own = items_[std::size_t(item)];
        const double distance = distance_to(own.point, own.label);
        for (int64_t at = asked_.starts[own.point]; at < asked_.starts[own.point + 1]; ++at) {
            if (asked_.choices[at] == own.label) continue;
            Arc& way = arcs_[std::size_t(arc(own.label, asked_.choices[at]))];
            way.offers.push_back({asked_.distances[at] - distance, item});
            if (way.offers.back().cost < least(way)) set_least(way, way.offers.back().cost);
            if (are_heaps) std::push_heap(way.offers.begin(), way.offers.end(), std::greater<>());
        }
    }

    bool holds(int64_t cluster, const Offer& offer) const {
        const Item& item = items_[std::size_t(offer.item)];
        return item.label == cluster && item.amount > 0;
    }

    // Returns the cheapest offer, or null.
    const Offer* cheapest(Arc& arc) {
        auto& offers = arc.offers;
        while (!offers.empty() && !holds(arc.from, offers.front())) {
            std::pop_heap(offers.begin(), offers.end(), std::greater<>());
            offers.pop_back();
        }
        set_least(arc, offers.empty() ? infinity : offers.front().cost);
        return offers.empty() ? nullptr : &offers.front();
    }

    // ---- Shortest paths -------------------------------------------------------------------------

    using Waiting = std::pair<double, int64_t>;
    using Queue = std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>>;

    // Sends weight from this cluster along the shortest path, or to it; returns false where there is none.
    bool send(int64_t origin) {
        const int64_t goal = find_goal(origin);
        if (goal == nothing) return false;
        const double amount = amount_along(origin, goal);
        for (int64_t at = goal; at != origin; at = reached_[std::size_t(at)].next) {
            const Reached& way = reached_[std::size_t(at)];
            if (is_forward_)
                move(way.next, at, way.item, amount);
            else
                move(at, way.next, way.item, amount);
        }
        return true;
    }

    // Finds the ground or the nearest cluster out of balance the other way, and changes the prices of those
    // that are nearer.
    int64_t find_goal(int64_t origin) {
        Queue queue;
        settled_.clear();
        ++search_;
        to_goal_ = infinity;
        reach({0, origin, nothing}, origin, queue);
        while (!queue.empty()) {
            const auto [distance, node] = queue.top();
            queue.pop();
            Reached& here = reached_[std::size_t(node)];
            if (here.is_settled) continue;
            here.is_settled = true;
            if (is_goal(node)) {
                for (int64_t nearer : settled_) {
                    const double change = distance - reached_[std::size_t(nearer)].distance;
                    prices_[std::size_t(nearer)] += is_forward_ ? change : -change;
                }
                return node;
            }
            settled_.push_back(node);
            visit(node, distance, queue);
        }
        return nothing;
    }

    struct Way {
        double distance;
        int64_t next;
        int32_t item;
    };

    void reach(const Way& way, int64_t node, Queue& queue) {
        if (is_too_far(way.distance, node)) return;
        reached_[std::size_t(node)] = {way.distance, way.next, way.item, search_, false};
        queue.push({way.distance, node});
        if (is_goal(node)) to_goal_ = way.distance;
    }

    // Whether a way to this cluster is no better than the one known, or leads beyond the nearest goal known.
    bool is_too_far(double distance, int64_t node) const {
        const Reached& there = reached_[std::size_t(node)];
        const bool is_reached = there.search == search_;
        return distance > to_goal_ || (is_reached && (there.is_settled || there.distance <= distance));
    }

    bool is_goal(int64_t node) const { return node == ground_ || is_out_of_balance(node, !is_forward_); }

    double reduced(double cost, int64_t begin, int64_t end) const {
        return std::max(cost + prices_[std::size_t(end)] - prices_[std::size_t(begin)], 0.0);
    }

    // Goes on to what is next to a cluster: along arcs, or against them where the search goes backward.
    void visit(int64_t node, double distance, Queue& queue) {
        const auto after = [&](double cost, int64_t next) {
            return distance + (is_forward_ ? reduced(cost, node, next) : reduced(cost, next, node));
        };
        for (const Passing& arc : (is_forward_ ? there_ : back_)[std::size_t(node)])
            if (!is_too_far(after(arc.least, arc.cluster), arc.cluster))
                if (const Offer* offer = cheapest(arcs_[std::size_t(arc.arc)]))
                    reach({after(offer->cost, arc.cluster), node, offer->item}, arc.cluster, queue);
        if ((is_forward_ ? more(node) : fewer(node)) > least_)
            reach({after(cost_of_wish(node, is_forward_ ? 1 : -1), ground_), node, nothing}, ground_, queue);
    }

    // ---- Moves along a path ---------------------------------------------------------------------

    // How much more or fewer a cluster may wish. A curved cost changes with each step.
    double more(int64_t j) const { return stepped(asked_.most_sizes[j] - wished_[std::size_t(j)]); }
    double fewer(int64_t j) const { return stepped(wished_[std::size_t(j)] - asked_.least_sizes[j]); }
    double stepped(double room) const {
        if (asked_.curvature == 0) return room;
        // No step is rounding, however few points a cluster has.
        return std::min(room, asked_.weights ? std::max(curved_steps * asked_.mean_size, 2 * least_) : 1.0);
    }
    static constexpr double curved_steps = 1e-3;

    double amount_along(int64_t origin, int64_t goal) const {
        double amount = std::abs(imbalance(origin));
        if (goal != ground_) amount = std::min(amount, std::abs(imbalance(goal)));
        for (int64_t at = goal; at != origin; at = reached_[std::size_t(at)].next) {
            const Reached& way = reached_[std::size_t(at)];
            const double room = way.item != nothing ? items_[std::size_t(way.item)].amount
                                : is_forward_       ? more(way.next)
                                                    : fewer(way.next);
            amount = std::min(amount, room);
        }
        return amount;
    }

    void move(int64_t from, int64_t to, int32_t moved, double amount) {
        if (to == ground_) {
            wished_[std::size_t(from)] += amount;
            return;
        }
        if (from == ground_) {
            wished_[std::size_t(to)] -= amount;
            return;
        }
        asked_.sizes[from] -= amount;
        asked_.sizes[to] += amount;
        Item& item = items_[std::size_t(moved)];
        if (item.amount - amount <= least_) {
            item.label = int32_t(to);
            offer(moved, true);
        } else {
            item.amount -= amount;
            items_.push_back({item.point, int32_t(to), amount});
            offer(int32_t(items_.size()) - 1, true);
        }
    }

    // ---- Whole points ---------------------------------------------------------------------------

    // Gives each point to the center that has most of it. Then points move and change places, at first to meet
    // the limits, then to lower the cost.
    void join_parts() {
        std::vector<int32_t> most_of(std::size_t(asked_.n_points), nothing);
        for (int32_t i = 0; i < int32_t(items_.size()); ++i) {
            int32_t& best = most_of[std::size_t(items_[std::size_t(i)].point)];
            if (best == nothing || items_[std::size_t(i)].amount > items_[std::size_t(best)].amount) best = i;
        }
        std::copy(others_.begin(), others_.end(), asked_.sizes);
        std::vector<Item> whole;
        for (int32_t i : most_of) {
            if (i == nothing) continue;
            const Item& item = items_[std::size_t(i)];
            whole.push_back({item.point, item.label, asked_.weights[item.point]});
            asked_.sizes[item.label] += whole.back().amount;
        }
        items_ = std::move(whole);
        least_ = rounding * total_;
        lightest_ = infinity;
        for (const Item& item : items_)
            if (item.amount > 0) lightest_ = std::min(lightest_, item.amount);
        for (Change best = best_change(); best.item != nothing; best = best_change()) {
            check_interrupt();
            make(best);
        }
        for (int pass = 0; pass < most_passes; ++pass)
            if (!lower_cost()) break;
    }

    // A point goes to another center, and another may come from there.
    struct Change {
        int32_t item = nothing, to = nothing, other = nothing;
        double mended = 0, cost = 0;
    };

    // By how much a size misses the limits; an empty cluster misses the lightest point.
    double lack(int64_t j, double size) const {
        const double empty = size <= least_ ? lightest_ : 0;
        return std::max({size - asked_.most_sizes[j], asked_.least_sizes[j] - size, empty, 0.0});
    }

    double cost_of_size(double size) const {
        return asked_.curvature / 2 * (size - asked_.mean_size) * (size - asked_.mean_size);
    }

    Change change(int32_t i, int32_t to, int32_t other) const {
        const Item& item = items_[std::size_t(i)];
        const int32_t from = item.label;
        double moved = item.amount;
        double cost = item.amount * (distance_to(item.point, to) - distance_to(item.point, from));
        if (other != nothing) {
            const Item& back = items_[std::size_t(other)];
            moved -= back.amount;
            cost += back.amount * (distance_to(back.point, from) - distance_to(back.point, to));
        }
        const double a = asked_.sizes[from], b = asked_.sizes[to];
        cost += cost_of_size(a - moved) - cost_of_size(a) + cost_of_size(b + moved) - cost_of_size(b);
        return {i, to, other, lack(from, a) - lack(from, a - moved) + lack(to, b) - lack(to, b + moved),
                cost};
    }

    void make(const Change& change) {
        Item& item = items_[std::size_t(change.item)];
        const int32_t from = item.label;
        const double moved =
            item.amount - (change.other == nothing ? 0 : items_[std::size_t(change.other)].amount);
        asked_.sizes[from] -= moved;
        asked_.sizes[change.to] += moved;
        item.label = change.to;
        if (change.other != nothing) items_[std::size_t(change.other)].label = from;
    }

    bool exchanges() const { return int64_t(items_.size()) <= most_items_exchanged; }

    // Calls visit(change) for a point that moves to each center of its list, alone or for a point from there.
    template <class Visit>
    void for_changes_of(int32_t i, const Visit& visit) const {
        const Item& item = items_[std::size_t(i)];
        for (int64_t at = asked_.starts[item.point]; at < asked_.starts[item.point + 1]; ++at) {
            const int32_t to = asked_.choices[at];
            if (to == item.label) continue;
            visit(change(i, to, nothing));
            for (int32_t k = 0; exchanges() && k < int32_t(items_.size()); ++k) {
                const Item& other = items_[std::size_t(k)];
                if (other.label == to && other.amount > 0 && other.amount != item.amount)
                    visit(change(i, to, k));
            }
        }
    }

    // Returns the change that mends most for its cost, or none.
    Change best_change() const {
        Change best;
        if (meets_limits()) return best;
        double best_rate = infinity;
        for (int32_t i = 0; i < int32_t(items_.size()); ++i) {
            if (!(items_[std::size_t(i)].amount > 0)) continue;
            for_changes_of(i, [&](const Change& change) {
                if (!(change.mended > least_)) return;
                const double rate = change.cost / change.mended;
                if (rate < best_rate) best_rate = rate, best = change;
            });
        }
        return best;
    }

    bool meets_limits() const {
        for (int64_t j = 0; j < ground_; ++j)
            if (lack(j, asked_.sizes[j]) > least_) return false;
        return true;
    }

    // Makes changes that lower the cost and miss no limit by more; returns whether there was one.
    bool lower_cost() {
        bool has_fallen = false;
        for (int32_t i = 0; i < int32_t(items_.size()); ++i) {
            check_interrupt();
            if (!(items_[std::size_t(i)].amount > 0)) continue;
            Change best;
            for_changes_of(i, [&](const Change& change) {
                if (change.mended >= -least_ && change.cost < best.cost) best = change;
            });
            const double size = items_[std::size_t(i)].amount *
                                distance_to(items_[std::size_t(i)].point, items_[std::size_t(i)].label);
            if (best.item == nothing || !(best.cost < -rounding * size)) continue;
            make(best);
            has_fallen = true;
        }
        return has_fallen;
    }

    const TransportRequest& asked_;
    const int64_t ground_;
    std::vector<Item> items_;
    std::vector<Arc> arcs_;
    std::vector<std::vector<std::pair<int32_t, int32_t>>> known_;  // by cluster: ends in order, and arcs
    std::vector<std::vector<Passing>> there_, back_;               // from each cluster, and to it
    std::vector<double> wished_;
    std::vector<double> prices_;  // (n_centers + 1,), that of the ground last
    std::vector<Reached> reached_;
    int64_t search_ = 0;
    bool is_forward_ = true;     // the search
    double to_goal_ = infinity;  // no farther than the nearest goal reached
    std::vector<int64_t> settled_;
    double least_ = 0;     // weight that is not rounding
    double lightest_ = 0;  // weight of a point
    double total_ = 0;
    std::vector<double> others_;  // (n_centers,) weight of points without a list
};

}  // namespace

double transport(const TransportRequest& request) { return Transport(request).run(); }

}  // namespace powermeans
