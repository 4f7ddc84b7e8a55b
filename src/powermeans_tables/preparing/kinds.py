"""What the columns of a table contain, inferred from their cells and their names."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from powermeans.errors import ArgumentError, some
from powermeans.types import FloatArray
from powermeans_tables.cells.column import Cells, marks_between
from powermeans_tables.cells.missing_codes import is_code
from powermeans_tables.cells.number_forms import are_times_of_day, currencies_in
from powermeans_tables.cells.ordered_words import levels_of

NUMBERS = ("number", "amount", "count", "share")
# What is done with each kind of column; those without are left out.
KINDS = {
    **dict.fromkeys(NUMBERS, "standardized"),
    "log": "logarithm, standardized",
    "shape": "standardized within its row",
    "yes/no": "as 1 and 0",
    "category": "a column of 1 and 0 for each value",
    "choices": "a column of 1 and 0 for each choice",
    "ordered": "as 1, 2, 3, ...",
    "date": "as days since 1970",
    "clock": "as points on a circle of 24 hours",
    "place": "as points on the globe, in kilometers",
    **dict.fromkeys(("identifier", "text", "constant", "empty", "ignore"), ""),
}
USED = tuple(kind for kind, done in KINDS.items() if done)
UNUSED = ("ignore", "identifier")  # of the kinds that a user may name
WORDS = ("yes/no", "category", "choices", "ordered")
SHARES = ("category", "choices")  # whose features are the words

MOST_CATEGORIES = 20
_FEWEST_SEVERAL, _MOST_RECUR, _LONGEST_CHOICE = 0.2, 0.95, 40
_LEAST_TIMES = 8  # of a series
Orders = Sequence[Sequence[str]]  # the words of each scale, from the lowest on
_LATITUDE = {"latitude", "lat", "breitengrad", "latitud", "latitudine"}
_LONGITUDE = {"longitude", "lon", "lng", "long", "längengrad", "longitud", "longitudine"}
_NAMES_OF_TEXTS = {
    *("comment", "comments", "remark", "remarks", "remarques", "note", "notes", "description"),
    *("bemerkung", "bemerkungen", "kommentar", "kommentare", "commentaire", "commentaires"),
    *("comentario", "comentarios", "nota", "message"),
}
_NAMES_OF_PEOPLE = re.compile(
    r"(?:first|last|full|given|family)[ _-]?name|surname|vorname|nachname|pr[ée]nom|nombre|cognome",
    re.IGNORECASE,
)
# Names of identifiers, which may repeat, of codes of places and telephones, and of what counts.
_IDENTIFIERS = re.compile(
    r"(?:.* )?(?:ids?|uuid|guid|key|pk|ticket)|id .*|(?:account|client|customer|employee|item|order"
    r"|patient|product|record|row|sample|session|user) ?(?:id|number)"
)
_PEOPLE = re.compile(
    r"(?:.* )?(?:e ?mail(?: address)?|customer|client|user|member|patient|kunde|person|employee"
    r"|account)(?: ?(?:id|no|nr|number|code|key))?"
)
_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.\w+")
_YEAR, _OF_YEAR = r"(?<!\d)(?:19|20)\d\d", r"(?:[\W_]*(?:\d\d){1,2})?"
_SERIES = re.compile(  # what a column of numbers is of, and the time
    r"(.*?)[\W_]*(?:(?<![^\W\d_])(?:(?:week|wk|kw|woche|semaine|semana|day|tag|jour|d[ií]a|month"
    r"|monat|mois|mes|quarter|quartal|trimestre|year|jahr|ann[ée]e|año|hour|stunde|heure|hora)"
    rf"[\W_]?\d+|(?:{_YEAR}[\W_]*)?(?:j[aä]n(?:uary?|ner|vier)?|ene(?:ro)?|feb(?:ruary?|rero)?"
    r"|f[ée]v(?:r|rier)?|m[aä]r(?:ch|z|s|zo)?|a[pvb]r(?:il)?|ma[iy]o?|jun[ei]?o?|juin|jul[iy]?o?"
    r"|juil(?:let)?|aug(?:ust)?|ao[uû]t|ago(?:sto)?|sept?(?:i?emb(?:er|re))?|o[ck]t(?:ob(?:er|re))?"
    r"|octubre|nov(?:i?emb(?:er|re))?|d[eéi][cz](?:i?emb(?:er|re))?)"
    rf"{_OF_YEAR}|[qt][1-4]{_OF_YEAR})|{_YEAR}(?:(?:[\W_][qwt]?|[qwt])\d{{1,2}}|\d\d){{0,2}}"
    rf"|(?<!\d)(?:\d{{1,2}}\W){{1,2}}{_YEAR})",
    re.IGNORECASE,
)
_ADDRESSES = re.compile(
    r"(?:.* )?(?:zip|(?:zip|post|postal) ?code|plz|phone|phone ?number|telefon)"
)
_NUMBERS = re.compile(r"(?:.* )?(?:\w*(?:nr|number|nummer)|no|num|index|row|code|ref|reference|#)")
# Weights of rows, of which most surveys make the mean 1, as few bodies and things have it.
_WEIGHTS = {"weight", "weights", "wt", "wgt", "gewicht", "poids", "peso", "pondération"}
# What a column of seconds or milliseconds since 1970 is called, and its years.
_OF_TIMES = re.compile(
    r"(?:.* )?(?:at|time|times?tamps?|ts|epoch|unix|date|datum|zeit|created|updated|modified"
    r"|since|fecha|heure|seen|login|signup)"
)
_FIRST_YEAR, _LAST_YEAR, _SECONDS_OF_YEAR = 1995, 2040, 31_556_952
_DURATIONS = {"duration", "dauer", "durée", "duración", "elapsed", "lap", "length", "pace", "split"}
TWO_NUMBERS = "two numbers in a cell"
NOT_READ = "numbers beside other text"
CURRENCIES = "in several currencies"
_TWO_NUMBERS = re.compile(r"\d+(?:[.,]\d+)?\s*[/;|]\s*\d+(?:[.,]\d+)?")
_NUMBER_AND_TEXT = re.compile(r"(?:\d+[.,]|[<>≤≥~≈$€£¥]\s*(?:\d+[.,])*)\d+\s*\D{0,15}")
DATES = "dates count only if they are asked for"
LISTS = "contains lists"
OF_A_FIT = "of a former fit"
OF_WEIGHTS = "weights of rows"
_TICKS = {
    *("x", "✓", "✔", "☑", "•", "*", "1"),
    *("yes", "y", "true", "t", "ja", "j", "oui", "si", "sí"),
}
_NAMES_OF_CATEGORIES = {
    *("type", "category", "class", "region", "segment", "gender", "sex", "department", "dept"),
    *("status", "group", "kind"),
}


@dataclass(frozen=True)
class Column:
    """A column of a table: what it contains, and how it counts in distances."""

    name: str
    kind: str
    why: str = ""
    words: list[str] = field(default_factory=list)  # categories, or words from the lowest on
    levels: list[int] = field(default_factory=list)  # of ordered words
    codes: list[str] = field(default_factory=list)  # that stand for missing values
    unit: str = ""
    other: str = ""  # the column of longitudes of one of latitudes
    of_list: str = ""  # the column of lists of which it has one place
    offsets: list[float] = field(default_factory=list)  # of its features
    scales: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = (self.name, self.other, self.of_list)
        texts = (*names, self.kind, self.why, self.unit, *self.words, *self.codes)
        numbers = (*self.offsets, *self.scales)
        are_right = {*map(type, texts)} == {str} and self.kind in KINDS
        are_right &= {*map(type, numbers)} <= {float} and all(map(math.isfinite, numbers))
        if not are_right or not {*map(type, self.levels)} <= {int}:
            raise ValueError(f"a column {self.name!r:.40} is not as columns are")

    @property
    def is_used(self) -> bool:
        """Whether the column counts in distances."""
        return self.kind in USED and (self.kind != "place" or bool(self.other))

    @property
    def done(self) -> str:
        """What is done with the column, in words."""
        return KINDS[self.kind] or "left out"


def column_of(
    cells: Cells, told: str | None = None, orders: Orders = (), *, is_first: bool = False
) -> Column:
    """Return what a column contains; `told` is its kind if the user names it."""
    name = cells.name
    if told in UNUSED:
        return Column(name, str(told), "as specified")
    if told is not None and cells.type != "empty":
        return _as_told(cells, told, orders)
    if cells.type == "empty":
        return Column(name, "empty", "contains no values")
    if cells.type == "nested":
        return Column(name, "ignore", LISTS)
    if cells.type == "date":
        return Column(name, "ignore", DATES)
    if cells.type == "boolean" and np.isin((0, 1), cells.numbers).all():
        return Column(name, "yes/no", "two answers")
    if cells.type in ("number", "boolean"):
        return _column_of_numbers(cells, is_first=is_first)
    return _column_of_words(cells, orders)


def _as_told(cells: Cells, told: str, orders: Orders) -> Column:
    why, name = "as specified", cells.name
    if told == "ordered":
        words = list(cells.counts)
        if cells.type == "number":
            return Column(name, "number", why)
        levels = levels_of(words, orders)
        if levels is None:
            raise ArgumentError(
                f'"{name}" has words whose order is not known: tell it, such as '
                f"{'<'.join(words[:3])}"
            )
        return _ordered(cells, levels, why)
    if told == "yes/no" and (ticked := _ticked(cells)):
        return ticked
    if told == "choices":
        marks = [mark for mark in marks_between() if any(mark in text for text in cells.counts)]
        counts = cells.choices(marks[0] if marks else ";")
        return Column(name, told, why, sorted(counts, key=lambda word: (-counts[word], word)))
    if told in ("yes/no", "category"):
        return replace(_category(cells, why), kind="category")
    _refuse_told(cells, told)
    unit = cells.unit if told in (*NUMBERS, "log") else ""
    return Column(name, told, why, unit=unit)


def _refuse_told(cells: Cells, told: str) -> None:
    """Refuse a kind that cells cannot be of."""
    name = cells.name
    if told == "clock" and not cells.has_times:
        raise ArgumentError(f'"{name}" has no times of day such as 08:30')
    if told in (*NUMBERS, "log", "date") and cells.type == "words":
        word, are = next(iter(cells.counts), ""), "dates" if told == "date" else "numbers"
        raise ArgumentError(f'"{name}" contains words such as {word!r:.40}, not {are}')
    if told in NUMBERS and cells.has_long_digits:
        raise ArgumentError(
            f'"{name}" has whole numbers of more than 15 digits, which look like identifiers: '
            "leave the column out"
        )
    if told == "log" and np.nanmin(cells.numbers) < 0:
        raise ArgumentError(f'"{name}" has negative numbers, which have no logarithm')


def _ticked(cells: Cells) -> Column | None:
    """Return a column of ticks and blanks, which mean no; None if it has anything else."""
    words, n_blank = list(cells.counts), int(cells.are_blank.sum())
    is_ticked = bool(words) and all(word.casefold() in _TICKS for word in words)
    # Surveys write an answer in the column that is named after it.
    is_ticked |= len(words) == 1 and words[0].casefold() in cells.name.casefold()
    if not is_ticked or not n_blank or sum(cells.counts.values()) + n_blank < len(cells):
        return None
    return Column(cells.name, "yes/no", f"{words[0]} or blank", words)


def _column_of_words(cells: Cells, orders: Orders) -> Column:
    counts, name = cells.counts, cells.name
    n_there, n_words = sum(counts.values()), len(counts)
    if not n_words:
        return Column(name, "empty", "contains no values")
    if (ticked := _ticked(cells)) or n_words == 1:
        return ticked or Column(name, "constant", "has one value")
    if n_words <= MOST_CATEGORIES:
        codes = [word for word in counts if is_code(word)]
        levels = levels_of([word for word in counts if word not in codes], orders)
        if levels is not None and len(levels) > 1:
            return replace(_ordered(cells, levels, "words with an order"), codes=codes)
    if len(currencies := currencies_in(counts)) > 1:
        return Column(name, "text", CURRENCIES, unit=some(currencies))
    if choices := _choices(cells):
        return choices
    why = _why_text(name, counts)
    if not why and n_words <= min(MOST_CATEGORIES, n_there / 2):
        return _category(cells, f"{n_words} values")
    if not why and _share_of(_NUMBER_AND_TEXT, counts) > 0.5:
        why = NOT_READ
    if not why and n_words > 0.9 * n_there:
        return Column(name, "identifier", "nearly all values differ")
    return Column(name, "text", why or f"{n_words:,} different words")


def _choices(cells: Cells) -> Column | None:
    """Return a column of several choices in a cell; None if cells combine too few of them."""
    n_there, n_different = sum(cells.counts.values()), len(cells.counts)
    for mark in marks_between():
        sizes = Counter[int]()
        for text, count in cells.counts.items():
            sizes[text.strip(f"{mark} ").count(mark)] += count
        if min(n_there - sizes[0], n_there - max(sizes.values())) < _FEWEST_SEVERAL * n_there:
            continue  # of a name and a street, each cell has one
        mentions = cells.choices(mark)
        counts = {word: n for word, n in mentions.items() if n > 1}
        is_few = 3 <= len(counts) <= min(MOST_CATEGORIES, n_different - 1)
        is_few &= sum(counts.values()) >= _MOST_RECUR * mentions.total()
        if is_few and max(map(len, counts)) <= _LONGEST_CHOICE:
            words = sorted(counts, key=lambda word: (-counts[word], word))
            return Column(cells.name, "choices", f"any of {len(words)} in a cell", words)
    return None


def _why_text(name: str, counts: Mapping[str, int]) -> str:
    """Return why words cannot be compared, however few they are."""
    n_there = sum(counts.values())
    letters = sum(len(text) * count for text, count in counts.items()) / n_there
    blanks = sum(text.count(" ") * count for text, count in counts.items()) / n_there
    if _share_of(_TWO_NUMBERS, counts) > 0.9:
        return TWO_NUMBERS
    if _NAMES_OF_PEOPLE.fullmatch(name.strip()):
        return "names of people"
    is_free = letters > 30 or blanks > 3 or bool(_NAMES_OF_TEXTS & set(words_in(name)[-1:]))
    return "free text" * is_free


def _share_of(pattern: re.Pattern[str], counts: Mapping[str, int]) -> float:
    n_alike = sum(count for text, count in counts.items() if pattern.fullmatch(text))
    return n_alike / sum(counts.values())


def _ordered(cells: Cells, levels: Mapping[str, int], why: str) -> Column:
    words = sorted(levels, key=lambda word: levels[word])
    return Column(cells.name, "ordered", why, words, [levels[word] for word in words])


def _category(cells: Cells, why: str) -> Column:
    words = sorted(cells.counts, key=lambda word: (-cells.counts[word], word))
    return Column(cells.name, "category", why, words)


def _column_of_numbers(cells: Cells, *, is_first: bool) -> Column:
    name, values = cells.name, cells.numbers[~np.isnan(cells.numbers)]
    if not len(values):
        return Column(name, "empty", "contains no values")
    if (values == values[0]).all():
        return _ticked(cells) or Column(name, "constant", "has one value")
    if found := _of_unit(cells):
        return found
    if is_since_1970(cells):
        return Column(name, "ignore", DATES)
    unit = cells.unit
    if cells.is_whole and not unit and not (cells.is_text and cells.form.has_suffix):
        first, texts = cells.numbers[: cells.n_first], cells.some_texts if cells.is_text else ()
        why = why_identifier(name, first[~np.isnan(first)], texts, is_first=is_first)
        if why or cells.has_long_digits:
            return Column(name, "identifier", why or "numbers of more than 15 digits")
    n_different = len(np.unique(values)) if cells.is_whole else len(values)
    words = words_in(name)
    if cells.is_whole and n_different <= MOST_CATEGORIES and _NAMES_OF_CATEGORIES & set(words[-1:]):
        return _category(cells, f"numbers of {n_different} values")
    if n_different == 2 and np.isin(values, (0, 1)).all():
        return Column(name, "yes/no", "0 and 1")
    if cells.is_whole and values.min() >= 0:
        return Column(name, "count", "whole numbers", unit=unit)
    return Column(name, "number", f"in {unit}" if unit else "numbers", unit=unit)


def is_since_1970(cells: Cells) -> bool:
    """Return whether numbers count seconds or milliseconds since 1970, as their name says too."""
    if cells.type != "number" or cells.unit or not _is_named(cells.name, _OF_TIMES):
        return False
    if not len(values := cells.numbers[~np.isnan(cells.numbers)]):
        return False
    ends = np.array([values.min(), values.max()]) / _SECONDS_OF_YEAR + 1970
    in_ms = (ends - 1970) / 1000 + 1970
    return any(low > _FIRST_YEAR and high < _LAST_YEAR for low, high in (ends, in_ms))


def _of_unit(cells: Cells) -> Column | None:
    """Return a column whose unit tells what it contains."""
    name, unit = cells.name, cells.unit
    is_clock = cells.has_times and not _DURATIONS & {*words_in(name)}
    if is_clock and are_times_of_day(cells.some_texts):
        return Column(name, "clock", "times of day")
    if unit == "%":
        return Column(name, "share", "percentages", unit=unit)
    if unit and (cells.form.currency if cells.is_text else cells.hints.unit_of_numbers):
        return Column(name, "amount", f"in {unit}", unit=unit)
    return None


def why_identifier(
    name: str, values: FloatArray, texts: Sequence[str] = (), *, is_first: bool = False
) -> str | None:
    """Return why whole numbers identify or count the rows; None if they measure something.

    `is_first` is for the first column of a table whose columns have names.
    """
    if _is_named(name, _IDENTIFIERS):
        return "because of its name"
    if any(re.fullmatch(r"0\d{3,}", text) for text in texts):
        return "zeros come first, as in a code"
    if len(values) and _is_named(name, _ADDRESSES) and values.min() >= 1000:
        return "because of its name"
    if len(np.unique(values)) < max(len(values), 2):
        return None
    if _is_named(name, _NUMBERS):
        return "because of its name, and all differ"
    n_least = 2 if is_first and has_no_name(name) else 10
    if len(values) >= n_least and values[0] in (0, 1) and (np.diff(values) == 1).all():
        return "it counts the rows"
    reach, n_digits = np.ptp(values), np.floor(np.log10(np.maximum(np.abs(values), 1)))
    if len(values) >= 20 and is_first and reach < 1.2 * len(values):
        return "its values number the rows"
    # Amounts of money seldom are as dense, or reach from 10000 to 99999.
    is_wide = reach < 20 * len(values) or reach > 8 * 10 ** n_digits.max()
    if len(values) >= 20 and n_digits.min() == n_digits.max() >= 4 and is_wide:
        return "all differ and have the same number of digits"
    return None


def names_rows(cells: Cells) -> int:
    """Return 2 for a column that names people, 1 for other things that have rows, and else 0."""
    some = cells.some_texts[:20] if cells.is_text else []
    are_mails = bool(some) and all(map(_MAIL.fullmatch, some))
    are_people = are_mails or _is_named(cells.name, _PEOPLE)
    return 2 * are_people or int(_is_named(cells.name, _IDENTIFIERS))


def series_in(columns: Sequence[Column]) -> list[list[str]]:
    """Return the many columns of one unit that are of times, those of the longest series first."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in columns:
        if one.kind in NUMBERS and (part := _SERIES.fullmatch(one.name.strip())):
            found.setdefault((part[1], one.unit), []).append(one.name)
    many = [each for each in found.values() if len(each) >= _LEAST_TIMES]
    return sorted(many, key=len, reverse=True)


def added_by_a_fit(names: Iterable[str]) -> list[str]:
    """Return the last columns of a table if a former fit has added them: the cluster, and more."""
    added = re.compile(r"(cluster|distance|second_cluster|sure|name)(\.\d+)?")
    last = [*itertools.takewhile(added.fullmatch, reversed([*names]))]
    return [*itertools.dropwhile(lambda name: not name.startswith("cluster"), last[::-1])]


def has_no_name(name: str) -> bool:
    """Return whether a column is named after its number, for want of a name."""
    return bool(re.fullmatch(r"c\d+", name))


def weights_in(columns: Sequence[Column], numbers_of: Callable[[str], FloatArray]) -> list[str]:
    """Return the columns that say by their name how much rows count."""
    named = [one.name for one in columns if one.kind in NUMBERS and not one.unit]
    return [
        name
        for name in named
        if _WEIGHTS & {name.casefold(), *words_in(name)[-1:]}
        and np.nanmin(numbers_of(name)) > 0
        and 0.5 < np.nanmean(numbers_of(name)) < 2
    ]


def _is_named(name: str, pattern: re.Pattern[str]) -> bool:
    """Return whether the words of a name end as a pattern says."""
    return bool(pattern.fullmatch(" ".join(words_in(name)) or name.strip()))


def words_in(name: str) -> list[str]:
    """Return the words of a name, which may be written as twoWords."""
    return [word.lower() for word in re.findall(r"[^\W\d_]?[^\W\d_A-Z]+|[A-Z]+|#", name)]


def with_places(
    columns: list[Column], numbers_of: Callable[[str], FloatArray], told: Mapping[str, str]
) -> list[Column]:
    """Join columns of latitudes and longitudes to places."""

    def fits(column: Column, names: set[str], most: float) -> bool:
        is_named = names & {*words_in(column.name), column.name.casefold()}
        may_be = column.kind == "place" or (column.kind in ("number", "count") and is_named)
        return bool(may_be and np.nanmax(np.abs(numbers_of(column.name))) <= most)

    found = list(columns)
    latitudes = [j for j, one in enumerate(columns) if fits(one, _LATITUDE, 90)]
    longitudes = [j for j, one in enumerate(columns) if fits(one, _LONGITUDE, 180)]
    told_places = [j for j, one in enumerate(columns) if one.kind == "place"]
    if len(told_places) == 2:
        latitudes, longitudes = told_places[:1], told_places[1:]
    pairs = [(a, b) for a, b in zip(latitudes, longitudes, strict=False) if a != b]
    for latitude, longitude in pairs:
        names = columns[latitude].name, columns[longitude].name
        if any(told.get(name, "place") != "place" for name in names):
            continue
        why = f'with "{names[1]}"'
        found[latitude] = Column(names[0], "place", why, other=names[1])
        found[longitude] = Column(names[1], "place", f'with "{names[0]}"')
    for one in found:
        if one.kind == "place" and not (one.other or any(two.other == one.name for two in found)):
            raise ArgumentError(f'"{one.name}" is no place: one has a latitude and a longitude')
    return found
