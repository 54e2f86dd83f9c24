"""Reduces a large array on the GPU, once for each key. It is right, and slow: make it faster.

The kernel is compiled when this is loaded, which is not timed. The judge calls `solve` with numbers that it has just
drawn, checks the answers, and is told how long the call took by a clock that this program cannot reach.
"""

import json
from pathlib import Path
from typing import Any

from blastdoor_values import Array
from cuda import Buffer, Gpu

PARAMS = json.loads(Path(__file__).with_name("params.json").read_text())
SOURCE = Path(__file__).with_name("kernel.cu").read_text()
PER_THREAD = PARAMS["keys"] if PARAMS["method"] == "tiles" else 1

_gpu = Gpu()
_kernel = _gpu.compile(SOURCE, PARAMS["method"], THREADS=PARAMS["threads"], KEYS=PARAMS["keys"], TILE=PARAMS["tile"])
_values, _keys, _answers = (Buffer(_gpu) for _ in range(3))


def solve(values: Any, keys: Any) -> Array:
    """`values` and `keys` are arrays of u4, and so is the answer: one number for each key."""
    count, key_count = len(_bytes(values)) // 4, len(_bytes(keys)) // 4
    _values.put(_bytes(values))
    _keys.put(_bytes(keys))
    _answers.zeros(4 * key_count)
    launch(count, key_count)
    return Array("u4", (key_count,), _answers.get())


def launch(count: int, key_count: int) -> None:
    per_block = PARAMS["threads"] * PER_THREAD
    blocks = max(1, -(-key_count // per_block))
    _kernel(
        (blocks, PARAMS["splits"]),
        PARAMS["threads"],
        _values.address,
        count,
        _keys.address,
        key_count,
        _answers.address,
    )


def _bytes(numbers: Any) -> bytes:
    """Numpy's array where numpy is installed, else one that holds its bytes."""
    data: bytes = numbers.data if isinstance(numbers, Array) else numbers.tobytes()
    return data
