#include "moves/single_moves.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/rounding.hpp"
#include "moves/bregman_centers.hpp"
#include "moves/moving_centers.hpp"
#include "points/items.hpp"
#include "threads/interrupts.hpp"

namespace powermeans {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int64_t points_per_stripe = 512;
// A processor that has just written a point has to wait before it can read it in vectors.
constexpr int64_t points_at_once = 16;
// So many distances of a point to a center, times features, repay the time to wake a thread.
constexpr double work_per_worker = 1e5;

// ---- Passes over the points ---------------------------------------------------------------------

struct Neighbour {
    double distance;
    int32_t center;
};

struct Bound {
    double value = 0, drift = 0, share = 1;
};

struct Move {
    int64_t to = -1;  // none
    double gain = 0;
};

template <class Centers>
class SingleMoves {
  public:
    using Look = typename Centers::Look;

    SingleMoves(Items items, Centers centers, int64_t stored_per_point, const MovesRequest& request,
                Team& team)
        : stored_per_point_(stored_per_point),
          request_(request),
          items_(std::move(items)),
          team_(team),
          centers_(std::move(centers)),
          k_(request.n_centers),
          weights_(std::size_t(k_)),
          n_members_(std::size_t(k_)),
          has_changed_(std::size_t(k_), 1),
          changes_(std::size_t(k_)),
          is_candidate_(std::size_t(items_.size())),
          bounds_(std::size_t(items_.size())),
          look_(centers_.new_look()) {
        for (int64_t i = 0; i < items_.size(); ++i) {
            weights_[label(i)] += weight_of(i);
            n_members_[label(i)]++;
        }
        add_up();
        for (int64_t j = 0; j < k_; ++j) before_.push_back(centers_.state(j));
    }

    int64_t run() {
        int64_t n_moves = 0;
        for (int64_t pass = 0; pass < request_.max_passes; ++pass) {
            check_interrupt();
            if (pass == 0) find_neighbours();
            find_candidates();
            const std::vector<double> weights_before = weights_;
            const int64_t n_moved = move_candidates();
            if (n_moved == 0) break;
            n_moves += n_moved;
            has_changed_ = changes_;
            add_up();
            note_changes(weights_before);
        }
        centers_.store(k_, request_.centers);
        items_.store_labels(request_.labels);
        return n_moves;
    }

  private:
    std::size_t label(int64_t i) const { return std::size_t(items_.label[std::size_t(i)]); }
    int64_t row(int64_t i) const { return items_.row[std::size_t(i)]; }
    double weight_of(int64_t i) const { return items_.weight[std::size_t(i)]; }

    bool can_leave(int64_t i) const {
        const double weight = weight_of(i), all = weights_[label(i)];
        return n_members_[label(i)] > 1 && all - weight > least_share * all;
    }

    // Returns what the cluster of the point loses with it for each weight, and the squared distance to its
    // center.
    std::pair<double, double> relief(int64_t i, const Look& look) const {
        const double sq_own = centers_.sq_dist(look, int64_t(label(i)));
        return {centers_.relief(look, int64_t(label(i)), sq_own, weights_[label(i)], weight_of(i)), sq_own};
    }

    double burden(int64_t j, const Look& look, double weight, double limit) const {
        return centers_.burden(look, j, weights_[std::size_t(j)], weight, limit);
    }

    // Moves the centers of the clusters that changed to their means, so that rounding does not pile up.
    void add_up() {
        centers_.begin_sums();
        for (int64_t i = 0; i < items_.size(); ++i)
            if (has_changed_[label(i)]) centers_.add(int64_t(label(i)), weight_of(i), row(i));
        for (int64_t j = 0; j < k_; ++j)
            if (has_changed_[std::size_t(j)] && weights_[std::size_t(j)] > 0)
                centers_.end_sums(j, weights_[std::size_t(j)]);
    }

    // Notes by how much this pass may have brought other clusters nearer to any point: centers have moved,
    // and clusters with less weight take a point at less cost.
    void note_changes(const std::vector<double>& weights_before) {
        double drift = 0, share = 1;
        for (int64_t j = 0; j < k_; ++j) {
            const std::size_t at = std::size_t(j);
            if (!has_changed_[at]) continue;
            if constexpr (Centers::is_euclidean)
                drift = std::max(drift, centers_.sq_dist_from(before_[at], j));
            before_[at] = centers_.state(j);
            share = std::min(share, weights_before[at] > 0 ? weights_[at] / weights_before[at] : 1.0);
        }
        drift_ += std::sqrt(drift) * (1 + 1e-9);
        share_ *= std::sqrt(share);
    }

    int workers(double n_distances) const {
        const double work = n_distances * double(stored_per_point_ + 8);
        return int(std::clamp(work / work_per_worker, 1.0, double(team_.n_threads())));
    }

    // Lists the nearest centers of each, the nearest first, before any center drifts.
    void find_neighbours() {
        if (!Centers::is_euclidean) return;
        n_listed_ = std::min(most_neighbours, k_ - 1);
        neighbours_.resize(std::size_t(k_ * n_listed_));
        constexpr int64_t centers_per_stripe = 16;
        team_.run(divide_up(k_, centers_per_stripe), workers(double(k_) * double(k_)),
                  [&](int, int64_t stripe) {
                      const int64_t first = stripe * centers_per_stripe;
                      for (int64_t j = first; j < std::min(k_, first + centers_per_stripe); ++j)
                          list_neighbours(j);
                  });
    }

    void list_neighbours(int64_t j) {
        std::vector<Neighbour> others;
        for (int64_t other = 0; other < k_; ++other)
            if (other != j) others.push_back({std::sqrt(centers_.sq_dist_between(j, other)), int32_t(other)});
        const auto is_nearer = [](const Neighbour& a, const Neighbour& b) {
            return a.distance < b.distance || (a.distance == b.distance && a.center < b.center);
        };
        std::partial_sort_copy(others.begin(), others.end(), neighbours_.begin() + j * n_listed_,
                               neighbours_.begin() + (j + 1) * n_listed_, is_nearer);
    }

    void find_candidates() {
        least_weight_ = *std::min_element(weights_.begin(), weights_.end());
        team_.run(divide_up(items_.size(), points_per_stripe),
                  workers(double(items_.size()) * double(std::min<int64_t>(k_, 8))),
                  [&](int, int64_t stripe) {
                      std::vector<Look> looks(points_at_once, centers_.new_look());
                      const int64_t end = std::min(items_.size(), (stripe + 1) * points_per_stripe);
                      for (int64_t i = stripe * points_per_stripe; i < end; i += points_at_once) {
                          const int64_t n = std::min(points_at_once, end - i);
                          for (int64_t p = 0; p < n; ++p) centers_.look_at(row(i + p), looks[std::size_t(p)]);
                          for (int64_t p = 0; p < n; ++p)
                              is_candidate_[std::size_t(i + p)] = would_move(i + p, looks[std::size_t(p)]);
                      }
                  });
    }

    // Returns whether another cluster would be better. The bound of a point is the root of what the best of
    // them would add for each weight, or less; it falls as centers drift.
    bool would_move(int64_t i, const Look& look) {
        if (!can_leave(i)) return false;
        const auto [most, sq_own] = relief(i, look);
        Bound& bound = bounds_[std::size_t(i)];
        const double now = bound.value * (share_ / bound.share) - (drift_ - bound.drift);
        if (Centers::is_euclidean && now > 0 && now * now * (1 - 1e-9) > most) return false;
        const double least = least_burden(i, look, most, sq_own);
        bound = {std::sqrt(least), drift_, share_};
        return least < most;
    }

    // Returns what the point would add to the best other cluster, or what it adds to its own if that is less.
    double least_burden(int64_t i, const Look& look, double most, double sq_own) const {
        const double weight = weight_of(i);
        // By the triangle inequality no center is better that is farther than this from its own.
        const double farthest =
            (std::sqrt(sq_own) + std::sqrt(most * (1 + weight / least_weight_))) * (1 + 1e-9) + 2 * drift_;
        const Neighbour* listed = neighbours_.data() + int64_t(label(i)) * n_listed_;
        double least = infinity;
        for (int64_t n = 0; n < n_listed_; ++n) {
            if (listed[n].distance > farthest) return std::min(least, most);
            least = std::min(least, burden(listed[n].center, look, weight, infinity));
        }
        if (n_listed_ == k_ - 1 && n_listed_ > 0) return least;
        for (int64_t j = 0; j < k_; ++j)
            if (j != int64_t(label(i)))
                least = std::min(least, burden(j, look, weight, std::min(least, most)));
        return least;
    }

    int64_t move_candidates() {
        int64_t n_moved = 0;
        std::fill(changes_.begin(), changes_.end(), 0);
        for (int64_t i = 0; i < items_.size(); ++i) {
            if (!is_candidate_[std::size_t(i)] || !can_leave(i)) continue;
            centers_.look_at(row(i), look_);
            const Move best = best_move(i);
            if (best.to < 0) continue;
            move(i, best.to);
            ++n_moved;
        }
        return n_moved;
    }

    Move best_move(int64_t i) const {
        const auto [most, sq_own] = relief(i, look_);
        const double weight = weight_of(i);
        Move best;
        double least = infinity;
        for (int64_t j = 0; j < k_; ++j) {
            if (j == int64_t(label(i))) continue;
            const double added = burden(j, look_, weight, least);
            if (added >= least) continue;
            least = added;
            best.to = j;
        }
        best.gain = most - least;
        if (!(best.gain > least_gain_of_a_move * most + centers_.rounding(look_, sq_own, least)))
            best.to = -1;
        return best;
    }

    void move(int64_t i, int64_t to) {
        const std::size_t from = label(i);
        const double weight = weight_of(i);
        weights_[from] -= weight;
        weights_[std::size_t(to)] += weight;
        --n_members_[from];
        ++n_members_[std::size_t(to)];
        centers_.shift(int64_t(from), -weight / weights_[from], row(i), look_);
        centers_.shift(to, weight / weights_[std::size_t(to)], row(i), look_);
        changes_[from] = changes_[std::size_t(to)] = 1;
        items_.label[std::size_t(i)] = int32_t(to);
        bounds_[std::size_t(i)] = {};  // another cluster is its own now
    }

    int64_t stored_per_point_;
    const MovesRequest& request_;
    Items items_;
    Team& team_;
    Centers centers_;
    int64_t k_;
    std::vector<double> weights_;              // (n_centers,)
    std::vector<int64_t> n_members_;           // (n_centers,) points that have weight
    std::vector<char> has_changed_, changes_;  // (n_centers,) in the last pass, and in this one
    std::vector<char> is_candidate_;           // (n_points,)
    std::vector<Neighbour> neighbours_;        // (n_centers, n_listed_)
    int64_t n_listed_ = 0;
    double least_weight_ = 0;
    std::vector<Bound> bounds_;                    // (n_points,)
    std::vector<typename Centers::State> before_;  // (n_centers,) the centers before the pass
    double drift_ = 0, share_ = 1;                 // of all passes so far, as in `note_changes`
    Look look_;
};

}  // namespace

template <class Source>
int64_t move_points(const Source& source, const MovesRequest& request, Team& team) {
    Items items = items_of(source, request.order, request.sample_weight, request.labels);
    return with_centers(source, request.phi, [&](auto kind) {
        using Centers = typename decltype(kind)::Type;
        Centers centers(source, request.phi, request.centers, request.n_centers);
        return SingleMoves<Centers>(std::move(items), std::move(centers), source.stored_per_point(), request,
                                    team)
            .run();
    });
}

namespace {

// Adds up runs of numbers of at least zero without a difference, which would cancel.
class SumsOfRuns {
  public:
    SumsOfRuns(const double* numbers, int64_t n) : n_(n), tree_(std::size_t(2 * n)) {
        std::copy_n(numbers, n, tree_.begin() + n);
        for (std::size_t i = std::size_t(n) - 1; i > 0; --i) tree_[i] = tree_[2 * i] + tree_[2 * i + 1];
    }

    double of(int64_t first, int64_t end) const {
        double sum = 0;
        for (first += n_, end += n_; first < end; first /= 2, end /= 2) {
            if (first % 2) sum += tree_[std::size_t(first++)];
            if (end % 2) sum += tree_[std::size_t(--end)];
        }
        return sum;
    }

  private:
    int64_t n_;
    std::vector<double> tree_;  // the numbers at the end; before them the sums of two each
};

// Counts in CSR from centers: a count of zero is as far from a center as the center's entry is large.
template <class V>
class SparseCounts {
  public:
    SparseCounts(const CsrSource<V>& source, const Phi& phi, const double* centers, int64_t n_centers)
        : source_(source),
          centers_(centers),
          unit_(phi.x_log_x),
          cost_(chosen_instruction_set().pair_kernels->x_log_x) {
        for (int64_t j = 0; j < n_centers; ++j)
            runs_.emplace_back(centers + j * source.n_features, source.n_features);
    }

    struct Look {
        int64_t i;
        std::vector<double> point, center;  // where the point has entries
    };
    Look new_look() const { return {}; }
    void look_at(int64_t i, Look& look) const { look.i = i; }

    double unit() const { return unit_; }
    double sq_dist(Look& look, int64_t j) const {
        const int64_t begin = source_.row_starts[look.i], end = source_.row_starts[look.i + 1];
        const std::size_t width = std::size_t(padded(end - begin));
        look.point.assign(width, OfFeatures::padding);
        look.center.assign(width, OfFeatures::padding);
        const double* center = centers_ + j * source_.n_features;
        double of_zeros = 0;
        int64_t next = 0;
        for (int64_t e = begin; e < end; ++e) {
            const int64_t column = source_.columns[e];
            look.point[std::size_t(e - begin)] = double(source_.values[e]);
            look.center[std::size_t(e - begin)] = center[column];
            of_zeros += runs_[std::size_t(j)].of(next, column);
            next = column + 1;
        }
        of_zeros += runs_[std::size_t(j)].of(next, source_.n_features);
        return of_zeros + cost_(look.point.data(), look.center.data(), int64_t(width), 0, 0,
                                std::numeric_limits<double>::infinity());
    }

  private:
    const CsrSource<V>& source_;
    const double* centers_;
    double unit_;
    std::vector<SumsOfRuns> runs_;  // of each center
    PointCost cost_;
};

template <class At>
void distances_at(const At& at, int64_t n_points, const int32_t* labels, Team& team, double* distances) {
    constexpr int64_t points_per_stripe = 256;
    const auto compute = [&](int, int64_t stripe) {
        check_interrupt();
        auto look = at.new_look();
        const int64_t end = std::min(n_points, (stripe + 1) * points_per_stripe);
        for (int64_t i = stripe * points_per_stripe; i < end; ++i) {
            at.look_at(i, look);
            distances[i] = at.unit() * at.sq_dist(look, labels[i]);
        }
    };
    team.run(divide_up(n_points, points_per_stripe), team.n_threads(), compute);
}

}  // namespace

template <class Source>
void distances_to_own(const Source& source, const Phi& phi, const double* centers, int64_t n_centers,
                      const int32_t* labels, Team& team, double* distances) {
    if constexpr (!Source::is_dense)
        if (phi.x_log_x > 0 && phi.square + phi.minus_log + phi.inverse == 0) {
            const SparseCounts<typename Source::Stored> at(source, phi, centers, n_centers);
            return distances_at(at, source.n_points, labels, team, distances);
        }
    with_centers(source, phi, [&](auto kind) {
        const typename decltype(kind)::Type at(source, phi, centers, n_centers);
        distances_at(at, source.n_points, labels, team, distances);
    });
}

template int64_t move_points(const DenseSource<float>&, const MovesRequest&, Team&);
template int64_t move_points(const DenseSource<double>&, const MovesRequest&, Team&);
template int64_t move_points(const CsrSource<float>&, const MovesRequest&, Team&);
template int64_t move_points(const CsrSource<double>&, const MovesRequest&, Team&);
template void distances_to_own(const DenseSource<float>&, const Phi&, const double*, int64_t, const int32_t*,
                               Team&, double*);
template void distances_to_own(const DenseSource<double>&, const Phi&, const double*, int64_t, const int32_t*,
                               Team&, double*);
template void distances_to_own(const CsrSource<float>&, const Phi&, const double*, int64_t, const int32_t*,
                               Team&, double*);
template void distances_to_own(const CsrSource<double>&, const Phi&, const double*, int64_t, const int32_t*,
                               Team&, double*);

}  // namespace powermeans
