"""The lowest versions that we promise are the lowest versions that the tests run with."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

pytestmark = pytest.mark.repository

ROOT = Path(__file__).parents[2]
EXTRAS = ["polars", "excel", "dp", "dask", "text", "test"]  # what `make test-lowest` installs besides the dependencies


def pins(name):
    lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]
    return {canonicalize_name(line.split("==")[0]): Version(line.split("==")[1]) for line in lines}


def bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = project["dependencies"] + [line for extra in EXTRAS for line in project["optional-dependencies"][extra]]
    wanted = [Requirement(line) for line in lines]
    return {canonicalize_name(one.name): one.specifier for one in wanted if one.name != "skfairdp"}


def test_lower_bounds_are_the_tested_versions():
    promised = {name: Version(str(bound).removeprefix(">=")) for name, bound in bounds().items()}
    tested = pins("constraints-lowest.txt")
    assert {name: tested[name] for name in promised} == promised


def test_pinned_versions_are_allowed():
    pinned = pins("constraints.txt")
    assert [name for name, bound in bounds().items() if pinned[name] not in bound] == []
