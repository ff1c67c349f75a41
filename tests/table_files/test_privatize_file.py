"""A privatised file has exactly the noise its guarantee pays for, and is there whole or not at all."""

import csv
import gzip
import hashlib
import json
import random

import joblib
import numpy as np
import pandas as pd
import pytest

from skfairdp import LaplacePrivatizer, OMEEncoder, PrivateScaler
from skfairdp.exceptions import BudgetExceededError
from skfairdp.table_files import (
    _privatize_file,
    load_privatizer,
    make_privatizer,
    parse_bounds,
    privatize_file,
    read_table,
    write_text,
)
from skfairdp.table_files._whole_file import whole_file


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 90, 3000), "hours": rng.uniform(0, 60, 3000), "name": "007"})
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    return path


def laplace(epsilon=2.0, bounded=False):
    return make_privatizer("laplace", epsilon, 1e-5, None, 1.0, bounded)


BOUNDS = {"age": (0.0, 100.0), "hours": (0.0, 80.0)}


def release(source, target, privatizer=None, columns=("age", "hours"), **options):
    bounded = "bounds" in options
    return privatize_file(source, target, privatizer or laplace(bounded=bounded), columns, block_rows=700, **options)


@pytest.mark.parametrize("fault", [1.0, 0.9])
def test_noise_has_the_scale_of_the_guarantee(people, tmp_path, fault):
    privatizer = LaplacePrivatizer(2.0 / fault, norm="clip", random_state=0)  # a fault of 0.9 is 10% too little noise
    guarantee, n_rows = release(people, tmp_path / "out.csv", privatizer, bounds=BOUNDS)
    before, after = pd.read_csv(people), pd.read_csv(tmp_path / "out.csv")
    assert n_rows == len(after) == 3000
    assert guarantee.epsilon == 2.0 / fault
    # Two columns on [-1, 1]: two rows differ by at most 4 in L1 norm, so the scale is 4 / epsilon there.
    noise = [(after[name] - before[name]) / ((high - low) / 2) for name, (low, high) in BOUNDS.items()]
    scale = np.abs(np.concatenate(noise)).mean()
    deviations = (scale / (4 / 2.0) - 1) * np.sqrt(6000)
    assert (abs(deviations) < 4) == (fault == 1.0)


def test_blocks_do_not_share_their_noise(people, tmp_path):
    release(people, tmp_path / "out.csv", bounds=BOUNDS)
    noise = (pd.read_csv(tmp_path / "out.csv")["age"] - pd.read_csv(people)["age"]).to_numpy()
    assert abs(np.corrcoef(noise[:700], noise[700:1400])[0, 1]) < 0.2


def test_only_named_columns_come_out(people, tmp_path):
    release(people, tmp_path / "out.csv")
    assert list(pd.read_csv(tmp_path / "out.csv")) == ["age", "hours"]
    guarantee, _ = release(people, tmp_path / "kept.csv", keep=["name"])
    assert pd.read_csv(tmp_path / "kept.csv", dtype=str)["name"].eq("007").all()  # copied as it is written
    assert "the columns copied as they are: name" in guarantee.does_not_cover


def test_guarantee_is_written_beside_the_file(people, tmp_path):
    target = tmp_path / "out.csv"
    guarantee, _ = release(people, target, bounds=BOUNDS)
    document = json.loads((tmp_path / "out.csv.guarantee.json").read_text())
    assert document["guarantee"] == guarantee.to_dict()
    assert document["sha256"] == hashlib.sha256(target.read_bytes()).hexdigest()
    assert document["guarantee"]["reproducible"] is False  # the noise is the operating system's
    assert any("bounds" in scope for scope in guarantee.does_not_cover)


@pytest.mark.parametrize("name", ["out.tsv", "out.csv.gz", "out.tsv.gz", "out.parquet"])
def test_every_format_is_written_and_read_again(people, tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    release(people, tmp_path / name, laplace(np.inf, bounded=True), bounds=BOUNDS, keep=["name"])
    _, n_rows = release(tmp_path / name, tmp_path / "again.csv", laplace(np.inf, bounded=True), bounds=BOUNDS)
    assert n_rows == 3000
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "again.csv"), pd.read_csv(people)[["age", "hours"]].astype(float)
    )


def test_a_fitted_privatizer_is_used_as_it_is(people, tmp_path):
    X = pd.read_csv(people)[["age", "hours"]].to_numpy(float)
    joblib.dump(LaplacePrivatizer(3.0).fit(X), tmp_path / "privatizer.joblib")
    privatizer = load_privatizer(tmp_path / "privatizer.joblib", ["age", "hours"])
    guarantee, _ = release(people, tmp_path / "out.csv", privatizer)
    assert guarantee.epsilon == 3.0
    with pytest.raises(ValueError, match="--columns"):
        load_privatizer(tmp_path / "privatizer.joblib", ["age"])


def test_what_is_no_privatizer_is_refused(tmp_path):
    joblib.dump({"no": "privatizer"}, tmp_path / "dict.joblib")
    with pytest.raises(ValueError, match="holds no fitted privatizer, but a dict"):
        load_privatizer(tmp_path / "dict.joblib", ["a"])
    (tmp_path / "junk").write_bytes(b"junk")
    with pytest.raises(ValueError, match="does not hold a privatizer that can be loaded"):
        load_privatizer(tmp_path / "junk", ["a"])
    joblib.dump(OMEEncoder().fit(np.eye(3)[:, :2]), tmp_path / "bits.joblib")
    with pytest.raises(ValueError, match="makes 20 columns of 2"):
        load_privatizer(tmp_path / "bits.joblib", ["a", "b"])
    joblib.dump(OMEEncoder(), tmp_path / "unfitted.joblib")
    with pytest.raises(ValueError, match="without a guarantee"):
        load_privatizer(tmp_path / "unfitted.joblib", ["a"])


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


def test_nothing_is_overwritten_without_being_asked(people, tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("precious")
    with pytest.raises(FileExistsError, match="--force"):
        release(people, target)
    assert target.read_text() == "precious"
    release(people, target, overwrite=True)
    assert target.read_text() != "precious"
    target.unlink()
    with pytest.raises(FileExistsError, match=r"out\.csv\.guarantee\.json"):
        release(people, target)
    with pytest.raises(ValueError, match="the same file"):
        release(people, people, overwrite=True)


FINE = "name,age,zip\nDoe,1,75001\nRoe,2,75002\n"
#: Tables with one row that has a value too many or too few, and the line on which an editor shows that row.
RAGGED = {
    "too many, first": ("t.csv", "name,age,zip\nDoe,1,77,75001\nRoe,2,75002\n", 2),
    "too many, later": ("t.csv", FINE + "Poe,1,77,75001\n", 4),
    "too many, far on": ("t.csv", FINE + "Poe,3,75003\n" * 2000 + "Doe,1,77,75001\n" + "Poe,3,75003\n", 2004),
    "too many in every row": ("t.csv", "name,age,zip\n" + "Doe,1,77,75001\n" * 3, 2),
    "separator at the end": ("t.csv", FINE + "Poe,3,75003,\n", 4),
    "too few": ("t.csv", FINE + "Poe,75003\n", 4),
    "no end of line": ("t.csv", FINE + "Poe,75003", 4),
    "only spaces": ("t.csv", FINE + "  \n", 4),
    "after a quoted line break": ("t.csv", FINE + '"P\no\ne",3,75003\nDoe,1,77,75001\n', 7),
    "with a quoted line break": ("t.csv", FINE + '"D\no\ne",1,77,75001\n', 4),
    "after empty lines": ("t.csv", FINE + "\n\nDoe,1,77,75001\n", 6),
    "separator in quotes": ("t.csv", FINE + '"Doe, J",1,75001\n"Doe, J",1,77,75001\n', 5),
    "byte order mark": ("t.csv", "\ufeff" + FINE + "Doe,1,77,75001\n", 4),
    "Windows": ("t.csv", (FINE + '"D\no\ne",3,75003\nDoe,1,77,75001\n').replace("\n", "\r\n"), 7),
    "old Macintosh": ("t.csv", (FINE + "Doe,1,77,75001\n").replace("\n", "\r"), 4),
    "compressed": ("t.csv.gz", FINE + "Doe,1,77,75001\n", 4),
    "tabs": ("t.tsv", (FINE + "Doe,1,77,75001\n").replace(",", "\t"), 4),
    "semicolons": ("t.csv", (FINE + "Doe,1,77,75001\n").replace(",", ";"), 4),
    "open quote": ("t.csv", FINE + 'Doe,1,"75001\nRoe,77,75002\n', 4),
    "quote closed too early": ("t.csv", FINE + '"Doe" J,1,75001\n', 4),
}


@pytest.mark.parametrize("name", RAGGED)
def test_ragged_row_is_refused_with_its_line(tmp_path, name):
    file, text, line = RAGGED[name]
    path = tmp_path / file
    path.write_bytes(gzip.compress(text.encode()) if file.endswith("gz") else text.encode())
    told = []
    with pytest.raises(ValueError, match=rf"line {line}: "):
        release(path, tmp_path / "out.csv", columns=["age"], keep=["zip"], charge=told.append)
    assert told == []
    assert listing(tmp_path) == [file]
    with pytest.raises(ValueError, match=rf"line {line}: "):
        read_table(path)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_an_empty_line_shifts_nothing(tmp_path, end):
    """pandas swallows the separator that follows an empty line when lines end in a lone carriage return."""
    (tmp_path / "t.csv").write_bytes(FINE.replace("\n", end).encode() + f"{end},77,75003{end}{end}".encode())
    release(tmp_path / "t.csv", tmp_path / "out.csv", columns=["age"], keep=["name", "zip"])
    kept = pd.read_csv(tmp_path / "out.csv", dtype=str, na_filter=False)
    assert kept["name"].tolist() == ["Doe", "Roe", ""]
    assert kept["zip"].tolist() == ["75001", "75002", "75003"]
    assert read_table(tmp_path / "t.csv")["zip"].tolist() == [75001, 75002, 75003]


def test_two_readers_see_the_same_table(tmp_path):
    """What read_table accepts of 900 hostile texts, the csv module reads in the same way, value by value."""
    rng = random.Random(0)
    path, accepted = tmp_path / "t.csv", 0
    for separator in ",\t;":
        for _ in range(300):
            header = separator.join("xyz"[: rng.randint(2, 3)])
            body = "".join(rng.choice('aab""\n\n\r ' + 3 * separator) for _ in range(rng.randint(1, 14)))
            path.write_bytes(f"{header}\n{body}".encode())
            try:
                frame = read_table(path, separator=separator)
            except ValueError:
                continue
            with open(path, newline="") as file:
                rows = [row for row in csv.reader(file, delimiter=separator, skipinitialspace=True) if row][1:]
            expected = [[value.replace("\r\n", "\n").replace("\r", "\n") for value in row] for row in rows]
            assert frame.astype(object).where(frame.notna(), "").to_numpy().tolist() == expected, body
            accepted += len(expected) > 0
    assert accepted > 60, "the texts must not all be refused"


@pytest.mark.parametrize("separator", ["", "::", '"', "\n"])
def test_what_is_no_separator_is_refused(people, separator):
    with pytest.raises(ValueError, match="--separator"):
        read_table(people, separator=separator)


def test_a_name_that_two_columns_have_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("age,age,zip\n1,77,75001\n")
    with pytest.raises(ValueError, match="'age'"):
        release(tmp_path / "t.csv", tmp_path / "out.csv", columns=["age"])


def test_charge_comes_once_and_before_rows(people, tmp_path, monkeypatch):
    """Rows are on disk only while a charge and a receipt that names their file are there."""
    events = []

    def charge(guarantee):
        assert not any(part.stat().st_size for part in tmp_path.glob(".out.csv.*.part"))
        events.append(guarantee)

    def write(self, block, _write=_privatize_file._Writer.write):
        (receipt,) = tmp_path.glob(".out.csv.*.guarantee.json")
        document = json.loads(receipt.read_text())
        assert document["unfinished"] is True
        assert document["guarantee"] == events[0].to_dict()
        assert (document["file"], document["rows"]) == (self.path.name, 3000)
        events.append("block")
        _write(self, block)

    monkeypatch.setattr(_privatize_file._Writer, "write", write)
    guarantee, _ = release(people, tmp_path / "out.csv", charge=charge)
    assert events == [guarantee] + ["block"] * 5
    assert listing(tmp_path) == ["out.csv", "out.csv.guarantee.json", "people.csv"]
    assert "unfinished" not in json.loads((tmp_path / "out.csv.guarantee.json").read_text())


def test_refused_charge_leaves_nothing(people, tmp_path):
    def refuse(guarantee):
        raise BudgetExceededError("too dear")

    with pytest.raises(BudgetExceededError, match="too dear"):
        release(people, tmp_path / "out.csv", charge=refuse)
    assert listing(tmp_path) == ["people.csv"]


def test_table_that_changes_is_refused(people, tmp_path):
    def charge(guarantee):
        people.write_text(people.read_text() + "30,40,007\n")

    with pytest.raises(ValueError, match=r"3,000 rows .* 3,001"):
        release(people, tmp_path / "out.csv", charge=charge)
    assert listing(tmp_path) == ["people.csv"]


def test_wide_rows_come_in_shorter_blocks(people, tmp_path, monkeypatch):
    monkeypatch.setattr(_privatize_file, "BLOCK_VALUES", 300)
    heights = []
    monkeypatch.setattr(_privatize_file._Writer, "write", lambda self, block: heights.append(len(block)))
    release(people, tmp_path / "out.csv", keep=["name"])
    assert heights == [100] * 30


@pytest.mark.parametrize("fault", ["bad row", "interrupt", "full disk"])
def test_a_run_that_fails_half_way_leaves_nothing(people, tmp_path, monkeypatch, fault):
    before = listing(tmp_path)
    if fault == "bad row":
        lines = people.read_text().splitlines()
        lines[2001] = "unknown,3,007"
        people.write_text("\n".join(lines))
        expected = pytest.raises(ValueError, match="row 2001 of column 'age'")
    else:
        error = KeyboardInterrupt() if fault == "interrupt" else OSError(28, "No space left on device")
        calls = []

        def write(self, block, _write=_privatize_file._Writer.write):
            calls.append(block)
            if len(calls) == 3:
                raise error
            _write(self, block)

        monkeypatch.setattr(_privatize_file._Writer, "write", write)
        expected = pytest.raises(type(error))
    with expected:
        release(people, tmp_path / "out.csv")
    assert listing(tmp_path) == before


def test_a_failure_leaves_the_old_file_as_it_was(people, tmp_path):
    target = tmp_path / "out.csv"
    release(people, target)
    old, receipt = target.read_bytes(), (tmp_path / "out.csv.guarantee.json").read_bytes()
    people.write_text(people.read_text() + ",,\n")
    with pytest.raises(ValueError, match="no finite number"):
        release(people, target, overwrite=True)
    assert (target.read_bytes(), (tmp_path / "out.csv.guarantee.json").read_bytes()) == (old, receipt)


def test_file_made_meanwhile_is_not_overwritten(tmp_path):
    def write():
        with whole_file(tmp_path / "x", overwrite=False) as temporary:
            temporary.write_text("mine")
            (tmp_path / "x").write_text("theirs")

    with pytest.raises(FileExistsError, match="it is not overwritten"):
        write()
    assert (tmp_path / "x").read_text() == "theirs"
    assert listing(tmp_path) == ["x"]


def test_a_text_file_is_replaced_whole(tmp_path):
    write_text(tmp_path / "x", "one")
    write_text(tmp_path / "x", "two")
    assert (tmp_path / "x").read_text() == "two"
    assert (tmp_path / "x").stat().st_mode & 0o600 == 0o600
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_text(tmp_path / "gone" / "x", "three")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["agee"]}, "'agee'.*'age'"),
        ({"columns": ["age", "age"]}, "twice"),
        ({"columns": ["age"], "keep": ["age"]}, "twice: 'age'"),
        ({"columns": []}, "--columns"),
        ({"columns": ["name", "age"], "bounds": {"age": (0, 1)}}, "'name'"),
        ({"bounds": {**BOUNDS, "weight": (0, 1)}}, "'weight'"),
    ],
)
def test_bad_requests_are_refused(people, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        release(people, tmp_path / "out.csv", **options)
    assert listing(tmp_path) == ["people.csv"]


@pytest.mark.parametrize("text", ["age", "age=1", "age=2:1", "age=a:b", "=0:1", "age=0:inf", "age=nan:1"])
def test_bounds_that_make_no_sense_are_refused(text):
    with pytest.raises(ValueError, match="is no bound"):
        parse_bounds([text])


def test_bounds_are_read():
    assert parse_bounds(["age=0:100", "a=b=-1e3:2.5"]) == {"age": (0.0, 100.0), "a=b": (-1000.0, 2.5)}


def test_contradicting_options_are_refused():
    with pytest.raises(ValueError, match="--bounds"):
        make_privatizer("gaussian", 1.0, 1e-5, None, 1.0, True)
    with pytest.raises(ValueError, match="--radius"):
        make_privatizer("laplace", 1.0, 1e-5, "l2", 1.0, True)


def test_a_table_without_rows_is_refused(tmp_path):
    (tmp_path / "empty.csv").write_text("age,hours\n")
    with pytest.raises(ValueError, match="has no rows"):
        release(tmp_path / "empty.csv", tmp_path / "out.csv")
    with gzip.open(tmp_path / "cut.csv.gz", "wt") as file:
        file.write("age,hours\n" + "1,2\n" * 10_000)
    (tmp_path / "cut.csv.gz").write_bytes((tmp_path / "cut.csv.gz").read_bytes()[:-20])
    with pytest.raises(ValueError, match="is not a whole gzip file"):
        release(tmp_path / "cut.csv.gz", tmp_path / "out.csv")


def test_scaler_of_its_own_rows_is_refused(tmp_path):
    path = tmp_path / "scaler.joblib"
    joblib.dump(PrivateScaler(1.0, bounds=(0, 10)).fit(np.ones((4, 2))), path)
    with pytest.raises(ValueError, match="come out in the clear"):
        load_privatizer(path, ["a", "b"])
