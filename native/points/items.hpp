// Rows that are equal count as one item, which moves as a whole, as a row of their weight would.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "points/source.hpp"

namespace powermeans {

struct Items {
    std::vector<int64_t> row;      // (n_items,) one of the rows of the item
    std::vector<double> weight;    // (n_items,) positive
    std::vector<int32_t> label;    // (n_items,)
    std::vector<int64_t> item_of;  // (n_points,) of each row, -1 for a row without weight

    int64_t size() const { return int64_t(row.size()); }

    void store_labels(int32_t* labels) const {
        for (std::size_t i = 0; i < item_of.size(); ++i)
            if (item_of[i] >= 0) labels[i] = label[std::size_t(item_of[i])];
    }
};

template <class V>
bool are_equal(const DenseSource<V>& source, int64_t one, int64_t other) {
    for (int64_t f = 0; f < source.n_features; ++f)
        if (entry_at(source.values, one * source.n_features + f) !=
            entry_at(source.values, other * source.n_features + f))
            return false;
    return true;
}

template <class V>
bool are_equal(const CsrSource<V>& source, int64_t one, int64_t other) {
    const int64_t begin = source.row_starts[one], n = source.row_starts[one + 1] - begin;
    const int64_t from = source.row_starts[other];
    return source.row_starts[other + 1] - from == n &&
           std::equal(source.columns + begin, source.columns + begin + n, source.columns + from) &&
           std::equal(source.values + begin, source.values + begin + n, source.values + from);
}

// Equal rows follow one another in the order.
template <class Source>
Items items_of(const Source& source, const int64_t* order, const double* sample_weight,
               const int32_t* labels) {
    Items items;
    items.item_of.assign(std::size_t(source.n_points), -1);
    for (int64_t place = 0; place < source.n_points; ++place) {
        const int64_t i = order[place];
        const double weight = sample_weight ? sample_weight[i] : 1.0;
        if (!(weight > 0)) continue;
        if (items.row.empty() || !are_equal(source, items.row.back(), i)) {
            items.row.push_back(i);
            items.weight.push_back(0);
            items.label.push_back(labels[i]);
        }
        items.weight.back() += weight;
        items.item_of[std::size_t(i)] = items.size() - 1;
    }
    return items;
}

}  // namespace powermeans
