"""Server-sent events, read from bytes as they come. Bounded: an event that is too long is dropped, and that is said."""

from dataclasses import dataclass

LONGEST = 4 << 20


@dataclass(frozen=True, slots=True)
class Event:
    name: str
    data: bytes


class Reader:
    """Any cut of the same bytes gives the same events. `dropped` counts events that were too long to be kept."""

    def __init__(self, longest: int = LONGEST) -> None:
        self.dropped = 0
        self._longest = longest
        self._line = bytearray()
        self._after_return = False
        self._first = True
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0
        self._too_long = False

    def feed(self, chunk: bytes) -> list[Event]:
        events: list[Event] = []
        at = 0
        if self._after_return and chunk:
            self._after_return = False
            at = 1 if chunk[0] == 10 else 0
        returns = b"\r" in chunk
        while at < len(chunk):
            end, after = self._line_end(chunk, at) if returns else (feed := chunk.find(b"\n", at), feed + 1)
            if end < 0:
                self._keep(chunk[at:])
                break
            self._keep(chunk[at:end])
            if (event := self._line_ended()) is not None:
                events.append(event)
            at = after
        return events

    def _line_end(self, chunk: bytes, at: int) -> tuple[int, int]:
        feed, carriage = chunk.find(b"\n", at), chunk.find(b"\r", at)
        if carriage < 0 or 0 <= feed < carriage:
            return feed, feed + 1
        if carriage + 1 == len(chunk):
            self._after_return = True
            return carriage, carriage + 1
        return carriage, carriage + (2 if chunk[carriage + 1] == 10 else 1)

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._longest:
            self._line += part
            return
        self._too_long = True
        self._data.clear()
        if part:
            # What is not kept must still not look like an empty line, which would end the event.
            self._line[:] = b":"

    def _line_ended(self) -> Event | None:
        line = bytes(self._line)
        self._line.clear()
        if self._first:
            self._first = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._dispatched()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        return None

    def _dispatched(self) -> Event | None:
        event = Event(self._name, b"\n".join(self._data)) if self._data and not self._too_long else None
        self.dropped += self._too_long
        self._name, self._size, self._too_long = "", 0, False
        self._data.clear()
        return event
