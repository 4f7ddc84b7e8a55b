"""The attacks can fail: each kind of fault is planted once, and found."""

import dataclasses
import math
import os
import random
import signal
import sys
import time

import numpy as np
import pytest

from powermeans import KMeans
from tests.attacks import models, numbers, oracle, tables
from tests.attacks.models import Guard
from tests.attacks.running import FAILED, RIGHT, Attack, Failure, Known, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="attacks need Linux")

POINTS = np.array([[0.0, 0.0], [0.0, 2.0], [9.0, 1.0]])
CLAIM = oracle.Claim(
    POINTS, None, np.array([[0.0, 1.0], [9.0, 1.0]]), np.array([0, 0, 1], dtype=np.int32), 2.0
)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, None),
        ({"weights": np.array([3.0, 0.0, 7.0]), "inertia": 3.0}, None),
        ({"labels": np.array([0, 1, 1], dtype=np.int32)}, "1 of 3 labels are not the nearest"),
        ({"labels": np.array([0, 2, 1], dtype=np.int32)}, "labels are from 0 to 2"),
        ({"labels": np.array([0.0, 0.0, 1.0])}, "dtype float64"),
        ({"centers": np.array([[0.0, 1.0], [np.nan, 1.0]])}, "centers are not finite"),
        ({"inertia": math.nan}, "the inertia is nan"),
        ({"inertia": -1e-300}, "the inertia is -1e-300"),
        ({"inertia": 2.0 + 1e-11}, "should be 2.0"),
        ({"weights": np.array([1.0, 1.0 + 1e-11, 1.0])}, "should be 2.00000000001"),
    ],
)
def test_a_planted_fault_is_found(changes, fault):
    found = oracle.fault_of(dataclasses.replace(CLAIM, **changes))
    assert found is None if fault is None else fault in found


@pytest.mark.parametrize(
    ("distances", "point", "center", "expected"),
    [
        (oracle.squared_euclidean, [1.0, 5.0], [4.0, 1.0], 25.0),
        (oracle.squared_euclidean, [math.nan, 5.0], [4.0, 1.0], 16.0),
        (oracle.manhattan, [1.0, 5.0], [4.0, 1.0], 7.0),
        (oracle.cosine, [2.0, 0.0], [3.0, 3.0], 1 - math.sqrt(0.5)),
        (oracle.poisson, [2.0, 0.0], [1.0, 3.0], 2 * math.log(2) - 1 + 3),
        (oracle.poisson, [1.0, 0.0], [0.0, 4.0], math.log(0.5e30) - 1 + 4),
        (oracle.poisson, [0.0], [0.0], 1e-30),
        (oracle.gamma, [2.0], [1.0], 1 - math.log(2)),
        (oracle.gamma, [1.0 + 2e-5], [1.0], 2e-10 - 8e-15 / 3),
        (oracle.hellinger, [4.0, 0.0], [1.0, 9.0], 5.0),
        (oracle.chi_squared, [4.0, 0.0], [1.0, 2.0], 11.0),
        (oracle.jeffreys, [4.0, 2.0], [1.0, 2.0], 3 * math.log(4)),
        (oracle.binomial(4.0), [1.0], [2.0], math.log(0.5) + 3 * math.log(1.5)),
        (oracle.weighted_euclidean([0.25, 2.0]), [1.0, 5.0], [5.0, 2.0], 22.0),
        (oracle.mahalanobis([[4.0, 2.0], [2.0, 5.0]]), [1.0, 1.0], [0.0, 0.0], 5 / 16),
    ],
)
def test_distances_are_those_of_a_calculation_by_hand(distances, point, center, expected):
    claim = oracle.Claim(np.array([point]), None, np.array([center]), None, None, distances)
    assert float(oracle.distances_of(claim)[0, 0]) == pytest.approx(expected, rel=1e-11)


def case_of(points, model=None):
    subject = numbers.Subject(KMeans(2, n_init=1, random_state=0) if model is None else model)
    data = numbers.Data(points, None, is_tame=True, is_faulty=False)
    return numbers.Case(subject, data, points, points, "the same", is_sparse=False)


def test_a_changed_bit_is_found(tmp_path, monkeypatch):
    case = case_of(POINTS)
    assert numbers.check(case, tmp_path, None) == RIGHT
    honest = numbers.fitted

    def one_bit_off(case, points, n_threads):
        model = honest(case, points, n_threads)
        if n_threads == 2:
            model.inertia_ = np.nextafter(model.inertia_, 1.0)
        return model

    monkeypatch.setattr(numbers, "fitted", one_bit_off)
    with pytest.raises(Failure, match=r"a second thread changes the bits of \['inertia_'\]"):
        numbers.check(case, tmp_path, None)


def test_other_predictions_and_a_refusal_of_good_points_are_found(tmp_path):
    class Liar(KMeans):
        def predict(self, X):
            return 1 - super().predict(X)

    with pytest.raises(Failure, match="predict gives other labels"):
        numbers.check(case_of(POINTS, Liar(2, n_init=1, random_state=0)), tmp_path, None)
    with pytest.raises(ValueError, match="n_clusters=4"):
        numbers.check(case_of(POINTS, KMeans(4)), tmp_path, None)


def test_a_try_is_drawn_from_its_seed_alone(tmp_path):
    cases = [numbers.drawn_case(np.random.default_rng(5)).describe() for _ in range(2)]
    assert cases[0] == cases[1] != numbers.drawn_case(np.random.default_rng(6)).describe()


def wait_at_work(seconds: float) -> None:
    began = time.process_time()
    while time.process_time() < began + seconds:
        pass


def bad_try(rng: random.Random) -> str:
    match rng.randrange(7):
        case 0:
            os.kill(os.getpid(), signal.SIGSEGV)
        case 1:
            while True:
                time.sleep(1)
        case 2:
            wait_at_work(0.4)
        case 3:
            assert len(np.ones(2**23)) > 0  # more than malloc keeps from what ran before
        case 4:
            raise Known("a reason: more")
        case 5:
            raise IndexError("7")
    return RIGHT


def test_crashes_hangs_and_waste_are_failures_and_the_tries_go_on():
    attack = Attack(lambda folder: bad_try, seconds=0.3, megabytes=20.0, hangs_after=6.0)
    outcomes = list(run("bad", attack, 44, 60.0, 2, 10))
    assert sorted(one.seed - 44 * 10**7 for one in outcomes) == list(range(10))
    failed = "\n".join(one.words for one in outcomes if one.verdict == FAILED)
    for words in ("ends with -11", "hangs for 6 s", "more than 0.3", "more than 20"):
        assert words in failed
    assert "in bad_try" in failed  # where it hangs
    assert "IndexError: 7 (test_attacks.py:" in failed
    assert {"right", "known"} <= {one.verdict for one in outcomes}
    assert (models.ATTACK.seconds, models.ATTACK.megabytes) == (20.0, 500.0)


def test_what_a_file_executes_is_noted(tmp_path):
    guard = Guard()
    guard.allowed = (str(tmp_path / "mine"),)
    (tmp_path / "mine").write_text("")
    with guard:
        (tmp_path / "mine").read_text()
        assert guard.seen == []
        (tmp_path / "stranger").write_text("")
        exec("1")
    assert [said.split()[0] for said in guard.seen] == ["open", "exec"]


@pytest.mark.parametrize(
    ("code", "said", "fault"),
    [
        (3, "powermeans: a.csv is empty\n", None),
        (0, "", None),
        (1, "powermeans: unexpected KeyError: 3\n", "ends with 1"),
        (3, "Traceback (most recent call last)\n", "ends with 3"),
        (3, "powermeans: \x1b]0;x\x07 is no column\n", "control characters"),
        (3, "", "without a word"),
    ],
)
def test_a_command_that_ends_badly_is_told_apart(code, said, fault):
    found = tables.fault_of(code, said)
    assert found is None if fault is None else fault in found
