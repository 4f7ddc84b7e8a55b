"""The code of a former commit, built as users install it, into a folder of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILDS = ROOT / "build" / "former"


def commit_of(ref: str) -> str:
    """The full name of a commit; what git does not know ends the program."""
    commit = commit_if_known(ref)
    if commit is None:
        raise SystemExit(f"git knows no commit {ref!r}: pass another to --former, or none")
    return commit


def commit_if_known(ref: str) -> str | None:
    found = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return found.stdout.strip() if found.returncode == 0 else None


def installed(commit: str) -> Path:
    """The folder in which a commit is installed; it is built if it is not there yet."""
    folder = BUILDS / commit[:12]
    if not folder.is_dir():
        source, unfinished = BUILDS / "source", BUILDS / "unfinished"
        for leftover in (source, unfinished):
            shutil.rmtree(leftover, ignore_errors=True)
        source.mkdir(parents=True)
        print(f"building {commit[:12]}", flush=True)
        archive = subprocess.run(
            ["git", "archive", commit], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "-x", "-C", str(source)], input=archive.stdout, check=True)
        subprocess.run([*PIP, "--target", str(unfinished), str(source)], check=True)
        unfinished.rename(folder)
        shutil.rmtree(source)
    return folder


PIP = [
    *(sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"),
    *("--no-build-isolation", "--no-deps"),
]
