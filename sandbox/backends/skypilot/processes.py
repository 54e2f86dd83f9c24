"""Processes that SkyPilot's package starts on this machine: its server, ssh, rsync, shells around them.

It hands each of them the whole environment of the process that imports it, which is ours.
"""

import os
import subprocess
import sys
from types import ModuleType
from typing import Any

from sandbox.environment import SKYPILOT, without_inherited


class _Popen(subprocess.Popen[Any]):
    def __init__(self, *words: Any, **given: Any) -> None:
        inherited = given.get("env")
        given["env"] = without_inherited(os.environ if inherited is None else inherited, SKYPILOT)
        super().__init__(*words, **given)


def _with_built_environments() -> ModuleType:
    """A second `subprocess`: its functions look up Popen where they are defined, so all of them start this one."""
    spec = subprocess.__spec__
    if spec is None or spec.loader is None:
        raise RuntimeError("this Python has no subprocess to load")
    made = ModuleType("subprocess")
    made.__spec__ = spec
    spec.loader.exec_module(made)
    for name, value in vars(subprocess).items():
        if isinstance(value, type) and issubclass(value, Exception):
            setattr(made, name, value)  # a caller that catches one asks for the class that all know
    made.Popen = _Popen  # type: ignore[attr-defined]
    return made


_PROCESSES = _with_built_environments()


def build_environments() -> None:
    """For all of its modules that are loaded; asked again, for those that came since."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "sky" and vars(module).get("subprocess") is subprocess:
            vars(module)["subprocess"] = _PROCESSES
