"""A refusal in the API's own form, so that a caller with the API's own client understands it."""

import json
from collections.abc import Mapping

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    502: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
STATUSES = {kind: status for status, kind in reversed(KINDS.items())}
# A client of the API obeys it: what is refused for good is not asked again.
FINAL = {"x-should-retry": "false"}


class Refused(Exception):
    """The request is not forwarded, or came to nothing. `str` is one line for a person or an agent.

    `change` says what a person has to change where the request is as its sender was set up to make it. `always`: then
    every question of that sender is refused alike.
    """

    def __init__(
        self,
        status: int,
        why: str,
        headers: Mapping[str, str] | None = None,
        kind: str = "",
        *,
        change: str = "",
        always: bool = False,
    ) -> None:
        super().__init__(why)
        self.status = status
        self.kind = kind or KINDS[status]
        self.change = change
        self.always = always
        self.headers = dict(FINAL if headers is None and status in (400, 401, 402, 403, 404, 413) else headers or {})

    def body(self) -> bytes:
        return json.dumps({"type": "error", "error": {"type": self.kind, "message": str(self)}}).encode()
