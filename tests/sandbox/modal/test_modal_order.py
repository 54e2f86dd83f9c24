"""What is refused before anything costs."""

import importlib.util

import pytest
from modal._utils.function_utils import parse_gpu_config

from orchestrator.tariff import Tariff, longest
from orchestrator.wiring.backends.docker import spare_of
from sandbox.backends.modal import order as modal_order
from sandbox.backends.skypilot.machine import BOX_S
from sandbox.config import DockerConfig, ModalConfig, SkyPilotConfig
from sandbox.errors import Refused
from sandbox.job import Gpu, Job, Limits
from sandbox.price import Rates

CONFIG = ModalConfig()


def job(build: tuple[str, ...] = (), **limits: object) -> Job:
    return Job(command=("true",), build=build, limits=Limits(**limits))


@pytest.mark.parametrize(
    ("text", "word", "kind"),
    [
        ("A10", "A10:1", "A10"),
        ("H200:8", "H200:8", "H200"),
        ("A100", "A100-40GB:1", "A100-40GB"),
        ("a100-80gb:2", "A100-80GB:2", "A100-80GB"),
        ("A10G", "A10:1", "A10"),
        ("a10g:4", "A10:4", "A10"),
        ("h100:2", "H100!:2", "H100"),
    ],
)
def test_gpus_that_modal_sells(text: str, word: str, kind: str) -> None:
    """As Modal takes them: in any case, and short ones for the kind that it means by them, at its price. It may give an
    H200 for an H100 unless told; its own parser takes the mark.
    """
    wanted = Gpu.parse(text)
    assert modal_order.gpu(CONFIG, wanted) == word
    asked = parse_gpu_config(word)
    assert f"{asked.gpu_type}:{asked.count}" == word
    priced = CONFIG.rates.per_second(Limits(gpu=wanted)) - CONFIG.rates.per_second(Limits())
    assert priced == pytest.approx(CONFIG.rates.gpu[kind] * wanted.count)


def test_a_price_of_ones_own_for_a_short_name() -> None:
    """Whoever gives one means it."""
    rates = Rates(gpu={"A100": 1.0, "A100-40GB": 2.0})
    assert rates.per_second(Limits(gpu="A100")) - rates.per_second(Limits()) == 1.0


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("any", "Modal has no GPU any .*; it has T4"),
        ("RTX9090", "Modal has no GPU RTX9090"),
        ("A10:5", "at most 4 GPUs of kind A10"),
        ("H100:9", "at most 8 GPUs of kind H100"),
    ],
)
def test_gpus_that_it_does_not(text: str, line: str) -> None:
    """One line that names what there is."""
    with pytest.raises(Refused, match=line):
        modal_order.gpu(CONFIG, Gpu.parse(text))


def test_a_gpu_without_any_price() -> None:
    """Rates that know no GPU at all do not make it free."""
    with pytest.raises(Refused, match="it has none"):
        modal_order.gpu(ModalConfig(rates=Rates(cpu=1.0)), Gpu.parse("A10"))
    assert modal_order.gpu(CONFIG, None) is None


def test_a_lifetime_covers_all_that_may_happen() -> None:
    """Opening, upload, build, run, grace, collection and the end: the provider's limit is never what ends a trial."""
    deadlines = CONFIG.deadlines
    longest = deadlines.provision + deadlines.around
    plain, built = job(wall=100, grace=5, build=("make",)), job(wall=100, grace=5)
    assert modal_order.lifetime(CONFIG, built) >= longest + 105
    assert modal_order.lifetime(CONFIG, plain) == modal_order.lifetime(CONFIG, built) + plain.limits.build
    warm = ModalConfig(warm=2, warm_idle=300)
    assert modal_order.lifetime(warm, built) == modal_order.lifetime(CONFIG, built) + 300
    assert warm.terms.opening_s == CONFIG.terms.opening_s, "nobody waits longer where some stand ready"
    with pytest.raises(Refused, match=r"24 h; lower limits\.wall"):  # Modal ends everything after a day
        modal_order.lifetime(CONFIG, job(wall=24 * 3600))


@pytest.mark.parametrize("warm", [0, 1])
@pytest.mark.parametrize("build", [(), ("make",)], ids=["plain", "built"])
def test_a_trial_reserves_all_that_its_sandbox_can_live(warm: int, build: tuple[str, ...]) -> None:
    """A sandbox whose end is not confirmed costs until its lifetime: that, and no less, is the worst case (T75)."""
    config, wanted = ModalConfig(warm=warm, warm_idle=300), job(build=build)
    tariff = Tariff(config.rates.per_second, 60.0, spare_of(config), config.terms)
    worst = tariff.whole_life(wanted.limits, builds=bool(build))
    assert worst.milliseconds >= modal_order.lifetime(config, wanted) * 1000


@pytest.mark.parametrize("config", [DockerConfig(), CONFIG, SkyPilotConfig(infra="aws")], ids=lambda it: it.kind)
def test_T75_outputs_that_come_slowly_are_paid_for(config: DockerConfig | ModalConfig | SkyPilotConfig) -> None:
    """What is set aside covers the longest that a session may serve; outputs that keep coming take from that."""
    limits, deadlines = job(wall=100, grace=5).limits, config.deadlines
    assert longest(limits, builds=False, spare_s=spare_of(config)) > 100 + deadlines.around
    assert deadlines.around == deadlines.upload + deadlines.collect


def test_T75_a_rented_machine_gives_its_chamber_all_of_its_phases() -> None:
    deadlines = DockerConfig().deadlines
    assert deadlines.provision + deadlines.around < BOX_S


def test_memory_is_never_less_than_asked() -> None:
    assert modal_order.memory(Limits(memory=64 * 1024**2)) == 64
    assert modal_order.memory(Limits(memory=64 * 1024**2 + 1)) == 65


def test_shapes() -> None:
    """A sandbox that waits serves jobs that differ in nothing which it was made with."""
    assert modal_order.shape(job(log_bytes=1), 600) == modal_order.shape(job(log_bytes=2), 600)
    assert modal_order.shape(job(), 600) != modal_order.shape(job(), 601)
    assert modal_order.shape(job(pids=9), 600) != modal_order.shape(job(pids=10), 600)
    assert modal_order.shape(job(gpu="A10"), 600) != modal_order.shape(job(), 600)


def test_images_of_this_machine_are_not_at_modal() -> None:
    """The base stands for our own images; ids and names in a registry are themselves."""
    assert modal_order.reference(CONFIG, "blastdoor-trial:latest") == CONFIG.base
    assert modal_order.reference(CONFIG, "im-123") == "im-123"
    assert modal_order.reference(CONFIG, "debian:12") == "debian:12"
    assert modal_order.is_id("im-123")
    assert not modal_order.is_id("im-123/x")


async def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Refused, match="with its extra modal"):
        await CONFIG.connect()
