"""Settings of all tests, also of those of benchmarks and of the reproduction; the real data."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("MPLBACKEND", "Agg")

import pytest
from hypothesis import HealthCheck, settings
from tested_module import NAMES_CORE, load_core

if tested := os.environ.get(NAMES_CORE):
    load_core(tested)

from powermeans.datasets import DataSet, load_data_set
from powermeans_tables.datasets.real import DATA_VARIABLE

# Examples differ from run to run on a developer's machine, and are always the same in CI. A busy
# machine must not fail a test, so there is no deadline.
settings.register_profile("local", deadline=None, print_blob=True)
settings.register_profile(
    "ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "local")

SECONDS_AT_MOST = 300  # the slowest take about 20 s on two cores that are free

ENDING = {"SIGINT", "SIGTERM", "SIGHUP"} & {*dir(signal)}
SIGNALS = {number: signal.getsignal(number) for number in (getattr(signal, n) for n in ENDING)}
# A background process of a shell ignores interrupts, which tests send.
SIGNALS[signal.SIGINT] = signal.default_int_handler


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let pytest 8 read an option of pytest 9; there, a hanging test is told and goes on."""
    if pytest.version_tuple < (9,):
        parser.addini("faulthandler_exit_on_timeout", "known to pytest 9 alone", type="bool")


@pytest.fixture(autouse=True)
def listen_to_signals() -> Iterator[None]:
    """An ended command ignores them, as would all processes that its test, or the next, starts."""
    for number, handler in SIGNALS.items():
        signal.signal(number, handler)
    yield
    for number, handler in SIGNALS.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def time_limit() -> Iterator[None]:
    """A test that hangs fails with its traceback, or outside Python, later, with its process."""
    if not hasattr(signal, "SIGALRM"):  # as on Windows
        yield
        return
    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(SECONDS_AT_MOST)
    yield
    signal.alarm(0)


def too_late(*_: object) -> None:
    """Fail the test that runs."""
    pytest.fail(f"longer than {SECONDS_AT_MOST} s: what takes longer is a target of the Makefile")


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    """Figures stay in memory until they are closed, and the twenty-first is warned of."""
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data; skips where the environment names none."""
    if not (named := os.environ.get(DATA_VARIABLE)):
        pytest.skip(f"{DATA_VARIABLE} is not set: it names the folder of NAME.npz files")
    folder = Path(named)
    if not folder.is_dir():
        pytest.fail(f"{DATA_VARIABLE}={named!r} is not a folder: correct it or unset it")
    return folder


@pytest.fixture(scope="session")
def real_data(data_folder: Path) -> Callable[..., DataSet]:
    """A function from a name to that data set; fails where the file is missing or another."""
    return load_data_set


@pytest.fixture
def interrupt_in_line(monkeypatch):
    """Return a function that lets Ctrl-C fall into the first printed line with a pattern."""

    def fall_into(pattern: str) -> None:
        def interrupted(line, file=None):
            if re.search(pattern, line):
                monkeypatch.undo()
                raise KeyboardInterrupt

        monkeypatch.setattr("builtins.print", interrupted)

    return fall_into


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium without a window; skips where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()
