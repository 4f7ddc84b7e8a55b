// An array that starts on a cache line, so that whole vectors are loaded from it without a split. It is freed
// with its owner.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace powermeans {

template <class T>
class Aligned {
  public:
    Aligned() = default;
    explicit Aligned(std::size_t n) : values_(new (alignment) T[n]()) {}
    T* get() const { return values_.get(); }
    T& operator[](std::size_t i) const { return values_[i]; }

  private:
    static constexpr std::align_val_t alignment{64};
    struct Free {
        void operator()(T* values) const { ::operator delete[](values, alignment); }
    };
    std::unique_ptr<T[], Free> values_;
};

}  // namespace powermeans
