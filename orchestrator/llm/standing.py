"""What the provider has shown of itself. Once it is found unusable, nothing more is asked of it, by any line.

That ends a whole campaign, so nothing that an agent can bring about with a request of its own may lead to it.
"""

import json
from typing import Any

from orchestrator.llm.upstream import Declined

_NO_CREDIT = "Your credit balance is too low to access the "


class Standing:
    """`unusable` is one line for a person, once there is a reason."""

    def __init__(self) -> None:
        self.unusable: str | None = None
        self._speaks = False

    def answered(self) -> None:
        """It began a message: there is a Messages API."""
        self._speaks = True

    def declined(self, declined: Declined, model: str) -> None:
        error = error_of(declined.body)
        if error is not None:
            self._speaks = True
        elif not self._speaks:
            self.found(_no_api(declined.status))
        self.found(_why(declined.status, error or {}, model))

    def found(self, why: str | None) -> None:
        """The first reason stays."""
        self.unusable = self.unusable or why


def error_of(body: bytes) -> dict[str, Any] | None:
    """The error, where the body has the API's form."""
    try:
        error = json.loads(body).get("error")
    except (ValueError, RecursionError, AttributeError):
        return None
    return error if isinstance(error, dict) else None


def _why(status: int, error: dict[str, Any], model: str) -> str | None:
    """Only what concerns our key, our account or a model that we named: the words of an error may be the agent's."""
    kind, told = error.get("type"), str(error.get("message", ""))
    if status == 401:
        return "the provider refuses the key: check ANTHROPIC_API_KEY, or the setting api_key, and api_url"
    broke = status == 400 and kind == "invalid_request_error" and told.startswith(_NO_CREDIT)
    if status == 402 or kind == "billing_error" or broke:
        return "the provider says that the account behind the key has no credit"
    if status == 403 and kind == "permission_error" and model in told:
        return f"the provider does not allow the model {model} with this key: check the setting models"
    if status == 404 and kind == "not_found_error" and model in told:
        return f"the provider does not know the model {model}: check the setting models, and api_url"
    return None


def _no_api(status: int) -> str | None:
    """Of an address that never spoke the API; afterwards, a single odd answer says nothing of it."""
    if status in (404, 405) or 300 <= status < 400:
        return f"there is no Messages API at api_url: it answers with status {status}"
    return None
