"""What the name of a column says: that it comes late, names a person or a row, or weighs rows."""

import re
from itertools import pairwise


def _set_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A word of this list in a name speaks of what is known only when all is over.
_LATER = _set_of(
    "after outcome outcomes result results decision decisions decided final closed closing closure chargeoff recovered "
    "recovery recoveries disposition recid recidivism recidivist reoffend reoffended settled settlement discharge "
    "discharged deceased died death churn churned terminated termination resigned readmitted readmission followup "
    "verdict approved approval granted denied denial rejected rejection refunded repaid writeoff cancelled canceled "
    "cancellation awarded defaulted collections foreclosed foreclosure"
)
_LATER_PAIRS = frozenset(
    {
        *(("charged", "off"), ("charge", "off"), ("written", "off"), ("write", "off"), ("follow", "up")),
        *(("two", "year"), ("last", "payment"), ("last", "pymnt"), ("total", "pymnt"), ("total", "paid")),
        *((what, "status") for what in ("loan", "application", "case", "claim", "repayment", "final", "contract")),
    }
)
_NOT_AFTER_POST = _set_of("code office town secondary")  # "post code" is an address
# The same words in a name that also speaks of the past are about an earlier event.
_EARLIER = _set_of("previous prev prior priors past before earlier former last history historical first parent")
# Words that may mean either; they count only if the column also tells the target well.
_PERHAPS_LATER = _set_of("duration event end ended paid payment payments pymnt reason flag elapsed remaining")

_PEOPLE = (
    "person|people|customer|client|patient|user|member|employee|student|pupil|subject|applicant|borrower|individual|"
    "respondent|participant|defendant|inmate|offender|worker|candidate|taxpayer|beneficiary|donor|voter|household|"
    "family|cust|citizen|resident"
)
_PERSON = re.compile(rf"({_PEOPLE})(id|ids|no|nr|num|nbr|number|key|code|hash|uuid|guid|name)")
_PERHAPS_PERSON = re.compile(rf"({_PEOPLE})s?|name|fullname|id")
_PERSONAL = _set_of("ssn email mail phone telephone mobile msisdn passport mrn uid pid userid personid")
_THINGS = "case|account|row|record|loan|policy|application|order|claim|ticket|visit|encounter|transaction|invoice"
_IDENTIFIER = re.compile(rf"({_PEOPLE}|{_THINGS}|unique)?(id|uuid|guid|identifier|ssn|serial|index)")
_NUMBERED = re.compile(rf"({_PEOPLE}|{_THINGS}|serial|phone)(no|nr|num|nbr|number|key)")

_SURVEY_WEIGHT = _set_of(
    "fnlwgt perwt hhwt pwgtp wgtp pweight wtfinl asecwt finalwt finalwgt finalweight llcpwt wtssall wtmec2yr wtint2yr "
    "samplingweight surveyweight sampleweight instanceweight personweight householdweight designweight marsupwt"
)
_WEIGHT = _set_of("weight weights wt wgt")
_BODY = _set_of("body birth baby kg lb lbs pounds gross net vehicle car curb height bmi waist mother newborn")


def words(name: str) -> tuple[str, ...]:
    """Split a name into words: ``"isRecid_two-year"`` has four."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return tuple(re.findall(r"[^\W_]+", apart.lower()))


def comes_later(name: str) -> bool:
    """Whether a name speaks of an outcome, a decision or what follows."""
    found = words(name)
    if _LATER_PAIRS & set(pairwise(found)):
        return True
    if found[:1] == ("post",) and len(found) > 1 and found[1] not in _NOT_AFTER_POST:
        return True
    return bool(_LATER & set(found)) and not _EARLIER & set(found)


def perhaps_later(name: str) -> bool:
    """Whether a name speaks of something that often is known only later."""
    found = set(words(name))
    return bool(_PERHAPS_LATER & found) and not (_EARLIER - {"last"}) & found


def names_rows(name: str) -> bool:
    """Whether a name says that the column holds identifiers."""
    found = words(name)
    joined = "".join(found)
    if found and found[-1] in ("id", "uuid", "guid", "identifier"):
        return True
    return bool(_IDENTIFIER.fullmatch(joined) or _NUMBERED.fullmatch(joined))


def names_person(name: str) -> bool:
    """Whether a name says that the column tells persons (or households) apart."""
    found = words(name)
    return bool(found) and bool(_PERSON.fullmatch("".join(found)) or found[-1] in _PERSONAL)


def perhaps_names_person(name: str) -> bool:
    """Whether a name may say so, or something else: a ``subject`` may be a person or mathematics."""
    return bool(_PERHAPS_PERSON.fullmatch("".join(words(name))))


def weighs_rows(name: str) -> bool:
    """Whether a name is that of a survey weight and of nothing else."""
    return "".join(words(name)) in _SURVEY_WEIGHT


def perhaps_weighs_rows(name: str) -> bool:
    """Whether a name may be that of a weight of rows, or of a body."""
    found = words(name)
    return bool(found) and found[-1] in _WEIGHT and not _BODY & set(found)


def speaks_of_bodies(name: str) -> bool:
    """Whether a name says that the table is about bodies, so that a weight is in kilograms."""
    return bool(_BODY & set(words(name)))
