"""Numbers such as -999 that stand for missing values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from powermeans.types import FloatArray

_NINES = (9.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0, 99.9, 999.9, 99.99, 999.99)
_EIGHTS = (8.0, 98.0, 998.0, 9998.0)  # which surveys use beside nines
_CODES = np.sort([-1.0, *_NINES, *_EIGHTS, *(-code for code in (*_NINES, *_EIGHTS))])
_LONGEST_SCALE = 7


def is_code(text: str) -> bool:
    """Return whether a text is a number such as 99 or -9, among words a code for a missing one."""
    return text.lstrip("-").isdecimal() and len(text) < 8 and float(text) in _CODES


def missing_codes(columns: Mapping[str, FloatArray]) -> dict[str, dict[float, int]]:
    """Return the codes in each column and their rows; a code of one column counts in others too."""
    found = {name: dict(_codes_in(values)) for name, values in columns.items()}
    known = {code for codes in found.values() for code in codes}
    for name, values in columns.items() if known else ():
        found[name] |= dict(_known_in(values, known - found[name].keys()))
    return {name: codes for name, codes in found.items() if codes}


def _codes_in(values: FloatArray) -> Iterator[tuple[float, int]]:
    """Yield codes that recur far outside the range of the others, or beyond a short scale."""
    there = values[~np.isnan(values)]
    are_codes = _are_codes(there)
    others = there[~are_codes]
    if not are_codes.any() or len(others) < len(there) / 2 or len(np.unique(others[: 2**16])) < 3:
        return
    low, high = float(others.min()), float(others.max())
    is_scale = _is_scale(others) and not (high == _LONGEST_SCALE and (there == high + 1).any())
    is_nine = False
    for code in sorted(np.unique(there[are_codes]), key=lambda each: each in _EIGHTS):
        if code % 1 and np.isin(np.round(others % 1, 6), np.round(code % 1, 6)).any():
            continue  # a price such as 99.99 among others that end in .99
        n_rows = int(np.count_nonzero(there == code))
        is_eight = abs(code) in _EIGHTS
        if is_eight and not is_nine:
            continue
        is_far = max(low - code, code - high) >= high - low
        is_beyond_scale = is_scale and code >= high + 2
        is_beyond_scale |= is_eight and is_scale and code > high
        is_negative = code < 0 <= low and ((code == -1 and low > 0) or abs(code) in _NINES[:4])
        if n_rows >= 3 and (is_far or is_beyond_scale or is_negative):
            is_nine |= not is_eight
            yield float(code), n_rows


def _known_in(values: FloatArray, codes: set[float]) -> Iterator[tuple[float, int]]:
    """Yield the codes of other columns that are outside the range here, however few they are."""
    there = values[~np.isnan(values)]
    others = there[~_are_codes(there)]
    if len(others) < len(there) / 2 or not len(others):
        return
    low, high = float(others.min()), float(others.max())
    for code in sorted(codes):
        n_rows = int(np.count_nonzero(there == code))
        is_beyond = max(low - code, code - high) >= max(high - low, 1.0)
        if n_rows and (is_beyond or (_is_scale(others) and (code < low or code >= high + 2))):
            yield code, n_rows


def _are_codes(values: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(_CODES[np.searchsorted(_CODES[:-1], values)] == values)


def _is_scale(values: FloatArray) -> bool:
    """Return whether values are those of a scale from zero or one to at most seven."""
    different = np.unique(values[: 2**16])
    is_short = len(different) <= _LONGEST_SCALE + 1 and different[-1] <= _LONGEST_SCALE
    return bool(is_short and different[0] in (0, 1) and (np.diff(different) == 1).all())
