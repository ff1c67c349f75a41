"""Writes the API pages: one for each folder, one for each public name with every method that a user may call.

They are made from ``__all__`` and from the classes themselves, so that no name and no method can be forgotten. A class
is shown with what it inherits from skfairdp and scikit-learn; what comes from torch, skorch or Python is left to their
own documentation.
"""

import importlib
import inspect
import re
from functools import cached_property
from pathlib import Path
from typing import Any

from sphinx.domains.python import PyClasslike

import skfairdp

TITLES = {
    "preprocessing": "Privatizers, encoders and erasers",
    "postprocessing": "Any classifier, made fair and private",
    "adversarial": "FEDERATE: a private representation learned against an adversary",
    "ensemble": "PATE: private teachers, and whom their noise harms",
    "metrics": "Metrics and scorers",
    "model_selection": "Choosing a model",
    "inspection": "Pictures",
    "table_audit": "The audit of a table",
    "epsilon_audit": "Attacking a guarantee",
    "accounting": "What a release costs",
    "dp": "The privacy kernel: receipts, mechanisms, releases and the ledger",
    "pipeline": "Pipelines that know their price",
    "release": "How a value leaves, and what a pipeline costs",
    "datasets": "Data",
    "table_files": "Tables as files",
    "dask": "Tables that a cluster holds",
    "exceptions": "Warnings and errors",
    "mechanisms": "What draws the noise",
    "neural": "Networks",
    "random": "Where randomness comes from",
}

#: The page of the user guide for each folder, and for names that have one of their own.
GUIDE = {
    "accounting": "accounting",
    "adversarial": "federate",
    "dask": "scaling_out",
    "datasets": "datasets",
    "dp": "accounting",
    "ensemble": "pate",
    "epsilon_audit": "published_against_exact",
    "exceptions": "pipelines",
    "inspection": "model_selection",
    "mechanisms": "published_against_exact",
    "metrics": "fairness_metrics",
    "model_selection": "model_selection",
    "neural": "federate",
    "pipeline": "pipelines",
    "postprocessing": "fair_private",
    "preprocessing": "representations",
    "random": "security",
    "release": "pipelines",
    "table_audit": "audit_a_table",
    "table_files": "audit_a_table",
    "AnswerMechanism": "fair_private",
    "BagOfEmbeddings": "text",
    "BagOfEmbeddingsEncoder": "text",
    "BoundaryDisplay": "pate",
    "CodeLength": "leakage",
    "FlippingDisplay": "pate",
    "GroupCounts": "scaling_out",
    "GroupRatesDisplay": "fairness_metrics",
    "INLPEraser": "erasure",
    "InputNormDisplay": "pate",
    "LEACEEraser": "erasure",
    "LeakageDisplay": "leakage",
    "Mechanism": "published_against_exact",
    "NetworkEnsemble": "pate",
    "OpenMechanism": "published_against_exact",
    "PATESweepDisplay": "pate",
    "PrivacyCurveDisplay": "published_against_exact",
    "PrivateScaler": "pipelines",
    "PrivateSearchCV": "private_search",
    "ProbeClassifier": "leakage",
    "PublicScaler": "pipelines",
    "ReleaseMixin": "pipelines",
    "RepresentationDisplay": "leakage",
    "SelectionMechanism": "private_search",
    "SensitiveWords": "text",
    "SensitivityBounds": "pate",
    "SoftLabelDisplay": "pate",
    "TrainingHistoryDisplay": "federate",
    "TransformerNetwork": "text",
    "TransformersEncoder": "text",
    "TrialBudget": "private_search",
    "TruncatedNegativeBinomial": "private_search",
    "VoteMechanism": "pate",
    "WordDropout": "text",
    "amplify_by_dropout": "text",
    "closeness_to_boundary": "pate",
    "dropout_epsilon": "text",
    "empirical_privacy_score": "leakage",
    "excessive_risk": "pate",
    "excessive_risk_bound": "pate",
    "excessive_risk_gap": "pate",
    "fetch_adult": "datasets",
    "flipping_probability": "pate",
    "forget_features": "text",
    "frozen_features": "text",
    "hard_label_bounds": "pate",
    "layers_behind": "text",
    "leakage_report": "leakage",
    "leakage_score": "leakage",
    "load_tokenizer": "text",
    "load_transformer": "text",
    "make_biased_text": "text",
    "make_code_length_scorer": "leakage",
    "make_leakage_scorer": "leakage",
    "mask_words": "text",
    "model_sensitivity": "pate",
    "online_code_length": "leakage",
    "route_sensitive_features": "pipelines",
    "selection_budget": "private_search",
    "selection_epsilon": "private_search",
    "selection_mechanism": "private_search",
    "selection_rdp": "private_search",
    "soft_label_bounds": "pate",
    "token_ids": "text",
    "train_by_opacus": "pate",
    "transform_in_blocks": "scaling_out",
    "transformer_fingerprint": "text",
    "word_guarantee": "text",
}

#: The version in which a name first appeared, where that is not the first one.
ADDED: dict[str, str] = {}
FIRST_VERSION = "0.1"

DOCS = Path(__file__).resolve().parent.parent


def public_names(folder: str) -> dict[str, Any]:
    """Return what a folder offers, by name."""
    module = importlib.import_module(f"skfairdp.{folder}")
    return {name: getattr(module, name) for name in module.__all__}


def public_members(cls: type) -> dict[str, str]:
    """Return the directive for each public method and property of a class: its own, and scikit-learn's."""
    members = {}
    for name in dir(cls):
        owner = next((c for c in cls.__mro__ if name in vars(c)), None)  # none: an attribute of the metaclass
        if name.startswith("_") or owner is None or owner.__module__.split(".")[0] not in ("skfairdp", "sklearn"):
            continue
        member = vars(owner)[name]
        if isinstance(member, property | cached_property):
            members[name] = "autoproperty"
        elif callable(getattr(cls, name)) and not inspect.isclass(member):
            members[name] = "automethod"
    return members


def guide_page(folder: str, name: str = "") -> str:
    """Return the name of the guide's page about a public name, or about its folder."""
    return GUIDE.get(name, GUIDE[folder])


def _titled(title: str, underline: str = "=") -> list[str]:
    return [title, underline * len(title), ""]


def _table(names: list[str], toctree: bool = False) -> list[str]:
    options = ["   :toctree: ."] if toctree else []
    return [".. autosummary::", *options, "   :nosignatures:", "", *(f"   {name}" for name in names), ""]


def _indented(lines: list[str]) -> list[str]:
    return [f"   {line}" if line else "" for line in lines]


def _object_page(folder: str, name: str, thing: Any) -> str:
    full = f"skfairdp.{folder}.{name}"
    home = "skfairdp" if name in skfairdp._HOME else f"skfairdp.{folder}"
    lines = [*_titled(name), f".. currentmodule:: skfairdp.{folder}", ""]
    lines += [".. code-block:: python", "", f"   from {home} import {name}", ""]
    lines += [f"Read more in the user guide: :doc:`/guide/{guide_page(folder, name)}`.", ""]
    if inspect.isclass(thing):
        members = public_members(thing)
        described = re.findall(r"^(\w+) :", (inspect.getdoc(thing) or "").partition("\nAttributes\n")[2], re.MULTILINE)
        # What estimators inherit needs an address in each of them, or links to it would be ambiguous.
        described = [m for m in described if not hasattr(skfairdp.dp.ReleaseMixin, m)]
        members = {m: d for m, d in members.items() if d == "automethod" or m not in described}
        lines += [f".. auto{'exception' if issubclass(thing, Exception) else 'class'}:: {name}", ""]
        if methods := [m for m, directive in members.items() if directive == "automethod"]:
            lines += _indented([".. rubric:: Methods", "", *_table([f"{name}.{m}" for m in methods])])
        for member, directive in members.items():
            lines += _indented([f".. {directive}:: {name}.{member}", ""])
    elif inspect.isroutine(thing):
        lines += [f".. autofunction:: {name}", ""]
    else:
        lines += [f".. autodata:: {name}", "   :no-value:", ""]
    lines += [f".. versionadded:: {ADDED.get(name, FIRST_VERSION)}", ""]
    also = f" {home}.{name}" if home == "skfairdp" else ""
    lines += [f".. minigallery:: {full}{also}", "   :add-heading: Examples that use it", ""]
    return "\n".join(lines)


def _folder_page(folder: str) -> str:
    names = public_names(folder)
    lines = _titled(f"skfairdp.{folder}: {TITLES[folder]}")
    lines += [f".. automodule:: skfairdp.{folder}", "   :no-members:", "", f".. currentmodule:: skfairdp.{folder}", ""]
    lines += [f"Read more in the user guide: :doc:`/guide/{guide_page(folder)}`.", ""]
    classes = [name for name, thing in names.items() if inspect.isclass(thing)]
    for title, part in (("Classes", classes), ("Functions", [name for name in names if name not in classes])):
        if part:
            lines += [*_titled(title, "-"), *_table(part, toctree=True)]
    return "\n".join(lines)


def _overview() -> str:
    lines = _titled("API reference")
    lines += ["What most people come for can be imported from ``skfairdp`` itself; the rest from its folder.", ""]
    lines += _titled("Folders", "-")
    for folder, title in TITLES.items():
        lines += [f":doc:`skfairdp.{folder} <skfairdp.{folder}>`", f"    {title}"]
    lines += ["", *_titled("Names at the top", "-")]
    lines += _table([f"~skfairdp.{folder}.{name}" for name, folder in skfairdp._HOME.items()])
    lines += [".. toctree::", "   :hidden:", ""]
    return "\n".join([*lines, *(f"   skfairdp.{folder} <skfairdp.{folder}>" for folder in TITLES), ""])


def page_sources() -> dict[str, str]:
    """Return the text of every API page by the name of its file, without ``.rst``."""
    sources = {"api": _overview()}
    for folder in TITLES:
        sources[f"skfairdp.{folder}"] = _folder_page(folder)
        for name, thing in public_names(folder).items():
            sources[f"skfairdp.{folder}.{name}"] = _object_page(folder, name, thing)
    return sources


def write_pages(folder: Path) -> None:
    """Write the pages that have changed, and remove those of names that have gone."""
    folder.mkdir(exist_ok=True)
    sources = page_sources()
    for path in folder.glob("*.rst"):
        if path.stem not in sources:
            path.unlink()
    for name, text in sources.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def _without_foreign_links(app, what, name, thing, options, lines) -> None:
    """Write links to scikit-learn's own pages as plain text, in the docstrings that come from there."""
    if not (getattr(inspect.unwrap(thing), "__module__", None) or "skfairdp").startswith("skfairdp"):
        text = re.sub(r"(the )?:ref:`user guide\s*<[^`]*`", "scikit-learn's user guide", "\n".join(lines), flags=re.I)
        text = re.sub(r":ref:`sphx_glr_[^`]*`", "scikit-learn's gallery", text)
        lines[:] = re.sub(r":\w+:`~?([^`<]*?)\s*(?:<[^`>]*>)?`", r"\1", text).split("\n")


class _ClassOfSeveralPackages(PyClasslike):
    """A class has a page in each package that offers it, and the address of its file would be that of all of them."""

    def run(self) -> list:
        self.options.pop("canonical", None)
        return super().run()


def setup(app) -> dict:
    """Write the pages before Sphinx reads them."""
    app.setup_extension("sphinx.ext.autodoc")
    app.add_directive_to_domain("py", "class", _ClassOfSeveralPackages, override=True)
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir) / "generated"), priority=100)
    app.connect("autodoc-process-docstring", _without_foreign_links, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
