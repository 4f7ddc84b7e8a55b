// The entries of dense points, in the type that kernels compute with or in a narrower one, from which they are
// widened where they are read. No standard header that defines functions may come in here.
#pragma once

#include <stdint.h>

namespace powermeans {

enum class EntryType : int32_t { computed, float16, bfloat16, int8, uint8 };

inline constexpr int64_t bytes_of_entry(EntryType type, int64_t bytes_computed) {
    switch (type) {
        case EntryType::computed:
            return bytes_computed;
        case EntryType::float16:
        case EntryType::bfloat16:
            return 2;
        default:
            return 1;
    }
}

// Row after row of finite entries; V is the type that kernels compute with. Narrower ones are for float only.
template <class V>
struct Entries {
    const void* stored = nullptr;
    EntryType type = EntryType::computed;

    Entries() = default;
    Entries(const V* values) : stored(values) {}
    Entries(const void* values, EntryType type_) : stored(values), type(type_) {}

    bool are_narrow() const { return sizeof(V) == sizeof(float) && type != EntryType::computed; }
    int64_t bytes_each() const { return bytes_of_entry(type, int64_t{sizeof(V)}); }
    const V* computed() const { return static_cast<const V*>(stored); }  // where they are not narrow
    const void* at(int64_t first) const {
        return static_cast<const unsigned char*>(stored) + first * bytes_each();
    }
    Entries from(int64_t first) const { return {at(first), type}; }
};

struct WidenKernel {
    // Converts n entries, which is exact.
    void (*widen)(const void* from,  // in   (n,) of the type
                  EntryType type,    // in   not computed
                  int64_t n,
                  float* to);  // out  (n,)
};

}  // namespace powermeans
