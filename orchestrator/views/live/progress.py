"""What `run` shows while it works: in a terminal a picture that stays in place, in a pipe one line per ended attempt.

The picture is drawn by a thread of its own while the campaign goes on, so it is drawn from a scene that is made with
each event, never from the state itself.
"""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO, cast

import structlog
from rich.console import Console
from rich.text import Text

from orchestrator.budget import Accounts
from orchestrator.domain import events as e
from orchestrator.domain import figures
from orchestrator.domain.metric import Ranking
from orchestrator.domain.state import State
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.live.picture import Picture, pulses_of
from orchestrator.views.live.pulses import Pulses
from orchestrator.views.live.scene import Caps, Scene
from orchestrator.views.live.tally import Tally
from orchestrator.views.live.terminal import Aside, Terminal, can_be_drawn_on

_EVERY_S = 0.25


class Progress:
    """A context manager; give it every event after it was folded into the state. Says nothing when it is quiet.

    `live` is the folder with the pulses of attempts at work, `task` the one that commands are told with.
    """

    def __init__(
        self,
        state: State,
        accounts: Accounts,
        ranking: Ranking,
        caps: Caps,
        *,
        console: Console | None = None,
        stdout: TextIO | None = None,
        quiet: bool = False,
        live: Path | None = None,
        task: Path = Path(),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._console = console or open_screen(stderr=True).console
        unicode = not self._console.options.ascii_only
        self._tally = Tally(state, accounts, ranking, caps, unicode=unicode, task=task)
        self._stdout = stdout or sys.stdout
        self._quiet = quiet
        self._live = Pulses(live) if live else None
        self._clock = clock
        self._picture = Picture(unicode)
        self._scene: Scene = self._tally.scene()
        self._terminal: Terminal | None = None
        self._aside = Aside()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if not self._quiet and can_be_drawn_on(self._console, self._stdout):
            self._terminal = Terminal(self._console)
            self._terminal.enter()
            self._put_aside()
            self._thread = threading.Thread(target=self._draw_on, name="picture", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """The terminal is as it was; also where the process ends in the next moment. As often as one likes."""
        self._stop.set()
        if self._thread:
            self._thread.join()
            self._thread = None
        if self._terminal:
            self._terminal.leave()
            self._terminal = None
            sys.stderr = self._stderr
            structlog.configure(**self._logging)
            self._aside.pour()

    def on_event(self, event: e.Event, at: str) -> None:
        self._tally.on_event(event, at)
        if self._terminal:
            self._scene = self._tally.scene()
        elif not self._quiet and (line := self._tally.said(event)):
            self._console.print(Text.assemble((f"{figures.clock(at)} ", ""), line), soft_wrap=True)

    def _put_aside(self) -> None:
        """Whatever else writes to the terminal would be lost under the picture."""
        self._stderr, self._logging = sys.stderr, structlog.get_config()
        aside = cast(TextIO, self._aside)
        sys.stderr = aside
        structlog.configure(**{**self._logging, "logger_factory": structlog.WriteLoggerFactory(aside)})

    def _draw_on(self) -> None:
        while True:
            self._draw()
            if self._stop.wait(_EVERY_S):
                return

    def _draw(self) -> None:
        if self._terminal:
            self._picture.notice = self._aside.last
            width, height = self._terminal.size
            scene, now = self._scene, self._clock()
            self._terminal.draw(self._picture.lines(scene, width, height, now, pulses_of(self._live, scene, now)))
