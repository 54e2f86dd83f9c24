"""C2: how wide and how deep, said with a reason."""

from typing import Any

from orchestrator.loop.width import Shape, shape

LIGHT: dict[str, Any] = {
    "width": None,
    "depth": None,
    "serial": False,
    "branching": True,
    "saturates": None,
    "ceiling": 16,
    "wall_s": 30,
}


def shaped(**changes: Any) -> Shape:
    return shape(**{**LIGHT, **changes})


def test_unknown_and_light_means_five_and_five() -> None:
    """Nothing said about what a run fills, short trials, enough room."""
    assert (shaped().width, shaped().depth) == (5, 5)


def test_the_backend_is_the_ceiling() -> None:
    """Never wider than fits, never less than one."""
    assert shaped(ceiling=2).width == 2
    assert shaped(ceiling=0).width == 1


def test_what_one_run_fills_makes_it_serial() -> None:
    """A GPU, the memory, a port, a database or an API's rate can be had once."""
    for resource in ("gpu", "memory", "port", "database", "api"):
        assert shaped(saturates=(resource,)).width == 1
    assert shaped(saturates=("cpu",)).width == 16


def test_times_are_taken_one_at_a_time() -> None:
    """A neighbour is in what a candidate takes, on whatever clock; who says what one run fills has thought of it."""
    assert shaped(timed=True).width == 1
    assert "times are taken one at a time" in shaped(timed=True).why
    assert shaped(timed=True, saturates=("cpu",)).width == 16
    assert shaped(timed=True, width=3).width == 3


def test_changes_to_code_are_serial() -> None:
    """Each must see what came before it."""
    assert shaped(serial=True).width == 1


def test_an_explicit_value_wins() -> None:
    """Over the ceiling, over a serial proposer, over all."""
    wanted = shaped(width=9, depth=7, serial=True, saturates=("gpu",), ceiling=1)
    assert (wanted.width, wanted.depth) == (9, 7)


def test_depth_follows_cost() -> None:
    """Long trials make short branches; what always starts at the root has none."""
    assert shaped(wall_s=600).depth == 2
    assert shaped(branching=False, depth=9).depth == 1


def test_the_choice_is_said_in_one_line() -> None:
    """Both numbers, each with its reason."""
    why = shaped(saturates=("gpu",)).why
    assert why == "width 1 (one run fills the gpu), depth 5 (trials are short)"
