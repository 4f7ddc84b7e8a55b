// Memory that a thread keeps from one piece of work to the next: fresh pages cost more than the work of
// a small sweep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "aligned.hpp"

namespace powermeans {

class Room {
  public:
    // What was taken before may be taken anew.
    void clear() {
        at_ = 0;
        used_ = 0;
    }

    // Not initialised; good until `clear`.
    template <class T>
    T* take(std::size_t n) {
        const std::size_t bytes = (n * sizeof(T) + line - 1) / line * line;
        while (at_ < parts_.size() && used_ + bytes > parts_[at_].size) {
            ++at_;
            used_ = 0;
        }
        if (at_ == parts_.size())
            parts_.push_back({Aligned<char>(std::max(bytes, smallest_part)), std::max(bytes, smallest_part)});
        char* from = parts_[at_].memory.get() + used_;
        used_ += bytes;
        return reinterpret_cast<T*>(from);
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
