// Runs every task of the sweeps, dense and sparse, with every instruction set, under the sanitizers. Results
// are checked in Python; here hard sweeps are compared with a search by the definition, which catches loops
// that a compiler gets wrong, and of the others parts have to agree.
#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kernels/rounding.hpp"
#include "moves/online.hpp"
#include "seeds/draw.hpp"
#include "seeds/seed.hpp"
#include "sweep/plan.hpp"
#include "sweep/sweep.hpp"
#include "testing.hpp"

using namespace powermeans;

namespace {

template <class Source>
void seed_everywhere(const Source& source, const std::vector<double>& weight, int64_t n_candidates,
                     Team& team) {
    std::vector<int64_t> order(std::size_t(source.n_points)), seeds(15);
    std::iota(order.rbegin(), order.rend(), 0);
    std::mt19937 generator(3);
    std::vector<double> others(14 * std::size_t(n_candidates));
    for (double& number : others) number = std::uniform_real_distribution<double>()(generator);
    int64_t n_calls = 0;
    const SeedRequest request{weight.data(), order.data(), 0.5, others.data(), 15, n_candidates};
    greedy_seeds(source, request, team, [&] { ++n_calls; }, seeds.data());
    require(n_calls == 14, "asked before each seed but the first");
    for (int64_t i : seeds) require(0 <= i && i < source.n_points, "seeds exist");
}

// Online passes in another order than stored, with rates and without.
template <class Source>
void pass_online(const Source& source, const std::vector<double>& centers,
                 const std::vector<double>& weight) {
    std::vector<int64_t> order(std::size_t(source.n_points));
    std::iota(order.rbegin(), order.rend(), 0);
    const std::vector<double> rates(order.size(), 0.2);
    const int64_t n_centers = int64_t(centers.size()) / source.n_features;
    for (const bool has_rates : {true, false}) {
        std::vector<double> moved = centers, counts(std::size_t(n_centers), 0.0);
        const double* given = has_rates ? rates.data() : nullptr;
        const int64_t n_given = has_rates ? source.n_points : 0;
        const OnlineRequest request{weight.data(), 1.0,       order.data(), given,
                                    n_given,       n_centers, moved.data(), counts.data()};
        int64_t n_looks = 0;
        require(std::isfinite(present(source, request, [&] { ++n_looks; })), "the inertia is a number");
        require(n_looks >= (source.n_points + 255) / 256, "looks every 256 points");
        const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
        require(total == 0.5 * double(source.n_points), "every point is counted");
    }
}

// A request, and arrays for all that it may write.
template <class Source>
struct Asked {
    std::vector<int32_t> labels;
    std::vector<double> nearest;
    std::vector<typename Source::Computed> distances;
    Request<typename Source::Computed> request{};

    Asked(const Source& source, const std::vector<double>& centers, int64_t n_centers, double farthest)
        : labels(std::size_t(source.n_points)),
          nearest(std::size_t(source.n_points), farthest),
          distances(std::size_t(source.n_points * n_centers)) {
        request.raw_centers = centers.data();
        request.n_centers = n_centers;
        request.labels = labels.data();
        request.nearest = nearest.data();
        request.distances = distances.data();
    }
};

template <class V>
double sq_dist(const DenseSource<V>& source, int64_t i, const double* center) {
    double sum = 0;
    for_each_entry(source.values, i * source.n_features, source.n_features, [&](int64_t f, V value) {
        sum += (double(value) - center[f]) * (double(value) - center[f]);
    });
    return sum;
}

// Compares labels, weights and inertia with a search by the definition. Points weigh a half.
template <class V>
void require_nearest(const DenseSource<V>& source, const Request<V>& request, const SweepResult& found) {
    constexpr double tolerance = sizeof(V) == 4 ? 1e-4 : 1e-12;
    std::vector<double> weights(std::size_t(request.n_centers));
    double inertia = 0;
    for (int64_t i = 0; i < source.n_points; ++i) {
        const int32_t label = request.labels[i];
        require(0 <= label && label < request.n_centers, "labels are centers");
        double least = INFINITY;
        for (int64_t j = 0; j < request.n_centers; ++j)
            least = std::min(least, sq_dist(source, i, request.raw_centers + j * source.n_features));
        require(
            sq_dist(source, i, request.raw_centers + label * source.n_features) <= least * (1 + tolerance),
            "no center is nearer to a point than that of its label");
        weights[std::size_t(label)] += 0.5;
        inertia += 0.5 * least;
    }
    require(found.weights == weights, "a center weighs as much as the points with its label");
    require(std::abs(found.inertia - inertia) <= tolerance * inertia,
            "the inertia is the sum of the squared distances to the nearest centers");
}

template <class V>
void require_nearest(const CsrSource<V>&, const Request<double>&, const SweepResult&) {}

double total_weight(const SweepResult& result) {
    return std::accumulate(result.weights.begin(), result.weights.end(), 0.0);
}

template <class Source>
void run_every_task(const Source& source, int64_t n_centers, int n_threads) {
    Team team(n_threads);
    const std::vector<double> centers = random_values<double>(n_centers * source.n_features, 7);
    const std::vector<double> weight(std::size_t(source.n_points), 0.5);
    Asked<Source> asked(source, centers, n_centers, INFINITY);
    auto& request = asked.request;
    request.sample_weight = weight.data();
    request.task = Task::hard_sums;
    const double total = total_weight(sweep(source, request, team));
    require(std::abs(total - 0.5 * double(source.n_points)) < 1e-9, "hard weights add to all");
    request.task = Task::spread;
    require(total == total_weight(sweep(source, request, team)), "spread counts the same points");
    // Again, now with bounds: with the same centers, one more, two fewer, some near those, and others.
    std::vector<double> moved = centers;
    const std::vector<double> other = random_values<double>(int64_t(moved.size()) + source.n_features, 9);
    for (int change : {0, 1, -2, 3, 3, 7}) {
        for (std::size_t at = 0; change == 3 && at < moved.size(); ++at)
            moved[at] += other[at] * (at / std::size_t(source.n_features) % 9 == 0 ? 1 : 0.02);
        if (change == 7) moved = random_values<double>(int64_t(moved.size()), 8);
        if (change == 1) moved.insert(moved.end(), centers.begin(), centers.begin() + source.n_features);
        if (change == -2 && int64_t(moved.size()) > 3 * source.n_features)
            moved.erase(moved.begin(), moved.begin() + 2 * source.n_features);
        auto again = request;
        again.task = Task::hard_sums;
        again.raw_centers = moved.data();
        again.n_centers = int64_t(moved.size()) / source.n_features;
        const SweepResult found = sweep(source, again, team);
        require(total == total_weight(found), "with bounds too");
        require_nearest(source, again, found);
    }
    request.task = Task::soft_sums;
    for (double power : {-0.1, -3.0, -50.0, -1000.0, -1e6}) {
        request.power = power;
        require(std::isfinite(sweep(source, request, team).objective), "finite objective");
    }
    for (Task task : {Task::assign, Task::distances, Task::approach, Task::potentials}) {
        request.task = task;
        sweep(source, request, team);
    }
    const std::vector<double> uniforms{0.0, 0.3, 0.999999};
    std::vector<int64_t> drawn(uniforms.size());
    draw({asked.nearest.data(), weight.data(), nullptr, source.n_points, 2.0}, uniforms.data(), 3, team,
         drawn.data());
    for (int64_t i : drawn) require(0 <= i && i < source.n_points, "drawn points exist");
    pass_online(source, centers, weight);
    for (int64_t n_candidates : {1, 3, 11}) seed_everywhere(source, weight, n_candidates, team);
}

template <class V>
void dense(int64_t n_points, int64_t n_features, int64_t n_centers, int n_threads) {
    run_every_task(DensePoints<V>(n_points, n_features, n_threads).source, n_centers, n_threads);
}

template <class V>
void sparse(int64_t n_points, int64_t n_features, int64_t n_centers, int n_threads) {
    const SparsePoints<V> points(random_values<V>(n_points * n_features, 2), n_features, V(0.5));
    run_every_task(points.source, n_centers, n_threads);
}

// Repeats what a team does until several threads have had a part in it: those that wake late may have none.
template <class Work>
void until_several_work(Team& team, const Work& work) {
    for (int n = 0; n < 20000; ++n) {
        work();
        const std::vector<int64_t> stripes = team.stripes_by_worker();
        require(int(stripes.size()) == team.n_threads(), "as many threads as asked for");
        if (std::count(stripes.begin(), stripes.end(), 0) < team.n_threads() - 1) return;
    }
    require(false, "several threads work");
}

// At these sizes four threads share every task, and compute the bits that one thread does.
template <class Source>
void threads_share_every_task(const Source& source, int64_t n_centers) {
    const int64_t width = source.n_features + (source.heights.values ? 1 : 0);
    const std::vector<double> centers = random_values<double>(n_centers * width, 7);
    for (Task task : {Task::hard_sums, Task::soft_sums, Task::spread, Task::assign, Task::distances,
                      Task::approach, Task::potentials}) {
        Team one(1), four(4);
        until_several_work(four, [&] {
            Asked<Source> asked[2] = {{source, centers, n_centers, 2.0}, {source, centers, n_centers, 2.0}};
            SweepResult results[2];
            for (int i : {0, 1}) {
                asked[i].request.task = task;
                asked[i].request.power = -3;
                results[i] = sweep(source, asked[i].request, i ? four : one);
            }
            require(results[0].points == results[1].points && results[0].weights == results[1].weights &&
                        results[0].utility == results[1].utility &&
                        results[0].inertia == results[1].inertia && asked[0].labels == asked[1].labels &&
                        asked[0].nearest == asked[1].nearest && asked[0].distances == asked[1].distances,
                    "threads change no bit");
        });
    }
}

// Uses bounds from a sweep with many centers in one with few.
void few_centers_after_many() {
    const int64_t n_points = 3000, n_features = 20, n_many = 600;
    const DensePoints<double> points(n_points, n_features);
    std::vector<double> centers(points.values.begin(), points.values.begin() + n_many * n_features);
    Team team(2);
    Request<double> request{};
    request.task = Task::hard_sums;
    request.raw_centers = centers.data();
    request.n_centers = n_many;
    for (int s = 0; s < 4; ++s) {
        sweep(points.source, request, team);
        for (std::size_t i = 0; i < centers.size() / 8; ++i) centers[i] = -centers[i];
    }
    request.n_centers = 8;
    require(total_weight(sweep(points.source, request, team)) == double(n_points),
            "every point counts once after most centers went");
}

// Tests squared Euclidean distances and affine ones.
template <class Points>
void threads_share(Points&& points, int64_t n_centers) {
    threads_share_every_task(points.source, n_centers);
    const std::vector<double> heights(std::size_t(points.source.n_points), 9.0);
    points.source.heights = {heights.data(), 9.0};
    threads_share_every_task(points.source, n_centers);
}

void threads_share_moments_and_draws() {
    const int64_t n_points = 600000, n_features = 2;
    const std::vector<double> values = random_values<double>(n_points * n_features, 1);
    Team one(1), four(4);
    const Moments expected = moments_of(Entries<double>(values.data()), n_points, n_features, one);
    until_several_work(four, [&] {
        const Moments found = moments_of(Entries<double>(values.data()), n_points, n_features, four);
        require(expected.mean == found.mean && expected.variance == found.variance,
                "moments are the same bits");
    });
    std::vector<double> nearest(std::size_t(n_points), 0.25);
    const std::vector<double> uniforms{0.0, 0.3, 0.9};
    Team other_four(4);
    until_several_work(other_four, [&] {
        std::vector<int64_t> drawn[2] = {std::vector<int64_t>(3), std::vector<int64_t>(3)};
        for (int i : {0, 1})
            draw({nearest.data(), nullptr, nullptr, n_points, 3.0}, uniforms.data(), 3, i ? other_four : one,
                 drawn[i].data());
        require(drawn[0] == drawn[1], "draws are the same");
    });
}

// Several threads of Python may share one estimator's rows.
void callers_take_turns() {
    Team team(2);
    int64_t totals[2] = {0, 0};
    const auto call = [&](int caller) {
        for (int i = 0; i < 50; ++i)
            team.run(
                20, 2, [](int, int64_t) {}, [&, caller](int, int64_t stripe) { totals[caller] += stripe; });
    };
    std::thread other(call, 1);
    call(0);
    other.join();
    require(totals[0] == totals[1] && totals[0] == 50 * 190, "each caller gets its own work done");
    team.run(0, 0, [](int, int64_t) {});  // must return
}

void failures_reach_the_caller() {
    Team team(4);
    bool caught = false;
    try {
        team.run(50, 4, [](int, int64_t stripe) {
            if (stripe == 17) throw std::runtime_error("stripe 17");
        });
    } catch (const std::runtime_error&) {
        caught = true;
    }
    require(caught, "a failed stripe is thrown by run");
    int64_t n_merged = 0;
    team.run(
        50, 4, [](int, int64_t) {},
        [&](int, int64_t stripe) { require(stripe == n_merged++, "merged in order"); });
    require(n_merged == 50, "the team works on after a failure");
}

void parts_are_merged_in_order() {
    Team team(4);
    const int64_t n_stripes = 200, n_parts = 7;
    std::vector<int64_t> next(std::size_t(n_parts), 0);
    const auto compute = [](int, int64_t stripe) {
        if (stripe % 5 == 0) std::this_thread::yield();
    };
    const Merge merge{n_parts, [&](int, int64_t stripe, int64_t part) {
                          require(next[std::size_t(part)]++ == stripe, "each part takes stripes in order");
                      }};
    team.run(n_stripes, 4, compute, merge);
    require(next == std::vector<int64_t>(std::size_t(n_parts), n_stripes), "every part has every stripe");
}

void others_go_on_while_one_is_late() {
    Team team(2);
    const int64_t n_stripes = 40, n_ahead = 3;
    std::atomic<int64_t> n_others{0};
    bool went_on = false;
    const auto compute = [&](int, int64_t stripe) {
        if (stripe != 0) {
            ++n_others;
            return;
        }
        for (int i = 0; i < 5000 && n_others < n_ahead; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        went_on = n_others >= n_ahead;
    };
    int64_t next = 0;
    const auto add = [&](int place, int64_t stripe, int64_t) {
        require(stripe == next++ && 0 <= place && place < 8,
                "stripes are merged in order, from their places");
    };
    team.run(n_stripes, 2, compute, Merge{1, add, 4});
    require(went_on && next == n_stripes,
            "a worker with places goes on before the stripe of another is merged");
}

struct Stopped {};

// Returns whether `work` ends early where the interrupt throws at its n-th question.
template <class Work>
bool is_ended_by_question(int64_t n, const Work& work) {
    int64_t n_asked = 0;
    const Interrupt interrupt = [&] {
        if (++n_asked == n) throw Stopped();
    };
    const Interruptible interruptible(interrupt);
    try {
        work();
    } catch (const Stopped&) {
        return true;
    }
    return false;
}

// Others wait for a turn, for more stripes, or for the caller itself.
void interrupts_end_a_run() {
    Team team(3);
    for (int64_t n : {1, 2, 5}) {
        std::atomic<int64_t> n_computed{0};
        const auto compute = [&](int, int64_t) {
            ++n_computed;
            check_interrupt();
        };
        require(is_ended_by_question(n, [&] { team.run(1000000, 3, compute, [](int, int64_t) {}); }),
                "an interrupt is thrown by run");
        require(n_computed < 1000000, "the stripes left are not computed");
    }
    // The caller goes on alone where no other joins it; here it waits until all have.
    std::atomic<int> n_at_work{0};
    std::atomic<bool> is_over{false};
    const auto compute = [&](int worker, int64_t) {
        for (++n_at_work; n_at_work < 3;) std::this_thread::yield();
        while (worker != 0 && !is_over) check_interrupt();
    };
    require(is_ended_by_question(3, [&] { team.run(3, 3, compute); }), "while the caller waits for others");
    is_over = true;
    n_at_work = 0;
    until_several_work(team, [&] { team.run(3, 3, compute); });
    // A thread that comes when all is done has nothing to do with what the next run is about.
    for (int n = 0; n < 2000; ++n) {
        std::vector<int64_t> stripes(std::size_t(1 + n % 5));
        team.run(int64_t(stripes.size()), 3, [&](int, int64_t stripe) { ++stripes[std::size_t(stripe)]; });
        require(stripes == std::vector<int64_t>(stripes.size(), 1), "each stripe is computed once");
    }
}

// Whatever an interrupted sweep leaves, the next one computes what it would have without.
template <class Source>
void interrupted_sweeps_leave_the_points_usable(const Source& source, int64_t n_centers) {
    const std::vector<double> centers = random_values<double>(n_centers * source.n_features, 7);
    Team team(1);
    Asked<Source> asked(source, centers, n_centers, 2.0);
    asked.request.task = Task::hard_sums;
    const SweepResult expected = sweep(source, asked.request, team);
    for (int n_before : {0, 1, 3})
        for (int64_t n : {1, 2, 7}) {
            Source fresh = source;
            fresh.groups_in_space = std::make_shared<typename Source::Groups>();
            fresh.last_sweep = std::make_shared<LastSweep<typename Source::Stored>>();
            for (int i = 0; i < n_before; ++i) sweep(fresh, asked.request, team);
            require(is_ended_by_question(n, [&] { sweep(fresh, asked.request, team); }),
                    "a sweep ends early");
            for (int i = 0; i < 2; ++i) {
                const SweepResult found = sweep(fresh, asked.request, team);
                require(found.points == expected.points && found.weights == expected.weights &&
                            found.inertia == expected.inertia,
                        "an interrupted sweep changes no later one");
            }
        }
}

// A signal may make a child while another thread makes something, or has the team at work.
void forked_children_make_their_own() {
#if !defined(_WIN32)
    MadeOnce<int> made;
    Team team(2);
    std::atomic<bool> is_making{false}, may_end{false};
    std::thread maker([&] {
        made.get([&] {
            is_making = true;
            while (!may_end) std::this_thread::yield();
            return 1;
        });
    });
    while (!is_making) std::this_thread::yield();
    const pid_t child = fork();
    if (child == 0) {
        int64_t n_computed = 0;
        team.run(8, 1, [&](int, int64_t) { ++n_computed; });
        _exit(made.get([] { return 2; }) == 2 && n_computed == 8 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    require(status == 0, "a child makes its own");
    may_end = true;
    maker.join();
    require(made.get([] { return 3; }) == 1, "the parent keeps what it made");
#endif
}

SweepShape hard_shape(int64_t n_points, int64_t n_features, int64_t n_centers) {
    SweepShape shape{};
    shape.task = Task::hard_sums;
    shape.n_points = n_points;
    shape.n_features = shape.stored_per_point = n_features;
    shape.n_centers = n_centers;
    shape.value_bytes = 8;
    shape.is_dense = shape.has_shortcuts = true;
    return shape;
}

void long_sweeps_have_more_stripes() {
    const auto n_stripes = [](const SweepShape& shape) {
        return divide_up(shape.n_points, plan_for(shape).stripe_points);
    };
    require(n_stripes(hard_shape(1000000, 50, 100)) <= 256, "few where they are short");
    require(n_stripes(hard_shape(100000000, 50, 100)) > 2000, "many where they are long");
}

// Orders have 32 bits.
void only_points_that_can_be_numbered_are_ordered() {
    require(plan_for(hard_shape(int64_t{1} << 30, 8, 40)).ordered, "these can");
    require(!plan_for(hard_shape(int64_t{1} << 31, 8, 40)).ordered, "these cannot");
}

}  // namespace

int main() {
    for_each_instruction_set([](const char* name) {
        for (int n_threads : {1, 4}) {
            dense<double>(3001, 2, 5, n_threads);
            dense<float>(3001, 2, 17, n_threads);
            dense<double>(4001, 3, 40, n_threads);
            dense<double>(701, 33, 100, n_threads);
            dense<float>(701, 300, 9, n_threads);
            dense<float>(2000, 784, 10, n_threads);
            dense<double>(2000, 64, 50, n_threads);
            dense<float>(2000, 16, 300, n_threads);
            dense<float>(7, 17, 1, n_threads);
            dense<double>(1, 1, 1, n_threads);
            sparse<double>(701, 40, 9, n_threads);
            sparse<float>(701, 17, 20, n_threads);
        }
        for (const EntryType type : narrow_types) {
            run_every_task(NarrowPoints(type, 701, 3).source, 20, 2);
            run_every_task(NarrowPoints(type, 701, 131).source, 40, 2);
        }
        // Compilers of LLVM once left out the padding of these centers.
        for (const int64_t n_features : {2, 3, 16}) dense<double>(20000, n_features, 50, 2);
        threads_share(DensePoints<double>(40000, 3), 40);
        threads_share(DensePoints<float>(12000, 40), 40);
        threads_share(SparsePoints<float>(random_values<float>(800000, 2), 20, 1.0f), 30);
        std::printf("%s: every task ran\n", name);
    });
    few_centers_after_many();
    threads_share_moments_and_draws();
    callers_take_turns();
    failures_reach_the_caller();
    long_sweeps_have_more_stripes();
    only_points_that_can_be_numbered_are_ordered();
    parts_are_merged_in_order();
    others_go_on_while_one_is_late();
    interrupts_end_a_run();
    interrupted_sweeps_leave_the_points_usable(DensePoints<double>(40000, 3).source, 40);
    interrupted_sweeps_leave_the_points_usable(DensePoints<float>(12000, 40).source, 200);
    forked_children_make_their_own();
    return 0;
}
