#include "threads/team.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "threads/interrupts.hpp"

namespace powermeans {
namespace {

// A caller that waits looks this often whether it is to end.
constexpr std::chrono::milliseconds between_looks{20};

// Ends the stripe of a worker after another's has failed, whose error the caller gets.
struct OtherFailed {};

// The places of one worker, and the stripes in them that are not merged yet, in order.
class Places {
  public:
    Places(int first, int n) {
        for (int place = first + n; place-- > first;) free_.push_back(place);
    }

    bool are_full() const { return free_.empty(); }
    bool are_empty() const { return waiting_.empty(); }
    std::pair<int, int64_t> oldest() const { return waiting_.front(); }

    // The one given back last, whose memory is likeliest to be in cache, or else the next one.
    int take(int64_t stripe) {
        const int place = free_.back();
        free_.pop_back();
        waiting_.emplace_back(place, stripe);
        return place;
    }

    void give_back_oldest() {
        free_.push_back(waiting_.front().first);
        waiting_.pop_front();
    }

  private:
    std::vector<int> free_;
    std::deque<std::pair<int, int64_t>> waiting_;
};

}  // namespace

ThreadPool::~ThreadPool() {
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
    }
    job_posted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(int64_t n_stripes, int n_workers, const StripeWork& compute, const Merge& merge) {
    std::unique_lock lock(mutex_);
    wait(lock, caller_left_, [this] { return !is_called_; });
    is_called_ = true;
    has_failed_ = false;
    lock.unlock();
    try {
        post(n_stripes, n_workers, compute, merge);
        if (int64_t stripe; claim(0, stripe)) work(0, stripe);
        wait_for_workers();
    } catch (...) {  // a thread could not be started
        record_failure();
    }
    lock.lock();
    n_stripes_ = 0;  // nobody joins any more
    is_called_ = false;
    const std::exception_ptr failure = std::exchange(failure_, nullptr);
    lock.unlock();
    caller_left_.notify_one();
    if (failure) std::rethrow_exception(failure);
}

void ThreadPool::post(int64_t n_stripes, int n_workers, const StripeWork& compute, const Merge& merge) {
    n_workers = int(std::min<int64_t>({n_workers, n_threads_, n_stripes}));
    // Starts threads before any sees the work: if one cannot start, no other must be left working.
    while (int(threads_.size()) < n_workers - 1) {
        const int worker = int(threads_.size()) + 1;
        threads_.emplace_back([this, worker] { serve(worker); });
    }
    {
        std::lock_guard lock(mutex_);
        n_workers_ = std::max(1, n_workers);
        n_running_ = 0;
        next_stripe_ = 0;
        next_merge_.assign(std::size_t(merge.n_parts), 0);
        if (int(turn_came_.size()) < n_workers_)
            turn_came_ = std::vector<std::condition_variable>(std::size_t(n_workers_));
        compute_ = &compute;
        merge_ = &merge;
        if (int(stripes_by_worker_.size()) < n_workers_) stripes_by_worker_.resize(std::size_t(n_workers_));
        n_stripes_ = n_stripes;  // last, for who joins before needs all the rest
        ++n_jobs_posted_;
    }
    if (n_workers_ > 1) job_posted_.notify_all();
}

// Waits even after a failure, because workers write to memory of the caller.
void ThreadPool::wait_for_workers() {
    std::unique_lock lock(mutex_);
    const auto are_done = [this] { return n_running_ == 0; };
    try {
        wait(lock, worker_finished_, are_done);
    } catch (...) {
        record_failure();
        lock.lock();
        worker_finished_.wait(lock, are_done);
    }
}

// Waits on the thread of a caller, which may be interrupted meanwhile.
template <class Claim>
void ThreadPool::wait(std::unique_lock<std::mutex>& lock, std::condition_variable& signal,
                      const Claim& is_over) {
    while (!signal.wait_for(lock, between_looks, is_over)) {
        // Without the lock, because the interrupt may wait for a thread that wants it.
        lock.unlock();
        check_interrupt();
        lock.lock();
    }
}

void ThreadPool::serve(int worker) {
    const Interrupt end = [this] { end_with_others(); };
    const Interruptible interruptible(end);
    std::uint64_t n_jobs_seen = 0;
    for (;;) {
        int64_t stripe;
        {
            std::unique_lock lock(mutex_);
            job_posted_.wait(lock, [&] { return closing_ || n_jobs_posted_ != n_jobs_seen; });
            if (closing_) return;
            n_jobs_seen = n_jobs_posted_;
            if (worker >= n_workers_ || !claim_locked(worker, stripe)) continue;
            ++n_running_;
        }
        work(worker, stripe);
        std::lock_guard lock(mutex_);
        if (--n_running_ == 0) worker_finished_.notify_one();
    }
}

void ThreadPool::work(int worker, int64_t stripe) {
    try {
        Places places(worker * merge_->n_places, merge_->n_places);
        const auto merge_oldest = [&] {
            const auto [place, oldest] = places.oldest();
            merge(worker, place, oldest);
            places.give_back_oldest();
        };
        do {
            check_interrupt();
            (*compute_)(places.take(stripe), stripe);
            while (!places.are_empty() && (places.are_full() || is_turn_of(places.oldest().second)))
                merge_oldest();
        } while (claim(worker, stripe));
        while (!places.are_empty()) merge_oldest();
    } catch (...) {
        record_failure();
    }
}

// Several stripes may share a signal.
std::condition_variable& ThreadPool::turn_of(int64_t stripe) {
    return turn_came_[std::size_t(stripe % n_workers_)];
}

bool ThreadPool::is_turn_of(int64_t stripe) {
    std::lock_guard lock(mutex_);
    return next_merge_.empty() || next_merge_.front() == stripe || has_failed_;
}

void ThreadPool::merge(int worker, int place, int64_t stripe) {
    for (int64_t part = 0; part < merge_->n_parts; ++part) {
        int64_t& next = next_merge_[std::size_t(part)];
        std::unique_lock lock(mutex_);
        const auto came = [&] { return next == stripe || has_failed_; };
        if (worker == 0)
            wait(lock, turn_of(stripe), came);
        else
            turn_of(stripe).wait(lock, came);
        end_with_others();
        lock.unlock();
        merge_->add(place, stripe, part);
        lock.lock();
        ++next;
        lock.unlock();
        turn_of(stripe + 1).notify_all();
    }
}

bool ThreadPool::claim(int worker, int64_t& stripe) {
    std::lock_guard lock(mutex_);
    return claim_locked(worker, stripe);
}

bool ThreadPool::claim_locked(int worker, int64_t& stripe) {
    if (next_stripe_ >= n_stripes_ || has_failed_) return false;
    stripe = next_stripe_++;
    ++stripes_by_worker_[std::size_t(worker)];
    return true;
}

void ThreadPool::record_failure() {
    std::lock_guard lock(mutex_);
    if (!has_failed_) failure_ = std::current_exception();
    has_failed_ = true;
    for (std::condition_variable& turn : turn_came_) turn.notify_all();
}

void ThreadPool::end_with_others() const {
    if (has_failed_) throw OtherFailed();
}

std::vector<int64_t> ThreadPool::stripes_by_worker() {
    std::lock_guard lock(mutex_);
    return stripes_by_worker_;
}

Team::Team(int n_threads) : n_threads_(std::max(1, n_threads)) {}

void Team::run(int64_t n_stripes, int n_workers, const StripeWork& compute, const Merge& merge) {
    pool_.here(n_threads_).run(n_stripes, n_workers, compute, merge);
}

void Team::run(int64_t n_stripes, int n_workers, const StripeWork& compute, const StripeWork& merge) {
    run(n_stripes, n_workers, compute,
        Merge{1, [&](int place, int64_t stripe, int64_t) { merge(place, stripe); }});
}

}  // namespace powermeans
