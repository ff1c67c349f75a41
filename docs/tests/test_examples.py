"""Examples keep the gallery's form. The gallery runs them, without warnings and without a network (docs/conf.py)."""

import ast
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
each_example = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)


def faults_of_form(source):
    """Say what a reader of the gallery would miss in an example."""
    tree = ast.parse(source)
    title, line, *opening = (ast.get_docstring(tree) or "\n").split("\n")
    n_sentences = len(re.findall(r"[.?!](?:\s|$)", "\n".join(opening)))
    checks = {
        "no title": bool(title) and line == "=" * len(title),
        "the opening should have two to four sentences": 2 <= n_sentences <= 4,
        "no prose between code cells": source.count("\n# %%\n") >= 3,
        "the end is no picture": ast.unparse(tree.body[-1]) == "plt.show()",
        "the picture has no title": re.search(r"set_title\(|suptitle\(|title=", source) is not None,
        "a private name is used": re.search(r"skfairdp[\w.]*\._[a-z]|import _[a-z]", source) is None,
    }
    return [fault for fault, fine in checks.items() if not fine]


@each_example
def test_form(path):
    assert path.stem.startswith("plot_"), "the gallery runs and shows plot_*.py alone"
    assert not faults_of_form(path.read_text())


def test_faults_of_form_are_found():
    bad = '"""\nTitle\n===\n\nOne sentence.\n"""\nfrom skfairdp.metrics._leakage import leakage_score\nprint(1)\n'
    assert len(faults_of_form(bad)) == 6


def test_readme_links_only_to_what_exists():
    linked = set(re.findall(r"sphx_glr_auto_examples_(\w+)\.py", (FOLDER / "README.rst").read_text()))
    assert linked
    assert linked <= {path.stem for path in EXAMPLES}
