// Threads that live as long as one fit and share stripes of work. Stripes are merged in order, so that
// results do not depend on how many threads there are.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "threads/arena.hpp"
#include "threads/forks.hpp"

namespace powermeans {

// Called with a place for the results, one of those of the worker, and with the number of a stripe. Where
// workers have one place each, it is the number of the worker.
using StripeWork = std::function<void(int place, int64_t stripe)>;

// How the results of a stripe are added to those before it: in parts, each of which takes the stripes in
// order, so that several stripes are merged at a time. A worker with several places goes on while the stripe
// before is not merged, such as that of a worker whose processor another process has taken.
struct Merge {
    int64_t n_parts = 0;
    std::function<void(int place, int64_t stripe, int64_t part)> add = nullptr;
    int n_places = 1;  // of each worker
};

// The threads, and what they wait for.
class ThreadPool {
  public:
    explicit ThreadPool(int n_threads) : n_threads_(n_threads), arenas_(std::size_t(n_threads)) {}
    ~ThreadPool();

    void run(int64_t n_stripes, int n_workers, const StripeWork& compute, const Merge& merge);
    std::vector<int64_t> stripes_by_worker();
    Arena& arena(int worker) { return arenas_[std::size_t(worker)]; }

  private:
    void post(int64_t n_stripes, int n_workers, const StripeWork& compute, const Merge& merge);
    void wait_for_workers();
    void serve(int worker);
    void work(int worker, int64_t stripe);
    void merge(int worker, int place, int64_t stripe);
    bool is_turn_of(int64_t stripe);
    bool claim(int worker, int64_t& stripe);
    bool claim_locked(int worker, int64_t& stripe);
    void record_failure();
    void end_with_others() const;
    std::condition_variable& turn_of(int64_t stripe);
    template <class Claim>
    void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& signal, const Claim& is_over);

    int n_threads_;
    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable job_posted_, worker_finished_, caller_left_;
    std::vector<std::condition_variable> turn_came_;  // for each stripe that may wait for one
    std::uint64_t n_jobs_posted_ = 0;
    bool closing_ = false;
    bool is_called_ = false;  // several threads of Python may share a team

    int n_workers_ = 0, n_running_ = 0;
    int64_t n_stripes_ = 0, next_stripe_ = 0;
    std::vector<int64_t> next_merge_;  // of each part: the stripe that it takes next
    const StripeWork* compute_ = nullptr;
    const Merge* merge_ = nullptr;
    std::exception_ptr failure_;
    std::atomic<bool> has_failed_{false};
    std::vector<int64_t> stripes_by_worker_;
    std::vector<Arena> arenas_;
};

// A pool of threads, in a forked child too.
class Team {
  public:
    explicit Team(int n_threads);
    int n_threads() const { return n_threads_; }

    // Calls compute(place, stripe) for each stripe, on at most n_workers threads, and then merges it. Stripes go
    // to whichever thread is free: one that wakes late, because others keep its processor busy, is not waited
    // for. Ends early where `check_interrupt` throws, on the thread of the caller; the others learn of it where
    // they call that.
    void run(int64_t n_stripes, int n_workers, const StripeWork& compute, const Merge& merge = {});
    // The same, with merge(place, stripe) for whole stripes, one at a time.
    void run(int64_t n_stripes, int n_workers, const StripeWork& compute, const StripeWork& merge);

    // The memory of a worker, for use within a run only.
    Arena& arena(int worker) { return pool_.here(n_threads_).arena(worker); }

    // How many stripes each thread has computed, as many threads as were ever asked for at a time.
    std::vector<int64_t> stripes_by_worker() { return pool_.here(n_threads_).stripes_by_worker(); }

  private:
    int n_threads_;
    PerProcess<ThreadPool> pool_;
};

}  // namespace powermeans
