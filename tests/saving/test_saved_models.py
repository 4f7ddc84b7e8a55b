"""Models in files: they come back as they were, and no file does harm."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import pickle
import re
import subprocess
import sys
import traceback
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import powermeans as pm
from powermeans.divergences import Binomial, Generated, InverseGaussian, Manhattan
from powermeans.errors import ModelFileError
from powermeans.saving import ESTIMATORS, FORMAT, _decoded, load, save
from tests.attacks import models as attacked_models

POINTS = np.abs(
    np.random.default_rng(0).normal(size=(60, 3))
    + np.repeat([[2.0, 4.0, 1.0], [9.0, 9.0, 9.0], [20.0, 1.0, 30.0]], 20, axis=0)
)
# What the models of the attacks, which are of all kinds and in all states, have not among them.
PARAMETERS: list[dict[str, Any]] = [
    {"divergence": "cosine", "power": -np.inf},
    {"divergence": Manhattan(), "init": POINTS[:3]},
    {"divergence": "poisson", "random_state": np.random.RandomState(3)},
    {"divergence": InverseGaussian()},
    {"divergence": "wald"},
    {"schedule": pm.AuthorsSchedule(-0.5), "effort": "none", "max_iter": 1000},
    {"schedule": [-1.0, -2.0, -3.0], "effort": "none", "max_iter": 3, "polish": False},
    {"schedule": pm.Fixed(-np.inf), "init": POINTS[:3].tolist()},
    {"init": pm.ParallelSeeds(n_rounds=3)},
    {"init": pm.MarkovChainSeeds(chain_length=9)},
    {"init": pm.TreeSeeds(n_sweeps=1)},
]


def models_that_are_saved() -> Iterator[Any]:
    yield from attacked_models.fitted_models()
    for changed in PARAMETERS:
        yield pm.PowerKMeans(3, **{"random_state": 0, **changed}).fit(POINTS)
    yield pm.FuzzyCMeans(3, fuzzifier=1.5).fit(POINTS)
    yield pm.SphericalMixture(3, variance=0.5, random_state=0).fit(POINTS)


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.npz"


def there_and_back(model: Any, file: Path) -> Any:
    save(model, file)
    return load(file)


def assert_predicts_alike(again: Any, model: Any, points: Any) -> None:
    for method in ("predict", "transform", "score", "memberships", "score_samples"):
        if hasattr(model, method):
            expected, found = getattr(model, method)(points), getattr(again, method)(points)
            np.testing.assert_array_equal(found, expected)


def comparable(value: Any) -> Any:
    """What NumPy compares entry by entry, NaN with NaN."""
    if sparse.issparse(value):
        return value.toarray()
    if isinstance(value, pm.Scaling):
        return value.offsets, value.units
    return value.tolist() if isinstance(value, np.recarray) else value


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_a_loaded_model_predicts_to_the_last_bit_and_has_every_attribute(file) -> None:
    for model in models_that_are_saved():
        again = there_and_back(model, file)
        assert repr(again) == repr(model) or "RandomState" in repr(model)
        for name in {name for name in vars(model) if name.endswith("_")} - {"embedded_"}:
            expected, found = (getattr(one, name) for one in (model, again))
            assert type(found) is type(expected)
            np.testing.assert_equal(comparable(found), comparable(expected))
        if hasattr(getattr(model, "steps", [[model]])[-1][-1], "labels_"):
            points = np.random.default_rng(1).uniform(1, 9, size=(20, model.n_features_in_))
            assert_predicts_alike(again, model, points)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_names_of_features_and_the_dtype_of_the_centers_are_kept(dtype, file) -> None:
    table = pd.DataFrame(POINTS.astype(dtype), columns=["länge", "breite", "höhe"])
    again = there_and_back(pm.KMeans(3, random_state=0).fit(table), file)
    assert again.cluster_centers_.dtype == dtype
    assert list(again.feature_names_in_) == ["länge", "breite", "höhe"]
    with pytest.raises(ValueError, match="feature names"):
        again.predict(table.rename(columns={"höhe": "tiefe"}))


def test_sparse_landmarks_come_back(file) -> None:
    points = sparse.csr_array(POINTS * (POINTS > 5))
    model = pm.KernelPowerKMeans(3, n_landmarks=9, random_state=0).fit(points)
    again = there_and_back(model, file)
    assert sparse.issparse(again.landmarks_)
    assert_predicts_alike(again, model, points)


def test_a_sparse_matrix_of_more_columns_than_its_file_justifies_is_refused(file) -> None:
    """Products with it would take memory for columns that have no byte in the file."""
    model = pm.KernelPowerKMeans(3, n_landmarks=9, random_state=0).fit(sparse.csr_array(POINTS))
    save(model, file)
    rewritten(file, entry(n_features_in_=2**32))
    rewritten(file, lambda m: entries(m)["landmarks_"]["csr"].__setitem__(4, 2**32))
    with pytest.raises(ModelFileError, match="4,294,967,296 columns, and a file may have"):
        load(file)
    model.landmarks_.resize(9, 2**32)
    model.n_features_in_ = 2**32
    with pytest.raises(ValueError, match="hash them to fewer"):
        save(model, file)


@pytest.mark.parametrize("kind", [pm.OnlineKMeans, pm.MiniBatchPowerKMeans])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_weighted", [False, True], ids=["plain", "weighted"])
def test_a_stream_saved_after_each_chunk_ends_with_the_same_bits(
    kind, dtype, is_weighted, file
) -> None:
    """Also while points are awaited, with and without centers for the time being."""
    points = np.random.default_rng(0).permutation(np.tile(POINTS, (3, 1)).astype(dtype))
    stream, saved = (kind(3, init_size=60, random_state=0) for _ in range(2))
    had_centers = []
    for start, end in itertools.pairwise([0, 1, 2, 20, 30, 59, 60, 90, 180]):
        weight = (1.0 + np.arange(end - start)) if is_weighted and start else None
        stream = stream.partial_fit(points[start:end], sample_weight=weight)
        saved = saved.partial_fit(points[start:end], sample_weight=weight)
        saved = there_and_back(saved, file)
        had_centers.append(hasattr(saved, "cluster_centers_"))
        assert vars(saved).keys() == vars(stream).keys()
        if had_centers[-1]:
            np.testing.assert_array_equal(saved.cluster_centers_, stream.cluster_centers_)
            assert saved.drift_ == stream.drift_
    assert had_centers == [False, False, *[True] * 6]


@pytest.mark.parametrize(
    "kind",
    [kind for kind in ESTIMATORS if hasattr(kind, "from_centers")],
    ids=lambda kind: kind.__name__,
)
def test_an_estimator_made_from_centers_does_all_that_a_loaded_one_does(kind, file) -> None:
    centers = POINTS[[0, 20, 40]]
    options = {"shape": (3, 1)} if kind is pm.SelfOrganizingMap else {}
    made = kind.from_centers(centers, **options)
    again = there_and_back(made, file)
    assert made.predict(centers).tolist() == [0, 1, 2]
    assert_predicts_alike(again, made, POINTS)
    assert not hasattr(again, "labels_")


def test_the_same_model_makes_the_same_file_which_numpy_opens_too(file, tmp_path) -> None:
    model, other = pm.KMeans(3, random_state=0).fit(POINTS), tmp_path / "other.npz"
    save(model, file)
    save(model, other)
    assert file.read_bytes() == other.read_bytes()
    with np.load(file, allow_pickle=False) as members:
        header = json.loads(members["model.json"])
        centers = header["model"]["KMeans"]["cluster_centers_"]["array"]
        np.testing.assert_array_equal(members[f"a{centers}"], model.cluster_centers_)


def test_a_callback_is_left_out(file) -> None:
    model = pm.PowerKMeans(3, random_state=0, callback=lambda state: None).fit(POINTS)
    assert there_and_back(model, file).callback is None


SQUARES = Generated(lambda x: (x * x).sum(axis=1), lambda x: 2 * x)


# What cannot be saved says so, and leaves the old file alone.


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            pm.PowerKMeans(3, init=lambda X, k, random_state: X[:k]),
            "init is <lambda>, which cannot",
        ),
        (pm.PowerKMeans(3, divergence=SQUARES), "divergence is Generated, which cannot be saved"),
        (SklearnKMeans(3), "model is a KMeans, no estimator of powermeans"),
        (
            make_pipeline(StandardScaler(), SklearnKMeans(3)),
            "kmeans is KMeans, which cannot be saved|steps is KMeans, which cannot be saved",
        ),
    ],
)
def test_what_holds_code_is_refused_and_the_old_file_stays(model, message, file) -> None:
    file.write_bytes(b"the old file")
    with pytest.raises(TypeError, match=message):
        save(model.fit(POINTS), file)
    assert file.read_bytes() == b"the old file"
    assert list(file.parent.iterdir()) == [file]


def test_what_load_would_refuse_is_not_saved(file) -> None:
    model = pm.PowerKMeans(3, divergence="poisson", random_state=0).fit(POINTS)
    model.cluster_centers_[0, 0] = -1e-9
    with pytest.raises(ValueError, match="cluster_centers_"):
        save(model, file)
    model.cluster_centers_[0, 0] = np.nan
    with pytest.raises(ValueError, match="cluster_centers_ of PowerKMeans is not finite"):
        save(model, file)
    assert not file.exists()


@pytest.mark.parametrize("seed", [61, 127, 139])
def test_rounding_of_sums_leaves_centers_in_the_domain(seed, file) -> None:
    rng = np.random.default_rng(seed)
    shape, n_clusters = (rng.integers(6, 40), rng.integers(1, 5)), rng.integers(2, 6)
    X = rng.poisson(rng.choice([0.3, 1, 5]), size=shape).astype(float)
    weights = rng.random(len(X)) * rng.choice([1, 1e3, 1e-3], size=len(X))
    for divergence, most in (("poisson", np.inf), (Binomial(X.max()), X.max())):
        for effort in ("none", "balanced", "thorough"):
            model = pm.PowerKMeans(n_clusters, divergence=divergence, effort=effort, random_state=0)
            centers = model.fit(X, sample_weight=weights).cluster_centers_
            assert 0 <= centers.min() <= centers.max() <= most
            save(model, file)
            load(file)


def test_a_model_that_is_not_fitted_is_refused(file) -> None:
    with pytest.raises(NotFittedError):
        save(pm.KMeans(3), file)


# Files that are no models. What is wrong is put into a file that is right otherwise.


def rewritten(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Let `change` work on the members of a model's file, its header as a dict."""
    with zipfile.ZipFile(file) as archive:
        members: dict[str, Any] = {name: archive.read(name) for name in archive.namelist()}
    members["model.json"] = json.loads(members["model.json"])
    change(members)
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            text = json.dumps(content) if isinstance(content, dict) else content
            archive.writestr(name, text)


def npy(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


class Trap:
    """Executes what it was told as it is unpickled."""

    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('a file was executed')",)


Change = Callable[[dict[str, Any]], object]


def entries(members: dict[str, Any]) -> dict[str, Any]:
    """The parameters and the attributes of the model."""
    ((_, found),) = members["model.json"]["model"].items()
    return found


def header(**changed: object) -> Change:
    return lambda members: members["model.json"].update(changed)


def entry(**changed: object) -> Change:
    return lambda members: entries(members).update(changed)


def member(name: str, content: bytes) -> Change:
    return lambda members: members.update({name: content})


def centers(array: Any, **options: Any) -> Change:
    return member("a0.npy", npy(array, **options))


CHANGES: dict[str, tuple[Change, str]] = {
    "a newer version": (header(version=FORMAT + 1, written_by="9.9"), "pip install --upgrade"),
    "a version that writes to terminals": (
        header(version=7, written_by="\x1b[2J\u202e9"),
        r"powermeans \\x1b\[2J\\u202e9 wrote it",
    ),
    "another format": (header(format="x"), "that of another format"),
    "no header": (lambda m: m.pop("model.json"), "model.json"),
    "no JSON": (member("model.json", b"{"), "Expecting property name"),
    "deep JSON": (member("model.json", b"[" * 10**5), "recursion"),
    "an unknown class": (header(model={"os.system": {}}), "unknown kind 'os.system'"),
    "a class of scikit-learn": (header(model={"SVC": {}}), "unknown kind 'SVC'"),
    "an unknown parameter": (entry(shell=1), "KMeans has no attribute shell"),
    "a bad parameter": (entry(max_iter=-1), "'max_iter' parameter"),
    "a callback": (entry(callback="print"), "KMeans has no attribute callback"),
    "a dunder": (entry(__class__=1), "KMeans has no attribute __class__"),
    "an unknown kind": (entry(tol={"eval": "1"}), "unknown kind 'eval'"),
    "an endless tuple": (entry(tol={"tuple": {"Fixed": {"power": -1.0}}}), "'tol' parameter"),
    "an array left out": (lambda m: m.pop("a0.npy"), "a0.npy is missing"),
    "an array too many": (member("a9.npy", npy([1])), "arrays that belong to none"),
    "an array used twice": (entry(labels_={"array": 0}), "a0.npy is missing, or is used twice"),
    "a strange member": (member("../x", b""), "magic string"),
    "a label of no cluster": (
        member("a1.npy", npy(np.full(60, 77, np.int32))),
        r"labels_ of KMeans is not label\[n\]",
    ),
    "labels with commas": (member("a1.npy", npy(np.zeros(60))), r"labels_ of KMeans is not label"),
    "NaN centers": (centers(np.full((3, 3), np.nan)), r"cluster_centers_ of KMeans is not finite"),
    "centers of text": (centers([["a"]]), "an array of dtype"),
    "flat centers": (centers(np.ones(9)), "cluster_centers_ of KMeans"),
    "no centers": (centers(np.ones((0, 3))), "cluster_centers_"),
    "other features": (entry(n_features_in_=4), r"finite\[k,d\]"),
    "a pickle": (centers(np.array([Trap()]), allow_pickle=True), "an array of dtype object"),
    "a pickle without a header": (member("a0.npy", pickle.dumps(Trap())), "magic string"),
    "a lie about the size": (
        member("a0.npy", npy(np.ones((3, 3))).replace(b"(3, 3)", b"(9, 9)")),
        r"cannot reshape array of size 9 into shape \(9,9\)",
    ),
    "code in the header of an array": (
        member("a0.npy", npy(np.ones((3, 3))).replace(b"(3, 3)", b"exit()")),
        "holds no model",
    ),
}


@pytest.fixture
def saved(file) -> Path:
    """The file of a model that is right so far."""
    save(pm.KMeans(3, random_state=0).fit(POINTS), file)
    return file


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_a_file_that_is_wrong_is_refused_and_says_why(change, message, saved) -> None:
    rewritten(saved, change)
    with pytest.raises(ModelFileError, match=message) as caught:
        load(saved)
    assert str(caught.value).startswith(f"{saved} holds no model: ")
    assert "\x1b" not in "".join(traceback.format_exception(caught.value))


def test_a_header_of_little_things_is_refused_before_it_takes_more_memory_than_it_may(
    saved,
) -> None:
    text = b'{"format":"powermeans model","version":1,"model":[' + b"[]," * 2**21 + b"1]}"
    rewritten(saved, member("model.json", text))
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match="brackets"):
            load(saved)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(text)
    finally:
        tracemalloc.stop()


def without_attribute(name: str) -> Change:
    """Take an attribute out of a model, with its arrays."""

    def change(members: dict[str, Any]) -> None:
        removed = json.dumps(entries(members).pop(name))
        for number in re.findall(r'{"array": (\d+)}', removed):
            del members[f"a{number}.npy"]

    return change


@pytest.mark.filterwarnings("ignore")
def test_a_model_without_any_of_its_attributes_is_refused_or_works(file) -> None:
    for model in attacked_models.fitted_models():
        save(model, file)
        whole = file.read_bytes()
        with zipfile.ZipFile(file) as archive:
            written = entries({"model.json": json.loads(archive.read("model.json"))})
        for name in written.keys() - model.get_params().keys():
            file.write_bytes(whole)
            rewritten(file, without_attribute(name))
            with contextlib.suppress(ModelFileError):
                attacked_models.use(load(file))


def test_what_does_not_fit_together_is_refused(file) -> None:
    save(pm.PowerKMeans(3, random_state=0).fit(POINTS - 5), file)
    rewritten(file, entry(divergence="poisson"))
    with pytest.raises(ModelFileError, match="Poisson is for"):
        load(file)
    save(make_pipeline(MinMaxScaler(), pm.KMeans(3, random_state=0)).fit(POINTS), file)
    rewritten(file, lambda members: entries(members)["steps"].reverse())
    with pytest.raises(ModelFileError, match="steps are not scalers and an estimator"):
        load(file)


@pytest.mark.parametrize("change", [(1, -1), (1, 625), (1, True), (1, 0.5), (1, None), (3, np.nan)])
def test_a_random_state_outside_its_memory_is_refused(change, file) -> None:
    save(pm.KMeans(3, random_state=np.random.RandomState(0)).fit(POINTS), file)
    place, value = change
    rewritten(
        file,
        lambda members: entries(members)["random_state"]["random_state"].__setitem__(place, value),
    )
    with pytest.raises(ModelFileError):
        load(file)


def test_a_bomb_is_refused_before_it_is_read(saved) -> None:
    with zipfile.ZipFile(saved, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a70.npy", bytes(10**8))
    assert saved.stat().st_size < 10**6
    with pytest.raises(ModelFileError, match=r"a70\.npy is compressed"):
        load(saved)


@pytest.mark.parametrize("content", [b"", b"PK", b"hello", pickle.dumps(Trap())])
def test_a_file_of_something_else_or_that_is_missing_is_refused(content, file) -> None:
    with pytest.raises(FileNotFoundError):
        load(file)
    file.write_bytes(content)
    with pytest.raises(ModelFileError, match="holds no model: File is not a zip file"):
        load(file)


def test_a_mapping_of_anything_but_pairs_is_refused() -> None:
    with pytest.raises(ValueError, match="no pairs"):
        _decoded({"dict": [{"Fixed": {"power": -1.0}}]}, {})


# Damage by the hundred, in a process of its own, so that a crash is seen.


def test_every_estimator_is_saved_and_damaged() -> None:
    public = [getattr(pm, name) for name in pm.__all__]
    assert {type(model) for model in attacked_models.models()} == set(ESTIMATORS)
    assert {kind for kind in public if hasattr(kind, "fit")} <= set(ESTIMATORS)


def test_hundreds_of_damaged_files_are_refused_or_harmless() -> None:
    """Each input either loads and predicts, or raises `ModelFileError`; none runs anything."""
    command = [sys.executable, "-m", "tests.attacks", "--classes", "models", "--seconds", "150"]
    ended = subprocess.run(
        [*command, "--tries", "500", "--jobs", "1", "--seed", "0"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    numbers = re.search(r"models +(\d+) +(\d+) +(\d+)", ended.stdout).groups()
    tries, harmless, refused = map(int, numbers)
    assert tries == 500 == harmless + refused
    assert 0.5 * tries < refused < tries


# To scikit-learn, and from there to ONNX.


def test_a_model_reaches_onnx_by_way_of_scikit_learn() -> None:
    reason = 'ONNX is not installed: pip install "skl2onnx" "onnxruntime"'
    skl2onnx = pytest.importorskip("skl2onnx", reason=reason)
    onnxruntime = pytest.importorskip("onnxruntime", reason=reason)
    points = POINTS.astype(np.float32)
    model = pm.PowerKMeans(3, random_state=0).fit(points)
    graph = skl2onnx.to_onnx(model.to_sklearn(), points[:1])
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    labels, _ = session.run(None, {session.get_inputs()[0].name: points})
    np.testing.assert_array_equal(labels, model.predict(points))
    assert len(set(labels)) == 3
