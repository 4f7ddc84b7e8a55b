// Sizes in whole steps. Each file has its own copy of these functions, because a copy compiled for one
// instruction set must not be linked into code for another.
#pragma once

#include <stdint.h>

namespace powermeans {
namespace {

// Return how many steps cover n, and the size of all of them together.
constexpr int64_t divide_up(int64_t n, int64_t step) { return (n + step - 1) / step; }
constexpr int64_t round_up(int64_t n, int64_t step) { return divide_up(n, step) * step; }

}  // namespace
}  // namespace powermeans
