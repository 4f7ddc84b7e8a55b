"""``powermeans report``."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from sklearn.pipeline import Pipeline

from powermeans.command_line import failures
from powermeans.command_line.outputs import check_outputs
from powermeans.command_line.predicting import loaded, read_for
from powermeans.command_line.screen import Screen
from powermeans.command_line.sources import Source, are_names, split_names
from powermeans.reporting.report import report
from powermeans.tables import Table


def write_report(path: str, source: Source, output: str, screen: Screen) -> None:
    """A page about a saved model and data."""
    check_outputs(reads=[path, source.data], page=output)
    whole = loaded(path)
    table, _ = read_for(whole, path, source)
    *scalers, model = [step for _, step in whole.steps] if isinstance(whole, Pipeline) else [whole]
    points = table.points
    for scaler in scalers:
        points = scaler.transform(points)
    with failures.writing(output), failures.refusing():
        report(
            model,
            points,
            output,
            title=f"Clusters of {source.name}",
            source=source.data,
            scalers=scalers,
            reading=reading_of(source, table),
            model_file=path,
            sample_weight=table.weights,
        )
    screen.say(f"written: {output}")
    screen.say("without the annealing, which a saved model does not hold: fit --report shows it")
    screen.tell_machines({"model": path, "data": source.data, "written": {"report": output}})


def reading_of(source: Source, table: Table) -> dict[str, Any]:
    """How to read the same table again: what `read_table` is given beside the file."""
    places = ("data", "others")
    how = {p.name: getattr(source, p.name) for p in fields(source) if p.name not in places}
    if are_names(table.names):
        return {**how, "columns": list(table.names)}
    return {**how, "columns": None if source.columns is None else split_names(source.columns)}
