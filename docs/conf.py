"""Sphinx configuration: the API pages are written from the package's own list of public names."""

import importlib.util
import inspect
import os
from pathlib import Path

# Thread pools of parallel builds get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import skfairdp

project = "skfairdp"
author = "the skfairdp developers"
copyright = "2026, the skfairdp developers"
version = release = skfairdp.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]

source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = True
numpydoc_show_inherited_class_members = False
numpydoc_class_members_toctree = False

# An example whose packages are not here is left out of the gallery.
_needs_dask = "" if importlib.util.find_spec("dask") else "|plot_dask"

sphinx_gallery_conf = {
    "ignore_pattern": rf"__init__\.py{_needs_dask}",
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_.*\.py",
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "within_subsection_order": "FileNameSortKey",
}

templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "skfairdp"
html_static_path = ["_static"]
html_sidebars = {"changelog": [], "contributing": [], "reproduction": []}
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
}

_TITLES = {
    "accounting": "What a release costs",
    "adversarial": "Private and fair classifiers",
    "epsilon_audit": "Attacking a guarantee",
    "dask": "Tables that a cluster holds",
    "datasets": "Data",
    "ensemble": "Teacher ensembles",
    "exceptions": "Warnings and errors",
    "inspection": "Pictures",
    "mechanisms": "What draws the noise",
    "metrics": "Metrics and scorers",
    "model_selection": "Choosing a model",
    "preprocessing": "Privatizers, encoders and erasers",
    "random": "Where randomness comes from",
    "release": "How a value leaves, and what a pipeline costs",
    "table_audit": "The audit of a table",
    "table_files": "Tables as files",
}


def _write_api_page(path: Path) -> None:
    """One table per folder, from its ``__all__``: a public name cannot be forgotten."""
    top = ", ".join(f"``{name}``" for name in skfairdp._HOME)
    lines = ["API", "===", "", f"What most people come for can be imported from ``skfairdp`` itself: {top}.", ""]
    for folder, title in _TITLES.items():
        module = importlib.import_module(f"skfairdp.{folder}")
        documented = [name for name in module.__all__ if inspect.getdoc(getattr(module, name))]
        heading = f"skfairdp.{folder}: {title}"
        lines += [heading, "-" * len(heading), "", f".. currentmodule:: skfairdp.{folder}", ""]
        lines += [".. autosummary::", "   :toctree: .", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in documented if callable(getattr(module, name))] + [""]
    path.parent.mkdir(exist_ok=True)
    pages = {f"skfairdp.{folder}.{name}" for folder in _TITLES for name in getattr(skfairdp, folder).__all__}
    for page in path.parent.glob("skfairdp.*.rst"):
        if page.stem not in pages:  # of a name that has moved
            page.unlink()
    text = "\n".join(lines)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


_write_api_page(Path(__file__).parent / "generated" / "api.rst")
