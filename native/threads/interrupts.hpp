// Ends long work early where its caller wants that, as Ctrl-C does.
#pragma once

#include <functional>

namespace powermeans {

// Throws to end the work that it is called from.
using Interrupt = std::function<void()>;

// While this lives, `check_interrupt` calls `interrupt` on this thread.
class Interruptible {
  public:
    explicit Interruptible(const Interrupt& interrupt);
    ~Interruptible();
    Interruptible(const Interruptible&) = delete;
    Interruptible& operator=(const Interruptible&) = delete;

  private:
    const Interrupt* outer_;
};

// To be called every few milliseconds of long work, on whichever thread it runs.
void check_interrupt();

}  // namespace powermeans
