"""Models in files: they come back as they were, and no file does harm; attacks damage more."""

import contextlib
import io
import itertools
import json
import pickle
import random
import traceback
import tracemalloc
import zipfile
from collections.abc import Callable
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
from powermeans.divergences import Binomial, Generated, InverseGaussian, Jeffreys, Manhattan
from powermeans.engine import stopping
from powermeans.engine.seeds import MarkovChainSeeds, ParallelSeeds, TreeSeeds
from powermeans.errors import ModelFileError
from powermeans.mathematics.schedules import AuthorsSchedule, Fixed
from powermeans.methods import (
    FuzzyCMeans,
    KernelPowerKMeans,
    OnlineKMeans,
    SelfOrganizingMap,
    SpectralClustering,
    SphericalMixture,
)
from powermeans.saving import FORMAT, estimators, load, save
from powermeans.system.saved_classes import SAVED_CLASSES
from tests.attacks import models as attacked_models

POINTS = np.abs(
    np.random.default_rng(0).normal(size=(60, 3))
    + np.repeat([[2.0, 4.0, 1.0], [9.0, 9.0, 9.0], [20.0, 1.0, 30.0]], 20, axis=0)
)
# What the models of the attacks, which are of all kinds and in all states, have not among them.
UNLIKE = [
    *(
        pm.PowerKMeans(3, **{"random_state": 0, **changed})
        for changed in (
            {"divergence": "cosine", "power": -np.inf},
            {"divergence": Manhattan(), "init": POINTS[:3]},
            {"divergence": "poisson", "random_state": np.random.RandomState(3)},
            {"divergence": InverseGaussian()},
            {"divergence": "wald"},
            {"divergence": "pearson"},
            {"divergence": Jeffreys(), "init": POINTS[:3]},
            {"schedule": AuthorsSchedule(-0.5), "effort": "none", "max_iter": 1000},
            {"schedule": [-1.0, -2.0], "effort": "none", "max_iter": 2, "polish": False},
            {"schedule": Fixed(-np.inf), "init": POINTS[:3].tolist()},
            {"init": ParallelSeeds(n_rounds=3)},
            {"init": MarkovChainSeeds(chain_length=9)},
            {"init": TreeSeeds(n_sweeps=1)},
        )
    ),
    SphericalMixture(3, missing="observed", covariance_type="spherical", random_state=0),
    FuzzyCMeans(3, fuzzifier=1.5),
    SphericalMixture(3, variance=0.5, random_state=0),
]

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
            np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_a_loaded_model_predicts_to_the_last_bit(file) -> None:
    """Beside what the matrix tries of every estimator."""
    public = [getattr(room, name) for room in (pm, pm.methods) for name in room.__all__]
    attacked = [*attacked_models.fitted_models()]
    kinds = {kind for kind in public if isinstance(kind, type) and hasattr(kind, "fit")}
    assert kinds - {pm.Prepare} <= estimators()
    assert {type(model) for model in attacked} == estimators()
    rules = {getattr(stopping, name) for name in stopping.__all__} - {stopping.StopRule}
    assert rules <= {*SAVED_CLASSES.values()}
    for model in [*attacked, *(one.fit(POINTS) for one in UNLIKE)]:
        again = there_and_back(model, file)
        assert repr(again) == repr(model) or "RandomState" in repr(model)
        assert vars(again).keys() == vars(model).keys()
        if hasattr(getattr(model, "steps", [[model]])[-1][-1], "labels_"):
            points = np.random.default_rng(1).uniform(1, 9, size=(20, model.n_features_in_))
            assert_predicts_alike(again, model, points)


def test_sparse_landmarks_come_back_unless_they_are_wider_than_their_file_justifies(file) -> None:
    """Products with them would take memory for columns that have no byte in the file."""
    points = sparse.csr_array(POINTS * (POINTS > 5))
    model = KernelPowerKMeans(3, n_landmarks=9, random_state=0).fit(points)
    again = there_and_back(model, file)
    assert sparse.issparse(again.landmarks_)
    assert_predicts_alike(again, model, points)
    rewritten(file, entry(n_features_in_=2**32))
    rewritten(file, lambda m: entries(m)["landmarks_"]["csr"].__setitem__(4, 2**32))
    with pytest.raises(ModelFileError, match="4,294,967,296 columns"):
        load(file)
    model.landmarks_.resize(9, 2**32)
    model.n_features_in_ = 2**32
    with pytest.raises(ValueError, match="hash them to fewer"):
        save(model, file)


@pytest.mark.parametrize("kind", [OnlineKMeans, pm.MiniBatchPowerKMeans, pm.MiniBatchKMeans])
@pytest.mark.parametrize(("dtype", "is_weighted"), [("f4", True), ("f8", True), ("f4", False)])
def test_a_stream_saved_after_each_chunk_has_the_same_bits(kind, dtype, is_weighted, file) -> None:
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
            centers = saved.cluster_centers_, stream.cluster_centers_
            np.testing.assert_array_equal(*centers, strict=True)
    assert had_centers == [False, False, *[True] * 6]


MADE = [kind for kind in sorted(estimators(), key=str) if hasattr(kind, "from_centers")]


@pytest.mark.parametrize("kind", MADE)
def test_an_estimator_made_from_centers_does_all_that_a_loaded_one_does(kind, file) -> None:
    centers = POINTS[[0, 20, 40]]
    options = {"shape": (3, 1)} if kind is SelfOrganizingMap else {}
    made = kind.from_centers(centers, **options)
    again = there_and_back(made, file)
    assert made.predict(centers).tolist() == [0, 1, 2]
    assert_predicts_alike(again, made, POINTS)
    assert not hasattr(again, "labels_")


def test_the_same_model_makes_the_same_file_with_names_and_no_callback(file, tmp_path) -> None:
    model, other = pm.KMeans(3, random_state=0).fit(POINTS), tmp_path / "other.npz"
    save(model, file)
    save(model, other)
    assert file.read_bytes() == other.read_bytes()
    with np.load(file, allow_pickle=False) as members:
        header = json.loads(members["model.json"])
        centers = header["model"]["KMeans"]["cluster_centers_"]["array"]
        np.testing.assert_array_equal(members[f"a{centers}"], model.cluster_centers_)
    table = pd.DataFrame(POINTS, columns=["länge", "breite", "höhe"])
    model = pm.PowerKMeans(3, random_state=0, callback=lambda state: None).fit(table)
    again = there_and_back(model, file)
    assert list(again.feature_names_in_) == ["länge", "breite", "höhe"]
    assert again.callback is None


SQUARES = Generated(lambda x: (x * x).sum(axis=1), lambda x: 2 * x)


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (pm.PowerKMeans(3, init=lambda X, k, random_state: X[:k]), "init is <lambda>"),
        (pm.PowerKMeans(3, divergence=SQUARES), "divergence is Generated"),
        (SklearnKMeans(3), "model is a KMeans, no estimator of powermeans"),
        (make_pipeline(StandardScaler(), SklearnKMeans(3)), "(kmeans|steps) is KMeans"),
    ],
)
def test_what_holds_code_is_refused_and_the_old_file_stays(model, named, file) -> None:
    file.write_bytes(b"the old file")
    with pytest.raises(TypeError, match=named):
        save(model.fit(POINTS), file)
    assert file.read_bytes() == b"the old file"
    assert list(file.parent.iterdir()) == [file]


def test_what_load_would_refuse_is_not_saved(file) -> None:
    model = pm.PowerKMeans(3, divergence="poisson", random_state=0).fit(POINTS)
    for wrong in (-1e-9, np.nan):
        model.cluster_centers_[0, 0] = wrong
        with pytest.raises(ValueError, match="cluster_centers_"):
            save(model, file)
    with pytest.raises(NotFittedError):
        save(pm.KMeans(3), file)
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


def rewritten(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
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
    ((_, found),) = members["model.json"]["model"].items()
    return found


def header(**changed: object) -> Change:
    return lambda members: members["model.json"].update(changed)


def entry(**changed: object) -> Change:
    return lambda members: entries(members).update(changed)


def member(name: str, content: bytes) -> Change:
    return lambda members: members.update({name: content})


def centers(array: Any, *, says: bytes = b"", **options: Any) -> Change:
    content = npy(array, **options)
    return member("a0.npy", content.replace(b"(3, 3)", says) if says else content)


def random_state(place: int, value: object, key: Any = None) -> Change:
    """A random state outside its memory, or one that gives zeros forever."""
    numbers = np.random.RandomState(0).get_state()[1] if key is None else key
    state: list[Any] = [{"array": 9}, 624, 0, 0.0]
    state[place] = value

    def change(members: dict[str, Any]) -> None:
        members["a9.npy"] = npy(numbers)
        entries(members)["random_state"] = {"random_state": state}

    return change


NINE = np.ones((3, 3))
# What is changed, and what the error names.
CHANGES: list[tuple[Change, str]] = [
    (header(version=FORMAT + 1, written_by="9.9"), "pip install --upgrade"),
    (header(version=7, written_by="\x1b[2J\u202e9"), r"powermeans \\x1b\[2J\\u202e9 wrote it"),
    (header(format="x"), "that of another format"),
    (lambda m: m.pop("model.json"), "model.json"),
    (member("model.json", b"{"), "Expecting property name"),
    (member("model.json", b"[" * 10**5), "recursion"),
    *((header(model={name: {}}), f"unknown kind '{name}'") for name in ("os.system", "SVC")),
    *((entry(**{name: 1}), f"KMeans has no attribute {name}")
      for name in ("shell", "callback", "__class__")),
    (entry(max_iter=-1), "'max_iter' parameter"),
    (entry(tol={"Fixed": {"x" * 10**6: 1}}), "xxx"),
    (entry(tol={"Fixed": {"powr": 1}}), "a Fixed with the unknown 'powr'"),
    (entry(tol={"eval": "1"}), "unknown kind 'eval'"),
    (entry(tol={"dict": [{"Fixed": {"power": -1.0}}]}), "contains no model"),
    (entry(tol={"tuple": {"Fixed": {"power": -1.0}}}), "'tol' parameter"),
    (lambda m: m.pop("a0.npy"), "a0.npy is missing"),
    *((lambda m, name=name: entries(m).pop(name), f"KMeans has no {name}")
      for name in ("cluster_centers_", "n_features_in_")),
    (member("a9.npy", npy([1])), "arrays that belong to none"),
    (entry(labels_={"array": 0}), "a0.npy is missing, or is used twice"),
    (member("../x", b""), "magic string"),
    (member("a1.npy", npy(np.full(60, 77, np.int32))), r"labels_ of KMeans is not label\[n\]"),
    (member("a1.npy", npy(np.zeros(60))), "labels_ of KMeans is not label"),
    *((centers(wrong), "cluster_centers_ of KMeans is not finite")
      for wrong in (np.full((3, 3), np.nan), np.ones((3, 3), np.int8))),
    (centers([["a"]]), "an array of dtype"),
    (centers(np.ones(9)), "cluster_centers_ of KMeans"),
    (centers(np.ones((0, 3))), "cluster_centers_"),
    (centers(np.array([Trap()]), allow_pickle=True), "an array of dtype object"),
    (member("a0.npy", pickle.dumps(Trap())), "magic string"),
    (centers(NINE, says=b"(9, 9)"), r"cannot reshape array of size 9 into shape \(9,9\)"),
    (centers(NINE, says=b"exit()"), "contains no model"),
    *((random_state(*wrong), "contains no model")
      for wrong in ((1, -1), (1, 625), (1, True), (1, 0.5), (1, None), (3, np.nan),
                    (1, 624, np.zeros(624, np.uint32)))),
]  # fmt: skip


@pytest.fixture
def saved(file) -> Path:
    save(pm.KMeans(3, random_state=0).fit(POINTS - 5), file)
    return file


@pytest.mark.parametrize(("change", "message"), CHANGES, ids=[named for _, named in CHANGES])
def test_a_file_that_is_wrong_is_refused_and_says_why(change, message, saved) -> None:
    rewritten(saved, change)
    with pytest.raises(ModelFileError, match=message) as caught:
        load(saved)
    assert str(caught.value).startswith(f"{saved} contains no model: ")
    assert len(str(caught.value)) < 2_000
    assert "\x1b" not in "".join(traceback.format_exception(caught.value))


def widen_first_step(members: dict[str, Any]) -> None:
    ((_, of_step),) = entries(members)["steps"][0]["tuple"][1].items()
    of_step["n_features_in_"] += 1


def set_labels_far_apart(members: dict[str, Any]) -> None:
    """As wide as their type, for which the card in a notebook would count all labels between."""
    name = f"a{entries(members)['labels_']['array']}.npy"
    members[name] = npy(np.resize(np.int32([0, 2**31 - 1]), len(POINTS)))


def test_what_contradicts_itself_is_refused(file) -> None:
    scaled = make_pipeline(MinMaxScaler(), pm.KMeans(3, random_state=0)).fit(POINTS)
    unscaled = make_pipeline(StandardScaler(with_mean=False, with_std=False), pm.KMeans(3))
    of_kernel = KernelPowerKMeans(3, kernel="precomputed").fit(POINTS @ POINTS.T)
    for model, change, named in (
        (pm.KMeans(3).fit(POINTS), entry(n_features_in_=4), r"finite\[k,d\]"),
        (pm.PowerKMeans(3).fit(POINTS - 5), entry(divergence="poisson"), "Poisson is for"),
        (scaled, lambda members: entries(members)["steps"].reverse(), "steps are not scalers and"),
        (unscaled.fit(POINTS), widen_first_step, "different numbers of features"),
        (of_kernel, entry(n_features_in_=99), "of other points"),
        (SpectralClustering(3).fit(POINTS / 9), set_labels_far_apart, r"labels_ .*label\[n\]"),
        (OnlineKMeans(3).partial_fit(POINTS[:1]), entry(n_features_in_=4), "stream contradicts"),
    ):
        save(model, file)
        rewritten(file, change)
        with pytest.raises(ModelFileError, match=named):
            load(file)


def test_what_is_large_is_refused_before_it_takes_more_memory_than_it_may(saved) -> None:
    text = b'{"format":"powermeans model","version":1,"model":[' + b"[]," * 2**21 + b"1]}"
    rewritten(saved, member("model.json", text))
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match="brackets"):
            load(saved)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(text)
    finally:
        tracemalloc.stop()
    with zipfile.ZipFile(saved, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a70.npy", bytes(10**8))
    assert saved.stat().st_size < 10**7
    with pytest.raises(ModelFileError, match=r"a70\.npy' is compressed"):
        load(saved)


@pytest.fixture(scope="module")
def originals(tmp_path_factory) -> list[bytes]:
    return [*attacked_models.seeds(tmp_path_factory.mktemp("originals"))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("damage", attacked_models.DAMAGE[:2])
def test_a_damaged_file_is_refused_or_its_model_does_all_it_can(damage, originals, file) -> None:
    """As the attacks try for longer, in which a model has little memory and time."""
    for seed in range(50):
        rng = random.Random(seed)
        file.write_bytes(damage(rng.choice(originals), rng))
        with contextlib.suppress(ModelFileError):
            attacked_models.use(load(file))


@pytest.mark.parametrize("content", [b"", b"PK", b"hello", pickle.dumps(Trap())])
def test_a_file_of_something_else_or_that_is_missing_is_refused(content, file) -> None:
    with pytest.raises(FileNotFoundError):
        load(file)
    file.write_bytes(content)
    with pytest.raises(ModelFileError, match="contains no model: File is not a zip file"):
        load(file)


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
