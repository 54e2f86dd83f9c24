"""Where candidates run: who says it, what is kept with a run, and what is refused before anything is opened."""

import importlib.util
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.loop.jobs import Image
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import Task, TaskError, load_task, write_template
from orchestrator.wiring.backends import rented
from orchestrator.wiring.backends.docker import Docker
from orchestrator.wiring.backends.modal import Modal
from orchestrator.wiring.backends.skypilot import SkyPilot
from orchestrator.wiring.choice import SiteChoice
from orchestrator.wiring.fitting import fitted
from orchestrator.wiring.options import resolve, resolve_site
from orchestrator.wiring.parts import make_door
from orchestrator.wiring.site import BackendContext
from orchestrator.wiring.sites import make_provider, planned_site
from sandbox import Gpu, Job, Limits, Refused, SkyPilotConfig
from sandbox.price import Terms


@pytest.fixture
def task(tmp_path: Path) -> Task:
    write_template(tmp_path / "t")
    return load_task(tmp_path / "t")


def test_order_of_places(task: Task) -> None:
    """A flag wins over what the run was begun with, that over the task, that over the user's settings."""
    with_gpu = task.model_copy(update={"limits": task.limits.model_copy(update={"gpu": Gpu.parse("L4")})})
    user = Settings(backend="modal", gpu="T4")
    begun: dict[str, Any] = {"backend": "modal", "gpu": "H100"}
    assert resolve(Flags(gpu="A10"), with_gpu, user, begun).site == SiteChoice("modal", Gpu.parse("A10"))
    assert resolve(Flags(), with_gpu, user, begun).site.gpu == Gpu.parse("H100")
    assert resolve(Flags(), with_gpu, user).site.gpu == Gpu.parse("L4")
    assert resolve(Flags(), task, user).site.gpu == Gpu.parse("T4")
    assert resolve(Flags(), task, Settings()).site == SiteChoice()


def test_kept_with_the_run(task: Task) -> None:
    """Where a run was begun is kept whoever said it: a setting that is gone, or new, does not move it."""
    begun = resolve(Flags(), task, Settings(backend="skypilot", infra="aws")).given()
    assert json.loads(json.dumps(begun)) == begun
    again = resolve(Flags(), task, Settings(), begun)
    assert (again.site.backend, again.site.infra) == ("skypilot", "aws")
    local = resolve(Flags(), task, Settings()).given()
    assert resolve(Flags(), task, Settings(backend="modal"), local).site.backend == "docker"


def test_moved_elsewhere(task: Task) -> None:
    """Another backend takes over what it has a use for, and not what only the old one was told."""
    begun = resolve(Flags(backend="skypilot", infra="aws", standing=2, gpu="A10"), task, Settings()).given()
    moved = resolve(Flags(backend="docker"), task, Settings(), begun).site
    assert moved == SiteChoice("docker")
    assert resolve(Flags(backend="docker", gpu="L4"), task, Settings(), begun).site.gpu == Gpu.parse("L4")
    stays = resolve(Flags(infra="gcp"), task, Settings(), begun).site
    assert (stays.infra, stays.standing) == ("gcp", 2)


def test_no_gpu(task: Task) -> None:
    """`none` wins over the task's own GPU and over the settings, and stays with the run."""
    with_gpu = task.model_copy(update={"limits": task.limits.model_copy(update={"gpu": Gpu.parse("L4")})})
    options = resolve(Flags(gpu="none"), with_gpu, Settings(backend="modal", gpu="T4"))
    site = planned_site(Settings(), options.site)
    assert (site.name, fitted(with_gpu, site).limits.gpu) == ("modal", None)
    assert resolve(Flags(), with_gpu, Settings(), options.given()).site == options.site


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (Flags(infra="aws"), "--infra says where SkyPilot rents and means nothing to docker"),
        (Flags(backend="modal", infra="aws"), "means nothing to modal"),
        (Flags(backend="modal", runtime="runsc"), "Modal runs its own; leave it out"),
        (Flags(standing=1), "on docker the setting warm keeps chambers ready"),
        (Flags(backend="skypilot"), "--backend skypilot needs --infra"),
        (Flags(backend="skypilot", infra="Nowhere at all"), "is not SkyPilot's word for a place"),
        (Flags(gpu="A10:many"), "is not kind and count; write it like A100:8"),
        (
            Flags(backend="fargate"),
            "backend fargate is not known; use one of docker, runc, crun, runsc, modal, skypilot",
        ),
    ],
)
def test_meaningless(task: Task, flags: Flags, line: str) -> None:
    """What a person said and nobody would heed is one line that says what to do, with a task and without."""
    with pytest.raises(TaskError, match=line):
        resolve(flags, task, Settings())
    with pytest.raises(TaskError, match=line):
        resolve_site(flags, Settings())


def test_settings_of_another_backend_are_no_mistake(task: Task) -> None:
    """What settings say for one backend does not stand in the way of another."""
    user = Settings(infra="aws", runtime="runsc", standing=3)
    assert resolve(Flags(backend="modal"), task, user).site == SiteChoice("modal", standing=3)
    assert resolve(Flags(backend="docker"), task, user).site == SiteChoice("docker", runtime="runsc")
    skypilot = resolve(Flags(backend="skypilot"), task, user).site
    assert skypilot == SiteChoice("skypilot", infra="aws", runtime="runsc", standing=3)


def test_configs() -> None:
    """Each backend gets its own settings, and a name for fingerprints that tells apart what must not be compared."""
    user = Settings(modal_app="mine", modal_environment="dev", usd_per_hour_most=2.5, runtime="runsc")
    patience = Settings(modal_idle=30, skypilot_lifetime=3600, skypilot_autodown=60)
    named = [
        (SiteChoice(), Docker, "docker/runsc"),
        (SiteChoice(runtime="runc"), Docker, "docker/runc"),
        (SiteChoice("modal", standing=2), Modal, "modal"),
        (SiteChoice("modal", Gpu.parse("A10:2")), Modal, "modal/A10"),
        (SiteChoice("modal", Gpu.parse("a10g")), Modal, "modal/A10"),
        (SiteChoice("skypilot", infra="slurm/one"), SkyPilot, "skypilot/slurm/one/fresh"),
        (SiteChoice("skypilot", infra="aws", standing=1), SkyPilot, "skypilot/aws/warm"),
    ]
    for choice, kind, name in named:
        provider = make_provider(user, choice)
        assert type(provider) is kind
        assert provider.planned().name == name
    modal = Modal(BackendContext(user, SiteChoice("modal", standing=2))).config()
    assert (modal.app, modal.environment, modal.warm) == ("mine", "dev", 2)
    sky = SkyPilot(BackendContext(user, SiteChoice("skypilot", infra="aws"))).config()
    assert (sky.usd_per_hour, sky.runtime) == (2.5, "runsc")
    assert (modal.warm_idle, sky.lifetime, sky.autodown) == (120, 14_400, 600)
    modal = Modal(BackendContext(patience, SiteChoice("modal"))).config()
    sky = SkyPilot(BackendContext(patience, SiteChoice("skypilot", infra="aws"))).config()
    assert (modal.warm_idle, sky.lifetime, sky.autodown) == (30, 3600, 60)


@pytest.mark.parametrize(("backend", "package"), [("modal", "modal"), ("skypilot", "sky")])
def test_package_is_missing(backend: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the provider's package one line says how to get it, before an engine is looked for."""
    find = importlib.util.find_spec
    monkeypatch.setattr(rented, "find_spec", lambda name: None if name == package else find(name))
    with pytest.raises(Refused, match=f"install blastdoor with its extra {backend} "):
        make_provider(Settings(), SiteChoice(backend, infra="aws")).planned()


@pytest.mark.parametrize("kind", ["any", "H900"])
def test_gpu_without_a_price(kind: str) -> None:
    """What cannot be reserved is not rented."""
    with pytest.raises(Refused, match=f"Modal has no GPU {kind} .*; it has T4, L4, A10"):
        planned_site(Settings(), SiteChoice("modal", Gpu.parse(kind)))


def test_price_ceiling() -> None:
    """What costs more than the ceiling is refused with both figures; on SkyPilot the ceiling is what is reserved."""
    limits, on_modal = Limits(gpu=Gpu.parse("A10")), SiteChoice("modal")
    price = planned_site(Settings(), on_modal).usd_per_second(limits)
    assert price == pytest.approx(0.000306 + 0.00003942 + 0.5 * 0.00000667)
    assert planned_site(Settings(usd_per_hour_most=2.0), on_modal).usd_per_second(limits) == price
    with pytest.raises(Refused, match=r"costs \$1.26 an hour on Modal, and usd_per_hour_most is \$1;"):
        planned_site(Settings(usd_per_hour_most=1.0), on_modal).usd_per_second(limits)
    on_sky = planned_site(Settings(usd_per_hour_most=3.6), SiteChoice("skypilot", infra="aws"))
    assert on_sky.usd_per_second(limits) == pytest.approx(0.001)
    # One's own machine costs what one says it costs.
    assert planned_site(Settings(usd_per_hour_most=0.0001), SiteChoice()).usd_per_second(Limits()) == 0


async def test_nothing_is_opened_for_a_plan() -> None:
    """A planned site knows names and prices, and refuses to run anything."""
    site = planned_site(Settings(), SiteChoice("modal", Gpu.parse("A10")))
    assert (site.home.name, site.gpu) == ("docker/runc", Gpu.parse("A10"))
    assert site.terms.opening_s > 0
    with pytest.raises(Refused, match="nothing is run for a plan"):
        await site.backend.open(Job(command=("true",)))
    assert await site.backend.reap() == []
    await site.backend.close()


@pytest.mark.parametrize("backend", ["modal", "skypilot"])
def test_what_is_not_offered(backend: str) -> None:
    """One line says so, before a place is named or anybody is asked."""
    with pytest.raises(Refused, match=f"`attack` is not offered on {backend}: .*; use `doctor` there"):
        make_provider(Settings(), SiteChoice(backend)).target()


@pytest.mark.parametrize(
    ("most", "choice", "price"),
    [
        (None, SiteChoice("modal"), r"^\$0.0000\d+ a second of 1 processor, 512 MiB; \$0.\d+ at worst for a trial"),
        (None, SiteChoice("modal", Gpu.parse("A10")), r"^\$0.000\d+ a second of 1 processor, 512 MiB and A10:1; "),
        (None, SiteChoice("skypilot", infra="aws"), r"^no ceiling \(usd_per_hour_most\)$"),
        (2.0, SiteChoice("skypilot", infra="aws"), r"^at most \$2 an hour \(usd_per_hour_most\); \$[\d.]+ at worst"),
    ],
)
async def test_who_pays(most: float | None, choice: SiteChoice, price: str) -> None:
    """It is told before anything is rented, and without asking anybody."""
    settings = Settings(usd_per_hour_most=most)
    about = await make_provider(settings, choice).about()
    assert (about.title, about.key, about.runtimes) == (planned_site(settings, choice).name, "account", None)
    assert re.search(price, about.record["price"])
    assert [cells for cells, _ in about.rows] == list(about.record.items())


async def test_reap_at_every_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """SkyPilot lists all that was rented, so that no place has to be named."""

    async def everywhere() -> tuple[list[str], list[str]]:
        return ["a"], ["b"]

    monkeypatch.setattr(SkyPilotConfig, "reap_everywhere", staticmethod(everywhere))
    chosen = resolve_site(Flags(backend="skypilot"), Settings(), anywhere=True)
    assert await make_provider(Settings(), chosen).reap() == (["a"], ["b"])


@pytest.mark.parametrize("usd", [None, 2.0])
def test_priced_later(usd: float | None) -> None:
    """Only SkyPilot's price is asked for at its time; then a plan knows it no sooner, unless there is a ceiling."""
    user = Settings(usd_per_hour_most=usd)
    sites = [planned_site(user, SiteChoice(name, infra="aws")) for name in ("docker", "modal", "skypilot")]
    assert [site.priced_later for site in sites] == [False, False, True]
    assert bool(sites[2].usd_per_second(Limits())) is (usd is not None)


def test_the_control_runs_where_no_candidate_was() -> None:
    """It decides who is to blame for a failure: on a machine that a candidate took, it would say what pays."""
    site: Any = SimpleNamespace(name="fake", backend=None, usd_per_second=lambda _: 0.0, spare_s=1.0, terms=Terms())
    assert make_door(site, Image("blastdoor-trial:latest", ""), 1.0).control.fresh
