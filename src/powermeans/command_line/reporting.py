"""``powermeans report``."""

from __future__ import annotations

from sklearn.pipeline import Pipeline

from powermeans.command_line import failures
from powermeans.command_line.outputs import check_outputs
from powermeans.command_line.predicting import loaded, read_for
from powermeans.command_line.screen import Screen
from powermeans.command_line.sources import Source
from powermeans.report import report


def write_report(path: str, source: Source, output: str, screen: Screen) -> None:
    """A page about a saved model and data."""
    check_outputs(output)
    whole = loaded(path)
    table, _ = read_for(whole, path, source)
    *scalers, model = [step for _, step in whole.steps] if isinstance(whole, Pipeline) else [whole]
    points = table.points
    for scaler in scalers:
        points = scaler.transform(points)
    with failures.writing(output), failures.refusing(failures.DATA, ValueError):
        report(
            model,
            points,
            output,
            title=f"Clusters of {source.name}",
            source=source.data,
            scalers=scalers,
        )
    screen.say(f"written: {output}")
    screen.tell_machines({"model": path, "data": source.data, "written": {"report": output}})
