"""What a second at a provider costs, by a file of one's own: contracts differ, and prices change between releases.

It is the file of the setting `prices`, which has the prices of models too; here its table `modal` is read.
"""

import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from orchestrator.text import short
from sandbox import ModalConfig, Rates, Refused

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
