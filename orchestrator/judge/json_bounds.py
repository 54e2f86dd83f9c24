"""The bounded JSON of a judge's result: what is wrong with it is one of the result's own codes."""

from orchestrator import bounded_json
from orchestrator.judge.bounds import ResultFault, ResultRefused


def loads(data: bytes, *, max_bytes: int, max_depth: int, max_digits: int) -> object:
    """Plain values, every number finite and every string fit for UTF-8. Raises ResultRefused and nothing else."""
    try:
        return bounded_json.loads(data, max_bytes=max_bytes, max_depth=max_depth, max_digits=max_digits)
    except bounded_json.JsonRefused as refused:
        raise ResultRefused(ResultFault[refused.code.name], refused.detail, refused.where) from None
