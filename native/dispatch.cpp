#include "dispatch.hpp"

#include <cstdlib>
#include <stdexcept>

namespace powermeans {

extern const KernelTable kernels_baseline;
extern const SeedKernelTable seed_kernels_baseline;
#ifdef POWERMEANS_X86
extern const KernelTable kernels_avx2, kernels_avx512;
extern const SeedKernelTable seed_kernels_avx2, seed_kernels_avx512;
#endif

std::vector<InstructionSet> instruction_sets() {
    std::vector<InstructionSet> sets{{"baseline", &kernels_baseline, &seed_kernels_baseline, true}};
#ifdef POWERMEANS_X86
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    sets.push_back({"avx2", &kernels_avx2, &seed_kernels_avx2, avx2});
    sets.push_back({"avx512", &kernels_avx512, &seed_kernels_avx512, avx512});
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
