// Threads that live as long as one fit and share stripes of work. Stripes are merged in order, so that
// results do not depend on how many threads there are.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "arena.hpp"

namespace powermeans {

// Called with the number of a worker and of a stripe.
using StripeWork = std::function<void(int, int64_t)>;

// The threads, and what they wait for.
class ThreadPool {
  public:
    explicit ThreadPool(int n_threads) : n_threads_(n_threads), arenas_(std::size_t(n_threads)) {}
    ~ThreadPool();

    void run(int64_t n_stripes, int n_workers, const StripeWork& compute, const StripeWork& merge);
    const std::vector<int64_t>& stripes_by_worker() const { return stripes_by_worker_; }
    Arena& arena(int worker) { return arenas_[std::size_t(worker)]; }

  private:
    void serve(int worker);
    void work(int worker);
    bool claim(int64_t& stripe);
    bool wait_for_turn(int64_t stripe);
    void record_failure();

    int n_threads_;
    std::vector<std::thread> threads_;
    std::mutex callers_;  // several threads of Python may share a team
    std::mutex mutex_;
    std::condition_variable job_posted_, turn_passed_, worker_finished_;
    std::uint64_t n_jobs_posted_ = 0;
    bool closing_ = false;

    int n_workers_ = 0, n_running_ = 0;
    int64_t n_stripes_ = 0, next_stripe_ = 0, next_merge_ = 0;
    const StripeWork *compute_ = nullptr, *merge_ = nullptr;
    std::exception_ptr failure_;
    std::vector<int64_t> stripes_by_worker_;
    std::vector<Arena> arenas_;
};

// A pool that a forked child process replaces by its own.
class Team {
  public:
    explicit Team(int n_threads);
    ~Team();
    int n_threads() const { return n_threads_; }

    // Calls compute(worker, stripe) for each stripe, on at most n_workers threads, and then
    // merge(worker, stripe), one at a time and in the order of the stripes. Worker w starts with
    // stripe w; later stripes go to whichever worker is free.
    void run(
        int64_t n_stripes, int n_workers, const StripeWork& compute,
        const StripeWork& merge = [](int, int64_t) {});

    // The memory of a worker, for use within a run only.
    Arena& arena(int worker) { return pool_->arena(worker); }

    // How many stripes each thread computed in the last run.
    std::vector<int64_t> stripes_by_worker() const;

  private:
    void leave_to_parent_process();

    int n_threads_;
    int owner_process_;
    std::unique_ptr<ThreadPool> pool_;
};

}  // namespace powermeans
