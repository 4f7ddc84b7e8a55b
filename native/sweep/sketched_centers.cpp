#include "sweep/sketched_centers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dispatch.hpp"
#include "kernels/rounding.hpp"

namespace powermeans {
namespace {

// Makes up for the rounding of a float, and of the sum that it comes from.
constexpr double rounded_up = 1 + 1e-6;

}  // namespace

SketchedCenters::SketchedCenters(const double* rows, int64_t n_centers, int64_t row_width, int64_t width) {
    const std::size_t n_padded = std::size_t(round_up(n_centers, sketched_lanes));
    panels_ = Aligned<int8_t>(n_padded * std::size_t(width));
    offsets_ = Aligned<int32_t>(n_padded);
    for (Aligned<float>* values : {&steps_, &errors_, &sq_norms_, &norm_changes_, &lengths_})
        *values = Aligned<float>(n_padded);
    std::fill_n(sq_norms_.get(), n_padded, std::numeric_limits<float>::infinity());
    view_ = {int64_t(n_padded), width,           panels_.get(),       offsets_.get(), steps_.get(),
             errors_.get(),     sq_norms_.get(), norm_changes_.get(), lengths_.get()};
    const int64_t row_codes = round_up(row_width, codes_per_step);
    std::vector<uint8_t> codes(static_cast<std::size_t>(row_codes));
    const std::vector<double> origin(std::size_t(row_width), 0.0);
    const SketchKernel<double>& kernel = *chosen_instruction_set().kernels;
    for (int64_t j = 0; j < n_centers; ++j) {
        const double* row = rows + j * row_width;
        double step, error, norm;
        int32_t code_norm;
        kernel.sketch(Entries<double>(row), row_width, origin.data(), 1, 0, 1, nullptr,
                      {codes.data(), &step, &error, &code_norm, &norm, row_codes});
        put(j, codes.data(), step, error, norm);
        norm_changes_[std::size_t(j)] = float(step * step * double(code_norm) - norm);
    }
}

void SketchedCenters::put(int64_t center, const uint8_t* codes, double step, double error, double sq_norm) {
    const std::size_t j = std::size_t(center);
    int8_t* panel = panels_.get() + center / sketched_lanes * sketched_lanes * view_.width +
                    center % sketched_lanes * quad_codes;
    int32_t sum = 0;
    for (int64_t f = 0; f < view_.width; ++f) {
        const int32_t code = int32_t(codes[f]) - middle_code;
        panel[f / quad_codes * sketched_lanes * quad_codes + f % quad_codes] = int8_t(code);
        sum += code;
    }
    offsets_[j] = middle_code * sum;
    steps_[j] = float(step);
    errors_[j] = float(error * rounded_up);
    sq_norms_[j] = float(sq_norm);
    lengths_[j] = float(std::sqrt(sq_norm) * rounded_up);
}

}  // namespace powermeans
