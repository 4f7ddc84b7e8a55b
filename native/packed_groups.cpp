#include "packed_groups.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/sweep_kernels.hpp"
#include "rounding.hpp"

namespace powermeans {
namespace {

// Packed points take as much memory as the points themselves. This much is always affordable.
constexpr int64_t most_bytes_packed = int64_t{16} << 20;
constexpr int64_t groups_per_stripe = 256;

// Points are sorted a million at a time: more would take more memory, and make groups hardly smaller.
constexpr int64_t points_sorted_together = int64_t{1} << 20;
// Halving stops at this many parts of a million points, each of which one thread sorts further.
constexpr int64_t most_parts = 64;
// Fewer points than this are sorted before other threads are awake.
constexpr int64_t points_worth_threads = 1 << 15;

// Splits points at the median of their widest feature.
template <class V>
struct Splitter {
    const V* values;
    int64_t n_features;

    struct Keyed {
        V key;
        int32_t point;
        bool operator<(const Keyed& other) const {
            return key < other.key || (key == other.key && point < other.point);
        }
    };

    int64_t widest_feature(const int32_t* points, int64_t n) const {
        const V* first = values + points[0] * n_features;
        std::vector<V> low(first, first + n_features), high = low;
        for (int64_t p = 1; p < n; ++p) {
            const V* point = values + points[p] * n_features;
            for (std::size_t f = 0; f < low.size(); ++f) {
                low[f] = std::min(low[f], point[f]);
                high[f] = std::max(high[f], point[f]);
            }
        }
        std::size_t widest = 0;
        for (std::size_t f = 1; f < low.size(); ++f)
            // Halves, because the width of a feature may overflow.
            if (high[f] / 2 - low[f] / 2 > high[widest] / 2 - low[widest] / 2) widest = f;
        return int64_t(widest);
    }

    // Returns how many points are on the left: whole groups, so that only the last group is not full.
    int64_t split(int32_t* points, int64_t n, std::vector<Keyed>& keyed) const {
        const int64_t feature = widest_feature(points, n);
        const int64_t n_left = divide_up(n, points_per_group) / 2 * points_per_group;
        keyed.resize(std::size_t(n));
        for (int64_t p = 0; p < n; ++p)
            keyed[std::size_t(p)] = {values[points[p] * n_features + feature], points[p]};
        std::nth_element(keyed.begin(), keyed.begin() + n_left, keyed.end());
        for (int64_t p = 0; p < n; ++p) points[p] = keyed[std::size_t(p)].point;
        return n_left;
    }

    void split_down(int32_t* points, int64_t n, std::vector<Keyed>& keyed) const {
        while (n > points_per_group) {
            const int64_t n_left = split(points, n, keyed);
            split_down(points, n_left, keyed);
            points += n_left;
            n -= n_left;
        }
        // nth_element leaves an order that differs between standard libraries.
        std::sort(points, points + n);
    }
};

// Returns an order in which neighbors in space follow each other. It depends on the points, never on threads.
template <class V>
std::vector<int32_t> spatial_order(const V* values, int64_t n_points, int64_t n_features, Team& team) {
    std::vector<int32_t> order(static_cast<std::size_t>(n_points));
    std::iota(order.begin(), order.end(), 0);
    const Splitter<V> splitter{values, n_features};
    std::vector<int64_t> starts;
    for (int64_t start = 0; start < n_points; start += points_sorted_together) starts.push_back(start);
    starts.push_back(n_points);
    const int n_workers = n_points < points_worth_threads ? 1 : team.n_threads();
    std::vector<std::vector<typename Splitter<V>::Keyed>> buffers(static_cast<std::size_t>(n_workers));
    const int64_t smallest_part =
        std::max(points_per_group, std::min(n_points, points_sorted_together) / most_parts);
    // First all parts are halved again and again, then each is split down to groups by one thread.
    for (bool is_halved = true; is_halved;) {
        const std::vector<int64_t> before = starts;
        std::vector<int64_t> n_left(before.size() - 1, 0);
        team.run(int64_t(n_left.size()), n_workers, [&](int worker, int64_t part) {
            const std::size_t i = std::size_t(part);
            const int64_t n = before[i + 1] - before[i];
            if (n > smallest_part)
                n_left[i] = splitter.split(order.data() + before[i], n, buffers[std::size_t(worker)]);
        });
        starts.clear();
        for (std::size_t i = 0; i < n_left.size(); ++i) {
            starts.push_back(before[i]);
            if (n_left[i]) starts.push_back(before[i] + n_left[i]);
        }
        starts.push_back(n_points);
        is_halved = starts.size() > before.size();
    }
    team.run(int64_t(starts.size()) - 1, n_workers, [&](int worker, int64_t part) {
        const int64_t begin = starts[std::size_t(part)], end = starts[std::size_t(part) + 1];
        splitter.split_down(order.data() + begin, end - begin, buffers[std::size_t(worker)]);
    });
    return order;
}

}  // namespace

template <class T>
PackedGroups<T>::PackedGroups(const T* values, int64_t n_points, int64_t n_features, const Frame& frame,
                              bool ordered, Team& team) {
    if (ordered) order_ = spatial_order(values, n_points, n_features, team);
    if (n_points * n_features * int64_t{sizeof(T)} <= most_bytes_packed)
        pack(values, n_points, n_features, frame, team);
}

template <class T>
void PackedGroups<T>::pack(const T* values, int64_t n_points, int64_t n_features, const Frame& frame,
                           Team& team) {
    const int64_t n_groups = divide_up(n_points, points_per_group);
    scale_ = scale_for<T>(frame.extent);
    columns_ = Aligned<T>(std::size_t(n_groups * n_features * points_per_group));
    if (order()) boxes_ = Aligned<T>(std::size_t(n_groups * 2 * n_features));
    const Aligned<T> origin = scaled_origin<T>(frame, n_features, scale_);
    const auto pack_group = [&](int64_t g) {
        const int64_t first = g * points_per_group, n_here = std::min(points_per_group, n_points - first);
        for (int64_t p = 0; p < points_per_group; ++p) {
            // The first point of the last group is repeated up to its end.
            const int64_t position = p < n_here ? first + p : first;
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
    team.run(divide_up(n_groups, groups_per_stripe), team.n_threads(), [&](int, int64_t stripe) {
        const int64_t end = std::min(n_groups, (stripe + 1) * groups_per_stripe);
        for (int64_t g = stripe * groups_per_stripe; g < end; ++g) pack_group(g);
    });
}

template class PackedGroups<float>;
template class PackedGroups<double>;

}  // namespace powermeans
