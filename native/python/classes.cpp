// The classes of the Python module: points in memory, the team that sweeps over them, and their moments.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "moves/online.hpp"
#include "moves/single_moves.hpp"
#include "moves/swaps.hpp"
#include "python/arguments.hpp"
#include "python/module.hpp"
#include "seeds/draw.hpp"
#include "seeds/seed.hpp"
#include "sweep/sweep.hpp"

namespace powermeans {
namespace {

// Points with their weights and the threads that sweep over them.
template <class Source>
class Points {
  public:
    using T = typename Source::Computed;
    using Centers = In<double, 2>;

    Points(Source source, std::optional<Vector> sample_weight, Team& team, std::vector<nb::object> kept)
        : source_(std::move(source)),
          sample_weight_(std::move(sample_weight)),
          team_(team),
          kept_(std::move(kept)) {
        of_points(sample_weight_, "sample_weight");  // throws where there are more or fewer
        require(source_.n_points > 0 && source_.n_features > 0,
                "there must be at least one point and one feature");
    }

    nb::tuple sweep_hard(Centers centers) const { return sums(request(Task::hard_sums, centers)); }

    nb::tuple sweep_power(Centers centers, double power, double mean_exponent, double mean_unit) const {
        require(power < 0 && std::isfinite(power), "power must be negative and finite");
        require(mean_unit > 0 && std::isfinite(mean_unit), "mean_unit must be positive and finite");
        Request<T> asked = request(Task::soft_sums, centers);
        asked.power = power;
        asked.mean_exponent = mean_exponent;
        asked.mean_unit = mean_unit;
        return sums(asked);
    }

    nb::tuple sweep_gaussian(Centers centers, double variance, std::optional<Vector> shares) const {
        require(variance > 0 && std::isfinite(variance), "variance must be positive and finite");
        Request<T> asked = request(Task::soft_sums, centers);
        asked.rule = SoftRule::gaussian;
        asked.variance = variance;
        if (shares) {
            require(shares->shape(0) == centers.shape(0), "shares must have one entry for each center");
            asked.shares = shares->data();
        }
        return sums(asked);
    }

    nb::tuple sweep_priced(Centers centers, Vector prices, std::optional<Out<int32_t, 1>> labels,
                           std::optional<Out<double, 1>> margins) const {
        require(prices.shape(0) == centers.shape(0), "prices must have one entry for each center");
        Request<T> asked = request(Task::priced_sums, centers);
        asked.prices = prices.data();
        asked.labels = of_points(labels, "labels");
        asked.margins = of_points(margins, "margins");
        return sums(asked);
    }

    // Lists for each point the center of its label and those near it by distance and price.
    void list_near(Centers centers, Vector prices, Out<int32_t, 1> labels, double reach,
                   Out<int32_t, 2> listed, Out<double, 2> distances) const {
        Request<T> asked = near_lists(centers, prices, reach, listed, distances);
        asked.labels = const_cast<int32_t*>(checked_labels(labels, centers));  // this task only reads them
        swept(asked);
    }

    nb::tuple spread(Centers centers) const {
        return as_spread(swept(request(Task::spread, centers)), centers.shape(0));
    }

    double assign(Centers centers, Out<int32_t, 1> labels, std::optional<Out<double, 1>> margins) const {
        require(!margins || is_affine(source_), "only affine distances have margins without prices");
        Request<T> asked = request(Task::assign, centers);
        asked.labels = of_points(labels, "labels");
        asked.margins = of_points(margins, "margins");
        return swept(asked).inertia;
    }

    void sq_distances(Centers centers, Out<T, 2> distances) const {
        require(int64_t(distances.shape(0)) == source_.n_points && distances.shape(1) == centers.shape(0),
                "distances must be of shape (n_points, n_centers)");
        Request<T> asked = request(Task::distances, centers);
        asked.distances = distances.data();
        swept(asked);
    }

    Result<1> potentials(Centers centers, Vector nearest) const {
        Request<T> asked = request(Task::potentials, centers);
        asked.nearest = const_cast<double*>(of_points(nearest, "nearest"));  // this task only reads it
        return to_numpy<1>(std::move(swept(asked).weights), {centers.shape(0)});
    }

    void approach(Centers centers, Out<double, 1> nearest) const {
        Request<T> asked = request(Task::approach, centers);
        asked.nearest = of_points(nearest, "nearest");
        swept(asked);
    }

    void draw(Vector nearest, std::optional<Indices> order, Vector uniforms, double exponent,
              Out<int64_t, 1> indices) const {
        require(uniforms.shape(0) == indices.shape(0), "indices must have one entry for each of uniforms");
        const Masses masses{of_points(nearest, "nearest"), weights(), of_points(order, "order"),
                            source_.n_points, exponent};
        const double* numbers = uniforms.data();
        const int64_t n_draws = int64_t(uniforms.shape(0));
        int64_t* to = indices.data();
        in_background([&] { powermeans::draw(masses, numbers, n_draws, team_, to); });
    }

    int64_t greedy_seeds(Indices order, double first, In<double, 2> others, Out<int64_t, 1> indices,
                         double seconds) const {
        require(indices.shape(0) == others.shape(0) + 1, "indices must have one entry more than others");
        SeedRequest asked = seeds_asked(order, others, indices, seconds);
        asked.first = first;
        return seeded(asked, indices);
    }

    int64_t further_seeds(Indices order, Vector nearest, double least_share, In<double, 2> others,
                          Out<int64_t, 1> indices, double seconds) const {
        require(indices.shape(0) == others.shape(0), "indices must have as many entries as others has rows");
        SeedRequest asked = seeds_asked(order, others, indices, seconds);
        asked.nearest = of_points(nearest, "nearest");
        asked.least_share = least_share;
        return seeded(asked, indices);
    }

    void expect_few_sweeps() { source_.swept_often = false; }

    double present(std::optional<Indices> order, std::optional<Vector> rates, double weight_unit,
                   Out<double, 2> centers, Out<double, 1> counts) const {
        require(!is_affine(source_), "affine distances know no online steps");
        require(centers.shape(0) > 0 && int64_t(centers.shape(1)) == source_.n_features,
                "centers must have at least one row, and as many columns as the points");
        require(counts.shape(0) == centers.shape(0), "counts must have one entry for each center");
        const OnlineRequest asked{weights(),
                                  weight_unit,
                                  of_points(order, "order"),
                                  rates ? rates->data() : nullptr,
                                  rates ? int64_t(rates->shape(0)) : 0,
                                  int64_t(centers.shape(0)),
                                  centers.data(),
                                  counts.data()};
        return in_background([&] { return powermeans::present(source_, asked, check_interrupt); });
    }

    int64_t move_points(const std::array<double, 5>& phi, Indices order, int64_t max_passes,
                        Out<int32_t, 1> labels, Out<double, 2> centers) const {
        require_moves();
        const MovesRequest asked{checked(phi),
                                 weights(),
                                 of_points(order, "order"),
                                 int64_t(centers.shape(0)),
                                 max_passes,
                                 checked_labels(labels, centers),
                                 centers.data()};
        return in_background([&] { return powermeans::move_points(source_, asked, team_); });
    }

    // Returns how many swaps were tried, how many kept, and how many distances that took.
    nb::tuple swap_centers(const std::array<double, 5>& phi, Indices order, int64_t most_in_vain,
                           double most_distances, double least_distances, double least_gain,
                           Out<int32_t, 1> labels, Out<double, 2> centers) const {
        require_moves();
        const SwapsRequest asked{checked(phi),
                                 weights(),
                                 of_points(order, "order"),
                                 int64_t(centers.shape(0)),
                                 most_in_vain,
                                 most_distances,
                                 least_distances,
                                 least_gain,
                                 checked_labels(labels, centers),
                                 centers.data()};
        const Swaps done = in_background([&] { return powermeans::swap_centers(source_, asked); });
        return nb::make_tuple(done.n_tried, done.n_kept, done.n_distances);
    }

    void distances_to_own(const std::array<double, 5>& phi, Centers centers, In<int32_t, 1> labels,
                          Out<double, 1> distances) const {
        const int32_t* of_each = checked_labels(labels, centers);
        double* to = of_points(distances, "distances");
        in_background([&] {
            powermeans::distances_to_own(source_, checked(phi), centers.data(), int64_t(centers.shape(0)),
                                         of_each, team_, to);
        });
    }

    double scale() const { return nearest_scale(source_); }

    Result<1> origin() const {
        std::vector<double> origin = source_.frame.origin;
        origin.resize(std::size_t(source_.n_features));
        return to_numpy<1>(std::move(origin), {std::size_t(source_.n_features)});
    }

    void use_heights(Vector heights) {
        source_.heights = {of_points(heights, "heights"), 0};
        for (int64_t i = 0; i < source_.n_points; ++i)
            source_.heights.largest = std::max(source_.heights.largest, std::abs(heights.data()[i]));
        heights_ = nb::cast(heights);
    }

  protected:
    SeedRequest seeds_asked(const Indices& order, const In<double, 2>& others, const Out<int64_t, 1>& indices,
                            double seconds) const {
        require(others.shape(1) > 0, "others must have at least one column");
        require(!is_affine(source_), "affine distances have no seeds of their own");
        SeedRequest asked{};
        asked.sample_weight = weights();
        asked.order = of_points(order, "order");
        asked.others = others.data();
        asked.n_seeds = int64_t(indices.shape(0));
        asked.n_candidates = int64_t(others.shape(1));
        asked.seconds = seconds;
        return asked;
    }

    int64_t seeded(const SeedRequest& asked, const Out<int64_t, 1>& indices) const {
        int64_t* to = indices.data();
        return in_background(
            [&] { return powermeans::greedy_seeds(source_, asked, team_, check_interrupt, to); });
    }

    void require_moves() const {
        require(!is_affine(source_), "affine distances know no moves of single points");
        require(source_.n_points <= std::numeric_limits<int32_t>::max(),
                "moves number the points in 32 bits: pass fewer than 2^31");
    }

    // Beyond this, squared distances of floats would overflow in every unit.
    static constexpr double farthest_from_floats = 1e45;

    static void require_near(const Centers& centers) {
        const double* values = centers.data();
        for (std::size_t i = 0; i < centers.size(); ++i)
            if (std::abs(values[i]) > farthest_from_floats)
                throw nb::value_error(
                    "a center is too far from points of float32: pass the points as float64, or centers "
                    "nearer to them");
    }

    Request<T> request(Task task, const Centers& centers) const {
        const int64_t n_lifts = is_affine(source_) ? 1 : 0;
        require(int64_t(centers.shape(1)) == source_.n_features + n_lifts,
                "centers must have as many columns as the points, and one more for lifts");
        require(centers.shape(0) > 0, "centers must have at least one row");
        require(centers.shape(0) <= std::size_t(std::numeric_limits<int32_t>::max()),
                "centers must have fewer than 2^31 rows: labels are 32 bits wide");
        if (sizeof(T) == sizeof(float) && !is_affine(source_)) require_near(centers);
        Request<T> asked{};
        asked.task = task;
        asked.raw_centers = centers.data();
        asked.n_centers = int64_t(centers.shape(0));
        asked.sample_weight = weights();
        return asked;
    }

    // Returns weighted points, weights, objective, inertia, numbers of distances and of changed labels.
    nb::tuple sums(const Request<T>& asked) const {
        return as_sums(swept(asked), std::size_t(asked.n_centers));
    }

    nb::tuple as_spread(SweepResult&& result, std::size_t k) const {
        return nb::make_tuple(to_numpy<1>(std::move(result.error), {k}),
                              to_numpy<1>(std::move(result.utility), {k}),
                              to_numpy<1>(std::move(result.weights), {k}));
    }

    nb::tuple as_sums(SweepResult&& result, std::size_t k) const {
        const std::size_t d = std::size_t(source_.n_features);
        return nb::make_tuple(to_numpy<2>(std::move(result.points), {k, d}),
                              to_numpy<1>(std::move(result.weights), {k}), result.objective, result.inertia,
                              result.n_distances, result.n_changed);
    }

    Request<T> near_lists(const Centers& centers, const Vector& prices, double reach,
                          const Out<int32_t, 2>& listed, const Out<double, 2>& distances) const {
        require(prices.shape(0) == centers.shape(0), "prices must have one entry for each center");
        require(int64_t(listed.shape(0)) == source_.n_points && listed.shape(1) > 1 &&
                    distances.shape(0) == listed.shape(0) && distances.shape(1) == listed.shape(1),
                "listed and distances must be of shape (n_points, n_most), with n_most of at least 2");
        Request<T> asked = request(Task::near_lists, centers);
        asked.prices = prices.data();
        asked.near = {int64_t(listed.shape(1)), reach, listed.data(), distances.data()};
        return asked;
    }

    SweepResult swept(const Request<T>& asked) const {
        return in_background([&] { return sweep(source_, asked, team_); });
    }

    template <class Array>
    auto* of_points(const Array& values, const char* name) const {
        require(int64_t(values.shape(0)) == source_.n_points,
                (std::string(name) + " must have one entry for each point").c_str());
        return values.data();
    }
    template <class Array>
    auto* of_points(const std::optional<Array>& values, const char* name) const {
        return values ? of_points(*values, name) : nullptr;
    }

    static Phi checked(const std::array<double, 5>& phi) {
        const auto [square, x_log_x, minus_log, inverse, length] = phi;
        require(*std::min_element(phi.begin(), phi.end()) >= 0, "no term of phi may have a negative factor");
        const double of_features = square + x_log_x + minus_log + inverse;
        require((length > 0) != (of_features > 0), "phi must have the length alone, or some other term");
        return {square, x_log_x, minus_log, inverse, length};
    }

    template <class OfEach, class Rows>
    auto* checked_labels(const OfEach& labels, const Rows& centers) const {
        require(centers.shape(0) > 0 && int64_t(centers.shape(1)) == source_.n_features,
                "centers must have at least one row, and as many columns as the points");
        auto* of_each = of_points(labels, "labels");
        const int64_t k = int64_t(centers.shape(0));
        require(std::all_of(of_each, of_each + source_.n_points, [&](int32_t j) { return j >= 0 && j < k; }),
                "labels must be numbers of centers");
        return of_each;
    }

    const double* weights() const { return of_points(sample_weight_, "sample_weight"); }

    Source source_;

    std::optional<Vector> sample_weight_;
    Team& team_;
    std::vector<nb::object> kept_;  // the owners of what source_ points to
    nb::object heights_;
};

EntryType entry_type(const std::string& name) {
    if (name == "float16") return EntryType::float16;
    if (name == "bfloat16") return EntryType::bfloat16;
    if (name == "int8") return EntryType::int8;
    require(name == "uint8", "there are no points of this type");
    return EntryType::uint8;
}

// An array of entries, and what keeps its memory.
template <class V>
struct Table {
    Entries<V> entries;
    int64_t n_points, n_features;
    nb::object kept;

    explicit Table(const In<V, 2>& values)
        : entries(values.data()),
          n_points(int64_t(values.shape(0))),
          n_features(int64_t(values.shape(1))),
          kept(nb::cast(values)) {}

    Table(const In<uint8_t, 2>& bytes, EntryType type)
        : entries(bytes.data(), type),
          n_points(int64_t(bytes.shape(0))),
          n_features(int64_t(bytes.shape(1)) / entries.bytes_each()),
          kept(nb::cast(bytes)) {
        require(int64_t(bytes.shape(1)) == n_features * entries.bytes_each(),
                "rows must have the bytes of whole entries");
    }
};

template <class V>
struct DensePoints : Points<DenseSource<V>> {
    DensePoints(In<V, 2> values, std::optional<Vector> sample_weight, nb::object team, const Moments* known)
        : DensePoints(Table<V>(values), std::move(sample_weight), team, known) {}

    // Takes the bytes of entries that are narrower than V.
    DensePoints(In<uint8_t, 2> bytes, const std::string& type, std::optional<Vector> sample_weight,
                nb::object team, const Moments* known)
        : DensePoints(Table<V>(bytes, entry_type(type)), std::move(sample_weight), team, known) {}

    void use_heights(Vector heights) {
        Points<DenseSource<V>>::use_heights(heights);
        this->source_.frame = frame_about_median(moments);
    }

    // Labels of the centers so far become those of the nearest of their neighbours. Returns the same as
    // `sweep_hard`.
    nb::tuple sweep_nearby(In<double, 2> centers, In<int32_t, 2> neighbours, Out<int32_t, 1> labels) const {
        const Request<V> asked = this->request(Task::hard_sums, centers);
        return this->as_sums(swept_nearby(asked, centers, neighbours, labels), centers.shape(0));
    }

    nb::tuple spread_nearby(In<double, 2> centers, In<int32_t, 2> neighbours, Out<int32_t, 1> labels) const {
        const Request<V> asked = this->request(Task::spread, centers);
        return this->as_spread(swept_nearby(asked, centers, neighbours, labels), centers.shape(0));
    }

    // Weighs the neighbours of each point's center; labels stay as they are.
    nb::tuple power_nearby(In<double, 2> centers, In<int32_t, 2> neighbours, Out<int32_t, 1> labels,
                           double power) const {
        require(power < 0 && std::isfinite(power), "power must be negative and finite");
        Request<V> asked = this->request(Task::soft_sums, centers);
        asked.power = power;
        return this->as_sums(swept_nearby(asked, centers, neighbours, labels), centers.shape(0));
    }

    // The same with prices; margins are over the cheapest of the other neighbours.
    nb::tuple priced_nearby(In<double, 2> centers, In<int32_t, 2> neighbours, Out<int32_t, 1> labels,
                            Vector prices, Out<double, 1> margins) const {
        require(prices.shape(0) == centers.shape(0), "prices must have one entry for each center");
        Request<V> asked = this->request(Task::priced_sums, centers);
        asked.prices = prices.data();
        asked.margins = this->of_points(margins, "margins");
        return this->as_sums(swept_nearby(asked, centers, neighbours, labels), centers.shape(0));
    }

    // Lists those of the neighbours that are near by distance and price, as `list_near` does of all centers.
    void near_nearby(In<double, 2> centers, In<int32_t, 2> neighbours, Out<int32_t, 1> labels, Vector prices,
                     double reach, Out<int32_t, 2> listed, Out<double, 2> distances) const {
        swept_nearby(this->near_lists(centers, prices, reach, listed, distances), centers, neighbours,
                     labels);
    }

    // Of points that are the centers: lists the nearest to each, with itself first.
    void list_nearby(In<double, 2> centers, std::optional<Vector> prices, Out<int32_t, 2> lists) const {
        const int64_t k = this->source_.n_points, n_listed = int64_t(lists.shape(1));
        require(!is_affine(this->source_), "affine distances know no sweeps nearby");
        require(int64_t(centers.shape(0)) == k && int64_t(centers.shape(1)) == this->source_.n_features,
                "the points must be the centers");
        require(int64_t(lists.shape(0)) == k, "lists must have a row for each center");
        require(n_listed > 0 && n_listed <= k, "lists must have one to all centers in a row");
        require(!prices || int64_t(prices->shape(0)) == k, "prices must have one entry for each center");
        const double* added = prices ? prices->data() : nullptr;
        in_background([&] {
            powermeans::list_nearby(this->source_, centers.data(), added, n_listed, this->team_,
                                    lists.data());
        });
    }

    Moments moments;

  private:
    SweepResult swept_nearby(Request<V> asked, const In<double, 2>& centers, const In<int32_t, 2>& neighbours,
                             const Out<int32_t, 1>& labels) const {
        require(this->source_.n_features > direct_max_features, "sweep points of few features as a whole");
        require(!is_affine(this->source_), "affine distances know no sweeps nearby");
        require(this->source_.n_points <= std::numeric_limits<int32_t>::max(),
                "sweeps nearby number the points in 32 bits: pass fewer than 2^31");
        const int32_t* of_each = this->checked_labels(labels, centers);
        const int64_t k = int64_t(centers.shape(0));
        require(int64_t(neighbours.shape(0)) == k && neighbours.shape(1) > 0,
                "neighbours must have a row for each center");
        require(std::all_of(neighbours.data(), neighbours.data() + neighbours.size(),
                            [&](int32_t j) { return j >= 0 && j < k; }),
                "neighbours must be numbers of centers");
        asked.labels = labels.data();
        const Nearby nearby{of_each, neighbours.data(), int64_t(neighbours.shape(1))};
        return in_background(
            [&] { return powermeans::sweep_nearby(this->source_, asked, nearby, this->team_); });
    }

    DensePoints(const Table<V>& table, std::optional<Vector> sample_weight, nb::object team,
                const Moments* known)
        : DensePoints(table, std::move(sample_weight), team,
                      moments_for(table, known, nb::cast<Team&>(team))) {}

    DensePoints(const Table<V>& table, std::optional<Vector> sample_weight, nb::object team,
                Moments described)
        : Points<DenseSource<V>>({table.entries, table.n_points, table.n_features, dense_frame<V>(described)},
                                 std::move(sample_weight), nb::cast<Team&>(team), {table.kept, team}),
          moments(std::move(described)) {}

    static Moments moments_for(const Table<V>& table, const Moments* known, Team& team) {
        require(table.n_points > 0 && table.n_features > 0,
                "there must be at least one point and one feature");
        require(!known || int64_t(known->mean.size()) == table.n_features,
                "known are the moments of points with other features");
        if (known) return *known;
        return in_background(
            [&] { return moments_of(table.entries, table.n_points, table.n_features, team); });
    }
};

template <class V>
struct CsrPoints : Points<CsrSource<V>> {
    CsrPoints(In<V, 1> values, In<int32_t, 1> columns, In<int64_t, 1> row_starts, int64_t n_features,
              double largest, std::optional<Vector> sample_weight, nb::object team)
        : Points<CsrSource<V>>({values.data(), columns.data(), row_starts.data(),
                                int64_t(row_starts.shape(0)) - 1, n_features, Frame{{}, largest}},
                               std::move(sample_weight), nb::cast<Team&>(team),
                               {nb::cast(values), nb::cast(columns), nb::cast(row_starts), team}) {
        require(row_starts.shape(0) > 0 && row_starts.data()[0] == 0 &&
                    row_starts.data()[row_starts.shape(0) - 1] == int64_t(values.shape(0)) &&
                    values.shape(0) == columns.shape(0),
                "row_starts, columns and values do not describe one sparse matrix");
    }
};

template <class Class, class Binding>
void bind_sweeps(Binding& binding) {
    binding.def("sweep_hard", &Class::sweep_hard, "centers"_a.noconvert())
        .def("sweep_power", &Class::sweep_power, "centers"_a.noconvert(), "power"_a, "mean_exponent"_a,
             "mean_unit"_a)
        .def("sweep_gaussian", &Class::sweep_gaussian, "centers"_a.noconvert(), "variance"_a,
             "shares"_a.noconvert().none())
        .def("sweep_priced", &Class::sweep_priced, "centers"_a.noconvert(), "prices"_a.noconvert(),
             "labels"_a.noconvert().none(), "margins"_a.noconvert().none())
        .def("list_near", &Class::list_near, "centers"_a.noconvert(), "prices"_a.noconvert(),
             "labels"_a.noconvert(), "reach"_a, "listed"_a.noconvert(), "distances"_a.noconvert())
        .def("spread", &Class::spread, "centers"_a.noconvert())
        .def("assign", &Class::assign, "centers"_a.noconvert(), "labels"_a.noconvert(),
             "margins"_a.noconvert().none() = nb::none())
        .def("sq_distances", &Class::sq_distances, "centers"_a.noconvert(), "distances"_a.noconvert())
        .def("potentials", &Class::potentials, "centers"_a.noconvert(), "nearest"_a.noconvert())
        .def("approach", &Class::approach, "centers"_a.noconvert(), "nearest"_a.noconvert())
        .def("draw", &Class::draw, "nearest"_a.noconvert(), "order"_a.noconvert().none(),
             "uniforms"_a.noconvert(), "exponent"_a, "indices"_a.noconvert())
        .def("greedy_seeds", &Class::greedy_seeds, "order"_a.noconvert(), "first"_a, "others"_a.noconvert(),
             "indices"_a.noconvert(), "seconds"_a = std::numeric_limits<double>::infinity())
        .def("further_seeds", &Class::further_seeds, "order"_a.noconvert(), "nearest"_a.noconvert(),
             "least_share"_a, "others"_a.noconvert(), "indices"_a.noconvert(), "seconds"_a)
        .def("expect_few_sweeps", &Class::expect_few_sweeps)
        .def("present", &Class::present, "order"_a.noconvert().none(), "rates"_a.noconvert().none(),
             "weight_unit"_a, "centers"_a.noconvert(), "counts"_a.noconvert())
        .def("move_points", &Class::move_points, "phi"_a, "order"_a.noconvert(), "max_passes"_a,
             "labels"_a.noconvert(), "centers"_a.noconvert())
        .def("swap_centers", &Class::swap_centers, "phi"_a, "order"_a.noconvert(), "most_in_vain"_a,
             "most_distances"_a, "least_distances"_a, "least_gain"_a, "labels"_a.noconvert(),
             "centers"_a.noconvert())
        .def_prop_ro("scale", &Class::scale)
        .def("origin", &Class::origin)
        .def("distances_to_own", &Class::distances_to_own, "phi"_a, "centers"_a.noconvert(),
             "labels"_a.noconvert(), "distances"_a.noconvert())
        .def("use_heights", &Class::use_heights, "heights"_a.noconvert());
}

template <class V>
void bind_points(nb::module_& module, const char* dense_name, const char* csr_name) {
    nb::class_<DensePoints<V>> dense(module, dense_name);
    dense.def(nb::init<In<V, 2>, std::optional<Vector>, nb::object, const Moments*>(), "values"_a.noconvert(),
              "sample_weight"_a.noconvert().none(), "team"_a, "known"_a.none() = nb::none());
    if constexpr (std::is_same_v<V, float>)
        dense.def(
            nb::init<In<uint8_t, 2>, const std::string&, std::optional<Vector>, nb::object, const Moments*>(),
            "bytes"_a.noconvert(), "type"_a, "sample_weight"_a.noconvert().none(), "team"_a,
            "known"_a.none() = nb::none());
    dense.def("moments", [](const DensePoints<V>& points) { return Moments(points.moments); });
    dense.def("mean", [](const DensePoints<V>& points) {
        return to_numpy<1>(std::vector<double>(points.moments.mean), {points.moments.mean.size()});
    });
    dense.def("variance", [](const DensePoints<V>& points) {
        return to_numpy<1>(std::vector<double>(points.moments.variance), {points.moments.variance.size()});
    });
    dense
        .def("list_nearby", &DensePoints<V>::list_nearby, "centers"_a.noconvert(),
             "prices"_a.noconvert().none(), "lists"_a.noconvert())
        .def("sweep_nearby", &DensePoints<V>::sweep_nearby, "centers"_a.noconvert(),
             "neighbours"_a.noconvert(), "labels"_a.noconvert())
        .def("spread_nearby", &DensePoints<V>::spread_nearby, "centers"_a.noconvert(),
             "neighbours"_a.noconvert(), "labels"_a.noconvert())
        .def("power_nearby", &DensePoints<V>::power_nearby, "centers"_a.noconvert(),
             "neighbours"_a.noconvert(), "labels"_a.noconvert(), "power"_a)
        .def("priced_nearby", &DensePoints<V>::priced_nearby, "centers"_a.noconvert(),
             "neighbours"_a.noconvert(), "labels"_a.noconvert(), "prices"_a.noconvert(),
             "margins"_a.noconvert())
        .def("near_nearby", &DensePoints<V>::near_nearby, "centers"_a.noconvert(), "neighbours"_a.noconvert(),
             "labels"_a.noconvert(), "prices"_a.noconvert(), "reach"_a, "listed"_a.noconvert(),
             "distances"_a.noconvert());
    bind_sweeps<DensePoints<V>>(dense);
    nb::class_<CsrPoints<V>> csr(module, csr_name);
    csr.def(nb::init<In<V, 1>, In<int32_t, 1>, In<int64_t, 1>, int64_t, double, std::optional<Vector>,
                     nb::object>(),
            "values"_a.noconvert(), "columns"_a.noconvert(), "row_starts"_a.noconvert(), "n_features"_a,
            "largest"_a, "sample_weight"_a.noconvert().none(), "team"_a);
    bind_sweeps<CsrPoints<V>>(csr);
}

}  // namespace

void bind_classes(nb::module_& module) {
    nb::class_<Team>(module, "Team")
        .def(nb::init<int>(), "n_threads"_a)
        .def_prop_ro("n_threads", &Team::n_threads)
        .def_prop_ro("stripes_by_worker", &Team::stripes_by_worker);
    nb::class_<Moments>(module, "Moments");
    bind_points<float>(module, "DenseFloat", "CsrFloat");
    bind_points<double>(module, "DenseDouble", "CsrDouble");
}

}  // namespace powermeans
