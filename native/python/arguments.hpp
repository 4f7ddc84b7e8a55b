// Arguments and results of the Python module. Every argument is typed and never converted; arrays that are
// written to come last.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "threads/interrupts.hpp"

namespace powermeans {

namespace nb = nanobind;
using namespace nb::literals;

template <class T, int ndim>
using In = nb::ndarray<const T, nb::ndim<ndim>, nb::c_contig, nb::device::cpu>;
template <class T, int ndim>
using Out = nb::ndarray<T, nb::ndim<ndim>, nb::c_contig, nb::device::cpu>;
using Vector = In<double, 1>;
using Indices = In<int64_t, 1>;
template <int ndim>
using Result = nb::ndarray<nb::numpy, double, nb::ndim<ndim>>;

template <int ndim>
Result<ndim> to_numpy(std::vector<double>&& values, std::initializer_list<std::size_t> shape) {
    auto* kept = new std::vector<double>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
    return Result<ndim>(kept->data(), shape, owner);
}

inline void require(bool holds, const char* what) {
    if (!holds) throw nb::value_error(what);
}

// Takes the GIL. Once the interpreter has ended, Python unwinds the thread that asks, through destructors and
// code of its own that let nothing pass, which would abort the process: such a thread waits for the end here.
template <class Take>
auto or_never(const Take& take) {
    try {
        return take();
    } catch (...) {
        for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
}

// Raises what a signal handler raises, as Ctrl-C does. It asks every 50 ms only: asking takes the GIL.
class SignalWatch {
  public:
    void operator()() {
        const Clock::time_point now = Clock::now();
        if (now < next_) return;
        next_ = now + between_questions;
        const struct Held {
            PyGILState_STATE state = or_never(PyGILState_Ensure);
            ~Held() { PyGILState_Release(state); }
        } held;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds between_questions{50};
    Clock::time_point next_ = Clock::now() + between_questions;
};

// Does work without the GIL, until a signal handler raises.
template <class Work>
auto in_background(const Work& work) {
    const auto take_back = [](PyThreadState* state) { or_never([state] { PyEval_RestoreThread(state); }); };
    const std::unique_ptr<PyThreadState, decltype(take_back)> released(PyEval_SaveThread(), take_back);
    const Interrupt watch = SignalWatch();
    const Interruptible interruptible(watch);
    return work();
}

}  // namespace powermeans
