// Memory that a thread keeps from one sweep to the next, because fresh pages cost more than a small sweep.
// It is handed out piece by piece and taken back all at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "threads/aligned.hpp"

namespace powermeans {

class Arena {
  public:
    // Takes back all that was handed out.
    void clear() {
        at_ = 0;
        used_ = 0;
    }

    // Points `to` at n values that start on a cache line. They are not initialized, and valid until `clear`.
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

    // Does the same, and sets them.
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
