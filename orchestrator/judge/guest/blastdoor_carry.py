"""Programs that an evaluator starts, as stand-ins that carry the call to the candidate's chamber. Standard library
only, Python 3.9 up.

A program of the toolchain is a stand-in of a few lines, found first on the PATH; so is a file that a program left there
and that could be started. A stand-in takes its command line, its input and the files of its working folder along,
waits, and brings back what came out (blastdoor_programs is the other side). Whatever starts it, a subprocess, a shell
or another Python, with whatever time-out, finds a program like any other.

Nothing that comes back is run here, or can be imported here, and none of it replaces a file of the evaluator's.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from blastdoor_programs import MAX_BYTES, MAX_FILES, MAX_STREAM, PROGRAM, SLICE_S, regular_files

__all__ = ["Carried", "lay_out", "run_elsewhere"]

_MARK = "from blastdoor_stub import carry"
_STAND_IN = """#!{python} -I
import sys
sys.path.insert(0, {here!r})
{mark}
carry({name!r}, {folder!r})
"""
_SETTINGS = "carrying.json"
# What a Python or a shell of the judge's would load, unpickle, or take for settings, were it found beside a script.
_CODE = (
    ".py", ".pyc", ".pyd", ".pth", ".so", ".egg", ".whl", ".zip", ".sh", ".bash",
    ".pkl", ".pickle", ".joblib", ".npy", ".npz", ".ini", ".cfg", ".toml",
)  # fmt: skip
_SETTING_NAMES = ("matplotlibrc",)
# Options after which, or in which, a command line names what is to be written.
_OUTPUT = ("-o", "--out", "--output", "--output-file")
# Programs in these languages can be started by what every image has, so their text stays where it is.
_SCRIPTS = ("", ".py", ".sh", ".bash", ".pl", ".awk")
# Signals that stop a process, or that it outlives: a stand-in that repeats one of them would never end.
_NO_END = (
    signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT, signal.SIGCHLD, signal.SIGURG,
    signal.SIGWINCH,
)  # fmt: skip
# So many answers in a row that came before their time: nobody waits for anything there.
_TOO_EARLY = 20
_ENDED = {"code": int, "stdout": bytes, "stderr": bytes, "files": dict}
Ask = Callable[..., Any]


def lay_out(folder: Path, beside: Path, names: Sequence[str], program: str, text: bytes, stub: str) -> str:
    """Stand-ins for these names on the PATH, and the path of the program: its text, as data, or the stub in its place.

    `folder` is ours and nothing of it is carried; `beside` is where the evaluator finds the program.
    """
    tools = folder / "tools"
    tools.mkdir()
    for name in names:
        (tools / name).write_text(_stand_in(name, folder))
        (tools / name).chmod(0o700)
    path = beside / Path(program).name
    path.write_bytes(stub.encode() if path.suffix.lower() in _SCRIPTS else text)
    os.environ["PATH"] = f"{tools}:{os.environ.get('PATH', '/usr/bin:/bin')}"
    settings = {"scratch": tempfile.gettempdir(), "kept": str(folder), "program": str(path), "env": dict(os.environ)}
    (folder / _SETTINGS).write_text(json.dumps(settings))
    return str(path)


def _stand_in(name: str, folder: Path) -> str:
    here = str(Path(__file__).resolve().parent)
    return _STAND_IN.format(python=sys.executable, here=here, mark=_MARK, name=name, folder=str(folder))


class Carried:
    """What a call takes along, and what it may bring back: paths, the same on both sides.

    A working folder goes along as a whole where it is scratch, and never where it is the judge's own. Beside that, what
    the command line names goes along, and the folder of such a file if that is scratch, too.
    """

    def __init__(self, argv: Sequence[str], cwd: Path, settings: Mapping[str, Any]) -> None:
        self._scratch, self._kept, self._program = (
            Path(settings[name]).resolve() for name in ("scratch", "kept", "program")
        )
        self._outputs = set(_outputs(argv, cwd))
        self.roots = [cwd] if cwd == self._scratch or self._scratch in cwd.parents else []
        self.named: list[Path] = []
        self._words: set[Path] = set()
        for word in argv[1:]:
            path = (cwd / (word.rpartition("=")[2] if word.startswith("-") else word)).resolve()
            self._words.add(path)
            if path in (cwd, self._program) or self._is_kept(path):
                continue
            folder = path if path.is_dir() else path.parent
            if self._scratch in folder.parents:
                self.roots.append(folder)
            elif path.is_file() or folder == self._scratch:
                self.named.append(path)

    def _is_kept(self, path: Path) -> bool:
        return path == self._kept or self._kept in path.parents

    def files(self) -> dict[str, bytes]:
        """Raises ValueError where it is too much for one call."""
        found: dict[str, bytes] = {}
        total = 0
        for path in self._paths():
            data = path.read_bytes()
            total += len(data)
            if len(found) >= MAX_FILES or total > MAX_BYTES:
                raise ValueError(f"more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB in its working folder")
            # A stand-in is not sent: what it stands for is there.
            if _MARK.encode() not in data[:500]:
                found[str(path)] = data
        return found

    def _paths(self) -> Iterator[Path]:
        for path in dict.fromkeys([*self.named, *regular_files(self.roots)]):
            # The candidate has the program itself.
            if path.is_file() and path != self._program and not self._is_kept(path):
                yield path

    def bring_back(self, left: Mapping[Any, Any]) -> list[str]:
        """Write what a program left, as far as it is where the call had been. All of it is a stranger's word. Gives
        the names of files that stay as they were, since they are the evaluator's.
        """
        refused: list[str] = []
        for name, data in left.items():
            if not (type(name) is str and (data is None or type(data) is bytes) and self._may_be_written(name)):
                continue
            path = Path(name)
            if not self._is_theirs(path):
                refused.append(path.name)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            written = _stand_in(name, self._kept).encode() if data is None else data
            with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
                file.write(written)
            path.chmod(0o700 if data is None else 0o600)
            self._note(path).parent.mkdir(exist_ok=True)
            self._note(path).write_text(hashlib.sha256(written).hexdigest())
        return refused

    def _is_theirs(self, path: Path) -> bool:
        """Whether a program may write it: it is new, or as an earlier call left it, or the command line says that it
        is an output, or it is empty and the command line names it. Else a candidate would write the answers that it is
        compared with.
        """
        if not path.exists():
            return True
        if not path.is_file():
            return False
        if path in self._outputs:
            return True
        data = path.read_bytes()
        if not data and path in self._words:
            return True
        note = self._note(path)
        return note.is_file() and note.read_text() == hashlib.sha256(data).hexdigest()

    def _note(self, path: Path) -> Path:
        """Where it is noted what an earlier call left at this path."""
        return self._kept / "brought" / hashlib.sha256(str(path).encode()).hexdigest()

    def _may_be_written(self, name: str) -> bool:
        path = Path(name)
        if "\0" in name or str(path) != name or path.resolve() != path or path == self._program or self._is_kept(path):
            return False
        inside = path in self.named or any(root in path.parents for root in self.roots)
        if not inside or self._scratch not in path.parents or path.suffix.lower() in _CODE:
            return False
        if path.name in _SETTING_NAMES:
            return False
        return not any(part.startswith(".") for part in path.relative_to(self._scratch).parts)


def _outputs(argv: Sequence[str], cwd: Path) -> Iterator[Path]:
    """What a command line says that it writes."""
    for at, word in enumerate(argv[1:], start=1):
        option, is_set, value = word.partition("=")
        if word in _OUTPUT and at + 1 < len(argv):
            yield (cwd / argv[at + 1]).resolve()
        elif is_set and option in _OUTPUT:
            yield (cwd / value).resolve()


def run_elsewhere(ask: Ask, argv: Sequence[str], folder: Path) -> int:
    """In the process of a stand-in: its whole life. `ask` calls a function of the candidate's side."""
    settings = json.loads((folder / _SETTINGS).read_text())
    cwd = Path.cwd().resolve()
    carried = Carried(argv, cwd, settings)
    env = {name: it for name, it in os.environ.items() if settings["env"].get(name) != it and name != "PWD"}
    words = [PROGRAM if word == settings["program"] else word for word in argv]
    try:
        request: dict[str, Any] = {"argv": words, "cwd": str(cwd), "env": env, "stdin": _stdin()}
        request["files"] = carried.files()
    except ValueError as error:
        sys.stderr.write(f"{argv[0]}: cannot be carried to the candidate: {error}\n")
        return 126
    request.update(program=settings["program"], roots=[*map(str, carried.roots)], named=[*map(str, carried.named)])
    ended = how_it_ended(ask, request)
    refused = carried.bring_back(ended["files"])
    for stream, name in ((sys.stdout, "stdout"), (sys.stderr, "stderr")):
        stream.buffer.write(ended[name])
        stream.buffer.flush()
    if refused:
        sys.stderr.write(f"{argv[0]}: changed files that are not its own, and they stay: {', '.join(refused[:5])}\n")
    code = int(ended["code"])
    if -code in signal.valid_signals() and -code not in _NO_END:  # it was ended by a signal, and so is the stand-in
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code & 0xFF


def how_it_ended(ask: Ask, request: Mapping[str, Any]) -> dict[str, Any]:
    """How it ended there. The candidate may answer anything, and is not waited for where it does not wait itself."""
    number, early = ask("start", request), 0
    while early < _TOO_EARLY:
        asked = time.monotonic()
        answer = ask("wait", number, SLICE_S)
        if type(answer) is dict and all(type(answer.get(name)) is kind for name, kind in _ENDED.items()):
            return answer
        if answer is not None:
            break
        early = early + 1 if time.monotonic() - asked < SLICE_S / 2 else 0
    return {"code": 125, "stdout": b"", "stderr": b"the candidate's side does not say how it ended\n", "files": {}}


def _stdin() -> bytes:
    """What was given. A terminal, or nothing, is empty."""
    try:
        kind = os.fstat(0).st_mode
    except OSError:
        return b""
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return b""
    data = sys.stdin.buffer.read(MAX_STREAM + 1)
    if len(data) > MAX_STREAM:
        raise ValueError(f"more than {MAX_STREAM >> 20} MiB of input")
    return data
