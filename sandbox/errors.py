"""What a provider or our own policy can do to us. What a program does is never an error: it is an `Outcome`.

SandboxError
├─ Unavailable   the provider failed or does not answer; nobody is charged, try again
├─ Refused       our own policy said no; nothing was started
└─ Lost          we no longer know what became of a chamber; reap, then try again
"""


class SandboxError(Exception):
    """Base of all errors of this package; the message is one line for a person.

    `usd` is what was spent all the same: a provider charges from create on, whether a chamber came of it or not.
    """

    usd: float = 0.0


class Unavailable(SandboxError):
    """The provider failed or does not answer."""


class Refused(SandboxError):
    """Our own policy said no; nothing was started."""


class Lost(SandboxError):
    """A chamber is gone or beyond our reach through nobody's known fault."""
