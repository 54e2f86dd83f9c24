"""Whose a sandbox is, and when it may be ended."""

from collections.abc import Mapping
from pathlib import Path

from sandbox.backends.modal.marks import NAME, OURS, end_owned, mark_of, reap, tags_of
from sandbox.errors import Unavailable
from sandbox.tenancy import Mark, Tenancy

NOW = 1_000_000.0


class Sandbox:
    def __init__(self, fails: bool = False) -> None:
        self.ended = False
        self._fails = fails
        self.sandbox_id = "sb-1"

    async def end(self) -> None:
        if self._fails:
            raise Unavailable("terminate: Modal does not answer")
        self.ended = True


class Engine:
    def __init__(self) -> None:
        self.all: list[tuple[Sandbox, dict[str, str]]] = []

    def add(self, tags: dict[str, str], fails: bool = False) -> Sandbox:
        self.all.append((Sandbox(fails), tags))
        return self.all[-1][0]

    async def running(self, tags: Mapping[str, str]) -> list[tuple[Sandbox, dict[str, str]]]:
        return [item for item in self.all if tags.items() <= item[1].items() and not item[0].ended]


def test_tags_say_it_all() -> None:
    """Owner, place and end survive the way through tags, whose values Modal wants short and plain. A sandbox of
    somebody else's in the same app is never ours to end, nor one with tags that we did not write.
    """
    mark = Mark("0123456789ab", "89abcdef", 1234)
    tags = tags_of(mark, "blastdoor-x")
    assert mark_of(tags) == mark
    assert all(len(word) <= 63 and word.isascii() for pair in tags.items() for word in pair)
    for spoilt in ({"blastdoor-ends": "soon"}, {"blastdoor": "other"}, {"blastdoor-owner": ""}):
        assert mark_of({**tags, **spoilt}) is None
    assert mark_of({}) is None


async def test_reap(tmp_path: Path) -> None:
    """The dead owner's sandbox is ended. A living owner's is not, nor a stranger's before its end, nor
    one whose owner's lock is none: nobody can tell, and that stops nobody.
    """
    here = Tenancy(tmp_path / "here", lambda: NOW)
    living, dead = Tenancy(tmp_path / "here", lambda: NOW), Tenancy(tmp_path / "here", lambda: NOW)
    away = Tenancy(tmp_path / "away", lambda: NOW)
    engine = Engine()
    kept = [
        engine.add(tags_of(here.mark(100), "mine")),
        engine.add(tags_of(living.mark(-100), "of the living, even past its end")),
        engine.add(tags_of(away.mark(100), "elsewhere")),
        engine.add({"made-by": "a person"}),
        engine.add({**OURS, NAME: "no owner"}),
    ]
    orphan = engine.add(tags_of(dead.mark(100), "orphan"))
    overdue = engine.add(tags_of(away.mark(-100), "overdue"))
    engine.add(tags_of(dead.mark(100), "stuck"), fails=True)
    dead.release()
    odd = Tenancy(tmp_path / "here", lambda: NOW)
    kept.append(engine.add(tags_of(odd.mark(100), "unknown")))
    odd.release()
    (tmp_path / "here" / odd.owner).mkdir()
    ended, left = await reap(engine, here)  # type: ignore[arg-type]  # it stands for one
    assert (sorted(ended), left) == (["orphan", "overdue"], ["unknown", "stuck"])
    assert (orphan.ended, overdue.ended) == (True, True)
    assert not any(sandbox.ended for sandbox in kept)
    for tenancy in (here, living, away):
        tenancy.release()


async def test_an_owner_that_is_gone() -> None:
    """Its warden ends everything of it and nothing else."""
    engine = Engine()
    mine = [engine.add(tags_of(Mark("a" * 12, "89abcdef", 9), f"n{number}")) for number in range(3)]
    other = engine.add(tags_of(Mark("b" * 12, "89abcdef", 9), "n"))
    assert await end_owned(engine, "a" * 12) == 3  # type: ignore[arg-type]
    assert all(sandbox.ended for sandbox in mine)
    assert not other.ended
