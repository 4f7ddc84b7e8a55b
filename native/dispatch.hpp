// Chooses the kernels for this machine's instruction set.
#pragma once

#include <string>
#include <vector>

#include "kernels/seed_kernels.hpp"
#include "kernels/sweep_kernels.hpp"

namespace powermeans {

struct InstructionSet {
    const char* name;
    const KernelTable* kernels;
    const SeedKernelTable* seed_kernels;
    bool supported;
};

// All that were compiled in, the best last.
std::vector<InstructionSet> instruction_sets();

// The best supported one, or the one that POWERMEANS_ISA names; throws if that cannot be had.
const InstructionSet& chosen_instruction_set();

// Switches to another; throws if it cannot be had. For tests, between sweeps.
void use_instruction_set(const std::string& name);

}  // namespace powermeans
