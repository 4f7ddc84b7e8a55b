#include "dispatch.hpp"

#include <cstdlib>
#include <stdexcept>

#ifdef POWERMEANS_X86
#include <cpuid.h>
#endif

namespace powermeans {

extern const KernelTable kernels_baseline;
extern const SeedKernelTable seed_kernels_baseline;
extern const PairKernels pair_distance_baseline;
#ifdef POWERMEANS_X86
extern const KernelTable kernels_avx2, kernels_avx512;
extern const SeedKernelTable seed_kernels_avx2, seed_kernels_avx512;
extern const PairKernels pair_distance_avx2, pair_distance_avx512;
#endif

#ifdef POWERMEANS_X86
namespace {

struct Features {
    bool avx2 = false, avx512 = false;
};

bool has_all(unsigned value, unsigned bits) { return (value & bits) == bits; }

// Asks the processor, and whether the system saves the registers. __builtin_cpu_supports would ask a library
// that clang-cl does not link.
Features features_here() {
    constexpr unsigned saved_by_avx = 0x6, saved_by_avx512 = 0xe6;
    constexpr unsigned avx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
    unsigned a, b, c, d, saved, saved_high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has_all(c, bit_FMA | bit_OSXSAVE)) return {};
    __asm__("xgetbv" : "=a"(saved), "=d"(saved_high) : "c"(0));
    if (!has_all(saved, saved_by_avx) || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return {};
    const bool has_avx2 = has_all(b, bit_AVX2);
    return {has_avx2, has_avx2 && has_all(saved, saved_by_avx512) && has_all(b, avx512)};
}

}  // namespace
#endif

std::vector<InstructionSet> instruction_sets() {
    std::vector<InstructionSet> sets{
        {"baseline", &kernels_baseline, &seed_kernels_baseline, &pair_distance_baseline, true}};
#ifdef POWERMEANS_X86
    const Features features = features_here();
    sets.push_back({"avx2", &kernels_avx2, &seed_kernels_avx2, &pair_distance_avx2, features.avx2});
    sets.push_back({"avx512", &kernels_avx512, &seed_kernels_avx512, &pair_distance_avx512, features.avx512});
#endif
    return sets;
}

namespace {

// An empty name stands for the best.
InstructionSet find(const std::string& name) {
    InstructionSet best{};
    std::string names;
    for (const InstructionSet& set : instruction_sets()) {
        if (!set.supported) continue;
        names += names.empty() ? set.name : std::string(", ") + set.name;
        if (name.empty() || name == set.name) best = set;
    }
    if (!best.kernels)
        throw std::runtime_error("POWERMEANS_ISA=" + name + " cannot be had here: unset it or choose from " +
                                 names);
    return best;
}

InstructionSet& chosen() {
    static InstructionSet set = [] {
        const char* wanted = std::getenv("POWERMEANS_ISA");
        return find(wanted ? wanted : "");
    }();
    return set;
}

}  // namespace

const InstructionSet& chosen_instruction_set() { return chosen(); }

void use_instruction_set(const std::string& name) { chosen() = find(name); }

}  // namespace powermeans
