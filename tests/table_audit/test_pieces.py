"""The small parts: conditions, progress, names, pictures, tables on a terminal."""

import io
import itertools
import math

import pandas as pd
import pytest

from skfairdp.table_audit._fail_conditions import METRICS, FailCondition
from skfairdp.table_audit._terminal_summary import Progress, duration
from skfairdp.table_files import read_table
from skfairdp.table_audit._svg import Scale, place_labels, shortened, tag, ticks
from skfairdp.table_audit._terminal_summary import epsilon_text, has_colour, printable


class Result:
    best = "leace"
    table = pd.DataFrame(
        {"tpr_gap": [0.2, 0.04, math.nan], "accuracy": [0.9, 0.8, 0.7], "epsilon": [math.inf, math.inf, 8.0]},
        index=["unconstrained", "leace", "my model"],
    )


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("tpr_gap > 0.03", True),
        ("tpr_gap>0.05", False),
        ("tpr_gap >= 0.04", True),
        ("tpr_gap != 0.04", False),
        ("accuracy < 0.85", True),
        ("unconstrained: accuracy < 0.85", False),
        ("epsilon > 10", True),
        ("my model: epsilon > 10", False),
        ("my model: tpr_gap > 0.5", True),  # what is undefined cannot pass
        ("epsilon == inf", True),
    ],
)
def test_conditions(text, holds):
    assert (FailCondition.parse(text).reason_to_fail(Result) is not None) == holds


@pytest.mark.parametrize("text", ["", "tpr_gap", "tpr_gap >", "> 0.5", "tpr_gap > nan", "tpr_gap > x", "a b > 1"])
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(ValueError, match=r"is no condition|there is no metric"):
        FailCondition.parse(text)


def test_wrong_names_in_conditions_are_refused():
    with pytest.raises(ValueError, match="Did you mean 'tpr_gap'"):
        FailCondition.parse("tprgap > 0.1")
    with pytest.raises(ValueError, match="Did you mean 'unconstrained'"):
        FailCondition.parse("unconstraint: accuracy > 0.1").reason_to_fail(Result)
    with pytest.raises(ValueError, match="there is no metric 'grms'"):
        FailCondition.parse("grms > 0.1").reason_to_fail(Result)


def test_every_metric_of_a_condition_is_a_column_of_an_audit():
    from skfairdp import audit_table
    from skfairdp.datasets import make_biased_classification

    for n_classes in (2, 3):
        frame = make_biased_classification(150, 4, n_classes=n_classes, as_frame=True, random_state=0).frame
        result = audit_table(
            frame, target="target", sensitive="group", methods=["leace"], random_state=0, verbose=False
        )
        missing = {name for name in METRICS if name not in result.table}
        other = "grms" if n_classes == 2 else "tpr_gap"
        assert missing == {other, f"{other}_lower", f"{other}_upper"}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_tells_the_time_left(monkeypatch):
    clock = iter([0.0, 10.0, 20.0, 20.0])
    monkeypatch.setattr("skfairdp.table_audit._progress.time.monotonic", lambda: next(clock))
    stream = Terminal()
    progress = Progress(100.0, stream=stream)
    progress.step(20.0, "leace")
    assert " 20%  40 s left  leace" in stream.getvalue()
    progress.step(60.0, "inlp")
    assert " 80%  5 s left  inlp" in stream.getvalue()
    progress.close()
    assert stream.getvalue().endswith("\r\x1b[2K")


def test_progress_writes_lines_where_nothing_can_be_redrawn():
    stream = io.StringIO()
    progress = Progress(10.0, stream=stream)
    progress.step(5.0, "leace")
    progress.say("leace: chosen")
    assert stream.getvalue().startswith("leace: chosen  (")
    assert "\x1b" not in stream.getvalue()
    silent = Progress(10.0, verbose=False, stream=(quiet := Terminal()))
    silent.step(5.0, "x")
    silent.say("x")
    silent.close()
    assert quiet.getvalue() == ""


def test_durations_are_said_as_people_do():
    assert [duration(s) for s in (0.04, 0.96, 12, 89.4, 100, 3600, 9000)] == [
        "0.0 s", "1 s", "12 s", "89 s", "2 min", "60 min", "2.5 h",
    ]  # fmt: skip


def test_colour_only_on_a_terminal(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert has_colour(Terminal())
    assert not has_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not has_colour(Terminal())


def test_a_label_cannot_move_the_cursor():
    assert printable("a\x1b[2Jb\r\nc") == "a�[2Jb��c"
    assert epsilon_text(math.inf, math.nan) == "none"
    assert epsilon_text(8.0, 1e-5) == "8 (1e-05)"


def test_elements_escape_what_comes_from_outside():
    assert tag("text", "<b>&\"'", class_='x" onload="y', x=1.50) == (
        '<text class="x&quot; onload=&quot;y" x="1.5">&lt;b&gt;&amp;&quot;&#x27;</text>'
    )


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.831, 0.845), (0, 0.02), (-3, 1000)])
def test_ticks_are_round_and_inside(low, high):
    found = ticks(low, high)
    assert 3 <= len(found) <= 8
    assert all(low - 1e-9 <= value <= high + 1e-9 for value in found)
    steps = {round(b - a, 12) for a, b in itertools.pairwise(found)}
    assert len(steps) == 1


def test_labels_do_not_hide_each_other():
    points = [
        (300.0, 200.0, "unconstrained"),
        (305.0, 206.0, "federate"),
        (296.0, 195.0, "noise"),
        (300.0, 190.0, "pate"),
    ]
    placed = place_labels(points, (0, 0, 700, 400))
    boxes = []
    for (x, y, anchor), (_, _, text) in zip(placed, points):
        width = 6.7 * len(text)
        left = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
        boxes.append((left, y - 12, left + width, y + 3))
    for a, b in itertools.combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_scales_and_short_names():
    assert Scale(0, 10, 100, 200)(5) == 150
    assert Scale(3, 3, 100, 200)(3) == 150
    assert shortened("a" * 50, 67) == "a" * 9 + "…"


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found(tmp_path, separator):
    path = tmp_path / "table.csv"
    path.write_text("\ufeff" + separator.join(["first name", "b", "c"]) + "\n" + separator.join(["x", "?", "3"]) + "\n")
    frame = read_table(path)
    assert list(frame) == ["first name", "b", "c"]
    assert frame["b"].isna().all()
    assert frame["c"].tolist() == [3]


def test_parquet_without_pyarrow_is_told(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(ValueError, match="Parquet needs pyarrow"):
        read_table(tmp_path / "t.parquet")
