"""Synthetic documents whose wording tells a class and, separately, an author.

Every sentence has one *content* word, which tells the class, and one *marker*, which tells the author. Markers
of one kind mean the same: only habit chooses among them, as it does between real dialects. The regions are
invented, so that no real group of people is caricatured.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skfairdp._validation import check_count
from skfairdp.datasets._biased_classification import check_real, draw_labels, joint_distribution
from skfairdp.datasets._bunch import make_bunch
from skfairdp.random import RandomState, random_stream

#: The author's region, and for each kind of marker the word that each region prefers.
REGIONS = ("north", "east", "south", "west")
MARKERS = {
    "opener": ("honestly", "frankly", "truly", "actually"),
    "time": ("lately", "recently", "nowadays", "presently"),
    "degree": ("quite", "rather", "pretty", "fairly"),
}


@dataclass(frozen=True)
class Grammar:
    """Sentences about one question.

    Attributes
    ----------
    classes : dict
        The content words of each class; the lists are disjoint.
    templates : dict
        For each kind of marker, a sentence with the places ``{marker}``, ``{content}`` and perhaps ``{subject}``.
    subjects : tuple
        Fillers that tell neither class nor author.
    """

    classes: dict[str, tuple[str, ...]]
    templates: dict[str, str]
    subjects: tuple[str, ...]


GRAMMARS = {
    "sentiment": Grammar(
        classes={
            "negative": ("awful", "dreadful", "disappointing", "tedious", "careless", "poor"),
            "neutral": ("ordinary", "average", "plain", "usual", "standard", "modest"),
            "positive": ("lovely", "splendid", "delightful", "charming", "excellent", "superb"),
        },
        templates={
            "opener": "{marker} the {subject} was {content}.",
            "time": "{marker} the {subject} has been {content}.",
            "degree": "the {subject} was {marker} {content}.",
        },
        subjects=("service", "room", "soup", "film", "garden", "ending", "music", "staff"),
    ),
    "topic": Grammar(
        classes={
            "sport": ("match", "referee", "goalkeeper", "sprint", "league", "stadium"),
            "food": ("recipe", "bakery", "pepper", "saucepan", "dessert", "harvest"),
            "travel": ("ferry", "luggage", "airport", "hostel", "timetable", "passport"),
            "science": ("telescope", "enzyme", "theorem", "laboratory", "comet", "fossil"),
            "music": ("violin", "chorus", "concert", "melody", "drummer", "sonata"),
        },
        templates={
            "opener": "{marker} {subject} about the {content}.",
            "time": "{marker} {subject} about the {content}.",
            "degree": "{subject} {marker} often about the {content}.",
        },
        subjects=("I read", "we talked", "they wrote", "she asked", "he dreamt", "you heard"),
    ),
    "occupation": Grammar(
        classes={
            "accountant": ("ledgers", "invoices", "audits", "balances", "budgets", "taxes"),
            "architect": ("facades", "blueprints", "skylines", "atriums", "vaults", "arches"),
            "attorney": ("lawsuits", "verdicts", "clauses", "subpoenas", "courtrooms", "appeals"),
            "chiropractor": ("spines", "joints", "posture", "vertebrae", "backaches", "adjustments"),
            "comedian": ("jokes", "punchlines", "sketches", "hecklers", "parodies", "laughter"),
            "composer": ("symphonies", "scores", "harmonies", "quartets", "overtures", "motifs"),
            "dentist": ("teeth", "cavities", "crowns", "gums", "molars", "braces"),
            "dietitian": ("diets", "calories", "vitamins", "menus", "proteins", "allergies"),
            "dj": ("turntables", "mixes", "beats", "playlists", "nightclubs", "remixes"),
            "filmmaker": ("screenplays", "cameras", "premieres", "editing", "documentaries", "trailers"),
            "interior designer": ("sofas", "curtains", "wallpapers", "lamps", "fabrics", "carpets"),
            "journalist": ("headlines", "interviews", "newsrooms", "columns", "deadlines", "sources"),
            "model": ("catwalks", "runways", "portfolios", "castings", "fashion", "magazines"),
            "nurse": ("wards", "bandages", "shifts", "bedsides", "injections", "thermometers"),
            "painter": ("canvases", "easels", "brushes", "portraits", "pigments", "galleries"),
            "paralegal": ("filings", "affidavits", "notaries", "dockets", "contracts", "briefs"),
            "pastor": ("sermons", "parishes", "baptisms", "hymns", "congregations", "prayers"),
            "personal trainer": ("workouts", "dumbbells", "squats", "stretches", "treadmills", "pushups"),
            "photographer": ("lenses", "tripods", "negatives", "shutters", "darkrooms", "exposures"),
            "physician": ("diagnoses", "prescriptions", "clinics", "symptoms", "vaccines", "checkups"),
            "poet": ("sonnets", "verses", "rhymes", "stanzas", "metaphors", "ballads"),
            "professor": ("lectures", "seminars", "syllabi", "faculties", "theses", "citations"),
            "psychologist": ("therapies", "emotions", "memories", "anxieties", "dreams", "moods"),
            "rapper": ("lyrics", "hooks", "cyphers", "freestyles", "bars", "mixtapes"),
            "software engineer": ("compilers", "bugs", "databases", "servers", "algorithms", "repositories"),
            "surgeon": ("scalpels", "sutures", "transplants", "incisions", "anaesthesia", "stitches"),
            "teacher": ("classrooms", "homework", "blackboards", "pupils", "lessons", "exams"),
            "yoga teacher": ("mats", "breathing", "postures", "meditation", "asanas", "balance"),
        },
        templates={
            "opener": "{marker} {subject} of {content}.",
            "time": "{marker} {subject} of {content}.",
            "degree": "{subject} {marker} often of {content}.",
        },
        subjects=("my days are full", "friends tell me", "I think", "people ask", "letters speak", "colleagues know"),
    ),
}


def make_biased_text(
    n_samples: int = 1000,
    *,
    task: str = "sentiment",
    n_classes: int = 2,
    n_groups: int = 2,
    n_sentences: int = 3,
    label_signal: float = 0.8,
    group_signal: float = 0.6,
    label_bias: float = 0.3,
    skew: float | None = None,
    return_X_y: bool = False,
    as_frame: bool = False,
    random_state: RandomState = None,
) -> Any:
    """Make short documents whose wording gives away their author.

    Documents are independent. First a pair of label ``y`` and author's group ``z`` is drawn, then
    `n_sentences` sentences, each with one content word, which depends on ``y``, and one marker ("honestly",
    "frankly"...), which depends on ``z``. Given ``y`` and ``z``, all these words are independent.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of documents.
    task : {"sentiment", "topic", "occupation"}, default="sentiment"
        What the target says about a document.
    n_classes : int, default=2
        2 or 3 for sentiment, 2 to 5 for topics, 2 to 28 for occupations, as many as in Bias in Bios [2]_. The last
        class is the favourable outcome. With many classes `label_bias` must be small, at most ``2 / n_classes``.
    n_groups : int, default=2
        Number of author regions, 2 to 4.
    n_sentences : int, default=3
        Sentences per document.
    label_signal : float, default=0.8
        How reliably wording tells the class: a content word is drawn from the document's own class with
        probability `label_signal`, and otherwise from a class chosen evenly among all.
    group_signal : float, default=0.6
        How reliably wording tells the author: a marker is the region's own with probability `group_signal`,
        and otherwise that of a region chosen evenly among all. At 0, the author leaves no trace beyond the
        label's.
    label_bias : float, default=0.3
        How unequal the base rates are, as in :func:`make_biased_classification`.
    skew : float, optional
        The probability that label and group agree, as in :func:`make_biased_classification`; 0.8 is the
        40/10/10/40 design of [1]_ when `label_bias` is 0.
    return_X_y : bool, default=False
        Return ``(data, target)``, without the sensitive attribute, instead of a Bunch.
    as_frame : bool, default=False
        Give pandas Series.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        ``None`` draws from the operating system's entropy.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With the keys `data` (documents), `target` (ints that index `target_names`), `sensitive_features` (the authors'
        regions), `feature_names`, `target_names`, `group_names`, `joint` (the probability of each pair of label and
        group, of shape (n_classes, n_groups)), `frame` (all columns, with ``as_frame=True``) and `DESCR`.

    (data, target) : tuple
        With ``return_X_y=True``.

    Notes
    -----
    One marker is the author's own with probability ``q = group_signal + (1 - group_signal) / n_groups``. With two
    groups, `label_bias` 0 and three sentences, the best attacker takes the majority of three markers and is
    right with probability ``q**3 + 3 * q**2 * (1 - q)``. The same holds for the label with `label_signal`.

    References
    ----------
    .. [1] Y. Elazar and Y. Goldberg. Adversarial removal of demographic attributes from text data. EMNLP 2018.
    .. [2] M. De-Arteaga et al. Bias in Bios: a case study of semantic representation bias in a high-stakes setting.
       FAT* 2019.

    Examples
    --------
    >>> from skfairdp.datasets import make_biased_text
    >>> reviews = make_biased_text(500, random_state=3)
    >>> print(reviews.data[0])
    The garden was quite splendid. Recently the staff has been lovely. Honestly the room was charming.
    >>> reviews.target_names[reviews.target[0]], reviews.sensitive_features[0]
    ('positive', 'east')
    """
    if task not in GRAMMARS:
        raise ValueError(f"task must be one of {sorted(GRAMMARS)}; got {task!r}.")
    grammar = GRAMMARS[task]
    n_samples = check_count(n_samples, "n_samples", 1)
    n_classes = check_count(n_classes, "n_classes", 2, len(grammar.classes))
    n_groups = check_count(n_groups, "n_groups", 2, len(REGIONS))
    n_sentences = check_count(n_sentences, "n_sentences", 1)
    label_signal = check_real(label_signal, "label_signal", 0, 1)
    group_signal = check_real(group_signal, "group_signal", 0, 1)
    joint = joint_distribution(n_classes, n_groups, label_bias, skew)

    classes = list(grammar.classes)
    if task == "sentiment" and n_classes == 2:
        classes = ["negative", "positive"]
    classes, regions = classes[:n_classes], list(REGIONS[:n_groups])
    words = np.array([grammar.classes[name] for name in classes], dtype=object)
    markers = np.array([kind[:n_groups] for kind in MARKERS.values()], dtype=object)
    templates = [grammar.templates[kind] for kind in MARKERS]

    generator = random_stream(random_state).generator
    y, z = draw_labels(joint, n_samples, generator)
    shape = (n_samples, n_sentences)
    content = words[
        _kinds_with_signal(y, n_classes, label_signal, shape, generator),
        generator.integers(words.shape[1], size=shape),
    ]
    kinds = generator.integers(len(templates), size=shape)
    marker = markers[kinds, _kinds_with_signal(z, n_groups, group_signal, shape, generator)]
    subject = np.array(grammar.subjects, dtype=object)[generator.integers(len(grammar.subjects), size=shape)]
    documents = [
        " ".join(
            _make_sentence(templates[kind], marker=m, content=c, subject=s)
            for kind, m, c, s in zip(kinds[i], marker[i], content[i], subject[i])
        )
        for i in range(n_samples)
    ]

    class_names, region_names = ", ".join(classes), ", ".join(regions)
    description = f"""\
Synthetic biased text
---------------------
{n_samples} independent documents of {n_sentences} sentences. The target is the {task} ({class_names}), the sensitive
attribute the author's region ({region_names}). Every sentence has one content word and one marker of the region.
label_signal={label_signal:g}, group_signal={group_signal:g}, label_bias={label_bias:g}, skew={skew}.
The regions are invented: nobody wrote these documents.
"""
    return make_bunch(
        pd.Series(documents, name="text"),
        pd.Series(y, name=task),
        pd.Series(np.array(regions, dtype=object)[z], name="region"),
        as_frame=as_frame,
        return_X_y=return_X_y,
        target_names=classes,
        group_names=regions,
        joint=joint,
        DESCR=description,
    )


def _kinds_with_signal(
    own: np.ndarray, n_kinds: int, signal: float, shape: tuple[int, int], generator: np.random.Generator
) -> np.ndarray:
    """Keep a document's own kind with probability ``signal``, else choose evenly among all kinds."""
    return np.where(generator.random(shape) < signal, own[:, None], generator.integers(n_kinds, size=shape))


def _make_sentence(template: str, **words: str) -> str:
    text = template.format(**words)
    return text[0].upper() + text[1:]
