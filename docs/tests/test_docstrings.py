"""Docstrings keep what they promise: sections, parameters, and examples that run."""

import dataclasses
import inspect

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


def test_every_parameter_is_described():
    wrong = {}
    for name, thing in PUBLIC.items():
        document = document_of(thing)
        described = described_parameters(document) or described_parameters(document, "Attributes")
        wanted = signature_parameters(thing)
        # Results of functions may have attributes that are no parameters.
        if name in RESULTS:
            described = [n for n in described if n in wanted]
        if described != wanted:
            wrong[name] = (described, wanted)
    assert wrong == {}


def test_every_object_has_a_summary_that_ends():
    assert [n for n, thing in PUBLIC.items() if not " ".join(document_of(thing)["Summary"]).strip().endswith(".")] == []


def test_every_object_has_an_example():
    assert [n for n in EXAMPLES if not any(">>>" in line for line in document_of(PUBLIC[n])["Examples"])] == []


def test_every_private_estimator_states_its_privacy():
    private = [name for name in sorted(ESTIMATORS) if hasattr(PUBLIC[name], "_release")]
    assert len(private) >= 8
    assert [n for n in private if "**Privacy.**" not in "\n".join(document_of(PUBLIC[n])["Notes"])] == []


def test_every_public_method_of_an_estimator_is_described():
    assert [
        f"{name}.{method_name}"
        for name in sorted(ESTIMATORS)
        for method_name, method in inspect.getmembers(PUBLIC[name], inspect.isfunction)
        if not method_name.startswith("_") and method.__module__.startswith("skfairdp") and not inspect.getdoc(method)
    ] == []
