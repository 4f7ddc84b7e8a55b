"""The public face: what is in it, where it comes from, and that it costs nothing until used."""

from __future__ import annotations

import ast
import email.message
import importlib
import inspect
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import types
import venv
from pathlib import Path
from typing import Any

import pytest

import powermeans
from powermeans import divergences, plots

API = (Path(__file__).parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
PACKAGE = Path(powermeans.__file__).parent
SOURCE = Path(powermeans.__file__).read_text(encoding="utf-8")


def modules_for_type_checkers(source: str = SOURCE) -> dict[str, str | None]:
    """The names that type checkers take as exported by the package, and from where."""
    (block,) = [
        node.body
        for node in ast.parse(source).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {
        alias.name: node.module
        for node in block
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }


def in_the_reference() -> list[str]:
    """The full names of what the reference lists, by the directives of its page."""
    found, module = [], ""
    for line in API.splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   \w+", line):
            found.append(f"{module}.{line.strip()}")
        elif line.startswith("   @"):
            names = object_named(line.removeprefix("   @"))
            found += [f"{module}.{getattr(name, '__name__', name)}" for name in names]
    return found


def object_named(name: str) -> Any:
    """What a full name stands for; a module comes before what it hides."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def public_objects() -> dict[str, Any]:
    """What is public by its full name, but for modules, whose own names are."""
    found = {f"powermeans.{name}": getattr(powermeans, name) for name in powermeans.__all__}
    for module in (plots, divergences):
        found |= {f"{module.__name__}.{name}": getattr(module, name) for name in module.__all__}
    return {name: face for name, face in found.items() if not isinstance(face, types.ModuleType)}


def section(docstring: str, title: str) -> str:
    """What stands below a title, up to the next."""
    _, _, rest = f"\n{docstring}\n".partition(f"\n{title}\n{'-' * len(title)}\n")
    return re.split(r"\n\S[^\n]*\n---+\n", rest)[0]


def entries(docstring: str, title: str) -> list[str]:
    """The entries of a section, each with the lines that are set in below it."""
    return re.findall(r"^\S.*\n?(?:^(?: +.*)?\n?)*", section(docstring, title), re.MULTILINE)


def lacks(docstring: str) -> list[str]:
    """What a page of the reference must have and this docstring has not."""
    first, *others = docstring.split("\n")
    wanted = {
        "one line that says what it is": first.endswith(".") and not any(others[:1]),
        "an example": ">>> " in section(docstring, "Examples"),
        "a reference": bool(entries(docstring, "See Also")),
        "shapes": all(
            re.search(r"shape|\(n_|s in `|s from `", entry)
            for title in ("Parameters", "Attributes")
            for entry in entries(docstring, title)
            if re.search(r"ndarray|array-like", entry.partition("\n")[0])
        ),
    }
    return [what for what, is_there in wanted.items() if not is_there]


def referred_to(name: str) -> list[str]:
    """The names in the See Also of a public name."""
    found = entries(inspect.getdoc(object_named(name)) or "", "See Also")
    return [entry.partition(" : ")[0].strip() for entry in found]


def is_found_from(name: str, reference: str) -> bool:
    """Whether a reference leads to a page of ours, or to something of another package."""
    pages = in_the_reference()
    for target in (f"{name.rpartition('.')[0]}.{reference}", reference):
        if target in pages or target.rpartition(".")[0] in pages:
            return True
    try:
        return not reference.startswith("powermeans") and bool(pkgutil.resolve_name(reference))
    except (ImportError, AttributeError, ValueError):
        return False


def test_type_checkers_find_each_public_name_where_python_does() -> None:
    folders = dict.fromkeys(("datasets", "plots"), "powermeans")
    assert modules_for_type_checkers() == powermeans._MODULE_OF | folders
    assert powermeans.__all__ == sorted(modules_for_type_checkers())
    assert set(powermeans.__all__) <= set(dir(powermeans))


def test_all_that_is_public_is_in_the_reference() -> None:
    listed = {id(object_named(name)) for name in in_the_reference()}
    assert [name for name, face in public_objects().items() if id(face) not in listed] == []


def test_a_page_of_the_reference_has_what_one_looks_for_and_its_references_lead_somewhere() -> None:
    for name in in_the_reference():
        assert lacks(inspect.getdoc(object_named(name)) or "") == [], name
        assert [to for to in referred_to(name) if not is_found_from(name, to)] == [], name


def test_these_checks_can_fail() -> None:
    hidden = SOURCE.replace("import KMeans as KMeans", "import KMeans")
    assert modules_for_type_checkers().keys() - modules_for_type_checkers(hidden) == {"KMeans"}
    whole = inspect.getdoc(powermeans.PowerKMeans) or ""
    for cut, lacking in (
        (whole.replace("See Also\n---", "Seen Also\n---"), ["a reference"]),
        (whole.replace(">>> ", ""), ["an example"]),
        (whole.replace(" of shape (n_clusters, n_features)", ""), ["shapes"]),
        (whole.replace("\n", " ", 1), ["one line that says what it is"]),
    ):
        assert lacks(cut) == lacking
    names = ("quality_ratio", "sklearn.cluster.KMeans", "KMeans", "sklearn.cluster.NoMeans")
    found = [is_found_from("powermeans.metrics.centroid_index", name) for name in names]
    assert found == [True, True, False, False]


def test_a_function_is_not_hidden_by_the_module_of_its_name() -> None:
    import powermeans.app.report.report
    import powermeans.mathematics.critical_power

    assert callable(powermeans.critical_power)
    assert callable(powermeans.report)


IMPORTED = """
import sys, powermeans
print(*sorted({m.partition(".")[0] for m in sys.modules}))
powermeans.datasets.names()
print("sklearn" in sys.modules)
import threadpoolctl
with threadpoolctl.threadpool_limits(1):
    from powermeans.points.compiled import thread_limit
    print(thread_limit())
powermeans.plots.clusters
print("matplotlib" in sys.modules)
powermeans.KMeans(1).fit([[1.0]])
print("dask" in sys.modules)
"""


def test_importing_the_package_imports_no_large_library_and_a_limit_before_its_use_holds() -> None:
    # A limit to the number that would be taken anyway is no limit: hence another number here.
    environment = {**os.environ, "POWERMEANS_NUM_THREADS": "3"}
    command = [sys.executable, "-c", IMPORTED]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    imported, *others = ended.stdout.splitlines()
    libraries = {"numpy", "scipy", "sklearn", "matplotlib", "pyarrow", "typer", "rich", "PIL"}
    assert not libraries & {*imported.split()}
    assert others == ["False", "1", "False", "False"]


def test_the_picture_of_an_estimator_links_to_the_page_of_its_class(monkeypatch) -> None:
    about = email.message.Message()
    about["Project-URL"] = "Source, https://code.example/"
    monkeypatch.setattr("powermeans.estimators.base.metadata", lambda name: about)
    models = [powermeans.PowerKMeans(), powermeans.KernelPowerKMeans()]
    models.append(powermeans.SpectralClustering())
    assert [model._get_doc_link() for model in models] == ["", "", ""]
    about["Project-URL"] = "Documentation, https://docs.example/latest/"
    for model in models:
        link = f"https://docs.example/latest/api/powermeans.{type(model).__name__}.html"
        assert link in model._repr_html_()


# Editors, which resolve the names that the package imports at their first use.

USE = """\
import powermeans
from powermeans import PowerKMeans, choose_k, plots
model = PowerKMeans(3).fit([[0.0]])
labels = model.predict([[0.0]])
choice = choose_k([[0.0]])
"""
MISUSE = USE + "powermeans.PowerKMaens\nchoice.recomended\n"


def test_jedi_completes_names_methods_results_and_plots_and_shows_docstrings(tmp_path) -> None:
    jedi = pytest.importorskip("jedi", reason="jedi, of the extra interop, is not installed")
    # As a wheel installs it: the hook of an editable install hides the package from Jedi.
    venv.create(tmp_path, symlinks=sys.platform != "win32")
    packages = min(tmp_path.glob("[Ll]ib*/**/site-packages"))  # lib64 may be a link to lib
    shutil.copytree(PACKAGE, packages / "powermeans", ignore=shutil.ignore_patterns("__pycache__"))
    installed = jedi.create_environment(tmp_path, safe=False)

    def script_of(line: str) -> Any:
        return jedi.Script(USE + line, environment=installed)

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
    settings = {"extraPaths": [str(PACKAGE.parent)], "include": ["misuse.py"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True).stdout
    errors = [
        one["range"]["start"]["line"] + 1
        for one in json.loads(found)["generalDiagnostics"]
        if one["rule"] == "reportAttributeAccessIssue"
    ]
    assert errors == [6, 7], found
