"""Prices of chambers at Modal by a file of one's own."""

from pathlib import Path

import pytest

from orchestrator.llm.prices import Prices
from orchestrator.settings import Settings
from orchestrator.wiring.backends.modal import Modal, modal_rates
from orchestrator.wiring.choice import SiteChoice
from orchestrator.wiring.site import BackendContext
from sandbox import Gpu, Limits, ModalConfig, Refused
from sandbox.price import MODAL

OWN = """
date = 2026-11-01
source = "our contract"

[models."my-model"]
input = 1
output = 2

[modal]
cpu = 0.0001
gpu = { A10 = 0.0005, Z9 = 0.01 }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text(OWN)
    return path


def test_key_by_key(file: Path) -> None:
    """What the file says is taken, all else stays; it is one file for models and chambers."""
    rates = modal_rates(file)
    assert (rates.cpu, rates.memory_gib) == (0.0001, MODAL.memory_gib)
    assert (rates.gpu["A10"], rates.gpu["Z9"], rates.gpu["T4"]) == (0.0005, 0.01, MODAL.gpu["T4"])
    assert Prices.load(file).of("my-model").input == 1000
    assert modal_rates(None) == MODAL


def test_reserved_by_it(file: Path) -> None:
    """A GPU that is new there can be asked for once it has a price."""
    config = Modal(BackendContext(Settings(prices=file), SiteChoice("modal", Gpu.parse("Z9")))).config()
    assert isinstance(config, ModalConfig)
    assert config.rates.per_second(Limits(gpu="Z9:2")) > 0.02
    with pytest.raises(Refused, match="Modal has no GPU Z9"):
        Modal(BackendContext(Settings(), SiteChoice("modal", Gpu.parse("Z9")))).config()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[modal]\ncpu = -1", "modal.cpu: Input should be greater"),
        ("[modal]\ncpu = nan", "modal.cpu: "),
        ("[modal]\nprocessor = 1", "modal.processor: "),
        ("[modal]\ngpu = { A10 = true }", "modal.gpu.A10: "),
        ("[modl]\ncpu = 1", "modl: "),
        ("[modal", "is no TOML"),
        (None, "cannot be read"),
    ],
)
def test_one_line_for_what_can_not_be_used(tmp_path: Path, text: str | None, says: str) -> None:
    path = tmp_path / "prices.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Refused, match=says):
        modal_rates(path)
