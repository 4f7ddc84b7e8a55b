"""Try the command on files as people have them, and print what came of each.

Run `python -m people` in the folder of tests. A file is right where the adjusted Rand index with
the planted groups is at least 0.9 and k is the planted one. One that cannot be clustered is right
where the command says so.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from people.files import Planted, write_all
from sklearn.metrics import adjusted_rand_score
from tables.answers import column_of

from powermeans import read_frame


def clusters_in(folder: Path) -> list[int]:
    """Return the column of clusters of the only file that was written for the rows."""
    (file,) = (each for each in folder.iterdir() if "clusters" in each.name)
    cells: Sequence[Any]
    if file.suffix in (".parquet", ".xlsx", ".jsonl"):
        cells = read_frame(file)["cluster"].to_pylist()
    else:
        content = file.read_bytes()
        text = content.decode("utf-16" if b"\0" in content[:1000] else "latin-1")
        header = text.partition("\n")[0]
        mark = max(",;\t", key=header.count) if re.search("[,;\t]", header) else " "
        cells = column_of(text, mark=mark)
    return [-1 if cell in (None, "") else int(cell) for cell in cells]


def tried(planted: Planted, data: Path, python: str) -> dict[str, object]:
    """Run the command in a folder of its own, and judge its answer."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        command = [python, "-m", "powermeans", "fit", str(data / planted.name), "-q"]
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - started
        said = (ended.stderr or ended.stdout).strip()
        found = {"file": planted.name, "code": ended.returncode, "seconds": round(seconds, 1)}
        if ended.returncode:
            return found | {"k": 0, "ari": 0.0, "is_right": planted.k == 0, "said": said}
        labels = clusters_in(Path(folder))
    pairs = [(g, c) for g, c in zip(planted.groups, labels, strict=False) if g >= 0]
    ari = adjusted_rand_score(*zip(*pairs, strict=True)) if pairs else 0.0
    k = len({label for label in labels if label >= 0})
    return found | {
        "k": k,
        "ari": round(ari, 3),
        "is_right": k == planted.k and ari >= 0.9,
        "said": (ended.stdout + ended.stderr).strip(),
    }


def main() -> None:
    """Print a line for each file, with all that was said on request."""
    parser = argparse.ArgumentParser(description="Try the command on files as people have them.")
    parser.add_argument("--files", nargs="*", help="of these names only")
    parser.add_argument("--verbose", action="store_true", help="print what the command said")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--python", default=sys.executable, help="which has the package")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        chosen = [one for one in write_all(data) if not asked.files or one.name in asked.files]
        results = []
        for planted in chosen:
            found = tried(planted, data, asked.python)
            results.append(found)
            wanted = f"k {planted.k}" if planted.k else "a refusal"
            mark = "right" if found["is_right"] else "WRONG"
            line = f"{mark:6}{planted.name:24} {wanted:10} k {found['k']:<3} {found['ari']:<6}"
            print(f"{line} {found['seconds']} s", flush=True)
            if asked.verbose or (found["code"] and not asked.json):
                print("    " + str(found["said"]).replace("\n", "\n    "), flush=True)
    n_right = sum(bool(found["is_right"]) for found in results)
    print(f"{n_right} of {len(results)} right")
    if asked.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
