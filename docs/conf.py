"""Sphinx configuration: the API pages are written from the package's own list of public names."""

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

sphinx_gallery_conf = {
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
    "datasets": "Data",
    "ensemble": "Teacher ensembles",
    "exceptions": "Warnings and errors",
    "inspection": "Pictures",
    "metrics": "Metrics and scorers",
    "model_selection": "Choosing a model",
    "preprocessing": "Privatizers, encoders and erasers",
    "release": "How a value leaves, and what a pipeline costs",
    "table_audit": "The audit of a table",
}


def _write_api_page(path: Path) -> None:
    """One table per folder, from ``skfairdp._HOME``: a public name cannot be forgotten."""
    lines = ["API", "===", "", "Every name is reachable as ``skfairdp.Name`` too.", ""]
    for folder in sorted({*skfairdp._HOME.values()}):
        title = f"skfairdp.{folder}: {_TITLES[folder]}"
        names = [name for name, home in skfairdp._HOME.items() if home == folder]
        documented = [name for name in names if inspect.getdoc(getattr(skfairdp, name))]
        lines += [title, "-" * len(title), "", f".. currentmodule:: skfairdp.{folder}", ""]
        lines += [".. autosummary::", "   :toctree: .", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in documented] + [""]
    path.parent.mkdir(exist_ok=True)
    text = "\n".join(lines)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


_write_api_page(Path(__file__).parent / "generated" / "api.rst")
