"""The cells of one column: numbers, words or dates, whatever they are written as."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from powermeans.errors import TableError
from powermeans.system.attributes import cached_property
from powermeans.types import FloatArray
from powermeans_tables.cells.arrow import pa, pc, types
from powermeans_tables.cells.number_forms import (
    BOUND,
    NO_VALUE,
    Dates,
    Form,
    as_number,
    form_of,
    is_unanswered,
    read_values,
)

_N_LOOKED_AT = 2_000
# Columns of numbers may have some cells that are none, such as "see note", which is told.
_MOST_UNREAD = 0.34
_NOT_FINITE = r"(?i)^[-+]?inf(?:inity)?$"
_WITH_UNIT = re.compile(
    r"^(?P<number>[-+]?[0-9][0-9.,:' ]*)\s*(?P<unit>[a-zA-Zµ°²³/\"]{1,10}|/ ?[0-9]+)\.?$"
)
_HOURS = ("h", "hrs", "std", "uhr")
_SAME = {"eur": "€", "usd": "$", "us$": "$", "gbp": "£", "lbs": "lb", "sec": "s", "hrs": "h"}
_FACTORS: tuple[dict[str, float], ...] = (
    {"mg": 1e-3, "g": 1.0, "kg": 1e3, "t": 1e6, "oz": 28.34952, "lb": 453.59237, "lbs": 453.59237},
    {"mm": 1e-3, "cm": 1e-2, "m": 1.0, "km": 1e3, "in": 0.0254, "ft": 0.3048, "mi": 1609.344},
    {"ml": 1e-3, "cl": 1e-2, "l": 1.0},
    {"B": 1e-6, "kB": 1e-3, "KB": 1e-3, "MB": 1.0, "GB": 1e3, "TB": 1e6},
    {"ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "hrs": 3600.0},
)

Type = Literal["number", "boolean", "date", "words", "empty", "nested"]


def is_same_unit(one: str, other: str) -> bool:
    """Return whether two units are the same, such as EUR and €."""
    one, other = one.casefold(), other.casefold()
    return _SAME.get(one, one) == _SAME.get(other, other)


@dataclass(frozen=True, slots=True)
class Hints:
    """What is known of the numbers of a column besides its cells."""

    decimal: str = ""  # the mark that other columns have
    told: str | None = None  # the mark that was given
    thousands: str | None = None
    dates: Dates | None = None
    unit_of_numbers: str = ""  # that the file tells beside numbers
    unit_of_fit: str = ""  # to which units of text are converted
    likely: str = ""  # the decimal mark that the file suggests
    has_numbers: bool = False  # as the fit or the user says, so that <50 is a limit and no group


@dataclass(frozen=True, slots=True)
class Reading:
    """How the texts of a column are read, found from some of them, for all rows alike."""

    form: Form
    unit: str = ""  # that texts have behind numbers
    units: Mapping[str, float] | None = None  # in one of them, where they have several
    adds_seconds: bool = False

    def values(self, texts: Any) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the numbers of texts, NaN for none, and which texts are no numbers."""
        if not self.unit and not self.units:
            return _read(texts, self.form)
        numbers, units = self.apart(texts)
        values, is_wrong = _read(numbers, self.form)
        if self.units is None:
            known = [unit for unit in units.unique().to_pylist() if unit]
            others = [unit for unit in known if not is_same_unit(unit, self.unit)]
            is_other = pc.is_in(units, pa.array(others, "string"))
            has_other = np.asarray(is_other.to_numpy(zero_copy_only=False), dtype=bool)
            return np.where(has_other, np.nan, values), is_wrong | has_other
        by_unit = [self.units.get(each or self.unit, np.nan) for each in units.to_pylist()]
        return values * by_unit, is_wrong

    def apart(self, texts: Any) -> tuple[Any, Any]:
        """Return texts without their unit, of several units only those that have one, and these."""
        numbers, units = _apart(texts)
        if self.adds_seconds:
            numbers = pc.replace_substring_regex(numbers, r"^(\d+:\d+)$", r"\1:00")
        return numbers if self.units else pc.if_else(pc.is_null(numbers), texts, numbers), units


@dataclass(frozen=True)
class Cells:
    """A column of an Arrow table, or some rows of one that are read as others are."""

    name: str
    array: Any  # one array of Arrow
    hints: Hints = Hints()
    missing: frozenset[str] = frozenset()  # words and numbers that stand for missing values
    n_first: int | None = None  # how many of the rows follow each other; all for None
    found: Reading | None = None  # by other rows
    more: Sequence[str] = ()  # texts of other rows that the first ones did not lead to read

    def __len__(self) -> int:
        return len(self.array)

    @cached_property
    def type(self) -> Type:
        """What the cells are, by their type in the table or by the text of them."""
        kind = self.array.type
        if types.is_null(kind):
            return "empty"
        if types.is_boolean(kind):
            return "boolean"
        if types.is_date(kind) or types.is_timestamp(kind):
            return "date"
        if is_text(kind):
            found = self.form.kind
            return "number" if found == "duration" else "words" if found == "text" else found
        is_number = any(getattr(types, f"is_{one}")(kind) for one in _NUMBERS)
        return "number" if is_number else "nested"

    @property
    def some_texts(self) -> list[str]:
        """Some of the texts that are there."""
        return _some_of(self.texts)

    @property
    def has_long_digits(self) -> bool:
        """Whether there are whole numbers of more digits than float64 has, as in identifiers."""
        if self.is_text:
            return any(re.fullmatch(r"[-+]?\d{16,}", text) for text in self.some_texts)
        is_integer = types.is_integer(self.array.type)
        return bool(is_integer and np.nanmax(np.abs(self.numbers)) >= 2.0**53)

    @property
    def is_text(self) -> bool:
        """Whether the table has texts here, of which some are numbers."""
        return is_text(self.array.type)

    @cached_property
    def texts(self) -> Any:
        """The texts that are there, and null for those that stand for missing values."""
        texts = pc.utf8_trim_whitespace(_with_plain_blanks(_as_texts(self.array)))
        is_missing = pc.is_in(texts, value_set=pa.array([*NO_VALUE, *self.missing]))
        return pc.if_else(is_missing, None, texts)

    @cached_property
    def is_bounded(self) -> bool:
        """Whether some numbers are limits, such as <0.5."""
        is_number = self.is_text and self.form.kind == "number"
        pattern = f"{BOUND}[0-9.,]*$"
        return is_number and bool(pc.any(pc.match_substring_regex(self.texts, pattern)).as_py())

    @cached_property
    def are_blank(self) -> NDArray[np.bool_]:
        """Which cells have nothing at all; False for values of yes and no, which may be missing."""
        if types.is_boolean(self.array.type):
            return np.zeros(len(self), dtype=bool)
        is_empty = pc.equal(pc.utf8_trim_whitespace(_as_texts(self.array)), "")
        return np.asarray(pc.fill_null(is_empty, True).to_numpy(zero_copy_only=False))

    @cached_property
    def counts(self) -> dict[str, int]:
        """How often each text is there, without those that mean that there was no answer."""
        counted = pc.value_counts(self.texts.drop_null())
        pairs = zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True)
        return {text: count for text, count in pairs if not is_unanswered(text)}

    def choices(self, marks: str) -> Counter[str]:
        """Count the choices that cells have, with one of these marks between them."""
        found = Counter[str]()
        for text, count in self.counts.items():
            found.update(dict.fromkeys(_split(text, marks), count))
        return found

    def choices_of(self, words: Sequence[str]) -> FloatArray:
        """Return which of these choices the cells have, 1 and 0, and NaN for missing cells."""
        encoded, marks = self.texts.dictionary_encode(), marks_between(words)
        found = np.full((len(encoded.dictionary) + 1, len(words)), np.nan)
        for row, text in enumerate(encoded.dictionary.to_pylist()):
            if not is_unanswered(text):
                found[row] = np.isin(words, _split(text, marks))
        places = encoded.indices.fill_null(len(found) - 1).to_numpy(zero_copy_only=False)
        return np.asarray(found[places])

    @cached_property
    def reading(self) -> Reading:
        """How the texts are read: as those of other rows, or as these show."""
        some = [*self.some_texts, *self.more]
        if self.hints.has_numbers:
            some = [re.sub(BOUND, r"\1", each) for each in some]
        return self.found or _reading_of(self.texts, some, self.hints)

    @property
    def form(self) -> Form:
        """How the texts write numbers or dates."""
        return self.reading.form

    @cached_property
    def unit(self) -> str:
        """The unit or currency of the numbers, % for shares; empty if they have none."""
        if types.is_duration(self.array.type):
            return "s"
        if not self.is_text or self.type != "number":
            return self.hints.unit_of_numbers if self.type == "number" else ""
        unit = self.reading.unit
        if self.has_times:
            return f"s{unit}" if unit.startswith("/") else "s"
        return unit or self.form.currency or "%" * self.form.has_percent

    @property
    def has_times(self) -> bool:
        """Whether the cells are durations or times of day in text."""
        return self.is_text and self.form.kind == "duration"

    @property
    def has_other_unit(self) -> bool:
        """Whether the numbers are in another unit than those of the fit, as far as both tell it."""
        of_fit = self.hints.unit_of_fit
        if self.type != "number" or (of_fit == "%" and not (self.numbers > 1).any()):
            return False
        return not is_same_unit(self.unit, of_fit)

    @cached_property
    def read(self) -> tuple[FloatArray, NDArray[np.bool_]]:
        """The numbers, NaN for none, and which cells are neither numbers nor missing."""
        kind, array = self.array.type, self.array
        if self.is_text:
            form, plain = self.form, None
            is_bare = not (self.reading.unit or form.has_percent) and form.kind == "number"
            if is_bare and form.is_plain and form.marks.decimal != ",":
                plain = plain_numbers(array)
            return plain or self.reading.values(self.texts)
        per_unit = 1.0
        if self.type == "date":  # as days since 1970
            timestamp = pa.timestamp("us", getattr(kind, "tz", None))
            array, per_unit = array.cast(timestamp, safe=False).cast("int64"), 86400e6
        elif types.is_duration(kind):
            array, per_unit = array.cast("int64"), _PER_SECOND[kind.unit]
        elif types.is_nested(kind):
            raise TableError(f'"{self.name}" contains {kind}, no numbers: leave the column out')
        values = array.cast("float64", safe=False).to_numpy(zero_copy_only=False) / per_unit
        return values, np.zeros(len(self), dtype=bool)

    @property
    def infinite(self) -> int | None:
        """The first row with an infinite number, from 0."""
        values, is_wrong = self.read
        are_infinite = np.isinf(values)
        if is_wrong.any():
            are_infinite |= _are_infinite(self.texts)
        return int(np.argmax(are_infinite)) if are_infinite.any() else None

    @cached_property
    def numbers(self) -> FloatArray:
        """The numbers, dates as days since 1970, yes as 1; NaN for missing values."""
        values, _ = self.read
        for code in self.missing:
            if (number := as_number(code)) is not None:
                values = np.where(values == number, np.nan, values)
        return values

    def unread(self, values: FloatArray | None = None) -> Counter[str]:
        """Count the cells that are none of these values, or no numbers, where the others are."""
        is_lost = np.isnan(self.read[0] if values is None else values)
        if not self.is_text or not is_lost.any():
            return Counter()
        texts = self.texts.filter(pa.array(is_lost)).drop_null()
        return Counter(text for text in texts.to_pylist() if not is_unanswered(text))

    @cached_property
    def is_whole(self) -> bool:
        """Whether all numbers are whole, and not times."""
        if types.is_duration(self.array.type) or self.has_times:
            return False
        values = self.numbers[~np.isnan(self.numbers)]
        return bool(len(values)) and bool((values == np.rint(values)).all())

    def codes_of(self, words: Sequence[str]) -> NDArray[np.intp]:
        """Return the place of each text among these words, -1 for others, -2 for missing ones."""
        places = {word: place for place, word in enumerate(words)}
        encoded = self.texts.dictionary_encode()
        known = encoded.dictionary.to_pylist()
        codes = [-2 if is_unanswered(text) else places.get(text, -1) for text in known]
        indices = encoded.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
        return np.asarray(np.array([*codes, -2], dtype=np.intp)[indices])


def marks_between(words: Sequence[str] = ()) -> str:
    """Return the marks that may stand between choices, none of which has one itself."""
    return "".join(mark for mark in ";|," if not any(mark in word for word in words))


def _split(text: str, marks: str) -> list[str]:
    return [each.strip() for each in re.split(f"[{re.escape(marks)}]", text) if each.strip()]


def plain_numbers(texts: Any) -> tuple[FloatArray, NDArray[np.bool_]] | None:
    """Return numbers that are written as programs write them, blanks as NaN; None for others."""
    for has_blanks in (False, True):
        given = pc.if_else(pc.equal(texts, ""), None, texts) if has_blanks else texts
        with contextlib.suppress(pa.ArrowInvalid):
            values: FloatArray = given.cast("float64").to_numpy(zero_copy_only=False)
            return values, np.zeros(len(values), dtype=bool)
    return None


def _apart(texts: Any) -> tuple[Any, Any]:
    """Return the numbers and the units of texts, null where there are no units."""
    parts = pc.extract_regex(texts, _WITH_UNIT.pattern)
    numbers, units = (pc.struct_field(parts, [each]) for each in ("number", "unit"))
    return pc.utf8_trim_whitespace(numbers), units


def _reading_of(texts: Any, some: Sequence[str], hints: Hints) -> Reading:
    """Find how texts are read: the unit that most of them have, and the form of the numbers."""
    found, n_units = _unit_in(texts, some, hints)
    bare = found.apart(texts)[0] if found.unit else texts
    form, is_wrong = _form_in(bare, _some_of(bare) if found.unit else some, hints, n_units)
    if found.units is None and form.kind in ("number", "date") and is_wrong.any():
        n_unread = is_wrong.sum() - _are_infinite(bare).sum()  # infinities are refused later
        if n_unread / (len(bare) - bare.null_count) > _MOST_UNREAD:
            form = Form("text", sample=form.sample)
    return replace(found, form=form)


def _unit_in(texts: Any, some: Sequence[str], hints: Hints) -> tuple[Reading, int]:
    """Return the unit that all texts have, or those that a factor converts, and their number."""
    plain = Reading(Form("empty")), 0
    for few, least in ((some[:20], 0.5), (some, 0.9)):
        n_with = sum(_WITH_UNIT.match(each) is not None for each in few)
        if n_with < max(least * len(few), 1):
            return plain
    if form_of(some, hints.told, hints.thousands).has_suffix:
        return plain
    _, units = _apart(texts)
    by_unit = Counter(units.drop_null().to_pylist())
    (most, _), *others = by_unit.most_common()
    has_times = any(":" in each for each in some)
    if has_times and (others or most.lower() in ("am", "pm")):
        return plain
    unit = hints.unit_of_fit or most
    factors = next((each for each in _FACTORS if {unit, *by_unit} <= each.keys()), None)
    if has_times or (not others and (unit == most or factors is None)):
        adds_seconds = has_times and most.lower() in _HOURS
        return Reading(Form("empty"), most, adds_seconds=adds_seconds), 1
    if factors is None:
        return plain
    in_unit = {each: factor / factors[unit] for each, factor in factors.items()}
    return Reading(Form("empty"), unit, in_unit), len({unit, *by_unit})


def _form_in(
    texts: Any, some: Sequence[str], hints: Hints, n_units: int
) -> tuple[Form, NDArray[np.bool_]]:
    """Return the form of numbers or dates, and which texts are none in it."""
    form = form_of(some, hints.told, hints.thousands)
    is_wrong = _read(texts, form)[1]
    for _ in range(3):
        if form.kind != "number" or not is_wrong.any():
            break
        # Later rows may show what the first ones leave open, such as a mark for thousands.
        wrong = texts.filter(pa.array(is_wrong))
        other = form_of([*some, *_some_of(wrong)], hints.told, hints.thousands)
        if other == form:
            break
        form, is_wrong = other, _read(texts, other)[1]
    settled = _settled(form, hints, n_units)
    return settled, is_wrong if settled is form else _read(texts, settled)[1]


def _settled(form: Form, hints: Hints, n_units: int) -> Form:
    """Return a form whose marks or order in doubt are settled by those of other columns."""
    if form.kind == "date" and not form.order and hints.dates not in (None, "days"):
        return replace(form, order=str(hints.dates))
    if not (choices := form.choices):
        return form
    # 1.250 kg are less than 1250 kg beside 500 g.
    form = replace(form, likely=form.likely * (n_units < 2))
    mark = hints.decimal or form.likely or hints.likely or "."
    fitting = [marks for marks in choices if marks.decimal == mark]
    if n_units == 1 or form.currency or form.has_suffix:
        # Amounts such as 12.900 EUR have no three decimals, and 1.234M has no thousands.
        fitting = [one for one in choices if bool(one.thousands) != form.has_suffix] or fitting
    (marks, *_) = fitting or choices
    suggested = {hints.decimal, form.likely or hints.decimal}
    return replace(
        form,
        marks=marks,
        is_plain=form.is_plain and not marks.thousands,
        choices=(),
        is_assumed=suggested != {marks.decimal},
    )


_NUMBERS = ("integer", "floating", "decimal", "duration")
_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def is_text(kind: Any) -> bool:
    """Return whether a type of Arrow is that of texts."""
    return types.is_string(kind) or str(kind) in ("large_string", "string_view")


def _with_plain_blanks(texts: Any) -> Any:
    """Return texts with a blank for each that does not break, or is narrow."""
    letters = texts.buffers()[2]
    bytes_of_all = b"" if letters is None else letters.to_pybytes()
    if not any(blank in bytes_of_all for blank in (b"\xc2\xa0", b"\xe2\x80")):
        return texts  # without a search that takes as long as reading them
    replaced = pc.replace_substring_regex
    return replaced(texts, "[\u00a0\u2009\u202f]", " ")


def _as_texts(array: Any) -> Any:
    """Return the texts of numbers and other values: whole numbers without a point."""
    if types.is_boolean(array.type):
        return pc.if_else(array, "yes", "no")
    if types.is_floating(array.type):
        values = array.to_pylist()
        return pa.array([None if v is None or v != v else f"{v:.15g}" for v in values], pa.string())
    return array if types.is_string(array.type) else array.cast(pa.string())


def _some_of(texts: Any) -> list[str]:
    """Return some texts from the start and from all over a column."""
    there = texts.drop_null()
    if (step := len(there) // (_N_LOOKED_AT // 2)) > 1:
        places = {*range(_N_LOOKED_AT // 2), *range(0, len(there), step)}
        there = there.take(pa.array(sorted(places), "int64"))
    some: list[str] = there.to_pylist()
    return some


def _read(texts: Any, form: Form) -> tuple[FloatArray, NDArray[np.bool_]]:
    if form.kind in ("text", "empty"):
        return np.full(len(texts), np.nan), np.ones(len(texts), dtype=bool)
    return read_values(texts, form)


def _are_infinite(texts: Any) -> NDArray[np.bool_]:
    found = pc.match_substring_regex(texts, _NOT_FINITE).fill_null(False)
    return np.asarray(found.to_numpy(zero_copy_only=False))


def as_frame(X: Any) -> Any:
    """Return data with columns as a table of Arrow: a frame, a dict, an array or a table."""
    if isinstance(X, pa.Table):
        return X
    if hasattr(X, "columns") and hasattr(X, "iloc"):  # pandas, with columns of mixed objects
        names = [str(name) for name in X.columns]
        return pa.table([as_column(X.iloc[:, j]) for j in range(len(names))], names=names)
    if hasattr(X, "__arrow_c_stream__"):
        return pa.table(X)
    if isinstance(X, dict):
        return pa.table([as_column(values) for values in X.values()], names=[*map(str, X)])
    array = np.asarray(X)
    if array.ndim != 2:
        raise TableError(
            f"X has the shape {array.shape}", "pass a frame, or an array of rows and columns"
        )
    return as_frame({f"c{number}": column for number, column in enumerate(array.T, 1)})


def as_column(values: Any) -> Any:
    """Return values as an array of Arrow; texts where they are of several types."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        there = (None if v is None or v != v else v for v in values)
        whole = (f"{v:.15g}" if isinstance(v, float) else v for v in there)  # without a point
        return pa.array([None if v is None else str(v) for v in whole], pa.string())


def of_parts(parts: Sequence[Any]) -> Any:
    """Return the parts of a column as one; their cells may have another type in each."""
    types = {part.type for part in parts} - {pa.null()} or {pa.null()}
    if len(types) > 1:
        return as_column([*itertools.chain.from_iterable(part.to_pylist() for part in parts)])
    chunks = (part.chunks if isinstance(part, pa.ChunkedArray) else [part] for part in parts)
    return pa.chunked_array([one.cast(*types) for each in chunks for one in each], *types)


def values_of(column: Any) -> list[Any]:
    """Return the values of a column of Arrow, texts for dates that Python does not know."""
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        values = column.cast(pa.string()).to_pylist()
    return values


def one_array(column: Any) -> Any:
    """Return a column of a table as one array, texts plain."""
    if types.is_dictionary(kind := column.type):
        if is_text(kind.value_type):  # Polars has views of texts there, which Arrow does not decode
            column = column.cast(pa.dictionary(kind.index_type, pa.string()))
        column = column.cast(column.type.value_type)
    if is_text(column.type) or types.is_time(column.type):
        column = _as_texts(column)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
