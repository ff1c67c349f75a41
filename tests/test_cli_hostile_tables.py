"""Hostile tables on the command line: one sentence and exit code 2, or a report that they cannot break. No traceback.

The command is called in this process; one slow test compares it with a process of its own.
"""

import gzip
import hashlib
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from skfairdp.cli import main
from skfairdp.metrics import _attackers

ROLES = ("--target", "target", "--sensitive", "group", "--methods", "leace", "--seed", "0")


@pytest.fixture
def audit_all(tmp_path, monkeypatch, capfd):
    """Run ``skfairdp audit`` for each case, in one folder; return exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_attackers, "POOL", ("linear", "neighbors"))
    before, handler = os.dup(0), signal.getsignal(signal.SIGTERM)

    def run(cases):
        outcomes = {}
        for name, (arguments, piped) in cases.items():
            with tempfile.TemporaryFile() as stream:
                stream.write(piped)
                stream.seek(0)
                os.dup2(stream.fileno(), 0)
            capfd.readouterr()
            with open(0, closefd=False) as standard_input:
                monkeypatch.setattr(sys, "stdin", standard_input)
                try:
                    code = main(["audit", *arguments])
                except SystemExit as stop:
                    code = stop.code
            outcomes[name] = (code, *capfd.readouterr())
        return outcomes

    yield run
    os.dup2(before, 0)
    os.close(before)
    signal.signal(signal.SIGTERM, handler)


HEADER = "target,group,x\n"
ROWS = "".join(f"{k % 2},{'ab'[k // 2 % 2]},{k * 7 % 13}\n" for k in range(60))


def make_files(folder):
    """Write every hostile table, and return for each file what the sentence must say."""
    wide = ",".join(f"c{k}" for k in range(10_000))
    texts = {
        "ragged.csv": (HEADER + ROWS + "1,a,3,4\n", "line 62: 4 values, but the header has 3 names"),
        "short.csv": (HEADER + ROWS + "1,a\n", "line 62: 2 values, but the header has 3 names"),
        "open_quote.csv": (HEADER + ROWS + '1,a,"3\n1,a,4\n', "line 62: "),
        "empty.csv": ("", "is empty"),
        "only_names.csv": (HEADER, "0 rows to work with"),
        "only_spaces.csv": ("   \n" + HEADER + ROWS, "begins with an empty line"),
        "no_names.csv": (ROWS, "looks like a row of data, not like names: 0, a, 0"),
        "no_names.tsv": (ROWS.replace(",", "\t"), "looks like a row of data, not like names: 0, a, 0"),
        "names_again.csv": (HEADER + ROWS + HEADER, "has its names once more in row 61"),
        "twice.csv": ("target,group,group\n" + ROWS, "two columns of the name 'group'"),
        "excel_word.csv": ("sep=,\n" + HEADER + ROWS, "begins with 'sep=,'"),
        "one_group.csv": (HEADER + ROWS.replace(",b,", ",a,"), "one group only"),
        "one_class.csv": (HEADER + re.sub("(?m)^0", "1", ROWS), "is constant"),
        "formula_names.csv": ("=cmd|' /C calc'!A0,@sum,+1\n" + ROWS, "there is no column 'target'"),
        "control_names.csv": ("\x1b[2Jtarget,\x07group,x\n" + ROWS, "there is no column 'target'"),
        "markup_names.csv": ("<script>alert(1)</script>,<b>group,x\n" + ROWS, "there is no column 'target'"),
        "long_line.csv": ("x" * 3_000_000, "long_line.csv "),
        "wide.csv": (HEADER.replace("x", wide) + ("1,a" + ",2" * 10_000 + "\n") * 5, "5 rows to work with"),
        "deep.jsonl": ("[" * 100_000, "cannot be read as JSON lines: line 1"),
        "not_objects.jsonl": ("[1, 2]\n", "line 1 is no object"),
        "a.json": ("[]", "JSON lines"),
        "a.xls": ("x", "save it as .xlsx"),
    }  # fmt: skip
    contents = {name: (text.encode(), message) for name, (text, message) in texts.items()}
    contents |= {
        "zeros.csv": (b"\0" * 4000, "zero bytes"),
        "zero.csv": ((HEADER + ROWS * 200).encode() + b"1,a,\0\n", "line 12002: a zero byte"),
        "latin.csv": ((HEADER + ROWS).replace(",a,", ",ä,").encode("latin-1"), "--encoding cp1252"),
        "utf16.csv": ((HEADER + ROWS).encode("utf-16-le"), "--encoding utf-16-le"),
        "junk.csv": (random.Random(0).randbytes(5000), "junk.csv "),
        "junk.parquet": (b"PAR1 and junk", "is not a Parquet file"),
        "junk.xlsx": (b"PK\x03\x04 and junk", "is not a workbook"),
        "junk.zip": (b"PK\x03\x04 and junk", "is not a whole zip archive"),
        "junk.db": (b"SQLite format 3\0 and junk" * 99, "cannot be read as an SQLite database"),
        "half.csv.gz": (gzip.compress((HEADER + ROWS * 99).encode())[:-9], "is not a whole gzip file"),
    }
    for name, (content, _) in contents.items():
        (folder / name).write_bytes(content)
    (folder / "folder.csv").mkdir()
    with zipfile.ZipFile(folder / "two.zip", "w") as archive:
        archive.writestr("a.csv", HEADER + ROWS)
        archive.writestr("b.csv", HEADER + ROWS)
    with sqlite3.connect(folder / "two.db") as connection:
        connection.execute("CREATE TABLE a (x)")
        connection.execute("CREATE TABLE b (x)")
    connection.close()
    messages = {name: message for name, (_, message) in contents.items()}
    messages |= {
        "folder.csv": "is a folder, not a table",
        "none.csv": "there is no file none.csv",
        "two.zip": "Say which is meant: two.zip::a.csv",
        "two.zip::c.csv": "has no member 'c.csv'; it has 'a.csv', 'b.csv'",
        "two.db": "Say which is meant, or give a query: two.db::a",
        "two.db::DROP TABLE a": "A query must begin with SELECT or WITH",
        "two.db::SELECT nobody FROM a": "no such column",
        "postgresql://me:secret@nowhere/db::a": "postgresql://me:***@nowhere/db ",
        "https://example.org/a.csv": "download the table first",
        "/dev/null": "is empty",
        "/dev/stdin": "is empty",
        "-": "standard input is empty",
    }
    if os.geteuid() != 0:  # root may read everything
        (folder / "secret.csv").write_text(HEADER + ROWS)
        (folder / "secret.csv").chmod(0)
        messages["secret.csv"] = "may not be read"
    return messages


def test_hostile_tables_get_one_sentence(tmp_path, audit_all):
    messages = make_files(tmp_path)
    before = sorted(os.listdir(tmp_path))
    names = {f"case{number}": table for number, table in enumerate(messages)}
    outcomes = audit_all({name: ([table, *ROLES], b"") for name, table in names.items()})
    wrong = {}
    for name, (code, out, err) in outcomes.items():
        sentence = err.removesuffix("\n")
        fine = sentence.startswith("skfairdp: ") and sentence.isprintable() and messages[names[name]] in sentence
        if (code, out) != (2, "") or not fine or "secret@" in err:
            wrong[names[name]] = (code, out, err[-1000:])
    assert wrong == {}
    written = [name for name in sorted(os.listdir(tmp_path)) if not name.startswith("case")]
    assert written == before  # no report, no temporary file


def odd_table():
    """A table that can be audited, with everything in it that a page, a terminal or a spreadsheet could run."""
    names = [
        "target",
        "group",
        "<img src=x onerror=alert(1)>",
        "\x1b[31mred",
        "=HYPERLINK(1)",
        '"a\nb"',
        "mixed",
        "long",
    ]
    rows = [",".join(names)]
    groups = ["<script>alert(2)</script>", "=cmd|' /C calc'!A0"]
    for k in range(80):
        formula = f"=A{k % 5}*2"
        mixed = str(k) if k % 3 else "many"
        row = [k * 7 % 11 % 2, groups[k // 2 % 2], k * 5 % 17, k * 3 % 7, formula, k % 4, mixed, "y" * (k % 3) * 9999]
        rows.append(",".join(map(str, row)))
    return "\n".join(rows) + "\n"


def test_what_can_be_audited_cannot_break_the_report(tmp_path, audit_all):
    (tmp_path / "odd.csv").write_text(odd_table(), encoding="utf-16")
    commas = HEADER.replace("x", "x,y") + ROWS.replace("\n", ",5\n")
    commas = re.sub(r"(?m),(\d+),5$", r";\1,5;1", commas.replace("target,group,x,y", "target;group;x;y"))
    commas = re.sub(r"(?m)^(\d),", r"\1;", commas)
    cases = {
        "odd": (["odd.csv", *ROLES, "--out", "odd.html", "--json", "odd.json"], b""),
        "piped": (["/dev/stdin", *ROLES, "--out", "piped.html", "--json", "piped.json"], commas.encode()),
    }
    outcomes = audit_all(cases)
    for name, (code, out, err) in outcomes.items():
        assert code == 0, (name, err)
        assert "Traceback" not in err
        assert (out + err).replace("\n", "").replace("\r", "").isprintable(), name
    page = (tmp_path / "odd.html").read_text(encoding="utf-8")
    assert "alert(2)" in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    json.loads((tmp_path / "odd.json").read_text(encoding="utf-8"))
    document = json.loads((tmp_path / "piped.json").read_text(encoding="utf-8"))
    assert document["best"] == "leace"


def test_tables_from_elsewhere_are_audited(tmp_path, audit_all):
    """Standard input, a query, and a table without names: the digest is of what was read, and notes are told."""
    with sqlite3.connect(tmp_path / "people.db") as connection:
        connection.execute("CREATE TABLE people (target INTEGER, grp TEXT, x INTEGER)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", [row.split(",") for row in ROWS.split()])
    connection.close()
    piped = re.sub(r"(?m),(\d+)$", r";\1,5", re.sub(r"(?m)^(\d),", r"\1;", ROWS)).encode("utf-16")
    roles = ("--target", "column_1", "--sensitive", "column_2", *ROLES[4:])
    cases = {
        "piped": (["-", *roles, "--no-header", "--json", "piped.json"], piped),
        "query": (["people.db::SELECT target, grp AS 'group', x FROM people", *ROLES, "--json", "query.json"], b""),
    }
    for name, (code, _, err) in audit_all(cases).items():
        assert code == 0, (name, err)
    document = json.loads((tmp_path / "piped.json").read_text(encoding="utf-8"))
    assert document["settings"]["file_sha256"] == hashlib.sha256(piped).hexdigest()
    assert "Read as numbers with a decimal comma ('0,5' is 0.5): 'column_3'." in document["notes"]
    assert "--no-header" in document["command"]


@pytest.mark.slow
def test_the_module_runs_as_a_command(tmp_path, audit_all):
    """The cases are what they claim to be: the same sentence and exit code from a fresh interpreter."""
    (tmp_path / "ragged.csv").write_text(HEADER + ROWS + "1,a,3,4\n")
    command = [sys.executable, "-m", "skfairdp.cli", "audit", "ragged.csv", *ROLES]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    fresh = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    (called,) = audit_all({"case": (["ragged.csv", *ROLES], b"")}).values()
    assert (fresh.returncode, fresh.stdout, fresh.stderr) == called
    assert fresh.returncode == 2


def test_a_traceback_would_be_seen(tmp_path, audit_all):
    """A planted fault, an argument that is no text, which nobody catches."""
    (tmp_path / "t.csv").write_text(HEADER + ROWS)
    with pytest.raises((TypeError, AttributeError)):
        audit_all({"case": (["t.csv", 5], b"")})
