"""`blastdoor exec`: one command in a fresh chamber."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import click

from orchestrator.settings import Settings
from orchestrator.task import ImageSpec
from orchestrator.views.event_loop import run_in_loop
from orchestrator.views.exits import Exit
from orchestrator.views.flags import flags_of, say, site_options
from orchestrator.wiring.choice import NO_GPU
from orchestrator.wiring.options import resolve_site
from orchestrator.wiring.site import Provider, Site
from orchestrator.wiring.sites import make_provider
from sandbox import (
    Bundle,
    Ending,
    Job,
    Limits,
    Outcome,
    Report,
    check_outputs_folder,
    write_outputs,
)
from sandbox.units import format_size

_DEFAULTS = Limits()
_SIZES = {"memory", "work_bytes", "bundle_bytes", "log_bytes", "output_bytes"}
_DURATIONS = {"wall", "build", "grace"}
_HELP = {
    "wall": "wall-clock of the command",
    "build": "wall-clock of the build step",
    "grace": "time between SIGTERM and SIGKILL",
    "memory": "memory, swap included",
    "cpus": "processors",
    "pids": "processes and threads",
    "open_files": "open files of a process",
    "work_bytes": "size of /work, and of /tmp and /dev/shm",
    "work_inodes": "files and folders in /work, /tmp and /dev/shm, each",
    "bundle_bytes": "size of the input bundle",
    "log_bytes": "size of the log",
    "output_bytes": "size of the outputs",
    "output_files": "files and folders among the outputs",
    "gpu": "GPU, kind and count, like A100:8; or none",
}


def _limit_options(function: Any) -> Any:
    for name, text in reversed(_HELP.items()):
        default = getattr(_DEFAULTS, name)
        shown = _shown(name, default)
        flag = "--" + name.replace("_", "-") + ("-limit" if name == "build" else "")
        help_text = f"Limit: {text}." + (f" [default: {shown}]" if shown is not None else "")
        function = click.option(flag, name, metavar="LIMIT", help=help_text)(function)
    return function


def _shown(name: str, default: Any) -> str | None:
    if name in _SIZES:
        return format_size(default)
    return f"{default:g}s" if name in _DURATIONS else default


class Echo:
    """Shows the log as it comes; it is escaped already."""

    def __init__(self, to_stderr: bool) -> None:
        self._to_stderr = to_stderr

    def line(self, text: str) -> None:
        click.echo(text, err=self._to_stderr)

    def report(self, report: Report) -> None:
        pass  # its line is shown like any other


@click.command("exec", context_settings={"ignore_unknown_options": False})
@click.option("--in", "source", type=click.Path(path_type=Path), help="Folder with the files for the command.")
@click.option("--out", "target", type=click.Path(path_type=Path), help="New folder for its $BLASTDOOR_OUT.")
@click.option("--input", "inputs", multiple=True, metavar="NAME=PATH", help="Large input, mounted as /inputs/NAME.")
@click.option("--image", help="Image of the chamber.")
@site_options("gpu", "standing")
@click.option("--build", "build_step", metavar="LINE", help="Shell line to run first, with its own limit.")
@click.option("--env", "variables", multiple=True, metavar="NAME=VALUE", help="Environment variable for the command.")
@click.option("--loopback", is_flag=True, help="Allow TCP and UDP on the chamber's own loopback.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON; the log goes to stderr.")
@_limit_options
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND…")
@click.pass_obj
def command(settings: Settings, /, words: tuple[str, ...], **flags: Any) -> int:
    """Run one command in a fresh chamber.

    Shows its log as it comes, and writes what it leaves in $BLASTDOOR_OUT to --out.

    Exit code 0 when the command completed, 1 when it ended in any other way, 2 when the input is at fault, 3 when the
    engine fails.
    """
    chosen = resolve_site(flags_of(flags), settings)
    provider = make_provider(settings, chosen)
    planned = provider.planned()
    limits = {name: flags[name] for name in _HELP if flags[name] is not None}
    if limits.get("gpu") == NO_GPU:
        del limits["gpu"]
    if flags["target"]:
        check_outputs_folder(flags["target"])
    job = Job(
        command=words,
        build=("sh", "-c", flags["build_step"]) if flags["build_step"] else (),
        image=flags["image"] or settings.image,
        env=dict(_pair(item, "--env") for item in flags["variables"]),
        loopback=flags["loopback"],
        limits=Limits(**limits),
        inputs=_add_inputs(planned, flags["inputs"]),
    )
    source = flags["source"]
    bundle = Bundle.from_folder(source, byte_cap=job.limits.bundle_bytes) if source else Bundle({})
    planned.usd_per_second(job.limits)  # Refused, before anything is made
    outcome = run_in_loop(_execute(provider, job, bundle, Echo(flags["as_json"])))
    _show(outcome, flags["as_json"])
    if flags["target"]:
        write_outputs(outcome.outputs, flags["target"])
    return Exit.OK if outcome.ending is Ending.COMPLETED else Exit.NOT_GOOD


async def _execute(provider: Provider, job: Job, bundle: Bundle, echo: Echo) -> Outcome:
    async with provider.alone(say) as site:
        image = await site.bake(ImageSpec(base=job.image))
        async with await site.backend.open(job.model_copy(update={"image": image.name})) as chamber:
            return await chamber.run(bundle, listener=echo)


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"{option} {text!r} has no '='; write NAME=VALUE")
    return name, value


def _add_inputs(planned: Site, inputs: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(planned.add_input(name, Path(path)) for name, path in (_pair(item, "--input") for item in inputs))


def _show(outcome: Outcome, as_json: bool) -> None:
    if as_json:
        record = {
            "ending": outcome.ending,
            "exit_code": outcome.exit_code,
            "reason": outcome.reason,
            "outputs": {name: len(data) for name, data in outcome.outputs.items()},
            "usage": dataclasses.asdict(outcome.usage),
            "facts": dict(outcome.facts),
        }
        click.echo(json.dumps(record, indent=2))
        return
    files = f"{len(outcome.outputs)} file(s), {format_size(outcome.usage.output_bytes)}"
    reason = f" ({outcome.reason})" if outcome.reason else ""
    code = "" if outcome.exit_code in (None, 0) else f", exit code {outcome.exit_code}"
    click.echo(
        f"blastdoor: {outcome.ending}{code}{reason} after {outcome.usage.run_s:.2f} s; outputs: {files}", err=True
    )
