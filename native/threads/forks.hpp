// What a process keeps for itself. A forked child has none of the parent's other threads, and the locks that
// these held stay locked.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace powermeans {

// Returns how many forks led to this process since the core was loaded.
int64_t n_forks();

// A value that a forked child makes anew. It leaves the parent's alone: to join threads that are not there, or
// to destroy what they wait for, would hang.
template <class Value>
class PerProcess {
  public:
    PerProcess() = default;
    PerProcess(const PerProcess&) = delete;
    PerProcess& operator=(const PerProcess&) = delete;
    ~PerProcess() {
        Made* made = made_.load();
        if (made && made->forks == n_forks()) delete made;
    }

    // Returns the value of this process, which the first call makes from these arguments.
    template <class... Arguments>
    Value& here(const Arguments&... arguments) {
        Made* made = made_.load();
        while (!made || made->forks != n_forks()) {
            auto own = std::make_unique<Made>(arguments...);
            if (made_.compare_exchange_strong(made, own.get())) return own.release()->value;
        }
        return made->value;
    }

  private:
    struct Made {
        int64_t forks = n_forks();
        Value value;
        template <class... Arguments>
        explicit Made(const Arguments&... arguments) : value(arguments...) {}
    };
    std::atomic<Made*> made_{nullptr};
};

// A value that threads share, made when the first of them asks for it. If making it fails, or a child is
// forked meanwhile, the next to ask makes it.
template <class Value>
class MadeOnce {
  public:
    MadeOnce() = default;
    MadeOnce(const MadeOnce&) = delete;
    MadeOnce& operator=(const MadeOnce&) = delete;
    ~MadeOnce() { delete made_.load(); }

    template <class Make>
    const Value& get(const Make& make) {
        if (!made_.load()) {
            std::lock_guard lock(making_.here());
            if (!made_.load()) made_.store(new Value(make()));
        }
        return *made_.load();
    }

  private:
    PerProcess<std::mutex> making_;
    std::atomic<const Value*> made_{nullptr};
};

}  // namespace powermeans
