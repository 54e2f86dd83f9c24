"""Our own output, where it becomes the log of a CI job: a chamber, a change or a model wrote much of it, and the job's
runner would take some lines for commands. All that is printed goes through here, whichever command prints it.
"""

import atexit
import io
import os
import stat
import sys
from collections.abc import Mapping

from orchestrator.sinks import ci_log

_SIGNS = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "TEAMCITY_VERSION", "JENKINS_URL", "BUILDKITE")
_LONGEST = 1 << 16
_WORDS = ("section_start:", "section_end:")


class CiLog(io.TextIOWrapper):
    """Writes whole lines, so that no command can be put together from pieces."""

    _held = ""

    def write(self, text: str) -> int:
        whole = self._held + text
        end = max(whole.rfind("\n"), whole.rfind("\r")) + 1
        if len(whole) - end > _LONGEST:
            # A command that is cut here is held from its first sign on.
            held = max(count for word in _WORDS for count in range(len(word) + 1) if whole.endswith(word[:count]))
            end = len(whole[: len(whole) - held].rstrip("#"))
        self._held = whole[end:]
        super().write(ci_log(whole[:end]))
        return len(text)

    def finish(self) -> None:
        """What has no end of a line."""
        if not self.closed:
            super().write(ci_log(self._held))
            self._held = ""
            self.flush()


def guard_output(environment: Mapping[str, str] | None = None) -> None:
    """Nothing changes outside of CI, on a terminal, or where the output goes to a file of the caller's."""
    environment = os.environ if environment is None else environment
    if not any(environment.get(name, "").lower() not in ("", "0", "false") for name in _SIGNS):
        return
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if type(stream) is io.TextIOWrapper and not stream.isatty() and not _is_file(stream):
            encoding, errors, at_once = stream.encoding, stream.errors, stream.line_buffering
            stream.flush()
            guarded = CiLog(stream.detach(), encoding=encoding, errors=errors, line_buffering=at_once)
            atexit.register(guarded.finish)
            setattr(sys, name, guarded)


def finish_output() -> None:
    """What Python does with our output at its end, for a process that ends without it."""
    for stream in (sys.stdout, sys.stderr):
        stream.finish() if isinstance(stream, CiLog) else stream.flush()


def _is_file(stream: io.TextIOWrapper) -> bool:
    return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
