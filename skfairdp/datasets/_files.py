"""The published files: place, sha256, size, addresses.

The publisher's address comes first. Where a publisher offers another format or has withdrawn a file, the address
is that of a fixed revision of a public copy; the sha256 decides.
"""

from skfairdp.datasets._fetch import RemoteFile

_UCI = "https://archive.ics.uci.edu/static/public"
_UCI_OLD = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_GITHUB = "https://raw.githubusercontent.com"
_DRIVE = "https://drive.google.com/uc?export=download&id="

ADULT = {
    "train": RemoteFile(
        "adult/adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        3_974_305,
        (f"{_UCI}/2/adult.zip!adult.data", f"{_UCI_OLD}/adult/adult.data"),
    ),
    "test": RemoteFile(
        "adult/adult.test",
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        2_003_153,
        (f"{_UCI}/2/adult.zip!adult.test", f"{_UCI_OLD}/adult/adult.test"),
    ),
}

CREDIT_DEFAULT = RemoteFile(
    "credit_default/UCI_Credit_Card.csv",
    "1dbd482cde20ce8b78b5721cf125646d318cef4f1ad30fe5803807447de13686",
    2_905_711,
    (f"{_GITHUB}/pagnihotri/credit-card-defaulter/1f53baf071d91bda765be6c63d583010408dacc3/UCI_Credit_Card.csv",),
)

BANK = RemoteFile(
    "bank/bank-full.csv",
    "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
    4_610_348,
    (f"{_UCI}/222/bank+marketing.zip!bank.zip!bank-full.csv", f"{_UCI_OLD}/00222/bank.zip!bank-full.csv"),
)

PARKINSONS = RemoteFile(
    "parkinsons/parkinsons_updrs.data",
    "f2c7d5025dec4e92e7feae367a5f7ccf58789a10ac6b54bdf15976c599f9dd39",
    911_261,
    (
        f"{_UCI}/189/parkinsons+telemonitoring.zip!parkinsons_updrs.data",
        f"{_UCI_OLD}/parkinsons/telemonitoring/parkinsons_updrs.data",
    ),
)

CELEBA_ATTRIBUTES = RemoteFile(
    "celeba/list_attr_celeba.txt",
    "f0e5da289d5ccf75ffe8811132694922b60f2af59256ed362afa03fefba324d0",
    26_721_026,
    (f"{_DRIVE}0B7EVK8r0v71pblRyaVFSWGxPY0U",),
)
CELEBA_PARTITION = RemoteFile(
    "celeba/list_eval_partition.txt",
    "fc955bcb3ef8fbdf7d5640d9a8693a8431b5f2ee291a5c1449a1549e7e073fe7",
    2_836_386,
    (f"{_DRIVE}0B7EVK8r0v71pY0NSMzRuSXJEVkk",),
    also=("0b188c55138e1d593f8de696a951bb33a1d67d43e3721cadd7f82b1fb24bfaf4",),  # Unix line ends, none at the end
)


def _sentiment(name: str, sha256: str, size: int) -> RemoteFile:
    archive = f"{_UCI}/331/sentiment+labelled+sentences.zip"
    return RemoteFile(f"sentiment/{name}", sha256, size, (f"{archive}!sentiment labelled sentences/{name}",))


SENTIMENT = {
    "imdb": _sentiment("imdb_labelled.txt", "bca3ebef21caafbb6f9b06ee6a697f3ac310037e9314124d86c0687c143d442f", 85_283),
    "amazon": _sentiment(
        "amazon_cells_labelled.txt", "47003fc0a0d4840b00e96e715b6189bad09e7443a3da41c4cbe12ffc79f86ae3", 58_226
    ),
    "yelp": _sentiment("yelp_labelled.txt", "c76468b7b5c6e56a0804d728345c5f84aa2142ddb214420f61cc9cfd4c00d2ea", 61_320),
}


def _snips(path: str, sha256: str, size: int) -> RemoteFile:
    revision = "daab0c8e51c88cbd5629236725475dec6354b420"
    address = f"{_GITHUB}/czhang99/Capsule-NLU/{revision}/data/snips/{path}"
    return RemoteFile(f"snips/{path}", sha256, size, (address,))


SNIPS = {
    "train": (
        _snips("train/seq.in", "be69c58bde5f813f089a52782b470d1345b9eb27492807bc4cac3a1e2b1dc548", 613_169),
        _snips("train/label", "bfd7df6cf9dd76c5da5d8b61bc85f90386197bdd3d7510c1d324c051537b962f", 184_532),
    ),
    "valid": (
        _snips("valid/seq.in", "198fce6caefcce9d5595fb5f01194ccd06db68a80e85b2acbac729fd7b9ecde0", 33_318),
        _snips("valid/label", "9c1dd041216f647bcfca838aaf1a48eb5781e4404256d31ff07cd38a5436c52f", 9_900),
    ),
    "test": (
        _snips("test/seq.in", "3f150ffcf0717c4540d9feb1d4d5ec6e0ebe6019fa88e8ba32e3f6e6cae15c8a", 32_919),
        _snips("test/label", "37a26da3ad079bb41c42c85a3a8f827eb47efec4c5917ce5d08f4b2736e4f830", 10_120),
    ),
}


def _mrpc(subset: str, sha256: str, size: int) -> RemoteFile:
    name = f"msr_paraphrase_{subset}.txt"
    # Microsoft publishes an installer for Windows; this address serves the files that it unpacks.
    return RemoteFile(f"mrpc/{name}", sha256, size, (f"https://dl.fbaipublicfiles.com/senteval/senteval_data/{name}",))


MRPC = {
    "train": _mrpc("train", "2174e11735d71a0f852d51f77fe098baf52ac01a5dfc54b62ddb41b9837b9ebf", 1_026_746),
    "test": _mrpc("test", "51a1f197d8786712d2f0d97700f5be653b7488a96cde00e158159350d23e3d90", 432_882),
}

AG_ENTITIES = RemoteFile(
    "ag_news/ag_data.txt",
    "3c8d8591fac833fd556ad0536e0cee79fcaaad73bf4c09c0dec39a1afdc06259",
    3_766_934,
    (f"{_GITHUB}/xlhex/dpnlp/5b6b97ad9df449327466d0051ff8d2be94d5924d/data/ag_data.txt",),
)

GLOVE = RemoteFile(
    "glove/glove.6B.zip",
    "617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb",
    862_182_613,
    ("https://nlp.stanford.edu/data/glove.6B.zip", "https://downloads.cs.stanford.edu/nlp/data/glove.6B.zip"),
)
#: The rows of glove.6B.100d that the corpora of this package use. Made by hand, so it is published nowhere.
GLOVE_SUBSET = RemoteFile(
    "glove/glove6B_100d_subset.npz",
    "4494a00607e866d1cdfc0c0f65e3c7c68f4d99f130d474f1885c909f3d0e8767",
    11_134_446,
    (),
)
