"""A person's instruction to an agent that is at work: put into its next question to the model, and into all later ones
at the same place, so that what a provider has cached of the conversation stays valid.
"""

import json
from collections.abc import Sequence
from typing import Any

from orchestrator.agents.messages import Request
from orchestrator.bounded_json import has_most_parts
from orchestrator.llm.screening import MOST_PARTS

MESSAGES = "/v1/messages"
_WORDS = "An instruction from the person who runs this search, newer than all above:\n\n{text}"


class Instructions:
    """`steering` may grow while the agent runs; what was there when it began is in its brief already."""

    def __init__(self, steering: Sequence[str]) -> None:
        self._steering = steering
        self._told = len(steering)
        self._places: list[tuple[int, str]] = []

    def put_into(self, request: Request) -> bytes:
        """The request's body, with what it has to hear. What cannot be read is for the gateway to refuse."""
        new = [_WORDS.format(text=text) for text in list(self._steering)[self._told :]]
        if not (new or self._places) or request.method != "POST" or request.path != MESSAGES:
            return request.body
        try:
            if not has_most_parts(request.body, MOST_PARTS):
                return request.body
            question = json.loads(request.body)
            users = _users(question["messages"])
            last = max(users)
            places = [*self._places, *((last, text) for text in new)]
            for at, text in places:
                _append(users.get(at, users[last]), text)
            body = json.dumps(question).encode()
        except (ValueError, TypeError, KeyError, RecursionError):
            return request.body
        self._told, self._places = self._told + len(new), places
        return body


def _users(messages: Any) -> dict[int, dict[str, Any]]:
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise TypeError("no list of messages")
    return {at: message for at, message in enumerate(messages) if message.get("role") == "user"}


def _append(message: dict[str, Any], text: str) -> None:
    said = message.get("content")
    blocks = [{"type": "text", "text": said}] if isinstance(said, str) else list(said or ())
    message["content"] = [*blocks, {"type": "text", "text": text}]
