"""The code in README and user guide runs, page by page, from top to bottom, and prints what the page says."""

import codeop
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted((DOCS / "guide").glob("*.md")), *sorted((DOCS / "reproduction").glob("*.md"))]
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")


def blocks_and_outputs(text: str) -> list[tuple[str, str | None]]:
    """Return the fenced ``python`` blocks, each with the ``output`` block right behind it, if there is one.

    A console session or a sketch carries another label.
    """
    pattern = r"^```python\n(.*?)^```\n(?:\n```output\n(.*?)^```$)?"
    found = re.finditer(pattern, text + "\n", flags=re.MULTILINE | re.DOTALL)
    return [(match[1], match[2]) for match in found]


def same_output(printed: str, said: str) -> bool:
    """Whether words are equal, and numbers equal up to what other versions of libraries and processors change."""
    words = [NUMBER.sub("#", text).split() for text in (printed, said)]
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (printed, said)]
    return words[0] == words[1] and numbers[0] == pytest.approx(numbers[1], rel=0.1, abs=0.03)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks_and_outputs(p.read_text())], ids=lambda p: p.stem)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "__main__"}
    for block, said in blocks_and_outputs(page.read_text()):
        capsys.readouterr()
        exec(compile(block, str(page.name), "exec"), names)
        printed = capsys.readouterr().out
        assert said is None or same_output(printed, said), f"{page.name} says\n{said}\nand the code prints\n{printed}"


def test_a_wrong_output_is_noticed():
    said = "accuracy 0.85, epsilon 1e-05"
    assert same_output("accuracy  0.84, epsilon 1e-05", said)
    assert not same_output("accuracy 0.75, epsilon 1e-05", said)
    assert not same_output("gap 0.85, epsilon 1e-05", said)
    assert not same_output("accuracy 0.85", said)


@pytest.mark.parametrize("name", ["install", "tour", "what_epsilon_means"])
def test_pages_for_newcomers_show_what_is_printed(name):
    text = (DOCS / "guide" / f"{name}.md").read_text()
    for block, said in blocks_and_outputs(text):
        assert said or "print" not in block, f"{name}.md prints something and does not show it"


def test_tour_can_be_pasted_into_a_console():
    """A console of Python 3.11 takes a block of indented lines to end at an empty line, and nowhere else."""
    for block, _ in blocks_and_outputs((DOCS / "guide" / "tour.md").read_text()):
        lines: list[str] = []
        for line in [*block.splitlines(), ""]:
            lines.append(line)
            if codeop.compile_command("\n".join(lines), symbol="single"):  # raises where pasting would fail
                lines.clear()
        assert not lines, block


def test_every_output_belongs_to_a_block():
    for page in PAGES:
        text = page.read_text()
        shown = sum(said is not None for _, said in blocks_and_outputs(text))
        assert shown == len(re.findall(r"^```output$", text, flags=re.MULTILINE)), page.name


def test_readme_holds_an_example():
    assert blocks_and_outputs((ROOT / "README.md").read_text())


def test_links_between_documents_lead_somewhere():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def test_guide_pages_have_their_label_and_a_place():
    index = (DOCS / "guide" / "index.md").read_text().splitlines()
    for page in sorted((DOCS / "guide").glob("*.md")):
        if page.stem != "index":
            assert page.read_text().startswith(f"(guide-{page.stem.replace('_', '-')})=\n\n# "), page.name
            assert index.count(page.stem) == 1, f"{page.name} is not in the table of contents of the guide"
