"""A representation in two dimensions, coloured by group."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from skfairdp._validation import check_sensitive_features
from skfairdp.inspection._display_style import PanelDisplay, draw_cloud
from skfairdp.random import random_stream


class RepresentationDisplay(PanelDisplay):
    """Two-dimensional views of one representation or several, coloured by group.

    Make it with :meth:`from_representations`, usually of the same rows before and after they were
    privatised or erased: what the eye can separate, an attacker can too (not the other way round).

    Parameters
    ----------
    points : dict of str to ndarray of shape (n_shown, 2)
        The points of each view.
    group_indices : ndarray of shape (n_shown,)
        The group of each point.
    groups : tuple
        The label of each group.
    name : str
        The name of the sensitive column.

    Attributes
    ----------
    axes_, figure_ : ndarray of Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.inspection import RepresentationDisplay
    >>> rng = np.random.default_rng(0)
    >>> sex = np.repeat(["f", "m"], 50)
    >>> before = rng.normal(size=(100, 8)) + 3 * (sex == "f")[:, None]
    >>> display = RepresentationDisplay.from_representations({"before": before, "after": rng.normal(size=(100, 8))},
    ...                                                      sensitive_features=sex, random_state=0)
    >>> display.points["before"].shape
    (100, 2)
    """

    def __init__(self, points: dict[str, np.ndarray], group_indices: np.ndarray, groups: tuple, *, name: str = "group"):
        self.points = points
        self.group_indices = group_indices
        self.groups = groups
        self.name = name

    @classmethod
    def from_representations(
        cls,
        representations: Any,
        *,
        sensitive_features: Any,
        method: Any = "pca",
        max_points: int = 2000,
        random_state: Any = None,
        ax: Any = None,
    ) -> "RepresentationDisplay":
        """Reduce representations of the same rows to two dimensions and draw them side by side.

        Parameters
        ----------
        representations : array of shape (n_samples, n_components), or dict of str to array
            One view per array; the keys are the titles.
        sensitive_features : array-like
            One column, or several, which are crossed.
        method : {"pca", "tsne"} or transformer
            How to reduce; a transformer needs ``fit_transform``. Each view is reduced on its own.
        max_points : int
            Rows shown; a random sample, the same in each view, when there are more.
        random_state : int, Generator or None
            For the sample and for t-SNE.
        ax : matplotlib Axes, sequence of one for each view, or None
            Where to draw; one is divided among the views, ``None`` makes a new figure.

        Returns
        -------
        RepresentationDisplay
        """
        views = representations if isinstance(representations, Mapping) else {"": representations}
        if not views:
            raise ValueError("representations is empty; give at least one array.")
        arrays = {title: np.asarray(view, dtype=float) for title, view in views.items()}
        shapes = {title: array.shape for title, array in arrays.items()}
        if any(array.ndim != 2 for array in arrays.values()) or len({shape[0] for shape in shapes.values()}) > 1:
            raise ValueError(f"representations must be two-dimensional with the same rows; got shapes {shapes}.")
        groups = check_sensitive_features(sensitive_features, next(iter(shapes.values()))[0], intersection=True)
        stream = random_stream(random_state)
        shown = np.sort(stream.generator.permutation(len(groups.indices))[:max_points])
        points = {
            title: _reduce_to_two_dimensions(array[shown], method, stream.seed()) for title, array in arrays.items()
        }
        display = cls(points, groups.indices[shown, 0], groups.labels[0], name=groups.names[0])
        return display.plot(ax=ax)

    @property
    def _n_panels(self) -> int:
        """One for each view."""
        return len(self.points)

    def _draw(self, axes: np.ndarray) -> None:
        for panel, (title, points) in zip(axes, self.points.items()):
            for number, label in enumerate(self.groups):
                x, y = points[self.group_indices == number].T
                draw_cloud(panel, x, y, number, size=14, label=str(label))
            panel.set(title=title, xticks=[], yticks=[])
        axes[-1].legend(title=self.name, frameon=False, loc="best")


def _reduce_to_two_dimensions(array: np.ndarray, method: Any, seed: int) -> np.ndarray:
    if array.shape[1] <= 2 and isinstance(method, str):
        return np.column_stack([array, np.zeros((len(array), 2 - array.shape[1]))])
    if method == "pca":
        from sklearn.decomposition import PCA

        method = PCA(2, random_state=seed)
    elif method == "tsne":
        from sklearn.manifold import TSNE

        method = TSNE(2, random_state=seed, perplexity=min(30.0, (len(array) - 1) / 3))
    elif not hasattr(method, "fit_transform"):
        raise ValueError(f"method must be 'pca', 'tsne' or a transformer; got {method!r}.")
    return np.asarray(method.fit_transform(array))[:, :2]
