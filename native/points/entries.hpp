// Reads the entries of dense points outside of the kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "dispatch.hpp"
#include "kernels/entries.hpp"

namespace powermeans {

// Returns n entries, in `buffer` where they had to be widened.
template <class V>
const V* entries_at(const Entries<V>& entries, int64_t first, int64_t n, V* buffer) {
    if constexpr (std::is_same_v<V, float>)
        if (entries.are_narrow()) {
            chosen_instruction_set().kernels->widen(entries.at(first), entries.type, n, buffer);
            return buffer;
        }
    return entries.computed() + first;
}

// Calls visit(i, entry) for n entries in order.
template <class V, class Visit>
void for_each_entry(const Entries<V>& entries, int64_t first, int64_t n, const Visit& visit) {
    constexpr int64_t entries_at_once = 64;
    V buffer[entries_at_once];
    const int64_t step = entries.are_narrow() ? entries_at_once : std::max<int64_t>(n, 1);
    for (int64_t begin = 0; begin < n; begin += step) {
        const int64_t n_here = std::min(step, n - begin);
        const V* here = entries_at(entries, first + begin, n_here, buffer);
        for (int64_t i = 0; i < n_here; ++i) visit(begin + i, here[i]);
    }
}

template <class V>
V entry_at(const Entries<V>& entries, int64_t i) {
    V buffer;
    return *entries_at(entries, i, 1, &buffer);
}

}  // namespace powermeans
