"""A job is checked when it is written down, and a bad one says what to do."""

from typing import Any

import pytest
from pydantic import ValidationError

from sandbox import Ending, Enforcer, Gpu, Input, Job, Limits, Needs, Outcome

DIGEST = "0" * 64


def complaint(**wanted: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        Job(**{"command": ("true",), **wanted})
    return str(caught.value.errors()[0]["msg"])


@pytest.mark.parametrize("workdir", ["/proc/self/fd/8", "/", "..", "a/../..", "a/..", "../x", "a\nb", "x" * 4097])
def test_workdir_stays_inside(workdir: str) -> None:
    """A working folder that leaves the bundle, or could, is refused with what to write instead."""
    assert "relative and without '..'" in complaint(workdir=workdir)


@pytest.mark.parametrize(("workdir", "kept"), [("", "."), ("./a//b/", "a/b"), ("proc/self", "proc/self")])
def test_workdir_is_made_plain(workdir: str, kept: str) -> None:
    """A good working folder is kept in its plain form."""
    assert Job(command=("true",), workdir=workdir).workdir == kept


@pytest.mark.parametrize("command", [("-rf", "x"), ("--help",), ("-",)])
def test_command_is_no_option(command: tuple[str, ...]) -> None:
    """An option in the place of a program is a forgotten word; so it is in the build step."""
    assert "name a program first" in complaint(command=command)
    assert "name a program first" in complaint(build=command)


def test_a_job_runs_something_and_is_spelt_right() -> None:
    assert complaint(command=())
    assert Job(command=("true",), build=()).build == ()
    assert complaint(comand=("true",))


@pytest.mark.parametrize("word", ["a\0b", "a/\ud800"])
def test_words_and_values_are_text(word: str) -> None:
    """A NUL or half a character, which no program could get, is refused in words, values and the working folder."""
    for wanted in ({"command": ("true", word)}, {"build": ("true", word)}, {"env": {"A": word}}, {"workdir": word}):
        assert "remove it" in complaint(**wanted)


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A=B", "A B", "A\n", "Ä", "a;b", "$(x)", "A" * 129])
def test_variable_names(name: str) -> None:
    """A name that a shell would not take is refused, with what it may consist of."""
    assert "letters, digits and _" in complaint(env={name: "x"})


@pytest.mark.parametrize("image", ["", "-v", "a b", "a;b", "a\n", "ä", "a" * 256])
def test_image_names(image: str) -> None:
    """An image name is a name, never an option or a line of shell."""
    assert complaint(image=image)


ABSURD: dict[str, tuple[object, ...]] = {
    "wall": (0, -1, "8d", float("nan"), float("inf")),
    "build": (0,),
    "grace": (-0.1,),
    "memory": ("1MiB", "17TiB"),
    "cpus": (0, 2000, "nan"),
    "pids": (1, 10**9),
    "open_files": (3,),
    "work_bytes": (0,),
    "work_inodes": (1,),
    "bundle_bytes": (0,),
    "log_bytes": (),
    "output_bytes": ("1TiB",),
    "output_files": (),
    "frame_bytes": (2**32,),
    "frames": (),
    "gpu": ("A100:0", "A100:65", "A100:-1", "A100:x", ":2", "-x"),
    "memry": (1,),
}


def test_absurd_limits() -> None:
    """A limit that no chamber could have is refused by its own name; no number may be negative or endless."""
    assert ABSURD.keys() == {*Limits.model_fields, "memry"}
    for limit, values in ABSURD.items():
        for value in (*values, -1, 2**63):
            with pytest.raises(ValidationError) as caught:
                Limits(**{limit: value})
            assert caught.value.errors()[0]["loc"][0] == limit


def test_limits_as_people_write_them() -> None:
    """Sizes, durations and GPUs may be given as text."""
    limits = Limits(memory="1GiB", wall="1h30m", gpu="A100:8")
    assert (limits.memory, limits.wall, limits.gpu) == (2**30, 5400.0, Gpu(kind="A100", count=8))
    assert str(limits.gpu) == "A100:8"
    assert Limits(gpu="H100").gpu == Gpu(kind="H100", count=1)


def test_unknown_limit_in_needs() -> None:
    """A need that names no limit is a typing error, answered with the names that there are."""
    with pytest.raises(ValidationError, match=r"'memry' is not a limit; known are wall"):
        Needs(enforced={"memry": Enforcer.ENGINE})


def test_input_names_and_digests() -> None:
    """An input's name is one plain part of a path, and its digest a digest, which becomes part of one."""
    names = [(name, DIGEST) for name in ("", ".", "..", "a/b", "-a", "a b")]
    for name, digest in [*names, *(("a", it) for it in ("", "0" * 63, "G" * 64, "../" + "0" * 61))]:
        with pytest.raises(ValidationError):
            Input(name=name, digest=digest)


def test_two_inputs_of_one_name() -> None:
    """Two inputs cannot have the same place."""
    item = Input(name="a", digest=DIGEST)
    assert "rename one" in complaint(inputs=(item, item))


@pytest.mark.parametrize(
    ("code", "signal"), [(None, None), (0, None), (128, None), (137, 9), (139, 11), (192, 64), (193, None)]
)
def test_signal_of_an_exit_code(code: int | None, signal: int | None) -> None:
    """128 + n is the shell's word for signal n; other codes are none."""
    assert Outcome(Ending.FAILED, code).signal == signal


def test_who_meets_whom() -> None:
    """Controller and engine are as good as each other; the guest is weaker, nobody the weakest."""
    strong = (Enforcer.CONTROLLER, Enforcer.ENGINE)
    for least in Enforcer:
        assert all(one.meets(least) for one in strong)
        assert Enforcer.GUEST.meets(least) == (least in (Enforcer.GUEST, Enforcer.NOBODY))
        assert Enforcer.NOBODY.meets(least) == (least is Enforcer.NOBODY)


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (Outcome(Ending.FAILED, exit_code=3), "exit code 3"),
        (Outcome(Ending.BUILD_FAILED, exit_code=139), "exit code 139 (signal 11)"),
        (Outcome(Ending.FAILED, exit_code=1, reason="said so"), "said so"),
        (Outcome(Ending.OUT_OF_MEMORY, exit_code=137), ""),
        (Outcome(Ending.COMPLETED, exit_code=0), ""),
    ],
)
def test_why_it_failed(outcome: Outcome, why: str) -> None:
    """A program that failed for no other reason is told by its exit code, and the signal that this stands for."""
    assert outcome.why == why
