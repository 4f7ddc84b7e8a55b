"""What a command says of an error, a full disk and an interrupt, and what it leaves behind."""

import ast
import gc
import gzip
import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import weakref
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import structure
from tables.answers import COLUMNS, CUSTOMERS

import powermeans
from powermeans.methods import OnlineKMeans
from powermeans.methods.progress import FitProgress
from powermeans.scale.checkpoint import Journal
from powermeans_tables.command import failures, streams

pytestmark = pytest.mark.filterwarnings("ignore::powermeans.errors.UnlikeScalesWarning")

SHELL = [sys.executable, "-m", "powermeans"]
NO_SPACE = "No space left on device"
FILES = {
    "text.csv": "x,kind,y\n1,red,2\n3,blue,4\n",
    "empty.csv": "",
    "header.csv": "x,y\n",
    "ragged.csv": "x,y\n1,2\n3,4,5\n",
    "holes.csv": "x,y\n1,\n2,3\n4,5\n",
    "infinite.csv": "x,y\n1,2\n-inf,3\n",
    "huge.csv": "id,x\n12345678901234567,1\n2,2\n",
    "words.csv": "id,note\n1,a long word on this and that\n2,and on more that nobody counts\n",
    "constant.csv": "x\n1\n1\n",
    "picture.csv": "\x89PNG\r\n",
    "negative.csv": "x,y\n1,2\n-3,4\n",
    "gap.csv": "x,y\n1,2\n,4\n5,-3\n",
    "weights.csv": "x,w\n1,1\n2,-1\n",
    "other.csv": "visits_per_month,baskett\n1,2\n",
    "narrow.csv": "1,2\n3,4\n",
    "same.csv": "x\n1\n1\n2\n",
    "protected.csv": "x\n1\n",
    "w.csv": "x,y,w,no\n1,1,1,\n2,2,,\n,3,3,\n9,,2,\n",
    "one.csv": "x,y,z,w,v\n7,5,2,1,1\n3,1,4,0,3\n1,2,9,1,2\n",
    "two.csv": "x,y,z,w,v\n1,2,3,4,5\ninf,6,7,-1,3\n8,,9,2,-4\n",
    "nothing.xlsx": b"PK\x03\x04" + bytes(50),
    "nul.csv": "a,b\n1,\x00\n2,3\n",
    "broken.jsonl": '{"a": 1}\n{"a": \n',
    "list.jsonl": "[1, 2]\n",
    "deep.json": b'[{"a":' * 5000 + b"1" + b"}]" * 5000,
    "damaged.sqlite": b"SQLite format 3\0" + bytes(90),
    "page.csv": "<!DOCTYPE html><table></table>",
    "a.dta": b"<stata_dta><header>",
    "a.sav": b"$FL2@(#) SPSS",
    "a.sas7bdat": bytes(12) + b"\xc2\xea\x81\x60" + bytes(16),
    "a.rds": gzip.compress(b"X\n\0\0\0\3"),
    "lfs.csv": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n",
}


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Files that are no text, among them models: whole, without centers, of a later version."""
    folder = tmp_path_factory.mktemp("others")
    waiting = OnlineKMeans(2).partial_fit(CUSTOMERS[:1])
    powermeans.save(waiting, folder / "stream.pm")
    table = pd.DataFrame(CUSTOMERS, columns=COLUMNS)
    powermeans.save(powermeans.PowerKMeans(2, random_state=0).fit(table), folder / "model.pm")
    poisson = powermeans.PowerKMeans(2, divergence="poisson")
    powermeans.save(poisson.fit(pd.DataFrame({"x": [1, 2], "y": [5, 6]})), folder / "counts.pm")
    with zipfile.ZipFile(folder / "newer.pm", "w") as archive:
        header = {"format": "powermeans model", "version": 99, "written_by": "9.9", "model": {}}
        archive.writestr("model.json", json.dumps(header))
    header = b"{'descr': '<f8', 'fortran_order: False, 'shape': (3, 2), }".ljust(117) + b"\n"
    (folder / "mangled.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00" + header + bytes(48))
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def files(run, folder, others):
    for name, content in {**FILES, **others}.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode("latin-1"))
    Path("protected.csv").chmod(0o444)
    Path("bad").mkdir()
    lacking = np.where(np.arange(1000) == 700, np.nan, np.arange(1000) % 7 + 0.5)
    pd.DataFrame({"a": np.arange(1000.0), "b": lacking}).to_parquet("bad/one.parquet")


def errors():
    """The commands of errors.txt, each with its exit code and what its error names."""
    code = 0
    text = Path(__file__).with_name("errors.txt").read_text(encoding="utf-8")
    for line in filter(None, text.splitlines()):
        if line.startswith("# Exit code"):
            code = int(line.split()[3].strip(":"))
        else:
            command, *named = line.split(" | ")
            yield pytest.param(command, code, named, id=command)


@pytest.mark.parametrize(("command", "code", "named"), list(errors()))
def test_an_error_is_one_line_that_names_what_is_wrong(command, code, named, run, files):
    if "/dev/full" in command and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    before = sorted(os.listdir())
    ended = run(command, code=code)
    assert ended.out == ""
    assert re.fullmatch(r"powermeans: [^\n]*\n", ended.err)
    for words in named:
        assert words in ended.err
    assert sorted(os.listdir()) == before


OF_NUMBERS = {2: ["--skip-rows 3-{}", "-k {}", "--name {}=x"], 3: ["--columns {}", "--weights {}"]}


@pytest.mark.parametrize(("code", "option"), [(n, one) for n in (2, 3) for one in OF_NUMBERS[n]])
def test_thousands_of_digits_are_told_as_what_was_typed(code, option, run):
    assert "99999" in run(f"fit customers.csv -q {option}".format("9" * 5000), code=code).err


@pytest.mark.filterwarnings("default")  # which the command tells as notes
def test_what_nobody_typed_wrong(run, monkeypatch):
    """A note, a traceback that was asked for, a bug, and a package that is not installed."""
    Path("same.csv").write_text("x\n1\n1\n2\n")
    assert re.fullmatch(r"powermeans: [^\n]*distinct[^\n]*\n", run("fit same.csv -k 3 -q").err)
    ended = run("fit nothing.csv -k 2 --debug", code=failures.DATA)
    assert ended.err.startswith("Traceback")
    assert ended.err.splitlines()[-1] == "powermeans: nothing.csv does not exist"
    with monkeypatch.context() as patched:
        patched.setattr("powermeans.versions.versions", lambda: 1 / 0)
        ended = run("info", code=failures.BUG)
    assert ended.err.count("\n") == 1
    assert "ZeroDivisionError" in ended.err
    monkeypatch.delitem(sys.modules, "powermeans_tables.command.commands", raising=False)
    monkeypatch.setitem(sys.modules, "typer", None)
    assert "typer: pip install" in run("info", code=failures.USAGE).err


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


def half_imported(*_, **__):
    try:
        raise KeyboardInterrupt
    finally:
        raise AttributeError("module has no attribute 'exceptions'")


FIT, COMMAND = "powermeans.PowerKMeans.fit", "powermeans_tables.command."
PARTS, BROKEN = COMMAND + "clusters.labels_and_score", OSError(5, "Input/output error")
LIMIT = "--memory-limit 1GB"
STOP, TWO_FILES = failing(KeyboardInterrupt), "fit customers.csv -k 2 -q -o labels.csv -m model.pm"
FAILING = [
    (FIT, failing(MemoryError()), "fit customers.csv -k 5", 3, "not enough memory"),
    (FIT, failing(RuntimeError("can't start new thread")), "fit customers.csv -k 5", 3, "memory"),
    (FIT, half_imported, "fit customers.csv -k 5", 130, "interrupted before"),
    (FIT, failing(OSError(5, "broken", "part-2")), "fit folder -k 4", 3, "part-2 cannot be read"),
    (PARTS, failing(BROKEN), f"fit folder -k 4 -q -o l.npy {LIMIT}", 3, "folder cannot be"),
    (PARTS, failing(BROKEN), f"predict m.pm folder -o l.npy {LIMIT}", 3, "folder cannot"),
    (COMMAND + "clusters.write_rows", STOP, TWO_FILES, 130, "nothing was written"),
    ("powermeans.saving.save", STOP, TWO_FILES, 130, "labels.csv is written, and nothing else"),
    (COMMAND + "fitting.show_clusters", STOP, TWO_FILES, 130, "labels.csv, model.pm is written"),
    ("powermeans.PowerKMeans.optimality_gap", STOP, "fit customers.csv -k 5 -q --prove 1 --report "
     "report.html", 0, ""),
]  # fmt: skip


@pytest.mark.parametrize(("broken", "how", "command", "code", "said"), FAILING)
@pytest.mark.usefixtures("folder")
def test_what_breaks_is_told_as_what_it_is(broken, how, command, code, said, run, monkeypatch):
    if "m.pm" in command:
        run("fit rows.parquet -k 4 -m m.pm -q")
    before = set(os.listdir())
    monkeypatch.setattr(broken, how)
    ended = run(command, code=code)
    assert ended.err.count("\n") == (code != 0)
    assert said in ended.err
    written = {name for name in ("labels.csv", "model.pm") if name in said}
    assert set(os.listdir()) - before == written | ({"report.html"} if code == 0 else set())


FILLING = [
    *(f"fit much.npy -k 3 -q -o labels.{suffix}" for suffix in ("npy", "csv", "parquet")),
    "fit much.npy -k 3 -q -m model.pm",
    "predict model.pm much.npy -o labels.npy",
    "predict model.pm much.npy --report report.html",
    "fit much.npy -k 3 -q -o rows.xlsx",
]


@pytest.mark.parametrize("command", FILLING)
def test_a_disk_that_fills_up_is_one_line_and_leaves_what_was_there(command, run):
    resource = pytest.importorskip("resource", reason="only POSIX limits the size of files")
    np.save("much.npy", np.random.default_rng(0).normal(size=(20_000, 2)))
    run("fit customers.csv --columns 1,2 -k 2 -m model.pm -q")
    path = Path(command.rpartition(" ")[2])
    path.write_bytes(b"old")
    before = sorted(os.listdir())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, limits[1]))
    try:
        ended = run(command, code=failures.OUTPUT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert ended.err == f"powermeans: {path} cannot be written: File too large\n"
    assert path.read_bytes() == b"old"
    assert {*os.listdir()} <= {*before}


@pytest.mark.filterwarnings("default")  # which the command tells as notes
def test_a_disk_that_has_no_room_for_a_checkpoint(run, folder, monkeypatch):
    """At the end of a fit it costs the checkpoint, and before it the fit."""
    write, full = Journal.write, failing(OSError(28, NO_SPACE, "state"))
    writes = itertools.chain([write], itertools.repeat(full))
    monkeypatch.setattr(Journal, "write", lambda journal: next(writes)(journal))
    ended = run("fit rows.parquet -k 4 --scale none --checkpoint state -o l.npy -m m.pm -q")
    assert ended.err.startswith(f"powermeans: note: state: {NO_SPACE}")
    assert np.load("l.npy").shape == (3000,)
    assert powermeans.load("m.pm").n_clusters == 4
    monkeypatch.setattr(Journal, "note", full)
    ended = run("fit rows.parquet -k 4 --scale none --checkpoint state -q", code=failures.OUTPUT)
    assert ended.err.endswith(f"powermeans: state cannot be written: {NO_SPACE}\n")


def test_a_table_that_the_system_no_longer_opens_is_named(run):
    resource = pytest.importorskip("resource")
    run("fit customers.csv -k 2 -q")  # what is imported on the way needs files too
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    gc.collect()  # or files of former tests, which are closed meanwhile, leave lower numbers free
    os.close(next_number := os.dup(1))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (next_number, before[1]))
        ended = run("fit customers.csv -k 2 -q", code=failures.DATA)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    problem = "customers.csv cannot be (opened or )?read: Too many open files"
    assert re.fullmatch(f"powermeans: {problem}\n", ended.err)


VERBOSE = (
    # Which whoever runs the tests may ignore, as nohup does.
    "import signal; signal.signal(getattr(signal, 'SIGHUP', signal.SIGTERM), signal.SIG_DFL)\n"
    "import powermeans_tables.command.screen as s; s._SECONDS_BETWEEN_LINES = 0.0\n"
    "from powermeans_tables.command import main; import sys; main(sys.argv[1:])"
)


@pytest.mark.parametrize(
    ("number", "between"), [(2, None), (2, 0.0), (2, 0.03), (15, None), (15, 0.03), (1, None)]
)
def test_a_signal_once_or_twice_leaves_whole_files_and_no_traceback(run, number, between):
    """Once it shows that it sweeps; the best result so far is written."""
    np.save("much.npy", np.random.default_rng(0).normal(size=(5_000, 8)))
    words = "fit much.npy -k 60 --effort thorough --verbose -o labels.npy -m model.pm"
    with subprocess.Popen(
        [sys.executable, "-c", VERBOSE, *words.split()],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        next(line for line in process.stderr if " sweeps, " in line)
        process.send_signal(number)
        if between is not None:
            time.sleep(between)
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    last = err.splitlines()[-1]
    assert last.startswith("powermeans: interrupted")
    assert "Traceback" not in err
    assert "unexpected" not in err
    written = {path.name for path in Path().iterdir()} - {"customers.csv", "much.npy"}
    assert written == {name for name in ("labels.npy", "model.pm") if name in last}
    if between is None:
        assert written == {"labels.npy", "model.pm"}
        assert "60 clusters of 5,000 rows" in out
        labels = powermeans.load("model.pm").predict("much.npy")
        np.testing.assert_array_equal(labels, np.load("labels.npy"))


STARTED = {
    "-m": ["-m", "powermeans", "fit", "--help"],
    "script": ["powermeans", "fit", "--help"],
    "other script": ["other"],
    "other module": ["-m", "another"],
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals end no process there")
@pytest.mark.parametrize("started", STARTED)
def test_ctrl_c_while_the_command_is_imported_ends_only_the_command(tmp_path, started):
    (tmp_path / "another").mkdir()
    for path, text in {
        "shlex.py": "import signal; signal.raise_signal(signal.SIGINT)",
        "other": "import powermeans_tables.command",
        "powermeans": "from powermeans.__main__ import main; main()",
        "another/__init__.py": "import powermeans_tables.command",
    }.items():
        (tmp_path / path).write_text(text)
    ended = subprocess.run(
        [sys.executable, *STARTED[started]],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == -signal.SIGINT
    assert ("KeyboardInterrupt" in ended.stderr) is started.startswith("other")
    assert started.startswith("other") or ended.stderr == ""


def test_ctrl_c_is_heard_where_python_raises_nothing_or_too_soon(run, monkeypatch):
    def app(*_, **__):
        callback = weakref.ref(thing := type("Thing", (), {})(), lambda _: signal.raise_signal(2))
        del thing
        assert callback() is None, "the callback was called"
        for _ in range(500):
            time.sleep(0.01)
        raise AssertionError("nothing was heard")

    class Loading:
        @property
        def app(self):
            raise KeyboardInterrupt

    for commands in (SimpleNamespace(app=app), Loading()):
        monkeypatch.setitem(sys.modules, "powermeans_tables.command.commands", commands)
        ended = run("info", code=failures.INTERRUPTED)
        assert re.fullmatch("powermeans: interrupted before .*\n", ended.err)


def interrupting(at_sweep):
    """In the place of progress, an interrupt at a sweep."""

    def show(shown, state):
        if state.sweep == at_sweep:
            signal.raise_signal(signal.SIGINT)

    return show


@pytest.mark.usefixtures("folder")
def test_ctrl_c_ends_a_command_with_what_was_found(run, table, monkeypatch):
    monkeypatch.setattr(FitProgress, "__call__", interrupting(2))
    command = "fit rows.parquet -k 9 --columns a,b,c --memory-limit 100kB --json --effort none"
    ended = run(command, *["--scale", "none", "-m", "m.pm"], code=failures.INTERRUPTED)
    assert ended.json["was_interrupted"] is True
    score = powermeans.load("m.pm").score(table.select(["a", "b", "c"]).to_pandas())
    assert ended.json["inertia"] == pytest.approx(-score, rel=1e-9)
    np.save("much.npy", np.random.default_rng(0).normal(size=(5_000, 8)))
    monkeypatch.setattr(COMMAND + "screen._Phases.__call__", interrupting(40))
    ended = run("fit much.npy -k 2-60 --json", code=failures.INTERRUPTED)
    assert ended.err.splitlines()[-1].startswith("powermeans: interrupted: ")
    assert ended.json["was_interrupted"] is True
    assert ended.json["choice"]["was_stopped"] is True


def test_help_starts_without_what_only_commands_need_and_ends_without_garbage_collection():
    code = (
        "import atexit, gc, sys\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 0, flush=True))\n"  # runs last
        "from powermeans_tables.command import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print(sorted({m.partition('.')[0] for m in sys.modules}))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *_, loaded, is_frozen = ended.stdout.splitlines()
    assert is_frozen == "True"
    assert "'typer'" in loaded
    for library in ("numpy", "scipy", "sklearn", "pyarrow", "PIL", "matplotlib"):
        assert f"'{library}'" not in loaded


STREAMS = [
    ("fit customers.csv -k 5 -q -o o.csv >&-", 4, "standard output cannot be written: Bad file"),
    ("fit customers.csv -k 5 -q -o - >/dev/full", 4, f"output cannot be written: {NO_SPACE}"),
    ("--help >/dev/full", 4, NO_SPACE),
    (">/dev/full", 4, NO_SPACE),
    ("fit - -k 5 -q <&-", 3, "standard input is closed: name a file"),
    ("fit - -k 5 -q </proc/self/mem", 3, "standard input cannot be read: Input/output error"),
    ("fit customers.csv -k 5 -q -o o.csv <&- 2>&- >o.txt", 0, ""),
    ("fit no.csv -k 5 2>&- >o.txt", 3, ""),
    ("fit no.csv -k 5 2>/dev/full >o.txt", 3, ""),
    ("fit customers.csv -k 5", 3, "ulimit -v allows, are not enough memory: allow"),
]


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /dev/full elsewhere")
@pytest.mark.parametrize(("words", "code", "said"), STREAMS, ids=[one[0] for one in STREAMS])
@pytest.mark.usefixtures("run")
def test_closed_and_full_streams_are_told_where_they_are_needed(words, code, said):
    odd = os.environ | {"COLUMNS": "abc", "LINES": "²"}
    limit = "ulimit -v 600000; " if "memory" in said else ""
    command = ["sh", "-c", f"{limit}{shlex.join(SHELL)} {words}"]
    ended = subprocess.run(command, env=odd, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert re.fullmatch(f"powermeans: .*{said}.*\n" if said else "", ended.stderr)
    if ">o.txt" in words:
        assert Path("o.txt").read_text().endswith("written: o.csv\n" if code == 0 else "")


@pytest.mark.parametrize(
    ("encoding", "said"), [("ascii", r"gr\xf6\xdfe -1.5 EUR"), ("cp1252", "größe -1.5 €")]
)
@pytest.mark.usefixtures("run")
def test_other_letters_stand_for_signs_that_an_encoding_lacks(encoding, said):
    text = "größe,Preis\n-1 €,5\n-2 €,6\n9 €,9\n8 €,8\n"
    Path("t.csv").write_text(text, encoding="utf-8")
    command, odd = [*SHELL, "fit", "t.csv", "-k", "2"], os.environ | {"PYTHONIOENCODING": encoding}
    ended = subprocess.run(command, env=odd, capture_output=True, check=True)
    assert ended.stdout.decode(encoding).startswith("* 2 clusters of 4 rows")
    assert said in " ".join(ended.stdout.decode(encoding).split())


def test_all_signs_of_ours_that_are_printed_have_stand_ins():
    others = {"cells", "preparing", "reading", "plots"}  # what is read, and pictures
    found = set[str]()
    for source in structure.read_sources(structure.PACKAGE, structure.TABLES).values():
        nodes = [] if others & {*source.file.split("/")} else [*ast.walk(source.tree)]
        docs = {id(one.value) for one in nodes if isinstance(one, ast.Expr)}
        texts = [
            one.value for one in nodes if isinstance(one, ast.Constant) and id(one) not in docs
        ]
        found |= {*"".join(text for text in texts if isinstance(text, str))}
    ours = {letter for letter in found if not letter.isascii()} - {
        "\ue000"
    }  # which becomes a blank
    assert {"✓", "−", "\u00a0"} <= ours <= {*streams.STAND_INS, *"\u2009\u200c\u200d\u202f\u3000"}
    assert "".join(streams.STAND_INS.values()).isascii()


def test_a_shell_completes_commands_and_a_reader_that_has_enough_ends_them_quietly(run):
    for words, place, expected in (("pr", 1, ["predict"]), ("fit --eff", 2, ["--effort"])):
        asking = {"COMP_WORDS": f"powermeans {words}", "COMP_CWORD": str(place)}
        environment = os.environ | asking | {"_POWERMEANS_COMPLETE": "complete_bash"}
        ended = subprocess.run(SHELL, env=environment, capture_output=True, text=True, check=True)
        assert ended.stdout.split() == expected
    for name, times in ("few", 1), ("many", 50_000):
        Path(f"{name}.csv").write_text("x\n" + "1\n2\n" * times)
    run("fit few.csv -k 2 -m model.pm -q")
    command = [*SHELL, "predict", "model.pm", "many.csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"cluster\n"
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == failures.PIPE_CLOSED
