// Memory that a thread keeps from one piece of work to the next: fresh pages cost more than the work of
// a small sweep. It is taken piece by piece and given back all at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "aligned.hpp"

namespace powermeans {

class Arena {
  public:
    // What was taken before may be taken anew.
    void clear() {
        at_ = 0;
        used_ = 0;
    }

    // Lets `to` point to n values that start on a cache line, not initialised; good until `clear`.
    template <class T>
    void take(T*& to, int64_t n) {
        const std::size_t bytes = (std::size_t(n) * sizeof(T) + line - 1) / line * line;
        while (at_ < parts_.size() && used_ + bytes > parts_[at_].size) {
            ++at_;
            used_ = 0;
        }
        if (at_ == parts_.size())
            parts_.push_back({Aligned<char>(std::max(bytes, smallest_part)), std::max(bytes, smallest_part)});
        to = reinterpret_cast<T*>(parts_[at_].memory.get() + used_);
        used_ += bytes;
    }

    // The same, set to one value.
    template <class T>
    void take_filled(T*& to, int64_t n, T value) {
        take(to, n);
        std::fill_n(to, n, value);
    }

  private:
    static constexpr std::size_t line = 64;
    static constexpr std::size_t smallest_part = std::size_t{1} << 16;
    struct Part {
        Aligned<char> memory;
        std::size_t size;
    };
    std::vector<Part> parts_;
    std::size_t at_ = 0, used_ = 0;
};

}  // namespace powermeans
