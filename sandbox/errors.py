"""What a provider or our own policy can do to us. What a program does is never an error: it is an `Outcome`.

SandboxError
├─ Unavailable   the provider failed or does not answer; nobody is charged, try again
│  ├─ Denied     it answers, and takes nothing from us: token, credit; trying again is no use, a person must act
│  └─ Silent     it answered nobody while a chamber ran: evidence from outside, so nobody is charged for what was lost
├─ Refused       our own policy said no; nothing was started
│  └─ NoSuchGpu  the GPUs that were asked for are not there
└─ Lost          we no longer know what became of a chamber; reap, then try again
   └─ TakenAway  the provider says itself that it took the machine away; nobody is charged, try again
"""


class SandboxError(Exception):
    """Base of all errors of this package; the message is one line for a person.

    `usd` is what was spent all the same: a provider charges from create on, whether a chamber came of it or not.
    `unended` says that the end of what was created could not be confirmed: it may be charged until the provider
    itself ends it. `chamber` is then what the provider knows it by.
    """

    usd: float = 0.0
    unended: bool = False
    chamber: str = ""


class Unavailable(SandboxError):
    """The provider failed or does not answer."""


class Denied(Unavailable):
    """The provider answers and does not let us in: the token is refused or over, or the account has no credit.

    The message says what a person must do.
    """


class Silent(Unavailable):
    """While a chamber ran, the provider did not answer a question that has nothing to do with any chamber.

    Nothing inside a chamber can bring that about: no control job is needed to know whose fault it was.
    """


class Refused(SandboxError):
    """Our own policy said no; nothing was started."""


class NoSuchGpu(Refused):
    """The machine, or the engine, has no GPU at all, or not those that were asked for."""


class Lost(SandboxError):
    """A chamber is gone or beyond our reach through nobody's known fault."""


class TakenAway(Lost):
    """The provider's own record says that it ended the chamber: a machine was preempted, or a worker died."""
