"""What a cluster of one node, its login and SkyPilot read, written into one folder.

Nothing here is on the machine's own paths. The node pretends: more processors and memory than there are, and GPUs
that are plain files; Slurm counts them and hands them out as it would real ones.
"""

import json
import os
import shlex
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CLUSTER = "yard"
NODE = "localhost"  # a job asks for the address of its node by name
PARTITION = "debug"
CPUS = 8
MEMORY_MIB = 32 << 10
GPU = "A10"
GPUS = 2
PYTHON = "/usr/bin/python3"  # the distribution's: this process's own may lie where the cluster's user cannot read
ABSENT_GPU = "H100"  # SkyPilot knows it, this node has none
PROVISION_SECONDS = 20
CPU_USD = 0.05  # an hour, as the others
GIB_USD = 0.01
GPU_USD = 1.2

_SLURM = """\
ClusterName={cluster}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports.controller}
SlurmdPort={ports.node}
SlurmUser=root
AuthInfo=socket={home}/munge/socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
GresTypes=gpu
PrologSlurmctld={home}/prolog
ReturnToService=2
KillWait=5
MinJobAge=30
NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} Gres=gpu:{gpu}:{gpus}
PartitionName={partition} Nodes={node} Default=YES MaxTime=24:00:00 State=UP
"""

_SSHD = """\
ListenAddress 127.0.0.1:{ports.ssh}
HostKey {home}/ssh/host
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
AuthorizedKeysFile {home}/ssh/authorized_keys
AllowUsers {user}
MaxSessions 200
MaxStartups 200
Subsystem sftp internal-sftp
SetEnv {variables}
"""

_LOGIN = """\
Host {cluster}
    HostName 127.0.0.1
    Port {port}
    User {user}
    IdentityFile {home}/ssh/user
"""

# SkyPilot would fetch its installer from the internet, and a Python 3.10 with it.
_UV = """\
#!/bin/bash
{variables}
words=()
for word in "$@"; do
  [ "$word" = 3.10 ] && word={python}
  words+=("$word")
done
exec {uv} "${{words[@]}}"
"""

_PROLOG = """\
#!/bin/bash
case "$SLURM_JOB_NAME" in *[!A-Za-z0-9._-]*|.*|"") exit 0 ;; esac
place={home}/user/.sky_clusters/$SLURM_JOB_NAME
install -d -o {user} -g {user} {home}/user/.sky_clusters "$place" "$place/.local" "$place/.local/bin"
install -o {user} -g {user} -m 755 {home}/uv.sh "$place/.local/bin/uv"
"""


@dataclass(frozen=True, slots=True)
class Ports:
    controller: int
    node: int
    ssh: int
    api: int


def write_slurm(home: Path, ports: Ports, user: str, docker: Path) -> None:
    _write(
        home / "slurm.conf",
        _SLURM.format(
            home=home, ports=ports, host=socket.gethostname().partition(".")[0], cluster=CLUSTER, node=NODE, cpus=CPUS,
            memory=MEMORY_MIB, gpu=GPU, gpus=GPUS, partition=PARTITION,
        ),
    )  # fmt: skip
    devices = [home / f"gpu{number}" for number in range(GPUS)]
    for device in devices:
        device.touch()
    _write(home / "gres.conf", "".join(f"NodeName={NODE} Name=gpu Type={GPU} File={path}\n" for path in devices))
    _write(home / "prolog", _PROLOG.format(home=home, user=user), mode=0o755)
    variables = [f"SLURM_CONF={home / 'slurm.conf'}", f"TMPDIR={home / 'runtime'}", f"DOCKER_HOST=unix://{docker}"]
    _write(home / "sshd.conf", _SSHD.format(home=home, ports=ports, user=user, variables=" ".join(variables)))


def write_uv(home: Path, uv: Path) -> None:
    """The wrapper that the prolog puts where SkyPilot looks. It finds packages where this machine's pip does."""
    variables = {"UV_CACHE_DIR": f"{home}/user/.cache/uv", "UV_LINK_MODE": "hardlink", "UV_PYTHON_DOWNLOADS": "never"}
    variables |= _index()
    lines = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())
    _write(home / "uv.sh", _UV.format(variables=lines, python=PYTHON, uv=uv), mode=0o755)


def write_sky(home: Path, ports: Ports, user: str) -> None:
    sky = home / "sky"
    write_login(home, ports.ssh, user)
    own = {"cluster_configs": {CLUSTER: {"tmpdir": str(home / "runtime")}}}
    prices = {"cpu": CPU_USD, "memory": GIB_USD, "accelerators": {GPU: GPU_USD}}
    settings = {"slurm": {"provision_timeout": PROVISION_SECONDS, "pricing": prices} | own}
    _write(sky / ".sky" / "config.yaml", json.dumps(settings, indent=2))  # JSON is YAML
    # SkyPilot would fetch the list of known accelerators from the internet.
    catalog = sky / ".sky" / "catalogs" / "v8" / "common" / "accelerators.csv"
    _write(catalog, "AcceleratorName,Clouds\n" + "".join(f"{name},Slurm\n" for name in (GPU, ABSENT_GPU)))


def write_login(home: Path, port: int, user: str) -> None:
    """Where SkyPilot logs in."""
    _write(home / "sky" / ".slurm" / "config", _LOGIN.format(home=home, port=port, user=user, cluster=CLUSTER))


def _index() -> dict[str, str]:
    """uv does not read pip's settings: they are told to it in its own words."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    found: dict[str, list[str]] = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        found.setdefault(name.rpartition(".")[2], []).extend(value.strip("'").replace("\\n", " ").split())
    variables = {"UV_INDEX_STRATEGY": "unsafe-best-match"}  # as pip: the best version of all places
    if address := found.get("index-url"):
        variables["UV_DEFAULT_INDEX"] = address[-1]
    if places := found.get("extra-index-url"):
        variables["UV_INDEX"] = " ".join(dict.fromkeys(places))
    if links := found.get("find-links"):
        variables["UV_FIND_LINKS"] = ",".join(dict.fromkeys(links))
    if certificates := found.get("cert") or [os.environ.get("SSL_CERT_FILE", "")]:
        variables |= {"SSL_CERT_FILE": certificates[-1]} if certificates[-1] else {}
    return variables


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
