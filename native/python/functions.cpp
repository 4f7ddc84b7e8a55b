// The functions of the Python module.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "dispatch.hpp"
#include "line/line.hpp"
#include "python/arguments.hpp"
#include "python/module.hpp"
#include "sweep/shortcuts.hpp"
#include "threads/thread_limit.hpp"
#include "transport/transport.hpp"

namespace powermeans {
namespace {

// Returns by how much weight the sizes miss the limits.
double transport_points(Indices starts, In<int32_t, 1> choices, Vector distances,
                        std::optional<Vector> weights, Vector least_sizes, Vector most_sizes,
                        double mean_size, double curvature, Out<int32_t, 1> labels, Out<double, 1> sizes,
                        Out<double, 1> prices) {
    const int64_t n_points = int64_t(labels.shape(0)), k = int64_t(prices.shape(0));
    require(int64_t(starts.shape(0)) == n_points + 1 && starts.data()[0] == 0 &&
                starts.data()[n_points] == int64_t(choices.shape(0)) &&
                choices.shape(0) == distances.shape(0),
            "starts, choices and distances do not describe lists of as many points as labels");
    require(!weights || int64_t(weights->shape(0)) == n_points, "weights must have one entry for each point");
    require(int64_t(least_sizes.shape(0)) == k && int64_t(most_sizes.shape(0)) == k &&
                int64_t(sizes.shape(0)) == k,
            "sizes must have one entry for each center");
    const auto are_centers = [k](const int32_t* first, std::size_t n) {
        return std::all_of(first, first + n, [k](int32_t j) { return j >= 0 && j < k; });
    };
    require(are_centers(choices.data(), choices.shape(0)) && are_centers(labels.data(), labels.shape(0)),
            "choices and labels must be numbers of centers");
    const TransportRequest asked{n_points,           k,
                                 starts.data(),      choices.data(),
                                 distances.data(),   weights ? weights->data() : nullptr,
                                 least_sizes.data(), most_sizes.data(),
                                 mean_size,          curvature,
                                 labels.data(),      sizes.data(),
                                 prices.data()};
    return in_background([&] { return transport(asked); });
}

void divide_values(Vector values, Vector weights, Out<int64_t, 1> starts) {
    const int64_t n = int64_t(values.shape(0)), n_runs = int64_t(starts.shape(0));
    require(int64_t(weights.shape(0)) == n, "weights must have one entry for each value");
    require(n < std::numeric_limits<int32_t>::max(), "there may be up to 2^31 - 2 values");
    require(1 <= n_runs && n_runs <= n, "runs must be from one to as many as values");
    const double *first = values.data(), *weight = weights.data();
    require(std::adjacent_find(first, first + n, [](double a, double b) { return !(a < b); }) == first + n,
            "values must rise");
    require(std::all_of(weight, weight + n, [](double w) { return w > 0; }), "weights must be positive");
    const LineRequest asked{n, first, weight, n_runs, starts.data()};
    in_background([&] { powermeans::divide_line(asked); });
}

template <class T>
void bind_elementary(nb::module_& module) {
    using Kernels = ElementaryKernels<T>;
    const auto bind = [&](const char* name, auto function) {
        const auto apply = [function](In<T, 1> values, Out<T, 1> results) {
            require(values.shape(0) == results.shape(0), "results must be as long as values");
            const Kernels& kernels = *chosen_instruction_set().kernels;
            (kernels.*function)(values.data(), int64_t(values.shape(0)), results.data());
        };
        module.def(name, apply, "values"_a.noconvert(), "results"_a.noconvert());
    };
    bind("log", &Kernels::log);
    bind("exp", &Kernels::exp);
}

}  // namespace

void bind_functions(nb::module_& module) {
    module.def("instruction_set", [] { return std::string(chosen_instruction_set().name); });
    module.def("instruction_sets", [] {
        std::vector<std::string> names;
        for (const InstructionSet& set : instruction_sets())
            if (set.supported) names.push_back(set.name);
        return names;
    });
    module.attr("FEW_FEATURES") = direct_max_features;
    module.def("takes_shortcuts", &takes_shortcuts);
    module.def("take_shortcuts", &take_shortcuts, "taken"_a);
    module.def("thread_limit", &powermeans_get_num_threads);
    module.def("transport", &transport_points, "starts"_a.noconvert(), "choices"_a.noconvert(),
               "distances"_a.noconvert(), "weights"_a.noconvert().none(), "least_sizes"_a.noconvert(),
               "most_sizes"_a.noconvert(), "mean_size"_a, "curvature"_a, "labels"_a.noconvert(),
               "sizes"_a.noconvert(), "prices"_a.noconvert());
    module.def("divide_line", &divide_values, "values"_a.noconvert(), "weights"_a.noconvert(),
               "starts"_a.noconvert());
    bind_elementary<float>(module);
    bind_elementary<double>(module);
}

}  // namespace powermeans
