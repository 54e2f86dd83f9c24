"""News as JSON to an address. Its `text` is what chat programs show."""

from html import escape
from typing import ClassVar
from urllib.parse import urlsplit

from orchestrator.notify.base import USUAL, News, NotifierContext
from orchestrator.notify.retrying import Again, retried

TIMEOUT_S = 10.0
# Answers that another try may change.
_LATER = {408, 425, 429, 500, 502, 503, 504}


class Webhook:
    topics: ClassVar = USUAL

    def __init__(self, context: NotifierContext) -> None:
        import httpx2  # takes longer to load than the whole of what is told

        self._where = context.where
        # No redirect is followed: news goes where the user said, and nowhere else.
        self._client = httpx2.Client(timeout=TIMEOUT_S, follow_redirects=False, headers={"user-agent": "blastdoor"})
        self._errors = httpx2.TransportError

    @staticmethod
    def check(where: str) -> None:
        try:
            parts = urlsplit(where)
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            raise ValueError("a webhook needs an address like https://example.org/hook")

    def tell(self, news: News) -> None:
        retried(lambda: self._post(news))

    def close(self) -> None:
        self._client.close()

    def _post(self, news: News) -> None:
        # Chat programs take <…> for links and calls to everybody.
        body = news.model_copy(update={"text": escape(news.text, quote=False)}).model_dump_json()
        try:
            answer = self._client.post(self._where, content=body, headers={"content-type": "application/json"})
        except self._errors as error:
            raise Again(type(error).__name__) from error
        if answer.status_code in _LATER:
            raise Again(f"it answered {answer.status_code}")
        if not answer.is_success:
            raise ValueError(f"it answered {answer.status_code}")
