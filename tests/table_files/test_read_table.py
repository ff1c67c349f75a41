"""Tables are read from files of every format, or refused in one sentence."""

import contextlib
import gzip
import hashlib
import os
import sqlite3
import sys
import threading
import zipfile
from types import SimpleNamespace

import pandas as pd
import pytest

from skfairdp.table_files import _table_address, privatize_file, read_table
from skfairdp.table_files._table_address import shown_address, split_address

TEXT = "age,sex,city\n30,f,Köln\n41,m,Łódź\n52,f,Bern\n"


def frame_of_people():
    return pd.DataFrame({"age": [30, 41, 52], "sex": ["f", "m", "f"], "city": ["Köln", "Łódź", "Bern"]})


def check_people(frame):
    pd.testing.assert_frame_equal(frame, frame_of_people(), check_dtype=False)
    assert frame["age"].dtype == "int64"


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found(tmp_path, separator):
    path = tmp_path / "table.csv"
    path.write_text("\ufeff" + separator.join(["first name", "b", "c"]) + "\n" + separator.join(["x", "?", "3"]) + "\n")
    frame = read_table(path)
    assert list(frame) == ["first name", "b", "c"]
    assert frame["b"].isna().all()
    assert frame["c"].tolist() == [3]


def test_separators_in_quoted_names_divide_nothing(tmp_path):
    (tmp_path / "t.csv").write_text('"name, first, last";"age";"sex"\nx;1;f\n')
    assert list(read_table(tmp_path / "t.csv")) == ["name, first, last", "age", "sex"]


def test_parquet_without_pyarrow_is_told(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ValueError, match="pyarrow"):
        read_table(tmp_path / "t.parquet")


def test_digest_is_of_the_file(people):
    assert read_table(people).attrs["file_sha256"] == hashlib.sha256(people.read_bytes()).hexdigest()


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
    @pytest.mark.parametrize("zipped", [False, True])
    def test_marks_are_understood(self, tmp_path, encoding, zipped):
        path = tmp_path / ("t.csv.gz" if zipped else "t.csv")
        text = TEXT.encode(encoding)
        path.write_bytes(gzip.compress(text) if zipped else text)
        check_people(read_table(path))

    def test_big_endian_and_quotes(self, tmp_path):
        (tmp_path / "t.csv").write_bytes(b"\xfe\xff" + TEXT.replace("Bern", '"Bern"').encode("utf-16-be"))
        check_people(read_table(tmp_path / "t.csv"))

    def test_ragged_row_is_found_in_every_encoding(self, tmp_path):
        for encoding in ("utf-8-sig", "utf-16", "utf-32"):
            (tmp_path / "t.csv").write_bytes((TEXT + "1,2,3,4\n").encode(encoding))
            with pytest.raises(ValueError, match="line 5: 4 values, but the header has 3 names"):
                read_table(tmp_path / "t.csv")

    def test_cp1252_is_read_when_it_is_named(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_bytes("a,b\nMünchen,1\n€,2\n".encode("cp1252"))
        with pytest.raises(ValueError, match=r"not a text table in UTF-8 \(it holds the byte 0xfc.*--encoding cp1252"):
            read_table(path)
        assert read_table(path, encoding="cp1252")["a"].tolist() == ["München", "€"]
        assert read_table(path, encoding="Windows-1252")["a"].tolist() == ["München", "€"]

    @pytest.mark.parametrize("encoding", ["klingon", "hex", "rot13", ""])
    def test_what_is_no_encoding_is_refused(self, people, encoding):
        with pytest.raises(ValueError, match="encoding"):
            read_table(people, encoding=encoding)

    def test_wrong_encoding_is_told(self, people):
        with pytest.raises(ValueError, match="is not a text in the encoding"):
            read_table(people, encoding="ascii")

    def test_utf_16_without_a_mark(self, tmp_path):
        (tmp_path / "t.csv").write_bytes(TEXT.encode("utf-16-le"))
        with pytest.raises(ValueError, match=r"zero bytes.*--encoding utf-16-le"):
            read_table(tmp_path / "t.csv")
        check_people(read_table(tmp_path / "t.csv", encoding="utf-16-le"))

    def test_zero_bytes_cut_nothing_off(self, tmp_path):
        (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"1,x\n" * 5000 + b"2,y\0z\n3,w\n")
        with pytest.raises(ValueError, match="line 5002: a zero byte"):
            read_table(tmp_path / "t.csv")


class TestNames:
    ADULT = "39, State-gov, 77516, Bachelors, Male, <=50K\n50, Private, 83311, HS-grad, Female, <=50K\n"

    def no_names(self, tmp_path):
        path = tmp_path / "adult.data"
        more = "38, Private, 215646, Bachelors, Male, >50K\n23, State-gov, 1, Masters, Male, >50K\n"
        path.write_text(self.ADULT + more)
        return path

    @pytest.mark.parametrize("separator", [None, ","])
    def test_a_row_of_data_is_not_taken_for_names(self, tmp_path, separator):
        path = self.no_names(tmp_path)
        with pytest.raises(ValueError, match="looks like a row of data, not like names: 39, State-gov, 77516"):
            read_table(path, separator=separator)
        frame = read_table(path, header=False)
        assert list(frame) == [f"column_{number}" for number in range(1, 7)]
        assert len(frame) == 4
        assert frame["column_1"].tolist() == [39, 50, 38, 23]
        assert next(iter(read_table(path, header=True))) == "39"

    @pytest.mark.parametrize(
        "header",
        [
            "age,sex,2019",  # a word over numbers
            "country,2019,2020,2021",  # years
            "0,1,2,3",  # as NumPy arrays are written
            ",x,y",  # as pandas writes an index
            "yes,unheard of,z",
            "m,z,zz",  # one name that is also a value
        ],
    )
    def test_names_are_taken_for_names(self, tmp_path, header):
        n_columns = header.count(",") + 1
        rows = "".join(",".join([word, *"789"[: n_columns - 1]]) + "\n" for word in ["m", "f", "m"])
        rows = rows if header[0] not in "0," else rows.replace("m", "1").replace("f", "2")
        if header == "m,z,zz":
            rows = rows.replace("7", "a").replace("8", "b")
        (tmp_path / "t.csv").write_text(header + "\n" + rows)
        assert len(read_table(tmp_path / "t.csv")) == 3

    def test_ragged_rows_without_names(self, tmp_path):
        (tmp_path / "t.csv").write_text("5,6\n7,8,9\n")
        with pytest.raises(ValueError, match="line 2: 3 values, but the first line has 2 values"):
            read_table(tmp_path / "t.csv", header=False)

    def test_names_that_come_again_are_told(self, tmp_path):
        (tmp_path / "t.csv").write_text("age,sex\n30,f\n40,m\nage,sex\n50,f\n")
        with pytest.raises(ValueError, match="has its names once more in row 3"):
            read_table(tmp_path / "t.csv")

    def test_a_name_of_two_columns_is_refused(self, tmp_path):
        (tmp_path / "t.csv").write_text("age,sex,age\n30,f,1\n")
        with pytest.raises(ValueError, match="'age'"):
            read_table(tmp_path / "t.csv")

    @pytest.mark.parametrize("first", ["\n", "  \n"])
    @pytest.mark.parametrize("separator", [None, ","])
    def test_an_empty_first_line_is_told(self, tmp_path, first, separator):
        (tmp_path / "t.csv").write_text(first + TEXT)
        with pytest.raises(ValueError, match="begins with an empty line; delete it"):
            read_table(tmp_path / "t.csv", separator=separator)

    def test_a_word_to_excel_is_told(self, tmp_path):
        (tmp_path / "t.csv").write_text("sep=;\na;b\n1;2\n")
        with pytest.raises(ValueError, match="begins with 'sep=;'"):
            read_table(tmp_path / "t.csv")


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name.replace("_DOT_", ".").replace("_IN_", "/"), content)
    return path


class TestArchives:
    def test_one_table_is_read(self, tmp_path):
        path = archive(tmp_path / "a.zip", readme_DOT_txt="x", a_IN_b_DOT_csv=TEXT, __MACOSX_IN_b_DOT_csv="x")
        check_people(read_table(path))
        assert read_table(path).attrs["file_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()

    def test_several_tables_must_be_named(self, tmp_path):
        path = archive(tmp_path / "a.zip", b_DOT_csv=TEXT + "1,2,3,4\n", c_DOT_tsv=TEXT.replace(",", "\t"))
        with pytest.raises(ValueError, match=r"2 files: 'b.csv', 'c.tsv'. Say which is meant: .*a\.zip::b\.csv"):
            read_table(path)
        check_people(read_table(f"{path}::c.tsv"))
        with pytest.raises(ValueError, match=r"a\.zip::b\.csv cannot be read as a table: line 5"):
            read_table(f"{path}::b.csv")
        with pytest.raises(ValueError, match=r"'d\.csv'.* 'b\.csv', 'c\.tsv'"):
            read_table(f"{path}::d.csv")

    def test_a_member_cannot_leave_the_archive(self, tmp_path):
        (tmp_path / "folder").mkdir()
        path = archive(tmp_path / "folder" / "a.zip", **{"../people.csv": TEXT})
        check_people(read_table(path))
        assert os.listdir(tmp_path) == ["folder"]

    def test_what_is_no_whole_archive_is_refused(self, tmp_path, people):
        path = archive(tmp_path / "a.zip", people_DOT_csv=TEXT)
        path.write_bytes(path.read_bytes()[:-30])
        with pytest.raises(ValueError, match=r"a\.zip is not a whole zip archive"):
            read_table(path)
        with pytest.raises(ValueError, match="archive without files"):
            read_table(archive(tmp_path / "empty.zip"))
        with pytest.raises(ValueError, match="is one table; leave '::x' out"):
            read_table(f"{people}::x")

    def test_unknown_compression(self, tmp_path):
        path = archive(tmp_path / "a.zip", people_DOT_csv=TEXT)
        content = bytearray(path.read_bytes())
        directory = content.find(b"PK\x01\x02")
        content[8:10] = content[directory + 10 : directory + 12] = (99).to_bytes(2, "little")
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"cannot be unpacked \(.*compression .*not supported\); unpack it first"):
            read_table(path)

    def test_a_bomb_does_not_fill_the_disk(self, tmp_path, monkeypatch):
        path = archive(tmp_path / "a.zip", people_DOT_csv=TEXT * 1000)
        monkeypatch.setattr(_table_address.shutil, "disk_usage", lambda folder: SimpleNamespace(free=1))
        with pytest.raises(ValueError, match="room for 1 in"):
            read_table(path)

    def test_other_formats_are_named(self, tmp_path):
        for name, advice in (("t.xls", "save it as .xlsx"), ("t.csv.xz", "unpack it"), ("t.json", "JSON lines")):
            (tmp_path / name).write_text(TEXT)
            with pytest.raises(ValueError, match=advice):
                read_table(tmp_path / name)

    def test_first_bytes_correct_the_name(self, tmp_path):
        archive(tmp_path / "zip.csv", people_DOT_csv=TEXT)
        (tmp_path / "gzip.csv").write_bytes(gzip.compress(TEXT.encode()))
        for name in ("zip.csv", "gzip.csv"):
            check_people(read_table(tmp_path / name))
        (tmp_path / "old.csv").write_bytes(b"\xd0\xcf\x11\xe0" + b"\0" * 100)
        with pytest.raises(ValueError, match="an old Excel"):
            read_table(tmp_path / "old.csv")


class TestWorkbooks:
    @pytest.fixture(autouse=True)
    def _needs_openpyxl(self):
        pytest.importorskip("openpyxl")

    def test_the_only_sheet_is_read(self, tmp_path):
        with pd.ExcelWriter(tmp_path / "t.xlsx") as writer:
            pd.DataFrame().to_excel(writer, sheet_name="nothing")
            frame_of_people().to_excel(writer, sheet_name="people", index=False)
        check_people(read_table(tmp_path / "t.xlsx"))
        (tmp_path / "t.xlsx").rename(tmp_path / "t.csv")
        check_people(read_table(tmp_path / "t.csv"))

    def test_several_sheets_must_be_named(self, tmp_path):
        with pd.ExcelWriter(tmp_path / "t.xlsx") as writer:
            for name in ("old", "new"):
                frame_of_people().to_excel(writer, sheet_name=name, index=False)
        with pytest.raises(ValueError, match=r"has 2 sheets: 'old', 'new'. Say which is meant: .*t\.xlsx::old"):
            read_table(tmp_path / "t.xlsx")
        check_people(read_table(f"{tmp_path / 't.xlsx'}::new"))
        with pytest.raises(ValueError, match=r"'x'.* 'old', 'new'"):
            read_table(f"{tmp_path / 't.xlsx'}::x")
        path = archive(tmp_path / "a.zip", t_DOT_xlsx=(tmp_path / "t.xlsx").read_bytes())
        check_people(read_table(f"{path}::t.xlsx::new"))

    def test_sheets_without_names_are_noticed(self, tmp_path):
        frame_of_people().assign(n=[1, 2, 3]).to_excel(tmp_path / "t.xlsx", index=False, header=False)
        with pytest.raises(ValueError, match="first line looks like a row of data"):
            read_table(tmp_path / "t.xlsx")
        assert list(read_table(tmp_path / "t.xlsx", header=False)) == [f"column_{number}" for number in range(1, 5)]

    def test_what_is_no_workbook_is_refused(self, tmp_path):
        (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04 and junk")
        with pytest.raises(ValueError, match="is not a workbook that can be read"):
            read_table(tmp_path / "t.xlsx")
        with pytest.raises(ValueError, match="separator=';'"):
            read_table(tmp_path / "t.xlsx", separator=";")

    def test_without_openpyxl_it_is_told(self, tmp_path, monkeypatch):
        frame_of_people().to_excel(tmp_path / "t.xlsx")
        monkeypatch.setitem(sys.modules, "openpyxl", None)
        with pytest.raises(ValueError, match="openpyxl"):
            read_table(tmp_path / "t.xlsx")


class TestDatabases:
    @pytest.fixture
    def database(self, tmp_path):
        path = tmp_path / "people.db"
        connection = sqlite3.connect(path)
        frame_of_people().to_sql("clients", connection, index=False)
        pd.DataFrame({"a": ["1.5", "2.5"], "code": ["007", "123"]}).to_sql('odd "name"', connection, index=False)
        connection.commit()
        connection.close()
        return path

    def test_tables_and_queries_are_read(self, database):
        check_people(read_table(f"{database}::clients"))
        check_people(read_table(f"{database}::SELECT age, sex, city FROM clients"))
        frame = read_table(f'{database}::odd "name"')
        assert frame["a"].tolist() == [1.5, 2.5]  # a number that is stored as text
        assert frame["code"].tolist() == ["007", "123"]  # no number: its zeros belong to it
        assert frame.attrs["notes"] == ("Read as numbers, although they are stored as text ('1.5' is 1.5): 'a'.",)

    def test_a_table_must_be_named(self, database):
        with pytest.raises(ValueError, match=r"has 2 tables: 'clients'.*Say which is meant.*people\.db::clients"):
            read_table(database)
        with pytest.raises(ValueError, match=r"has no table 'x'.*A query must begin with SELECT or WITH"):
            read_table(f"{database}::x")

    @pytest.mark.parametrize(
        "query",
        ["DROP TABLE clients", "WITH a AS (SELECT 1) DELETE FROM clients", "SELECT 1; DROP TABLE clients"],
    )
    def test_nothing_is_ever_written(self, database, query):
        before = database.read_bytes()
        with pytest.raises(ValueError, match=r"people\.db "):
            read_table(f"{database}::{query}")
        assert database.read_bytes() == before
        check_people(read_table(f"{database}::clients"))

    def test_what_is_no_database_is_refused(self, tmp_path):
        (tmp_path / "t.db").write_bytes(b"junk" * 1000)
        with pytest.raises(ValueError, match="SQLite"):
            read_table(tmp_path / "t.db")
        with pytest.raises(FileNotFoundError, match=r"none\.db"):
            read_table(f"{tmp_path / 'none.db'}::clients")
        assert not (tmp_path / "none.db").exists()

    def test_other_databases_need_sqlalchemy(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "sqlalchemy", None)
        with pytest.raises(ValueError, match=r"postgresql://me:\*\*\*@server/db needs SQLAlchemy") as error:
            read_table("postgresql://me:secret@server/db::clients")
        assert "secret" not in str(error.value)
        with pytest.raises(ValueError, match="say which table, or give a query"):
            read_table("postgresql://server/db")
        with pytest.raises(ValueError, match="download the table first"):
            read_table("https://example.org/t.csv")

    def test_sqlalchemy_reads_tables_and_queries(self, database):
        pytest.importorskip("sqlalchemy")
        check_people(read_table(f"sqlite:///{database}::clients"))
        check_people(read_table(f"sqlite:///{database}::SELECT * FROM clients"))
        with pytest.raises(ValueError, match="cannot be read"):
            read_table(f"sqlite:///{database}::SELECT * FROM nobody")

    def test_addresses_are_divided(self):
        assert split_address("postgresql://[::1]:5/db::SELECT a::int FROM b") == (
            "postgresql://[::1]:5/db", "SELECT a::int FROM b",
        )  # fmt: skip
        assert split_address("a.db::SELECT a::int FROM b") == ("a.db", "SELECT a::int FROM b")
        assert shown_address("mysql://me:p@ss:w@server/db") == "mysql://me:***@server/db"
        assert shown_address("people.csv") == "people.csv"


@contextlib.contextmanager
def piped(content, monkeypatch):
    """Standard input is a pipe with this content: the stream of Python, and that of the process."""
    before, (reading, writing) = os.dup(0), os.pipe()

    def write():
        with open(writing, "wb") as stream:
            stream.write(content)

    os.dup2(reading, 0)
    os.close(reading)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        with open(0, closefd=False) as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            yield
    finally:
        os.dup2(before, 0)
        os.close(before)
        writer.join()


class TestStreams:
    @pytest.mark.parametrize("name", ["-", "/dev/stdin"])
    @pytest.mark.parametrize("zipped", [False, True])
    def test_standard_input_keeps_its_names(self, name, zipped, monkeypatch):
        if not os.path.exists("/dev/stdin"):
            pytest.skip("no /dev/stdin")
        text = TEXT.encode() + b"1,x,y\n" * 20_000  # more than a pipe holds
        with piped(gzip.compress(text) if zipped else text, monkeypatch):
            frame = read_table(name)
        assert (list(frame), len(frame)) == (["age", "sex", "city"], 20_003)

    def test_a_named_pipe_is_read_once(self, tmp_path):
        if not hasattr(os, "mkfifo"):
            pytest.skip("no named pipes")
        os.mkfifo(tmp_path / "pipe")
        writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(TEXT, encoding="utf-8"))
        writer.start()
        frame = read_table(tmp_path / "pipe")
        writer.join()
        check_people(frame)
        assert frame.attrs["file_sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()
        with pytest.raises(ValueError, match="is a stream, which can be read only once"):
            privatize_file(tmp_path / "pipe", tmp_path / "out.csv", None, ["age"])

    def test_a_terminal_is_refused(self, monkeypatch):
        class Terminal:
            def isatty(self):
                return True

        monkeypatch.setattr(sys, "stdin", Terminal())
        with pytest.raises(ValueError, match="standard input is a terminal"):
            read_table("-")


def test_json_lines_are_read(tmp_path):
    path = tmp_path / "t.jsonl"
    frame_of_people().to_json(path, orient="records", lines=True)
    check_people(read_table(path))
    path.write_text('{"a": 1}\n{"b": "x", "code": "007"}\n')
    assert read_table(path)["code"].tolist()[1] == "007"
    for line, message in (
        ("nonsense", "line 2: Expecting value"),
        ("[1, 2]", "line 2 is no object"),
        ("[" * 99_999, "line 2"),
    ):
        path.write_text('{"a": 1}\n' + line + "\n")
        with pytest.raises(ValueError, match=f"cannot be read as JSON lines: {message}"):
            read_table(path)
    with pytest.raises(ValueError, match="header=False"):
        read_table(path, header=False)


def test_only_some_formats_are_privatised(tmp_path, people):
    for source, target in ((people, "out.xlsx"), (tmp_path / "a.zip", "out.csv")):
        archive(tmp_path / "a.zip", people_DOT_csv=TEXT)
        with pytest.raises(ValueError, match="block by block"):
            privatize_file(source, tmp_path / target, None, ["age"])


def test_without_permission_it_is_told(people, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(PermissionError, match=r"people\.csv may not be read"):
        read_table(people)
