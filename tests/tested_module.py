"""The compiled core of another compiler or with a sanitizer, in the place of the installed one."""

import sys
from importlib.util import module_from_spec, spec_from_file_location

NAMES_CORE = "POWERMEANS_TESTED_MODULE"


def load_core(path: str) -> None:
    """Load the core in a file, before `powermeans` is imported."""
    spec = spec_from_file_location("powermeans._native", path)
    assert spec
    assert spec.loader
    sys.modules["powermeans._native"] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules["powermeans._native"])
