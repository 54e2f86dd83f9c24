"""Bytes are kept once, under their digest, and come back as they were or not at all."""

import hashlib
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.ledger import Artifacts, Collected, Corrupt, LedgerError, Missing, Usage, canonical

NOTHING = "0" * 64


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


@pytest.fixture(params=[False, True], ids=["at once", "deferred"])
def store(request: pytest.FixtureRequest, folder: Path) -> Artifacts:
    return Artifacts(folder, deferred=request.param)


def stored(folder: Path, digest: str) -> Path:
    return folder / digest[:2] / digest[2:]


def test_put_and_get(store: Artifacts, folder: Path) -> None:
    """What is put comes back by its SHA-256, privately kept, for the next process too."""
    for data in (b"", b"hello", os.urandom(300_000)):
        digest = store.put(data)
        assert digest == hashlib.sha256(data).hexdigest()
        assert store.get(digest) == data
        assert stat.S_IMODE(stored(folder, digest).stat().st_mode) == 0o600
    store.sync()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert Artifacts(folder).get(hashlib.sha256(b"hello").hexdigest()) == b"hello"


def test_kept_once(store: Artifacts) -> None:
    """The same bytes take room once."""
    assert store.put(b"same") == store.put(b"same")
    assert store.usage() == Usage(1, 4)


def test_changed_bytes_are_found(store: Artifacts, folder: Path) -> None:
    """Bytes that are not those that were put are never handed out; putting the right ones again heals it."""
    digest = store.put(b"right")
    for wrong in (b"wrong", b"", b"right and more"):
        stored(folder, digest).write_bytes(wrong)
        with pytest.raises(Corrupt, match="not what was stored"):
            store.get(digest)
        assert store.put(b"right") == digest
        assert store.get(digest) == b"right"


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n", f"../{NOTHING}"])
def test_only_digests_are_names(store: Artifacts, digest: str) -> None:
    """Nothing but a digest is looked up, so no name can lead out of the folder."""
    with pytest.raises(LedgerError, match="is no digest"):
        store.get(digest)


def test_missing(store: Artifacts) -> None:
    """What is not there says so."""
    with pytest.raises(Missing, match=NOTHING):
        store.get(NOTHING)


FILES = {"out.json": b"{}", "../../x": b"hostile name", "": b"", "sub/log \udcff\0": b"\xff", "again": b"{}"}


def test_files(store: Artifacts) -> None:
    """A set of files is one artifact, whatever the files are called, and equal sets are the same one."""
    digest = store.put_files(FILES)
    assert store.get_files(digest) == FILES
    assert store.put_files(dict(reversed(FILES.items()))) == digest
    assert store.get_files(store.put_files({})) == {}


def test_files_are_verified(store: Artifacts, folder: Path) -> None:
    """One bad member is found, and what is no list of files is not taken for one."""
    digest = store.put_files(FILES)
    stored(folder, hashlib.sha256(b"hostile name").hexdigest()).write_bytes(b"hostile game")
    with pytest.raises(Corrupt):
        store.get_files(digest)
    for other in (b"text", b'{"files":{', b'{"files":{"a":1},"format":"blastdoor files 1"}', b'{"files":{}}'):
        with pytest.raises(Corrupt, match="no list of files"):
            store.get_files(store.put(other))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    return Artifacts(tmp_path_factory.mktemp("artifacts"), deferred=True)


@given(tail=st.binary(max_size=200))
def test_hostile_manifests(shared: Artifacts, tail: bytes) -> None:
    """Bytes of a candidate that start like a list of files break neither reading nor collecting."""
    digest = shared.put(b'{"files":{' + tail)
    shared.gc([digest], age=0.0, now=4e9)
    assert shared.get(digest).endswith(tail)
    with pytest.raises(Corrupt):
        shared.get_files(digest)


def test_deep_manifest(store: Artifacts) -> None:
    """Depth is no way to break it either."""
    digest = store.put(b'{"files":{"a":' + b"[" * 100_000)
    assert store.gc([digest], age=0.0, now=4e9).count == 0


def test_collect(store: Artifacts, folder: Path) -> None:
    """What nothing refers to goes, a list of files keeps its members, and scraps of killed processes go too."""
    kept, files = store.put(b"kept"), store.put_files({"a": b"member", "b": b"kept"})
    gone = store.put(b"gone")
    gone_files = store.put_files({"a": b"member of the gone"})
    scrap = stored(folder, gone).with_name(".0123456789abcdef")
    scrap.write_bytes(b"half")
    now = stored(folder, gone).stat().st_mtime + 100
    before = store.usage()
    collected = store.gc([kept, files, NOTHING], age=50.0, now=now)
    assert collected.count == 4
    assert store.usage() == Usage(before.count - 4, before.bytes - collected.bytes)
    assert store.get(kept) == b"kept"
    assert store.get_files(files) == {"a": b"member", "b": b"kept"}
    for digest in (gone, gone_files):
        with pytest.raises(Missing):
            store.get(digest)
    assert not scrap.exists()
    assert store.gc([kept, files], age=50.0, now=now) == Collected(0, 0)


def test_young_ones_stay(store: Artifacts, folder: Path) -> None:
    """Bytes that no event names yet are safe while they are young; putting them again makes them young."""
    digest = store.put(b"not named yet")
    os.utime(stored(folder, digest), (1000.0, 1000.0))
    assert store.gc([], age=60.0, now=1059.0) == Collected(0, 0)
    store.put(b"not named yet")
    assert store.gc([], age=60.0, now=2000.0) == Collected(0, 0)
    os.utime(stored(folder, digest), (1000.0, 1000.0))
    assert store.gc([], age=60.0, now=1061.0) == Collected(1, 13)


def test_event_never_names_what_is_not_on_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `put`, or after `sync` where it is deferred, file and folder entry were both flushed, the file first; and
    so was the entry of the folder itself, once: another process may have made it a moment ago."""
    flushed: list[str] = []
    real = os.fsync

    def watched(file: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{file}").readlink()))
        real(file)

    at_once, deferred = Artifacts(folder), Artifacts(folder, deferred=True)
    monkeypatch.setattr(os, "fsync", watched)
    one = stored(folder, at_once.put(b"one"))
    assert flushed == [str(one), str(one.parent), str(folder)]
    flushed.clear()
    at_once.put(b"one")
    assert flushed == [str(one), str(one.parent)]
    flushed.clear()
    put = [stored(folder, deferred.put(data)) for data in (b"two", b"three", b"two", b"one")]
    assert flushed == []
    deferred.sync()
    assert sorted(flushed[:3]) == sorted({str(path) for path in put})
    assert set(flushed[3:-1]) == {str(path.parent) for path in put}
    assert flushed[-1] == str(folder)
    flushed.clear()
    deferred.sync()
    assert flushed == []


def test_failed_sync_is_repeated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sync that failed is not forgotten: the next one flushes the same files."""
    store = Artifacts(folder, deferred=True)
    store.put(b"data")
    calls: list[int] = []

    def failing(file: int) -> None:
        calls.append(file)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises(LedgerError, match="Input/output error"):
            store.sync()
        with pytest.raises(LedgerError, match="Input/output error"):
            store.sync()
    assert len(calls) == 2
    store.sync()


def test_threads(store: Artifacts) -> None:
    """Threads that put the same bytes at the same time do not hurt each other."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for number in range(20):
                store.put(b"%d" % number)
            store.sync()
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert store.usage().count == 20


def test_sync_waits_for_that_of_another_thread(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread whose bytes another one is flushing is told that they are on disk when they are, and not before."""
    store = Artifacts(folder, deferred=True)
    store.put(b"of both")
    flushing, go_on, real = threading.Event(), threading.Event(), os.fsync

    def slow(file: int) -> None:
        flushing.set()
        go_on.wait()
        real(file)

    monkeypatch.setattr(os, "fsync", slow)
    first, second = threading.Thread(target=store.sync), threading.Thread(target=store.sync)
    first.start()
    flushing.wait()
    second.start()
    second.join(0.1)
    returned_early = not second.is_alive()
    go_on.set()
    first.join()
    second.join()
    assert not returned_early


def test_interrupted_sync_is_repeated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sync that was interrupted has flushed nothing for sure, so the next one does."""
    store = Artifacts(folder, deferred=True)
    store.put(b"data")
    flushed: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            store.sync()
    monkeypatch.setattr(os, "fsync", flushed.append)
    store.sync()
    assert len(flushed) == 3


def test_put_while_it_is_collected(store: Artifacts, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old bytes that are put again while they are being collected stay."""
    digest = store.put(b"again")
    os.utime(stored(folder, digest), (1000.0, 1000.0))
    looked = list(store.files())

    def put_meanwhile() -> list[tuple[Path, os.stat_result]]:
        store.put(b"again")
        return looked

    monkeypatch.setattr(store, "files", put_meanwhile)
    assert store.gc([], age=60.0, now=2000.0) == Collected(0, 0)
    assert store.get(digest) == b"again"


_FILLER = """
import os, resource, sys
from pathlib import Path
from orchestrator.ledger import Artifacts, Full
store = Artifacts(Path(sys.argv[1]), deferred=sys.argv[2] == "True")
store.put(b"before")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    store.put(b"x" * 5000)
except Full as error:
    print(error)
store.put(b"after")
store.sync()
print(store.usage().count)
"""


@pytest.mark.parametrize("deferred", [False, True])
def test_full(folder: Path, deferred: bool) -> None:
    """When no more can be written, it says so, leaves no scrap, and what was there is whole."""
    command = [sys.executable, "-c", _FILLER, str(folder), str(deferred)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert run.stdout.splitlines() == [f"no space left for {folder}: free some and resume; nothing was lost", "2"]
    assert [path for path in folder.rglob("*") if path.name.startswith(".")] == []


def test_manifest_form(store: Artifacts) -> None:
    """A list of files is canonical JSON with digest and size of each, so others can read it."""
    member: list[Any] = [hashlib.sha256(b"x").hexdigest(), 1]
    expected = canonical({"files": {"a": member}, "format": "blastdoor files 1"}).encode()
    assert store.get(store.put_files({"a": b"x"})) == expected


def test_let_go(store: Artifacts) -> None:
    """A list goes with its files, but nothing goes that is kept, alone or in another list."""
    gone = store.keep_files({"mine": b"mine", "shared": b"shared", "log": b"a log", "twice": b"mine"}).digest
    kept = store.keep_files({"other": b"shared"}).digest
    log = store.put(b"a log")
    assert store.let_go({gone}, {kept}, {log}, until=2e10) == set()
    assert store.those_there({gone, kept}) == {kept}
    assert store.get_files(kept) == {"other": b"shared"}
    assert store.get(log) == b"a log"
    with pytest.raises(Missing):
        store.get(hashlib.sha256(b"mine").hexdigest())
    assert store.let_go({gone}, {kept}, {log}, until=2e10) == set(), "once more does no harm"


def test_let_go_of_what_somebody_stores(store: Artifacts, folder: Path) -> None:
    """What was put after the moment that counts stays, and so does the list that tells of it, to be asked again."""
    gone = store.keep_files({"old": b"old", "again": b"again"}).digest
    for data in (b"old", b"again"):
        os.utime(stored(folder, hashlib.sha256(data).hexdigest()), (1_000, 1_000))
    os.utime(stored(folder, gone), (1_000, 1_000))
    store.put(b"again")
    assert store.let_go({gone}, set(), set(), until=2_000) == {gone}
    assert store.get(hashlib.sha256(b"again").hexdigest()) == b"again"
    with pytest.raises(Missing):
        store.get(hashlib.sha256(b"old").hexdigest())
    assert store.let_go({gone}, set(), set(), until=2e10) == set()
    assert store.usage() == Usage(0, 0)


@pytest.mark.parametrize("damage", ["head", "tail", "folder"])
def test_let_go_beside_a_list_that_cannot_be_read(store: Artifacts, folder: Path, damage: str) -> None:
    """Where a kept list is damaged, nobody can tell what it holds: nothing is removed, and one line says why."""
    gone = store.keep_files({"mine": b"mine", "shared": b"shared"}).digest
    kept = store.keep_files({"other": b"shared"}).digest
    path = stored(folder, kept)
    text = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"?" + text[1:] if damage == "head" else text[:-1] + b"?")
    with pytest.raises(Corrupt, match="go back to a copy"):
        store.let_go({gone}, {kept}, set(), until=2e10)
    assert store.get_files(gone) == {"mine": b"mine", "shared": b"shared"}


def test_gc_beside_what_cannot_be_read(store: Artifacts, folder: Path) -> None:
    """What is referred to and cannot be opened is an error of one line, and nothing is removed."""
    kept, other = store.put(b"kept"), store.put(b"other")
    stored(folder, kept).unlink()
    stored(folder, kept).mkdir()
    with pytest.raises(Corrupt, match="cannot be read"):
        store.gc({kept}, age=0, now=2e10)
    assert store.get(other) == b"other"


def test_let_go_believes_no_candidate(store: Artifacts) -> None:
    """A file that looks like a list of files takes nothing with it."""
    other = store.put(b"of another")
    forged = canonical({"files": {"x": [other, 10]}, "format": "blastdoor files 1"}).encode()
    gone = store.keep_files({"forged": forged}).digest
    assert store.let_go({gone}, set(), set(), until=2e10) == set()
    assert store.get(other) == b"of another"


def test_keep_waits_for_its_own_bytes_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a thread waits for the disk with a thousand files, one who syncs a few does not wait for it."""
    store = Artifacts(folder, deferred=True)
    waits, go = threading.Event(), threading.Event()

    def fsync(_: Path) -> None:
        if threading.current_thread() is not threading.main_thread():
            waits.set()
            assert go.wait(60)

    monkeypatch.setattr("orchestrator.ledger.artifacts.sync", fsync)
    thread = threading.Thread(target=store.keep_files, args=({"many": b"many"},))
    thread.start()
    assert waits.wait(60)
    store.put(b"few")
    store.sync()
    go.set()
    thread.join()


def test_the_size_of_a_list(store: Artifacts) -> None:
    """As it was told when it was stored; of one that is gone, nothing."""
    kept = store.keep_files({"a": b"12345", "b": b""})
    assert store.size_of(kept.digest) == kept.bytes > 5
    assert store.size_of(NOTHING) == 0
