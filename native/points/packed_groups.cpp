#include "points/packed_groups.hpp"

#include <algorithm>

#include "kernels/rounding.hpp"
#include "kernels/sweep_kernels.hpp"
#include "points/spatial_order.hpp"

namespace powermeans {
namespace {

// Packed points take as much memory as the points themselves. This much is always affordable.
constexpr int64_t most_bytes_packed = int64_t{16} << 20;
constexpr int64_t groups_per_stripe = 256;

}  // namespace

template <class T>
PackedGroups<T>::PackedGroups(const Entries<T>& values, int64_t n_points, int64_t n_features,
                              const Frame& frame, bool ordered, Team& team) {
    if (ordered) order_ = spatial_order(values, n_points, n_features, scale_for<T>(frame.extent), team);
    if (n_points * n_features * int64_t{sizeof(T)} <= most_bytes_packed)
        pack(values, n_points, n_features, frame, team);
}

template <class T>
void PackedGroups<T>::pack(const Entries<T>& values, int64_t n_points, int64_t n_features, const Frame& frame,
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
            const int64_t point = order() ? order()[position] : position;
            for_each_entry(values, point * n_features, n_features, [&](int64_t f, T value) {
                const T x = value * T(scale_) - origin[std::size_t(f)];
                columns_[std::size_t((g * n_features + f) * points_per_group + p)] = x;
                if (!order()) return;
                T& low = boxes_[std::size_t(g * 2 * n_features + f)];
                T& high = boxes_[std::size_t((g * 2 + 1) * n_features + f)];
                low = p == 0 ? x : std::min(low, x);
                high = p == 0 ? x : std::max(high, x);
            });
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
