"""Four small corpora: reviews, commands, paraphrases, and news that name persons."""

import os
from typing import Any

import numpy as np
import pandas as pd

from skfairdp.datasets import _descriptions, _files
from skfairdp.datasets._bunch import check_choice, pack
from skfairdp.datasets._fetch import read

_TOPICS = ["world", "US", "sport", "business"]
_PERSONS = ["Bush", "Kerry", "Arafat", "Blair", "Sharon"]


def _lines(content: bytes) -> list[str]:
    """Split at line feeds only: str.splitlines would also split at U+0085, which texts contain."""
    return [line.removesuffix("\r") for line in content.decode("utf-8-sig").split("\n")]


def fetch_sentiment_sentences(
    *,
    source: str = "all",
    return_X_y: bool = False,
    as_frame: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Any:
    """Load 3,000 sentences of reviews with their sentiment.

    Parameters
    ----------
    source : {"all", "imdb", "amazon", "yelp"}, default="all"
        Where the reviews were written; 1,000 sentences each.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Give pandas objects.
    data_home : path, optional
        The folder to look in and to store into, instead of ``$SKFAIRDP_DATA`` or ``~/.cache/skfairdp``.
    download_if_missing : bool, default=True
        Download files that are missing; otherwise raise FileNotFoundError.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With the keys `data` (sentences), `target` (1 is positive), `sensitive_features` (None: nothing is known
        about the authors), `source` (of each sentence), `feature_names`, `feature_types`, `target_names`, `frame`
        and `DESCR`.

    (data, target) : tuple
        With ``return_X_y=True``.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_sentiment_sentences
    >>> yelp = fetch_sentiment_sentences(source="yelp")  # doctest: +SKIP
    >>> yelp.data[0], yelp.target_names[yelp.target[0]]  # doctest: +SKIP
    ('Wow... Loved this place.', 'positive')
    """
    check_choice(source, "source", ("all", *_files.SENTIMENT))
    texts, labels, sources = [], [], []
    for name, file in _files.SENTIMENT.items():
        if source in ("all", name):
            for line in _lines(read(file, data_home, download_if_missing)):
                if line:
                    text, _, label = line.rpartition("\t")
                    texts.append(text.strip())
                    labels.append(int(label))
                    sources.append(name)
    return pack(
        pd.Series(texts, name="text"),
        pd.Series(labels, name="sentiment"),
        None,
        as_frame=as_frame,
        return_X_y=return_X_y,
        source=np.array(sources, dtype=object),
        feature_names=["text"],
        feature_types={"text": "text"},
        target_names=["negative", "positive"],
        DESCR=_descriptions.SENTIMENT,
    )


def fetch_snips(
    *,
    subset: str = "all",
    preset: str | None = None,
    return_X_y: bool = False,
    as_frame: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Any:
    """Load the SNIPS commands to a voice assistant with their intents.

    Parameters
    ----------
    subset : {"all", "train", "valid", "test"}, default="all"
        The part of the published split.
    preset : {None, "ome"}, default=None
        ``"ome"``: the validation rows belong to the training rows, 13,784 in all, as in [1]_.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Give pandas objects.
    data_home : path, optional
        The folder to look in and to store into, instead of ``$SKFAIRDP_DATA`` or ``~/.cache/skfairdp``.
    download_if_missing : bool, default=True
        Download files that are missing; otherwise raise FileNotFoundError.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With the keys `data` (commands), `target`, `sensitive_features` (None: nothing is known about the authors),
        `subset` (the part of each row), `feature_names`, `feature_types`, `target_names`, `frame` and `DESCR`.

    (data, target) : tuple
        With ``return_X_y=True``.

    References
    ----------
    .. [1] L. Lyu, Y. Li, X. He and T. Xiao. Towards differentially private text representations. SIGIR 2020.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_snips
    >>> snips = fetch_snips(subset="train")  # doctest: +SKIP
    >>> snips.data[0], snips.target_names[snips.target[0]]  # doctest: +SKIP
    ('listen to westbam alumb allergic on google music', 'PlayMusic')
    """
    check_choice(preset, "preset", (None, "ome"))
    parts = {"train": ("train", "valid"), "test": ("test",)} if preset else {name: (name,) for name in _files.SNIPS}
    check_choice(subset, "subset", ("all", *parts))
    texts: list[str] = []
    intents: list[str] = []
    subsets: list[str] = []
    for part, names in parts.items():
        if subset in ("all", part):
            for name in names:
                commands, labels = (_lines(read(file, data_home, download_if_missing)) for file in _files.SNIPS[name])
                texts += [line.strip() for line in commands if line]
                intents += [line.strip() for line in labels if line]
                subsets += [part] * (len(texts) - len(subsets))
    target_names = sorted(set(intents))
    return pack(
        pd.Series(texts, name="text"),
        pd.Series(np.searchsorted(target_names, intents), name="intent"),
        None,
        as_frame=as_frame,
        return_X_y=return_X_y,
        subset=np.array(subsets, dtype=object),
        feature_names=["text"],
        feature_types={"text": "text"},
        target_names=target_names,
        DESCR=_descriptions.SNIPS,
    )


def fetch_mrpc(
    *,
    subset: str = "all",
    return_X_y: bool = False,
    as_frame: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Any:
    """Load the Microsoft Research paraphrase corpus, to predict whether two sentences say the same.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        The part of the published split.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Give pandas objects.
    data_home : path, optional
        The folder to look in and to store into, instead of ``$SKFAIRDP_DATA`` or ``~/.cache/skfairdp``.
    download_if_missing : bool, default=True
        Download files that are missing; otherwise raise FileNotFoundError.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With the keys `data` (two columns of sentences), `target` (1 is a paraphrase), `sensitive_features` (None:
        nothing is known about the authors), `subset` (the part of each row), `feature_names`, `feature_types`,
        `target_names`, `frame` and `DESCR`.

    (data, target) : tuple
        With ``return_X_y=True``.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_mrpc
    >>> pairs = fetch_mrpc(subset="test")  # doctest: +SKIP
    >>> pairs.data.shape, float(pairs.target.mean().round(3))  # doctest: +SKIP
    ((1725, 2), 0.665)
    """
    check_choice(subset, "subset", ("all", *_files.MRPC))
    pairs, labels, subsets = [], [], []
    for name, file in _files.MRPC.items():
        if subset in ("all", name):
            # Quotation marks are part of the sentences, so this is split by hand and not by a CSV reader.
            for line in _lines(read(file, data_home, download_if_missing))[1:]:
                if line:
                    label, _, _, first, second = line.split("\t")
                    pairs.append((first, second))
                    labels.append(int(label))
                    subsets.append(name)
    columns = ["sentence_1", "sentence_2"]
    return pack(
        pd.DataFrame(pairs, columns=columns),
        pd.Series(labels, name="paraphrase"),
        None,
        as_frame=as_frame,
        return_X_y=return_X_y,
        subset=np.array(subsets, dtype=object),
        feature_names=columns,
        feature_types=dict.fromkeys(columns, "text"),
        target_names=["different", "paraphrase"],
        DESCR=_descriptions.MRPC,
    )


def fetch_ag_entities(
    *,
    subset: str = "all",
    return_X_y: bool = False,
    as_frame: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Any:
    """Load AG news articles with their topics and the persons whom they name.

    These are the articles, split and entities of [1]_.

    Parameters
    ----------
    subset : {"all", "train", "valid", "test"}, default="all"
        The part of the published split.
    return_X_y : bool, default=False
        Return ``(data, target)``, without the persons, instead of a Bunch.
    as_frame : bool, default=False
        Give pandas objects.
    data_home : path, optional
        The folder to look in and to store into, instead of ``$SKFAIRDP_DATA`` or ``~/.cache/skfairdp``.
    download_if_missing : bool, default=True
        Download files that are missing; otherwise raise FileNotFoundError.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With the keys `data` (articles), `target`, `sensitive_features` (five columns, 1 where the person is named),
        `entity_names`, `subset` (the part of each row), `feature_names`, `feature_types`, `target_names`, `frame` and
        `DESCR`.

    (data, target) : tuple
        With ``return_X_y=True``.

    References
    ----------
    .. [1] L. Lyu, X. He and Y. Li. Differentially private representation for NLP: formal guarantee and an empirical
       study on privacy and fairness. Findings of EMNLP 2020.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_ag_entities
    >>> news = fetch_ag_entities(as_frame=True)  # doctest: +SKIP
    >>> news.sensitive_features.sum().to_dict()  # doctest: +SKIP
    {'Bush': 7928, 'Kerry': 3761, 'Arafat': 2666, 'Blair': 1512, 'Sharon': 1451}
    """
    names = ("train", "valid", "test")
    check_choice(subset, "subset", ("all", *names))
    texts, topics, persons, subsets = [], [], [], []
    part = 0
    for line in _lines(read(_files.AG_ENTITIES, data_home, download_if_missing)):
        if line.startswith("="):  # a line of "=" ends each part
            part += 1
        elif line and subset in ("all", names[part]):
            topic, text, entities = line.split("\t")
            texts.append(text.strip())
            topics.append(int(topic))
            persons.append([int(k in entities.split()) for k in "01234"])
            subsets.append(names[part])
    return pack(
        pd.Series(texts, name="text"),
        pd.Series(topics, name="topic"),
        pd.DataFrame(persons, columns=_PERSONS),
        as_frame=as_frame,
        return_X_y=return_X_y,
        entity_names=list(_PERSONS),
        subset=np.array(subsets, dtype=object),
        feature_names=["text"],
        feature_types={"text": "text"},
        target_names=list(_TOPICS),
        DESCR=_descriptions.AG_ENTITIES,
    )
