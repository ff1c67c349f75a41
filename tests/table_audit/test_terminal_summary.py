"""What an audit writes on a terminal: progress, durations, colours, labels."""

import io
import math
import re

import pytest

from skfairdp.table_audit._terminal_summary import Progress, epsilon_text, printable, spoken_duration
from tests.table_audit._made_audits import LEAKY, TWINS, made_audit


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_tells_the_time_left():
    stream = Terminal()
    progress = Progress(100.0, stream=stream)
    progress._bar.start_t -= 10  # ten seconds ago
    progress.step(20.0, "leace")
    assert re.search(r"\[#+ +\]  20%  00:(39|40) left  leace", stream.getvalue())
    progress.step(80.0, "inlp")
    assert "100%  00:00 left  inlp" in stream.getvalue()
    progress.close()
    assert stream.getvalue().endswith("\r")  # the line is cleared


def test_progress_writes_lines_without_terminal():
    stream = io.StringIO()
    progress = Progress(10.0, stream=stream)
    progress._bar.start_t -= 4
    progress.step(5.0, "leace: tried candidate 1 of 1")
    assert stream.getvalue() == "leace: tried candidate 1 of 1  (4 s left)\n"
    silent = Progress(10.0, verbose=False, stream=(quiet := Terminal()))
    silent.step(5.0, "x")
    silent.close()
    assert quiet.getvalue() == ""


def test_durations():
    assert [spoken_duration(s) for s in (0.04, 0.96, 12, 89.4, 100, 3600, 9000)] == [
        "0.0 s", "1 s", "12 s", "89 s", "2 min", "60 min", "2.5 h",
    ]  # fmt: skip


def test_a_label_cannot_move_the_cursor():
    assert printable("a\x1b[2Jb\r\nc") == "a�[2Jb��c"
    assert epsilon_text(math.inf, math.nan) == "none"
    assert epsilon_text(8.0, 1e-5) == "8 (1e-05)"


def test_summary_has_verdict_checks_table_and_steps(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    result = made_audit(systems=("decision",), checks=(TWINS, LEAKY), assumed=True)
    text = " ".join(result.to_text().split())
    parts = [
        result.verdict.headline, "Before you trust this", "! The column 'stamp'", "- 12 rows", "Of the people whose",
        "--positive LABEL", "method accuracy balanced TPR gap 95%", "What to do next",
    ]  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert text.count("predicts hired almost alone") == 1
    header, *rows = [line for line in result.to_text().splitlines() if re.match(r"[* ] {2}\w", line)]
    names = [re.match(r"(.) {2}(.*?) {2}", line).groups() for line in rows]
    assert names == [(" ", "decision"), (" ", "trees"), (" ", "logistic"), ("*", "fair trees"),
                     (" ", "fair private trees"), (" ", "noise")]  # fmt: skip
    assert header.endswith("rows")
    assert "3,000 all" in rows[0]
    assert "900 test" in rows[1]


def test_only_a_terminal_gets_colours():
    result = made_audit()
    assert "\x1b" not in result.to_text()
    assert re.sub(r"\x1b\[\d+m", "", result.to_text(colour=True)) == result.to_text()


@pytest.mark.parametrize("shape", [{"undefined": True}, {"systems": ("decision",), "methods": ()}, {"n_groups": 8}])
def test_undefined_figures_are_a_dash(shape):
    text = made_audit(**shape).to_text()
    assert "nan" not in re.findall("[a-z]+", text)
    assert ("  -  " in text) == ("undefined" in shape)
