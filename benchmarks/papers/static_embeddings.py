"""Word vectors that a package ships in its wheel, beside GloVe: is it worth an encoder of its own?

Of the packages on the index that speak of embeddings, one carries vectors in its wheel: wordllama (0.4.0.post1, 19 MB,
MIT, 32,000 tokens of 256 numbers; GloVe has 100). The others that were looked at are code that fetches a model when it
is first used. Documents are the means of their vectors, read by a logistic regression, whose strength is chosen by
cross-validation on the training part, and by a small network. Reviews are split anew for every seed; the others have
their published test part. The files of the package are read, and nothing of it is run: ``pip install --no-deps
wordllama``.
"""

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.papers._experiment import Experiment
from benchmarks.papers._tables import pick, spread
from benchmarks.papers._word_vectors import mean_vectors

REVIEWS = ("imdb", "amazon", "yelp")
NAMES = {"imdb": "IMDb", "amazon": "Amazon", "yelp": "Yelp", "ag": "AG news", "intent": "Snips", "mrpc": "MRPC"}
VECTORS = {"glove": "GloVe", "wordllama": "wordllama"}
STRENGTHS = (0.01, 0.1)


def cells(mode: str) -> list[dict[str, Any]]:
    """Every corpus with both vectors; reviews with several splits."""
    seeds = range(5 if mode == "full" else 1)
    return [
        {"data": data, "vectors": vectors, "seed": seed}
        for data in NAMES
        for vectors in VECTORS
        for seed in (seeds if data in REVIEWS else range(1))
        if mode == "full" or (data in REVIEWS and vectors == "glove")
    ]


def measure(cell: dict[str, Any]) -> dict[str, Any]:
    """Accuracy on the test part, in percent."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from skfairdp.neural import ProbeClassifier

    rows, labels, test = _vectors(cell["data"], cell["vectors"])
    if test is None:
        train, test = train_test_split(np.arange(len(rows)), test_size=0.2, random_state=cell["seed"])
    else:
        train, test = np.flatnonzero(~test), np.flatnonzero(test)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    linear = GridSearchCV(model, {"logisticregression__C": STRENGTHS}, cv=3)
    readers = {"logistic": linear, "network": ProbeClassifier(random_state=cell["seed"])}
    found = {"n_test": len(test)}
    for name, reader in readers.items():
        reader.fit(rows[train], labels[train])
        found[name] = 100 * float(np.mean(reader.predict(rows[test]) == labels[test]))
    return found


@lru_cache(maxsize=2)
def _vectors(data: str, vectors: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Rows, labels, and which rows are the published test part."""
    from skfairdp.datasets import fetch_ag_entities, fetch_mrpc, fetch_sentiment_sentences, fetch_snips

    means = mean_vectors if vectors == "glove" else _static_means
    if data in REVIEWS:
        bunch = fetch_sentiment_sentences(source=data)
        return means(bunch.data), np.asarray(bunch.target), None
    if data == "mrpc":
        bunch = fetch_mrpc()
        first, second = (means(column) for column in np.asarray(bunch.data).T)
        return np.hstack([np.abs(first - second), first * second]), np.asarray(bunch.target), bunch.subset == "test"
    bunch = fetch_snips(preset="ome") if data == "intent" else fetch_ag_entities()
    return means(bunch.data), np.asarray(bunch.target), bunch.subset == "test"


def _static_means(documents: Any) -> np.ndarray:
    """Mean of the vectors of a document's tokens."""
    tokenizer, table = _wordllama()
    found = np.zeros((len(documents), table.shape[1]), dtype=np.float32)
    for row, encoding in zip(found, tokenizer.encode_batch(list(documents), add_special_tokens=False)):
        if encoding.ids:
            row[:] = table[encoding.ids].mean(axis=0)
    return found


@lru_cache(maxsize=1)
def _wordllama() -> tuple[Any, np.ndarray]:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise ImportError("the vectors of wordllama are needed: pip install --no-deps wordllama==0.4.0.post1")
    folder = Path(spec.origin).parent
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    (table,) = load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    return tokenizer, table.astype(np.float32)


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A line for each corpus: both accuracies, and by how much one is better."""
    lines = []
    for data, name in NAMES.items():
        of = {vectors: pick(frame, data=data, vectors=vectors).sort_values("seed") for vectors in VECTORS}
        if not all(len(some) for some in of.values()):
            continue
        line = {"corpus": name, "test rows": str(of["glove"]["n_test"].iloc[0]), "splits": str(len(of["glove"]))}
        for reader in ("logistic", "network"):
            values = {vectors: some[reader].to_numpy() for vectors, some in of.items()}
            line |= {f"{VECTORS[vectors]}, {reader}": spread(found) for vectors, found in values.items()}
            line[f"difference, {reader}"] = spread(values["wordllama"] - values["glove"])
        lines.append(line)
    return {"accuracy": pd.DataFrame(lines)}


EXPERIMENTS = {"static-embeddings": Experiment("static-embeddings", cells, measure, tables)}
