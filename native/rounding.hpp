// Sizes in whole steps. Each file has its own copy of these functions, since some files are compiled for
// an instruction set that not every machine has.
#pragma once

#include <stdint.h>

namespace powermeans {
namespace {

// How many steps cover n, and the size of all of them together.
constexpr int64_t divide_up(int64_t n, int64_t step) { return (n + step - 1) / step; }
constexpr int64_t round_up(int64_t n, int64_t step) { return divide_up(n, step) * step; }

}  // namespace
}  // namespace powermeans
