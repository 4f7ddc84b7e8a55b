// Chooses the kernels for this machine's instruction set, once, when the module is loaded. Tests may switch
// between those that the machine supports.
#pragma once

#include <string>
#include <vector>

#include "kernels/pair_distance.hpp"
#include "kernels/seed_kernels.hpp"
#include "kernels/sweep_kernels.hpp"

namespace powermeans {

struct InstructionSet {
    const char* name;
    const KernelTable* kernels;
    const SeedKernelTable* seed_kernels;
    const PairKernels* pair_kernels;
    bool supported = false;
};

// Returns all that were compiled in, the best last.
std::vector<InstructionSet> instruction_sets();

// Returns the best supported one, or the one that POWERMEANS_ISA names; throws if that is not supported.
const InstructionSet& chosen_instruction_set();

// Switches to another; throws if it is not supported. For tests, between sweeps.
void use_instruction_set(const std::string& name);

}  // namespace powermeans
