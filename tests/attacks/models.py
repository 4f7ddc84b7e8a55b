"""Damaged model files: refused in words, or harmless. Nothing in them is executed.

Damage is to bytes of the file, which checksums mostly find; to entries of the header and to arrays
in an archive that is whole again; and to the archive itself.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import random
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import powermeans
from powermeans.errors import ModelFileError
from powermeans.saving.model_files import load, reading_of, save
from tests.attacks.running import REFUSED, RIGHT, Attack, Failure, Try

SUSPECT = (
    "exec", "import", "open", "os.", "subprocess.", "pickle.", "marshal.", "socket.",
    "ctypes.", "shutil.", "urllib.",
)  # fmt: skip
PACKAGE = str(Path(powermeans.__file__).parent)
OWN_IMPORTS = ("powermeans", "torch")
UNSUSPECTED = ("os.fstat", "os.listdir")
ENTRIES: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**63, 2**70, 1e308, 1e-320, "", "x", "poisson", "cosine", [],
    [[]], {}, {"float": "nan"}, {"float": "-inf"}, {"array": "a0"}, {"array": "a1"},
    {"strings": ["a"]},
    {"dict": {}}, {"tuple": []}, {"value": ["Fixed", {"power": -1.0}]}, {"records": {}},
    {"csr_array": [1, 2, 3, 4, 5]}, {"random_state": [1, 2, 3, 4]},
    -(2**63), 2**31 - 1, 624, 40_000_000, 0.5, "auto", "mahalanobis", "\x1b]0;x\x07", [1e300],
    {"estimator": ["KMeans", {}, {}]},
]  # fmt: skip


def models() -> list[Any]:
    """At least one of each kind that can be saved."""
    return [
        powermeans.PowerKMeans(2, divergence="mahalanobis", random_state=0),
        powermeans.KMeans(2, random_state=np.random.RandomState(0)),
        powermeans.KernelPowerKMeans(2, n_landmarks=5, random_state=0),
        powermeans.MiniBatchKMeans(2, random_state=0),
        powermeans.MiniBatchPowerKMeans(2, random_state=0),
        powermeans.SphericalMixture(2, shares="learned", random_state=0),
        powermeans.RobustPowerKMeans(2, random_state=0),
        powermeans.KernelPowerKMeans(2, kernel="precomputed", random_state=0),
        powermeans.GradientKMeans(2, random_state=0),
        powermeans.KHarmonicMeans(2, random_state=0),
        powermeans.FuzzyCMeans(2, random_state=0),
        powermeans.OnlineKMeans(2, random_state=0),
        powermeans.DPMeans(penalty=3.0),
        powermeans.SelfOrganizingMap(shape=(2, 2), random_state=0),
        powermeans.EntropyWeightedPowerKMeans(2, random_state=0),
        powermeans.SpectralClustering(2, random_state=0),
        make_pipeline(StandardScaler(), powermeans.PowerKMeans(2, random_state=0)),
        make_pipeline(MinMaxScaler(), powermeans.KMeans(2, random_state=0)),
    ]


def seeds(folder: Path) -> list[bytes]:
    """Files that are right."""
    points = np.abs(np.random.default_rng(0).normal(size=(12, 2))) + 1
    files = []
    for model in models():
        is_gram = getattr(model, "kernel", None) == "precomputed"
        save(model.fit(points @ points.T if is_gram else points), folder / "seed")
        files.append((folder / "seed").read_bytes())
    for kind in (powermeans.MiniBatchPowerKMeans, powermeans.OnlineKMeans):
        awaiting = kind(2, init_size=50).partial_fit(points, sample_weight=np.ones(12))
        save(awaiting, folder / "seed")
        files.append((folder / "seed").read_bytes())
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


def with_entries_changed(content: bytes, rng: random.Random) -> bytes:
    """Entries of the header replaced or taken out, or bytes of an array, with right checksums."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
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
    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return changed.getvalue()


def archive_of(members: list[tuple[str, bytes]], rng: random.Random) -> bytes:
    """Write an archive that may be compressed, or may name a member twice."""
    written = io.BytesIO()
    kinds = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    with warnings.catch_warnings(), zipfile.ZipFile(written, "w") as archive:
        warnings.simplefilter("ignore")  # of two members of one name
        for name, member in members:
            archive.writestr(name, member, rng.choice([kinds[0]] * 6 + kinds))
    return written.getvalue()


def with_members_changed(content: bytes, rng: random.Random) -> bytes:
    """Rename, drop, double, swap or add members, or lie about them in the directory."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
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
            members[at], members[other] = (
                (members[at][0], members[other][1]),
                (members[other][0], members[at][1]),
            )
        case 4:
            members[at] = (members[at][0], hostile_array(rng))
        case 5:
            members.append((rng.choice(["b.pkl", "a7000.npy", "model.json"]), rng.randbytes(50)))
        case 6:
            return with_sizes_changed(archive_of(members, rng), rng)
    return archive_of(members, rng)


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


DAMAGE = (with_bytes_changed, with_entries_changed, with_entries_changed, with_members_changed)


# What is done with a file, and what must not happen then.


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
        # A model may name a device, for which the package asks PyTorch.
        is_own_import = event == "import" and what.partition(".")[0] in OWN_IMPORTS
        is_own_code = event in ("open", "exec") and PACKAGE in what
        if is_own_import or is_own_code or (event == "open" and what.endswith(self.allowed)):
            return
        self.seen.append(f"{event} {details!r:.120}")

    def __enter__(self) -> Guard:
        self.seen.clear()
        self.is_watching = True
        return self

    def __exit__(self, *error: object) -> None:
        self.is_watching = False


def use(model: Any) -> None:
    """Predict, and go on with a stream; a refusal in words is as good."""
    width = getattr(model, "n_features_in_", 2)
    if isinstance(model, Pipeline):
        width = getattr(model.steps[0][1], "n_features_in_", 2)
    points = np.linspace(1, 3, 5 * width).reshape(5, width)
    for name in ("predict", "transform", "score", "memberships", "partial_fit"):
        if hasattr(model, name):
            try:
                getattr(model, name)(points)
            except (ValueError, TypeError) as error:
                if not str(error).strip():
                    raise
    repr(model)


def prepare(folder: Path) -> Try:
    warnings.simplefilter("ignore")
    with contextlib.suppress(ImportError):
        importlib.import_module("powermeans.rows.torch")
    file, originals = folder / "damaged.pm", seeds(folder)
    for original in originals:  # what is imported on the way is imported now
        file.write_bytes(original)
        use(load(file))
    guard = Guard()
    # A refusal looks up the version of the package on the path of imports.
    guard.allowed = (str(file), "/METADATA", *sys.path)

    def one(rng: random.Random) -> str:
        file.write_bytes(rng.choice(DAMAGE)(rng.choice(originals), rng))
        with guard:
            try:
                model = load(file)
            except ModelFileError as error:
                verdict = REFUSED if str(error).strip() and str(error).isprintable() else "mute"
            else:
                reading_of(file)
                use(model)
                verdict = RIGHT
        if guard.seen:
            raise Failure(f"executes {guard.seen[0]}")
        if verdict == "mute":
            raise Failure("refuses without words")
        return verdict

    return one


ATTACK = Attack(prepare, seconds=2.0, megabytes=200.0, hangs_after=60.0, share=1.5)
