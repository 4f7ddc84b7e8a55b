#include "seeds/seed.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <type_traits>
#include <utility>

#include "dispatch.hpp"
#include "kernels/rounding.hpp"
#include "seeds/draw.hpp"

namespace powermeans {
namespace {

// Copies may take this many bytes, and a sixteenth of those of the points.
constexpr int64_t affordable_bytes = 40 << 20;
constexpr int64_t bytes_per_point = 32;

// Sketches are worth making from this many features and seeds on.
constexpr int64_t sketched_features = 32;
constexpr int64_t seeds_worth_sketches = 12;

// Waking a thread takes as long as this much work, in distances times features.
constexpr double work_per_thread = 1 << 18;
constexpr double work_of_a_place = 2;
constexpr double work_of_a_code = 2;
constexpr int64_t shares_per_thread = 8;

// A point is untouched by a candidate if its squared distance to its seed is up to this share of that
// between seed and candidate: a quarter by the triangle inequality, less rounding.
constexpr double untouched_share = 0.25 * (1 - 1e-5);

// Candidates whose gains differ by less than this share of the inertia are equal, and the first is kept: in a
// sample many candidates gain as much as they stand for, and rounding must not choose among them.
constexpr double share_of_ties = 1e-9;

// Makes points faster to compare, as far as memory allows: points of few features are copied into the order
// of the draws, and points of many features are sketched.
template <class V>
struct OrderedPoints {
    std::vector<V> copied;

    DenseRows<V> rows_of(const DenseSource<V>& source, const SeedRequest& request, Team& team) {
        const int64_t n = source.n_points, d = source.n_features;
        DenseRows<V> rows{source.values, scale_for<double>(source.frame.extent), d, {}};
        const int64_t affordable =
            affordable_bytes + n * d * source.values.bytes_each() / 16 - n * bytes_per_point;
        if (d >= sketched_features && request.n_seeds >= seeds_worth_sketches &&
            SketchedPoints<V>::are_affordable(source.values, n, d)) {
            rows.sketches = source.sketches->made_of(source.values, n, d, source.frame, team);
        } else if (d < sketched_features && n * d * int64_t{sizeof(V)} <= affordable) {
            copied.resize(std::size_t(n * d));
            for (int64_t place = 0; place < n; ++place)
                for_each_entry(source.values, request.order[place] * d, d,
                               [&](int64_t f, V value) { copied[std::size_t(place * d + f)] = value; });
            rows.values = Entries<V>(copied.data());
        }
        return rows;
    }

    Csr<V> rows_of(const CsrSource<V>& source, const SeedRequest&, Team&) {
        const double scale = scale_for<double>(source.frame.extent);
        return {source.values, source.columns, source.row_starts, scale, source.n_features};
    }
};

// Whether squares of differences of floats neither overflow nor vanish beside each other.
constexpr double smallest_extent_of_floats = 1e-10, largest_extent_of_floats = 1e15;

template <class Source>
bool floats_suffice(const Source& source) {
    const double extent = source.frame.extent;
    return std::is_same_v<Source, DenseSource<float>> && extent > smallest_extent_of_floats &&
           extent < largest_extent_of_floats;
}

// Candidates that are compared together, and the result.
struct Comparison {
    std::vector<int64_t> places = std::vector<int64_t>(std::size_t(candidates_per_panel));
    Aligned<double> values, sq_norms{std::size_t(candidates_per_panel)};
    Aligned<float> floats;        // empty where they are not used
    std::vector<uint8_t> nearer;  // (n_padded,)
    std::vector<int8_t> codes;
    PanelSketch sketch{};
    int best_lane = 0;
    double best_gain = -1;

    Comparison(int64_t n_places, int64_t n_features, bool in_floats)
        : values(std::size_t(n_features * candidates_per_panel)),
          floats(in_floats ? Aligned<float>(std::size_t(n_features * candidates_per_panel))
                           : Aligned<float>()),
          nearer(std::size_t(n_places)) {}

    void put(int64_t at, double value, double scale) {
        values[std::size_t(at)] = -(value * scale);
        if (floats.get()) floats[std::size_t(at)] = float(value);
    }
};

void put_sketch(const Sketches& sketches, int64_t place, int64_t lane, Comparison& to) {
    to.codes.resize(std::size_t(sketches.width * candidates_per_panel));
    const uint8_t* codes = sketches.codes + place * sketches.width;
    int32_t sum = 0;
    for (int64_t f = 0; f < sketches.width; ++f) {
        const int32_t code = int32_t(codes[f]) - middle_code;
        const int64_t step = f / codes_per_step * candidates_per_panel + lane;
        to.codes[std::size_t(step * codes_per_step + f % codes_per_step)] = int8_t(code);
        sum += code;
    }
    const double step = to.sketch.steps[lane] = sketches.steps[place];
    to.sketch.errors[lane] = sketches.errors[place];
    to.sketch.sq_norms[lane] = step * step * sketches.sq_norms[place];
    to.sketch.offsets[lane] = middle_code * sum;
    to.sketch.codes = to.codes.data();
}

template <class V>
void put_candidate(const DenseRows<V>& rows, int64_t place, int64_t lane, Comparison& to) {
    for_each_entry(rows.values, place * rows.n_features, rows.n_features, [&](int64_t f, V value) {
        to.put(f * candidates_per_panel + lane, double(value), rows.scale);
    });
    if (rows.sketches.codes) put_sketch(rows.sketches, place, lane, to);
}

template <class V>
void put_candidate(const Csr<V>& rows, int64_t place, int64_t lane, Comparison& to) {
    for (int64_t f = 0; f < rows.n_features; ++f) to.values[std::size_t(f * candidates_per_panel + lane)] = 0;
    for (int64_t e = rows.row_starts[place]; e < rows.row_starts[place + 1]; ++e)
        to.values[std::size_t(rows.columns[e] * candidates_per_panel + lane)] -=
            double(rows.values[e]) * rows.scale;
    double& sq_norm = to.sq_norms[std::size_t(lane)] = 0;
    for (int64_t e = rows.row_starts[place]; e < rows.row_starts[place + 1]; ++e) {
        const double value = to.values[std::size_t(rows.columns[e] * candidates_per_panel + lane)];
        sq_norm += value * value;
    }
}

template <class Source>
class Seeding {
  public:
    Seeding(const Source& source, const SeedRequest& request, Team& team)
        : kernels_(*chosen_instruction_set().seed_kernels),
          rows_(points_.rows_of(source, request, team)),
          order_(points_.copied.empty() ? request.order : nullptr),
          team_(team),
          n_points_(source.n_points),
          n_features_(source.n_features),
          n_padded_(round_up(source.n_points, candidates_per_panel)),
          n_stripes_(divide_up(source.n_points, places_per_stripe)),
          nearest_(std::size_t(n_padded_)),
          seed_(std::size_t(n_padded_)),
          best_(n_padded_, source.n_features, floats_suffice(source)),
          other_(request.n_candidates > candidates_per_panel ? n_padded_ : 0,
                 request.n_candidates > candidates_per_panel ? source.n_features : 0, floats_suffice(source)),
          gains_(std::size_t(n_stripes_ * candidates_per_panel)),
          cumulative_(std::size_t(n_stripes_) + 1),
          n_looked_at_(source.n_points) {
        if (request.sample_weight && !order_) {
            weight_.reserve(std::size_t(n_points_));
            for (int64_t place = 0; place < n_points_; ++place)
                weight_.push_back(request.sample_weight[request.order[place]]);
        }
        weights_ = weight_.empty() ? request.sample_weight : weight_.data();
        for (int64_t stripe = 0; stripe < n_stripes_; ++stripe)
            cumulative_[std::size_t(stripe) + 1] = mass_of_stripe(masses_without_seeds(), stripe);
        std::partial_sum(cumulative_.begin(), cumulative_.end(), cumulative_.begin());
        cumulative_weights_ = cumulative_;
    }

    int64_t run(const SeedRequest& request, const Interrupt& before_seed, int64_t* indices) {
        if (request.nearest)
            begin_beside(request);
        else
            take_first(draw(request.first));
        const double least = request.least_share * cumulative_.back();
        const auto began = std::chrono::steady_clock::now();
        for (const double* numbers = request.others; int64_t(seeds_.size()) < request.n_seeds;
             numbers += request.n_candidates) {
            if (request.nearest && !seeds_.empty() && cumulative_.back() <= least) break;
            const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - began;
            if (!seeds_.empty() && spent.count() >= request.seconds) break;
            before_seed();
            std::vector<int64_t> candidates;
            for (int64_t c = 0; c < request.n_candidates; ++c) candidates.push_back(draw(numbers[c]));
            compare(candidates);
            take_best();
        }
        for (std::size_t seed = 0; seed < seeds_.size(); ++seed)
            indices[seed] = order_ ? seeds_[seed] : request.order[seeds_[seed]];
        return int64_t(seeds_.size());
    }

  private:
    using V = typename Source::Stored;
    using Rows = std::conditional_t<Source::is_dense, DenseRows<V>, Csr<V>>;

    int64_t end_of(int64_t stripe) const { return std::min(n_points_, (stripe + 1) * places_per_stripe); }

    Standings standings() { return {nearest_.data(), seed_.data(), weights_}; }

    Masses masses() const { return {nearest_.data(), weights_, order_, n_points_, 2.0}; }
    Masses masses_without_seeds() const { return {nullptr, weights_, order_, n_points_, 2.0}; }

    double mass_of_stripe(const Masses& masses, int64_t stripe) const {
        return masses.between(stripe * places_per_stripe, end_of(stripe));
    }

    Panel panel(const Comparison& of) const {
        return {of.places.data(),  of.values.get(),   of.floats.get(),
                of.sq_norms.get(), untouched_.data(), of.sketch.codes ? &of.sketch : nullptr};
    }

    void take_first(int64_t place) {
        put_candidates(&place, 1, best_);
        std::fill_n(best_.nearer.begin(), n_points_, uint8_t{0xff});
        take_best();
    }

    // All earlier seeds count as one, that no point is known to be close to.
    void begin_beside(const SeedRequest& request) {
        for (int64_t place = 0; place < n_points_; ++place) {
            const double nearest = request.nearest[order_ ? place : request.order[place]];
            nearest_[std::size_t(place)] = nearest * rows_.scale * rows_.scale;
        }
        untouched_.push_back(0);
        add_up();
        margin_ = share_of_ties * cumulative_.back();
    }

    // Draws by weight before there is a seed, and once every point is at one.
    int64_t draw(double number) const {
        const bool has_mass = !untouched_.empty() && cumulative_.back() > 0;
        const std::vector<double>& cumulative = has_mass ? cumulative_ : cumulative_weights_;
        return point_passing(has_mass ? masses() : masses_without_seeds(), cumulative, places_per_stripe,
                             number * cumulative.back());
    }

    // Leaves the panel with the best candidate in best_, the first of equals.
    void compare(const std::vector<int64_t>& candidates) {
        best_.best_gain = -1;
        const int64_t n = int64_t(candidates.size());
        for (int64_t first = 0; first < n; first += candidates_per_panel) {
            Comparison& here = first ? other_ : best_;
            compare_panel(candidates.data() + first, std::min(candidates_per_panel, n - first), here);
            if (first && other_.best_gain > best_.best_gain + margin_) std::swap(best_, other_);
        }
    }

    void compare_panel(const int64_t* places, int64_t n_places, Comparison& to) {
        put_candidates(places, n_places, to);
        find_untouched(to, n_places);
        std::atomic<int64_t> n_looked_at{0};
        for_stripes(work_of_comparing(), [&](int64_t stripe) {
            n_looked_at +=
                kernels_.compare(rows_, panel(to), standings(), stripe * places_per_stripe, end_of(stripe),
                                 gains_.get() + stripe * candidates_per_panel, to.nearer.data());
        });
        n_looked_at_ = n_looked_at;
        double gains[candidates_per_panel] = {};
        for (int64_t i = 0; i < n_stripes_ * candidates_per_panel; ++i)
            gains[i % candidates_per_panel] += gains_[std::size_t(i)];
        to.best_lane = 0;
        for (int lane = 1; lane < n_places; ++lane)
            if (gains[lane] > gains[to.best_lane] + margin_) to.best_lane = lane;
        to.best_gain = gains[to.best_lane];
    }

    void put_candidates(const int64_t* places, int64_t n_places, Comparison& to) {
        for (int64_t lane = 0; lane < candidates_per_panel; ++lane) {
            const int64_t place = to.places[std::size_t(lane)] = places[std::min(lane, n_places - 1)];
            put_candidate(rows_, place, lane, to);
        }
    }

    void find_untouched(const Comparison& candidates, int64_t n_candidates) {
        const int64_t n_seeds = int64_t(seeds_.size());
        between_seeds_.resize(std::size_t(n_seeds * candidates_per_panel));
        kernels_.distances(rows_, panel(candidates), seeds_.data(), n_seeds, between_seeds_.data());
        for (int64_t seed = 0; seed < n_seeds; ++seed) {
            const double* sq_dist = between_seeds_.data() + seed * candidates_per_panel;
            untouched_[untouched_.size() - std::size_t(n_seeds - seed)] =
                untouched_share * *std::min_element(sq_dist, sq_dist + n_candidates);
        }
    }

    void take_best() {
        const int32_t seed = int32_t(untouched_.size());
        seeds_.push_back(best_.places[std::size_t(best_.best_lane)]);
        untouched_.push_back(0);
        for_stripes(double(n_points_) * work_of_a_place, [&](int64_t stripe) {
            kernels_.take(rows_, panel(best_), best_.best_lane, seed, best_.nearer.data(),
                          stripe * places_per_stripe, end_of(stripe), standings());
        });
        add_up();
    }

    void add_up() {
        cumulative_[0] = 0;
        for_stripes(double(n_points_) * work_of_a_place, [&](int64_t stripe) {
            cumulative_[std::size_t(stripe) + 1] = mass_of_stripe(masses(), stripe);
        });
        std::partial_sum(cumulative_.begin(), cumulative_.end(), cumulative_.begin());
    }

    double work_of_comparing() const {
        return double(n_points_) * work_of_a_place +
               double(n_looked_at_) * double(n_features_) *
                   (best_.sketch.codes ? work_of_a_code : candidates_per_panel);
    }

    template <class Work>
    void for_stripes(double work, const Work& on_stripe) {
        const int n_workers = int(std::clamp(work / work_per_thread, 1.0, double(team_.n_threads())));
        const int64_t n_shares = n_workers == 1 ? 1 : std::min(n_stripes_, n_workers * shares_per_thread);
        team_.run(n_shares, n_workers, [&](int, int64_t share) {
            const int64_t end = n_stripes_ * (share + 1) / n_shares;
            for (int64_t stripe = n_stripes_ * share / n_shares; stripe < end; ++stripe) {
                check_interrupt();
                on_stripe(stripe);
            }
        });
    }

    const SeedKernels<Rows>& kernels_;
    OrderedPoints<V> points_;
    Rows rows_;
    const int64_t* order_;  // of the draws; null where the rows are in that order
    Team& team_;
    int64_t n_points_, n_features_, n_padded_, n_stripes_;
    std::vector<double> nearest_;
    std::vector<int32_t> seed_;
    std::vector<double> weight_;  // in the order of the draws
    const double* weights_;       // by place, or null
    Comparison best_, other_;
    Aligned<double> gains_;                                // (n_stripes, candidates_per_panel)
    std::vector<double> cumulative_, cumulative_weights_;  // (n_stripes + 1,): mass before each stripe
    int64_t n_looked_at_;
    double margin_ = 0;  // by which a candidate has to be better than one before it
    std::vector<int64_t> seeds_;
    std::vector<double> untouched_, between_seeds_;  // by seed; one may stand for those before all of these
};

}  // namespace

template <class Source>
int64_t greedy_seeds(const Source& source, const SeedRequest& request, Team& team,
                     const Interrupt& before_seed, int64_t* indices) {
    return Seeding<Source>(source, request, team).run(request, before_seed, indices);
}

template int64_t greedy_seeds(const DenseSource<float>&, const SeedRequest&, Team&, const Interrupt&,
                              int64_t*);
template int64_t greedy_seeds(const DenseSource<double>&, const SeedRequest&, Team&, const Interrupt&,
                              int64_t*);
template int64_t greedy_seeds(const CsrSource<float>&, const SeedRequest&, Team&, const Interrupt&, int64_t*);
template int64_t greedy_seeds(const CsrSource<double>&, const SeedRequest&, Team&, const Interrupt&,
                              int64_t*);

}  // namespace powermeans
