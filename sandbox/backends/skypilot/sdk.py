"""The file that drives SkyPilot's package: plain calls in threads, each with a deadline, errors translated once.

Its client talks to an API server on this machine, which is started when there is none, as SkyPilot's own tools do.
Files and commands go over the cluster's own ssh connection from here, so a server elsewhere is refused.
"""

import contextlib
import logging
import math
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("SKYPILOT_DISABLE_USAGE_COLLECTION", "1")  # it is read at import; what a search does is private

from sky import check as sky_check
from sky import dag as sky_dag
from sky import exceptions, logs, optimizer, skypilot_config
from sky import task as sky_task
from sky.client import sdk
from sky.provision.slurm import utils as slurm
from sky.server import common as server_common
from sky.utils import command_runner, registry

from sandbox.backends.skypilot.errors import bounded, first_line
from sandbox.backends.skypilot.order import NO_UPLOAD, resources, task_of
from sandbox.backends.skypilot.pipe import BROKEN, bounded_output
from sandbox.backends.skypilot.places import SWITCHABLE, Kind, admitted, cloud_of
from sandbox.backends.skypilot.processes import build_environments
from sandbox.backends.skypilot.provisioner import Ask, Landed, Wanted
from sandbox.backends.skypilot.ssh import brief, last_line, refuse_forwarding, unheard, without_forwarding
from sandbox.errors import Denied, Lost, Refused, Unavailable
from sandbox.scratch import scratch

QUICK_S = 120.0
REACH_S = 45.0  # ssh gives up by itself before
CHECK_S = 300.0  # its server may have to start, and looks at every account that it knows
DOWN_S = 600.0
_ENDING = "down"  # all else that is under way may bring a cluster back, or take in whatever its machine says


class _Quiet:
    """SkyPilot's client prints to the terminal of the process that imports it; what we say there is ours."""

    def __init__(self, click: Any) -> None:
        self._click = click

    def secho(self, *_: object, **__: object) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return getattr(self._click, name)


build_environments()
command_runner.ssh_options_list = without_forwarding(command_runner.ssh_options_list)


class SkyPilot:
    """Implements `Provisioner`."""

    def __init__(self) -> None:
        # Its progress is for terminals, and would be mixed with ours.
        logging.getLogger("sky").setLevel(logging.CRITICAL)
        sdk.click = _Quiet(sdk.click)
        build_environments()
        self._submitting = threading.Lock()
        self.handles: dict[str, Any] = {}

    async def check(self, place: str) -> None:
        await bounded("check", lambda: _check(place), CHECK_S)

    async def reach(self, place: str) -> None:
        await bounded("reach", lambda: _reach(place), REACH_S)

    async def quote(self, place: str, ask: Ask) -> float | None:
        def work() -> float | None:
            plan = sky_dag.Dag()
            plan.add(sky_task.Task.from_yaml_config({"resources": resources(place, ask)}))
            best = optimizer.Optimizer.optimize(plan, quiet=True).tasks[0].best_resources
            return _known(best.get_cost(3600))

        return await bounded("price", work, QUICK_S)

    async def launch(self, name: str, place: str, wanted: Wanted, timeout: float) -> Landed:
        given_up, asked = threading.Event(), threading.Event()

        def submit() -> Any:
            task = sky_task.Task.from_yaml_config(task_of(place, wanted, time.time()))
            # The setting is the process's, not the thread's: one at a time, and back to what it was.
            with self._submitting, skypilot_config.override_skypilot_config(NO_UPLOAD):
                if given_up.is_set():
                    raise Lost(f"{name} is no longer wanted")
                return sdk.launch(task, cluster_name=name)

        def work() -> Landed:
            try:
                request = submit()
            finally:
                asked.set()
            _, handle = sdk.get(request)
            self.handles[name] = handle
            machine = handle.launched_resources
            return Landed(_known(machine.get_cost(3600)) or 0.0, first_line(Exception(repr(machine))))

        try:
            return await bounded("launch", work, timeout)
        except BaseException:
            # From here on no request comes any more that a process which ends the cluster could not see.
            given_up.set()
            await bounded("launch", lambda: asked.wait(QUICK_S), 2 * QUICK_S)
            raise

    async def clusters(self) -> list[str]:
        return await bounded("status", lambda: [record["name"] for record in sdk.get(sdk.status())], QUICK_S)

    async def lived(self) -> dict[str, float | None]:
        return await bounded("cost report", lambda: _lived(sdk.get(sdk.cost_report())), QUICK_S)

    async def requests(self) -> dict[str, str]:
        def work() -> dict[str, str]:
            under_way = sdk.api_status(fields=["request_id", "name", "cluster_name", "status"])
            return {
                request.request_id: request.cluster_name
                for request in under_way
                if request.cluster_name and (request.name or "").rpartition(".")[2] != _ENDING
            }

        return await bounded("requests", work, QUICK_S)

    async def cancel_requests(self, ids: list[str]) -> None:
        await bounded("cancel requests", lambda: sdk.get(sdk.api_cancel(ids, silent=True)), QUICK_S)

    async def down(self, name: str) -> None:
        def work() -> None:
            with contextlib.suppress(exceptions.ClusterDoesNotExist):
                sdk.get(sdk.down(name))
            self.handles.pop(name, None)

        await bounded("down", work, DOWN_S)

    async def submit(self, name: str, command: str) -> None:
        def work() -> None:
            sdk.get(sdk.exec(sky_task.Task(run=command), cluster_name=name))

        await bounded("exec", work, QUICK_S)

    async def send(self, name: str, source: Path, target: str, timeout: float) -> None:
        def work() -> None:
            with scratch("send") as folder:
                words = folder / "words"
                try:
                    brief(self.runner(name), words).rsync(
                        str(source), target, up=True, stream_logs=False, timeout=math.ceil(timeout)
                    )
                except exceptions.CommandError as error:
                    told = last_line(words) or error.error_msg
                    raise Unavailable(f"send: rsync ended with {error.returncode}: {told}") from None

        await bounded("send", work, timeout + QUICK_S)

    async def call(self, name: str, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        def work() -> tuple[int, bytes]:
            runner = unheard(self.runner(name))

            def run(line: str, output: Path) -> int:
                try:
                    return int(
                        runner.run(
                            line,
                            log_path=str(output),
                            process_stream=False,
                            stream_logs=False,
                            separate_stderr=True,
                            timeout=math.ceil(timeout),
                        )
                    )
                except subprocess.TimeoutExpired:
                    raise Unavailable(f"the machine did not answer within {timeout:g} s") from None

            return bounded_output(command, cap, run)

        return await bounded("call", work, timeout + QUICK_S)

    def runner(self, name: str) -> Any:
        """SkyPilot's own connection to the cluster's first machine; clusters of ours have no other."""
        handle = self.handles.get(name)  # one look: another thread may end the cluster meanwhile
        if handle is None:
            records = sdk.get(sdk.status([name]))
            handle = records[0].get("handle") if records else None
            if handle is None:
                raise Lost(f"the cluster {name} is gone")
            self.handles[name] = handle
        return handle.get_command_runners()[0]


def _lived(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    """From the first launch of a name to its last end, and two seconds more: SkyPilot counts whole ones."""
    spans: dict[str, list[tuple[int, int | None]]] = {}
    for row in rows:
        spans.setdefault(row["name"], []).extend(row["usage_intervals"] or [])
    return {
        name: max(ends) - min(start for start, _ in span) + 2.0 if span and len(ends) == len(span) else None
        for name, span in spans.items()
        for ends in ([end for _, end in span if end is not None],)
    }


def _known(usd: float | None) -> float | None:
    """Places without a price list say 0, or no number at all."""
    return float(usd) if usd and math.isfinite(usd) else None


def _check(place: str) -> None:
    if not server_common.is_api_server_local():
        raise Refused(
            "SkyPilot's API server is on another machine, but files go to rented machines from here; "
            "use a local one (sky api start, without api_server in ~/.sky/config.yaml)"
        )
    refuse_forwarding()
    cloud = cloud_of(place)
    if cloud not in _enabled():
        sdk.get(sdk.check((cloud,), verbose=False))  # nobody may have asked yet
    if cloud not in _enabled():
        _reach(place)  # nobody has access to a place that is away
        raise Denied(f"SkyPilot has no access to {cloud}; set it up and run sky check {cloud}")
    refuse_keys()


def _reach(place: str) -> None:
    """One of a place's controllers answers over the way that commands and files take, too."""
    if admitted(place).kind is not Kind.NODE:
        return
    named = place.split("/")[1:2] or slurm.get_all_slurm_cluster_names()
    if all(_ask_controller(name) for name in named):
        raise Unavailable(f"{' and '.join(named)} cannot be reached")


def _ask_controller(cluster: str) -> int:
    """0 when it answers. By the connection that is there already, if there is one."""
    login = slurm.get_slurm_ssh_config().lookup(cluster)
    runner = command_runner.SlurmLoginNodeCommandRunner(
        (login["hostname"], int(login.get("port", 22))),
        login["user"],
        slurm.get_identity_file(login),
        slurm_user=None,
        ssh_control_name=command_runner.DEFAULT_SSH_CONTROL_NAME,
        ssh_proxy_command=login.get("proxycommand"),
        ssh_proxy_jump=login.get("proxyjump"),
        disable_identities_only=not slurm.get_identities_only(login),
    )
    try:
        return int(
            unheard(runner).run(
                "sinfo --noheader --format=%T >/dev/null",
                process_stream=False,
                stream_logs=False,
                separate_stderr=True,
                timeout=math.ceil(REACH_S),
            )
        )
    except subprocess.TimeoutExpired:
        return BROKEN


def refuse_keys() -> None:
    """Whatever SkyPilot would copy of this account's keys to a machine, although each launch switches that off."""
    switched = [registry.CLOUD_REGISTRY.from_str(name) for name in SWITCHABLE]
    if left := sky_check.get_cloud_credential_file_mounts(switched):
        path = sorted(left)[0]
        raise Refused(
            f"SkyPilot would copy {path} of this account to every rented machine, and has no switch against it; "
            "move it away, or use SkyPilot from an account without it"
        )
    agent = logs.get_logging_agent()
    if agent and (left := agent.get_credential_file_mounts()):
        raise Refused(
            f"SkyPilot would copy {sorted(left)[0]} to every rented machine, because its logs are kept elsewhere; "
            "take logs: out of ~/.sky/config.yaml, or its credentials_file"
        )
    # A workspace's word is stronger than a launch's, and its server may choose the workspace.
    for workspace, clouds in (skypilot_config.get_nested(("workspaces",), None) or {}).items():
        for cloud in SWITCHABLE:
            identity = ((clouds or {}).get(cloud) or {}).get("remote_identity", "NO_UPLOAD")
            if identity != "NO_UPLOAD":
                raise Refused(
                    f"SkyPilot's workspace {workspace} has it copy keys to rented machines, whatever a launch says; "
                    f"in ~/.sky/config.yaml, set workspaces.{workspace}.{cloud}.remote_identity to NO_UPLOAD"
                )


def _enabled() -> list[str]:
    return [str(name).lower() for name in sdk.get(sdk.enabled_clouds())]
