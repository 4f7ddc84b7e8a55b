"""Files as people have them are understood alone, or the command says what is in doubt."""

import re
from pathlib import Path

import pytest
from people.files import WRITERS, Planted, write_all
from sklearn.metrics import adjusted_rand_score, completeness_score
from tables.answers import column_of

from powermeans import read_frame
from powermeans_tables.command import failures

pytestmark = pytest.mark.filterwarnings("ignore::powermeans.errors.UnlikeScalesWarning")

# In which two groups differ by a department alone, and are found as one.
COARSER = {"employees.csv"}


def clusters_in(folder):
    (file,) = (each for each in folder.iterdir() if "clusters" in each.name)
    if file.suffix in (".parquet", ".xlsx", ".jsonl"):
        cells = read_frame(file)["cluster"].to_pylist()
    else:
        content = file.read_bytes()
        text = content.decode("utf-16" if b"\0" in content[:1000] else "latin-1")
        header = text.partition("\n")[0]
        mark = max(",;\t", key=header.count) if re.search("[,;\t]", header) else " "
        cells = column_of(text, mark=mark)
    return [-1 if cell in (None, "") else int(cell) for cell in cells]


@pytest.fixture(scope="session")
def planted(tmp_path_factory) -> dict[str, tuple[Path, Planted]]:
    folder = tmp_path_factory.mktemp("people")
    return {one.name: (folder / one.name, one) for one in write_all(folder)}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_alone_gives_its_groups_or_says_what_is_in_doubt(name, planted, run, tmp_path):
    path, right = planted[name]
    if not right.k:
        assert run("fit -q", path, code=failures.DATA).err.count("\n") == 1
        return
    run("fit -q", path)
    labels = clusters_in(tmp_path)
    assert len(labels) == len(right.groups)
    pairs = [pair for pair in zip(right.groups, labels, strict=True) if pair[0] >= 0]
    found = adjusted_rand_score(*zip(*pairs, strict=True))
    if name in COARSER:
        assert completeness_score(*zip(*pairs, strict=True)) >= 0.9
    else:
        assert found >= 0.9
        assert len(set(labels) - {-1}) == right.k
