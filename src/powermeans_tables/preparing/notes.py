"""What a user should know of how a table was understood: notes, and doubts on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import skew

from powermeans.errors import Argument, counted, some
from powermeans.types import FloatArray, IndexArray
from powermeans_tables.cells.column import Cells
from powermeans_tables.cells.number_forms import Form, as_number, in_hours
from powermeans_tables.preparing import kinds
from powermeans_tables.preparing.kinds import NUMBERS, OF_A_FIT, OF_WEIGHTS, Column
from powermeans_tables.preparing.lines import long_form
from powermeans_tables.preparing.points import Encoder

# Why columns are left out though they may say something, and what to do.
_LEFT_OUT = {
    kinds.TWO_NUMBERS: ("a cell has two numbers, such as 120/80", ["write them in two columns"]),
    kinds.NOT_READ: ("cells have text beside numbers", ["write numbers alone, or with one unit"]),
    kinds.CURRENCIES: ("amounts are in several currencies", ["convert them to one"]),
    kinds.LISTS: ("cells contain lists", []),
}
DOUBTED = {OF_WEIGHTS, *(why for why, (_, to_do) in _LEFT_OUT.items() if to_do)}
_FEW = 0.05  # of the rows
_MOST_FAR = 8
_REPEATS = {1: 2.0, 2: 1.2}  # rows of each thing, and of each person, if they are lines


@dataclass(frozen=True, slots=True)
class Note:
    """What a user should know of how a table was understood."""

    said: str
    is_doubt: bool = False  # whether it may make the result worthless
    way_out: Sequence[str | Argument] = ()
    is_of_rows: bool = False  # whether it is of rows that are left out

    @property
    def text(self) -> str:
        """All of it, with the arguments of Python that settle it."""
        way_out = "".join(map(str, self.way_out))
        return f"{self.said} ({way_out})" if way_out else self.said


def notes_on_cells(encoder: Encoder, n_rows: int) -> Iterator[Note]:
    """Yield notes on cells that are no numbers: a doubt, except on few rows of recurring words."""
    doubts, others = list[str](), list[str]()
    for name, counts in encoder.unread.items():
        if counts:
            known = {*encoder.cells[name].form.words}
            is_known = counts.keys() <= known and counts.total() <= _FEW * n_rows
            words = [f'"{word:.30}" ({counted(n, "row")})' for word, n in counts.most_common()]
            (others if is_known else doubts).append(f'{some(words, 3)} in "{name}"')
    for said, is_doubt in ((doubts, True), (others, False)):
        if said:
            yield Note(f"taken for missing, since no numbers: {some(said)}", is_doubt)
    yield from notes_on_unknown(encoder.unknown, "none of its words")
    if encoder.n_flat:
        yield Note(f"{counted(encoder.n_flat, 'row')} with one value in the whole series: no shape")
    bounds = [f'"{name}"' for name, cells in encoder.cells.items() if cells.is_bounded]
    if bounds:
        what = 'limits are read, "<1" as half of it and ">1" as 1'
        yield Note(f"{what}: {some(bounds)}", is_doubt=True)


def notes_on_unknown(columns: Mapping[str, Mapping[str, int]], why: str) -> Iterator[Note]:
    """Yield notes on words that are none of those known."""
    for name, words in columns.items():
        said = ", ".join(f'"{word}" ({counted(n, "row")})' for word, n in list(words.items())[:4])
        if said:
            yield Note(f'"{name}" has {said}, {why}', is_doubt=True)


def doubts_on_forms(forms: Mapping[str, Form], kind_of: Mapping[str, str]) -> Iterator[Note]:
    """Yield notes on numbers and dates whose text may mean something else."""
    assumed = [
        (f'{form.sample} in "{name}" is taken for {form.marks.value(form.sample):.12g}', form)
        for name, form in forms.items()
        if kind_of[name] in NUMBERS and form.is_assumed
    ]
    if assumed:
        _, form = assumed[0]
        mark = next(each for each in form.sample if each in ".,")
        way_out = Argument("decimal" if form.marks.thousands else "thousands", mark)
        yield Note(some([said for said, _ in assumed]), True, (way_out, " if it is not"))
    times: dict[str, list[str]] = {}
    for name, each in forms.items():
        if each.kind == "duration" and kind_of[name] in NUMBERS:
            times.setdefault(each.sample, []).append(f'"{name}"')
    if times:
        in_words = [
            f"{some(names, 3)} in seconds ({sample} taken for {in_hours(sample)})"
            for sample, names in sorted(times.items())
        ]
        yield Note(f"times are read: {some(in_words)}")
    if clocks := [name for name, kind in kind_of.items() if kind == "clock"]:
        named, durations = [f'"{name}"' for name in clocks], Argument("as_", {clocks[0]: "number"})
        said = f"times of day are on a circle: {some(named)}"
        yield Note(said, way_out=(durations, " takes durations"))
    dates = [
        f'{form.sample} in "{name}"'
        for name, form in forms.items()
        if kind_of[name] == "date" and not form.order
    ]
    if dates:
        said = f"taken for dates with the day first: {some(dates)}"
        yield Note(said, True, (Argument("dates", "month-first"), ", if they are not"))


def doubts_on_lines(columns: Sequence[Cells], *, is_whole: bool) -> Iterator[Note]:
    """Yield a note where several rows are of one customer, or of one of something else."""
    found = []
    for cells in columns:
        if not (rank := kinds.names_rows(cells)) or cells.type == "nested":
            continue
        values = (cells.texts if cells.is_text else cells.array).drop_null()
        n_each = len(values) / max(n_different := len(values.unique()), 1)
        if n_each > _REPEATS[rank] and n_different > kinds.MOST_CATEGORIES:
            of = f"{n_each:.3g} for each of {n_different:,}" if is_whole else "several for each"
            found.append((-rank, -n_each, cells.name, f'{of} "{cells.name}"'))
    if found:
        found.sort()  # of customers and their orders, most people want to cluster customers
        way_out = Argument("per", found[0][2]), " makes one row of each"
        yield Note(f"rows are lines, {some([said for *_, said in found], 3)}", True, way_out)


def notes_on_left_out(columns: Sequence[Column]) -> Iterator[Note]:
    """Yield notes on columns that are left out, though they may say something."""
    by_why: dict[str, list[str]] = {}
    for one in columns:
        unit = f" ({one.unit})" * (one.why == kinds.CURRENCIES)
        by_why.setdefault(one.why, []).append(f'"{one.name}"{unit}')
    found = {why: some(names) for why, names in by_why.items()}
    for why, (what, to_do) in _LEFT_OUT.items():
        if why in found:
            yield Note(f"left out, since {what}: {found[why]}", bool(to_do), to_do)
    if kinds.DATES in found:
        way_out = Argument("dates", "days"), " uses them"
        yield Note(f"dates do not count: {found[kinds.DATES]}", way_out=way_out)
    if OF_WEIGHTS in found:
        name = by_why[OF_WEIGHTS][0].strip('"')
        counts, clusters = Argument("weights", name), Argument("as_", {name: "number"})
        said = f"rows seem to have weights, {found[OF_WEIGHTS]}, left out"
        yield Note(said, True, (counts, " counts them, ", clusters, " takes them for a feature"))
    if OF_A_FIT in found:
        way_out = (Argument("as_", {by_why[OF_A_FIT][0].strip('"'): "category"}), " would use it")
        yield Note(f"columns of a former fit do not count: {found[OF_A_FIT]}", way_out=way_out)
    if long := long_form(one.name for one in columns):
        others = [one.name for one in columns if one.name not in long][:1]
        does = [part for each in others for part in (Argument("per", each), " does so")]
        said = "each row has one value of a variable: pivot the table first"
        yield Note(said, True, does)
    words = [one for one in columns if one.kind == "text" and "different" in one.why]
    if words:
        named = [f'"{one.name}" ({one.why})' for one in words]
        yield Note(f"left out for too many values: {some(named)}")


def doubts_on_values(columns: Mapping[str, FloatArray], numbers: IndexArray) -> Iterator[Note]:
    """Yield notes on zeros, tails and single values that are far from all others."""
    zeros, tails, outliers = [], [], []
    for name, values in columns.items():
        if np.isinf(values).any():  # which is refused with its row when all rows are read
            continue
        there = values[~np.isnan(values)]
        places = np.multiply((0.05, 0.5, 0.95), len(there) - 1)
        low, middle, high = np.interp(places, np.arange(len(there)), np.sort(there))
        others = there[there != 0]
        n_zeros = len(there) - len(others)
        least = 1.0 if (there == np.rint(there)).all() else 0.0  # 0, 1 and 2 are counts
        apart = max(least, np.std(others), 0.3 * middle)
        if 3 <= n_zeros < len(there) / 2 and others.min() > apart:
            zeros.append(f'"{name}" ({n_zeros} values)')
        reach = 20 * max(high - low, np.finfo(float).tiny)
        far = np.flatnonzero(np.abs(values - middle) > reach)
        if 0 < len(far) <= _MOST_FAR:
            farthest = far[np.argsort(-np.abs(values[far] - middle))]
            cells = [f"{values[row]:,.10g} (row {numbers[row] + 1})" for row in farthest]
            outliers.append(f'{some(cells, 3)} in "{name}"')
        elif there.min() >= 0 and high > 8 * middle > 0 and skew(there) > 2:
            tails.append(f'"{name}"')
    zero, log = Argument("codes", ["0"]), Argument("as_", {"NAME": "log"})
    doubts: list[tuple[list[str], str, Sequence[str | Argument]]] = [
        (zeros, "0 is far from all other values in {}", [zero, ", if it means a missing value"]),
        (outliers, "far from all other values: {}", ["leave out what is wrong"]),
        (tails, "few rows have far more than all others of {}", [log, " takes logarithms"]),
    ]
    for found, said, way_out in doubts:
        if found:
            yield Note(said.format(some(found)), True, way_out)


def notes_on_unfound(
    given: Mapping[str, Sequence[str]], cells: Mapping[str, Cells]
) -> Iterator[Note]:
    """Yield a note on each code that was given for a column and does not occur there."""
    for name, codes in given.items() if len(given) < len(cells) else ():
        there = replace(cells[name], missing=frozenset()).counts
        numbers = {as_number(text) for text in there}
        for code in codes:
            if code not in there and as_number(code) not in numbers - {None}:
                yield Note(f'"{name}" has no {code} that could mean a missing value')


def codes_in_words(codes: Mapping[str, Mapping[float, int]], *, is_whole: bool) -> str:
    """Say which numbers were taken for codes of missing values, and in which columns."""
    by_code: dict[float, list[str]] = {}
    for name, found in codes.items():
        for code in found:
            by_code.setdefault(code, []).append(f'"{name}"')
    n_rows = {code: sum(found.get(code, 0) for found in codes.values()) for code in by_code}
    said = [
        f"{code:g} in {some(names, 3)}" + f" ({n_rows[code]:,} values)" * is_whole
        for code, names in by_code.items()
    ]
    return f"taken for codes of missing values: {'; '.join(said)}"
