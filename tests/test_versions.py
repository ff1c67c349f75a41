"""The lowest versions that we promise are the lowest versions that the tests run with."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
EXTRAS = ["polars", "excel", "dp", "dask", "text", "test"]  # what `make test-lowest` installs besides the dependencies


def pins(name):
    lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]
    return {canonicalize_name(line.split("==")[0]): Version(line.split("==")[1]) for line in lines}


def bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = project["dependencies"] + [line for extra in EXTRAS for line in project["optional-dependencies"][extra]]
    wanted = [Requirement(line) for line in lines]
    return {canonicalize_name(one.name): one for one in wanted if one.name != "skfairdp"}


@pytest.mark.parametrize("name", sorted(bounds()))
def test_lowest_is_what_is_promised(name):
    (bound,) = bounds()[name].specifier
    assert bound.operator == ">="
    assert pins("constraints-lowest.txt")[name] == Version(bound.version)


@pytest.mark.parametrize("name", sorted(bounds()))
def test_pinned_versions_are_allowed(name):
    assert pins("constraints.txt")[name] in bounds()[name].specifier
