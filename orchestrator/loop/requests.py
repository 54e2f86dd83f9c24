"""What another terminal asks for. Requests wait in the ledger's inbox; only the running orchestrator acts on them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Guard, Node, Phase
from orchestrator.ledger import Request
from orchestrator.loop.playbooks import Playbooks
from orchestrator.loop.steering import unfit, unheard
from orchestrator.loop.workbench import Workbench

LONGEST_WHY = 500
LONGEST_NAME = 200
Answer = tuple[str, list[e.Event]]


@dataclass
class Inbox:
    """`cancel` ends a running attempt; it is the campaign's, and says whether there is one."""

    bench: Workbench
    cancel: Callable[[str], bool]

    @property
    def playbooks(self) -> Playbooks | None:
        return self.bench.playbooks

    def answer(self, requests: Sequence[Request]) -> None:
        """Each in a transaction with what it changes."""
        for request in requests:
            by = ""
            try:
                body = _object(request.body)
                by = str(body.pop("by"))[:LONGEST_NAME]
                answer, events = self._answer(request.id, request.kind, body)
            except (KeyError, TypeError, ValueError, RecursionError):
                # Answered, too: one that nobody can read must not end this session and every one after it.
                answer, events = f"refused: what is asked for ({request.kind}) cannot be read", []
            taken = e.RequestTaken(request=request.id, asked=request.kind, answer=answer, by=by)
            self.bench.book.record(*events, taken)

    def _answer(self, number: int, kind: str, body: dict[str, object]) -> Answer:
        match kind:
            case "pause":
                paused = bool(body["paused"])
                return ("paused" if paused else "going on", [e.PauseSet(paused=paused)])
            case "inject":
                return self._inject(number, body)
            case "requeue" | "release":
                return self._release(str(body["node"]), kind)
            case "cancel":
                return self._cancel(str(body["node"]))
            case "guard":
                return self._guard(body)
            case "playbook use" | "playbook correct" if self.playbooks is None:
                return "refused: there is no playbook, since the proposer asks no model", []
            case "playbook use" if self.playbooks:
                return self.playbooks.use(int(str(body["version"])))
            case "playbook correct" if self.playbooks:
                return self.playbooks.correct(str(body["text"]), drop=bool(body.get("drop")))
            case "steer":
                return self._steer(str(body["text"]))
            case "accept" | "decline":
                return self._promotion(str(body["node"]), kind == "accept", str(body.get("why") or ""))
        return f"refused: {kind} is not known to this version", []

    def _inject(self, number: int, body: dict[str, object]) -> Answer:
        on = str(body["on"]) if body.get("on") else None
        if on and ((known := self._known(on)) is None or known.commit is None):
            return f"refused: {on} has no candidate of this run to build on", []
        description = str(body.get("description") or "a change brought by a person")[:500]
        change = self.bench.artifacts.put(str(body["text"]).encode())
        queued = e.InjectionQueued(injection=number, change=change, description=description, on=on)
        return "queued", [queued]

    def _release(self, node: str, kind: str) -> Answer:
        known = self._known(node)
        if known is None:
            return f"refused: there is no node {node} in this run", []
        wanted = {"release": (Phase.QUARANTINED,), "requeue": (Phase.QUARANTINED, Phase.QUEUED, Phase.ENDED)}[kind]
        charged = known.phase is Phase.ENDED and known.ending is not None and known.ending.charged
        if known.phase not in wanted or charged:
            state = known.ending if known.phase is Phase.ENDED else known.phase
            return f"refused: {node} is {state}, and only what ended free can be run again", []
        return "queued again", [e.AttemptReleased(node=node, by=f"{kind} by a person")]

    def _cancel(self, node: str) -> Answer:
        known = self.bench.state.nodes.get(node)
        if known is None or known.phase is Phase.ENDED:
            return f"refused: {node} is not under way", []
        if self.cancel(node):
            return "being ended", []
        return "cancelled", [e.AttemptEnded(node=node, ending=Ending.CANCELLED, why="cancelled by a person")]

    def _guard(self, body: dict[str, object]) -> Answer:
        node = str(body["node"])
        if self._known(node) is None:
            return f"refused: there is no node {node} in this run", []
        guard = Guard.model_validate(body["guard"])
        if guard.name in (held.name for held in self.bench.state.guards_of(node)):
            return f"refused: {node} has a guard {guard.name} already", []
        self.bench.jobs.guard(guard)  # raises for what could never be run
        return f"{guard.name} holds for {node} and all below it", [e.GuardAdded(node=node, guard=guard)]

    def _steer(self, text: str) -> Answer:
        state = self.bench.state
        if refused := unheard(state.run) or unfit(text, state.campaign.steering):
            return f"refused: {refused}", []
        return "all who propose from now on are told", [e.Steered(text=text.strip())]

    def _promotion(self, node: str, accepted: bool, why: str) -> Answer:
        known = self._known(node)
        if known is None or not known.waits_for_person:
            return f"refused: {node} does not wait for a person's word", []
        answered = e.PromotionAnswered(node=node, accepted=accepted, why=why[:LONGEST_WHY])
        return "accepted" if accepted else "declined", [answered]

    def _known(self, name: str) -> Node | None:
        """A node of the present run: those of another were judged by other criteria."""
        state = self.bench.state
        return state.nodes.get(name) if run_of(name) == state.campaign.run else None


def _object(body: str) -> dict[str, object]:
    """Raises ValueError, too, for half a character, which a shell or a browser may send: a record with it could be
    read by nobody. Who asks may have such a name.
    """
    found = json.loads(body)
    if not isinstance(found, dict):
        raise TypeError("a request is an object")
    found["by"] = str(found.get("by", "")).encode("utf-8", "replace").decode()
    json.dumps(found, ensure_ascii=False).encode()
    return found
