"""Names, numbers and lists as the text of a page."""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Sequence

# Numbers outside this range have an exponent.
_LARGEST, _LEAST = 1e15, 1e-4
# Characters that turn the direction of what follows, or that nobody sees.
_UNSEEN = (
    "\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e"
    "\u2066\u2067\u2068\u2069\ufeff"
)


def visible(text: str) -> str:
    r"""Write control characters, and those that turn the direction of text, as escapes.

    >>> print(visible("a\tb\u202ec"))
    a\tb\u202ec
    """
    return "".join(_visible(letter) for letter in text)


def _visible(letter: str) -> str:
    if letter in _UNSEEN or unicodedata.category(letter) in ("Cc", "Cs"):
        return letter.encode("unicode_escape", "surrogatepass").decode("ascii")
    return letter


def escaped(text: str) -> str:
    """Return text as HTML that shows each of its characters."""
    return html.escape(visible(text))


def plain(name: str) -> str:
    """Return the name of a column as one says it."""
    return visible(name).replace("_", " ").strip()


def listed(words: Sequence[str]) -> str:
    """Join words by commas and a last "and"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def breakable(name: str) -> str:
    """Return a name as HTML in which lines may break after an underscore."""
    return escaped(name).replace("_", "_<wbr>")


def percent(share: float) -> str:
    """Return a share in percent, 0% and 100% only of none and all.

    >>> [percent(share) for share in (0.0, 0.00001, 0.004, 0.254, 0.998, 0.99999, 1.0)]
    ['0%', 'less than 0.1%', '0.4%', '25%', '99.8%', 'more than 99.9%', '100%']
    """
    if 0.01 <= share <= 0.99 or share <= 0 or share >= 1:
        return f"{share:.0%}"
    extremes = {"0.0%": "less than 0.1%", "100.0%": "more than 99.9%"}
    return extremes.get(f"{share:.1%}", f"{share:.1%}")


def count(number: int) -> str:
    """Return a number with commas between thousands."""
    return f"{number:,}"


def number(value: float, deviation: float = 0.0) -> str:
    """Return a number with all whole digits, and decimals to show four digits of it or its sd."""
    if not math.isfinite(value) or abs(value) >= _LARGEST or 0 < abs(value) < _LEAST:
        return _minus(f"{value:.4g}")
    wanted = max(decimals_of(value), decimals_of(deviation))
    return _minus(f"{value:.{min(wanted, decimals_of(value, 15))}f}")


def rounded(value: float, deviation: float) -> str:
    """Return a number with the decimals that show two digits of the deviation of its column."""
    if not math.isfinite(value) or deviation < _LEAST or abs(value) >= _LARGEST:
        return number(value)
    text = f"{value:.{decimals_of(deviation, 2)}f}"
    return _minus(text.removeprefix("-") if float(text) == 0 else text)


def entry(value: float, deviation: float) -> str:
    """Return a number of the data, in as many digits as its mean is shown, without final zeros."""
    if not math.isfinite(value):
        return "missing"
    text = number(value, deviation)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def decimals_of(value: float, digits: int = 4) -> int:
    """Return how many decimals a number needs to show some significant digits."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def _minus(text: str) -> str:
    return text.replace("-", "\u2212")
