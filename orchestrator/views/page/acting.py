"""What the page asks of a campaign with `serve --control`: the requests of the command line, by the same checks.

A request lies in the ledger's inbox, with who asked; the orchestrator at work takes it and records what became of it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

import click
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError
from starlette.requests import ClientDisconnect, Request

from orchestrator.domain.records import Node
from orchestrator.ledger import Corrupt, Replaced
from orchestrator.loop.steering import unheard
from orchestrator.settings import Settings
from orchestrator.text import printable, short
from orchestrator.views.campaign import asking
from orchestrator.views.campaign.asking import Asked, person, when
from orchestrator.views.page.followed import Followed
from orchestrator.views.page.guard import LONGEST_BODY
from orchestrator.views.page.resuming import CAPS, Resumer
from orchestrator.wiring.ledgers import open_ledger
from orchestrator.wiring.reading import Reading
from orchestrator.wiring.reading import ask as leave_request

LONGEST_NAME = 60
_BODY_S = 30.0
_REPLACED = "another campaign is here now than the one that you see; load the page again, and look before you act"

Answer = tuple[int, dict[str, Any]]
Get = Callable[[str], Awaitable[Followed]]


class _Body(BaseModel):
    """`name` is how the person at the page calls themselves; `seen` is the mark of what they look at."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, StringConstraints(max_length=LONGEST_NAME)] = ""
    seen: str


class _AboutNode(_Body):
    node: str


class _Word(_AboutNode):
    why: str = ""


class _Steer(_Body):
    text: str


class _Inject(_Body):
    text: str
    description: str
    on: str = ""


class _Resume(_Body):
    caps: dict[str, str] = {}


@dataclass(frozen=True)
class _Act:
    """What has to be said, and the check of the command line that makes a request of it."""

    body: type[_Body]
    check: Callable[[Reading, Any], Asked]


ACTS: dict[str, _Act] = {
    "pause": _Act(_Body, lambda it, _: asking.pause(it, off=False)),
    "go-on": _Act(_Body, lambda it, _: asking.pause(it, off=True)),
    "steer": _Act(_Steer, lambda it, said: asking.steer(it, said.text.strip())),
    "inject": _Act(_Inject, lambda it, said: asking.inject(it, said.text, said.on.strip() or None, said.description)),
    "requeue": _Act(_AboutNode, lambda it, said: asking.requeue(it, said.node)),
    "release": _Act(_AboutNode, lambda it, said: asking.release(it, said.node)),
    "cancel": _Act(_AboutNode, lambda it, said: asking.cancel(it, said.node)),
    "accept": _Act(_Word, lambda it, said: asking.answer(it, said.node, accepted=True, why=said.why)),
    "decline": _Act(_Word, lambda it, said: asking.answer(it, said.node, accepted=False, why=said.why)),
}


class Acting:
    """`get` gives the campaign of an id, read up to now. `post` is for one who was let in to act."""

    def __init__(self, settings: Settings | None) -> None:
        self._settings = settings
        self._resumer = Resumer(settings)

    def close(self) -> None:
        self._resumer.close()

    async def post(self, request: Request, get: Get) -> Answer:
        """Raises what reading a campaign raises."""
        kind = request.path_params["kind"]
        if kind != "resume" and kind not in ACTS:
            return 404, {"error": f"nothing is called that; {', '.join([*ACTS, 'resume'])} are"}
        try:
            said = await _said(request, _Resume if kind == "resume" else ACTS[kind].body)
        except (ValueError, TypeError, RecursionError) as error:
            return 400, {"error": f"what is asked for cannot be read: {_first(error)}"}
        except (TimeoutError, ClientDisconnect):
            return 408, {"error": "it did not come to its end"}
        try:
            return 200, await asyncio.to_thread(self._done, kind, said, await get(request.path_params["id"]))
        except click.UsageError as error:
            return 409, {"error": short(error.message, 500)}
        except Replaced:
            return 409, {"error": _REPLACED}
        except Corrupt as error:
            return 409, {"error": short(str(error), 500)}

    def _done(self, kind: str, said: Any, it: Followed) -> dict[str, Any]:
        """Raises Replaced where the campaign is not the one that the person sees, or was checked here."""
        by, reading = asked_by(said.name), it.reading
        if not it.has(said.seen):
            raise Replaced(_REPLACED)
        with open_ledger(it.found.folder, self._settings, read_only=True) as now:
            if not now.has(reading.head):
                raise Replaced(_REPLACED)
            now.snapshot()  # nobody acts on rows that the chain does not seal
        if kind == "resume":
            return {"said": self._resumer.resume(it.found, reading, said.caps, by)}
        asked = ACTS[kind].check(reading, said)
        number = leave_request(it.found.named, asked.kind, asked.body, self._settings, by=by, of=reading.head)
        return {"request": number, "said": f"request {number}: {asked.what} {when(reading)}"}


def asked_by(name: str) -> str:
    """For the ledger. What a person calls themselves is their own word; whose server it is, is ours."""
    called = printable(" ".join(name.split()))[:LONGEST_NAME]
    return f"{called or 'somebody'}, at the page of {person()}"


async def _said(request: Request, model: type[_Body]) -> _Body:
    """Raises ValueError for what is no such thing, TimeoutError for one who does not come to an end."""
    data = b""
    async with asyncio.timeout(_BODY_S):
        async for part in request.stream():
            data += part
            if len(data) > LONGEST_BODY:
                raise ValueError("it is too long")
    found = json.loads(data)
    if not isinstance(found, dict):
        raise TypeError("it is no object")
    json.dumps(found, ensure_ascii=False).encode()  # raises for half a character, which nobody could read again
    return model.model_validate(found)


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        found = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(word) for word in found["loc"])
        return short(f"{where}: {found['msg']}", 300)
    return short(str(error) if not isinstance(error, RecursionError) else "it goes too deep", 300)


def possible(it: Followed, node: str) -> dict[str, Any]:
    """What can be asked now, of the campaign or of one node; the page offers nothing else."""
    reading = it.reading
    if node:
        return {"node": node, "acts": _of_node(reading, it.node(node))}
    campaign, run = reading.state.campaign, reading.state.run
    at_work = ["go-on" if campaign.paused or campaign.away else "pause"] if reading.holder else ["resume"]
    deaf = unheard(run)
    return {
        "acts": [*at_work, *([] if deaf else ["steer"]), "inject"],
        "unheard": short(deaf or "", 300),
        "when": when(reading),
        "caps": CAPS,
    }


def _of_node(reading: Reading, node: Node) -> list[str]:
    found = []
    for kind in ("accept", "decline", "release", "requeue", "cancel"):
        try:
            ACTS[kind].check(reading, _Word(node=node.id, seen=""))
        except click.UsageError:
            continue
        found.append(kind)
    return found
