"""One hostile job, in and out. This is the package's face; everything else is private to it."""

from sandbox.backend import Answering, Backend, Capabilities, Chamber, Channel, Listener, Talk
from sandbox.baking import BakedImage, ImageSpec
from sandbox.bundle import Bundle, check_outputs_folder, write_outputs
from sandbox.channel import ChannelClosed
from sandbox.config import DockerConfig, ModalConfig, SkyPilotConfig
from sandbox.errors import Denied, Lost, Refused, SandboxError, Silent, TakenAway, Unavailable
from sandbox.happenings import NotDelivered
from sandbox.inputs import InputStore
from sandbox.job import Ending, Enforcer, Gpu, Input, Job, Limits, Mode, Needs, Outcome, Usage
from sandbox.price import FREE, Bill, Rates, Terms
from sandbox.purse import Purse
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
    "Gpu",
    "ImageSpec",
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
    "Refused",
    "Reply",
    "Report",
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
    "write_outputs",
]
