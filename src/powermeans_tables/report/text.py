"""Names, numbers and lists as the text of a page."""

from __future__ import annotations

import html
import math

from powermeans.errors import printable


def escaped(text: str) -> str:
    """Return text as HTML that shows each of its characters."""
    return html.escape(printable(text))


def breakable(name: str) -> str:
    """Return a name as HTML in which lines may break after an underscore."""
    return escaped(name).replace("_", "_<wbr>")


def percent(share: float) -> str:
    """Return a share in percent, 0 % and 100 % only of none and all, but for rounding.

    >>> [percent(share)[:-2] for share in (-1e-17, 0.00001, 0.004, 0.254, 0.998, 1 - 1e-15)]
    ['0', '<0.1', '0.4', '25', '99.8', '100']
    """
    if 0.01 <= share <= 0.99 or not 1e-9 < share < 1 - 1e-9:
        text = f"{abs(100 * share):.0f}"
    else:
        extremes = {"0.0": "<0.1", "100.0": ">99.9"}
        text = extremes.get(f"{100 * share:.1f}", f"{100 * share:.1f}")
    return f"{text}\u00a0%"


def fixed(value: float, decimals: int) -> str:
    """Return a number with so many decimals, and zero without a sign.

    Commas stand from 10,000 on, and from 1,000 on where fewer than no decimals are asked for.

    >>> fixed(-1.4e-17, 1), fixed(-3.26, 1), fixed(62312.4, 0), fixed(float("nan"), 1)
    ('0.0', '−3.3', '62,312', 'missing')
    """
    if not math.isfinite(value):
        return "missing"
    if abs(value) >= 1e15 or (decimals > 9 and value):
        return f"{value:.4g}".replace("-", "−")
    comma = "," if decimals < 0 or abs(value) >= 10_000 else ""
    text = f"{value:{comma}.{min(max(decimals, 0), 9)}f}"
    is_zero = float(text.replace(",", "")) == 0
    return text.removeprefix("-") if is_zero else text.replace("-", "−")


def decimals_of(value: float, digits: int) -> int:
    """Return how many decimals show some digits of a number, negative if it has more."""
    if not (math.isfinite(value) and abs(value) > 1e-300):
        return 0
    return digits - 1 - math.floor(math.log10(abs(value)))
