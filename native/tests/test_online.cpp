// Runs online passes, dense and sparse, under the sanitizers. Results are checked in Python; here both kinds
// of points and of order have to agree.
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "moves/online.hpp"
#include "testing.hpp"

using namespace powermeans;

namespace {

// Returns centers and counts after one pass.
template <class Source>
std::vector<double> passed(const Source& source, int64_t n_centers, const std::vector<int64_t>& order,
                           const std::vector<double>& rates) {
    std::vector<double> state = random_values<double>(n_centers * source.n_features, 5);
    std::vector<double> weight(std::size_t(source.n_points), 0.5);
    std::vector<double> counts(std::size_t(n_centers), 0.0);
    weight[1] = 0;
    const OnlineRequest request{weight.data(),
                                2.0,
                                order.empty() ? nullptr : order.data(),
                                rates.empty() ? nullptr : rates.data(),
                                int64_t(rates.size()),
                                n_centers,
                                state.data(),
                                counts.data()};
    int64_t n_looks = 0;
    const double inertia = present(source, request, [&] { ++n_looks; });
    require(std::isfinite(inertia) && inertia >= 0, "the inertia is a number");
    require(n_looks == (source.n_points + 255) / 256, "looks every 256 points");
    const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
    require(std::abs(total - double(source.n_points - 1)) < 1e-9, "every point with weight is counted");
    state.insert(state.end(), counts.begin(), counts.end());
    return state;
}

template <class V>
void agree(int64_t n_points, int64_t n_features, int64_t n_centers) {
    const SparsePoints<V> sparse(random_values<V>(n_points * n_features, 1), n_features,
                                 -std::numeric_limits<V>::infinity());
    const CsrSource<V>& csr = sparse.source;
    const DenseSource<V> dense{csr.values, n_points, n_features, csr.frame};
    std::vector<int64_t> as_stored(std::size_t(n_points), 0);
    std::iota(as_stored.begin(), as_stored.end(), 0);
    for (const std::vector<double>& rates :
         {std::vector<double>{}, std::vector<double>(std::size_t(n_points), 0.2)}) {
        const std::vector<double> expected = passed(dense, n_centers, {}, rates);
        require(expected == passed(dense, n_centers, as_stored, rates), "an order as stored changes nothing");
        const std::vector<double> found = passed(csr, n_centers, as_stored, rates);
        for (std::size_t i = 0; i < expected.size(); ++i)
            require(std::abs(found[i] - expected[i]) < 1e-9, "sparse points are as dense ones");
    }
    bool has_thrown = false;
    try {
        passed(dense, n_centers, {}, {0.5});
    } catch (const std::invalid_argument&) {
        has_thrown = true;
    }
    require(has_thrown, "too few rates are refused");
}

}  // namespace

int main() {
    for (const int64_t n_centers : {1, 7, 8, 20}) {
        agree<float>(600, 3, n_centers);
        agree<double>(600, 33, n_centers);
    }
    std::puts("online passes agree");
    return 0;
}
