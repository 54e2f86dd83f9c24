"""Jobs of our own that look around in a chamber: what one run uses, whether gold is in reach, what is installed.

The programs are POSIX sh, since an image promises nothing more. What they tell was said inside, so it serves advice
and inventory, never a verdict.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.domain.verdict import Mode
from orchestrator.door import TooLarge
from orchestrator.loop.jobs import Image, together
from orchestrator.loop.rehearsal import NODE, engine_trouble_is_no_finding
from orchestrator.loop.workbench import Parts
from orchestrator.text import short
from sandbox import Bundle, Job, Limits
from sandbox import Mode as JobMode

MARK = "blastdoor-canary-"
_MARKED = re.compile(rb"blastdoor-canary-[0-9a-f]{32}")
DECOY_FILE = ".blastdoor-decoy"
DECOY_VARIABLE = "BLASTDOOR_DECOY"
_SEARCH_S = 120.0
_REPORT = "blastdoor-probe-"
_REPORT_BYTES = 1 << 16
_PACKAGES_MOST = 5000

# $1 is where to report; the rest is the trial's command. The pattern does not match itself, so the search does not
# find its own command line. Special files are left out: reading one may never end.
_LOOK_AROUND = r"""
report=$1; shift
"$@"
code=$?
{
times
for peak in /sys/fs/cgroup/memory.peak /sys/fs/cgroup/memory/memory.max_usage_in_bytes; do
    [ -r "$peak" ] && printf 'peak %s\n' "$(cat "$peak")"
done
} >"$BLASTDOOR_OUT/$report" 2>/dev/null
{
find / \( -path /proc -o -path /sys -o -path "$BLASTDOOR_OUT/$report" \) -prune -o -type f -size -65536k \
    -exec grep -asHoE '[b]lastdoor-canary-[0-9a-f]{32}' {} + 2>/dev/null
grep -asHoE '[b]lastdoor-canary-[0-9a-f]{32}' /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/mounts 2>/dev/null
} | head -n 300 >>"$BLASTDOOR_OUT/$report"
exit $code
"""
_TIMES = re.compile(r"([0-9]+)m([0-9.]+)s ([0-9]+)m([0-9.]+)s")

_LIST_PACKAGES = r"""
cd "$BLASTDOOR_OUT" || exit 1
dpkg-query -W -f '${Package}\t${Version}\n' >deb 2>/dev/null
apk list --installed >apk 2>/dev/null
python3 -I -c '
import importlib.metadata
for found in importlib.metadata.distributions():
    print(found.metadata["Name"], found.version, sep="\t")
' >pypi 2>/dev/null
cat /etc/os-release >os 2>/dev/null
exit 0
"""


@dataclass(frozen=True)
class LookedAround:
    """What was seen inside after a run of the baseline. None: it could not be measured there."""

    cpu_s: float | None = None
    memory_peak: int | None = None
    searched: bool = False
    found: tuple[str, ...] = ()


@dataclass(frozen=True)
class Packages:
    """What an image holds. `missing` says why there is no list."""

    image: Image
    system: str = ""
    installed: tuple[tuple[str, str, str], ...] = ()
    missing: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


def new_canary() -> str:
    return f"{MARK}{secrets.token_hex(16)}"


async def look_around(parts: Parts, canary: str) -> LookedAround:
    """Run the baseline once more, then search its chamber for the canary. Two decoys prove that the search sees."""
    job, bundle = parts.judge_mode.job_of(parts, NODE, Mode.SUBMIT, parts.jobs.snapshot.tree)
    report = f"{_REPORT}{secrets.token_hex(4)}"
    in_file, in_variable = new_canary(), new_canary()
    limits = job.limits.model_copy(
        update={
            "wall": job.limits.wall + _SEARCH_S,
            "output_files": job.limits.output_files + 1,
            "output_bytes": job.limits.output_bytes + _REPORT_BYTES,
        }
    )
    # Where a judge calls it, the baseline alone would wait for ever: its files are looked at, and it is not run.
    serves = parts.tier.terms.calls
    changed = {
        "command": ("sh", "-c", _LOOK_AROUND, "sh", report, *(("true",) if serves else job.command)),
        "mode": JobMode.BATCH,
        "env": {**job.env, DECOY_VARIABLE: in_variable},
        "limits": limits,
    }
    decoy = Bundle({DECOY_FILE: in_file.encode()})
    try:
        with engine_trouble_is_no_finding():
            ran = await parts.door.run(job.model_copy(update=changed), together(bundle, decoy))
    except TooLarge:  # the baseline fits to the byte, and nothing beside it
        return LookedAround()
    told = ran.outcome.outputs.get(report, b"")[:_REPORT_BYTES]
    marks = {match[0].decode() for match in _MARKED.finditer(told)}
    places = [line.split(b":", 1)[0] for line in told.split(b"\n") if canary.encode() in line]
    cpu_s, peak = (None, None) if serves else measured(told.decode("utf-8", "replace"))
    return LookedAround(
        cpu_s=cpu_s,
        memory_peak=peak,
        searched={in_file, in_variable} <= marks,
        found=tuple(short(place, 120) for place in places[:10]),
    )


def measured(told: str) -> tuple[float | None, int | None]:
    """The second line of `times` is what the command used, the first what the shell itself did."""
    lines = [match for line in told.split("\n")[:8] if (match := _TIMES.fullmatch(line.strip()))]
    cpu_s = None
    if len(lines) >= 2:
        user_m, user_s, system_m, system_s = map(float, lines[1].groups())
        cpu_s = 60 * (user_m + system_m) + user_s + system_s
    peak = re.search(r"^peak ([0-9]{1,18})$", told, re.MULTILINE)
    return cpu_s, int(peak[1]) if peak else None


async def list_packages(parts: Parts, image: Image) -> Packages:
    """An inventory of an image, by a job that brings no file of anybody's."""
    door = parts.judge.door if image == parts.jobs.judge_image else parts.door
    job = Job(command=("sh", "-c", _LIST_PACKAGES), image=image.of_jobs, limits=Limits(wall=60, log_bytes=1 << 20))
    with engine_trouble_is_no_finding():
        ran = await door.run(job, Bundle({}))
    outputs = ran.outcome.outputs
    installed = [(kind, *pair) for kind in ("deb", "pypi") for pair in _pairs(outputs.get(kind, b""))]
    installed += [("apk", name, "") for name in _lines(outputs.get("apk", b""))]
    return Packages(
        image=image,
        system=_system(outputs.get("os", b"")),
        installed=tuple(sorted(installed)[:_PACKAGES_MOST]),
        missing="" if installed else "the image has none of dpkg-query, apk and python3 to tell what it holds",
        facts=dict(ran.outcome.facts),
    )


def _lines(data: bytes) -> list[str]:
    return [short(line, 200) for line in data[: 4 << 20].split(b"\n") if line.strip()]


def _pairs(data: bytes) -> list[tuple[str, str]]:
    rows = (line.split(b"\t") for line in data[: 4 << 20].split(b"\n"))
    return [(short(row[0], 200), short(row[1], 200)) for row in rows if len(row) == 2]


def _system(data: bytes) -> str:
    found = re.search(rb'^PRETTY_NAME="?([^"\n]*)"?$', data[:4096], re.MULTILINE)
    return short(found[1], 100) if found else ""
