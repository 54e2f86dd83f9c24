"""Candidate and judge against each other on a machine with a GPU, without an engine: prints one JSON object.

    python3 examples/gpu_reduce/try_on_gpu.py [--like-a-chamber]

Standard library only. What it needs: NVIDIA's driver, and libnvrtc on the loader's path or in a wheel of NVIDIA's. The
kernels are checked in full on sizes around those of warps, blocks and tiles, timed by the GPU's own events, then
called by the judge with frames and a clock as the orchestrator would. `--like-a-chamber`, as root, has the candidate
run in what of a chamber's posture needs no engine (scripts/like_a_chamber.py): a trial of this example, no boundary.
"""

import argparse
import array
import importlib
import json
import os
import platform
import random
import secrets
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from ctypes import byref, c_float, c_void_p
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
GUEST = HERE.parent.parent / "orchestrator/judge/guest"
POSTURE = HERE.parent.parent / "scripts/like_a_chamber.py"
SIZES = ((0, 5), (1, 1), (31, 33), (32, 127), (129, 64), (1023, 2), (1025, 70), (4097, 3), (65_537, 9), (2, 70_001))
FULL = (262_144, 65_536)
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "atomics (the baseline)": {},
    "sums": {"method": "sums"},
    "tiles": {"method": "tiles", "threads": 128, "keys": 4, "tile": 1024, "splits": 16},
    "tiles, wide": {"method": "tiles", "threads": 256, "keys": 8, "tile": 4096, "splits": 32},
}
MASK = 0xFFFFFFFF
FOLDERS = "/var/tmp"  # noqa: S108  a chamber has a /tmp of its own


def twisted_sum(values: Sequence[int], key: int) -> int:
    """Written again, not taken from the judge: two that agree are worth more than one."""
    total = 0
    for value in values:
        t = ((value ^ key) * 0x9E3779B1) & MASK
        t = ((t ^ (t >> 15)) * 0x85EBCA77) & MASK
        total = (total + (t ^ (t >> 13))) & MASK
    return total


def workspace(folder: Path, params: Mapping[str, Any]) -> Path:
    """The candidate's files with other parameters."""
    shutil.copytree(HERE / "workspace", folder)
    found = json.loads((folder / "params.json").read_text()) | dict(params)
    (folder / "params.json").write_text(json.dumps(found))
    return folder


def loaded(folder: Path) -> Any:
    """solve.py of this folder, as the only one."""
    for name in ("solve", "cuda"):
        sys.modules.pop(name, None)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("solve")
    finally:
        sys.path.remove(str(folder))


def drawn(rng: random.Random, count: int) -> "array.array[int]":
    return array.array("I", rng.randbytes(4 * count))


def check_sizes(solve: Any, array_of: Any) -> int:
    """How many answers were right, of every size, also where all numbers are alike. A wrong one ends it all."""
    rng = random.Random(7)
    right = 0
    for count, key_count in SIZES:
        for values in (drawn(rng, count), array.array("I", [MASK]) * count, array.array("I", [0]) * count):
            keys = drawn(rng, key_count)
            keys[0] = values[0] if count else 0
            given = (array_of("u4", (len(it),), it.tobytes()) for it in (values, keys))
            answers = solve.solve(*given).tolist()
            checked = range(key_count) if count * key_count < 1 << 19 else rng.sample(range(key_count), 8)
            for at in checked:
                if answers[at] != twisted_sum(values, keys[at]):
                    raise SystemExit(f"wrong: {count} values, {key_count} keys, answer {at}")
                right += 1
    return right


def kernel_ms(solve: Any, array_of: Any, times: int = 9) -> float:
    """The median of the kernel alone, by events of the GPU."""
    gpu = solve._gpu
    rng = random.Random(8)
    solve.solve(*(array_of("u4", (count,), rng.randbytes(4 * count)) for count in FULL))
    begin, end = c_void_p(), c_void_p()
    gpu.call("cuEventCreate", byref(begin), 0)
    gpu.call("cuEventCreate", byref(end), 0)
    took = []
    for _ in range(times):
        gpu.call("cuEventRecord", begin, None)
        solve.launch(*FULL)
        gpu.call("cuEventRecord", end, None)
        gpu.wait()
        elapsed = c_float()
        gpu.call("cuEventElapsedTime_v2" if hasattr(gpu.driver, "cuEventElapsedTime_v2") else "cuEventElapsedTime",
                 byref(elapsed), begin, end)  # fmt: skip
        took.append(elapsed.value)
    return statistics.median(took)


class Side:
    """A program that is asked in frames, and by whose answers we go."""

    def __init__(self, command: Sequence[str], folder: Path, **env: str) -> None:
        self._name = " ".join(command)
        (read, requests), (replies, write) = os.pipe(), os.pipe()
        self._process = subprocess.Popen(command, cwd=folder, stdin=read, stdout=write, env={**os.environ, **env})
        os.close(read)
        os.close(write)
        self._to, self._from = os.fdopen(requests, "wb"), os.fdopen(replies, "rb")

    def ask(self, payload: bytes) -> tuple[float, bytes]:
        started = time.perf_counter()
        nonce = secrets.token_bytes(8)
        self._to.write(len(payload).to_bytes(4, "big") + nonce + payload)
        self._to.flush()
        header = self._from.read(12)
        if header[4:] != nonce:
            raise SystemExit(f"{self._name} fell silent, or answered out of turn")
        answer = self._from.read(int.from_bytes(header[:4], "big"))
        return time.perf_counter() - started, answer

    def nulls(self) -> list[float]:
        return [self.ask(b"N")[0] for _ in range(36)][4:]

    def used(self) -> dict[str, str]:
        """Threads and the most memory so far, as the kernel counts them."""
        status = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in status)
        return {name: " ".join(fields[name].split()) for name in ("Threads", "VmHWM", "Seccomp", "CapBnd", "Uid")}

    def end(self) -> int:
        self._to.close()
        return self._process.wait()


def empty_calls(*sides: Side) -> tuple[float, float]:
    """The smaller median, and the larger jitter."""
    taken = [side.nulls() for side in sides]
    jitters = (sorted(abs(it - statistics.median(one)) for it in one)[28] for one in taken)
    return min(map(statistics.median, taken)), max(jitters)


def judged(folder: Path, under: Sequence[str], values: Any) -> dict[str, Any]:
    """What the judge publishes, with its calls carried and timed as the orchestrator would."""
    out = folder.parent / "out"
    (out / "traces").mkdir(parents=True)
    command = [*under, sys.executable, "-m", "blastdoor_candidate", "solve.py"]
    candidate = Side(command, folder, PYTHONPATH=str(GUEST))
    judge = Side(
        [sys.executable, str(HERE / "judge/judge.py")],
        HERE / "judge",
        PYTHONPATH=str(GUEST),
        PYTHONDONTWRITEBYTECODE="1",
        BLASTDOOR_SEED=str(secrets.randbits(63)),
        BLASTDOOR_RESULT_PATH=str(out / "result.json"),
        BLASTDOOR_TRACES_DIR=str(out / "traces"),
        BLASTDOOR_METRICS_PATH=str(out / "metrics.csv"),
    )
    load_s, told = candidate.ask(b"L")
    if told[:1] != b"L":
        raise SystemExit(f"not loaded: {values.decode(told[1:])}")
    median, jitter = empty_calls(judge, candidate)
    begun = {"median": median, "jitter": jitter, "functions": values.decode(told[1:])}
    _, wish = judge.ask(b"B" + values.encode(begun))
    calls = 0
    while wish[:1] != b"F":
        if wish[:1] == b"M":
            median, jitter = map(min, (median, jitter), empty_calls(judge, candidate))
            _, wish = judge.ask(b"R" + struct.pack("<d", 0.0) + values.encode({"median": median, "jitter": jitter}))
            continue
        calls += 1
        elapsed, answer = candidate.ask(wish)
        _, wish = judge.ask(b"R" + struct.pack("<d", elapsed) + answer)
    report = {"result": json.loads(values.decode(wish[1:])["result.json"]), "calls": calls, "used": candidate.used()}
    report |= {"median_s": median, "jitter_s": jitter, "load_s": load_s}
    return report | {"ended": [judge.end(), candidate.end()]}


def machine() -> dict[str, str]:
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    seen = subprocess.run(query, capture_output=True, text=True, check=False).stdout if shutil.which(query[0]) else ""
    tools = {name: shutil.which(name) or "none" for name in ("nvcc", "nvidia-smi")}
    return {"gpu": seen.strip(), "python": platform.python_version(), "machine": platform.machine(), **tools}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--like-a-chamber", action="store_true", help="the candidate runs in a chamber's posture")
    under = [sys.executable, str(POSTURE)] if parser.parse_args().like_a_chamber else []
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(GUEST))
    values = importlib.import_module("blastdoor_values")
    report: dict[str, Any] = {**machine(), "under": under, "variants": {}}
    for name, params in VARIANTS.items():
        with tempfile.TemporaryDirectory(prefix="gpu-reduce-", dir=FOLDERS) as root:
            Path(root).chmod(0o755)
            folder = workspace(Path(root) / "workspace", params)
            solve = loaded(folder)
            found: dict[str, Any] = {"answers checked": check_sizes(solve, values.Array)}
            found["kernel_ms"] = round(kernel_ms(solve, values.Array), 3)
            found["judged"] = judged(folder, under, values)
            report["variants"][name] = found | {"architecture": solve._gpu.architecture}
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
