"""The tests of k-means that are installed with scikit-learn, with ours in the place of theirs."""

import importlib.util
import re
from pathlib import Path
from unittest import mock

import sklearn.cluster

import powermeans

SOURCE = Path(sklearn.cluster.__file__).parent / "tests" / "test_k_means.py"
REPLACED = {
    name: getattr(powermeans, name)
    for name in ("KMeans", "MiniBatchKMeans", "k_means", "kmeans_plusplus")
}


def load_tests() -> dict[str, object]:
    """The names of scikit-learn's test module after importing it with ours in their place."""
    spec = importlib.util.spec_from_file_location("sklearn_k_means_tests", SOURCE)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.multiple(sklearn.cluster, **REPLACED):
        spec.loader.exec_module(module)
    return vars(module)


THEIR_NAMES = load_tests()
globals().update({name: it for name, it in THEIR_NAMES.items() if not name.startswith("__")})


def test_ours_are_in_the_place_of_theirs_and_most_functions_run(request) -> None:
    for name, ours in REPLACED.items():
        assert THEIR_NAMES[name] is ours
    plugins = request.config.pluginmanager.get_plugins()
    left_out = next(plugin.DESELECTED for plugin in plugins if hasattr(plugin, "DESELECTED"))
    theirs = re.findall(r"^def (test_\w+)", SOURCE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name.partition("[")[0] for name in left_out} <= {*theirs}
    assert len({*theirs} - left_out) >= 40
