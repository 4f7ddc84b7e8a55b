"""The form in which a column of text writes its numbers, inferred from the column as a whole."""

from __future__ import annotations

import contextlib
import functools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from powermeans.types import FloatArray
from powermeans_tables.cells.arrow import pa, pc
from powermeans_tables.cells.missing_codes import is_code

NO_VALUE = (
    *("", "NA", "N/A", "#N/A", "<NA>", "n/a", "na", "NaN", "nan", "NAN", "null", "NULL", "None"),
    *("none", "?", "-", "--", "–", "—", "."),
)

UNANSWERED = frozenset(
    (
        *("don't know", "don’t know", "dont know", "do not know", "dk", "unknown", "missing"),
        *("prefer not to say", "prefer not to answer", "rather not say", "möchte ich nicht sagen"),
        *("sans réponse", "ne sait pas", "je ne sais pas"),
        *("no sabe", "no contesta", "ns/nc", "prefiero no decirlo", "non so", "non risponde"),
        *("refused", "no answer", "not available", "not applicable", "n.a.", "n. a.", "n.d.", "nd"),
        *("нет данных", "н/д", "не знаю", "затрудняюсь ответить", "brak danych", "onbekend"),
        *("keine angabe", "k.a.", "k. a.", "weiß nicht", "weiss nicht", "unbekannt", "inconnu"),
        *("#value!", "#div/0!", "#ref!", "#nv", "#wert!", "nv", "n.v.", "undefined"),
    )
)

Dates = Literal["days", "day-first", "month-first"]
_Kind = Literal["number", "boolean", "date", "duration", "text", "empty"]

_CLASSES = {"": "", ".": r"\.", ",": ",", " ": "[ \u00a0\u2009\u202f]", "'": "['’]"}
_SUFFIXES = {
    **dict.fromkeys(("k", "tsd", "thousand"), 1e3),
    **dict.fromkeys(("m", "mn", "mio", "mill", "million"), 1e6),
    **dict.fromkeys(("b", "bn", "mrd", "md", "billion"), 1e9),
}
_SUFFIX = "[KkMB]|(?i:" + "|".join(each for each in _SUFFIXES if len(each) > 1) + ")"
_SUFFIX_OF_MONEY = f"[mb]|{_SUFFIX}"  # without a currency, m is for meters
# What stands before a number that an instrument could not tell apart from the limit.
BOUND = r"^[<≤>≥]=?\s*([0-9.])"
_PLAIN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NOT_FINITE = re.compile(r"[-+]?(?:inf|infinity)", re.IGNORECASE)
PAIRS = ("true false", "yes no", "y n", "t f", "ja nein", "oui non", "wahr falsch", "vrai faux")
_DURATION = re.compile(r"-?(?:(\d+):)?(\d+):([0-5]\d(?:[.,]\d+)?)")
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?")
_DATES = {
    order: re.compile(
        day + r"(?:[T ](\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?(?:Z| ?\+?(-?\d{2}):?(\d{2}))?)?"
    )
    for order, day in {
        "year-first": r"(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?",
        "day-first": r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d{2})",
    }.items()
}


@dataclass(frozen=True, slots=True)
class Marks:
    """The mark before fractions and the one between thousands, each empty if unknown or none."""

    decimal: str = ""
    thousands: str = ""

    def pattern(self) -> str:
        """Return a regular expression for numbers, in the syntax that Python and RE2 share."""
        point, mark = _CLASSES[self.decimal or "."], _CLASSES[self.thousands]
        whole = rf"\d+|[1-9]\d{{0,2}}(?:{mark}\d{{2,3}})*{mark}\d{{3}}" if mark else r"\d+"
        return rf"(?:(?:{whole})(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?"

    def fits(self, digits: str) -> bool:
        """Return whether these marks may write a number of these digits and marks."""
        return re.fullmatch(self.pattern(), digits) is not None

    def value(self, digits: str) -> float:
        """Return the number that these digits and marks write."""
        bare = re.sub(_CLASSES[self.thousands], "", digits) if self.thousands else digits
        return float(bare.replace(self.decimal or ".", "."))


_MARKS = [Marks(decimal, mark) for mark in _CLASSES for decimal in ".," if mark != decimal]


@dataclass(frozen=True, slots=True)
class Form:
    """How a column writes its values."""

    kind: _Kind
    marks: Marks = Marks()
    is_plain: bool = True  # only digits, a decimal mark and an exponent, as PyArrow reads them
    currency: str = ""
    has_percent: bool = False
    has_suffix: bool = False  # such as K and M, which multiply
    order: str = ""  # of the day, month and year
    sample: str = ""
    choices: tuple[Marks, ...] = ()  # that give the sample different values
    likely: str = ""  # the decimal mark that whole numbers suggest
    is_assumed: bool = False
    words: tuple[str, ...] = ()  # that stand for missing values in this column


def is_number(cell: str) -> bool:
    """Return whether a cell is a number in any form, or none is there; one such as 5K is not."""
    found = _number_in(cell)
    is_one = found is not None and bool(found.currency or found.suffix in ("", "%"))
    return cell in NO_VALUE or is_one or bool(_NOT_FINITE.fullmatch(cell))


def currencies_in(counts: Mapping[str, int]) -> list[str]:
    """Return the currencies of the numbers in most cells, the most frequent first."""
    found: Counter[str] = Counter()
    for cell, count in counts.items():
        number = _number_in(cell)
        found[number.currency if number else ""] += count
    n_without = found.pop("", 0)
    return [each for each, _ in found.most_common()] if n_without < found.total() else []


def as_number(cell: str) -> float | None:
    """Return the number that a cell writes as programs do, or None."""
    return float(cell) if _PLAIN.fullmatch(cell) else None


def is_date(cell: str) -> bool:
    """Return whether a cell is a date, a time or a duration."""
    return _is_day(cell) or _DURATION.fullmatch(cell) is not None


def _is_day(cell: str) -> bool:
    has_one_mark = re.match(r"\d+([-/.])\d+\1|\d+年", cell) is not None
    return has_one_mark and any(pattern.fullmatch(cell) for pattern in _DATES.values())


def words_for_missing(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return the words in a column of numbers if they stand for missing values, else nothing.

    An unknown word does so where it occurs again and at most one other does.
    """
    unknown = [word for word in counts if not is_unanswered(word)]
    are_words = not any(re.search(r"\d", word) or _NOT_FINITE.fullmatch(word) for word in unknown)
    recur = all(counts[word] > 1 for word in unknown)
    return tuple(counts) if are_words and recur and len(unknown) <= 2 else ()


def is_unanswered(cell: str) -> bool:
    """Return whether a cell is a word that is known to stand for a missing value."""
    return cell.casefold() in UNANSWERED


def form_of(cells: Sequence[str], decimal: str | None, thousands: str | None) -> Form:
    """Return the form of a column from its first cells, without those that miss a value."""
    if not cells:
        return Form("empty", marks=Marks(decimal or ""))
    bounds = [cell[0] in "<≤>≥" for cell in cells]
    if any(bounds) and not all(bounds):  # as of two groups, such as <50K and >50K
        cells = [re.sub(BOUND, r"\1", cell) for cell in cells]
    plain = _form_of_plain(cells, decimal) if thousands is None else None
    if plain is not None:
        return plain
    found = _numbers_in(cells)
    numbers = [number for _, number in found if number is not None]
    texts = [cell for cell, number in found if number is None and not _NOT_FINITE.fullmatch(cell)]
    if len(texts) > 0.5 * len(cells):
        return _form_of_words(cells, texts)
    form = _form_of_numbers(numbers, decimal, thousands)
    return replace(form, words=words_for_missing(Counter(texts)))


def _form_of_plain(cells: Sequence[str], decimal: str | None) -> Form | None:
    """Return the form of numbers as programs write them, None if points may be for thousands."""
    if decimal not in (None, ".") or not all(map(_PLAIN.fullmatch, cells)):
        return None
    points = [cell for cell in cells if "." in cell]
    maybe_thousands = re.compile(r"[-+]?[1-9]\d{0,2}(?:\.\d{3})+")
    if decimal or not points or not all(map(maybe_thousands.fullmatch, points)):
        return Form("number", Marks("." if points else decimal or ""))
    return None


@dataclass(frozen=True, slots=True)
class _Number:
    """A number in text, taken apart."""

    digits: str
    currency: str
    suffix: str  # or a percent sign
    is_unit: bool  # whether the suffix may be one, such as K
    is_plain: bool


@functools.cache
def _pattern_of_cells() -> re.Pattern[str]:
    """Return a regular expression for a number with its sign, currency, percent sign and suffix."""
    codes = "AUD BRL CAD CHF CNY CZK DKK EUR GBP HUF INR JPY KRW MXN NOK NZD PLN RUB SEK TRY USD"
    currency = rf"[A-Z]{{0,2}}\$|[€£¥₹₽₩₺₴₪฿円元원]|zł|kr|Fr\.|{codes.replace(' ', '|')}|ZAR"
    sign = "[-+−]"
    return re.compile(
        rf"(\()?({sign})?\s*({currency})?\s*({sign})?"
        r"([\d.,][\d.,'’ \u00a0\u2009\u202f]*(?:[eE][-+]?\d+)?)"
        rf"\s*(%|(?:{_SUFFIX_OF_MONEY})\.?)?\s*({currency})?(\))?"
    )


def _number_in(cell: str) -> _Number | None:
    found = _pattern_of_cells().fullmatch(cell)
    if found is None:
        return None
    opened, sign, before, other_sign, given, suffix, after, closed = found.groups(default="")
    currency, digits = before + after, given.strip()
    if bool(opened) != bool(closed) or (sign and other_sign) or (before and after):
        return None
    if not any(marks.fits(digits) for marks in _MARKS):
        return None
    if suffix in ("m", "b") and not currency:
        return None
    is_plain = cell == f"{sign}{digits}" and sign != "−"
    is_unit = len(suffix) == 1 and suffix != "%" and given != digits and not currency
    return _Number(digits, currency, suffix.lower().rstrip("."), is_unit, is_plain)


def _numbers_in(cells: Sequence[str]) -> list[tuple[str, _Number | None]]:
    """Return the number in each cell; K after a blank is a unit where no cell has another."""
    found = [(cell, _number_in(cell)) for cell in cells]
    suffixes = {number.suffix for _, number in found if number is not None} - {"", "%"}
    are_clear = len(suffixes) > 1 or not any(number and number.is_unit for _, number in found)
    return found if are_clear else [(c, None if n and n.suffix else n) for c, n in found]


def _form_of_words(cells: Sequence[str], texts: Sequence[str]) -> Form:
    unanswered = tuple({cell for cell in cells if is_unanswered(cell)})
    words = {cell.casefold() for cell in cells if cell not in unanswered}
    if words and any(words <= set(pair.split()) for pair in PAIRS):
        sample = next(cell for cell in cells if cell not in unanswered)
        return Form("boolean", is_plain=False, sample=sample, words=unanswered)
    if all(map(_DURATION.fullmatch, cells)):
        return Form("duration", is_plain=False, sample=max(texts, key=lambda each: each.count(":")))
    if all(map(_is_day, cells)):
        return Form("date", is_plain=False, order=_order_of(cells), sample=texts[0])
    return Form("text", sample=texts[0])


def _order_of(cells: Sequence[str]) -> str:
    """Return the order of day, month and year; empty if the numbers leave it open."""
    if all(map(_DATES["year-first"].fullmatch, cells)):
        return "year-first"
    found = [match for cell in cells if (match := _DATES["day-first"].fullmatch(cell))]
    if any(int(match[1]) > 12 for match in found) or "." in cells[0]:
        return "day-first"
    return "month-first" if any(int(match[2]) > 12 for match in found) else ""


def _form_of_numbers(
    numbers: Sequence[_Number], decimal: str | None, thousands: str | None
) -> Form:
    if not numbers:
        return Form("number", Marks(decimal or ""))
    marks = [each for each in _MARKS if decimal in (None, each.decimal)]
    if thousands is not None:
        marks = [
            each
            for each in marks
            if each.thousands in ("", thousands) and each.decimal != thousands
        ]
    digits = [number.digits for number in numbers]
    fitting = {each: sum(map(each.fits, digits)) for each in marks}
    choices = _apart([each for each in marks if fitting[each] == max(fitting.values())], digits)
    (first, *_), currency = choices, Counter(number.currency for number in numbers)
    suffixes = {number.suffix for number in numbers}
    form = Form(
        "number",
        first,
        is_plain=all(number.is_plain for number in numbers) and not first.thousands,
        currency=max(currency, key=lambda sign: (bool(sign), currency[sign])),
        has_percent="%" in suffixes,
        has_suffix=not suffixes <= {"", "%"},
        sample=next((d for d in digits if len({m.value(d) for m in choices if m.fits(d)}) > 1), ""),
        choices=tuple(choices) if len(choices) > 1 else (),
        likely=_likely_decimal(choices, digits),
    )
    if thousands and all(map(str.isdigit, digits)):
        point = decimal or {",": "."}.get(thousands, "," if thousands == "." else "")
        return replace(form, marks=Marks(point, thousands), is_plain=False)
    if all(map(str.isdigit, digits)):
        return replace(form, marks=Marks(decimal or ""))
    return form


def _likely_decimal(choices: Sequence[Marks], digits: Sequence[str]) -> str:
    """Return the mark that leaves the other for thousands, where whole numbers end below 1000."""
    wholes = [int(each) for each in digits if each.isdigit() and not is_code(each)]
    has_few = len(choices) > 1 and 0 < max(wholes, default=0) < 1000
    return next((each.decimal for each in choices if each.thousands), "") if has_few else ""


def _apart(choices: Sequence[Marks], digits: Sequence[str]) -> list[Marks]:
    """Return one of all marks that give the same numbers; the mark is open if several do."""
    by_values: dict[tuple[float, ...], list[Marks]] = {}
    for each in choices:
        values = tuple(each.value(text) for text in digits if each.fits(text))
        by_values.setdefault(values, []).append(each)
    return [
        same[0] if len({each.decimal for each in same}) == 1 else Marks("", same[0].thousands)
        for same in by_values.values()
    ]


def read_values(texts: Any, form: Form) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the numbers of Arrow strings without blanks around, NaN for none, and which are none.

    Null stands for missing ones, as the words of the form do.
    """
    if form.words:
        texts = pc.if_else(pc.is_in(texts, value_set=pa.array(form.words)), None, texts)
    readers = {"boolean": _of_booleans, "date": _of_dates, "duration": _of_durations}
    values, is_right = readers.get(form.kind, _of_numbers)(texts, form)
    return values, ~is_right & texts.is_valid().to_numpy(zero_copy_only=False)


def _of_numbers(texts: Any, form: Form) -> tuple[FloatArray, Any]:
    if form.is_plain and form.marks.decimal != ",":
        with contextlib.suppress(pa.ArrowInvalid):  # some are no numbers
            plain: FloatArray = _array_of(texts.cast("float64"))
            if np.isfinite(plain).sum() == len(texts) - texts.null_count:
                return plain, _array_of(texts.is_valid())
    texts = pc.replace_substring(texts, "−", "-")
    is_below = _array_of(pc.fill_null(pc.match_substring_regex(texts, r"^[<≤]=?\s*[0-9.]"), False))
    texts = pc.replace_substring_regex(texts, BOUND, r"\1")
    sign = re.escape(form.currency)
    outer = rf"\s*(?:{sign})?\s*" if sign else r"\s*"
    one_of = _SUFFIX_OF_MONEY if sign else _SUFFIX
    suffix = rf"(?:(?:{one_of})\.?)?" if form.has_suffix else "%" * form.has_percent
    number = rf"(?:{form.marks.pattern()})\s*{suffix}{outer}"
    pattern = rf"^(?:[-+]?{outer}[-+]?{number}|\({outer}{number}\))$"
    if form.has_percent:
        pattern = rf"{pattern}|^0$"
    is_right = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
    if sign:
        texts = pc.replace_substring(texts, form.currency, "")
    texts = pc.replace_substring_regex(texts, r"^\((.*)\)$", r"-\1")
    factors = 1.0
    if form.has_suffix:
        ends = pc.struct_field(pc.extract_regex(texts, rf"(?P<end>{one_of})\.?\s*$"), ["end"])
        places = pc.index_in(pc.utf8_lower(ends), value_set=pa.array([*_SUFFIXES]))
        factors = np.array([*_SUFFIXES.values(), 1.0])[_array_of(pc.fill_null(places, -1))]
        texts = pc.replace_substring_regex(texts, rf"(?:{one_of})\.?\s*$", "")
    drop = "".join({r"%\s", _CLASSES[form.marks.thousands].strip("[]")})
    texts = pc.replace_substring_regex(texts, f"[{drop}]", "")
    if form.marks.decimal == ",":
        texts = pc.replace_substring(texts, ",", ".")
    values: FloatArray = _array_of(pc.if_else(is_right, texts, None).cast("float64"))
    per_unit = factors / (100 if form.has_percent else 1)
    return values * np.where(is_below, 0.5, 1.0) * per_unit, _array_of(is_right)


def _of_booleans(texts: Any, form: Form) -> tuple[FloatArray, Any]:
    lower = pc.utf8_lower(texts)
    pairs = [pair.split() for pair in PAIRS if form.sample.casefold() in pair.split()]
    is_yes, is_no = (
        pc.is_in(lower, value_set=pa.array([pair[place] for pair in pairs])) for place in (0, 1)
    )
    is_right = _array_of(pc.or_(is_yes, is_no))
    return np.where(is_right, _array_of(is_yes).astype(np.float64), np.nan), is_right


def _of_dates(texts: Any, form: Form) -> tuple[FloatArray, Any]:
    """Return days since 1970, and which dates exist; some may have the year first, others not."""
    values, is_right = _of_dates_in(texts, "year-first")
    if form.order != "year-first":
        others, are_right = _of_dates_in(texts, form.order or "day-first")
        values, is_right = np.where(are_right, others, values), is_right | are_right
    return values, is_right


def _of_dates_in(texts: Any, order: str) -> tuple[FloatArray, Any]:
    fields = _fields(texts, _DATES.get(order, _DATES["day-first"]), "abcHMSzm")
    places = {"year-first": "abc", "day-first": "cba", "month-first": "cab"}[order]
    year, month, day = (fields[name] for name in places)
    is_there = ~np.isnan(year)
    year, month, day = (np.nan_to_num(part, nan=1.0).astype(int) for part in (year, month, day))
    year = np.where(year < 70, year + 2000, np.where(year < 100, year + 1900, year))
    months = ((year - 1970) * 12 + np.clip(month, 1, 12) - 1).astype("M8[M]")
    days = months.astype("M8[D]") + (day - 1)
    is_right = is_there & (month >= 1) & (month <= 12) & (day >= 1)
    is_right &= days.astype("M8[M]") == months
    east = fields["z"] + np.copysign(fields["m"] / 60, fields["z"])
    time = fields["H"] / 24, fields["M"] / 1440, fields["S"] / 86400, -east / 24
    values = days.astype(np.float64) + sum(np.nan_to_num(part) for part in time)
    return np.where(is_right, values, np.nan), is_right


def _of_durations(texts: Any, form: Form) -> tuple[FloatArray, Any]:
    """Return seconds: where some have hours, others such as 42:39 have minutes and seconds."""
    texts = pc.replace_substring(texts, ",", ".")
    hours, minutes, seconds = _fields(texts, _DURATION, "HMS").values()
    sign = np.where(_array_of(pc.fill_null(pc.starts_with(texts, "-"), False)), -1.0, 1.0)
    values = sign * (3600 * np.nan_to_num(hours) + 60 * minutes + seconds)
    return values, ~np.isnan(values)


def hours_of_day(texts: Any) -> FloatArray:
    """Return the hours since midnight of texts such as 08:30, NaN for others."""
    hours, minutes, seconds = _fields(texts, _TIME_OF_DAY, "HMS").values()
    return np.asarray(hours + minutes / 60 + np.nan_to_num(seconds) / 3600)


def are_times_of_day(cells: Sequence[str]) -> bool:
    """Return whether cells tell the time; 5:42 and those that end before noon may be durations."""
    found = [match[1] for cell in cells if (match := _TIME_OF_DAY.fullmatch(cell))]
    return len(found) == len(cells) > 0 and min(map(len, found)) == 2 and max(found) >= "12"


def _fields(texts: Any, pattern: re.Pattern[str], names: str) -> dict[str, FloatArray]:
    """Return the numbers in the groups of a pattern, NaN where there are none."""
    unnamed = iter(names)
    named = re.sub(r"\((?!\?)", lambda _: f"(?P<{next(unnamed)}>", pattern.pattern)
    parts, found = pc.extract_regex(texts, f"^{named}$"), {}
    for name in names:
        field = pc.struct_field(parts, [name])
        found[name] = _array_of(pc.if_else(pc.equal(field, ""), None, field).cast("float64"))
    return found


def _array_of(values: Any) -> Any:
    """Return an Arrow array as NumPy's, with NaN or False for missing values."""
    found = values.to_numpy(zero_copy_only=False)
    return found if found.dtype != object else np.array([bool(value) for value in found])


def in_hours(sample: str) -> str:
    """Say in hours, minutes and seconds what a duration such as 13:07 is taken for."""
    units = ("h", "min", "s")[-1 - sample.count(":") :]
    parts = zip(sample.lstrip("-").split(":"), units, strict=True)
    return " ".join(f"{part.lstrip('0') or '0'} {unit}" for part, unit in parts)
