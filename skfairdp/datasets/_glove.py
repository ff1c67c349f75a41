"""Word vectors."""

import csv
import io
import os
import zipfile
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skfairdp.datasets import _descriptions, _files
from skfairdp.datasets._bunch import check_choice
from skfairdp.datasets._fetch import checked_path, data_folders, find, read


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
    folders = data_folders(data_home)
    subset_will_do = n_components == 100 and find(_files.GLOVE, folders) is None
    if subset_will_do and find(_files.GLOVE_SUBSET, folders) is not None:
        with np.load(io.BytesIO(read(_files.GLOVE_SUBSET, data_home, False))) as stored:
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
        DESCR=_descriptions.GLOVE,
    )


def _read_archive(
    n_components: int, data_home: str | os.PathLike[str] | None, download_if_missing: bool
) -> tuple[np.ndarray, np.ndarray]:
    path = checked_path(_files.GLOVE, data_home, download_if_missing)
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
