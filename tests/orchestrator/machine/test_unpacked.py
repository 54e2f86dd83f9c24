"""`blastdoor images load` and `prune`: images for chambers without a daemon, from disk."""

import gzip
import json
from pathlib import Path

import pytest

from orchestrator.machine.programs import Unprepared
from orchestrator.views.chamber import images as of_images
from orchestrator.views.cli import cli
from orchestrator.views.exits import Exit
from orchestrator.views.failing import explained
from tests.clicking import runner
from tests.sandbox.runc.test_runc_images import PROGRAMS, saved
from tests.sandbox.runc.test_runc_layers import entry, layer


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_loaded_twice_and_pruned(tmp_path: Path) -> None:
    """What a name stood for before is removed, and said; then nothing is left to remove."""
    ids = []
    for content in (b"old", b"new"):
        image = saved(tmp_path / content.decode(), layer(*PROGRAMS, (entry("etc/who"), content)).getvalue())
        ids.append(
            runner().invoke(cli, ["images", "load", str(image), "own:latest"]).output.split("sha256:")[1].strip()
        )
    assert runner().invoke(cli, ["images", "prune"]).output == f"removed  {ids[0]}\n"
    assert runner().invoke(cli, ["images", "prune"]).output == "nothing to remove\n"


def test_removed_by_name(tmp_path: Path) -> None:
    """The files go with the last of their names; a name that is not there is told."""
    image = saved(tmp_path / "image", layer(*PROGRAMS).getvalue())
    roots = tmp_path / "cache/blastdoor/images/roots"
    for name in ("own:1", "own:2"):
        runner().invoke(cli, ["images", "load", str(image), name])
    for name, left in (("own:1", 2), ("own:2", 0)):
        assert runner().invoke(cli, ["images", "remove", name]).output.startswith(f"removed  {name};")
        runner().invoke(cli, ["images", "prune"])
        assert len(list(roots.iterdir())) == left
    told = "there is no image own:2 on disk; `blastdoor images` lists them"
    assert refused("remove", "own:2") == (told, Exit.BAD_INPUT)


def without_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DOCKER_HOST", "BLASTDOOR_DOCKER_HOST"):
        monkeypatch.setenv(name, f"unix://{tmp_path}/none.sock")


def refused(*words: str) -> tuple[str, Exit] | None:
    ran = runner().invoke(cli, ["images", *words])
    assert isinstance(ran.exception, Exception)
    return explained(ran.exception)


def test_listed_where_no_engine_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were loaded are shown; where there are none, one line says how to get an engine."""
    without_engine(tmp_path, monkeypatch)
    none = runner().invoke(cli, ["images"])
    assert isinstance(none.exception, Unprepared)
    assert "no engine answers" in str(none.exception)
    image = saved(tmp_path / "image", layer(*PROGRAMS).getvalue())
    for name in ("own:latest", "blastdoor-baked:0123456789abcdef"):
        runner().invoke(cli, ["images", "load", str(image), name])
    rows = json.loads(runner().invoke(cli, ["images", "--json"]).output)
    states = {"own:latest": "loaded", "blastdoor-baked:0123456789abcdef": "baked"}
    assert {row["image"]: row["state"] for row in rows} == states
    assert {(row["on"], row["bytes"]) for row in rows} == {("disk", len(PROGRAMS))}
    assert "own:latest" in runner().invoke(cli, ["images"]).output


def test_missing_where_no_engine_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever said to do without an engine is told what is not on disk yet, not to start one."""
    without_engine(tmp_path, monkeypatch)
    monkeypatch.setenv("BLASTDOOR_BACKEND", "runc")
    image = saved(tmp_path / "image", layer(*PROGRAMS).getvalue())
    runner().invoke(cli, ["images", "load", str(image), "blastdoor-trial:latest"])
    rows = json.loads(runner().invoke(cli, ["images", "--json"]).output)
    states = {row["image"]: (row["on"], row["state"]) for row in rows}
    assert states.pop("blastdoor-trial:latest") == ("disk", "loaded")
    assert states["blastdoor-base:latest"] == ("disk", "missing")
    assert set(states.values()) == {("disk", "missing")}


def test_what_an_engine_is_needed_for_is_told_first(tmp_path: Path) -> None:
    """Nothing is fetched or built for it before."""
    ran = runner().invoke(cli, ["images", "build", "--backend", "runc", "toolkit"])
    assert "blastdoor-toolkit:latest stands on more than one image" in str(ran.exception)
    assert "building" not in ran.output
    assert not (tmp_path / "cache/blastdoor").exists()


@pytest.mark.parametrize(("backend", "builds"), [("runc", "runc"), ("crun", "crun"), ("runsc", "runc")])
def test_images_are_built_by_the_runtime_that_is_asked_for(
    backend: str, builds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has crun alone needs no runc; where candidates are gVisor's, runc builds."""

    def missing(*names: str, log: Path) -> None:
        raise Unprepared(f"{names} is not here, says {log.name}")

    monkeypatch.setattr("orchestrator.wiring.backends.runc_builder.require", missing)
    ran = runner().invoke(cli, ["images", "build", "--backend", backend])
    assert f"('{builds}',) is not here" in str(ran.exception)


def test_hostile_numbers_are_one_line(tmp_path: Path) -> None:
    hostile = entry("etc/who")
    hostile.mtime = 2**70
    image = saved(tmp_path / "image", layer(*PROGRAMS, (hostile, b"x")).getvalue())
    line, code = refused("load", str(image), "own:latest") or ("", None)
    assert "an owner or a time that no file can have" in line
    assert code == Exit.BAD_INPUT


def test_t101_a_small_image_that_unpacks_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Taking an image in is ended where it costs more than its size explains, and nothing of it is left."""
    monkeypatch.setattr(of_images, "SECONDS", 1)
    bomb = gzip.compress(bytes(16 << 20)) * 60
    image = saved(tmp_path / "image", layer(*PROGRAMS).getvalue(), bomb)
    line, code = refused("load", str(image), "own:latest") or ("", None)
    assert line == f"{image}: reading it takes more than 1 s of processor; make it smaller or plainer, or leave it out"
    assert code == Exit.BAD_INPUT
    assert not list((tmp_path / "cache/blastdoor/images/roots").iterdir())
