#include "order.hpp"

#include <algorithm>
#include <numeric>

#include "kernels.hpp"
#include "rounding.hpp"

namespace powermeans {
namespace {

constexpr int64_t most_bytes_packed = int64_t{16} << 20;
constexpr int64_t groups_per_stripe = 256;

// More would need more memory at a time; so many fill any space densely.
constexpr int64_t points_sorted_together = int64_t{1} << 20;
// Parts this small are given to the threads whole.
constexpr int64_t most_parts = 64;

template <class V>
struct Splitter {
    const V* values;
    int64_t n_features;
    int64_t leaf_points;

    struct Keyed {
        V key;
        int32_t point;
        bool operator<(const Keyed& other) const {
            return key < other.key || (key == other.key && point < other.point);
        }
    };

    int64_t widest_feature(const int32_t* points, int64_t n, std::vector<V>& low,
                           std::vector<V>& high) const {
        const V* first = values + points[0] * n_features;
        low.assign(first, first + n_features);
        high.assign(first, first + n_features);
        for (int64_t p = 1; p < n; ++p) {
            const V* point = values + points[p] * n_features;
            for (int64_t f = 0; f < n_features; ++f) {
                low[std::size_t(f)] = std::min(low[std::size_t(f)], point[f]);
                high[std::size_t(f)] = std::max(high[std::size_t(f)], point[f]);
            }
        }
        int64_t widest = 0;
        for (int64_t f = 1; f < n_features; ++f) {
            const std::size_t a = std::size_t(f), b = std::size_t(widest);
            // Halved, since the width of a feature may overflow.
            if (high[a] / 2 - low[a] / 2 > high[b] / 2 - low[b] / 2) widest = f;
        }
        return widest;
    }

    // Whole leaves on the left, so that all but the last are full.
    int64_t left_share(int64_t n) const {
        const int64_t n_leaves = divide_up(n, leaf_points);
        return n_leaves / 2 * leaf_points;
    }

    int64_t split(int32_t* points, int64_t n, std::vector<Keyed>& keyed) const {
        std::vector<V> low, high;
        const int64_t feature = widest_feature(points, n, low, high), n_left = left_share(n);
        keyed.resize(std::size_t(n));
        for (int64_t p = 0; p < n; ++p)
            keyed[std::size_t(p)] = {values[points[p] * n_features + feature], points[p]};
        std::nth_element(keyed.begin(), keyed.begin() + n_left, keyed.end());
        for (int64_t p = 0; p < n; ++p) points[p] = keyed[std::size_t(p)].point;
        return n_left;
    }

    void split_down(int32_t* points, int64_t n, std::vector<Keyed>& keyed) const {
        while (n > leaf_points) {
            const int64_t n_left = split(points, n, keyed);
            split_down(points, n_left, keyed);
            points += n_left;
            n -= n_left;
        }
        // nth_element leaves an order that is the library's own.
        std::sort(points, points + n);
    }
};

}  // namespace

template <class V>
std::vector<int32_t> spatial_order(const V* values, int64_t n_points, int64_t n_features, int64_t leaf_points,
                                   Team& team) {
    std::vector<int32_t> order(static_cast<std::size_t>(n_points));
    std::iota(order.begin(), order.end(), 0);
    const Splitter<V> splitter{values, n_features, leaf_points};
    std::vector<int64_t> starts;
    for (int64_t start = 0; start < n_points; start += points_sorted_together) starts.push_back(start);
    starts.push_back(n_points);
    const int n_workers = n_points < (1 << 15) ? 1 : team.n_threads();
    std::vector<std::vector<typename Splitter<V>::Keyed>> rooms(static_cast<std::size_t>(n_workers));
    const int64_t smallest_part =
        std::max(leaf_points, std::min(n_points, points_sorted_together) / most_parts);
    // Parts are halved all at a time, until there are enough to be split down each on its own.
    for (bool is_halved = true; is_halved;) {
        const std::vector<int64_t> before = starts;
        std::vector<int64_t> n_left(before.size() - 1, 0);
        const auto part = [&](int64_t i) { return order.data() + before[std::size_t(i)]; };
        team.run(
            int64_t(n_left.size()), n_workers,
            [&](int worker, int64_t i) {
                const int64_t n = part(i + 1) - part(i);
                if (n > smallest_part)
                    n_left[std::size_t(i)] = splitter.split(part(i), n, rooms[std::size_t(worker)]);
            },
            [](int, int64_t) {});
        starts.clear();
        for (std::size_t i = 0; i < n_left.size(); ++i) {
            starts.push_back(before[i]);
            if (n_left[i]) starts.push_back(before[i] + n_left[i]);
        }
        starts.push_back(n_points);
        is_halved = starts.size() > before.size();
    }
    team.run(
        int64_t(starts.size()) - 1, n_workers,
        [&](int worker, int64_t part) {
            const int64_t begin = starts[std::size_t(part)], end = starts[std::size_t(part) + 1];
            splitter.split_down(order.data() + begin, end - begin, rooms[std::size_t(worker)]);
        },
        [](int, int64_t) {});
    return order;
}

template <class T>
const Groups<T>& Groups<T>::made_of(const T* values, int64_t n_points, int64_t n_features, const Frame& frame,
                                    bool ordered, Team& team) {
    std::call_once(made_, [&] {
        if (ordered) order_ = spatial_order(values, n_points, n_features, points_per_group, team);
        if (n_points * n_features * int64_t{sizeof(T)} <= most_bytes_packed)
            pack(values, n_points, n_features, frame, team);
    });
    return *this;
}

template <class T>
void Groups<T>::pack(const T* values, int64_t n_points, int64_t n_features, const Frame& frame, Team& team) {
    const int64_t n_groups = divide_up(n_points, points_per_group);
    scale_ = scale_for<T>(frame.extent);
    columns_ = Aligned<T>(std::size_t(n_groups * n_features * points_per_group));
    if (order()) boxes_ = Aligned<T>(std::size_t(n_groups * 2 * n_features));
    std::vector<T> origin(static_cast<std::size_t>(n_features));
    for (std::size_t f = 0; f < frame.origin.size(); ++f) origin[f] = T(frame.origin[f] * scale_);
    const auto pack_groups = [&](int, int64_t stripe) {
        const int64_t last = std::min(n_groups, (stripe + 1) * groups_per_stripe);
        for (int64_t g = stripe * groups_per_stripe; g < last; ++g)
            for (int64_t p = 0; p < points_per_group; ++p) {
                // The first point of the last group is repeated up to its end.
                const int64_t position =
                    g * points_per_group + p < n_points ? g * points_per_group + p : g * points_per_group;
                const T* from = values + (order() ? order()[position] : position) * n_features;
                for (int64_t f = 0; f < n_features; ++f) {
                    const T x = from[f] * T(scale_) - origin[std::size_t(f)];
                    columns_[std::size_t((g * n_features + f) * points_per_group + p)] = x;
                    if (!order()) continue;
                    T& low = boxes_[std::size_t(g * 2 * n_features + f)];
                    T& high = boxes_[std::size_t((g * 2 + 1) * n_features + f)];
                    low = p == 0 ? x : std::min(low, x);
                    high = p == 0 ? x : std::max(high, x);
                }
            }
    };
    const int64_t n_stripes = divide_up(n_groups, groups_per_stripe);
    team.run(n_stripes, int(std::min<int64_t>(team.n_threads(), n_stripes)), pack_groups,
             [](int, int64_t) {});
}

template class Groups<float>;
template class Groups<double>;
template std::vector<int32_t> spatial_order(const float*, int64_t, int64_t, int64_t, Team&);
template std::vector<int32_t> spatial_order(const double*, int64_t, int64_t, int64_t, Team&);

}  // namespace powermeans
