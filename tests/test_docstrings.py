"""Docstrings keep what they promise: sections, parameters, and examples that run."""

import dataclasses
import inspect

import pytest
from numpydoc.docscrape import FunctionDoc, NumpyDocString
from sklearn.base import BaseEstimator

import skfairdp

# Tools of neural/ are for our own estimators; warnings and errors have no parameters.
FOLDERS = sorted(set(skfairdp._FOLDERS) - {"neural", "exceptions"})
PUBLIC = {
    f"{folder}.{name}": thing
    for folder in FOLDERS
    for name in getattr(skfairdp, folder).__all__
    if callable(thing := getattr(getattr(skfairdp, folder), name))
}


def described_parameters(document: NumpyDocString, section: str = "Parameters") -> list[str]:
    names = []
    for parameter in document[section]:
        names += [name.strip().lstrip("*") for name in parameter.name.split(",")]
    return names


def signature_parameters(thing) -> list[str]:
    signature = inspect.signature(thing)
    return [name for name in signature.parameters if not name.startswith("_") and name != "self"]


def document_of(thing) -> NumpyDocString:
    if inspect.isclass(thing):
        return NumpyDocString(inspect.getdoc(thing))
    return FunctionDoc(thing)


# What functions return is described by its attributes, and shown by the examples of the functions.
RESULTS = {name for name, thing in PUBLIC.items() if dataclasses.is_dataclass(thing) and inspect.isclass(thing)}
RESULTS |= {"adversarial.FederateEncoder", "adversarial.FederateHead"}  # cut from a fitted model by split()
ESTIMATORS = {name for name, thing in PUBLIC.items() if inspect.isclass(thing) and issubclass(thing, BaseEstimator)}
EXAMPLES = sorted(set(PUBLIC) - RESULTS)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_is_described(name):
    document = document_of(PUBLIC[name])
    described = described_parameters(document) or described_parameters(document, "Attributes")
    wanted = signature_parameters(PUBLIC[name])
    assert [n for n in described if n in wanted] == wanted
    if name not in RESULTS:
        assert described == wanted


@pytest.mark.parametrize("name", PUBLIC)
def test_there_is_a_summary(name):
    assert " ".join(document_of(PUBLIC[name])["Summary"]).strip().endswith(".")


@pytest.mark.parametrize("name", EXAMPLES)
def test_there_is_an_example(name):
    assert any(">>>" in line for line in document_of(PUBLIC[name])["Examples"]), "give an example that runs"


@pytest.mark.parametrize("name", [name for name in sorted(ESTIMATORS) if hasattr(PUBLIC[name], "_release")])
def test_what_claims_privacy_says_how_far_it_goes(name):
    notes = "\n".join(document_of(PUBLIC[name])["Notes"])
    assert "**Privacy.**" in notes


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_every_public_method_of_an_estimator_is_described(name):
    for method_name, method in inspect.getmembers(PUBLIC[name], inspect.isfunction):
        if not method_name.startswith("_") and method.__module__.startswith("skfairdp"):
            assert inspect.getdoc(method), f"{name}.{method_name} has no docstring"
