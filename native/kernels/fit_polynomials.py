"""Print the polynomial coefficients of native/kernels/elementary.hpp: near-minimax fits by mpmath.

Run `python native/kernels/fit_polynomials.py` and compare, when a degree or an interval changes.
"""

from __future__ import annotations

import mpmath as mp

mp.mp.prec = 200
HALF_LOG2 = mp.log(2) / 2
SQRT_HALF, SQRT_TWO = mp.sqrt(mp.mpf(1) / 2), mp.sqrt(2)


def exp_tail(x: mp.mpf) -> mp.mpf:
    """q(x) in exp(x) = 1 + x + x^2 q(x)."""
    if abs(x) < mp.mpf(10) ** -15:
        return mp.mpf(1) / 2 + x / 6
    return (mp.exp(x) - 1 - x) / x**2


def atanh_tail(z: mp.mpf) -> mp.mpf:
    """r(z) in log((1 + s) / (1 - s)) = 2 s + s z r(z), with z = s^2."""
    s = mp.sqrt(z)
    if s < mp.mpf(10) ** -15:
        return mp.mpf(2) / 3 + z * 2 / 5
    return (mp.log((1 + s) / (1 - s)) / s - 2) / z


def log_tail(f: mp.mpf) -> mp.mpf:
    """q(f) in log(1 + f) = f - f^2 / 2 + f^3 q(f)."""
    if abs(f) < mp.mpf(10) ** -15:
        return mp.mpf(1) / 3 - f / 4
    return (mp.log(1 + f) - f + f**2 / 2) / f**3


def exp2_rest(x: mp.mpf) -> mp.mpf:
    """q(x) in 2^x = 1 + x q(x)."""
    if abs(x) < mp.mpf(10) ** -15:
        return mp.log(2) + x * mp.log(2) ** 2 / 2
    return (mp.mpf(2) ** x - 1) / x


def log2_quotient(f: mp.mpf) -> mp.mpf:
    """q(f) in log2(1 + f) = f q(f)."""
    return (mp.mpf(1) if abs(f) < mp.mpf(10) ** -15 else mp.log(1 + f) / f) / mp.log(2)


def atanh_quotient(z: mp.mpf) -> mp.mpf:
    """r(z) in log2((1 + s) / (1 - s)) = s r(z), with z = s^2."""
    return (2 + z * atanh_tail(z)) / mp.log(2)


def show(name: str, function, interval: list, n_coefficients: int) -> None:
    """Coefficients from the highest power down, and the largest error of the fit."""
    coefficients, error = mp.chebyfit(function, interval, n_coefficients, error=True)
    print(f"{name}: error {mp.nstr(error, 3)}")
    for coefficient in coefficients:
        print(f"    {float(coefficient):.17e},  {float(coefficient).hex()}")


if __name__ == "__main__":
    largest_s = (SQRT_TWO - 1) / (SQRT_TWO + 1)
    show("exp, double", exp_tail, [-HALF_LOG2 * 1.01, HALF_LOG2 * 1.01], 10)
    show("exp, float", exp_tail, [-HALF_LOG2 * 1.01, HALF_LOG2 * 1.01], 5)
    show("log, double", atanh_tail, [mp.mpf(0), (largest_s * 1.01) ** 2], 7)
    show("log, float", log_tail, [SQRT_HALF - 1, SQRT_TWO - 1], 9)
    show("exp2, double", exp2_rest, [-mp.mpf(1) / 2, mp.mpf(1) / 2], 10)
    show("exp2, float", exp2_rest, [-mp.mpf(1) / 2, mp.mpf(1) / 2], 6)
    show("log2, double", atanh_quotient, [mp.mpf(0), largest_s**2], 7)
    show("log2, float", log2_quotient, [SQRT_HALF - 1, SQRT_TWO - 1], 9)
