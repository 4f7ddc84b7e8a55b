// Threads that live as long as one fit and share stripes of work. Whatever their number, stripes are
// merged in order, so results do not depend on it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "room.hpp"

namespace powermeans {

// The threads themselves and what they wait for.
class Crew {
  public:
    explicit Crew(int n_threads) : n_threads_(n_threads), rooms_(std::size_t(n_threads)) {}
    ~Crew();
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    void run(int64_t n_stripes, int n_workers, const std::function<void(int, int64_t)>& compute,
             const std::function<void(int, int64_t)>& merge);

    const std::vector<int64_t>& stripes_by_worker() const { return stripes_by_worker_; }
    Room& room(int worker) { return rooms_[std::size_t(worker)]; }

  private:
    void serve(int worker);
    void work(int worker);
    bool claim(int64_t& stripe);
    bool wait_for_turn(int64_t stripe);
    void record_failure();

    int n_threads_;
    std::vector<std::thread> threads_;
    std::mutex callers_;  // several may share a team, one at a time
    std::mutex mutex_;
    std::condition_variable job_posted_, turn_passed_, worker_finished_;
    std::uint64_t n_jobs_posted_ = 0;
    bool closing_ = false;

    int n_workers_ = 0, n_running_ = 0;
    int64_t n_stripes_ = 0, next_stripe_ = 0, next_merge_ = 0;
    const std::function<void(int, int64_t)>* compute_ = nullptr;
    const std::function<void(int, int64_t)>* merge_ = nullptr;
    std::exception_ptr failure_;
    std::vector<int64_t> stripes_by_worker_;
    std::vector<Room> rooms_;
};

class Team {
  public:
    explicit Team(int n_threads);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int n_threads() const { return n_threads_; }

    // Calls compute(worker, stripe) for each stripe, on at most n_workers threads, and after it
    // merge(worker, stripe), the merges one at a time and in the order of the stripes. Worker w
    // starts on stripe w; later stripes go to whoever is free.
    void run(int64_t n_stripes, int n_workers, const std::function<void(int, int64_t)>& compute,
             const std::function<void(int, int64_t)>& merge);

    // The memory of a worker, to be used within a run only.
    Room& room(int worker) { return crew_->room(worker); }

    // Stripes that each thread computed in the last run.
    std::vector<int64_t> stripes_by_worker() const;

  private:
    void leave_to_parent_process();

    int n_threads_;
    int owner_process_;
    std::unique_ptr<Crew> crew_;
};

}  // namespace powermeans
