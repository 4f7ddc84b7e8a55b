#include "team.hpp"

#include <unistd.h>

#include <algorithm>

namespace powermeans {

ThreadPool::~ThreadPool() {
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
    }
    job_posted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(int64_t n_stripes, int n_workers, const StripeWork& compute, const StripeWork& merge) {
    std::lock_guard one_caller(callers_);
    n_workers = int(std::min<int64_t>({n_workers, n_threads_, n_stripes}));
    // Starts threads before any sees the work: if one cannot start, no other must be left working.
    while (int(threads_.size()) < n_workers - 1) {
        const int worker = int(threads_.size()) + 1;
        threads_.emplace_back([this, worker] { serve(worker); });
    }
    {
        std::lock_guard lock(mutex_);
        n_workers_ = std::max(1, n_workers);
        n_running_ = n_workers_ - 1;
        n_stripes_ = n_stripes;
        next_stripe_ = n_workers_;
        next_merge_ = 0;
        compute_ = &compute;
        merge_ = &merge;
        failure_ = nullptr;
        stripes_by_worker_.assign(std::size_t(n_workers_), 0);
        ++n_jobs_posted_;
    }
    if (n_workers_ > 1) job_posted_.notify_all();
    work(0);
    std::unique_lock lock(mutex_);
    worker_finished_.wait(lock, [this] { return n_running_ == 0; });
    if (failure_) std::rethrow_exception(failure_);
}

void ThreadPool::serve(int worker) {
    std::uint64_t n_jobs_seen = 0;
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            job_posted_.wait(lock, [&] { return closing_ || n_jobs_posted_ != n_jobs_seen; });
            if (closing_) return;
            n_jobs_seen = n_jobs_posted_;
            if (worker >= n_workers_) continue;
        }
        work(worker);
        std::lock_guard lock(mutex_);
        if (--n_running_ == 0) worker_finished_.notify_one();
    }
}

void ThreadPool::work(int worker) {
    try {
        for (int64_t stripe = worker; stripe < n_stripes_;) {
            (*compute_)(worker, stripe);
            if (!wait_for_turn(stripe)) return;
            (*merge_)(worker, stripe);
            {
                std::lock_guard lock(mutex_);
                ++stripes_by_worker_[std::size_t(worker)];
                ++next_merge_;
            }
            turn_passed_.notify_all();
            if (!claim(stripe)) return;
        }
    } catch (...) {
        record_failure();
    }
}

bool ThreadPool::claim(int64_t& stripe) {
    std::lock_guard lock(mutex_);
    stripe = next_stripe_++;
    return stripe < n_stripes_ && !failure_;
}

// Returns false if another worker failed, so that the turn never comes.
bool ThreadPool::wait_for_turn(int64_t stripe) {
    std::unique_lock lock(mutex_);
    turn_passed_.wait(lock, [&] { return next_merge_ == stripe || failure_; });
    return !failure_;
}

void ThreadPool::record_failure() {
    {
        std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
    }
    turn_passed_.notify_all();
}

Team::Team(int n_threads)
    : n_threads_(std::max(1, n_threads)),
      owner_process_(getpid()),
      pool_(std::make_unique<ThreadPool>(n_threads_)) {}

Team::~Team() { leave_to_parent_process(); }

void Team::run(int64_t n_stripes, int n_workers, const StripeWork& compute, const StripeWork& merge) {
    leave_to_parent_process();
    if (!pool_) pool_ = std::make_unique<ThreadPool>(n_threads_);
    pool_->run(n_stripes, n_workers, compute, merge);
}

std::vector<int64_t> Team::stripes_by_worker() const {
    return pool_ ? pool_->stripes_by_worker() : std::vector<int64_t>{};
}

// A forked child has no threads: joining the parent's, or destroying what they wait for, would hang.
void Team::leave_to_parent_process() {
    if (owner_process_ == getpid()) return;
    owner_process_ = getpid();
    (void)pool_.release();
}

}  // namespace powermeans
