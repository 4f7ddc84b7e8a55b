"""The public face: what is in it, where it comes from, and that it costs nothing until used."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import types
from pathlib import Path

import pytest

import powermeans

STUB = Path(powermeans.__file__).with_suffix(".pyi").read_text(encoding="utf-8")


def listed_in_stub() -> list[str]:
    """What the stub says is public, which type checkers go by."""
    (names,) = [
        ast.literal_eval(node.value)
        for node in ast.parse(STUB).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    return names


def test_what_is_public_is_what_the_stub_says() -> None:
    assert powermeans.__all__ == sorted(listed_in_stub())
    assert set(powermeans.__all__) <= set(dir(powermeans))


@pytest.mark.parametrize("name", powermeans.__all__)
def test_a_public_name_is_there_and_documented(name: str) -> None:
    assert inspect.getdoc(getattr(powermeans, name))


def test_a_function_is_not_hidden_by_the_module_of_its_name() -> None:
    import powermeans.critical_power
    import powermeans.report

    assert callable(powermeans.critical_power)
    assert callable(powermeans.report)


def test_a_module_of_the_package_is_found_and_what_is_not_there_is_not() -> None:
    assert isinstance(powermeans.power_mean, types.ModuleType)
    with pytest.raises(AttributeError, match="no attribute 'power_men'"):
        powermeans.power_men  # noqa: B018


def test_importing_the_package_imports_no_large_library() -> None:
    code = "import sys, powermeans; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    libraries = {"numpy", "scipy", "sklearn", "matplotlib", "pyarrow", "typer", "rich", "PIL"}
    assert not libraries & set(ended.stdout.split())


def test_a_limit_holds_although_the_package_is_imported_and_not_yet_used() -> None:
    code = (
        "import powermeans, threadpoolctl\n"
        "with threadpoolctl.threadpool_limits(1):\n"
        "    print(powermeans.rows.native.thread_limit())"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "1\n"
