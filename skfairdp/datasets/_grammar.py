"""The words of the synthetic documents.

Every sentence has one *content* word, which tells the class, and one *marker*, which tells the author. Markers
of one kind mean the same: only habit chooses among them, as it does between real dialects. The regions are
invented, so that no real group of people is caricatured.
"""

from dataclasses import dataclass

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
}
