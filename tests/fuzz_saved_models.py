"""Damage saved models in many ways, load each, and count what happens; prints JSON.

Two kinds of damage: bytes of the file (which checksums mostly find), and single entries of its
header or bytes of its arrays in an archive that is whole again.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import powermeans
from powermeans.errors import ModelFileError
from powermeans.saving.model_files import load, save

SUSPECT = ("exec", "os.", "subprocess.", "pickle.", "socket.", "ctypes.", "shutil.", "urllib.")
ENTRIES: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**63, 2**70, 1e308, 1e-320, "", "x", "poisson", "cosine", [],
    [[]], {}, {"float": "nan"}, {"float": "-inf"}, {"array": "a0"}, {"array": "a1"},
    {"strings": ["a"]},
    {"dict": {}}, {"tuple": []}, {"value": ["Fixed", {"power": -1.0}]}, {"records": {}},
    {"csr_array": [1, 2, 3, 4, 5]}, {"random_state": [1, 2, 3, 4]},
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


def main() -> int:
    """Fuzz, print the counts, and fail where an input did anything else than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng, executed, watching = random.Random(args.seed), [], []
    warnings.simplefilter("ignore")

    def audit(event: str, details: tuple[Any, ...]) -> None:
        if watching and event.startswith(SUSPECT) and event not in ("os.fstat", "os.listdir"):
            executed.append(f"{event} {details!r:.80}")

    counts = {"inputs": 0, "refused": 0, "harmless": 0}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "damaged.pm"
        originals = seeds(Path(folder))
        for original in originals:  # what is imported on the way is imported now
            file.write_bytes(original)
            load(file)
        sys.addaudithook(audit)
        for number in range(args.inputs):
            damage = with_bytes_changed if number % 2 else with_entries_changed
            file.write_bytes(damage(rng.choice(originals), rng))
            watching.append(True)
            try:
                counts["harmless"] += load(file) is not None
            except ModelFileError:
                counts["refused"] += 1
            finally:
                watching.clear()
                counts["inputs"] += 1
    print(json.dumps({**counts, "executed": executed}))
    return bool(executed)


if __name__ == "__main__":
    sys.exit(main())
