"""Decide when to read data part by part, and open it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from powermeans.errors import some
from powermeans.points.scaling import Scaling
from powermeans.scale.checkpoint import is_checkpoint
from powermeans.scale.files import files_at
from powermeans.scale.parted_data import PartedData, open_data
from powermeans.scale.tables import Missing
from powermeans.scale.tables.checking import declared_missing
from powermeans.scale.tables.formats import format_at, format_of, read_whole
from powermeans.scale.tables.table import FileFormat
from powermeans.system.free_memory import free_memory
from powermeans_tables.command import failures
from powermeans_tables.command.data import Data, check_missing, columns_for, prepare_of, read_for
from powermeans_tables.command.saved import Saved
from powermeans_tables.command.screen import waiting_for
from powermeans_tables.command.sources import DataFiles, Scale
from powermeans_tables.command.wanted import Results
from powermeans_tables.preparing.cells import is_same_unit
from powermeans_tables.preparing.kinds import NUMBERS, Column
from powermeans_tables.preparing.prepare import Note, Prepare, doubt_on_unit


def why_in_parts(files: DataFiles) -> str | None:
    """Return why data is read part by part: empty if by option or format; None if read whole."""
    is_limited = files.memory_limit is not None or files.checkpoint is not None
    path, is_asked = Path(files.first), is_limited or len(files.paths) > 1
    for each in map(Path, files.paths if is_asked else ()):
        if str(each) == "-" or (each.exists() and not each.is_file() and not each.is_dir()):
            name = "standard input" if str(each) == "-" else each
            raise failures.Failure(
                f"{name} can be read only once, and each sweep reads the rows: write them to a "
                "file, or leave out --memory-limit, --checkpoint and other files"
            )
        with failures.refusing():
            what = read_whole(each)
        if what:
            raise failures.Failure(
                f"{each} is {what}, which is read whole: pass it alone, without --memory-limit and "
                "--checkpoint, or write CSV"
            )
    if is_asked or path.is_dir():
        return ""
    with failures.refusing():
        is_whole = not path.is_file() or bool(read_whole(path))
    if is_whole:
        return None
    n_bytes, free = _bytes_as_table(path, files), free_memory()
    if n_bytes is None:
        return ""
    # Reading a table takes three times its memory, and a fit some more.
    if free is None or n_bytes * 4 <= free:
        return None
    return f"it is {n_bytes / 1e9:.3g} GB in memory, and {free / 1e9:.3g} GB are free"


def refuse_in_parts(
    files: DataFiles, results: Results, why: str | None, *others: tuple[str, Any, str]
) -> None:
    """Refuse a report and others that look at all rows at once, each with a way out."""
    report = ("--report", results.report, "leave it out, and report on some of the rows")
    for what, is_asked, way_out in (report, *others):
        if is_asked and why is not None:
            raise failures.Failure(
                f"{what} needs all rows at once, not part by part as in {files.name}: {way_out}"
            )


def _bytes_as_table(path: Path, files: DataFiles) -> int | None:
    """Estimate the memory of a table; None for a format that is never read as a whole."""
    with failures.refusing():
        kind = format_at(path).kind
    if kind == "HDF5":
        return None
    if kind != "Parquet":
        return path.stat().st_size
    form = _format_of(files)
    n_columns = len(files.asked_columns or form.names)
    return int(form.n_rows or 0) * n_columns * 8


def _format_of(files: DataFiles) -> FileFormat:
    """Open the first file."""
    with failures.refusing():
        return format_of(files_at(Path(files.first))[0], **_options(files))


def _options(files: DataFiles) -> dict[str, Any]:
    codes = None if files.keep_codes else files.codes
    return {**files.form, **files.marks, "dates": files.dates, "missing_values": codes}


def all_paths(files: DataFiles, why: str | None) -> list[str]:
    """Return every path that is read: files, folders, and the files in these."""
    if why is None:
        return [files.database or files.first]
    with failures.refusing():
        inner = [str(file) for path in files.paths for file in files_at(Path(path))]
    return [*files.paths, *inner]


def open_to_fit(files: DataFiles, why: str, scale: Scale, *, takes_missing: bool) -> Data:
    """Open the data for a fit; the first rows decide its scale, which saves a pass over all."""
    missing: Missing = "observed" if files.missing == "observed" else "error"
    notes = [_in_parts(files)]
    if scale == "auto" or files.is_missing_open:
        start = _opened(replace(files, checkpoint=None), files.asked_columns)
        with failures.refusing():
            points: Any = next(iter(start.source.blocks())).points
        if files.is_missing_open and takes_missing and np.isnan(points).any():
            missing = "observed"
            notes.append(Note("values are missing: distances use those that are present"))
        if scale == "auto":
            columns = dict(zip(start.feature_names or (), points.T, strict=True))
            with failures.refusing(name=files.name):
                found = Prepare(as_=dict.fromkeys(columns, "number")).fit(columns)
            scale = "none" if found.scale_ == "none" else "standard"
    learned = scale if scale in ("standard", "minmax") else None
    data = _opened(files, files.asked_columns, learned, why)
    if how_read := getattr(data.source, "how_read", ""):
        notes.append(Note(f"read: {how_read}"))
    return Data(data, _prepared(files, data, scale), missing=missing, notes=notes)


def _in_parts(files: DataFiles) -> Note:
    """Return the doubt on what reading part by part leaves out, with the columns of words."""
    form = _format_of(files)
    texts = {form.names[place] for place in form.texts}
    wanted = {*(files.asked_columns or form.names)} - {files.weights}
    if wanted and wanted <= texts:
        raise _of_words(files, wanted)
    lost = [] if files.asked_columns else [f'"{form.names[place]}"' for place in form.texts]
    words = f"columns of words do not count{', here ' * bool(lost)}{some(lost)}"
    return Note(f"read part by part: {words}, and codes for missing values are not found", True)


def _of_words(files: DataFiles, words: Iterable[str]) -> failures.Failure:
    named = some([f'"{name}"' for name in sorted(words)])
    return failures.Failure(
        f"{files.name}: rows read part by part take no words, places or numbers with units, as in "
        f"{named}: pass one file that fits into memory, without --memory-limit"
    )


def _prepared(files: DataFiles, data: PartedData, scale: Scale) -> Prepare:
    """Return the scaling of rows in parts as that of a table of numbers."""
    prepare, names = Prepare(scale=scale, dates=files.dates), list(data.feature_names or ())
    with failures.refusing(), failures.reading(files.name, writes=files.checkpoint):
        scaling = data.scaling or Scaling(np.zeros(len(names)), np.ones(len(names)))
        codes = declared_missing(files.codes, names, files.name)
    dates, units = _dates(files) if files.dates else (), _units(files)
    prepare.columns_ = [
        Column(
            name,
            "date" if name in dates else "number",
            codes=[code for places, code in codes if place in places],
            unit=units.get(name, ""),
            offsets=[float(scaling.offsets[place])],
            scales=[float(scaling.units[place])],
        )
        for place, name in enumerate(names)
    ]
    prepare.feature_names_in_ = np.array(names, dtype=object)
    prepare.n_features_in_, prepare.notes_ = len(names), []
    prepare.decimal_ = getattr(data.source, "decimal", "")
    return prepare


def _units(files: DataFiles) -> dict[str, str]:
    """Return the currencies and percent signs of columns of text."""
    form = _format_of(files)
    return {name: form.unit(place) or "" for place, name in enumerate(form.names)}


def _dates(files: DataFiles) -> list[str]:
    """Return the columns that are dates, which do not count unless they are asked for."""
    form = _format_of(replace(files, dates=None))
    return [form.names[place] for place, what in form.beside.items() if what == "dates"]


def read_as_model(
    saved: Saved, path: str, files: DataFiles, why: str | None, *, is_quiet: bool
) -> Data:
    """Read the columns to which a model was fitted, or open them if there is a reason for that."""
    with waiting_for(f"reading {files.name}", is_quiet=is_quiet or why is not None):
        if why is None:
            return read_for(saved.model, path, files)
        return _open_for(saved.model, path, files, why)


def _open_for(model: Any, path: str, files: DataFiles, why: str) -> Data:
    """Open the columns to which a model was fitted, as the points that its last step takes."""
    check_missing(model, path, files)
    prepare, scaling, form = prepare_of(model), None, _format_of(files)
    with failures.refusing():
        columns = list(columns_for(model, path, files, list(form.names)).values())
    used = [] if prepare is None else prepare.used
    texts = {form.names[place] for place in form.texts} & {*columns}
    if words := texts | {one.name for one in used if one.kind not in (*NUMBERS, "date")}:
        raise _of_words(files, words)
    if prepare is not None:
        pairs = zip(columns, used, strict=True)
        codes = ",".join(f"{name}={code}" for name, one in pairs for code in one.codes)
        given = files.missing_values or codes or None
        files = replace(files, missing_values=given, dates=files.dates or prepare.dates)
        scaling = Scaling(*prepare.scaling)
    data, units = _opened(files, columns, scaling, why), _units(files)
    others = [(one, units.get(name, "")) for name, one in zip(columns, used, strict=False)]
    notes = [doubt_on_unit(one, unit) for one, unit in others if not is_same_unit(unit, one.unit)]
    return Data(data, prepare or _prepared(files, data, "none"), notes=notes)


def _opened(
    files: DataFiles, columns: Sequence[str] | None, scale: Any = None, why: str = ""
) -> PartedData:
    """Open the data for reading part by part, and warn if no option asked for that."""
    if files.skip_rows is not None or files.missing == "drop":
        option = "--missing drop" if files.skip_rows is None else "--skip-rows"
        raise failures.Failure(
            f"{option} is not for rows read part by part, as those of {files.name} are: remove "
            "those rows from the file, or pass --missing observed if they lack values"
        )
    with failures.refusing():
        data: PartedData = open_data(
            files.paths,
            columns=columns,
            weights=files.weights,
            scale=scale,
            memory_limit=files.memory_limit,
            checkpoint=files.checkpoint,
            **_options(files),
        )
    if files.checkpoint is not None and is_checkpoint(files.checkpoint):
        warnings.warn(f"the fit resumes from {files.checkpoint}", stacklevel=2)
    if why:
        warnings.warn(f"{files.name} is read part by part, since {why}", stacklevel=2)
    return data
