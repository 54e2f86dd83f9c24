"""GPUs by name: what people ask for, what a driver reports, and whether the one is the other.

Names are compared word by word, because one kind's name is often the beginning of another's: an A100 is no A10, and an
L40S no L4. Words that only say more than was asked do not matter; words that were asked for must be there.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sandbox.job import Gpu

# Who makes it, and for whom: drivers say it, people leave it out.
_MAKERS = frozenset({"NVIDIA", "TESLA", "QUADRO", "GEFORCE"})
# How it is built in, which memory and which edition.
_FORMS = frozenset({"PCIE", "SXM", "NVL", "HBM2", "HBM2E", "HBM3", "HBM3E"})
_EDITIONS = frozenset({"BLACKWELL", "SERVER", "WORKSTATION", "EDITION", "GENERATION"})
# What a name leaves unsaid: of the H100s only those on SXM boards have HBM3.
_IMPLIED = {("H100", "HBM3"): "SXM"}
# What clouds also sell under a name. The fingerprint has the real one, so their scores are never compared.
_SOLD_AS: Mapping[str, Collection[str]] = {"A10": ("A10G",)}
# A driver's count of usable memory in GiB, as a part of the gigabytes in a name: error correction takes up to 1/16.
_USABLE = (0.9, 1.05)

_MEMORY = re.compile(r"([0-9]+)GB?")
_SXM = re.compile(r"SXM[0-9]*")


@dataclass(frozen=True, slots=True)
class SeenGpu:
    """One GPU as a chamber saw it before any hostile byte; memory in MiB where it was told."""

    name: str
    memory: int | None = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class _Words:
    model: str
    said: frozenset[str]
    gigabytes: int | None


def _words(name: str) -> _Words:
    """The model, what else is said of it, and the memory."""
    model, said, gigabytes = "", set(), None
    for word in re.findall(r"[A-Z0-9.]+", name.upper()):
        if memory := _MEMORY.fullmatch(word):
            gigabytes = int(memory[1])
        elif _SXM.fullmatch(word):
            said.add("SXM")
        elif word in _FORMS | _EDITIONS:
            said.add(word)
        elif word not in _MAKERS:
            model += word
    said |= {more for (kind, word), more in _IMPLIED.items() if kind == model and word in said}
    return _Words(model, frozenset(said), gigabytes)


def is_kind(kind: str, gpu: SeenGpu) -> bool:
    """Whether this GPU is what was asked for. `any` is every one."""
    if kind.lower() == "any":
        return True
    wanted, seen = _words(kind), _words(gpu.name)
    if seen.model != wanted.model and seen.model not in _SOLD_AS.get(wanted.model, ()):
        return False
    return wanted.said <= seen.said and _has_memory(wanted.gigabytes, seen.gigabytes, gpu.memory)


def _has_memory(wanted: int | None, named: int | None, measured: int | None) -> bool:
    if wanted is None or wanted == named:
        return True
    if measured is None:
        return False
    least, most = (wanted * share for share in _USABLE)
    return least <= measured / 1024 <= most


def seen_gpus(facts: Mapping[str, str]) -> list[SeenGpu]:
    """The GPUs of a chamber's facts: name, memory and id stand in the same order, where they are told at all."""
    names, memories, ids = (
        [item.strip() for item in facts.get(key, "").split(";") if item.strip()]
        for key in ("gpu", "gpu_memory", "gpu_id")
    )
    return [
        SeenGpu(
            name, _mebibytes(memories[at]) if len(memories) == len(names) else None, ids[at] if at < len(ids) else ""
        )
        for at, name in enumerate(names)
    ]


def _mebibytes(text: str) -> int | None:
    match = re.fullmatch(r"([0-9]{1,9}) MiB", text)
    return int(match[1]) if match else None


def gpu_differences(wanted: Gpu | None, facts: Mapping[str, str], lent: Sequence[str] = ()) -> list[str]:
    """Where a chamber sees other GPUs than were asked for: of another kind, fewer, more, or those of a neighbour.

    `lent` are the ids that it was given, where the backend gives them out one by one.
    """
    seen = seen_gpus(facts)
    names = ", ".join(gpu.name for gpu in seen)
    if wanted is None:
        return [f"gpu: none was asked for, the chamber sees {names}"] if seen else []
    if facts.get("gpu_mig"):
        return ["gpu: the chamber sees a GPU in slices (MIG), which are not told apart here; switch MIG off"]
    if not seen:
        why = "nvidia-smi tells of none in it; use an image with glibc, and a runtime that lets GPUs in"
        return [f"gpu: wanted {wanted}, the chamber sees none: {why}"]
    if len(seen) != wanted.count or not all(is_kind(wanted.kind, gpu) for gpu in seen):
        return [f"gpu: wanted {wanted}, the chamber sees {names}"]
    if lent and {gpu.id for gpu in seen} != set(lent):
        return [f"gpu: wanted {', '.join(lent)}, the chamber sees {', '.join(gpu.id or 'no id' for gpu in seen)}"]
    return []
