"""Words that have an order, such as answers on a scale from never to always."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Sequence
from pathlib import Path

_NUMBERED = re.compile(r"(\d+)\s*[-–:.)(=]\s*\D.*")
_RANGE = re.compile(
    r"(?:under|below|up to|less than|unter|bis|<|≤|over|above|more than|über|ab|>|≥)?\s*[$£€]?"
    r"(\d+(?:[.,]\d+)?)\s*[km]?\s*(?:[-–]|to|bis)?\s*[$£€]?(?:\d+(?:[.,]\d+)?)?\s*[km]?\s*"
    r"(?:\+|or more|and over)?\s*\w{0,6}"
)
_NONE_AT_ALL = (
    *("never", "none", "no", "nil", "zero", "nie", "keine", "jamais", "aucun"),
    *("nunca", "mai", "nessuno"),
)
_BELOW = re.compile(r"(?:under|below|up to|less than|unter|bis|<|≤)")


def levels_of(words: Collection[str], given: Sequence[Sequence[str]] = ()) -> dict[str, int] | None:
    """Return the level of each word by a scale in `given` or a known one, or None if none fits."""
    plain = {word: _plain(word) for word in words}
    scales = [[{_plain(word)} for word in scale] for scale in given]
    for scale in [*scales, *_known_scales()]:
        levels = {word: number for number, level in enumerate(scale, 1) for word in level}
        if all(word in levels for word in plain.values()):
            return {word: levels[each] for word, each in plain.items()}
    return _by_number(plain)


@functools.cache
def _known_scales() -> list[list[set[str]]]:
    """Return the levels of each line of a file, from the lowest on; a stroke divides their words.

    The first scale that has all words of a column orders it.
    """
    lines = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    return [[set(level.split("/")) for level in line.split(" < ")] for line in lines]


def _plain(word: str) -> str:
    plain = re.sub(r"(?<=\d)[.,](?=\d{3}\b)", "", word.replace("’", "'"))  # 25,000
    return " ".join(plain.casefold().replace("/", " ").replace(",", " ").split()).strip(" .!")


def _by_number(plain: dict[str, str]) -> dict[str, int] | None:
    """Return the levels of words that begin with a number, or are ranges such as 18-24."""
    firsts = _firsts(plain, _NUMBERED)
    is_range = any(re.search(r"\d\s*[-–]\s*[$£€]?\d", each) for each in plain.values())
    if firsts is None and is_range:
        firsts = _firsts(plain, _RANGE)
    if firsts is None or len(set(firsts.values())) < len(firsts):
        return None
    order = sorted(firsts, key=lambda word: firsts[word])
    return {word: number for number, word in enumerate(order, 1)}


def _firsts(plain: dict[str, str], pattern: re.Pattern[str]) -> dict[str, float] | None:
    """Return the first number of each word, below all others for none at all."""
    found = {word: pattern.fullmatch(each) for word, each in plain.items()}
    nothing = [word for word, each in plain.items() if each in _NONE_AT_ALL]
    if any(match is None for word, match in found.items() if word not in nothing):
        return None
    numbers = {word: float(match[1].replace(",", ".")) for word, match in found.items() if match}
    numbers |= dict.fromkeys(nothing, -1.0)
    # "under 18" comes before "18-24".
    return {word: n - 0.5 * bool(_BELOW.match(plain[word])) for word, n in numbers.items()}
