#include "dispatch.hpp"

#include <atomic>
#include <cstdlib>
#include <iterator>
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

namespace {

// The best last.
const InstructionSet compiled[] = {
    {"baseline", &kernels_baseline, &seed_kernels_baseline, &pair_distance_baseline},
#ifdef POWERMEANS_X86
    {"avx2", &kernels_avx2, &seed_kernels_avx2, &pair_distance_avx2},
    {"avx512", &kernels_avx512, &seed_kernels_avx512, &pair_distance_avx512},
#endif
};

bool is_supported([[maybe_unused]] const std::string& name) {
#ifdef POWERMEANS_X86
    const Features features = features_here();
    if (name == "avx2") return features.avx2;
    if (name == "avx512") return features.avx512;
#endif
    return true;
}

// An empty name stands for the best.
const InstructionSet* find(const std::string& name) {
    const InstructionSet* best = nullptr;
    std::string names;
    for (const InstructionSet& set : compiled) {
        if (!is_supported(set.name)) continue;
        names += names.empty() ? set.name : std::string(", ") + set.name;
        if (name.empty() || name == set.name) best = &set;
    }
    if (!best)
        throw std::runtime_error("POWERMEANS_ISA=" + name + " cannot be had here: unset it or choose from " +
                                 names);
    return best;
}

// No lock guards it, since a child that is forked while another thread holds one would wait for ever: threads
// that choose at the same time choose the same.
std::atomic<const InstructionSet*> chosen{nullptr};

}  // namespace

std::vector<InstructionSet> instruction_sets() {
    std::vector<InstructionSet> sets(std::begin(compiled), std::end(compiled));
    for (InstructionSet& set : sets) set.supported = is_supported(set.name);
    return sets;
}

const InstructionSet& chosen_instruction_set() {
    const InstructionSet* set = chosen.load();
    if (set) return *set;
    const char* wanted = std::getenv("POWERMEANS_ISA");
    chosen.store(set = find(wanted ? wanted : ""));
    return *set;
}

void use_instruction_set(const std::string& name) { chosen.store(find(name)); }

}  // namespace powermeans
