"""The door to the candidate, in the judge's own process: whoever calls the program does so through here, one at a time.

An evaluator loads the program where it likes, and each load is a module of its own there. Standard library only, Python
3.9 up.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, NamedTuple

from blastdoor_clock import now, stand_still
from blastdoor_judge import BadOutput
from blastdoor_relay import OBJECTS, BadReply, Candidate, Handle, NotPlain, Raised

__all__ = ["VALUE", "Door", "EvaluatorBroke", "Load", "Seen"]

# In front of a name: what stands there is asked for, and nothing is called (blastdoor_candidate).
VALUE = "="
_WORDS = 300
# So many errors that led to one another are looked at; they can be made to lead in a circle.
_CHAIN = 100
_LOOK_S = 0.05
# From so many bytes on the way of a request is rehearsed, so often for sizes that share so many binary digits.
_LONG = 4096
_REHEARSALS = 9
_DIGITS = 5


class EvaluatorBroke(Exception):
    """The evaluator's own fault, or that of the way it was brought here: no verdict on the candidate."""


class Seen(NamedTuple):
    """What the import saw of the program: constants that the evaluator reads, enumerations in files that both have,
    fields that it reads of objects (`Class.name`), fields of named tuples by their class, functions and methods that
    are awaited, classes whose objects it holds, and those of them that one is made of.
    """

    constants: Sequence[str] = ()
    enums: Sequence[str] = ()
    fields: Sequence[str] = ()
    tuples: Mapping[str, Sequence[str]] = {}
    coroutines: Sequence[str] = ()
    classes: Sequence[str] = ()
    bases: Mapping[str, Sequence[str]] = {}


_NOTHING = Seen()


class Load(NamedTuple):
    """One load of the program. Place 0 is the Python of the judge's own process, others are those of its children."""

    number: int = 0
    place: int = 0


class Door:
    """The candidate, for every thread of this process, and for other processes over a socket."""

    def __init__(self, candidate: Candidate, names: Sequence[str], seen: Seen = _NOTHING) -> None:
        self.candidate = candidate
        self.seen = seen
        # What was read of objects since the last call: a candidate says it once, and not otherwise the next time.
        self._read: dict[tuple[str, Any], Any] = {}
        # The program was loaded once before the judge began.
        self._load = Load()
        self._last: dict[int, Load] = {}
        self._count = 0
        self._places = 0
        self._forgotten: list[Load] = []
        # What requests take to get to the judge's own chamber and back, by their size.
        self._ways: dict[int, list[float]] = {}
        self._lock = threading.Lock()
        self._ended = False
        self.pid = os.getpid()
        # Only what was asked for: a stub that is executed in the evaluator's own names must not replace others there.
        self.functions = [name for name in names if name in candidate.functions]
        self.calls = 0
        self.failures: list[str] = []
        # Errors of the candidate as the evaluator got them, and what was told of each.
        self.raised: list[tuple[Exception, str]] = []
        # Whether anything that the evaluator has is the candidate's word.
        self.asked = False
        # The first argument that cannot be sent, and whether it may be made of what the candidate said before.
        self.unsendable: tuple[str, bool] | None = None

    def load(self, place: int | None = 0) -> Load:
        """The program once more; without a place, in a new one. Raises what its own code raises."""
        return _whole(self._loaded, place)  # type: ignore[no-any-return]

    def _loaded(self, place: int | None) -> Load:
        with self._lock:
            self._refuse_late("the program")
            if place is None:
                self._places += 1
                place = self._places
            load = Load()
            if place or 0 in self._last:
                self._count += 1
                load = Load(self._count, place)
            try:
                self._turn_to(load)
            except BadOutput as error:
                self._forgotten.append(load)
                self.asked = True
                raise self._failed(error) from None
            self._last[place] = load
            return load

    def forget(self, load: Load) -> None:
        """Nobody has it any more. Whoever had it may be in the middle of anything, so it is told with a later load."""
        self._forgotten.append(load)

    def forget_place(self, load: Load) -> None:
        """A process has ended. What objects of its own others still have are there until the end."""
        with self._lock:
            if not self.candidate.holds(load.place):
                self._last.pop(load.place, None)
                self._forgotten.append(load)

    def _turn_to(self, load: Load) -> None:
        if load != self._load:
            # Objects are asked for in the last load of their place.
            gone = [it for it in self._forgotten if it not in self._last.values()]
            for it in gone:
                self._forgotten.remove(it)
            self._read.clear()
            self.candidate.load(load.number, load.place, [it.number for it in gone])
            self._load = load

    def _failed(self, error: BadOutput) -> Exception:
        """As the evaluator gets it."""
        self.calls += 1
        self.failures.append(str(error))
        own: Exception = error.error if isinstance(error, Raised) else error
        self.raised.append((own, str(error)))
        return own

    def call(self, name: str, arguments: Sequence[Any], keywords: Mapping[str, Any], load: Load | None = None) -> Any:
        """Of this load; without one, of where an object among the arguments is."""
        return _whole(self._call, name, arguments, keywords, load)

    def _call(self, name: str, arguments: Sequence[Any], keywords: Mapping[str, Any], load: Load | None) -> Any:
        with self._lock:
            self._refuse_late(name)
            asked, self.asked = self.asked, True
            field = (name, arguments[0]) if name.startswith(VALUE) else None
            if field is None:
                self._read.clear()
            elif field in self._read:
                return self._read[field]
            began = now()
            try:
                self._turn_to(self._load_of([*arguments, *keywords.values()], load))
                began, self.candidate.elapsed = now(), None
                value = self.candidate.value(name, *arguments, **keywords)
            except NotPlain as error:
                self.unsendable = self.unsendable or (f"{name}: {error}", asked)
                raise
            except BadOutput as error:
                raise self._failed(error) from None
            finally:
                self._stand_still(now() - began)
            self.calls += 1
            if field:
                self._read[field] = value
            return value

    def _stand_still(self, passed: float) -> None:
        """For what a call took beside the candidate's own time. A request that is handed on while it is sent has none
        that is known. Where the way is long, it is rehearsed a few times, for each size of its own; unpacking is the
        candidate's own time.
        """
        elapsed, channel = self.candidate.elapsed, self.candidate.channel
        if elapsed is None:
            return
        began, way = now(), channel.median
        size = self.candidate.size
        if self.candidate.rehearse and size >= _LONG:
            ways = self._ways.setdefault(size >> size.bit_length() - _DIGITS, [])
            if len(ways) < _REHEARSALS:
                ways.append(self.candidate.rehearse())
            way = statistics.median(ways)
        stand_still(max(0.0, passed + now() - began - max(elapsed - way, channel.jitter)))

    def _load_of(self, arguments: Sequence[Any], load: Load | None) -> Load:
        """An object is where it was made, and a call of it, or with it, goes there."""
        place = next((it._remote.number // OBJECTS for it in arguments if isinstance(it, Handle)), None)
        if place is None or (load and load.place == place):
            return load or self._load
        return self._load if self._load.place == place else self._last.get(place, self._load)

    def told_of(self, error: BaseException) -> str:
        """What was told of the candidate's error that this one is, or that led to it; empty where none did."""
        left: BaseException | None = error
        for _ in range(_CHAIN):
            if left is None:
                break
            for own, told in self.raised:
                if own is left:
                    return told
            left = left.__cause__ or left.__context__
        return ""

    def text(self) -> bytes:
        """Of a program that is started; what it has is given before anything of it ran."""
        text = self.candidate.value("program")
        if type(text) is not bytes:
            raise BadReply("the candidate gave no program")
        return text

    def values(self, load: Load) -> dict[str, Any]:
        """The constants that the program has, as they are now. That it lacks one is for the evaluator to notice."""
        return _whole(self._values, load)  # type: ignore[no-any-return]

    def _values(self, load: Load) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in self.seen.constants:
            with self._lock, contextlib.suppress(BadOutput):
                self._refuse_late(name)
                self.asked = True
                self._turn_to(load)
                found[name] = self.candidate.value(VALUE + name)
        return found

    def _refuse_late(self, name: str) -> None:
        if self._ended:
            raise EvaluatorBroke(f"{name} was called after the evaluator had returned")

    def object(self, remote: Any) -> Any:
        """The candidate's of this number. Raises Malformed for a class that the judge did not name."""
        return self.candidate.found(remote)

    def end(self) -> None:
        """From here on nobody is called: the judge's own answer comes next. A late call of a thread is waited for."""
        with self._lock:
            self._ended = True

    def answer(self, request: Any) -> list[Any]:
        """What another process asked, as [kind, value or message]; a place, or None, asks to load the program there."""
        try:
            if type(request) is list:
                name, arguments, keywords, load = request
                return ["", self.call(name, arguments, keywords, load and Load(*load))]
            load = self.load(request)
            return ["", [tuple(load), self.functions, self.values(load)]]
        except Exception as error:  # noqa: BLE001  it is told to the process that called
            return [type(error).__name__, str(error)[:_WORDS]]


def _may_be_interrupted() -> bool:
    """Whether the evaluator has set an alarm; Python calls its function in the main thread only."""
    alarms = (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF)
    in_main = threading.current_thread() is threading.main_thread()
    return in_main and any(callable(signal.getsignal(it)) for it in alarms)


def _whole(function: Callable[..., Any], *arguments: Any) -> Any:
    """What it gives, after its end in any case: an alarm that raises in the middle would leave the answer in the
    channel, to be taken for that of the next call. So it is in a thread of its own then, and the next one waits for it.
    """
    if not _may_be_interrupted():
        return function(*arguments)
    answer: Future[Any] = Future()
    threading.Thread(target=_into, args=(answer, function, *arguments), daemon=True).start()
    # An alarm that goes off just before a wait begins is seen when the wait ends: so no wait is long.
    while not wait([answer], timeout=_LOOK_S).done:
        pass
    return answer.result()


def _into(answer: Future[Any], function: Callable[..., Any], *arguments: Any) -> None:
    try:
        answer.set_result(function(*arguments))
    except Exception as error:  # noqa: BLE001  it is the caller's
        answer.set_exception(error)
