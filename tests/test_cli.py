"""The command line: what a person types, and what comes back."""

import contextlib
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

from skfairdp import PrivacyLedger, audit_table, cli, tpr_gap
from skfairdp._cli_options import METHODS_SHOWN
from skfairdp.cli import main
from skfairdp.datasets import make_biased_classification
from skfairdp.metrics import _attackers, leakage_report
from skfairdp.random import random_stream
from skfairdp.table_audit._methods_compared import METHODS, method_names
from skfairdp.table_audit._prepared_table import hold_out, prepare_table
from skfairdp.table_files import _privatize_file

HEADER = (
    "age, workclass, fnlwgt, education, education-num, marital-status, occupation, relationship, race, sex, "
    "capital-gain, capital-loss, hours-per-week, native-country, income"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def cheap_attackers(monkeypatch):
    """Two attackers that train nothing costly: which ones an audit has is tested elsewhere."""
    monkeypatch.setattr(_attackers, "POOL", ("linear", "neighbors"))


@pytest.fixture(autouse=True)
def handler():
    """The command takes over SIGTERM; the tests give it back."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def table(path, n=200, **columns):
    frame = make_biased_classification(n, 4, as_frame=True, random_state=0).frame.assign(**columns)
    frame.to_csv(path, index=False, sep="\t" if ".tsv" in path else ",")
    return frame


def run(capsys, *arguments):
    with contextlib.suppress(SystemExit) as _:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err
    out, err = capsys.readouterr()
    return 2, out, err


FAST = ("--target", "target", "--sensitive", "group", "--methods", "leace", "--quiet", "--seed", "0")


def test_help_reads_well(capsys):
    for arguments in (["--help"], ["audit", "--help"], ["demo", "--help"], ["privatize", "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
        assert "exit codes:" in capsys.readouterr().out
    assert main([]) == 0
    assert "audit" in capsys.readouterr().out


def test_colour_only_on_a_terminal(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert cli._has_colour(terminal)
    assert not cli._has_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not cli._has_colour(terminal)


def test_help_names_every_method():
    """Those of an audit without --methods first, then the others."""
    assert re.split(", |; ", METHODS_SHOWN) == list(METHODS)
    assert METHODS_SHOWN.split("; ")[0].split(", ") == method_names()


@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz"])
def test_an_audit_writes_report_and_json(folder, capsys, name):
    table(name)
    code, out, err = run(capsys, "audit", name, *FAST, "--out", "r.html", "--json", "r.json")
    assert (code, err) == (0, "")
    assert "\x1b" not in out  # no terminal, no colours
    assert re.search(r"^\* +leace +0\.\d+", out, re.M)
    assert f"report: {folder / 'r.html'}" in out
    document = json.loads(Path("r.json").read_text())
    assert document["best"] == "leace"
    assert f"Audit of {name}" in Path("r.html").read_text()


def test_parquet_is_read(folder, capsys):
    pytest.importorskip("pyarrow")
    table("t.csv").to_parquet("t.parquet")
    assert run(capsys, "audit", "t.parquet", *FAST)[0] == 0


def test_the_command_in_the_report_repeats_it(folder, capsys):
    table("a table.csv")
    run(capsys, "audit", "a table.csv", "--target", "target", "--sensitive", "group", "--methods", "leace", "--quiet",
        "--json", "one.json")  # fmt: skip
    first = json.loads(Path("one.json").read_text())
    assert first["command"].startswith("skfairdp audit 'a table.csv' --target target --sensitive group")
    import shlex

    run(capsys, *shlex.split(first["command"])[1:], "--quiet", "--json", "two.json")
    second = json.loads(Path("two.json").read_text())
    assert first["settings"] == second["settings"]
    for one, two in zip(first["table"], second["table"]):
        assert {k: v for k, v in one.items() if "seconds" not in k} == {
            k: v for k, v in two.items() if "seconds" not in k
        }


def test_fail_conditions_decide_the_exit_code(folder, capsys):
    table("t.csv")
    code, _, err = run(capsys, "audit", "t.csv", *FAST, "--fail-if", "accuracy > 0.1", "--fail-if", "epsilon < 1")
    assert code == 1
    assert re.fullmatch(r"skfairdp: failed: accuracy of leace is 0\.\d+, and > 0\.1 was forbidden\n", err)
    assert run(capsys, "audit", "t.csv", *FAST, "--fail-if", "accuracy < 0.1")[0] == 0
    assert Path("skfairdp-report.html").exists()
    code, _, err = run(capsys, "audit", "t.csv", *FAST, "--fail-if", "acuracy < 0.1")
    assert code == 2
    assert "'accuracy'" in err


def write(*texts):
    Path("t.csv").write_text("".join(texts))


def write_junk(path):
    Path(path).write_bytes(np.random.default_rng(0).bytes(5000))


def constant_target():
    table("t.csv", target=1)


def hostile_inputs():
    """Name, what makes the file, further arguments, and what the line must say."""
    return {
        "empty file": (lambda: Path("t.csv").write_bytes(b""), "t.csv is empty"),
        "only a header": (lambda: Path("t.csv").write_text("target,group,x\n"), " 0 rows"),
        "only spaces": (lambda: Path("t.csv").write_text("\n\n\n"), "empty line"),
        "one column": (lambda: Path("t.csv").write_text("target\n" + "1\n" * 99), "('target')"),
        "constant target": (constant_target, "'target' is constant"),
        "one group": (lambda: table("t.csv", group="a"), "one group"),
        "many classes": (lambda: table("t.csv", 10_000, target=range(10_000)), " has 10,000 "),
        "many groups": (lambda: table("t.csv", 10_000, group=range(10_000)), " has 10,000 "),
        "many categories": (
            lambda: write("target,group,x\n", *(f"{k % 2},{k // 2 % 2},c{k}\n" for k in range(10_000))),
            "no column is left",
        ),
        "nan everywhere": (lambda: table("t.csv", **{f"x{k}": np.nan for k in range(4)}), "no column is left"),
        "nan in the target": (lambda: table("t.csv", target=np.nan), "'target'"),
        "no file": (lambda: None, "t.csv"),
        "a folder": (lambda: Path("t.csv").mkdir(), "is a folder"),
        "binary junk": (lambda: write_junk("t.csv"), "t.csv "),
        "zero bytes": (lambda: Path("t.csv").write_bytes(b"\0" * 4000), "zero bytes"),
        "ragged rows": (lambda: write("target,group,x\n1,2,3\n", "1,2,3,4\n" * 60), "cannot be read"),
        "unclosed quote": (lambda: write('target,group,x\n1,2,"3\n', "1,2,3\n" * 60), "cannot be read"),
        "latin-1": (lambda: Path("t.csv").write_bytes("target,group,x\nä,b,c\n".encode("latin-1") * 60), "UTF-8"),
        "twice a name": (lambda: write("target,group,group\n", "1,2,3\n0,1,2\n" * 60), ""),
        "wrong separator": (lambda: write("target:group:x\n", "1:2:3\n" * 60), "separator"),
    }  # fmt: skip


@pytest.mark.parametrize("name", hostile_inputs())
def test_hostile_input_gives_one_clear_line(folder, capsys, name):
    make, message = hostile_inputs()[name]
    make()
    before = sorted(os.listdir())
    code, out, err = run(capsys, "audit", "t.csv", *FAST)
    if name == "twice a name":  # pandas tells them apart, so that this table can be audited or refused, but not crash
        assert code in (0, 2)
        return
    assert code == 2
    assert out == ""
    assert err.startswith("skfairdp: ")
    assert err.count("\n") == 1
    assert message in err
    assert "Traceback" not in err
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv.gz", b"not gzip at all", "gzip"),
        ("t.csv.gz", gzip.compress(b"target,group,x\n" + b"1,2,3\n" * 9000, mtime=0)[:-9], "gzip"),
        ("t.parquet", b"PAR1 and then junk", "Parquet"),
        ("t.parquet.gz", b"", "Parquet"),
    ],
)
def test_hostile_formats_give_one_clear_line(folder, capsys, name, content, message):
    if name == "t.parquet":
        pytest.importorskip("pyarrow")
    Path(name).write_bytes(content)
    code, _, err = run(capsys, "audit", name, *FAST)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "tagret", "--sensitive", "group"], "'target'"),
        (["--target", "target", "--sensitive", "Group"], "'group'"),
        (["--target", "target", "--sensitive", "group", "--methods", "federat"], "'federate'"),
        (["--target", "target", "--sensitive", "group", "--epsilon", "-1"], "epsilon"),
        (["--target", "target", "--sensitive", "group", "--epsilon", "nan"], "epsilon"),
        (["--target", "target", "--sensitive", "group", "--out", "no/such/folder/r.html"], "no/such/folder"),
        (["--target", "target", "--sensitive", "group", "--fail-if", "nonsense"], "nonsense"),
        (["--target", "target", "--sensitive", "group", "--positive", "x"], "pos_label"),
        (["--target", "target", "--sensitive", "group", "--seed", "-1"], "random_state"),
    ],
)
def test_wrong_arguments_give_one_clear_line(folder, capsys, arguments, message):
    table("t.csv")
    code, _, err = run(capsys, "audit", "t.csv", "--quiet", *arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_labels_cannot_control_the_terminal(folder, capsys):
    frame = table("t.csv")
    frame["group"] = frame["group"].map({0: "a\x1b[2J", 1: "b\x07"})
    frame.to_csv("t.csv", index=False)
    code, out, _ = run(capsys, "audit", "t.csv", *FAST)
    assert code == 0
    assert "\x1b" not in out
    assert "\x07" not in out


def test_privatize_releases_noise_with_its_guarantee(folder, capsys):
    table("t.csv", 500)
    arguments = ["privatize", "t.csv", "out.csv", "--epsilon", "8", "--columns", "x0,x1,x2,x3", "--keep", "group"]
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    assert "500 rows in out.csv: epsilon = 8 for any two records, 1 release, by laplace" in out
    assert "  - the columns copied as they are: group" in out
    assert json.loads(Path("out.csv.guarantee.json").read_text())["guarantee"]["epsilon"] == 8.0
    assert list(pd.read_csv("out.csv")) == ["x0", "x1", "x2", "x3", "group"]
    released = Path("out.csv").read_bytes()
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert "exists already; use --force" in err
    assert Path("out.csv").read_bytes() == released
    assert run(capsys, *arguments, "--force")[0] == 0
    assert Path("out.csv").read_bytes() != released
    code, _, err = run(capsys, "privatize", "t.csv", "o.csv", "--columns", "x0")
    assert (code, err) == (2, "skfairdp: --epsilon is missing.\n")
    code, out, _ = run(
        capsys, "privatize", "t.csv", "g.csv", "--columns", "x0,x1", "--epsilon", "2", "--mechanism", "gaussian"
    )
    assert code == 0
    assert "delta = 1e-05" in out


PRIVATIZE = ("privatize", "t.csv", "out.csv", "--epsilon", "1", "--columns", "x0,x1")


def test_ragged_table_is_not_released(folder, capsys):
    Path("t.csv").write_text("name,age,zip\nRoe,30,75001\nDoe,1,77,75001\n")
    arguments = ["privatize", "t.csv", "out.csv", "--epsilon", "1", "--columns", "age", "--keep", "zip"]
    code, out, err = run(capsys, *arguments, "--ledger", "l.sqlite", "--create-ledger")
    assert (code, out) == (2, "")
    assert err == "skfairdp: t.csv cannot be read as a table: line 3: 4 values, but the header has 3 names.\n"
    assert os.listdir() == ["t.csv"]


def test_releases_of_a_table_add_up_in_a_ledger(folder, capsys, monkeypatch):
    monkeypatch.setattr(_privatize_file, "BLOCK_VALUES", 200)
    table("t.csv", 300)  # three blocks: a file is one release of each record, however it is read
    code, out, err = run(capsys, *PRIVATIZE, "--ledger", "l.sqlite", "--create-ledger", "--budget", "2", "--delta", "0")
    assert (code, err) == (0, "")
    assert "all releases in l.sqlite: epsilon = 1 for any two records, 1 release, by laplace" in out
    code, out, _ = run(capsys, *PRIVATIZE, "--ledger", "l.sqlite", "--force")
    assert code == 0
    assert "all releases in l.sqlite: epsilon = 2 for any two records, 2 releases" in out
    released = Path("out.csv").read_bytes()
    before = sorted(os.listdir())
    code, out, err = run(capsys, *PRIVATIZE, "--ledger", "l.sqlite", "--force")
    assert (code, out) == (1, "")
    assert "was refused for records 'default': the budget of epsilon=2 would be exceeded after 2 earlier" in err
    assert err.count("\n") == 1
    assert Path("out.csv").read_bytes() == released
    assert sorted(os.listdir()) == before
    assert run(capsys, *PRIVATIZE, "--ledger", "l.sqlite", "--records", "others", "--force")[0] == 0
    ledger = PrivacyLedger(path="l.sqlite")
    assert ledger.entries["records"].tolist() == ["default", "default", "others"]
    assert ledger.budget.epsilon == 2.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ledger", "l.sqlite"], "--create-ledger"),
        (["--ledger", "t.csv"], "t.csv"),
        (["--ledger", "."], "ledger"),
        (["--ledger", "out.csv", "--create-ledger"], "ledger"),
        (["--ledger", "./out.csv.guarantee.json", "--create-ledger"], "ledger"),
        (["--ledger", "l.sqlite", "--create-ledger", "--budget", "nan"], "budget"),
        (["--ledger", "no/folder/l.sqlite", "--create-ledger"], "folder"),
        (["--budget", "3"], "--budget"),
        (["--records", "x"], "--records"),
        (["--create-ledger"], "--create-ledger"),
    ],
)
def test_a_wrong_ledger_gives_one_clear_line(folder, capsys, arguments, message):
    table("t.csv")
    code, out, err = run(capsys, *PRIVATIZE, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert os.listdir() == ["t.csv"]


def _hear_interruptions():
    """Undo what a shell does to programs in the background, whose children would be deaf to ctrl-c."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def begin_a_long_release(folder, *more):
    """Start a process that privatises a million rows, and return when the first of them are on disk."""
    with open("big.csv", "w") as file:
        file.write("a,b\n" + "1.25,2.5\n" * 1_000_000)
    arguments = ["privatize", "big.csv", "out.csv", "--epsilon", "1", "--columns", "a,b", *more]
    process = subprocess.Popen(
        [sys.executable, "-m", "skfairdp.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hear_interruptions,
    )
    patience = time.monotonic() + 60
    while not any(p.stat().st_size for p in folder.glob(".out.csv.*.part")) and time.monotonic() < patience:
        time.sleep(0.05)
    return process


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_an_interruption_leaves_no_half_file(folder, number):
    process = begin_a_long_release(folder)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err == "skfairdp: interrupted; nothing was left half-written.\n"
    assert os.listdir() == ["big.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("ledger", [False, True], ids=["alone", "with a ledger"])
def test_killed_release_leaves_a_receipt(folder, ledger):
    """No handler runs on SIGKILL: what vouches for the rows must have been there before them."""
    process = begin_a_long_release(folder, *(["--ledger", "l.sqlite", "--create-ledger"] if ledger else []))
    process.kill()
    process.communicate(timeout=60)
    assert not Path("out.csv").exists()
    (part,) = (p for p in folder.glob(".out.csv.*.part") if p.stat().st_size)
    n_rows = part.read_text().count("\n") - 1
    assert n_rows > 0, "the test must kill it after rows were written"
    (receipt,) = folder.glob(".out.csv.*.guarantee.json")
    document = json.loads(receipt.read_text())
    assert document["unfinished"] is True
    assert document["file"] == part.name
    assert document["rows"] >= n_rows
    assert document["guarantee"]["epsilon"] == 1.0
    if ledger:
        account = PrivacyLedger(path="l.sqlite")
        assert len(account) == 1
        assert account.total().epsilon == 1.0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_interrupted_release_leaves_no_half_file(folder, capsys, monkeypatch, number):
    """The signal comes after the first block is on disk; the ledger keeps the charge, since rows were drawn."""
    before = signal.getsignal(signal.SIGINT)
    _hear_interruptions()
    blocks = []

    def write(self, block, _write=_privatize_file._Writer.write):
        _write(self, block)
        blocks.append(len(block))
        os.kill(os.getpid(), number)

    table("t.csv", 300)
    monkeypatch.setattr(_privatize_file, "BLOCK_VALUES", 200)
    monkeypatch.setattr(_privatize_file._Writer, "write", write)
    try:
        code, out, err = run(capsys, *PRIVATIZE, "--ledger", "l.sqlite", "--create-ledger")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (code, out, blocks) == (130, "", [100])
    assert err == "skfairdp: interrupted; nothing was left half-written.\n"
    assert sorted(os.listdir()) == ["l.sqlite", "t.csv"]
    assert len(PrivacyLedger(path="l.sqlite")) == 1


def test_receipt_and_charge_are_on_disk_before_rows(folder, capsys, monkeypatch):
    """What a kill would leave is what is there while the first block is written."""
    seen = []

    def write(self, block, _write=_privatize_file._Writer.write):
        (receipt,) = folder.glob(".out.csv.*.guarantee.json")
        document = json.loads(receipt.read_text())
        assert (document["unfinished"], document["file"], document["rows"]) == (True, self.path.name, 300)
        assert document["guarantee"]["epsilon"] == 1.0
        assert PrivacyLedger(path="l.sqlite").total().epsilon == 1.0
        assert not Path("out.csv").exists()
        seen.append(len(block))
        _write(self, block)

    table("t.csv", 300)
    monkeypatch.setattr(_privatize_file, "BLOCK_VALUES", 200)
    monkeypatch.setattr(_privatize_file._Writer, "write", write)
    assert run(capsys, *PRIVATIZE, "--ledger", "l.sqlite", "--create-ledger")[0] == 0
    assert seen == [100] * 3


def test_an_interrupted_audit_leaves_no_report(folder, capsys, monkeypatch):
    def interrupted(*arguments, **keywords):
        raise KeyboardInterrupt

    table("t.csv")
    monkeypatch.setattr("skfairdp.table_audit.audit_table", interrupted)
    code, _, err = run(capsys, "audit", "t.csv", *FAST)
    assert code == 130
    assert "interrupted" in err
    assert os.listdir() == ["t.csv"]


def test_demo_of_few_people(folder, capsys):
    """The methods that need many rows are left out of a small table, of the demo as well."""
    code, out, err = run(capsys, "demo", "--rows", "200", "--json", "demo.json")
    assert code == 0
    document = json.loads(Path("demo.json").read_text())
    methods = [row["method"] for row in document["table"]]
    assert methods == [name for name in method_names() if name not in ("noise", "federate", "pate")]
    assert all(name in out for name in methods)
    assert "left)" in err  # progress with the time left
    assert "skfairdp demo --rows 200 --seed 0" in Path("skfairdp-report.html").read_text()


@pytest.mark.slow
def test_the_demo_runs_the_methods_of_an_audit(folder, capsys):
    code, out, err = run(capsys, "demo", "--rows", "2000", "--json", "demo.json")
    assert code == 0
    document = json.loads(Path("demo.json").read_text())
    methods = [row["method"] for row in document["table"]]
    assert methods == method_names()
    assert all(name in out for name in methods)
    assert "left)" in err  # progress with the time left
    assert "skfairdp demo --rows 2000 --seed 0" in Path("skfairdp-report.html").read_text()


def test_methods_whose_names_have_spaces(folder, capsys):
    table("t.csv")
    methods = ["fair trees", "fair private trees"]
    arguments = [*FAST, "--methods", ", ".join(methods), "--epsilon", "3", "--json", "r.json"]
    conditions = ["--fail-if", "fair private trees: epsilon >= 3", "--fail-if", "fair trees: epsilon < 3"]
    code, _, err = run(capsys, "audit", "t.csv", *arguments, *conditions)
    reason = "epsilon of fair private trees is 3, and >= 3 was forbidden"
    assert (code, err) == (1, f"skfairdp: failed: {reason}\n")
    document = json.loads(Path("r.json").read_text())
    assert [row["method"] for row in document["table"]] == methods
    assert [row["epsilon"] for row in document["table"]] == ["inf", 3.0]
    assert "--methods 'fair trees, fair private trees'" in document["command"]


@pytest.mark.data
def test_adult_as_it_comes_agrees_with_the_library(folder, capsys, data_home):
    lines = (data_home / "adult" / "adult.data").read_text().splitlines()
    Path("adult.csv").write_text("\n".join([HEADER, *lines[:1500]]) + "\n")
    arguments = ["--target", "income", "--sensitive", "sex", "--methods", "leace,logistic", "--seed", "3", "--quiet"]
    code, _, err = run(capsys, "audit", "adult.csv", *arguments, "--json", "adult.json")
    assert (code, err) == (0, "")
    document = json.loads(Path("adult.json").read_text())
    rows = {row["method"]: row for row in document["table"]}
    assert document["settings"]["pos_label"] == ">50K"
    assert rows["leace"]["accuracy"] > 0.75
    assert any("Missing values in 'workclass', 'occupation', 'native-country'" in note for note in document["notes"])

    frame = pd.read_csv("adult.csv", skipinitialspace=True, na_values="?")
    again = audit_table(
        frame, target="income", sensitive=["sex"], methods=["leace", "logistic"], random_state=3, verbose=False
    )
    for name, row in rows.items():
        for metric in ("accuracy", "balanced_accuracy", "tpr_gap", "leakage", "code_bits", "epsilon"):
            assert float(row[metric]) == pytest.approx(again.table.loc[name, metric]), (name, metric)
    # And with calls that know nothing of the audit but its seed and its fitted model.
    prepared = prepare_table(frame, "income", "sex")
    groups = pd.factorize(frame["sex"], sort=True)[0]
    _, test = hold_out(prepared.y, groups, 0.3, random_stream(3).generator)
    predicted = again.models["leace"].predict(prepared.X.iloc[test])
    y, sex = frame["income"].iloc[test], frame["sex"].iloc[test]
    assert rows["leace"]["accuracy"] == pytest.approx(accuracy_score(y, predicted))
    assert rows["leace"]["tpr_gap_measured"] == pytest.approx(tpr_gap(y, predicted, sensitive_features=sex))
    H = again.models["leace"]["model"][:-1].transform(again.models["leace"]["prepare"].transform(prepared.X.iloc[test]))
    attacked = leakage_report(H, sex, random_state=0).iloc[-1]
    assert abs(rows["leace"]["leakage"] - attacked["accuracy"]) < 0.05  # another seed of the attackers
    share = frame["sex"].eq("Male").mean()
    assert rows["leace"]["majority"] == pytest.approx(share, abs=0.005)
