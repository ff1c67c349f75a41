"""Sphinx configuration. The API pages are written by ``_extensions/api_pages.py`` from the package itself."""

import os
import sys
from pathlib import Path

# Thread pools of parallel builds get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import skfairdp

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "skfairdp"
author = "the skfairdp developers"
copyright = "2026, the skfairdp developers"
version = release = skfairdp.__version__

extensions = [
    "api_pages",
    "myst_parser",
    "numpydoc",
    "offline_mathematics",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]

source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py", "**sg_execution_times.rst"]
myst_enable_extensions = ["attrs_inline", "dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

toc_object_entries_show_parents = "hide"
autosummary_generate = False  # api_pages writes them
autodoc_typehints = "none"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "reset_modules": ("matplotlib", "seaborn", "gallery_runs.quiet_and_offline"),
    "reset_modules_order": "both",
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_.*\.py",
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # its pages load scripts from elsewhere
    "download_all_examples": False,
    "ignore_repr_types": r"matplotlib|skfairdp\.inspection",  # the picture is shown, its name need not be
    "remove_config_comments": True,
    "within_subsection_order": "gallery_order.order_of_readme",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skfairdp",),
}

html_theme = "pydata_sphinx_theme"
html_title = "skfairdp"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_math_renderer = "offline"
html_sidebars = {"index": [], "changelog": [], "contributing": [], "reproduction": []}
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 6,
}
