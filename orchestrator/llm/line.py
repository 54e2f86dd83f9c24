"""A metered line to a model: all that a proposer, a verifier or an agent ever gets of it."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from orchestrator.domain.model_use import Tokens

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
App = Callable[[Scope, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]


class NoAnswer(Exception):
    """The call did not come to an answer. `charged` is false where the provider or the line failed, true where the
    allowance is used up or the request itself was refused. One line for a person.
    """

    def __init__(self, why: str, *, charged: bool) -> None:
        super().__init__(why)
        self.charged = charged


class Unusable(Exception):
    """The provider takes nothing from us at all: the key is refused, or the model is not known to it. One line for a
    person; the campaign ends, and nothing is charged.
    """


@dataclass(frozen=True)
class Answer:
    """`text` is all text blocks together; hostile words until parsed. `stop` is the API's stop reason."""

    text: str
    model: str
    stop: str
    tokens: Tokens


@dataclass(frozen=True)
class Refusal:
    """What the gateway itself refused: why, and what a person has to change, where that would help."""

    why: str
    change: str = ""

    def __str__(self) -> str:
        return f"{self.why}; {self.change}" if self.change else self.why


class Line(Protocol):
    """One attempt's access. `token` and `app` are for an agent that speaks the Messages API itself."""

    @property
    def token(self) -> str: ...

    @property
    def app(self) -> App: ...

    @property
    def models(self) -> Sequence[str]:
        """Those that may be asked, the preferred one first."""

    @property
    def unanswered(self) -> bool:
        """Whether the provider failed and never answered: as the gateway itself saw it, whatever was asked."""

    @property
    def refusal(self) -> Refusal | None:
        """The last request that the gateway itself refused for good."""

    @property
    def barred(self) -> Refusal | None:
        """Why no question of this sender can pass, as its first one shows; None again once another one passes."""

    async def ask(
        self,
        *,
        system: Sequence[str],
        messages: Sequence[Mapping[str, Any]],
        max_tokens: int,
        model: str | None = None,
        thinking: int | None = None,
        temperature: float | None = None,
    ) -> Answer:
        """One answer. The parts of `system` are stable prefixes for caching, the last one may change.

        Raises NoAnswer and Unusable.
        """
