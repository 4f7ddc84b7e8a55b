"""An error in fields says the same in Python's words and in those of the command line."""

import pickle
import shlex
from pathlib import Path

import numpy as np
import pytest

from powermeans import PowerKMeans, choose_k
from powermeans.app.command.sources import split_names
from powermeans.app.command.failures import in_options
from powermeans.errors import Argument, ArgumentError, EntryError, ExplainedWarning, FewRowsError
from powermeans.scale.checkpoint import CheckpointError

COLUMNS = ArgumentError("has text", "leave it out with ", Argument("columns", ["x", "a b"]))
THREADS = ArgumentError("is too many", argument="n_threads", value=5000)


@pytest.mark.parametrize(
    ("error", "in_python", "typed"),
    [
        (COLUMNS, 'has text: leave it out with columns=["x", "a b"]', "--columns 'x,a b'"),
        (THREADS, "n_threads=5000 is too many", "--threads 5000 is too many"),
        (ExplainedWarning("t", Argument("decimal", ",")), 't: decimal=","', "t: --decimal ,"),
        (ArgumentError("t", "pass ", Argument("delimiter")), "t: pass delimiter=", "--delimiter"),
        (
            FewRowsError(3, 4),
            "n_samples=3 should be >= n_clusters=4: pass more rows, or n_clusters of at most 3",
            "--clusters 4 is more than the 3 rows: ask for fewer clusters",
        ),
        (ValueError("plain"), "plain", "plain"),
    ],
)
def test_each_interface_names_what_its_users_type(error, in_python, typed) -> None:
    assert str(error) == in_python
    assert in_options(error).endswith(typed)


def test_each_error_of_a_fit_names_argument_and_value_and_way_out():
    names = ["a,b", 'the "x"', "it's", "größe", "plain", "{y}"]
    error = ArgumentError('"{x}" has text', "pass ", Argument("columns", names))
    option, typed = shlex.split(in_options(error).partition("pass ")[2])
    assert (option, split_names(typed)) == ("--columns", names)
    assert str(error).startswith('"{x}" has text: pass columns=')
    with pytest.raises(ArgumentError) as told:
        PowerKMeans(2, n_threads=5000).fit(np.eye(4))
    assert (told.value.argument, told.value.value) == ("n_threads", 5000)
    with pytest.raises(ArgumentError) as told:
        choose_k(np.repeat(np.eye(3), 3, axis=0), range(1, 6))
    assert (told.value.argument, told.value.value) == ("k", 5)


ERRORS = [COLUMNS, THREADS, FewRowsError(3, 4), EntryError("X", 1, 0, -3.0, "t")]


@pytest.mark.parametrize("error", [*ERRORS, CheckpointError(Path("thesis"), "is no checkpoint")])
def test_fields_come_back_from_another_process(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert str(again) == str(error) == again.args[0]
    assert repr(again) == repr(error) == f"{type(error).__name__}({str(error)!r})"
