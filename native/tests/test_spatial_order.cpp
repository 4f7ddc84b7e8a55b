// Checks that the spatial order has every point once, is the same with any number of threads, and makes compact
// groups, or says that it cannot.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "points/spatial_order.hpp"
#include "testing.hpp"

using namespace powermeans;

namespace {

template <class V>
std::vector<int32_t> order_of(const std::vector<V>& values, int64_t n_features, int n_threads) {
    Team team(n_threads);
    double largest = 0;
    for (V value : values) largest = std::max(largest, std::abs(double(value)));
    return spatial_order(Entries<V>(values.data()), int64_t(values.size()) / n_features, n_features,
                         scale_for<V>(largest), team);
}

// Returns the mean over groups of the area of the box around each, of points in a plane.
template <class V>
double mean_area(const std::vector<V>& values, const std::vector<int32_t>& order) {
    double area = 0;
    for (std::size_t begin = 0; begin < order.size(); begin += points_per_group) {
        double sides = 1;
        for (std::size_t f = 0; f < 2; ++f) {
            double low = INFINITY, high = -INFINITY;
            for (std::size_t p = begin; p < std::min(order.size(), begin + points_per_group); ++p) {
                const double x = double(values[std::size_t(order[p]) * 2 + f]);
                low = std::min(low, x);
                high = std::max(high, x);
            }
            sides *= high - low;
        }
        area += sides / std::ceil(double(order.size()) / points_per_group);
    }
    return area;
}

void require_all_once(std::vector<int32_t> order) {
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) require(order[i] == int32_t(i), "every point once");
}

template <class V>
std::vector<V> uniform_values(int64_t n) {
    std::mt19937 generator(2);
    std::vector<V> values(static_cast<std::size_t>(n));
    for (V& value : values) value = V(double(generator()) / 0x1p32);
    return values;
}

template <class V>
void test_a_square() {
    // Not a whole number of groups, stripes or leaves, and more than are sorted together.
    for (const int64_t n_points : {40, 5'000, 100'003, (1 << 20) + 1'000}) {
        const std::vector<V> values = uniform_values<V>(2 * n_points);
        const std::vector<int32_t> order = order_of(values, 2, 1);
        require(int64_t(order.size()) == n_points, "points in a plane have an order");
        require_all_once(order);
        for (int n_threads : {2, 5})
            require(order == order_of(values, 2, n_threads), "threads change nothing");
        // A group of a perfect order has 32 / n of the square.
        const double perfect = std::min(1.0, double(points_per_group) / double(n_points));
        require(mean_area(values, order) < 3 * perfect, "groups are compact");
    }
}

template <class V>
void test_hard_places() {
    std::vector<V> values = uniform_values<V>(2 * 20'000);
    const double compact = mean_area(values, order_of(values, 2, 2));
    values[12'345] = V(1e30);  // one point far away
    std::vector<int32_t> order = order_of(values, 2, 2);
    require_all_once(order);
    order.erase(std::find_if(order.begin(), order.end(), [](int32_t i) { return i == 12'345 / 2; }));
    require(mean_area(values, order) < 10 * compact, "one point far away spoils only few groups");

    require_all_once(order_of(std::vector<V>(2 * 20'000, V(7)), 2, 2));
    std::vector<V> two_places(2 * 20'000, std::numeric_limits<V>::max());
    std::fill_n(two_places.begin(), 14'000, std::numeric_limits<V>::lowest());
    require_all_once(order_of(two_places, 2, 2));
    std::vector<V> subnormal = uniform_values<V>(2 * 20'000);
    for (V& value : subnormal) value *= std::numeric_limits<V>::min();
    require_all_once(order_of(subnormal, 2, 2));
}

void test_too_many_dimensions() {
    require(order_of(random_values<float>(20'000 * 12, 3), 12, 2).empty(), "noise in 12 dimensions has none");
    std::vector<float> plane = random_values<float>(20'000 * 12, 3);
    for (std::size_t at = 0; at < plane.size(); ++at)
        if (at % 12 > 1) plane[at] *= 0.01F;
    require(!order_of(plane, 12, 2).empty(), "a plane in 12 dimensions has one");
}

}  // namespace

int main() {
    test_a_square<float>();
    test_a_square<double>();
    test_hard_places<float>();
    test_hard_places<double>();
    test_too_many_dimensions();
    std::puts("spatial order: all points once, in compact groups");
}
