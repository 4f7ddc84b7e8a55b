#include "transport.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <vector>

#include "interrupts.hpp"

namespace powermeans {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int64_t nothing = -1;

// Of the total weight: less than this is rounding.
constexpr double rounding = 1e-12;
// Of the mean weight of a point. Without it parts would get ever smaller, as remainders of remainders.
constexpr double smallest_part = 1e-2;

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
    int32_t to;
    std::vector<Offer> offers;  // a heap, the cheapest first
};

// Where a shortest path enters a cluster.
struct Reached {
    double distance = infinity;
    int64_t from = nothing;
    int32_t item = nothing;  // that moves; none on the arcs to and from the ground
    int64_t search = nothing;
    bool is_settled = false;
};

// The clusters, and a ground that trades wishes: from a cluster to the ground, the cluster wishes one more;
// back, one fewer. So all imbalances add up to zero. Shortest paths lead from clusters that have more than
// they wish to those that have less. Prices keep the cost of every arc, with the price of its end and less
// that of its begin, at least zero.
class Transport {
  public:
    explicit Transport(const TransportRequest& request)
        : asked_(request),
          ground_(request.n_centers),
          arcs_(std::size_t(request.n_centers)),
          wished_(std::size_t(request.n_centers)),
          prices_(request.prices, request.prices + request.n_centers),
          reached_(std::size_t(request.n_centers + 1)) {
        prices_.push_back(0);  // of the ground
        for (int64_t i = 0; i < asked_.n_points; ++i)
            items_.push_back({int32_t(i), asked_.labels[i], asked_.weights ? asked_.weights[i] : 1.0});
        for (int64_t i = 0; i < asked_.n_points; ++i) offer(int32_t(i), false);
        for (auto& arcs : arcs_)
            for (Arc& arc : arcs) std::make_heap(arc.offers.begin(), arc.offers.end(), std::greater<>());
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
        for (int64_t j = 0; j < ground_; ++j) imbalance_of_ground_ -= imbalance(j);
    }

    double run() {
        for (int64_t source = 0; source <= ground_; ++source)
            while (imbalance(source) > least_ && send_from(source)) check_interrupt();
        for (int64_t j = 0; j < ground_; ++j) asked_.prices[j] = prices_[std::size_t(j)] - prices_.back();
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

    double imbalance(int64_t j) const {
        return j == ground_ ? imbalance_of_ground_ : asked_.sizes[j] - wished_[std::size_t(j)];
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

    Arc& arc(int32_t from, int32_t to) {
        auto& arcs = arcs_[std::size_t(from)];
        for (Arc& arc : arcs)
            if (arc.to == to) return arc;
        arcs.push_back({to, {}});
        return arcs.back();
    }

    // Offers an item to the other centers of its list.
    void offer(int32_t item, bool are_heaps) {
        const Item& own = items_[std::size_t(item)];
        const double distance = distance_to(own.point, own.label);
        for (int64_t at = asked_.starts[own.point]; at < asked_.starts[own.point + 1]; ++at) {
            if (asked_.choices[at] == own.label) continue;
            auto& offers = arc(own.label, asked_.choices[at]).offers;
            offers.push_back({asked_.distances[at] - distance, item});
            if (are_heaps) std::push_heap(offers.begin(), offers.end(), std::greater<>());
        }
    }

    bool holds(int64_t cluster, const Offer& offer) const {
        const Item& item = items_[std::size_t(offer.item)];
        return item.label == cluster && item.amount > 0;
    }

    // Returns the cheapest offer, or null.
    const Offer* cheapest(int64_t from, Arc& arc) const {
        auto& offers = arc.offers;
        while (!offers.empty() && !holds(from, offers.front())) {
            std::pop_heap(offers.begin(), offers.end(), std::greater<>());
            offers.pop_back();
        }
        return offers.empty() ? nullptr : &offers.front();
    }

    // ---- Shortest paths -------------------------------------------------------------------------

    using Waiting = std::pair<double, int64_t>;
    using Queue = std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>>;

    // Sends weight from where there is too much along the shortest path; returns false where none leads on.
    bool send_from(int64_t source) {
        const int64_t sink = find_sink(source);
        if (sink == nothing) return false;
        const double amount = amount_along(source, sink);
        for (int64_t at = sink; at != source; at = reached_[std::size_t(at)].from) move_along(at, amount);
        return true;
    }

    // Finds the nearest cluster that has too little, and raises the prices of those that are nearer.
    int64_t find_sink(int64_t source) {
        Queue queue;
        std::vector<int64_t> settled;
        ++search_;
        reach({0, source, nothing}, source, queue);
        while (!queue.empty()) {
            const auto [distance, node] = queue.top();
            queue.pop();
            Reached& here = reached_[std::size_t(node)];
            if (here.is_settled) continue;
            here.is_settled = true;
            if (imbalance(node) < -least_) {
                for (int64_t nearer : settled)
                    prices_[std::size_t(nearer)] += distance - reached_[std::size_t(nearer)].distance;
                return node;
            }
            settled.push_back(node);
            visit_neighbors(node, distance, queue);
        }
        return nothing;
    }

    struct Way {
        double distance;
        int64_t from;
        int32_t item;
    };

    void reach(const Way& way, int64_t node, Queue& queue) {
        Reached& there = reached_[std::size_t(node)];
        if (there.search == search_ && (there.is_settled || there.distance <= way.distance)) return;
        there = {way.distance, way.from, way.item, search_, false};
        queue.push({way.distance, node});
    }

    void visit_neighbors(int64_t node, double distance, Queue& queue) {
        const auto visit = [&](int64_t to, double cost, int32_t item) {
            const double reduced = cost + prices_[std::size_t(to)] - prices_[std::size_t(node)];
            reach({distance + std::max(reduced, 0.0), node, item}, to, queue);
        };
        if (node == ground_) {
            for (int64_t j = 0; j < ground_; ++j)
                if (fewer(j) > least_) visit(j, cost_of_wish(j, -1), nothing);
            return;
        }
        for (Arc& arc : arcs_[std::size_t(node)])
            if (const Offer* offer = cheapest(node, arc)) visit(arc.to, offer->cost, offer->item);
        if (more(node) > least_) visit(ground_, cost_of_wish(node, 1), nothing);
    }

    // ---- Moves along a path ---------------------------------------------------------------------

    // How much more or fewer a cluster may wish. A curved cost changes with each step.
    double more(int64_t j) const { return stepped(asked_.most_sizes[j] - wished_[std::size_t(j)]); }
    double fewer(int64_t j) const { return stepped(wished_[std::size_t(j)] - asked_.least_sizes[j]); }
    double stepped(double room) const {
        if (asked_.curvature == 0) return room;
        return std::min(room, asked_.weights ? curved_steps * asked_.mean_size : 1.0);
    }
    static constexpr double curved_steps = 1e-3;

    double amount_along(int64_t source, int64_t sink) const {
        double amount = std::min(imbalance(source), -imbalance(sink));
        for (int64_t at = sink; at != source; at = reached_[std::size_t(at)].from) {
            const Reached& way = reached_[std::size_t(at)];
            const double room = way.item != nothing   ? items_[std::size_t(way.item)].amount
                                : way.from == ground_ ? fewer(at)
                                                      : more(way.from);
            amount = std::min(amount, room);
        }
        return amount;
    }

    void move_along(int64_t to, double amount) {
        const Reached& way = reached_[std::size_t(to)];
        if (way.item == nothing) return trade_wish(way.from == ground_ ? to : way.from, to, amount);
        Item& item = items_[std::size_t(way.item)];
        asked_.sizes[way.from] -= amount;
        asked_.sizes[to] += amount;
        if (item.amount - amount <= least_) {
            item.label = int32_t(to);
            offer(way.item, true);
        } else {
            item.amount -= amount;
            items_.push_back({item.point, int32_t(to), amount});
            offer(int32_t(items_.size()) - 1, true);
        }
    }

    void trade_wish(int64_t cluster, int64_t to, double amount) {
        const double change = to == ground_ ? amount : -amount;
        wished_[std::size_t(cluster)] += change;
        imbalance_of_ground_ += change;
    }

    // ---- Whole points ---------------------------------------------------------------------------

    // Gives each point to the center that has most of it, and then moves light points to meet the limits.
    void join_parts() {
        std::vector<int32_t> most_of(std::size_t(asked_.n_points), nothing);
        for (int32_t i = 0; i < int32_t(items_.size()); ++i) {
            int32_t& best = most_of[std::size_t(items_[std::size_t(i)].point)];
            if (best == nothing || items_[std::size_t(i)].amount > items_[std::size_t(best)].amount) best = i;
        }
        std::copy(others_.begin(), others_.end(), asked_.sizes);
        for (int32_t i = 0; i < int32_t(items_.size()); ++i) {
            Item& item = items_[std::size_t(i)];
            item.amount = i == most_of[std::size_t(item.point)] ? asked_.weights[item.point] : 0;
            asked_.sizes[item.label] += item.amount;
        }
        least_ = rounding * total_;
        while (move_best()) check_interrupt();
    }

    double missed_by(int64_t j, double size) const {
        return std::max({size - asked_.most_sizes[j], asked_.least_sizes[j] - size, 0.0});
    }

    // Moves the point that mends most for its cost; returns false where none mends anything.
    bool move_best() {
        double best_rate = infinity;
        int32_t best_item = nothing, best_to = nothing;
        for (int32_t i = 0; i < int32_t(items_.size()); ++i) {
            const Item& item = items_[std::size_t(i)];
            if (!(item.amount > 0)) continue;
            const double distance = distance_to(item.point, item.label);
            for (int64_t at = asked_.starts[item.point]; at < asked_.starts[item.point + 1]; ++at) {
                const int32_t to = asked_.choices[at];
                const double mended = mended_by(item, to);
                if (!(mended > least_)) continue;
                const double rate = item.amount * (asked_.distances[at] - distance) / mended;
                if (rate < best_rate) best_rate = rate, best_item = i, best_to = to;
            }
        }
        if (best_item == nothing) return false;
        Item& item = items_[std::size_t(best_item)];
        asked_.sizes[item.label] -= item.amount;
        asked_.sizes[best_to] += item.amount;
        item.label = best_to;
        return true;
    }

    double mended_by(const Item& item, int32_t to) const {
        if (to == item.label) return 0;
        const double from_size = asked_.sizes[item.label], to_size = asked_.sizes[to];
        return missed_by(item.label, from_size) - missed_by(item.label, from_size - item.amount) +
               missed_by(to, to_size) - missed_by(to, to_size + item.amount);
    }

    const TransportRequest& asked_;
    const int64_t ground_;
    std::vector<Item> items_;
    std::vector<std::vector<Arc>> arcs_;  // from each cluster
    std::vector<double> wished_;
    std::vector<double> prices_;  // (n_centers + 1,), that of the ground last
    std::vector<Reached> reached_;
    int64_t search_ = 0;
    double imbalance_of_ground_ = 0;
    double least_ = 0;  // weight that is not rounding
    double total_ = 0;
    std::vector<double> others_;  // (n_centers,) weight of points without a list
};

}  // namespace

double transport(const TransportRequest& request) { return Transport(request).run(); }

}  // namespace powermeans
