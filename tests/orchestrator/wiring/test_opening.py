"""How a campaign is opened: what is left behind where it cannot be, and where it is found."""

import gc
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import click
import pytest

from orchestrator.domain import events as e
from orchestrator.ledger import CampaignLock, Held, Ledger, LedgerError
from orchestrator.loop.jobs import Image
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import ImageSpec, TaskError, load_task
from orchestrator.task.errors import STATE
from orchestrator.wiring import options
from orchestrator.wiring.beginning import How
from orchestrator.wiring.ledgers import FILE
from orchestrator.wiring.opening import open_campaign
from orchestrator.wiring.reading import read_campaign, task_folder_of
from orchestrator.wiring.resuming import CannotOpen, site_of_campaign
from orchestrator.wiring.site import Site
from sandbox import Refused
from tests.clicking import commands_in, runner
from tests.conftest import Deep
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import make_site, write_task


def said(*words: str | Path, code: int = 0) -> str:
    group = click.Group("blastdoor", commands={command.name or "": command for command in commands_in("campaign")})
    result = runner().invoke(group, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = make_site(Script())
    yield made
    await made.backend.close()


async def test_an_error_loses_nothing_and_leaves_nothing(tmp_path: Path, site: Site) -> None:
    """A refused image leaves the task's folder as it was, and what was there before stays; once a campaign has begun,
    its folder stays whatever happens.
    """

    async def refuse(_: ImageSpec) -> Image:
        raise Refused("the image is missing on the engine; build it")

    folder = write_task(tmp_path / "task")
    before = sorted(folder.iterdir())
    working, site = site, replace(site, bake=refuse)
    with pytest.raises(Refused):
        async with open_campaign(folder, site):
            pass
    assert sorted(folder.iterdir()) == before
    (folder / ".blastdoor").mkdir()
    with pytest.raises(Refused):
        async with open_campaign(folder, site):
            pass
    assert (folder / ".blastdoor").is_dir()
    with pytest.raises(RuntimeError):
        async with open_campaign(folder, working):
            raise RuntimeError
    with read_campaign(folder) as reading:
        assert reading.state.opened


async def test_t96_a_deep_tree_of_logs_is_removed(deep: Deep, tmp_path: Path, site: Site) -> None:
    """What a stranger's repository brings in place of live logs keeps nobody from a run or a resume."""
    folder = write_task(tmp_path / "task")
    live = folder / ".blastdoor" / "live"
    for how in (How.START, How.RESUME):
        deep(live, 1500)
        async with open_campaign(folder, site, how=how) as opened:
            assert opened.notes == ()
            assert not (live / "file").exists()


async def test_logs_that_cannot_be_removed_are_told(tmp_path: Path, site: Site) -> None:
    """The run begins, and says what is left."""
    folder = write_task(tmp_path / "task")
    live = folder / ".blastdoor" / "live"
    live.parent.mkdir()
    live.symlink_to(tmp_path)
    async with open_campaign(folder, site) as opened:
        assert opened.notes == (f"{live} could not be removed (Not a directory); remove it yourself",)


async def test_garbage_is_collected_again(tmp_path: Path, site: Site) -> None:
    """Nobody looks for garbage while a campaign is read; as soon as it is open, or cannot be opened, Python does."""
    meanwhile: list[bool] = []

    async def bake(spec: ImageSpec) -> Image:
        meanwhile.append(gc.isenabled())
        return await site.bake(spec)

    async def refuse(_: ImageSpec) -> Image:
        meanwhile.append(gc.isenabled())
        raise Refused("the image is missing on the engine; build it")

    async with open_campaign(write_task(tmp_path / "one"), replace(site, bake=bake)):
        assert gc.isenabled()
    with pytest.raises(Refused):
        async with open_campaign(write_task(tmp_path / "other"), replace(site, bake=refuse)):
            pass
    assert gc.isenabled()
    assert set(meanwhile) == {False}


async def test_what_is_new_goes_while_the_lock_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    """Another one that opens the campaign meanwhile never loses its folder to the one that failed."""
    held: list[bool] = []

    def remove(folder: Path) -> None:
        if folder.name == STATE:
            with pytest.raises(Held):
                CampaignLock(folder / "lock").acquire()
            held.append(True)

    def fail(*_: object, **__: object) -> Ledger:
        raise LedgerError("no ledger can be made")

    monkeypatch.setattr("orchestrator.wiring.opening.take_ledger", fail)
    monkeypatch.setattr("orchestrator.wiring.opening.remove_tree", remove)
    with pytest.raises(LedgerError, match="no ledger can be made"):
        async with open_campaign(write_task(tmp_path / "task"), site):
            pass
    assert held == [True]


async def test_a_ledger_that_cannot_be_read_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site) -> None:
    """Where nobody can tell whether anything was begun, the folder stays, and the first error is told."""

    def fail(folder: Path, *_: object, **__: object) -> Ledger:
        (folder / FILE).write_bytes(b"half a ledger")
        raise LedgerError("the disk is full")

    monkeypatch.setattr("orchestrator.wiring.opening.take_ledger", fail)
    folder = write_task(tmp_path / "task")
    with pytest.raises(LedgerError, match="the disk is full"):
        async with open_campaign(folder, site):
            pass
    assert (folder / STATE / FILE).exists()


async def test_a_campaign_elsewhere_is_named_by_its_folder(tmp_path: Path, site: Site) -> None:
    """Kept outside of the task, it is looked at and asked by its own folder, and hints name that."""
    folder, kept = write_task(tmp_path / "task"), tmp_path / "kept here"
    async with open_campaign(folder, site, folder=kept):
        pass
    assert "nobody works on it" in said("status", kept)
    assert said("tree", kept) == "no node yet\n"
    assert '"seq": ' in said("ledger", "head", "--json", kept)
    with read_campaign(kept) as reading:
        assert (reading.folder, reading.named) == (kept, kept)
    assert "there is no ledger" in said("status", folder, code=2)


@pytest.mark.parametrize("elsewhere", [True, False], ids=["elsewhere", "in the task"])
async def test_a_campaign_named_by_its_folder_knows_its_task(tmp_path: Path, elsewhere: bool, site: Site) -> None:
    """So a resume, a replay and a shell take the folder that all other commands take."""
    folder = write_task(tmp_path / "task")
    kept = tmp_path / "kept here" if elsewhere else folder / ".blastdoor"
    async with open_campaign(folder, site, folder=kept):
        pass
    async with open_campaign(kept, site, how=How.RESUME) as opened:
        assert opened.bench.task == load_task(folder)
    assert task_folder_of(kept).samefile(folder)
    assert site_of_campaign(kept, How.RESUME, Flags(), Settings()).backend == "docker"


async def test_a_campaign_that_does_not_know_its_task(tmp_path: Path, site: Site) -> None:
    """One that was kept elsewhere by an earlier version says what to name; so does one whose task was moved."""
    folder, kept = write_task(tmp_path / "task"), tmp_path / "kept"
    async with open_campaign(folder, site, folder=kept):
        pass
    folder.rename(tmp_path / "moved")
    with pytest.raises(TaskError, match="task: is not a folder"):
        site_of_campaign(kept, How.RESUME, Flags(), Settings())
    (kept / "task.txt").unlink()
    with pytest.raises(TaskError, match="nothing says where its task is; name the folder of the task"):
        site_of_campaign(kept, How.RESUME, Flags(), Settings())
    assert "nobody works on it" in said("status", kept)


async def test_a_rule_that_is_another_by_default(tmp_path: Path, site: Site) -> None:
    """A run goes on with the rule that it began with; where the task names none, the line says which to write."""
    timed = '[[metrics]]\nname = "score"\n[[metrics]]\nname = "seconds"\ngoal = "lower"\n'
    rule = '[certify]\nrule = "strict"\n'
    folder = write_task(tmp_path / "task", timed, rule)
    async with open_campaign(folder, site):
        pass
    write_task(folder, timed)
    told = r"\(certify\.rule\); write `rule = \"strict\"` under \[certify\], which it was begun with, or use"
    with pytest.raises(CannotOpen, match=told):
        async with open_campaign(folder, site, how=How.RESUME):
            pass
    write_task(folder, timed, rule)
    async with open_campaign(folder, site, how=How.RESUME):
        pass


async def test_what_the_task_says_in_vain_is_told(tmp_path: Path, site: Site) -> None:
    """A resume goes on with the run's own proposer and flags; who changed them in the task file is told so."""
    folder = write_task(tmp_path / "task")
    flags = Flags(proposer="random", control="grid", attempts=3)
    async with open_campaign(folder, site, flags=flags) as opened:
        assert opened.notes == ()
    async with open_campaign(folder, site, how=How.RESUME) as opened:
        assert opened.notes == ()
    file = folder / "blastdoor.toml"
    file.write_text(file.read_text() + '\n[search]\nproposer = "tpe"\ncontrol = "grid"\n[budget]\nattempts = 9\n')
    async with open_campaign(folder, site, how=How.RESUME) as opened:
        assert set(opened.notes) == {
            "proposer stays random, which the run was begun with; `run --new-run` begins with another",
            "attempts stays 3, which the run was begun with; `resume --attempts` goes on with another",
        }
    async with open_campaign(folder, site, how=How.RESUME, flags=Flags(attempts=9)) as opened:
        assert len(opened.notes) == 1


_OTHERS = {"meta": "gradient", "credit": "lineage", "price": "seconds", "novelty": "learn", "selection": "tournament"}


@pytest.mark.parametrize("changed", ["defaults", "task"])
async def test_a_run_goes_on_with_the_options_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str, site: Site
) -> None:
    """Whatever said them at first, and whatever a default or the task says by now."""
    folder = write_task(tmp_path / "task")
    async with open_campaign(folder, site) as opened:
        before = {name: opened.options[name] for name in (*_OTHERS, "arms", "islands", "migrate", "walk")}
    others = {**_OTHERS, "arms": ("operators",), "islands": 3, "migrate": 7, "walk": 5}
    if changed == "defaults":
        for name, value in others.items():
            monkeypatch.setitem(options.DEFAULTS, name, value)
    else:
        file = folder / "blastdoor.toml"
        lines = (f"{name} = {json.dumps(value)}" for name, value in others.items())
        file.write_text("\n".join([file.read_text(), "[search]", *lines]))
    async with open_campaign(folder, site, how=How.RESUME) as opened:
        found = {name: opened.options[name] for name in others}
        assert found == {**before, "arms": found["arms"]}
        assert opened.options.arms == ()
        told = {note.split()[0] for note in opened.notes}
        assert told == (set(others) if changed == "task" else set())


@pytest.mark.parametrize("said", [None, "lift"])
async def test_a_run_of_an_earlier_version_goes_on_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, site: Site
) -> None:
    """Its ledger keeps what flags said alone: the rest is as its task said, or as it was where nobody said anything."""
    more = [f'[search]\nmeta = "{said}"'] if said else []
    folder = write_task(tmp_path / "task", *more)
    async with open_campaign(folder, site) as opened:
        opened.bench.book.record(e.LimitsSet(limits={}, options="{}"))
    monkeypatch.setitem(options.DEFAULTS, "meta", "gradient")
    async with open_campaign(folder, site, how=How.RESUME) as opened:
        assert opened.options["meta"] == (said or "off")


async def test_the_grid_of_an_archive_stays(tmp_path: Path, site: Site) -> None:
    """A run that is half way in other cells would begin its archive again without a word."""
    grid = "[search.archive.features]\nsize = {low = 0, high = 10, bins = 5}\n"
    folder = write_task(tmp_path / "task", '[search]\nselection = "archive"\n', grid)
    async with open_campaign(folder, site):
        pass
    file = folder / "blastdoor.toml"
    file.write_text(file.read_text().replace("bins = 5", "bins = 6"))
    with pytest.raises(CannotOpen, match=r"search\.archive\.features\.size\.bins.*--new-run"):
        async with open_campaign(folder, site, how=How.RESUME):
            pass
