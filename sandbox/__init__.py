"""One hostile job, in and out. This is the package's face; everything else is private to it.

A name is loaded when it is asked for: one who only reads a limit waits for no backend.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.backend import (
        Answering,
        Backend,
        Capabilities,
        Chamber,
        Channel,
        Forwarding,
        Listener,
        Recalling,
        Talk,
    )
    from sandbox.baking import BakedImage, ImageSpec
    from sandbox.bundle import Bundle, check_outputs_folder, write_outputs
    from sandbox.channel import ChannelClosed
    from sandbox.config import DockerConfig, ModalConfig, RuncConfig, SkyPilotConfig
    from sandbox.errors import Denied, Lost, Refused, SandboxError, Silent, TakenAway, Unavailable
    from sandbox.happenings import NotDelivered
    from sandbox.incoming import Incoming
    from sandbox.inputs import InputStore
    from sandbox.job import Ending, Enforcer, Gpu, Input, Job, Limits, Mode, Needs, Outcome, Usage
    from sandbox.price import FREE, Bill, Rates, Terms
    from sandbox.purse import Purse
    from sandbox.trees import remove_tree
    from sandbox.wire.frames import Reply
    from sandbox.wire.log import Report, printable

__all__ = [
    "FREE",
    "Answering",
    "Backend",
    "BakedImage",
    "Bill",
    "Bundle",
    "Capabilities",
    "Chamber",
    "Channel",
    "ChannelClosed",
    "Denied",
    "DockerConfig",
    "Ending",
    "Enforcer",
    "Forwarding",
    "Gpu",
    "ImageSpec",
    "Incoming",
    "Input",
    "InputStore",
    "Job",
    "Limits",
    "Listener",
    "Lost",
    "ModalConfig",
    "Mode",
    "Needs",
    "NotDelivered",
    "Outcome",
    "Purse",
    "Rates",
    "Recalling",
    "Refused",
    "Reply",
    "Report",
    "RuncConfig",
    "SandboxError",
    "Silent",
    "SkyPilotConfig",
    "TakenAway",
    "Talk",
    "Terms",
    "Unavailable",
    "Usage",
    "check_outputs_folder",
    "printable",
    "remove_tree",
    "write_outputs",
]

_HOMES = {
    "sandbox.backend": "Answering Backend Capabilities Chamber Channel Forwarding Listener Recalling Talk",
    "sandbox.baking": "BakedImage ImageSpec",
    "sandbox.bundle": "Bundle check_outputs_folder write_outputs",
    "sandbox.channel": "ChannelClosed",
    "sandbox.config": "DockerConfig ModalConfig RuncConfig SkyPilotConfig",
    "sandbox.errors": "Denied Lost Refused SandboxError Silent TakenAway Unavailable",
    "sandbox.happenings": "NotDelivered",
    "sandbox.incoming": "Incoming",
    "sandbox.inputs": "InputStore",
    "sandbox.job": "Ending Enforcer Gpu Input Job Limits Mode Needs Outcome Usage",
    "sandbox.price": "FREE Bill Rates Terms",
    "sandbox.purse": "Purse",
    "sandbox.trees": "remove_tree",
    "sandbox.wire.frames": "Reply",
    "sandbox.wire.log": "Report printable",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = found
    return found
