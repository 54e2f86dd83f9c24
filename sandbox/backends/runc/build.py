"""Builds an image from the lines of a Dockerfile without a daemon: each in a container of its own, none with a network.

It knows as many instructions as our own images need. Whatever was made goes with a build that fails.
"""

import asyncio
import hashlib
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.backends.runc.workbench import RuncWorkbench, to_the_end
from sandbox.bake_steps import STAGE, pack
from sandbox.baking import last_word
from sandbox.definitions import Dockerfile
from sandbox.errors import Refused

if TYPE_CHECKING:
    from sandbox.backends.runc.backend import RuncBackend

LIMIT_S = 1800.0
_CONTEXT = "context"
# A folder's content goes into the target, a file becomes it, or goes into it where it ends with a slash.
_COPY = f"""
source={STAGE}/{_CONTEXT}/$1 target=$2
case $target in */) mkdir -p "$target" ;; *) mkdir -p "$(dirname "$target")" ;; esac
if [ -d "$source" ]; then mkdir -p "$target" && cp -R "$source/." "$target"; else cp "$source" "$target"; fi
"""


async def build(
    backend: "RuncBackend", dockerfile: Dockerfile, context: Path, name: str, labels: Mapping[str, str]
) -> str:
    """The image's id. `labels` say what it is made from: what has other files has other labels. Raises Refused for a
    line that fails, and for one that nobody can follow here.
    """
    steps = [_step(line) for line in dockerfile.lines]
    images = backend.images
    base = await images.image(dockerfile.base)
    content = json.dumps([base.id, dockerfile.lines, dict(labels)], sort_keys=True)
    id_ = hashlib.sha256(content.encode()).hexdigest()
    settings = {**images.settings(base.id), "Labels": dict(labels)}
    with images.making() as folder:
        bench = RuncWorkbench(backend, base.folder, folder, base.environment)
        await bench.prepare()
        archive = folder / "context.tar"
        await to_the_end(pack, context, _CONTEXT, archive)
        await bench.put(archive)
        try:
            async with asyncio.timeout(LIMIT_S):
                for line, command in zip(dockerfile.lines, steps, strict=True):
                    code, output = await bench.execute(command, {})
                    if code:
                        raise Refused(f"the line {line[:100]!r} of {name} failed: {last_word(output)} (exit {code})")
        except TimeoutError:
            raise Refused(f"building {name} took longer than {LIMIT_S:g} s and was given up") from None
        await bench.finish(raising=True)
        await to_the_end(images.keep, bench.root, id_, name, settings)
    return id_


def _step(line: str) -> list[str]:
    word, _, rest = line.partition(" ")
    if word == "RUN":
        return ["sh", "-c", rest]
    if word == "COPY" and len(paths := shlex.split(rest)) == 2 and not rest.startswith("-"):
        return ["sh", "-c", _COPY, "copy", *paths]
    raise Refused(f"only a Docker engine follows the line {line[:100]!r}; build this image on one")
