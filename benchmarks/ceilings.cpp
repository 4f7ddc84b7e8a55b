// What one core and several can do at most: multiply-adds in registers, and reading memory. Prints JSON.
// Meant for -O3 -march=native: vectors are as wide as the machine has them.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif
constexpr int n_chains = 10;  // more than latency times throughput, and few enough for the registers
constexpr int64_t steps_at_once = 1 << 20;
constexpr double seconds_of_a_try = 0.1;
constexpr int n_tries = 5;
constexpr int64_t smallest_array = 1 << 20, largest_array = 1 << 30, growth_of_arrays = 4;

template <class T>
struct VectorOf {
    typedef T Type __attribute__((vector_size(vector_bytes)));
};
template <class T>
using Vector = typename VectorOf<T>::Type;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Value>
void keep(Value& value) {
    asm volatile("" : "+x"(value));
}

// What all threads together achieve a second, the best of some tries: `work` returns how much it did.
double best_rate(int n_threads, const std::function<double(int)>& work) {
    double best = 0;
    for (int attempt = 0; attempt < n_tries; ++attempt) {
        std::vector<double> rates(static_cast<std::size_t>(n_threads));
        std::vector<std::thread> threads;
        for (int t = 0; t < n_threads; ++t)
            threads.emplace_back([&, t] {
                const double begin = now();
                double done = 0;
                while (now() - begin < seconds_of_a_try) done += work(t);
                rates[std::size_t(t)] = done / (now() - begin);
            });
        double together = 0;
        for (int t = 0; t < n_threads; ++t) {
            threads[std::size_t(t)].join();
            together += rates[std::size_t(t)];
        }
        best = std::max(best, together);
    }
    return best;
}

template <class T>
double multiply_adds() {
    Vector<T> chains[n_chains] = {}, factor = Vector<T>{} + T(0.5), term = Vector<T>{} + T(1);
    keep(factor);
    keep(term);
    for (Vector<T>& chain : chains) keep(chain);  // or one chain would do for all
    for (int64_t step = 0; step < steps_at_once; ++step)
#pragma GCC unroll 10
        for (int c = 0; c < n_chains; ++c) chains[c] = chains[c] * factor + term;
    for (Vector<T>& chain : chains) keep(chain);
    return double(steps_at_once) * n_chains * (vector_bytes / sizeof(T));
}

double bytes_read(const std::vector<double>& array, int64_t begin, int64_t end) {
    Vector<double> sums[8] = {};
    constexpr int64_t step = 8 * vector_bytes / int64_t(sizeof(double));
    for (int64_t i = begin; i + step <= end; i += step)
#pragma GCC unroll 8
        for (int64_t v = 0; v < 8; ++v) {
            Vector<double> loaded;
            __builtin_memcpy(&loaded, &array[std::size_t(i + v * step / 8)], sizeof loaded);
            sums[v] += loaded;
        }
    for (Vector<double>& sum : sums) keep(sum);
    return double(end - begin) * sizeof(double);
}

void print_bandwidths(int n_threads) {
    const char* separator = "";
    for (int64_t bytes = smallest_array; bytes <= largest_array; bytes *= growth_of_arrays) {
        const int64_t n = bytes / int64_t(sizeof(double)), share = n / n_threads;
        const std::vector<double> array(static_cast<std::size_t>(n), 1.0);
        const double rate =
            best_rate(n_threads, [&](int t) { return bytes_read(array, t * share, (t + 1) * share); });
        std::printf("%s\"%lld\": %.4g", separator, static_cast<long long>(bytes), rate);
        separator = ", ";
    }
}

}  // namespace

int main(int n_arguments, char** arguments) {
    std::printf("{");
    for (int a = 1; a < n_arguments; ++a) {
        const int n_threads = std::max(1, std::atoi(arguments[a]));
        std::printf("%s\"%d\": {\"multiply-adds a second\": {\"float32\": %.4g, \"float64\": %.4g}, ",
                    a > 1 ? ", " : "", n_threads,
                    best_rate(n_threads, [](int) { return multiply_adds<float>(); }),
                    best_rate(n_threads, [](int) { return multiply_adds<double>(); }));
        std::printf("\"bytes a second by size of array\": {");
        print_bandwidths(n_threads);
        std::printf("}}");
    }
    std::printf("}\n");
}
