#include "threads/interrupts.hpp"

namespace powermeans {
namespace {

thread_local const Interrupt* current = nullptr;

}  // namespace

Interruptible::Interruptible(const Interrupt& interrupt) : outer_(current) { current = &interrupt; }

Interruptible::~Interruptible() { current = outer_; }

void check_interrupt() {
    if (current) (*current)();
}

}  // namespace powermeans
