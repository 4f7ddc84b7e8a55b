// The convex function of a Bregman divergence, up to an affine function: a sum of these terms, each with its factor.
#pragma once

namespace powermeans {

struct Phi {
    double square;     // of x^2
    double x_log_x;    // of x log x
    double minus_log;  // of -log x
    double inverse;    // of 1 / x
    double length;     // of |x|, which is no sum over the features and stands alone
};

}  // namespace powermeans
