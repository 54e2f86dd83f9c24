"""Campaigns on the fake backend: where they run, and the files of their tasks. No containers are involved."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from orchestrator.loop.jobs import Image
from orchestrator.task import ImageSpec
from orchestrator.wiring.site import Site
from sandbox import Input
from sandbox.backends.fake.backend import FakeBackend, Guest


def fake_site(program: Callable[[Guest], Awaitable[int]], width: int) -> Site:
    """`program` plays trial and judge; so many chambers at most are open at a time."""
    return Site(
        name="fake",
        backend=FakeBackend(program),
        bake=_bake,
        add_input=lambda name, _: Input(name=name, digest="0" * 64),
        usd_per_second=lambda _: 0.0,
        ceiling=lambda _: width,
    )


async def _bake(_: ImageSpec) -> Image:
    return Image("blastdoor-trial:latest", "none")


def write_task(folder: Path, task: str, params: str, others: Mapping[str, str] | None = None) -> None:
    """A task whose judge is the program; `others` are by path in the folder."""
    files = {"blastdoor.toml": task, "workspace/params.json": params, "judge/judge.py": "", **(others or {})}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
