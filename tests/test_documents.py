"""The code in README and user guide runs, page by page, from top to bottom."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted((DOCS / "guide").glob("*.md")), *sorted((DOCS / "reproduction").glob("*.md"))]


def python_blocks(text: str) -> list[str]:
    """Return the fenced ``python`` blocks; a console session or a sketch carries another label."""
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [p for p in PAGES if python_blocks(p.read_text())], ids=lambda p: p.stem)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "__main__"}
    for block in python_blocks(page.read_text()):
        exec(compile(block, str(page.name), "exec"), names)


def test_readme_holds_an_example():
    assert python_blocks((ROOT / "README.md").read_text())


def test_links_between_documents_lead_somewhere():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"
