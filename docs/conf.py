from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.autosummary.generate import generate_autosummary_docs
from sphinx_gallery.sorting import ExplicitOrder

import powermeans

sys.path.insert(0, str(Path(__file__).parent))
import divergence_tables

project = "powermeans"
author = "The powermeans developers"
project_copyright = "2026, The powermeans developers"
release = version = powermeans.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "matplotlib.sphinxext.plot_directive",
    "sphinx-mathjax-offline",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
add_module_names = False
toc_object_entries_show_parents = "hide"
default_role = "py:obj"

myst_enable_extensions = ["dollarmath", "colon_fence", "substitution"]
myst_substitutions = {
    "divergences_by_differences": divergence_tables.by_differences(),
    "divergences_by_abilities": divergence_tables.by_abilities(),
}
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "inherited-members": True}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# With it, napoleon keeps the underscore at the end of the name of an attribute.
strip_signature_backslash = True

plot_formats = [("png", 160)]
plot_html_show_formats = False
plot_html_show_source_link = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "subsection_order": ExplicitOrder(
        [f"../examples/{section}" for section in ("answers", "data", "inside", "large")]
    ),
    "within_subsection_order": "FileNameSortKey",
    "doc_module": "powermeans",
    "reference_url": {"powermeans": None},
    "abort_on_example_error": True,
    "show_memory": False,
    "download_all_examples": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "powermeans"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
# The first page stands beside no others, and the list of all names repeats none.
html_sidebars = {page: [] for page in ("index", "api")}
html_theme_options = {
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 7,
}

# Methods that scikit-learn adds to every estimator; their text refers to its own documentation.
SCIKIT_LEARNS_OWN = re.compile(r"get_metadata_routing|set_output|set_\w+_request")


def skip_member(
    app: Sphinx, kind: str, name: str, member: object, skip: bool, options: object
) -> bool | None:
    return True if SCIKIT_LEARNS_OWN.fullmatch(name) else None


# Sphinx would look for links in the names of a shape.
SHAPE = re.compile(r"(?<=of shape )\([^()`]*\)|(?<=: )\(\w+_,\)")
# Attributes that share a line of a docstring: Sphinx would take all but the last for its type.
SHARED = re.compile(r"\w+_(, \w+_)+")


def quote_shapes(
    app: Sphinx, kind: str, name: str, member: object, options: object, lines: list[str]
) -> None:
    lines[:] = [SHAPE.sub(r"``\g<0>``", line) for line in lines]
    for at in reversed(range(len(lines) - 1)):
        if SHARED.fullmatch(lines[at]):
            own = [[name, lines[at + 1]] for name in lines[at].split(", ")]
            lines[at : at + 2] = [line for pair in own for line in pair]


# The reference lists what a module says of itself: a line for each class or name.
LISTED = re.compile(r"^   @([\w.]+)\.(\w+)$", re.MULTILINE)


def with_names(text: str) -> str:
    def lines(found: re.Match[str]) -> str:
        names = getattr(importlib.import_module(found[1]), found[2])
        return "\n".join(f"   {getattr(name, '__name__', name)}" for name in names)

    return LISTED.sub(lines, text)


def list_names(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = with_names(source[0])


def write_pages_of_names(app: Sphinx) -> None:
    """Write what autosummary writes for names that stand on the page itself."""
    listed = Path(app.doctreedir, "api.md")
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.write_text(with_names(Path(app.srcdir, "api.md").read_text(encoding="utf-8")), "utf-8")
    generate_autosummary_docs([str(listed)], output_dir=Path(app.srcdir, "api"), app=app)


def find_without_module(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """Resolve a public name without its module, as docstrings write it."""
    named, python = node.get("reftarget"), env.domains["py"]
    found = [
        name
        for name, entry in python.objects.items()
        if entry.objtype in ("class", "function", "exception") and name.rpartition(".")[2] == named
    ]
    if node.get("refdomain") != "py" or len(found) != 1:
        return None
    page, kind = node["refdoc"], node["reftype"]
    return python.resolve_xref(env, page, app.builder, kind, found[0], node, content)


# viewcode takes all names of a file to be documented in the module of one of them.
LINK_BACK = re.compile(r"/api/([\w.]+)\.(\w+)\.html#(?:\w+\.)+?\2(?=[.\"])(?!\.\2\b)")


def correct_links_back(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    if page.startswith("_modules/") and "body" in context:
        context["body"] = LINK_BACK.sub(r"/api/\1.\2.html#\1.\2", context["body"])


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", correct_links_back)
    app.connect("missing-reference", find_without_module)
    app.connect("builder-inited", write_pages_of_names)
    app.connect("source-read", list_names)
    app.connect("autodoc-process-docstring", quote_shapes, priority=100)
    app.connect("autodoc-skip-member", skip_member)
