"""`Prepare`: a table of people's columns as points."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from powermeans.errors import Argument, ArgumentError, TableError, counted, nearest, some
from powermeans.explaining.features import Feature
from powermeans.mathematics.arguments import check_sample_weight
from powermeans.methods.documented import one_of
from powermeans.scale.named_columns import numbers_of
from powermeans.system.attributes import forget
from powermeans.system.containers import real
from powermeans.types import FloatArray
from powermeans_tables.cells.arrow import pa
from powermeans_tables.cells.column import Cells, Hints, is_same_unit, one_array
from powermeans_tables.cells.missing_codes import is_code, missing_codes
from powermeans_tables.cells.number_forms import Dates
from powermeans_tables.preparing import features, kinds, points
from powermeans_tables.preparing.kinds import (
    NUMBERS,
    OF_A_FIT,
    OF_WEIGHTS,
    UNUSED,
    USED,
    WORDS,
    Column,
)
from powermeans_tables.preparing.lines import COUNT, joined, long_form, pivoted
from powermeans_tables.preparing.notes import (
    Note,
    codes_in_words,
    doubts_on_forms,
    doubts_on_lines,
    doubts_on_values,
    notes_on_cells,
    notes_on_left_out,
    notes_on_unfound,
    notes_on_unknown,
)
from powermeans_tables.preparing.points import Encoder, RawRows, Use, Weighted
from powermeans_tables.preparing.scaling import Scale, scaled, share_of, unscaled
from powermeans_tables.reading.files import open_table
from powermeans_tables.reading.table import Table

_DECIDES = 0.8
_MOSTLY_MISSING = 0.9


class Prepare(TransformerMixin, BaseEstimator):
    """Turn a table of numbers, categories, places and answers in words into points.

    Each column is interpreted from its cells and name, as `columns_` shows, and is scaled so that
    it has the same share of all distances as any other: a category, with a column of zeros and
    ones for each value, has that of a column of numbers. Identifiers and free text are left out.

    Parameters
    ----------
    as_ : dict, optional
        The kinds of some columns, by name, where you know better: "number", "amount", "count",
        "share", "log" (for its logarithm), "yes/no", "category", "choices" (several in a cell),
        "ordered", "date", "clock" (on a circle), "place" or "ignore" or "identifier", which leave
        a column out.
    order : sequence of sequence of str, optional
        The words of each scale of answers, from the lowest to the highest.
    scale : {"auto", "standard", "minmax", "none"}, default="auto"
        Whether to give columns variance one, the range from 0 to 1, or neither;
        "auto" gives variance one unless all columns share a unit, such as pixels or one currency.
    shares : dict, optional
        How much some columns count, by name, where the others count 1: ``{"region": 2}``.
    codes : {"auto", "none"} or sequence of str, default="auto"
        Which numbers and words stand for missing values: "auto" finds those that look like codes,
        such as -999 far from all others, and "none" takes all numbers as they are; a list adds
        others, for a column, a range or all, such as ``["age=99", "q1-q9=9", "-5"]``.
    decimal, thousands : str, optional
        The separators of numbers in text. By default they are inferred from each column.
    dates : {"days", "day-first", "month-first"}, optional
        Use dates, as days since 1970; by default they are left out.
    per : str, optional
        A column such as that of customers, of whom each then is one point: numbers are means of
        their rows, and sums of counts and amounts; yes and no are shares, words the most frequent
        cell, and dates the last one. Columns called variable and value are pivoted.

    series : {"shape"}, optional
        Compare the shapes of rows in columns such as Jan-23, ..., Dec-24: how far each number is
        from the mean of its row, in deviations of the row. By default levels count.

    Attributes
    ----------
    columns_ : list of Column
        What each column contains, in `name`, `kind` and `why`, and what is done with it, in `done`.
    notes_ : list of Note
        What is worth knowing about how the table was read; none in one that was loaded.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : (n_features_in_,)
        Their names.
    lines_ : Prepare
        With `per`, how the columns of the table are read; `columns_` are then those of `joined`.

    See Also
    --------
    PowerKMeans : Clusters the points.

    Notes
    -----
    scikit-learn's ``ColumnTransformer`` does what you specify for each column. skrub's
    ``TableVectorizer`` decides by itself too, for models of any kind: columns of many
    different words become embeddings, and dates become several columns. `Prepare` is for distances:
    each column counts the same, missing values stay missing, and what cannot be compared is left
    out. Points of more than 128 MB are in float32, unless that would move some by a thousandth of
    the deviation of a column.

    Examples
    --------
    >>> from powermeans import PowerKMeans, Prepare
    >>> people = {
    ...     "id": ["a1", "b7", "c3", "d9"],
    ...     "plan": ["free", "free", "team", "team"],
    ...     "seats": ["1", "2", "30", "28"],
    ... }
    >>> prepare = Prepare().fit(people)
    >>> [column.kind for column in prepare.columns_]
    ['identifier', 'category', 'count']
    >>> [str(name) for name in prepare.get_feature_names_out()]
    ['plan: free', 'seats']
    >>> labels = PowerKMeans(2, random_state=0).fit_predict(prepare.transform(people))
    >>> bool(labels[0] == labels[1] and labels[2] == labels[3])
    True
    """

    columns_: list[Column]
    notes_: list[Note]
    _pivoted: Sequence[str] = ()  # columns of variables, of their values, and others that count

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "as_": [Mapping, None],
        "order": ["array-like", None],
        "scale": [one_of({"auto", "standard", "minmax", "none"})],
        "shares": [Mapping, None],
        "codes": [one_of({"auto", "none"}), "array-like"],
        "decimal": [one_of({".", ","}), None],
        "thousands": [one_of({"", ".", ",", "'", " "}), None],
        "dates": [one_of({"days", "day-first", "month-first"}), None],
        "per": [str, None],
        "series": [one_of({"shape"}), None],
    }
    _state = """columns_: any! n_features_in_: length[c]! feature_names_in_: names[c]
        decimal_: any! lines_: Prepare _pivoted: any _sklearn_output_config: any"""

    def __init__(
        self,
        *,
        as_: Mapping[str, str] | None = None,
        order: Sequence[Sequence[str]] | None = None,
        scale: Scale = "auto",
        shares: Mapping[str, float] | None = None,
        codes: Literal["auto", "none"] | Sequence[str] = "auto",
        decimal: str | None = None,
        thousands: str | None = None,
        dates: Dates | None = None,
        per: str | None = None,
        series: Literal["shape"] | None = None,
    ) -> None:
        self.as_ = as_
        self.order = order
        self.scale = scale
        self.shares = shares
        self.codes = codes
        self.decimal = decimal
        self.thousands = thousands
        self.dates = dates
        self.per = per
        self.series = series

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Understand the columns of a table, and find how to scale them.

        Parameters
        ----------
        X : path, table of `open_table`, frame of pandas or Polars, dict of columns, or array
            The table. Columns of text may contain numbers, as people write them.
        y : ignored
            For scikit-learn.
        sample_weight : (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        Prepare
            Itself.
        """
        self.fit_transform(X, sample_weight=sample_weight)
        return self

    def fit_transform(
        self, X: Any, y: object = None, sample_weight: ArrayLike | None = None
    ) -> FloatArray:
        """Understand the columns of a table, and return it as points.

        Parameters
        ----------
        X : path, table of `open_table`, frame of pandas or Polars, dict of columns, or array
            The table.
        y : ignored
            For scikit-learn.
        sample_weight : (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        (n_samples, n_features)
            The points.
        """
        rows = self.read(open_table(X), Use())
        rows.weights = check_sample_weight(sample_weight, len(rows.raw))
        self.finish(rows)
        return self._for_table(rows)

    def read(self, table: Table, use: Use) -> RawRows:
        """Understand the columns of a table by some of its rows, and read all rows."""
        with table.naming():
            forget(self, "lines_", "_pivoted")  # of a former fit
            long, notes = self.per and long_form(table.names), list[Note]()
            if self.per and not long:
                table, lines = self._understand_lines(table, use)
                return self._rows(table, use, self.encoder_for(table), lines)
            if self.per and long:
                _check_name(self.per, table.names)
                names = [name for name in table.names if name not in (self.per, *long)]
                table = pivoted(table, self.per, long, use)
                notes.append(Note(table.how_read[-1]))
            encoder = self.understand_columns(table, use)
            if long:
                self._pivoted = [*long, *(one for one in names if one in self._names_read())]
            rows = self._rows(table, use, encoder, None)
        self._note_cells(rows.encoder, len(rows.is_used))
        self.notes_ += notes
        return rows

    def _note_cells(self, encoder: Encoder, n_rows: int) -> None:
        kind_of = {one.name: one.kind for one in (*self.columns_, *encoder.columns)}
        texts = {name: each.form for name, each in encoder.cells.items() if each.is_text}
        self.notes_ += [*doubts_on_forms(texts, kind_of), *notes_on_cells(encoder, n_rows)]

    def _understand_lines(self, table: Table, use: Use) -> tuple[Table, Encoder]:
        """Understand the columns of lines, and of the rows that are made of them; return these."""
        self._validate_params()
        self.decimal_: str = self.decimal or ""
        _check_name(per := str(self.per), table.names)
        if self.series is not None:
            raise TableError("rows are joined, not their series", "leave out ", Argument("series"))
        told = {name: kind for name, kind in (self.as_ or {}).items() if kind != "log"}
        told = {name: told[name] for name in table.names if name in told} | {per: "identifier"}
        self.lines_ = clone(self).set_params(as_=told, shares=None, per=None)
        encoder = self.lines_.understand_columns(table, use, are_lines=True)
        rows, found, encoder = joined(table, per, encoder, use)
        found = [one for one in found if one.kind != "ignore"]
        cells = {one.name: Cells(one.name, one_array(rows.sample[one.name])) for one in found}
        own = self._told([*table.names, *cells])
        for j, one in enumerate(found):
            if one.name in own and one.name not in told:
                found[j] = kinds.column_of(cells[one.name], own[one.name])
        lines = [one for one in self.lines_.columns_ if one.name not in cells and not one.is_used]
        self._settle_columns([*found, *lines])
        self.lines_.notes_.append(Note(rows.how_read[-1]))
        self.lines_._note_cells(encoder, table.n_rows)
        numbers = {one.name: cells[one.name].numbers for one in found if one.kind in NUMBERS}
        self.notes_ = [*self.lines_.notes_, *doubts_on_values(numbers, rows.survey.rows)]
        return rows.choosing({name: name for name in cells}), encoder

    def _with_series(self, columns: list[Column]) -> tuple[list[Column], list[Note]]:
        """Make shapes of columns that are a series, if asked to, or return a note on them."""
        names, *others = kinds.series_in(columns) or [[]]
        if self.series is None:
            way_out = Argument("series", "shape"), " clusters shapes"
            said = f"{len(names)} columns are a series, {some(names, 2)}: clusters are of levels"
            return columns, [Note(said, way_out=way_out)] * bool(names)
        if not names:
            raise TableError("no columns are a series", "leave out ", Argument("series"))
        notes = [Note(f"{some(each, 2)} are another series, of levels", True) for each in others]
        shape = Column("", "shape", f"one of {len(names)} of a series")
        of_row = {one.name: replace(shape, name=one.name, codes=one.codes) for one in columns}
        return [of_row[one.name] if one.name in names else one for one in columns], notes

    def _settle_columns(self, columns: Sequence[Column]) -> None:
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array([column.name for column in columns], dtype=object)
        self.columns_ = [unscaled(column) for column in columns]
        if not self.used:
            said = [f'"{one.name}" ({one.kind}: {one.why})' for one in columns]
            raise TableError(f"no column can be clustered: {some(said, 6)}")
        _check_shares(self.shares or {}, columns)

    def understand_columns(self, table: Table, use: Use, *, are_lines: bool = False) -> Encoder:
        """Find what the columns of a table contain by some of its rows."""
        self._validate_params()
        if self.thousands and self.thousands == self.decimal:
            raise ArgumentError(
                "is the decimal mark", "pass another", argument="thousands", value=self.thousands
            )
        names = [name for name in table.names if name != use.weights]
        told, codes = self._told(names), self.codes_of(names, table.name)
        survey = table.survey
        is_whole = len(survey.rows) == table.n_rows
        is_row = use.of(table).rows_of(table)[survey.rows]
        frame = table.sample
        frame = frame if is_row.all() else frame.filter(pa.array(is_row))
        n_first = int(np.count_nonzero(is_row[: survey.n_first]))
        self.decimal_ = self.decimal or ""
        cells = dict[str, Cells]()
        for name in names:
            own = self._cells(table, frame, name, codes.get(name, ()), told.get(name, ""))
            cells[name] = replace(own, n_first=n_first)
        self._settle_marks(cells, table)
        may_count = [name for name in names if told.get(name) not in UNUSED]
        _refuse_other_forms(table, {name: cells[name] for name in may_count})
        found = self._understood(cells, told)
        found, guessed = self._with_codes(found, cells, codes, told)
        code_notes = [] if self.codes == "none" else [*notes_on_unfound(codes, cells)]
        if guessed:
            in_words = codes_in_words(guessed, is_whole=is_whole)
            code_notes.append(Note(in_words, is_doubt=True))
        in_lists = ((one, table.lists.get(one.name, "")) for one in found)
        found = [replace(one, of_list=of_list) if of_list else one for one, of_list in in_lists]
        found = kinds.with_places(found, lambda name: cells[name].numbers, told)
        found, notes_on_series = self._with_series(found)
        found = [_without_empty(column, cells[column.name], told) for column in found]
        self._settle_columns(found)
        for one in self.used:  # what is known of the others stays known
            if (missing := frozenset(one.codes)) != cells[one.name].missing:
                cells[one.name] = replace(cells[one.name], missing=missing)
        numbers = {one.name: cells[one.name].numbers for one in found if one.kind in NUMBERS}
        left_out = [cells[one.name] for one in found if not (one.is_used or one.name in told)]
        on_lines = doubts_on_lines(left_out, is_whole=is_whole)
        doubts = [] if are_lines else [*on_lines, *doubts_on_values(numbers, survey.rows[is_row])]
        self.notes_ = [*code_notes, *notes_on_series, *doubts, *notes_on_left_out(found)]
        return Encoder(self.used, {name: cells[name] for name in self._names_read()})

    def _rows(self, table: Table, use: Use, encoder: Encoder, lines: Any) -> RawRows:
        if use.weights is not None:
            plain = self.of_numbers([use.weights], "weights")
            own = plain._cells(table, table.sample, use.weights, (), "number")
            cells = {**encoder.cells, use.weights: own}
            encoder = Encoder([*encoder.columns, *plain.used], cells)
        rows = points.read_rows(table, encoder, use.of(table))
        rows.use, rows.lines = use, lines
        return rows

    @classmethod
    def of_numbers(cls, names: Sequence[str], why: str = "as specified") -> Self:
        """Return one that takes columns for numbers as they are, without a fit."""
        found = cls(as_=dict.fromkeys(names, "number"), scale="none", codes="none")
        found._settle_columns([Column(name, "number", why) for name in names])
        found.decimal_, found.notes_ = "", []
        return found

    def settle_by(self, table: Table, blocks: Iterable[Weighted]) -> None:
        """Scale the columns by rows of a table that come block by block."""
        spread = points.spread_in(blocks, self.used)
        is_of_array = table.first.is_array  # whose numbers are in the unit of a program
        scale = "none" if self.scale == "auto" and is_of_array else self.scale
        found = iter(scaled(self.used, spread, scale, self.shares))
        self.columns_ = [next(found) if column.is_used else column for column in self.columns_]
        self.contributions_ = self._contributions(spread.deviations)
        name, share = max(self.contributions_.items(), key=lambda pair: pair[1])
        if share > _DECIDES and len(self.contributions_) > 1:
            said = Note(f'"{name}" decides {100 * share:.0f} % of all distances', is_doubt=True)
            self.notes_ = [*self.notes_, said]

    def finish(self, rows: RawRows) -> None:
        """Scale the columns by the rows that `read` has read, and these rows."""
        self.settle_by(rows.table, rows.blocks())
        rows.scale(*self.scaling)

    def transform(self, X: Any) -> FloatArray:
        """Return a table with the columns of the fit as points; what is missing is NaN.

        A category that the fit has not seen is none of the known ones.

        Parameters
        ----------
        X : path, table of `open_table`, frame of pandas or Polars, dict of columns, or array
            A table with columns of the same names, or an array with the same columns.

        Returns
        -------
        (n_samples, n_features)
            The points.
        """
        rows = self.read_again(self.as_fitted(X), Use())
        rows.scale(*self.scaling)
        return self._for_table(rows)

    def _for_table(self, rows: RawRows) -> FloatArray:
        """Return points; for pandas with the values of `per` as index, since X has other rows."""
        points: FloatArray = np.asarray(rows.raw)
        rows.table.warn_of_totals()
        if self.per is not None and _get_output_config("transform", self)["dense"] == "pandas":
            keys = rows.table.frame().select([self.per]).to_pandas().set_index(self.per)
            points = type(keys)(points, index=keys.index)
        return points

    def joined(self, X: Any) -> Any:
        """Return the rows whose points `transform` returns: with `per`, one for each of its values.

        Parameters
        ----------
        X : path, table of `open_table`, frame of pandas or Polars, dict of columns, or array
            A table as for `transform`.

        Returns
        -------
        pyarrow.Table
            The rows, in the order in which the values first occur.
        """
        return self._joined(self.as_fitted(X), Use())[0].frame()

    def _joined(self, table: Table, use: Use) -> tuple[Table, Any]:
        reader, read = self.reader_of(table)
        if self.per is None or self.per not in read:  # these are no lines
            return table, None
        names, lines = {*map(str, self.feature_names_in_)}, None
        if self._pivoted:
            rows = pivoted(table, self.per, self._pivoted, use)
            self.as_fitted(rows)  # refuses those that lack columns
        else:
            if {self.per, COUNT, *self._names_read()} <= {*table.first.names}:
                problem = f'has one row for each "{self.per}" already'
                raise TableError(f"{table.name} {problem}", "pass the rows of which they were made")
            rows, _, lines = joined(table, self.per, reader.encoder_for(table), use)
        return rows.choosing({name: name for name in rows.names if name in names}), lines

    def as_fitted(self, X: Any, use: Use | None = None, model: str = "the model") -> Table:
        """Return a table with the columns of the fit that count, by their names in the fit.

        Names decide, and places only where the table or the fit has no names, or no name of those
        that were chosen is the same.
        """
        check_is_fitted(self)
        table, use = open_table(X), use or Use()
        weights, were_chosen = use.weights, use.columns is not None
        reader, names = self.reader_of(table)
        found, there = columns_in(names, table.names), [n for n in table.names if n != weights]
        is_free = were_chosen and {*there}.isdisjoint(names)
        if is_free or any(all(map(kinds.has_no_name, these)) for these in (names, there)):
            for every in (names, [*map(str, reader.feature_names_in_)]):
                if len(found) < len(names) and len(every) == len(there):
                    places = dict(zip(every, there, strict=True))
                    found = {name: places[name] for name in names}
        if len(found) < len(names):
            lacking = next(name for name in names if name not in found)
            said = f'{table.name} has no "{lacking}" in {counted(len(there), "column")}'
            said += f", and {model} was fitted to {len(names)}"
            hint = "" if kinds.has_no_name(lacking) else nearest(lacking, table.first.names)
            if hint:
                raise TableError(said + hint)
            if were_chosen or len({*table.names} - {*names}) < len(names):
                raise TableError(said, "add that column, or rename one")
            raise TableError(said, "choose them with ", Argument("columns"))
        return table.choosing(found | ({} if weights is None else {weights: weights}))

    def reader_of(self, table: Table) -> tuple[Prepare, list[str]]:
        """Return what reads the columns of a table, with `per` those of lines, and their names."""
        if self.per is None or table.first.per == self.per:
            return self, self._names_read()
        reader = self if self._pivoted else self.lines_
        return reader, [*(self._pivoted or reader._names_read()), self.per]

    def read_again(self, table: Table, use: Use) -> RawRows:
        """Read the columns of the fit in another table, which `as_fitted` returns."""
        with table.naming():
            table, lines = self._joined(table, use)
            return self._rows(table, use, self.encoder_for(table), lines)

    def encoder_for(self, table: Table) -> Encoder:
        """Find how another table writes the columns of the fit."""
        cells, sample = dict[str, Cells](), table.sample
        known = {one.name: one for one in self.columns_}
        for one in (known[name] for name in self._names_read()):
            cells[one.name] = self._cells(table, sample, one.name, one.codes, one.kind, one.unit)
        _refuse_other_forms(table, cells)
        return Encoder(self.used, cells)

    def _names_read(self) -> list[str]:
        names = (name for column in self.used for name in (column.name, column.other) if name)
        return [*dict.fromkeys(names)]

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the columns of points, such as "plan: free" for a category.

        Parameters
        ----------
        input_features : ignored
            For scikit-learn.

        Returns
        -------
        (n_features,)
            The names.
        """
        names = [name for one in self.used for name in features.names_of(one)]
        return np.array(names, dtype=object)

    @property
    def used(self) -> list[Column]:
        """The columns that count in distances."""
        check_is_fitted(self)
        return [column for column in self.columns_ if column.is_used]

    @property
    def scale_(self) -> Literal["standard", "shared", "minmax", "none"]:
        """How numbers are scaled, which the data tell with ``scale="auto"``.

        It is "shared" where numbers in one unit, next to words, are divided by one scale.
        """
        if self.scale != "auto":
            return self.scale
        numbers = [one for one in self.used if one.kind in NUMBERS]
        # Without the shares, which divide scales.
        scales = [one.scales[0] * np.sqrt(share_of(one, self.shares)) for one in numbers]
        is_one = bool(numbers) and np.ptp(scales) <= 1e-12 * max(scales)
        if is_one and abs(scales[0] - 1) <= 1e-12 and not any(one.offsets[0] for one in numbers):
            return "none"
        return "shared" if is_one and 1 < len(numbers) < len(self.used) else "standard"

    @property
    def is_scaled(self) -> bool:
        """Whether points differ from the numbers of their columns."""
        offsets, scales = self.scaling
        has_log = any(column.kind == "log" for column in self.used)
        return bool(has_log or offsets.any() or (scales != 1).any())

    def done(self, column: Column) -> str:
        """Return what is done with a column, in words."""
        if column.kind not in NUMBERS:
            return column.done
        said = {"none": "as it is", "minmax": "from 0 to 1", "shared": "one scale for all numbers"}
        return said.get(self.scale_, column.done)

    def measure(self, X: ArrayLike, weights: FloatArray | None = None) -> Self:
        """Find what each column contributes to the distances of other points."""
        _, scales = self.scaling
        spread = points.spread_in(
            points.blocks_of(np.asarray(X, dtype=np.float64), weights), self.used
        )
        self.contributions_ = self._contributions(spread.deviations * scales)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "columns_" in vars(self)  # unlike `as_`, which scikit-learn takes for a result

    def check_loaded(self) -> None:
        """Raise where columns of a file are not those of a fit."""
        columns: Any = self.columns_
        decimal: Any = self.decimal_
        self.notes_ = []
        known = [column for column in columns if isinstance(column, Column)]
        names = [column.name for column in known]
        are_right = isinstance(decimal, str) and {one.other for one in known} <= {"", *names}
        if not are_right or names != list(self.feature_names_in_) or len(known) != len(columns):
            raise ValueError("columns_ of Prepare are not its columns")
        are_right = {*map(type, self._pivoted)} <= {str} and len(self._pivoted) != 1
        if not are_right or (self.per is None or bool(self._pivoted)) is hasattr(self, "lines_"):
            raise ValueError("lines_ of Prepare are those of its parameter per")
        for column in known:
            widths = {len(column.offsets), len(column.scales), len(column.levels or column.scales)}
            n_features = len(features.names_of(column)) if column.is_used else 0
            if column.kind != "ordered" and widths != {n_features}:
                raise ValueError(f"{column.name!r:.40} of Prepare has no features of its kind")

    def in_units(self, X: ArrayLike) -> FloatArray:
        """Return points or centers in the units of the columns: shares of 0 to 1 for categories."""
        offsets, scales = self.scaling
        values: FloatArray = np.asarray(X, dtype=np.float64) * scales + offsets
        is_log = [column.kind == "log" for column in self.used for _ in column.scales]
        values[:, is_log] = np.expm1(values[:, is_log])
        return values

    def explained(self, X: Any, *, every_row: bool) -> tuple[list[Feature], FloatArray]:
        """Return the features of a table, and their values: neither scaled nor their logarithms.

        Where every row is asked for, those that are left out have no values.
        """
        plain = copy.copy(self)
        plain.columns_ = [
            unscaled(replace(column, kind="number") if column.kind == "log" else column)
            for column in self.columns_
        ]
        rows = plain.read_again(plain.as_fitted(X), Use())
        values = np.asarray(rows.raw)
        if every_row and not rows.is_used.all():
            values = np.full((len(rows.is_used), values.shape[1]), np.nan)
            values[rows.is_used] = rows.raw
        return features.features_of(plain.columns_), values

    def inverse_transform(self, X: ArrayLike) -> dict[str, Any]:
        """Return the columns of points or centers: numbers in their units, the likeliest words.

        Parameters
        ----------
        X : (n_samples, n_features)
            Points, such as ``cluster_centers_``.

        Returns
        -------
        dict
            A column for each name that was used; ``pandas.DataFrame`` takes it.
        """
        found, values = dict[str, Any](), self.in_units(X)
        for column, part in features.parts_of(self.used):
            found |= dict(features.decode(column, values[:, part]))
        return found

    @property
    def has_words(self) -> bool:
        """Whether words count in distances."""
        return any(column.kind in WORDS for column in self.used)

    def spread_out(self, X: ArrayLike, random_state: Any = None) -> FloatArray:
        """Return points whose words are drawn from ranges without gaps, to choose k by."""
        random, found = check_random_state(random_state), np.array(X, dtype=np.float64)
        for column, part in features.parts_of(self.used):
            found[:, part] += features.noise_of(column, found[:, part], random)
        return found

    def shuffled(self, X: ArrayLike, random_state: Any = None) -> FloatArray:
        """Return points with the values of each column in another order."""
        random, found = check_random_state(random_state), np.array(X, dtype=np.float64)
        for _, part in features.parts_of(self.used):
            found[:, part] = found[random.permutation(len(found)), part]
        return found

    @property
    def scaling(self) -> tuple[FloatArray, FloatArray]:
        """The offset of each column of the points, and by what it is then divided."""
        offsets = np.array([offset for column in self.used for offset in column.offsets])
        return offsets, np.array([scale for column in self.used for scale in column.scales])

    def _contributions(self, deviations: FloatArray) -> dict[str, float]:
        """Return the share of each column in the variance, and so in distances."""
        _, scales = self.scaling
        variances = np.square(deviations / scales)
        places = features.parts_of(self.used)
        found = {one.name: float(variances[part].sum()) for one, part in places}
        total = sum(found.values()) or 1.0
        return {name: variance / total for name, variance in found.items()}

    def _told(self, names: Sequence[str]) -> dict[str, str]:
        told = {str(name): kind for name, kind in (self.as_ or {}).items()}
        told |= {str(self.per): "identifier"} if self.per in names else {}
        for name, kind in told.items():
            _check_name(name, names)
            if kind not in (known := [one for one in (*USED, *UNUSED) if one != "shape"]):
                listed = f"{', '.join(known)}, of which the last two leave a column out"
                hint = nearest(str(kind), known) or f": the kinds are {listed}"
                raise ArgumentError(f'"{name}" cannot be a "{kind}"{hint}')
        return told

    def _settle_marks(self, cells: dict[str, Cells], table: Table) -> None:
        """Settle decimal marks in doubt by the columns that show theirs."""
        forms = {name: each.form for name, each in cells.items() if each.is_text}
        numbers = [form for form in forms.values() if form.kind == "number"]
        known = {form.marks.decimal for form in numbers if not form.is_assumed} - {""}
        doubtful = [name for name, form in forms.items() if form.is_assumed]
        if self.decimal_ or len(known) > 1:
            return
        of_columns = [forms[name].likely for name in doubtful if forms[name].likely]
        of_file = table.first.likely_decimal
        self.decimal_ = [*known, *of_columns, of_file or "." * bool(doubtful)][0]
        for name in doubtful:
            hints = replace(cells[name].hints, decimal="".join(known), likely=self.decimal_)
            cells[name] = replace(cells[name], hints=hints)

    def codes_of(self, names: Sequence[str], file: str) -> dict[str, list[str]]:
        """Return the codes for missing values that were given for each column, or for all."""
        if isinstance(self.codes, str):
            return {}
        if isinstance(self.codes, Mapping):
            raise ArgumentError(
                "is a dict", 'pass such as ["age=99"]', argument="codes", value=self.codes
            )
        found: dict[str, list[str]] = {}
        for each in self.codes:
            of, is_of_some, code = str(each).rpartition("=")
            for place in numbers_of([of], names, file) if is_of_some else range(len(names)):
                found.setdefault(names[place], []).append(code.strip())
        return found

    def _cells(
        self, table: Table, frame: Any, name: str, codes: Sequence[str], kind: str, unit: str = ""
    ) -> Cells:
        marks, of_file = (self.decimal_, self.decimal, self.thousands), table.units.get(name, "")
        hints = Hints(*marks, self.dates, of_file, unit, has_numbers=kind in (*NUMBERS, "log"))
        return Cells(name, one_array(frame[name]), hints, frozenset(codes))

    def _understood(self, cells: Mapping[str, Cells], told: Mapping[str, str]) -> list[Column]:
        found, first = [], None if all(map(kinds.has_no_name, cells)) else next(iter(cells))
        orders = _checked_orders(self.order, cells)
        of_a_fit = kinds.added_by_a_fit(cells)
        for name, each in cells.items():
            kind = told.get(name)
            if kind is None and self.dates is not None:
                is_date = each.type == "date"
                kind = "number" if kinds.is_since_1970(each) else "date" if is_date else None
            if name in of_a_fit and name not in told:
                found.append(Column(name, "ignore", OF_A_FIT))
            else:
                found.append(kinds.column_of(each, kind, orders, is_first=name == first))
        weights = {*kinds.weights_in(found, lambda name: cells[name].numbers)}
        weights -= {*told, *(self.shares or {})}
        has_others = any(one.is_used and one.name not in weights for one in found)
        return [
            Column(one.name, "ignore", OF_WEIGHTS) if has_others and one.name in weights else one
            for one in found
        ]

    def _with_codes(
        self,
        columns: list[Column],
        cells: dict[str, Cells],
        given: Mapping[str, list[str]],
        told: Mapping[str, str],
    ) -> tuple[list[Column], dict[str, dict[float, int]]]:
        """Take numbers that look like codes for missing values, and understand columns again."""
        with_given = ((one, given.get(one.name)) for one in columns)
        found = [replace(one, codes=[*one.codes, *own]) if own else one for one, own in with_given]
        if self.codes == "none":
            return found, {}
        numbers = {
            one.name: cells[one.name].numbers
            for one in columns
            if one.kind in (*NUMBERS, "yes/no") and cells[one.name].type == "number"
            if one.name not in given
        }
        codes = missing_codes(numbers)
        for j, column in enumerate(columns):
            if column.name in codes:
                texts = [f"{code:.15g}" for code in codes[column.name]]
                cells[column.name] = replace(cells[column.name], missing=frozenset(texts))
                again = kinds.column_of(cells[column.name], told.get(column.name))
                found[j] = replace(again, codes=texts)
        return found, codes


def _refuse_other_forms(table: Table, cells_of: Mapping[str, Cells]) -> None:
    """Refuse several files that write a column with different marks or units."""
    first, texts = table.first.name, {name: one for name, one in cells_of.items() if one.is_text}
    for name, cells in texts.items() if len(table.parts) > 1 else ():
        known_mark, known_unit = "", None
        for file, head in table.heads():
            own = replace(cells, array=one_array(head[name]), found=None, more=(), n_first=None)
            if not own.is_text or own.form.kind != "number":
                continue
            mark = "" if own.form.is_assumed else own.form.marks.decimal
            if {mark, known_mark} == {".", ","}:
                raise TableError(
                    f'{file} has the decimal mark "{mark}" where {first} has "{known_mark}": write '
                    "all files with the same"
                )
            if known_unit is not None and not is_same_unit(own.unit, known_unit):
                said = [f"in {one}" if one else "without a unit" for one in (own.unit, known_unit)]
                raise TableError(
                    f'{file} has "{name}" {said[0]} where {first} has it {said[1]}: write all '
                    "files in the same unit"
                )
            known_mark = known_mark or mark
            known_unit = own.unit if known_unit is None else known_unit


def doubts_on_others(prepare: Prepare, rows: RawRows) -> Iterator[Note]:
    """Yield notes on units and words of a table that are not those of the fit."""
    encoder = rows.lines or rows.encoder
    for one in prepare.lines_.used if rows.lines else prepare.used:
        cells = encoder.cells[one.name]
        if one.kind in (*NUMBERS, "log") and cells.has_other_unit:
            ours, fitted = (
                f"is in {each}" if each else "has no unit" for each in (cells.unit, one.unit)
            )
            yield Note(f'"{one.name}" {ours}, and {fitted} in the model', is_doubt=True)
    unknown = {**encoder.unread, **encoder.unknown}
    yield from notes_on_unknown(unknown, "unknown to the model")


def columns_in(names: Sequence[str], there: Sequence[str]) -> dict[str, str]:
    """Return the columns of a table that have these names.

    They may be in another case only where no other name or column is the same then.
    """
    counts = Counter(name.casefold() for name in [*{*names}, *{*there}])
    alike = {one.casefold(): one for one in there if counts[one.casefold()] == 2}
    found = {one: one for one in there}
    pairs = ((name, found.get(name, alike.get(name.casefold()))) for name in names)
    return {name: one for name, one in pairs if one is not None}


def _check_name(name: str, names: Sequence[str], who: str = "there is", why: str = "") -> None:
    if name not in names:
        hint = nearest(name, names) or f": there are {some([*names], 10)}"
        raise TableError(f'{who} no column "{name}"{why}{hint}')


def _check_shares(shares: Mapping[str, float], columns: Sequence[Column]) -> None:
    there = {one.of_list: one for one in columns} | {one.name: one for one in columns}
    for name, share in shares.items():
        _check_name(name, [*there])
        one, given = there[name], {name: share}
        if one.other in shares:
            problem = f'has two shares of one place, "{name}" and "{one.other}"'
            raise ArgumentError(problem, "leave one out", argument="shares", value={**shares})
        if not 0 < real(share) < np.inf:
            way_out = Argument("as_", {name: "ignore"}), " leaves a column out"
            raise ArgumentError("must be numbers above 0", *way_out, argument="shares", value=given)
        if not one.is_used and one.kind != "place":
            said, kind = f"({one.kind}: {one.why})", Argument("as_", {name: "number"})
            raise ArgumentError(
                f"is of a column that is left out {said}",
                *("leave its share out, or name its kind with ", kind),
                argument="shares",
                value=given,
            )


def _checked_orders(given: Any, cells: Mapping[str, Cells]) -> list[list[str]]:
    """Return the words of each order; refuse one that is of no column, or lacks words of one."""
    found = []
    for scale in () if given is None else given:
        words = [] if np.ndim(scale) != 1 else [str(word) for word in scale]
        known = {word.casefold() for word in words}
        if not words or len(known) < len(words):
            raise ArgumentError(
                "has a word twice" if words else "has no list of words for each scale",
                'pass such as [["low", "mid", "high"]]',
                argument="order",
                value=given,
            )
        is_used = False
        for name, each in cells.items():
            are_words = each.is_text and each.type != "number"
            there = [word for word in each.counts if are_words and not is_code(word)]
            lacking = [word for word in there if word.casefold() not in known]
            is_used |= len(lacking) < len(there)
            if len(there) <= kinds.MOST_CATEGORIES and 0 < len(lacking) < len(there):
                raise ArgumentError(
                    f'"{name}" has words that the order lacks: {some(lacking)}',
                    "give the order of all its words, from the lowest on",
                )
        if not is_used:
            raise ArgumentError(
                f"no column has one of the words {', '.join(sorted(known))}",
                "give those of a column",
            )
        found.append(words)
    return found


def _without_empty(column: Column, cells: Cells, told: Mapping[str, str]) -> Column:
    """Leave out a column that has hardly any values."""
    if not column.is_used or column.name in told or (column.kind == "yes/no" and column.words):
        return column
    if column.kind in WORDS and cells.type == "words":
        n_missing = int((cells.codes_of(column.words) == -2).sum())
    else:
        n_missing = int(np.isnan(cells.numbers).sum())
    if n_missing > _MOSTLY_MISSING * len(cells):
        return Column(column.name, "empty", "hardly any values")
    return column
