"""A loopback server that speaks the Messages API, scripted by a test. It is a fixture, never a mode of the product."""

from tests.messages.blocks import Block, Hidden, Text, Thinking, Tool
from tests.messages.server import KEY, MessagesServer
from tests.messages.stage import Recorded, until
from tests.messages.steps import Hang, Raw, Refusal, Reply, Step, overloaded, rate_limited

__all__ = [
    "KEY",
    "Block",
    "Hang",
    "Hidden",
    "MessagesServer",
    "Raw",
    "Recorded",
    "Refusal",
    "Reply",
    "Step",
    "Text",
    "Thinking",
    "Tool",
    "overloaded",
    "rate_limited",
    "until",
]
