"""What a user sees: names, laziness, and a quiet import."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import skfairdp
from tests._checks import ESTIMATORS

PACKAGE = Path(skfairdp.__file__).parent
FOLDERS = sorted(p.parent.name for p in PACKAGE.glob("*/__init__.py"))


def test_every_name_is_reachable_both_ways():
    for name, home in skfairdp._HOME.items():
        module = importlib.import_module(f"skfairdp.{home}")
        assert getattr(skfairdp, name) is getattr(module, name)
        assert name in module.__all__, f"{name} is missing in skfairdp.{home}.__all__"


def test_exported_names_exist():
    assert set(FOLDERS) <= set(skfairdp._FOLDERS)
    for folder in FOLDERS:
        module = getattr(skfairdp, folder)
        assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_dir_lists_the_public_names():
    assert set(skfairdp._HOME) <= set(dir(skfairdp))
    assert set(skfairdp._FOLDERS) <= set(dir(skfairdp))
    assert list(skfairdp._HOME) == sorted(skfairdp._HOME), "keep _HOME sorted, so that two changes do not collide"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'LaplacePrivatiser'"):
        _ = skfairdp.LaplacePrivatiser


def test_every_public_estimator_is_registered_for_the_checks():
    public = {
        name
        for folder in FOLDERS
        if folder != "neural"  # tools for our estimators, not estimators for users
        for name in getattr(skfairdp, folder).__all__
        if isinstance(thing := getattr(getattr(skfairdp, folder), name), type) and issubclass(thing, BaseEstimator)
    }
    registered = {type(estimator).__name__ for estimator in ESTIMATORS}
    registered.add("PrivatePipeline")  # scikit-learn checks its own Pipeline; tests/pipeline does the rest
    registered |= {"FederateEncoder", "FederateHead"}  # cut from a fitted model by split(), never fitted themselves
    assert public - registered == set(), "append an instance to ESTIMATORS in tests/_checks.py"


def _fresh_python(code: str, cwd: Path) -> str:
    result = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True)
    return result.stdout.strip()


def test_import_is_light_and_writes_nothing(tmp_path):
    code = (
        "import os, sys\n"
        "sys.dont_write_bytecode = True\n"
        "os.environ['HOME'] = os.environ['XDG_CACHE_HOME'] = os.getcwd()\n"
        "import skfairdp\n"
        "print(sorted({'torch', 'skorch', 'matplotlib', 'sklearn'} & set(sys.modules)))\n"
        "print(os.listdir())"
    )
    assert _fresh_python(code, tmp_path) == "[]\n[]"


def test_folders_load_no_heavy_guest(tmp_path):
    folders = [folder for folder in FOLDERS if folder != "neural"]
    code = (
        f"import importlib, sys\nfor f in {folders!r}: importlib.import_module('skfairdp.' + f)\n"
        "print(sorted({'torch', 'skorch', 'matplotlib', 'dask', 'distributed'} & set(sys.modules)))"
    )
    assert _fresh_python(code, tmp_path) == "[]"


def test_command_line_tells_its_version(tmp_path):
    assert _fresh_python("import sys; from skfairdp.cli import main; main(['versions'])", tmp_path).startswith(
        f"skfairdp {skfairdp.__version__}"
    )
