"""Commands on data that is read part by part: the same answers, and what is refused."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from powermeans import PowerKMeans, RobustPowerKMeans
from powermeans.app.command import failures, main, parts
from powermeans.app.command.clusters import Tally
from powermeans.app.command.screen import shown_progress
from powermeans.app.report.summaries import summarize
from powermeans.engine.callbacks import FitProgress
from powermeans.engine.history import SweepState
from powermeans.points.compiled import EuclideanRows
from powermeans.saving import load, save
from powermeans.scale.checkpoint import Journal

NAMES = ["a", "b", "c"]
N_ROWS = 3000

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> Run:
    """A command in this process, in a folder with a file, and a folder of the same rows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    rng = np.random.default_rng(0)
    means = 9 * rng.normal(size=(4, 3))
    points = means[np.arange(N_ROWS) % 4] * [1, 5, 1] + rng.normal(size=(N_ROWS, 3))
    weights = rng.integers(1, 4, size=N_ROWS).astype(float)
    table = pa.table({**dict(zip(NAMES, points.T, strict=True)), "w": weights})
    parquet.write_table(table, "rows.parquet", row_group_size=700)
    Path("folder").mkdir()
    for number in range(3):
        parquet.write_table(table.slice(1000 * number, 1000), f"folder/part-{number}.parquet")

    def run(*arguments: object) -> Any:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capfdbinary.readouterr()
        out, err = captured.out.decode(), captured.err.decode()
        return SimpleNamespace(code=int(ended.value.code or 0), out=out, err=err)

    return run


def without_labels(cluster: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in cluster.items() if key != "label"}


def close(one: Any, other: Any) -> bool:
    """Whether two trees of JSON are the same but for rounding."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(close, one, other))
    return one == (other if isinstance(one, str) else pytest.approx(other, rel=1e-5, abs=1e-9))


@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
@pytest.mark.parametrize("weights", [[], ["--weights", "w"]], ids=["plain", "weighted"])
def test_fit_in_parts_tells_what_a_fit_in_memory_tells(scale, weights, run) -> None:
    columns = ["--columns", "a,b,c", *weights, "--scale", scale, "-k", 4, "--json", "-q"]
    whole = json.loads(run("fit", "rows.parquet", *columns).out)
    found = json.loads(run("fit", "rows.parquet", *columns, "--memory-limit", "100kB").out)
    assert found["n_rows"] == N_ROWS
    assert found["inertia"] == pytest.approx(whole["inertia"], rel=1e-6)
    by_size = [
        sorted(map(without_labels, told["clusters"]), key=lambda one: one["center"]["a"])
        for told in (found, whole)
    ]
    assert close(*by_size)


def test_a_tally_is_the_summary_of_all_rows_at_once() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(500, 3)) + 1e6
    points[:, 2] = 7.0
    weights = rng.uniform(size=500)
    centers = points[:4]
    labels = rng.integers(3, size=500).astype(np.int32)  # of the fourth there is none
    tally = Tally(centers)
    for start in range(0, 500, 120):
        rows = slice(start, start + 120)
        tally.add(points[rows], labels[rows], weights[rows])
    columns, found = tally.summaries(NAMES)
    of_all, expected = summarize(points, labels, 4, NAMES, weights)
    np.testing.assert_allclose(columns.means, of_all.means, rtol=1e-12)
    np.testing.assert_allclose(columns.deviations, of_all.deviations, rtol=1e-6)
    assert columns.deviations[2] == 0
    for one, other in zip(found, expected, strict=True):
        assert (one.size, one.nearest) == (other.size, other.nearest)
        assert one.weight == pytest.approx(other.weight)
        assert one.spread == pytest.approx(other.spread, rel=1e-6)
        np.testing.assert_allclose(one.z_scores, other.z_scores, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("suffix", ["csv", "npy", "parquet", "feather"])
def test_labels_are_written_part_by_part_and_predicted_again(suffix, run) -> None:
    fit = run("fit", "folder", "-k", 4, "--columns", "a,b,c", "-o", f"one.{suffix}", "-m", "m.pm")
    assert fit.code == 0, fit.err
    assert "folder, read part by part, fitted in" in fit.out
    files = sorted(Path("folder").iterdir())
    ended = run("predict", "m.pm", *files, "-o", f"other.{suffix}")
    assert ended.code == 0, ended.err
    read: dict[str, Callable[[str], Any]] = {
        "csv": lambda path: [int(word) for word in Path(path).read_text().split()[1:]],
        "npy": lambda path: np.load(path).tolist(),
        "parquet": lambda path: parquet.read_table(path)["cluster"].to_pylist(),
        "feather": lambda path: feather.read_table(path)["cluster"].to_pylist(),
    }
    labels = read[suffix](f"one.{suffix}")
    assert labels == read[suffix](f"other.{suffix}")
    points = parquet.read_table("rows.parquet", columns=NAMES).to_pandas()
    assert labels == load("m.pm").predict(points).tolist()


def test_a_scaled_model_predicts_unscaled_rows_and_columns_in_any_order(run) -> None:
    fit = ["-k", 4, "--weights", "w", "--scale", "standard", "-o", "one.npy", "-m", "m.pm", "-q"]
    assert run("fit", "folder", *fit).code == 0
    ended = run("predict", "m.pm", "folder", "--columns", "c,a,b", "-o", "other.npy")
    assert ended.code == 0, ended.err
    assert np.load("one.npy").tolist() == np.load("other.npy").tolist()
    printed = run("predict", "m.pm", "rows.parquet", "--memory-limit", "100kB")
    assert printed.out.split()[1:] == [str(label) for label in np.load("one.npy")]
    assert "3,000 rows of rows.parquet by m.pm" in printed.err


@pytest.mark.filterwarnings("default")  # which the command tells as notes
def test_a_fit_goes_on_from_its_checkpoint_and_says_so(run) -> None:
    command = ["fit", "rows.parquet", "-k", 4, "--columns", "a,b,c", "--checkpoint", "state", "-q"]
    first = run(*command)
    assert (first.code, first.err) == (0, "")
    again = run(*command)
    assert again.err.startswith("powermeans: note: the fit resumes from state")
    same = (re.sub(r"fitted in .*", "", ended.out) for ended in (first, again))
    assert next(same) == next(same)
    other = run(*command, "--runs", 2, "--seed", 3)
    assert other.code == failures.USAGE
    assert "--checkpoint 'state' is a checkpoint of a fit with other parameters: pass" in other.err


def test_a_file_that_is_no_checkpoint_is_not_gone_on_from(run) -> None:
    assert run("fit", "rows.parquet", "-k", 4, "-m", "m.pm", "-q").code == 0
    before = Path("m.pm").read_bytes()
    ended = run("fit", "rows.parquet", "-k", 4, "--checkpoint", "m.pm", "-q")
    assert ended.code == failures.USAGE
    assert ended.err == "powermeans: --checkpoint 'm.pm' is no checkpoint: name another file\n"
    assert Path("m.pm").read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="there are no locks")
def test_a_checkpoint_that_another_fit_has_is_refused(run) -> None:
    claim = Journal("state")
    ended = run("fit", "rows.parquet", "-k", 4, "--checkpoint", "state", "-q")
    claim.close()
    assert ended.code == failures.USAGE
    assert ended.err.startswith("powermeans: --checkpoint 'state' is in use by another fit: wait")


def test_how_often_a_checkpoint_is_written_can_be_said(run, monkeypatch) -> None:
    asked = list[float]()

    class Asked(Journal):
        def __init__(self, place: Any, seconds: float) -> None:
            asked.append(seconds)
            super().__init__(place, seconds)

    monkeypatch.setattr("powermeans.scale.checkpoint.Journal", Asked)
    command = ["fit", "rows.parquet", "-k", 4, "--effort", "fast", "-q"]
    for more in ([], ["--checkpoint-seconds", 2.5]):
        assert run(*command, "--checkpoint", f"state{len(more)}", *more).code == 0
    assert asked == [60.0, 2.5]
    alone = run(*command, "--checkpoint-seconds", 5)
    assert alone.code == failures.USAGE
    assert "--checkpoint-seconds needs --checkpoint" in alone.err


@pytest.mark.filterwarnings("default")  # which the command tells as notes
def test_a_full_disk_at_the_end_of_a_fit_costs_only_the_checkpoint(run, monkeypatch) -> None:
    write, n_writes = Journal.write, 0

    def fail_at_the_end(journal: Journal) -> None:
        nonlocal n_writes
        n_writes += 1
        if n_writes > 1:
            raise OSError(28, "No space left on device: make room", "state")
        write(journal)

    monkeypatch.setattr(Journal, "write", fail_at_the_end)
    command = ["fit", "rows.parquet", "-k", 4, "--checkpoint", "state", "-o", "l.npy", "-m", "m.pm"]
    ended = run(*command, "-q")
    assert ended.code == 0, ended.err
    assert ended.err.startswith("powermeans: note: state: No space left on device: make room.")
    assert np.load("l.npy").shape == (N_ROWS,)
    assert load("m.pm").n_clusters == 4


def test_a_full_disk_in_the_middle_is_said_of_the_checkpoint(run, monkeypatch) -> None:
    def fail(journal: Journal, *what: Any) -> None:
        raise OSError(28, "No space left on device: make room", "state")

    monkeypatch.setattr(Journal, "note", fail)
    ended = run("fit", "rows.parquet", "-k", 4, "--checkpoint", "state", "-q")
    assert ended.code == failures.OUTPUT
    assert ended.err == (
        "powermeans: state cannot be written: No space left on device: make room\n"
    )


@pytest.mark.parametrize("place", ["fitting", "predicting"])
def test_rows_that_cannot_be_read_are_not_said_to_be_labels(place, run, monkeypatch) -> None:
    assert run("fit", "rows.parquet", "-k", 4, "-m", "m.pm", "-q").code == 0

    def failing(*what: Any) -> Any:
        yield {"cluster": np.zeros(3, np.int32)}
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(f"powermeans.app.command.{place}.labelled", failing)
    command = {
        "fitting": ["fit", "folder", "-k", 4, "-q"],
        "predicting": ["predict", "m.pm", "folder"],
    }
    ended = run(*command[place], "-o", "labels.npy")
    assert ended.code == failures.DATA
    assert ended.err == "powermeans: folder cannot be read: Input/output error\n"
    assert not Path("labels.npy").exists()


def test_nor_are_those_of_a_fit(run, monkeypatch) -> None:
    def failing(*what: Any, **more: Any) -> Any:
        raise OSError(5, "Input/output error", "part-2")

    monkeypatch.setattr(PowerKMeans, "fit", failing)
    ended = run("fit", "folder", "-k", 4, "-q")
    assert ended.code == failures.DATA
    assert ended.err == "powermeans: part-2 cannot be read: Input/output error\n"


@pytest.mark.parametrize("path", ["state", "labels.npy"])
def test_what_would_be_read_the_next_time_is_refused(path, run) -> None:
    option = "-o" if path == "labels.npy" else "--checkpoint"
    ended = run("fit", "folder", "-k", 4, option, f"folder/{path}", "-q")
    assert ended.code == failures.USAGE, ended.err
    assert f"folder/{path} is in the folder folder" in ended.err
    assert not Path("folder", path).exists()


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("limit", [[], ["--memory-limit", "100kB"]])
@pytest.mark.parametrize("scale", ["none", "standard"])
def test_predict_looks_at_each_distance_once(limit, scale, run, monkeypatch) -> None:
    columns = ["--columns", "a,b,c", "--weights", "w"]
    fit = ["fit", "rows.parquet", *columns, "-k", 4, "-m", "m.pm", "--scale", scale, "-q"]
    assert run(*fit).code == 0
    n_rows, assign = 0, EuclideanRows.assign

    def counting(rows: EuclideanRows, centers: Any) -> Any:
        nonlocal n_rows
        n_rows += rows.n_points
        return assign(rows, centers)

    monkeypatch.setattr(EuclideanRows, "assign", counting)
    ended = run("predict", "m.pm", "rows.parquet", *columns, *limit, "-o", "l.npy", "--json")
    assert ended.code == 0, ended.err
    assert n_rows == N_ROWS + 1  # on which a model that was loaded is tried
    table = parquet.read_table("rows.parquet")
    points = table.select(NAMES).to_pandas()
    model = load("m.pm")
    assert np.load("l.npy").tolist() == model.predict(points).tolist()
    expected = model.score(points, sample_weight=table["w"].to_numpy())
    assert json.loads(ended.out)["score"] == pytest.approx(expected, rel=1e-12)


def test_a_model_that_scores_in_another_way_does_so_still(run) -> None:
    points = parquet.read_table("rows.parquet", columns=NAMES).to_pandas().to_numpy()
    model = RobustPowerKMeans(4, trim=0.2, random_state=0).fit(points)
    save(model, "m.pm")
    ended = run("predict", "m.pm", "rows.parquet", "--columns", "a,b,c", "-o", "l.npy", "--json")
    assert json.loads(ended.out)["score"] == pytest.approx(model.score(points), rel=1e-12)


def test_a_fit_that_is_interrupted_tells_the_inertia_of_what_it_writes(run, monkeypatch) -> None:
    def interrupted(shown: FitProgress, state: SweepState) -> None:
        if state.sweep == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(FitProgress, "__call__", interrupted)
    command = ["fit", "rows.parquet", "-k", 9, "--columns", "a,b,c", "--memory-limit", "100kB"]
    ended = run(*command, "-m", "m.pm", "--json", "--effort", "none")
    assert ended.code == failures.INTERRUPTED
    points = parquet.read_table("rows.parquet", columns=NAMES).to_pandas()
    found = json.loads(ended.out)
    assert found["was_interrupted"]
    assert found["inertia"] == pytest.approx(-load("m.pm").score(points), rel=1e-9)


@pytest.mark.filterwarnings("default")  # which the command tells as notes
def test_a_file_larger_than_memory_is_read_part_by_part_and_that_is_said(run, monkeypatch) -> None:
    monkeypatch.setattr(parts, "free_memory", lambda: 4 * N_ROWS * 3 * 8)
    command = ["fit", "rows.parquet", "-k", 4, "--columns", "a,b,c", "-q"]
    assert run(*command).err == ""
    monkeypatch.setattr(parts, "free_memory", lambda: 4 * N_ROWS * 3 * 8 - 1)
    ended = run(*command)
    assert "note: rows.parquet is read part by part, since it is 7.2e-05 GB in memory" in ended.err
    assert "rows.parquet, read part by part, fitted in" in ended.out
    monkeypatch.setattr(parts, "free_memory", lambda: None)
    assert run(*command).err == ""


def test_k_is_chosen_in_parts(run) -> None:
    ended = run("choose-k", "folder", "--columns", "a,b,c", "--to", 6, "--effort", "fast", "-q")
    assert ended.code == 0, ended.err
    assert "4 groups; clear" in ended.out
    assert re.search(r"read part by part; silhouette of 1\d\d\d rows drawn", ended.out)


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("fit folder -k 2 --report r.html", failures.USAGE, "--report needs all rows at once"),
        ("fit folder -k 2 --skip-rows 4", failures.USAGE, "remove those rows from the file"),
        ("fit folder -k 2 --missing drop", failures.USAGE, "pass --missing observed"),
        ("fit folder -k 2 --divergence manhattan", failures.USAGE, "pass one file"),
        ("fit folder -k 2 --divergence mahalanobis", failures.USAGE, "needs all rows at once"),
        ("fit - -k 2 --memory-limit 1GB", failures.USAGE, "input can be read only once"),
        ("fit - rows.parquet -k 2", failures.USAGE, "input can be read only once"),
        ("predict m.pm - --memory-limit 1GB -o l.npy", failures.USAGE, "can be read only once"),
        ("fit rows.parquet -k 2 --memory-limit 2XB", failures.USAGE, "--memory-limit '2XB' is no"),
        ("fit rows.parquet -k 9000 --memory-limit 1MB", failures.USAGE, "more than the 3000 rows"),
        ("fit folder nowhere -k 2", failures.DATA, "nowhere does not exist"),
        ("fit folder -k 2 -o folder/part-1.parquet -q", failures.USAGE, "would be overwritten"),
        ("predict m.pm folder --json", failures.USAGE, "may not fit into one JSON object"),
    ],
)
def test_what_cannot_work_in_parts_is_one_line(command, code, message, run) -> None:
    ended = run(*command.split())
    assert (ended.code, ended.out) == (code, ""), ended.err
    assert ended.err.count("\n") == 1
    assert re.search(message, ended.err)
    assert not Path("r.html").exists()


def test_a_row_that_cannot_be_used_is_named_and_nothing_is_written(run) -> None:
    bad = np.ones(1000)
    bad[700] = np.nan
    table = pa.table({"a": np.arange(1000.0), "b": bad})
    Path("more").mkdir()
    parquet.write_table(table, "more/one.parquet")
    ended = run("fit", "more", "-k", 2, "-o", "labels.npy", "-q", "--missing", "error")
    assert ended.code == failures.DATA
    assert "more/one.parquet contains NaN" in ended.err
    assert "row 701" in ended.err
    assert not Path("labels.npy").exists()
    observed = run("fit", "more", "-k", 2, "-o", "labels.npy", "-q", "--missing", "observed")
    assert observed.code == 0, observed.err
    assert np.load("labels.npy").shape == (1000,)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_the_phase_its_share_the_time_and_the_sweeps(monkeypatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    with shown_progress() as shown:
        shown.phase("improving, start 2 of 5", 1, 5)
        shown(SweepState(0, 1, -1.0, 5.0, 4.25, 0.5, 0.1, np.zeros((1, 1))))
        shown.phase("crossing solutions")
        shown._shown.refresh()  # type: ignore[attr-defined]
    text = re.sub(r"\x1b\[[^A-Za-z]*[A-Za-z]", "", terminal.getvalue())
    assert re.search(r"crossing solutions .*0:00:00 1 sweep, inertia 4\.25", text)
    assert terminal.getvalue().endswith("\x1b[2K")  # it leaves nothing behind


def test_each_piece_of_labels_says_how_many_rows_there_were(run, monkeypatch) -> None:
    said: list[Any] = []

    @contextlib.contextmanager
    def waiting(what: str, *, is_quiet: bool, n_rows: int | None = None) -> Any:
        if what != "labelling the rows":
            yield lambda n_done: None
            return
        said.append(n_rows)
        yield said.append

    monkeypatch.setattr("powermeans.app.command.fitting.waiting_for", waiting)
    assert run("fit", "folder", "-k", 4, "--memory-limit", "100kB", "--effort", "none").code == 0
    assert said[0] == N_ROWS == said[-1]
    assert said[1:] == sorted(said[1:])


def test_spreads_keep_their_digits_where_centers_are_far_from_their_rows() -> None:
    near = np.random.default_rng(0).normal(size=(40, 2))
    points = near + np.repeat([[1e9, 3e9], [3e9, 1e9]], 20, axis=0)
    labels = np.repeat(np.arange(2, dtype=np.int32), 20)
    tally = Tally(np.array([[0.3, 0.95], [0.95, 0.3]]))  # directions, as of cosine distances
    for rows in (slice(0, 5), slice(5, 30), slice(30, 40)):
        tally.add(points[rows], labels[rows])
    _, clusters = tally.summaries(["a", "b"])
    for cluster, members in zip(clusters, (points[:20], points[20:]), strict=True):
        spread = np.sqrt(np.square(members - members.mean(axis=0)).sum(axis=1).mean())
        assert cluster.spread == pytest.approx(spread, rel=1e-6)
