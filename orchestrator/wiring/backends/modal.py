"""Sandboxes that Modal rents.

What a second there costs can be said in a file of one's own: contracts differ, and prices change between releases. It
is the file of the setting `prices`, which has the prices of models too; here its table `modal` is read.
"""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, Field, ValidationError

from orchestrator.text import short
from orchestrator.wiring.backends.rented import Rented
from orchestrator.wiring.site import Reaped
from sandbox import Limits, ModalConfig, Rates, Refused

if TYPE_CHECKING:
    from sandbox.attacks.attack import Target
    from sandbox.conformance.subject import Subject

# Where nobody said: a wide bill should be somebody's decision.
_WIDTH = 10


class Modal(Rented[ModalConfig]):
    extra = "modal"
    package = "modal"
    meaningless: ClassVar = {
        "infra": "--infra says where SkyPilot rents and means nothing to modal; use it with --backend skypilot",
        "runtime": "--runtime names a container runtime, and Modal runs its own; leave it out with --backend modal",
    }

    def make_config(self) -> ModalConfig:
        return ModalConfig(
            app=self.settings.modal_app,
            environment=self.settings.modal_environment,
            warm=self.choice.standing,
            warm_idle=self.settings.modal_idle,
            rates=modal_rates(self.settings.prices),
        )

    def name(self) -> str:
        gpu = self.choice.gpu
        kind = modal_rates(self.settings.prices).kind(gpu.kind) or gpu.kind if gpu else None
        return f"modal/{kind}" if kind else "modal"

    def price(self, config: ModalConfig) -> Callable[[Limits], float]:
        most = self.settings.usd_per_hour_most

        def price(limits: Limits) -> float:
            config.admit(limits.gpu)
            usd = config.rates.per_second(limits)
            if most is not None and usd * 3600 > most:
                raise Refused(
                    f"a chamber of these limits costs ${usd * 3600:.2f} an hour on Modal, and usd_per_hour_most is "
                    f"${most:g}; ask for less, or raise it"
                )
            return usd

        return price

    def width(self, config: ModalConfig) -> int:
        del config  # as wide as one pays for
        return _WIDTH

    def account(self, config: ModalConfig, limits: Limits, usd: float, at_worst: str) -> dict[str, str]:
        gpu = f" and {limits.gpu}" if limits.gpu else ""
        return {
            "account": "that of MODAL_TOKEN_ID, or of ~/.modal.toml",
            "app": config.app + (f", environment {config.environment}" if config.environment else ""),
            "price": f"${usd:.8f} a second of {limits.cpus:g} processor, 512 MiB{gpu}; {at_worst}",
        }

    def subject(self) -> "Subject":
        from sandbox.conformance.modal import ModalSubject

        return ModalSubject(self.config())

    def target(self) -> "Target":
        raise Refused("`attack` is not offered on modal: its rows look at the engine from outside; use `doctor` there")

    async def reap(self) -> Reaped:
        backend = await self.config().connect()
        try:
            # Connecting reaps already; a second look finds what could not be ended then.
            return Reaped([*backend.reaped, *await backend.reap()], list(backend.unreaped))
        finally:
            await backend.close()


_OURS = ModalConfig().rates
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


class _Modal(BaseModel, extra="forbid", frozen=True):
    """Dollars a second of a core, of a GiB, and of a GPU by its kind."""

    cpu: Dollars = _OURS.cpu
    memory_gib: Dollars = _OURS.memory_gib
    gpu: dict[str, Dollars] = {}


class _File(BaseModel, extra="forbid", frozen=True):
    """The other keys are those of models, and are looked at where models are asked."""

    date: Any = None
    source: Any = None
    models: Any = None
    modal: _Modal = _Modal()


def modal_rates(path: Path | None) -> Rates:
    """Those that come with us, with those of the file put over them. Raises Refused with what to mend."""
    if path is None:
        return _OURS
    try:
        own = _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8-sig"))).modal
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path}: cannot be read: {short(str(error), 200)}") from None
    except tomllib.TOMLDecodeError as error:
        raise Refused(f"{path}: is no TOML: {short(str(error), 200)}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise Refused(f"{path}: {'.'.join(map(str, first['loc']))}: {short(first['msg'], 200)}") from None
    return Rates(cpu=own.cpu, memory_gib=own.memory_gib, gpu=_OURS.gpu | own.gpu)
