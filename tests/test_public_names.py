"""The public face: what is in it, where it comes from, and that it costs nothing until used."""

import ast
import email.message
import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from problems import output_of

import powermeans
from powermeans import divergences, plots
from powermeans.methods import KernelPowerKMeans, SpectralClustering
from powermeans.system.attributes import public_module

API = (Path(__file__).parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
PACKAGE = Path(powermeans.__file__).parent
SOURCE = Path(powermeans.__file__).read_text(encoding="utf-8")


def modules_for_type_checkers() -> dict[str, str | None]:
    """The names that type checkers take as exported by the package, and from where."""
    (block,) = [
        node.body
        for node in ast.parse(SOURCE).body
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


def is_found_from(name: str, reference: str) -> bool:
    """Whether a reference leads to a page of ours, or to something of another package."""
    pages = in_the_reference()
    for target in (f"{name.rpartition('.')[0]}.{reference}", reference):
        if target in pages or target.rpartition(".")[0] in pages:
            return True
    if [page.rpartition(".")[2] for page in pages].count(reference) == 1:
        return True
    try:
        return not reference.startswith("powermeans") and bool(pkgutil.resolve_name(reference))
    except (ImportError, AttributeError, ValueError):
        return False


def test_names_are_found_by_type_checkers_and_in_the_reference() -> None:
    namespaces = dict.fromkeys(powermeans._NAMESPACES, "powermeans")
    assert modules_for_type_checkers() == powermeans._MODULE_OF | namespaces
    assert powermeans.__all__ == sorted(modules_for_type_checkers())
    assert set(powermeans.__all__) <= set(dir(powermeans))
    for module in ("datasets", "mathematics.critical_power"):
        importlib.import_module(f"powermeans.{module}")
    assert callable(powermeans.critical_power)
    assert callable(powermeans.report)
    listed = {id(object_named(name)) for name in in_the_reference()}
    assert [name for name, face in public_objects().items() if id(face) not in listed] == []
    for name in in_the_reference():
        docstring = inspect.getdoc(object_named(name)) or ""
        assert lacks(docstring) == [], name
        to = [entry.partition(" : ")[0].strip() for entry in entries(docstring, "See Also")]
        assert [one for one in to if not is_found_from(name, one)] == [], name
        if section(docstring, "Parameters"):  # `help` shows annotations as they are written
            assert "numpy._typing" not in str(inspect.signature(object_named(name))), name


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
print(bool({"dask", "torch"} & {*sys.modules}))
"""


def test_importing_the_package_imports_no_large_library_and_a_limit_before_its_use_holds() -> None:
    # A limit to the number that would be taken anyway is no limit: hence another number here.
    imported, *others = output_of(IMPORTED, POWERMEANS_NUM_THREADS="3").splitlines()
    libraries = {"numpy", "scipy", "sklearn", "matplotlib", "pyarrow", "typer", "rich", "PIL"}
    assert not libraries & {*imported.split()}
    assert others == ["False", "1", "False", "False"]


def test_importing_an_estimator_imports_nothing_that_only_some_fits_need() -> None:
    command = [sys.executable, "-X", "importtime", "-c", "from powermeans import PowerKMeans"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "powermeans.engine.search.search" in imported
    rooms = {name.split(".")[1] for name in imported if name.startswith("powermeans.")}
    late = {"choosing_k", "datasets", "explaining", "plots", "saving", "scale"}
    assert not rooms & (late | {"tensors"})
    assert not {name for name in imported if name.startswith("powermeans_tables")}
    assert not imported & {"powermeans.optimality.proof", "sklearn.cluster", "sklearn.metrics"}


def test_the_picture_of_an_estimator_links_to_the_page_of_its_class(monkeypatch) -> None:
    about = email.message.Message()
    about["Project-URL"] = "Source, https://code.example/"
    monkeypatch.setattr("powermeans.methods.documented.metadata", lambda name: about)
    models = [powermeans.PowerKMeans(), KernelPowerKMeans()]
    models.append(SpectralClustering())
    assert [model._get_doc_link() for model in models] == ["", "", ""]
    about["Project-URL"] = "Documentation, https://docs.example/latest/"
    for model in models:
        name = f"{public_module(type(model))}.{type(model).__name__}"
        assert f"https://docs.example/latest/api/{name}.html" in model._repr_html_()


MISUSE = """\
import powermeans
from powermeans import PowerKMeans, choose_k, plots
PowerKMeans(3).fit([[0.0]]).predict([[0.0]])
powermeans.PowerKMaens
choose_k([[0.0]]).recomended
"""


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
    assert errors == [4, 5], found
