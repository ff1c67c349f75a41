"""The download machinery against a server that is slow, cut off, wrong, or not there."""

import contextlib
import gzip
import hashlib
import io
import os
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from skfairdp.datasets import _fetch, fetch_parkinsons
from skfairdp.datasets._fetch import RemoteFile, checked_path, read_published_file

CONTENT = bytes(range(256)) * 400


def remote(*sources, content=CONTENT, path="set/table.csv"):
    return RemoteFile(path, hashlib.sha256(content).hexdigest(), len(content), sources)


def zipped(compression=zipfile.ZIP_STORED, **members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


class Server:
    """A web server whose every page is a function of the request handler."""

    def __init__(self):
        self.pages = {}
        self.asked = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                with contextlib.suppress(OSError):  # the client may go away, and often should
                    outer.pages[self.path](self, outer.asked.count(self.path))

            def log_message(self, *args):
                pass

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.httpd.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.httpd.server_address[1]}"
        threading.Thread(target=self.httpd.serve_forever, args=(0.02,), daemon=True).start()

    def page(self, path, answer):
        self.pages[path] = answer
        return self.address + path

    def close(self):
        self.httpd.shutdown()
        self.httpd.server_close()


def send(handler, content, *, length=None, code=200):
    handler.send_response(code)
    handler.send_header("Content-Length", str(len(content) if length is None else length))
    handler.end_headers()
    handler.wfile.write(content)


def good(content=CONTENT):
    return lambda handler, nth: send(handler, content)


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    """Time-outs of tenths of seconds, and a home folder of its own."""
    monkeypatch.setattr(_fetch, "TIMEOUT", 0.4)
    monkeypatch.setattr(_fetch, "BACKOFF", 0.01)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SKFAIRDP_DATA", raising=False)
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_missing_file_is_downloaded_once(server, tmp_path):
    file = remote(server.page("/table.csv", good()))
    assert read_published_file(file, tmp_path, True) == CONTENT
    assert read_published_file(file, tmp_path, True) == CONTENT
    assert checked_path(file, tmp_path, False).read_bytes() == CONTENT
    assert server.asked == ["/table.csv"]
    assert files_below(tmp_path) == ["set/table.csv"]


def test_a_file_inside_nested_archives_is_downloaded(server, tmp_path):
    archive = zipped(**{"inner.zip": zipped(**{"a folder/table.csv": CONTENT})})
    file = remote(server.page("/outer.zip", good(archive)) + "!inner.zip!a folder/table.csv")
    assert read_published_file(file, tmp_path, True) == CONTENT
    assert files_below(tmp_path) == ["set/table.csv"]


@pytest.mark.parametrize("archive", [b"no archive", zipped(**{"other.csv": CONTENT})], ids=["broken", "other member"])
def test_a_wrong_archive_is_refused(server, tmp_path, archive):
    file = remote(server.page("/outer.zip", good(archive)) + "!table.csv")
    with pytest.raises(ConnectionError, match="not the archive that was expected"):
        read_published_file(file, tmp_path, True)
    assert files_below(tmp_path) == []


def test_a_file_may_be_stored_packed(tmp_path):
    file = remote()
    (tmp_path / "set").mkdir()
    (tmp_path / "set/table.csv.gz").write_bytes(gzip.compress(CONTENT))
    assert read_published_file(file, tmp_path, False) == CONTENT
    (tmp_path / "set/table.csv.gz").unlink()
    (tmp_path / "set/table.csv.zip").write_bytes(zipped(**{"table.csv": CONTENT}))
    assert read_published_file(file, tmp_path, False) == CONTENT


@contextlib.contextmanager
def little_memory(most=8_000_000):
    """Whatever happens within takes no more memory than this."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def understated(archive, size, said):
    """The archive, with another size of its member in both places where zip files keep it."""
    assert archive.count(struct.pack("<I", size)) == 2
    return archive.replace(struct.pack("<I", size), struct.pack("<I", said))


LARGE = 50_000_000
SWELLING = zipped(zipfile.ZIP_DEFLATED, **{"table.csv": bytes(LARGE)})
#: Archives of some 50 kB that unpack to 50 MB, where 100 kB are expected, and what is said of them.
BOMBS = {
    "honest": (SWELLING, "table.csv in it has 50,000,000 bytes, more than the expected 102,400"),
    "lying": (understated(SWELLING, LARGE, len(CONTENT)), "Bad CRC-32"),
    "lying, in another packing": (
        understated(zipped(zipfile.ZIP_BZIP2, **{"table.csv": bytes(LARGE)}), LARGE, len(CONTENT)),
        "packed in a way",
    ),
}


@pytest.mark.parametrize("kind", BOMBS)
@pytest.mark.parametrize("place", ["sent", "stored"])
def test_an_archive_that_swells_is_not_unpacked(server, tmp_path, kind, place):
    archive, said = BOMBS[kind]
    if place == "sent":
        file, error, left = remote(server.page("/outer.zip", good(archive)) + "!table.csv"), ConnectionError, []
    else:
        file, error, left = remote(), OSError, ["set/table.csv.zip"]
        (tmp_path / "set").mkdir()
        (tmp_path / "set/table.csv.zip").write_bytes(archive)
    with little_memory(), pytest.raises(error, match=said):
        read_published_file(file, tmp_path, True)
    assert files_below(tmp_path) == left


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_stored_file_that_is_too_large_is_not_read(tmp_path, suffix):
    (tmp_path / "set").mkdir()
    content = bytes(LARGE)
    (tmp_path / f"set/table.csv{suffix}").write_bytes(gzip.compress(content) if suffix else content)
    with little_memory(), pytest.raises(OSError, match=r"more than the expected 102,400 bytes\. Remove it"):
        read_published_file(remote(), tmp_path, True)


def test_an_archive_in_an_archive_is_limited_as_well(server, tmp_path, monkeypatch):
    monkeypatch.setattr(_fetch, "LARGEST_ARCHIVE", 1_000_000)
    archive = zipped(zipfile.ZIP_DEFLATED, **{"inner.zip": zipped(**{"table.csv": bytes(LARGE)})})
    file = remote(server.page("/outer.zip", good(archive)) + "!inner.zip!table.csv")
    with little_memory(), pytest.raises(ConnectionError, match=r"inner\.zip in it has 50,000,\d+ bytes, more than"):
        read_published_file(file, tmp_path, True)
    large = remote(server.page("/large.zip", good(zipped(**{"table.csv": bytes(2_000_000)}))) + "!table.csv")
    with pytest.raises(ConnectionError, match="more than the expected 1,000,000 bytes were sent"):
        read_published_file(large, tmp_path, True)
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("suffix", ["", ".gz", ".zip"])
def test_a_damaged_local_file_is_named_and_left_alone(server, tmp_path, suffix):
    file = remote(server.page("/table.csv", good()))
    packed = {"": CONTENT, ".gz": gzip.compress(CONTENT), ".zip": zipped(**{"table.csv": CONTENT})}[suffix]
    place = tmp_path / f"set/table.csv{suffix}"
    place.parent.mkdir()
    place.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(OSError, match=r"table\.csv"):
        read_published_file(file, tmp_path, True)
    if not suffix:
        with pytest.raises(OSError, match="is not the published"):
            checked_path(file, tmp_path, True)
    assert place.read_bytes() == packed[: len(packed) // 2]
    assert server.asked == []


def stall(handler, nth):
    send(handler, CONTENT[:100], length=len(CONTENT))
    handler.wfile.flush()
    time.sleep(1.5)


def drip(handler, nth):
    send(handler, b"", length=len(CONTENT))
    for k in range(100):
        handler.wfile.write(CONTENT[k : k + 1])
        time.sleep(0.03)


def tire(handler, nth):
    send(handler, CONTENT[:50_000], length=len(CONTENT))
    for _ in range(100):
        handler.wfile.write(b"x")
        time.sleep(0.03)


@pytest.mark.parametrize("slow", [stall, drip, tire])
def test_a_slow_server_is_given_up(server, tmp_path, monkeypatch, slow):
    monkeypatch.setattr(_fetch, "ATTEMPTS", 2)
    file = remote(server.page("/table.csv", slow))
    start = time.monotonic()
    with pytest.raises(ConnectionError, match="timed out"):
        read_published_file(file, tmp_path, True)
    assert time.monotonic() - start < 3
    assert len(server.asked) == 2
    assert files_below(tmp_path) == []


def test_a_steady_server_may_take_longer_than_the_time_out(server, tmp_path, monkeypatch):
    monkeypatch.setattr(_fetch, "TIMEOUT", 0.2)

    def steady(handler, nth):
        send(handler, b"", length=len(CONTENT))
        for k in range(0, len(CONTENT), 5120):
            handler.wfile.write(CONTENT[k : k + 5120])
            time.sleep(0.03)

    assert read_published_file(remote(server.page("/table.csv", steady)), tmp_path, True) == CONTENT


def cut(handler, nth):
    send(handler, CONTENT[:5000], length=len(CONTENT))
    handler.wfile.flush()
    handler.connection.close()


def busy(handler, nth):
    send(handler, b"later", code=503)


@pytest.mark.parametrize(("fault", "said"), [(cut, "cut off after 5,000 of 102,400"), (busy, "503")])
def test_temporary_faults_are_retried(server, tmp_path, fault, said):
    lasting = remote(server.page("/lasting", fault))
    with pytest.raises(ConnectionError, match=f"{said}.*asked 4 times"):
        read_published_file(lasting, tmp_path, True)
    assert len(server.asked) == 4
    assert files_below(tmp_path) == []

    passing = remote(server.page("/passing", lambda handler, nth: (fault if nth < 3 else good())(handler, nth)))
    assert read_published_file(passing, tmp_path, True) == CONTENT
    assert server.asked.count("/passing") == 3


def test_a_body_without_length_that_ends_early_is_refused(server, tmp_path):
    def short(handler, nth):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(CONTENT[:5000])

    with pytest.raises(ConnectionError, match="cut off after 5,000"):
        read_published_file(remote(server.page("/table.csv", short)), tmp_path, True)


def test_missing_page_is_not_retried(server, tmp_path):
    file = remote(server.page("/table.csv", lambda handler, nth: send(handler, b"", code=404)))
    with pytest.raises(ConnectionError, match="404"):
        read_published_file(file, tmp_path, True)
    assert len(server.asked) == 1


@pytest.mark.parametrize("wrong", [b"x" * len(CONTENT), CONTENT + b"more"], ids=["other bytes", "too long"])
def test_wrong_checksum_moves_to_the_next_source(server, tmp_path, wrong):
    bad = server.page("/bad", good(wrong))
    with pytest.raises(ConnectionError, match=r"sha256|more than the expected"):
        read_published_file(remote(bad), tmp_path, True)
    assert files_below(tmp_path) == []
    assert read_published_file(remote(bad, server.page("/good", good())), tmp_path, True) == CONTENT


def test_offline_says_what_to_put_where(server, tmp_path):
    address = server.page("/table.csv", good())
    server.close()
    with pytest.raises(ConnectionError) as caught:
        read_published_file(remote(address), tmp_path, True)
    message = str(caught.value)
    for needed in (str(tmp_path / "set/table.csv"), address, "SKFAIRDP_DATA", "102,400 bytes", "refused"):
        assert needed in message


def test_without_permission_nothing_is_asked(server, tmp_path):
    file = remote(server.page("/table.csv", good()))
    with pytest.raises(FileNotFoundError, match="download_if_missing=True"):
        read_published_file(file, tmp_path / "nowhere", False)
    assert server.asked == []
    assert files_below(tmp_path) == []
    assert not (tmp_path / "nowhere").exists()


def test_where_files_are_looked_for(server, tmp_path, monkeypatch):
    file = remote(server.page("/table.csv", good()))
    given, variable, cache = tmp_path / "given", tmp_path / "variable", tmp_path / "home/.cache/skfairdp"

    read_published_file(file, None, True)  # no setting: the cache, which is made now
    assert files_below(tmp_path) == ["home/.cache/skfairdp/set/table.csv"]
    monkeypatch.setenv("SKFAIRDP_DATA", str(variable))
    assert _fetch.locate_published_file(file, None, False) == cache / "set/table.csv"
    assert not variable.exists()
    with pytest.raises(FileNotFoundError, match="given"):  # a folder that is given is the only one
        _fetch.locate_published_file(file, given, False)
    assert _fetch.locate_published_file(file, str(given), True) == given / "set/table.csv"

    (cache / "set/table.csv").unlink()
    assert _fetch.locate_published_file(file, None, True) == variable / "set/table.csv"
    with pytest.raises(TypeError, match="data_home"):
        read_published_file(file, 3, True)


def test_a_folder_that_cannot_be_written_is_passed_over(server, tmp_path, monkeypatch):
    file = remote(server.page("/table.csv", good()))
    obstacle = tmp_path / "obstacle"
    obstacle.write_text("a file, not a folder")
    monkeypatch.setenv("SKFAIRDP_DATA", str(obstacle))
    assert _fetch.locate_published_file(file, None, True) == tmp_path / "home/.cache/skfairdp/set/table.csv"
    with pytest.raises(PermissionError, match="none of them can be written"):
        _fetch.locate_published_file(file, obstacle, True)


def test_a_loader_downloads_what_it_reads(server, tmp_path, monkeypatch):
    content = (
        b"subject#,age,sex,test_time,motor_UPDRS,total_UPDRS,PPE\n1,72,0,5.6,28.2,34.4,0.16\n2,58,1,1.5,9.1,11.0,0.1\n"
    )
    archive = zipped(**{"parkinsons_updrs.data": content})
    source = server.page("/parkinsons.zip", good(archive)) + "!parkinsons_updrs.data"
    monkeypatch.setattr(_fetch, "PARKINSONS", remote(source, content=content, path=_fetch.PARKINSONS.path))
    voices = fetch_parkinsons(preset="pate", data_home=tmp_path)
    assert voices.target.tolist() == [1, 0]
    assert voices.sensitive_features.tolist() == ["male", "female"]
    assert voices.subject.tolist() == [1, 2]
    fetch_parkinsons(data_home=tmp_path, download_if_missing=False)
    assert files_below(tmp_path) == ["parkinsons/parkinsons_updrs.data"]


def test_progress_is_shown(server, tmp_path, monkeypatch):
    bars = []

    class Bar:
        def __init__(self, **options):
            self.options, self.seen = options, 0
            bars.append(self)

        def __enter__(self):
            return self

        def __exit__(self, *args):
            pass

        def update(self, n):
            self.seen += n

    monkeypatch.setattr(_fetch, "tqdm", Bar)
    read_published_file(remote(server.page("/table.csv", good())), tmp_path, True)
    (bar,) = bars
    assert bar.options["total"] == bar.seen == len(CONTENT)
    assert bar.options["desc"] == "table.csv"


# Runs the one file by itself: a process that imports the whole package spends its time on that.
SCRIPT = """
import importlib.util, sys
module, address, sha256, size, home = sys.argv[1:]
spec = importlib.util.spec_from_file_location("fetch", module)
fetch = sys.modules["fetch"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fetch)
file = fetch.RemoteFile("set/table.csv", sha256, int(size), (address,))
print(len(fetch.read_published_file(file, home, True)))
"""


def start_process(file, home):
    command = [sys.executable, "-c", SCRIPT, _fetch.__file__, file.sources[0], file.sha256, str(file.size), str(home)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ.copy())


def test_processes_that_fetch_at_once_never_see_half_a_file(server, tmp_path):
    together = threading.Barrier(3)

    def at_once(handler, nth):
        if nth <= 3:
            together.wait(20)  # nobody is served before everybody has asked
        send(handler, b"", length=len(CONTENT))
        for k in range(0, len(CONTENT), 10240):
            handler.wfile.write(CONTENT[k : k + 10240])
            time.sleep(0.005 * nth)

    file = remote(server.page("/table.csv", at_once))
    processes = [start_process(file, tmp_path) for _ in range(3)]
    place = tmp_path / "set/table.csv"
    while any(process.poll() is None for process in processes):
        if place.exists():
            assert place.read_bytes() == CONTENT
        time.sleep(0.002)
    for process in processes:
        out, err = process.communicate()
        assert (out.strip(), err) == (str(len(CONTENT)), "")
    assert len(server.asked) == 3
    assert files_below(tmp_path) == ["set/table.csv"]


def test_a_process_that_is_killed_leaves_no_file(server, tmp_path):
    begun = threading.Event()

    def endless(handler, nth):
        send(handler, CONTENT[:50_000], length=len(CONTENT))
        handler.wfile.flush()
        begun.set()
        time.sleep(1)

    file = remote(server.page("/table.csv", endless))
    process = start_process(file, tmp_path)
    assert begun.wait(20)
    process.kill()
    process.communicate()
    assert _fetch.find_published_file(file, [tmp_path]) is None
    server.page("/table.csv", good())
    assert read_published_file(file, tmp_path, True) == CONTENT
