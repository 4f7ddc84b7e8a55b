"""Jedi and pyright resolve the names that the package imports at their first use."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

import powermeans

SOURCE = Path(powermeans.__file__).parent
USE = """\
import powermeans
from powermeans import PowerKMeans, choose_k, plots
model = PowerKMeans(3).fit([[0.0]])
labels = model.predict([[0.0]])
choice = choose_k([[0.0]])
"""
MISUSE = USE + "powermeans.PowerKMaens\nchoice.recomended\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Any:
    """An environment that holds the package as a wheel installs it.

    The hook of an editable install hides the package from Jedi.
    """
    jedi = pytest.importorskip("jedi", reason="jedi, of the extra interop, is not installed")
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=sys.platform != "win32")
    # lib64 may be a link to lib.
    packages = min(folder.glob("[Ll]ib*/**/site-packages"))
    shutil.copytree(SOURCE, packages / "powermeans", ignore=shutil.ignore_patterns("__pycache__"))
    return jedi.create_environment(folder, safe=False)


def test_jedi_completes_names_methods_results_and_plots_and_shows_docstrings(installed):
    def script_of(line: str) -> Any:
        return pytest.importorskip("jedi").Script(USE + line, environment=installed)

    for line, names in {
        "powermeans.": powermeans.__all__,
        "model.": ["fit", "predict", "cluster_centers_"],
        "choice.": ["recommended", "table"],
        "plots.": powermeans.plots.__all__,
    }.items():
        assert {*names} <= {one.name for one in script_of(line).complete()}
    script = script_of("PowerKMeans(")
    (signature,) = script.get_signatures()
    assert [one.name for one in signature.params][:3] == ["n_clusters", "init", "n_init"]
    assert "Power k-means" in script.help(2, 30)[0].docstring()


def test_pyright_knows_the_names_and_reports_misspelt_ones(tmp_path) -> None:
    pytest.importorskip("basedpyright", reason="basedpyright, of the extra interop, is missing")
    file = tmp_path / "misuse.py"
    file.write_text(MISUSE)
    settings = {"extraPaths": [str(SOURCE.parent)], "include": ["misuse.py"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True).stdout
    errors = [
        one["range"]["start"]["line"] + 1
        for one in json.loads(found)["generalDiagnostics"]
        if one["rule"] == "reportAttributeAccessIssue"
    ]
    assert errors == [6, 7], found
