"""The published files: where they lie, and how they get there. Which they are, ``published_files.toml`` says.

A file is looked for below ``data_home``, or else below ``$SKFAIRDP_DATA`` and ``~/.cache/skfairdp``. It may be
there as published, or packed (``name.gz``, ``name.zip``); its sha256 is always that of the unpacked bytes. A file
that is missing is downloaded to a name of its own beside its place, checked, and only then renamed into place:
whoever looks sees the whole right file or none, however many processes fetch at once.

A few bytes can unpack to any number. So nothing is unpacked further than the size that was published, whatever an
archive says of itself.

This is done with the standard library, as scikit-learn's own fetchers do. The package pooch would take over the
download and the checksum (about 50 lines) and bring three dependencies of its own. Several addresses for one file,
archives inside archives, stored copies that are packed, and the limits on sizes would stay here all the same.
"""

import gzip
import hashlib
import http.client
import io
import os
import time
import tomllib
import urllib.error
import urllib.request
import uuid
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

#: Seconds without data after which a server is given up, how often to ask it, and seconds before it is asked again,
#: which double every time.
TIMEOUT = 30.0
ATTEMPTS = 4
BACKOFF = 1.0
#: A server that sends fewer bytes per second than this is treated as one that has stopped.
SLOWEST = 1024
#: An archive that is fetched for a file inside it may have this many bytes; those in use have about a million.
LARGEST_ARCHIVE = 1 << 25
_CHUNK = 1 << 16


class _TooLargeError(Exception):
    """Something holds more than it may."""


# What the standard library raises for archives that are damaged, encrypted or packed in an unknown way.
_UNUSABLE = (_TooLargeError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, KeyError, RuntimeError)


@dataclass(frozen=True)
class RemoteFile:
    """A published file.

    Attributes
    ----------
    path : str
        Its place below the data folder, with forward slashes.
    sha256 : str
        Of the unpacked bytes.
    size : int
        Number of unpacked bytes; nothing larger is ever unpacked.
    sources : tuple of str
        Addresses to try in turn; ``address!member`` is a file inside a zip archive, ``!`` may be repeated.
    also : tuple of str
        The sha256 of other publications with the same content, for instance with shorter line ends.
    """

    path: str
    sha256: str
    size: int
    sources: tuple[str, ...]
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.path.rsplit("/", 1)[-1]


def read_published_file(file: RemoteFile, data_home: str | os.PathLike[str] | None, download_if_missing: bool) -> bytes:
    """Return the unpacked, checked bytes of a file."""
    path = locate_published_file(file, data_home, download_if_missing)
    content = _unpacked_bytes(path, file)
    _check_digest(hashlib.sha256(content).hexdigest(), len(content), file, path)
    return content


def checked_path(file: RemoteFile, data_home: str | os.PathLike[str] | None, download_if_missing: bool) -> Path:
    """Return the checked place of a file that is too large to be held in memory."""
    path = locate_published_file(file, data_home, download_if_missing)
    _check_stored(path, file, path)
    return path


def data_folders(data_home: str | os.PathLike[str] | None) -> list[Path]:
    """Return the folders to look in: the one that was given, or else the user's settings. None is created."""
    if data_home is not None:
        if not isinstance(data_home, str | os.PathLike):
            raise TypeError(f"data_home must be a path or None; got {data_home!r} of type {type(data_home).__name__}.")
        return [Path(data_home).expanduser()]
    variable = os.environ.get("SKFAIRDP_DATA")
    cache = Path("~/.cache/skfairdp").expanduser()
    return [Path(variable).expanduser(), cache] if variable else [cache]


def find_published_file(file: RemoteFile, folders: list[Path]) -> Path | None:
    """Return where a file lies, plain or packed, or None."""
    for folder in folders:
        for suffix in ("", ".gz", ".zip"):
            path = folder / (file.path + suffix)
            if path.is_file():
                return path
    return None


def locate_published_file(
    file: RemoteFile, data_home: str | os.PathLike[str] | None, download_if_missing: bool
) -> Path:
    """Return where a file lies, after a download if it is missing."""
    folders = data_folders(data_home)
    found = find_published_file(file, folders)
    if found is not None:
        return found
    if not download_if_missing:
        raise FileNotFoundError(
            f"{_say_what_is_missing(file, folders)} Or allow the download with download_if_missing=True."
        )
    writable = [folder for folder in folders if _can_store(folder)]
    if not writable:
        raise PermissionError(
            f"{_say_what_is_missing(file, folders)} It was not downloaded, because none of them can be written."
        )
    place = writable[0] / file.path
    failures = []
    for source in file.sources:
        try:
            _fetch_source(source, file, place)
            return place
        except OSError as error:
            failures.append(f"{source.split('!')[0]}: {error}")
    reasons = "\n  ".join(failures)
    raise ConnectionError(f"{_say_what_is_missing(file, folders)} The download failed:\n  {reasons}")


def _say_what_is_missing(file: RemoteFile, folders: list[Path]) -> str:
    """Say what to put where."""
    return (
        f"{file.name} was not found in {' or '.join(str(folder) for folder in folders)}. Put the published file "
        f"({file.size:,} bytes, sha256 {file.sha256}) at {folders[0] / file.path}, or name a folder that has "
        f"{file.path} with data_home=... or the environment variable SKFAIRDP_DATA. "
        f"Published at: {', '.join(file.sources)}."
    )


def _can_store(folder: Path) -> bool:
    """Whether files can be made below a folder, which need not exist yet."""
    nearest = next((ancestor for ancestor in (folder, *folder.parents) if ancestor.exists()), None)
    return nearest is not None and nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def _check_digest(digest: str, size: int, file: RemoteFile, where: object) -> None:
    if digest not in (file.sha256, *file.also):
        raise OSError(
            f"{where} is not the published {file.name}: sha256 {digest} of {size:,} bytes, expected {file.sha256} "
            f"of {file.size:,} bytes. Remove it to have it downloaded again."
        )


def _check_stored(path: Path, file: RemoteFile, where: object) -> None:
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    _check_digest(digest, path.stat().st_size, file, where)


def _unpacked_bytes(path: Path, file: RemoteFile) -> bytes:
    """Read a file as published, whether it is stored plain or packed."""
    try:
        if path.name == file.name + ".zip":
            with zipfile.ZipFile(path) as archive:
                return _read_member(archive, file.name, file.size)
        with gzip.open(path) if path.name == file.name + ".gz" else path.open("rb") as stream:
            return _read_at_most(stream, file.size)
    except _UNUSABLE as error:
        raise OSError(f"{path} cannot be read: {error}. Remove it to have {file.name} downloaded again.") from error


def _read_at_most(stream: Any, limit: int) -> bytes:
    content = stream.read(limit + 1)
    if len(content) > limit:
        raise _TooLargeError(f"it holds more than the expected {limit:,} bytes")
    return content


def _read_member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """Read a file in an archive, which may have the size that it says or another one."""
    member = archive.getinfo(name)
    if member.file_size > limit:
        raise _TooLargeError(f"{name} in it has {member.file_size:,} bytes, more than the expected {limit:,}")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # zipfile unpacks these in one go, however many bytes it is asked for.
        raise _TooLargeError(f"{name} in it is packed in a way whose size cannot be limited")
    with archive.open(member) as stream:
        return _read_at_most(stream, limit)


def _fetch_source(source: str, file: RemoteFile, place: Path) -> None:
    """Download one source, check it, and move it into place in one step."""
    address, *members = source.split("!")
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{place.name}.{uuid.uuid4().hex}.part")
    try:
        if members:
            _download_with_retries(address, part, file.name, None, LARGEST_ARCHIVE)
            part.write_bytes(_archive_member(part, members, file.size))
        else:
            _download_with_retries(address, part, file.name, file.size, file.size)
        _check_stored(part, file, "what was sent")
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)


def _archive_member(archive: Path, members: list[str], size: int) -> bytes:
    """Read a file inside a zip archive, which may be inside another one."""
    content = archive.read_bytes()
    try:
        for depth, member in enumerate(members, start=1):
            with zipfile.ZipFile(io.BytesIO(content)) as opened:
                content = _read_member(opened, member, size if depth == len(members) else LARGEST_ARCHIVE)
    except _UNUSABLE as error:
        raise OSError(f"what was sent is not the archive that was expected: {error}") from error
    return content


def _download_with_retries(address: str, part: Path, name: str, size: int | None, limit: int) -> None:
    """Download to a file, and try again after faults that may be temporary."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _download_once(address, part, name, size, limit)
            return
        except urllib.error.HTTPError as error:
            error.close()
            if error.code not in (408, 425, 429) and error.code < 500:
                raise OSError(f"the server answered {error.code} {error.reason}") from error
            reason = f"the server answered {error.code} {error.reason}"
        except (OSError, http.client.HTTPException) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        if attempt == ATTEMPTS:
            raise OSError(f"{reason} (asked {ATTEMPTS} times)")
        time.sleep(BACKOFF * 2 ** (attempt - 1))


def _download_once(address: str, part: Path, name: str, size: int | None, limit: int) -> None:
    request = urllib.request.Request(address, headers={"User-Agent": "skfairdp"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response, part.open("wb") as stream:
        length = response.headers.get("Content-Length")
        expected = int(length) if length and length.isdigit() else size
        received = 0
        window_start, window_bytes = time.monotonic(), 0
        # disable=None shows the bar to people and spares log files.
        with tqdm(total=expected, desc=name, unit="B", unit_scale=True, leave=False, disable=None) as bar:
            # read1 returns what has arrived, so that a server that sends one byte at a time is noticed.
            while chunk := response.read1(_CHUNK):
                stream.write(chunk)
                received += len(chunk)
                window_bytes += len(chunk)
                bar.update(len(chunk))
                if received > limit:
                    raise OSError(f"more than the expected {limit:,} bytes were sent")
                now = time.monotonic()
                if now - window_start > TIMEOUT:
                    if window_bytes < SLOWEST * TIMEOUT:
                        raise TimeoutError(f"timed out: only {window_bytes:,} bytes came in {TIMEOUT:g} seconds")
                    window_start, window_bytes = now, 0
        if expected is not None and received < expected:
            raise OSError(f"the connection was cut off after {received:,} of {expected:,} bytes")


def _published(facts: Any) -> Any:
    """Return the file that these facts describe; the parts of a data set stay together as they are written there."""
    if isinstance(facts, list):
        return tuple(map(_published, facts))
    if "sha256" not in facts:
        return {part: _published(its) for part, its in facts.items()}
    return RemoteFile(**{name: tuple(fact) if isinstance(fact, list) else fact for name, fact in facts.items()})


_FACTS = tomllib.loads(Path(__file__).with_name("published_files.toml").read_text(encoding="utf-8"))
ADULT = _published(_FACTS["adult"])
CREDIT_DEFAULT = _published(_FACTS["credit_default"])
BANK = _published(_FACTS["bank"])
PARKINSONS = _published(_FACTS["parkinsons"])
CELEBA_ATTRIBUTES = _published(_FACTS["celeba_attributes"])
CELEBA_PARTITION = _published(_FACTS["celeba_partition"])
SENTIMENT = _published(_FACTS["sentiment"])
SNIPS = _published(_FACTS["snips"])
MRPC = _published(_FACTS["mrpc"])
AG_ENTITIES = _published(_FACTS["ag_entities"])
GLOVE = _published(_FACTS["glove"])
GLOVE_SUBSET = _published(_FACTS["glove_subset"])
