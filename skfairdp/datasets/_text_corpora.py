"""Four small corpora (reviews, commands, paraphrases, and news that name persons), and word vectors."""

import csv
import io
import os
import zipfile
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skfairdp.datasets import _fetch
from skfairdp.datasets._bunch import check_choice, make_bunch

_TOPICS = ["world", "US", "sport", "business"]
_PERSONS = ["Bush", "Kerry", "Arafat", "Blair", "Sharon"]


def _lines_of(file: _fetch.RemoteFile, data_home: Any, download_if_missing: bool) -> list[str]:
    """Return the lines that are not empty, without their ends.

    They are split at line feeds only: str.splitlines would also split at U+0085, which texts contain.
    """
    content = _fetch.read_published_file(file, data_home, download_if_missing)
    lines = (line.removesuffix("\r") for line in content.decode("utf-8-sig").split("\n"))
    return [line for line in lines if line]


_SENTIMENT_DESCR = """\
Sentiment labelled sentences
----------------------------
Three times 1,000 sentences from reviews at imdb.com, amazon.com and yelp.com, half of them positive.

Origin: D. Kotzias, M. Denil, N. de Freitas and P. Smyth. From group to individual labels using deep features. KDD
2015. UCI Machine Learning Repository, https://doi.org/10.24432/C57604.
Licence: CC BY 4.0.

Known harms and misuse: only sentences with a clear sentiment were chosen, so accuracy here is higher than on any real
stream of reviews. There is no author attribute. With 200 test sentences a standard error is 2 to 3 points.
"""


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
    check_choice(source, "source", ("all", *_fetch.SENTIMENT))
    rows = [
        (*line.rpartition("\t"), name)
        for name, file in _fetch.SENTIMENT.items()
        if source in ("all", name)
        for line in _lines_of(file, data_home, download_if_missing)
    ]
    table = pd.DataFrame(rows, columns=["text", "tab", "sentiment", "source"])
    return make_bunch(
        table["text"].str.strip(),
        table["sentiment"].astype(np.int64),
        None,
        as_frame=as_frame,
        return_X_y=return_X_y,
        source=table["source"].to_numpy(dtype=object),
        feature_types={"text": "text"},
        target_names=["negative", "positive"],
        DESCR=_SENTIMENT_DESCR,
    )


_SNIPS_DESCR = """\
SNIPS intents
-------------
14,484 commands to a voice assistant with 7 intents: 13,084 training, 700 validation, 700 test.

Origin: A. Coucke et al. Snips voice platform. arXiv:1805.10190, 2018; in the split of C.-W. Goo et al., NAACL 2018.
Licence: CC0 1.0.

Known harms and misuse: commands were written by crowd workers on request, not spoken by users. Methods differ by
tenths of a point near 98 %, less than the noise of 700 test rows.
"""


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
    subset_of = {"train": "train", "valid": "train" if preset else "valid", "test": "test"}
    check_choice(subset, "subset", ("all", *dict.fromkeys(subset_of.values())))
    rows = [
        (command.strip(), intent.strip(), subset_of[name])
        for name, files in _fetch.SNIPS.items()
        if subset in ("all", subset_of[name])
        for command, intent in zip(*(_lines_of(file, data_home, download_if_missing) for file in files), strict=True)
    ]
    table = pd.DataFrame(rows, columns=["text", "intent", "subset"])
    intents, target_names = pd.factorize(table["intent"], sort=True)
    return make_bunch(
        table["text"],
        pd.Series(intents, name="intent"),
        None,
        as_frame=as_frame,
        return_X_y=return_X_y,
        subset=table["subset"].to_numpy(dtype=object),
        feature_types={"text": "text"},
        target_names=list(target_names),
        DESCR=_SNIPS_DESCR,
    )


_MRPC_DESCR = """\
Microsoft Research paraphrase corpus
------------------------------------
5,801 pairs of sentences from news: 4,076 training and 1,725 test; 67 % are judged to be paraphrases.

Origin: W. B. Dolan and C. Brockett. Automatically constructing a corpus of sentential paraphrases. IWP 2005.
https://www.microsoft.com/en-us/download/details.aspx?id=52398
Licence: Microsoft Research, research use only.

Known harms and misuse: pairs were chosen by a classifier, so that pairs with many words in common are too frequent,
and counting common words does well. Two annotators agreed on 83 % of the pairs. GLUE splits 408 validation pairs
off the training file; these ids are not part of the publication and this loader does not know them. The sentences
name living persons.
"""


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
    check_choice(subset, "subset", ("all", *_fetch.MRPC))
    # Quotation marks are part of the sentences, so this is split by hand and not by a CSV reader.
    rows = [
        (*line.split("\t"), name)
        for name, file in _fetch.MRPC.items()
        if subset in ("all", name)
        for line in _lines_of(file, data_home, download_if_missing)[1:]
    ]
    columns = ["sentence_1", "sentence_2"]
    table = pd.DataFrame(rows, columns=["paraphrase", "id_1", "id_2", *columns, "subset"])
    return make_bunch(
        table[columns],
        table["paraphrase"].astype(np.int64),
        None,
        as_frame=as_frame,
        return_X_y=return_X_y,
        subset=table["subset"].to_numpy(dtype=object),
        feature_types=dict.fromkeys(columns, "text"),
        target_names=["different", "paraphrase"],
        DESCR=_MRPC_DESCR,
    )


_AG_ENTITIES_DESCR = """\
AG news with persons
--------------------
14,571 news articles of 2004 that name at least one of five politicians; 4 topics; 11,657 training, 1,457 validation,
1,457 test.

Origin: G. M. Del Corso, A. Gulli and F. Romani, WWW 2005; with the entities of L. Lyu, X. He and Y. Li. Differentially
private representation for NLP. Findings of EMNLP 2020. https://github.com/xlhex/dpnlp
Licence: non-commercial use.

Known harms and misuse: which person is named depends on the topic, so that hiding the name costs accuracy. Names were
found by a tagger and are incomplete: some texts contain a person's name without the mark. The persons are public
figures; hiding them stands in for hiding private ones. The names of topics and persons are not in the file: they
were given here after reading it.
"""


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
    rows = []
    part = 0
    for line in _lines_of(_fetch.AG_ENTITIES, data_home, download_if_missing):
        if line.startswith("="):  # a line of "=" ends each part
            part += 1
        elif subset in ("all", names[part]):
            rows.append((*line.split("\t"), names[part]))
    table = pd.DataFrame(rows, columns=["topic", "text", "persons", "subset"])
    named = table["persons"].str.get_dummies(" ").reindex(columns=list("01234"), fill_value=0)
    return make_bunch(
        table["text"].str.strip(),
        table["topic"].astype(np.int64),
        named.set_axis(_PERSONS, axis=1),
        as_frame=as_frame,
        return_X_y=return_X_y,
        entity_names=list(_PERSONS),
        subset=table["subset"].to_numpy(dtype=object),
        feature_types={"text": "text"},
        target_names=list(_TOPICS),
        DESCR=_AG_ENTITIES_DESCR,
    )


_GLOVE_DESCR = """\
GloVe 6B
--------
Word vectors trained on Wikipedia 2014 and Gigaword 5; 400,000 lower-case words; 50, 100, 200 or 300 dimensions.

Origin: J. Pennington, R. Socher and C. D. Manning. GloVe: global vectors for word representation. EMNLP 2014.
https://nlp.stanford.edu/projects/glove/
Licence: PDDL 1.0.

Known harms and misuse: the vectors carry the stereotypes of their sources; occupations lean towards a gender, names
towards sentiments (Bolukbasi et al. 2016, Caliskan et al. 2017). Whatever is built on them inherits this.
"""


def load_glove(
    n_components: int = 100,
    *,
    words: Iterable[str] | None = None,
    as_frame: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Any:
    """Load GloVe word vectors.

    The published archive ``glove/glove.6B.zip`` (862 MB) has 400,000 words. Where it is not there, but
    ``glove/glove6B_100d_subset.npz`` is, the 29,735 words of that file are taken.

    Parameters
    ----------
    n_components : {50, 100, 200, 300}, default=100
        Length of a vector.
    words : iterable of str, optional
        The words to load; those without a vector are left out. ``None`` loads all.
    as_frame : bool, default=False
        Give the vectors as a DataFrame whose index are the words.
    data_home : path, optional
        The folder to look in and to store into, instead of ``$SKFAIRDP_DATA`` or ``~/.cache/skfairdp``.
    download_if_missing : bool, default=True
        Download the archive if it is missing; otherwise raise FileNotFoundError.

    Returns
    -------
    glove : :class:`~sklearn.utils.Bunch`
        With the keys `words` (array of str objects), `vectors` (float32, one row per word), `index` (the row of
        each word) and `DESCR`.

    Examples
    --------
    >>> from skfairdp.datasets import load_glove
    >>> glove = load_glove(words=["king", "queen", "cabbage"])  # doctest: +SKIP
    >>> king, queen, cabbage = (glove.vectors[glove.index[w]] for w in ("king", "queen", "cabbage"))  # doctest: +SKIP
    >>> bool(king @ queen > king @ cabbage)  # doctest: +SKIP
    True
    """
    if n_components not in (50, 100, 200, 300):
        raise ValueError(f"n_components must be one of 50, 100, 200, 300; got {n_components!r}.")
    check_choice(as_frame, "as_frame", (True, False))
    if isinstance(words, str):
        raise TypeError(f"words must be a collection of words; got the single string {words!r}.")
    wanted = None if words is None else set(words)
    folders = _fetch.data_folders(data_home)
    subset_will_do = n_components == 100 and _fetch.find_published_file(_fetch.GLOVE, folders) is None
    if subset_will_do and _fetch.find_published_file(_fetch.GLOVE_SUBSET, folders) is not None:
        with np.load(io.BytesIO(_fetch.read_published_file(_fetch.GLOVE_SUBSET, data_home, False))) as stored:
            found, vectors = stored["words"].astype(object), stored["vectors"]
    else:
        found, vectors = _read_archive(n_components, data_home, download_if_missing)
    if wanted is not None:
        keep = np.fromiter((word in wanted for word in found), dtype=bool, count=len(found))
        found, vectors = found[keep], vectors[keep]
    return Bunch(
        words=found,
        vectors=pd.DataFrame(vectors, index=found) if as_frame else vectors,
        index={word: row for row, word in enumerate(found)},
        DESCR=_GLOVE_DESCR,
    )


def _read_archive(
    n_components: int, data_home: str | os.PathLike[str] | None, download_if_missing: bool
) -> tuple[np.ndarray, np.ndarray]:
    path = _fetch.checked_path(_fetch.GLOVE, data_home, download_if_missing)
    with zipfile.ZipFile(path) as archive, archive.open(f"glove.6B.{n_components}d.txt") as member:
        # Words such as "null" and lone quotation marks are words here, and nothing else.
        table = pd.read_csv(
            member,
            sep=" ",
            header=None,
            quoting=csv.QUOTE_NONE,
            keep_default_na=False,
            dtype={0: str} | dict.fromkeys(range(1, n_components + 1), np.float32),
        )
    return table[0].to_numpy(dtype=object), table.drop(columns=0).to_numpy(dtype=np.float32)
