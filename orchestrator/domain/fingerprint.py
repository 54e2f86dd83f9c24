"""What a score was measured on. Scores are compared only where the fields that bind them are equal."""

import hashlib
import json
from collections.abc import Iterable, Mapping

# Said by the chamber before any hostile byte arrived, then ours: limits and digests.
GPU = ("gpu", "gpu_count", "gpu_memory", "gpu_driver", "cuda")
HARDWARE = ("cpu", "cores", "memory", "kernel", *GPU)
FIELDS = (*HARDWARE, "backend", "limits", "steps", "image", "inputs", "judge", "gold", "pool")
DEFAULT_BINDS = ("backend", "image", "inputs", "judge", "gold", "limits", "steps", *GPU)

Fingerprint = Mapping[str, str]


def cohort_of(fingerprint: Fingerprint, binds: Mapping[str, Iterable[str]]) -> str:
    """One name for all trials whose metrics may be compared: `binds` has the binding fields of each metric."""
    bound = {
        metric: {field: fingerprint.get(field, "") for field in sorted(fields)} for metric, fields in binds.items()
    }
    return hashlib.sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest()[:16]


def difference(old: Fingerprint, new: Fingerprint) -> list[str]:
    """The fields that differ, for a line that tells a person why two trials are not of one cohort."""
    return [field for field in FIELDS if old.get(field, "") != new.get(field, "")]
