"""Python of others is read by one thread at a time."""

import ast
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchestrator.python_source import parse_python


@pytest.mark.parametrize("source", ["x = 1", b"x = 1", b"\xef\xbb\xbfx = 1", b"# coding: latin-1\nx = '\xe4'"])
def test_what_is_python(source: bytes | str) -> None:
    """Text and bytes, as CPython takes them."""
    assert isinstance(parse_python(source), ast.Module)


@pytest.mark.parametrize("source", ["x =", b"\xff", "x\0", "(" * 5_000 + ")" * 5_000, "-" * 100_000 + "1"])
def test_what_is_none(source: bytes | str) -> None:
    """Whatever is wrong with it, it is no error of ours."""
    assert parse_python(source) is None


def test_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython 3.11 raises SystemError now and then when two threads parse at once, whatever they parse."""
    alone, real = threading.Lock(), ast.parse

    def parse(source: str) -> ast.Module:
        assert alone.acquire(blocking=False), "two at once"
        time.sleep(0.001)
        alone.release()
        return real(source)

    monkeypatch.setattr(ast, "parse", parse)
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(parse_python, ["x = 1"] * 40))


def test_others_parse_meanwhile() -> None:
    """A finalizer that prints a trace parses in the middle of it: CPython 3.11 loses count, and it is read again."""
    source = "".join(f"x{number} = [{number}, (1, 2)]\n" for number in range(2_000))
    disturbed: list[ast.Module] = []

    def disturb(phase: str, _info: dict[str, int]) -> None:
        if phase == "stop" and len(disturbed) < 5:
            disturbed.append(ast.parse("x = (1, 2)"))

    gc.callbacks.append(disturb)
    try:
        assert parse_python(source)
    finally:
        gc.callbacks.remove(disturb)
    assert disturbed
