"""Model files: damaged ones are refused in words, or harmless, and nothing in them is executed.

Damage is to bytes of the file, which checksums mostly find; to entries of the header and to arrays
in an archive that is whole again; and to the archive itself. A loaded model is asked for all that
users ask of one. One from a whole file answers as before it was saved.
"""

import contextlib
import copy
import io
import itertools
import json
import math
import pickle
import random
import sys
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import powermeans
from powermeans import methods, plots
from powermeans.divergences import Binomial, Gamma, Mahalanobis
from powermeans.errors import ModelFileError
from powermeans.mathematics.schedules import Geometric
from powermeans.saving import estimators, load, reading_of, save
from tests.attacks.running import REFUSED, RIGHT, Attack, Failure, Try, bits_of
from tests.matrix.table import ROWS

SUSPECT = (
    "exec", "import", "open", "os.", "subprocess.", "pickle.", "marshal.", "socket.",
    "ctypes.", "shutil.", "urllib.",
)  # fmt: skip
PACKAGE = str(Path(powermeans.__file__).parent)
OWN_IMPORTS = ("powermeans",)
UNSUSPECTED = ("os.fstat", "os.listdir")
# Which tell the package how many processors and how much memory there are.
OF_THE_MACHINE = ("/sys/fs/cgroup/", "/proc/meminfo", "/proc/self/cgroup", "/proc/self/maps")
ENTRIES: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**63, 2**70, 1e308, 1e-320, "", "x", "poisson", "cosine", [],
    [[]], {}, math.nan, -math.inf, {"array": 0}, {"array": 1}, {"names": ["a"]}, {"dict": {}},
    {"tuple": []}, {"Fixed": {"power": -1.0}}, {"random_state": []}, {"csr": [1, 2, 3, 4, 5]},
    -(2**63), 2**31 - 1, 624, 40_000_000, 0.5, "auto", "mahalanobis", "\x1b]0;x\x07", [1e300],
    {"KMeans": {}}, {"Waiting": {}}, {"Sums": {}},
]  # fmt: skip
NUMBERS = (
    0, -1, 1, 2**31 - 1, 2**31, 2**62, 40_000_000, math.nan, math.inf, -math.inf, 1e308, -1e308,
    1e154, 1e-320, 1e-160, 0.5,
)  # fmt: skip
WITH_POINTS = (
    "predict", "transform", "score", "memberships", "score_samples", "embed", "bic",
    "optimality_gap", "partial_fit",
)  # fmt: skip
OF_POINTS = (*WITH_POINTS, "fit", "fit_predict")  # of which the last two import more
WITHOUT_POINTS = ("sample", "to_sklearn", "get_feature_names_out", "_repr_html_", "__repr__")
PLOTS = ("clusters", "uncertainty", "profiles", "silhouettes", "center_bars", "convergence")
GUARDED = (*WITH_POINTS, *WITHOUT_POINTS)
TURNS = {"n_init": 1, "max_iter": 20, "n_epochs": 2}  # of which a file may want any number
DIALECTS = ("duckdb", "sqlite", "postgresql", "bigquery", "snowflake")
WIDEST_DENSE = 1000


def fitted_models() -> Iterator[Any]:
    """All kinds, in all the states in which they can be saved."""
    points = np.abs(np.random.default_rng(0).normal(size=(12, 2))) + 1
    few = sparse.csr_array(np.where(points > 1.5, points, 0.0))
    power, kernel = powermeans.PowerKMeans, methods.KernelPowerKMeans
    mixture, spectral = methods.SphericalMixture, methods.SpectralClustering
    of_other_parameters = {Pipeline, methods.DPMeans, methods.SelfOrganizingMap}
    for kind in sorted(estimators() - of_other_parameters, key=str):
        yield kind(2, random_state=0).fit(points)
    yield methods.DPMeans(penalty=3.0, random_state=0).fit(points)
    yield methods.SelfOrganizingMap(shape=(2, 2), random_state=0).fit(points)
    yield powermeans.KMeans(2, random_state=np.random.RandomState(0)).fit(points)
    for scaler in (StandardScaler(), MinMaxScaler()):
        yield make_pipeline(scaler, power(2, random_state=0)).fit(points)
    for kind in (powermeans.MiniBatchPowerKMeans, methods.OnlineKMeans):
        waiting = kind(2, init_size=50, random_state=0)
        yield waiting.partial_fit(points, sample_weight=np.ones(12))
        yield kind(2, init_size=13, random_state=0).partial_fit(few[:1])
        yield kind.from_centers(points[:2])
    own = (Binomial(10), Gamma(2.0), Mahalanobis(np.eye(2)))
    for divergence in ("mahalanobis", "cosine", "poisson", *own):
        yield power(2, divergence=divergence, random_state=0).fit(points)
    for name in ("rbf", "poly", "laplacian"):
        yield kernel(2, kernel=name, random_state=0).fit(few)
    yield kernel(2, kernel="precomputed", random_state=0).fit(points @ points.T)
    yield kernel(2, n_landmarks=5, random_state=0).fit(points)
    yield spectral(2, affinity="nearest_neighbors", n_neighbors=4, random_state=0).fit(points)
    yield mixture(2, shares="learned", random_state=0).fit(points)
    yield mixture(2, covariance_type="spherical", random_state=0).fit(points.astype(np.float32))
    table = pd.DataFrame(points, columns=["length", "width"])
    parts = powermeans.open_data(table, rows_per_part=4, prepare=powermeans.Prepare())
    yield power(2, schedule=Geometric(-1.0, 1.5), effort="none", random_state=0).fit(parts)
    yield methods.EntropyWeightedPowerKMeans.from_centers(points[:2])


def seeds(folder: Path) -> dict[bytes, tuple[Any, Any]]:
    """Files that are right, with their models and points for these.

    They are the same each time: models remember seconds.
    """
    files, ticks = {}, itertools.count()

    def tick() -> float:
        return next(ticks) / 1024

    with mock.patch.multiple(time, monotonic=tick, perf_counter=tick):
        models = [(model, points_for(model)) for model in fitted_models()]
        for row in ROWS.values():
            points = row.points(30)
            models += [(row.fit(points), points)] * row.is_estimator
        for model, points in models:
            save(model, folder / "seed")
            files[(folder / "seed").read_bytes()] = model, points
    return files


def with_bytes_changed(content: bytes, rng: random.Random) -> bytes:
    """Bits turned, bytes taken out, put in or doubled, or the end cut off."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at, length = rng.randrange(len(changed)), rng.choice([1, 2, 8, 100])
        match rng.randrange(5):
            case 0:
                changed[at] ^= 1 << rng.randrange(8)
            case 1:
                del changed[at : at + length]
            case 2:
                changed[at:at] = rng.randbytes(length)
            case 3:
                changed[at : at + length] = rng.choice([b"\0", b"\xff"]) * length
            case 4:
                del changed[max(1, at) :]
        if not changed:
            break
    return bytes(changed)


def places(encoded: Any) -> list[tuple[Any, Any]]:
    """Every container in the header with each of its keys."""
    keys = list(encoded) if isinstance(encoded, dict) else range(len(encoded))
    found = [(encoded, key) for key in keys]
    for key in keys:
        if isinstance(encoded[key], dict | list):
            found += places(encoded[key])
    return found


def members_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archived(members: dict[str, bytes]) -> bytes:
    return archive_of(list(members.items()), [zipfile.ZIP_STORED])


def archive_of(members: list[tuple[str, bytes]], kinds: list[int]) -> bytes:
    """Write an archive whose members, of which two may have one name, are compressed in turn."""
    written = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(written, "w") as archive:
        warnings.simplefilter("ignore")  # of two members of one name
        for (name, member), kind in zip(members, itertools.cycle(kinds), strict=False):
            archive.writestr(name, member, kind)
    return written.getvalue()


def with_entries_changed(content: bytes, rng: random.Random) -> bytes:
    """Entries of the header replaced or taken out, or bytes of an array, with right checksums."""
    members = members_of(content)
    if rng.random() < 0.6:
        header = json.loads(members["model.json"])
        for _ in range(rng.choice([1, 1, 2])):
            container, key = rng.choice(places(header))
            if rng.random() < 0.2 and isinstance(container, dict):
                container.pop(key, None)
            elif isinstance(container, dict) or key < len(container):
                container[key] = json.loads(json.dumps(rng.choice(ENTRIES)))
        members["model.json"] = json.dumps(header).encode()
    else:
        name = rng.choice([name for name in members if name != "model.json"])
        members[name] = with_bytes_changed(members[name], rng)
    return archived(members)


def with_counts_changed(content: bytes, rng: random.Random) -> bytes:
    """Replace a whole number wherever it occurs in the header, so that counts still agree."""
    members = members_of(content)
    whole = json.loads(members["model.json"])
    found = [(holder, key) for holder, key in places(whole["model"]) if type(holder[key]) is int]
    holder, key = rng.choice(found)
    old, new = holder[key], rng.choice([0, 1, 3, 624, 40_000_000, 2**31, 2**40, 2**62])
    for holder, key in found:
        if holder[key] == old and key != "array":
            holder[key] = new
    return archived(members | {"model.json": json.dumps(whole).encode()})


def with_arrays_changed(content: bytes, rng: random.Random) -> bytes:
    """Arrays of other entries, dtypes and shapes, in NumPy's format and with right checksums."""
    members = members_of(content)
    names = [name for name in members if name != "model.json"]
    for name in rng.choices(names, k=rng.choice([1, 1, 2])):
        written = io.BytesIO()
        array = np.load(io.BytesIO(members[name]), allow_pickle=False)
        np.save(written, strange_array(array, rng), allow_pickle=False)
        members[name] = written.getvalue()
    return archived(members)


def strange_array(array: Any, rng: random.Random) -> Any:
    """Return an array with an entry, its dtype or its shape changed."""
    match rng.randrange(4):
        case 0:
            number = rng.choice(NUMBERS)
            with np.errstate(all="ignore"), contextlib.suppress(OverflowError, ValueError):
                array.flat[: rng.choice([1, array.size])] = number
        case 1:
            with np.errstate(all="ignore"), contextlib.suppress(TypeError):  # records stay
                array = array.astype(rng.choice(["f2", "f4", "f8", "i1", "i4", "i8", "u8", "?"]))
        case 2:
            ways = (np.transpose, np.ravel, np.atleast_3d, np.squeeze, np.flip, np.asfortranarray)
            array = rng.choice(ways)(array)
        case 3:
            length = len(array) if array.ndim else 1
            rows = rng.choice([0, 1, max(0, length - 1), length + 1, 3000])
            array = np.resize(array, (rows, *array.shape[1:]))
    return array


def with_members_changed(content: bytes, rng: random.Random) -> bytes:
    """Rename, drop, double, swap or add members, or lie about them in the directory."""
    members = list(members_of(content).items())
    compressed = [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    kinds = rng.choices([zipfile.ZIP_STORED] * 7 + compressed, k=len(members) + 1)
    at, other = rng.randrange(len(members)), rng.randrange(len(members))
    match rng.randrange(7):
        case 0:
            names = ["../model.json", "/etc/passwd", "a0.npy", "a99999.npy", "a.npy", "model.json/"]
            members[at] = (rng.choice(names), members[at][1])
        case 1:
            del members[at]
        case 2:
            members.append((members[at][0], members[other][1]))
        case 3:
            (one, its), (another, theirs) = members[at], members[other]
            members[at], members[other] = (one, theirs), (another, its)
        case 4:
            members[at] = (members[at][0], hostile_array(rng))
        case 5:
            members.append((rng.choice(["b.pkl", "a7000.npy", "model.json"]), rng.randbytes(50)))
        case 6:
            return with_sizes_changed(archive_of(members, kinds), rng)
    return archive_of(members, kinds)


def with_sizes_changed(content: bytes, rng: random.Random) -> bytes:
    """Write other numbers into an entry of the directory of an archive, or into a local head."""
    changed = bytearray(content)
    mark, n_bytes = rng.choice([(b"PK\1\2", 46), (b"PK\3\4", 30), (b"PK\5\6", 22)])
    places = [at for at in range(len(content) - n_bytes) if content[at : at + 4] == mark]
    at = rng.choice(places or [max(0, len(content) - 22)]) + rng.randrange(4, n_bytes - 2)
    changed[at : at + 2] = rng.choice([b"\0\0", b"\xff\xff", b"\1\0", rng.randbytes(2)])
    return bytes(changed)


def hostile_array(rng: random.Random) -> bytes:
    """Return an array in NumPy's format whose head promises what does not follow."""
    kind = rng.choice(["'|O'", "'<f8'", "'<U999999999'", "[('a', '|O')]", "'|V0'", "'<m8'", "f8"])
    shape = rng.choice(["(2, 2)", "(10**9, 10**9)", "(-1, 2)", "(99999999999,)", "()", "(0, 3)"])
    order = rng.choice(["False", "True", "open('x')", "1"])
    text = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    text = text.ljust(118 if rng.random() < 0.9 else 9000) + b"\n"
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + rng.randbytes(64)


DAMAGE = [with_entries_changed, with_arrays_changed] * 2
DAMAGE += [with_bytes_changed, with_counts_changed, with_members_changed]


class Guard:
    """Notes what Python's audit hook tells of while a stranger's file is in use."""

    def __init__(self) -> None:
        self.is_watching, self.seen = False, []  # type: bool, list[str]
        self.allowed: tuple[str, ...] = ()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, details: tuple[Any, ...]) -> None:
        if not self.is_watching or not event.startswith(SUSPECT) or event in UNSUSPECTED:
            return
        what = str(details[0])
        is_own_import = event == "import" and what.partition(".")[0] in OWN_IMPORTS
        is_own_code = event in ("open", "exec") and PACKAGE in what
        is_allowed = what.endswith(self.allowed) or what.startswith(OF_THE_MACHINE)
        if is_own_import or is_own_code or (event == "open" and is_allowed):
            return
        self.seen.append(f"{event} {details!r:.120}")

    def __enter__(self) -> "Guard":
        self.seen.clear()
        self.is_watching = True
        return self

    def __exit__(self, *error: object) -> None:
        self.is_watching = False


def queries(model: Any, X: Any) -> list[str]:
    columns = None if hasattr(model, "feature_names_in_") else [f"c{j}" for j in range(X.shape[1])]
    return [powermeans.to_sql(model, columns, dialect=dialect) for dialect in DIALECTS]


def plot(name: str) -> Callable[[Any, Any], None]:
    def draw(model: Any, X: Any) -> None:
        try:
            getattr(plots, name)(*([model] if name == "convergence" else [model, X]))
        finally:
            plt.close("all")

    return draw


QUESTIONS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: lambda model, X, name=name: getattr(model, name)(X) for name in OF_POINTS},
    **{name: lambda model, _, name=name: getattr(model, name)() for name in WITHOUT_POINTS},
    "save": lambda model, _: save(model, "again.pm") or Path("again.pm").read_bytes(),
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "clone": lambda model, X: clone(model).fit(X),
    "set_params": lambda model, _: model.set_params(**model.get_params()),
    "explain": lambda model, X: str(powermeans.explain(model, X)),
    "report": lambda model, X: powermeans.report(model, X, "report.html") and None,
    "to_sql": queries,
    "gap": lambda model, X: powermeans.optimality_gap(model, X),
    "stability": lambda model, X: powermeans.stability(model, X, n_samples=2, random_state=0),
    "match_labels": lambda model, X: powermeans.match_labels(model, model, X),
    "what_changed": lambda model, X: str(powermeans.what_changed(model, model, X)),
    "merge_tree": lambda model, X: powermeans.merge_tree(model, X),
    "refit": lambda model, X: powermeans.refit(model, X),
    **{name: plot(name) for name in PLOTS},
}


def answer_of(model: Any, X: Any, question: str) -> Any:
    """Return the bits of an answer, or what a refusal in our words says; raise other errors."""
    if question in (*OF_POINTS, *WITHOUT_POINTS) and not hasattr(model, question):
        return None
    np.random.seed(0)  # noqa: NPY002 - from which models without random_state draw
    try:
        answer = QUESTIONS[question](model, X)
    except (ValueError, TypeError, AttributeError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        is_ours = last.filename.startswith((PACKAGE, str(Path(sklearn.__file__).parent)))
        if not is_ours or not str(last.line).startswith("raise"):
            raise
        return str(error)
    if question == "predict":
        check_labels(np.asarray(answer), model)
    elif hasattr(answer, "labels_"):  # of a copy, which may have other clusters by now
        check_labels(np.asarray(answer.labels_), answer)
    counts_or_has_an_address = ("_repr_html_", "__repr__")
    return None if question in counts_or_has_an_address else comparable(answer)


def use(model: Any) -> None:
    for question in GUARDED:
        answer_of(model, points_for(model), question)


def check_labels(labels: Any, model: Any) -> None:
    n_clusters = len(getattr(model, "cluster_centers_", labels))
    if len(labels) and not (
        labels.dtype.kind in "iu" and -1 <= labels.min() <= labels.max() < n_clusters
    ):
        raise Failure(f"labels are {labels[:9]}")


def comparable(answer: Any) -> Any:
    """Return what must be the same of two answers."""
    if isinstance(answer, BaseEstimator):
        return bits_of(answer)
    if isinstance(answer, np.ndarray | np.generic):
        return answer.tolist() if answer.dtype == object else (answer.dtype, answer.tobytes())
    return answer if isinstance(answer, str | bytes | float | list) else None


def points_for(model: Any) -> Any:
    """Return points of as many features as the model has; sparse ones where that is many."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else model
    width = first.n_features_in_
    if width > WIDEST_DENSE:
        places = np.arange(5), np.linspace(0, width - 1, 5).astype(np.int64)
        return sparse.csr_array((np.ones(5), places), shape=(5, width))
    return np.linspace(1, 3, 5 * width).reshape(5, width)


def ask_whole(file: Path, original: tuple[Any, Any], rng: random.Random) -> None:
    model, points = original
    for question in rng.sample([*QUESTIONS], 5):
        before = answer_of(copy.deepcopy(model), points, question)
        if answer_of(load(file), points, question) != before:
            raise Failure(f"a loaded {model!r} answers {question} otherwise")


def ask_damaged(file: Path, guard: Guard, rng: random.Random) -> str:
    with guard:
        try:
            model = load(file)
        except ModelFileError as error:
            if not (str(error).strip() and str(error).isprintable()):
                raise Failure("refuses without words") from error
            model = None
        else:
            reading_of(file)
            use(model)
    if guard.seen:
        raise Failure(f"executes {guard.seen[0]}")
    for question in rng.sample([*QUESTIONS], 5) if model is not None else ():
        model = load(file)
        last = model.steps[-1][1] if isinstance(model, Pipeline) else model
        last.set_params(**{name: n for name, n in TURNS.items() if name in last.get_params()})
        answer_of(model, points_for(model), question)
    return RIGHT if model is not None else REFUSED


def prepare(folder: Path) -> Try:
    file, originals = folder / "damaged.pm", seeds(folder)
    for original, (_, points) in originals.items():
        file.write_bytes(original)
        for question in GUARDED:  # what is imported on the way is imported now
            answer_of(load(file), points, question)
    guard = Guard()
    # A refusal looks up the version of the package, and a card has styles of scikit-learn.
    guard.allowed = (str(file), "/METADATA", ".css", ".js", *sys.path)

    def one(rng: random.Random) -> str:
        content = rng.choice([*originals])
        is_whole = rng.random() < 0.3
        file.write_bytes(content if is_whole else rng.choice(DAMAGE)(content, rng))
        if not is_whole:
            return ask_damaged(file, guard, rng)
        ask_whole(file, originals[content], rng)
        return RIGHT

    return one


ATTACK = Attack(prepare, seconds=20.0, megabytes=500.0, hangs_after=60.0, share=1.5)
