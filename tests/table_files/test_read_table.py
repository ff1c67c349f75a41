"""Tables are read from files of every format, or refused in one sentence."""

import pytest

from skfairdp.table_files import read_table


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
