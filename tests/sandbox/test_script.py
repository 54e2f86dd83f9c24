"""The shell lines that become a job's programs: names and values stay data."""

import subprocess

from sandbox import Job
from sandbox.script import scripts

HOSTILE = [
    *("$(touch owned)", "`touch owned`", "a b", "'", '"', "\\", "a\nb", ";exit 9", "&& exit 9", "*", "~", "", "é"),
    "-n",
]


def test_script_keeps_words_apart() -> None:
    """Whatever stands in words and values reaches the program as it is: nothing of it is shell."""
    show = "import os, sys; print(ascii(sys.argv[1:])); print(ascii([os.environ[f'V{n}'] for n in range(14)]))"
    job = Job(command=("python3", "-c", show, *HOSTILE), env={f"V{n}": value for n, value in enumerate(HOSTILE)})
    script = scripts(job)["run.sh"].decode()
    assert script.startswith("cd /work/src/. && ")
    ran = subprocess.run(["sh", "-c", "cd() { :; }\n" + script], check=True, capture_output=True, text=True)
    assert ran.stdout == f"{HOSTILE!a}\n" * 2


def test_script_quotes_the_folder() -> None:
    """A working folder is one word, whatever it contains."""
    job = Job(command=("true",), workdir="a b; exit 9/$(x)'")
    script = 'cd() { printf %s "$*"; }\n' + scripts(job)["run.sh"].decode()
    ran = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True)
    assert ran.stdout == "/work/src/a b; exit 9/$(x)'"


def test_build_has_a_script_of_its_own() -> None:
    """A job with a build step has two scripts, one without it has one."""
    assert set(scripts(Job(command=("true",)))) == {"run.sh"}
    both = scripts(Job(command=("true",), build=("make", "all")))
    assert set(both) == {"run.sh", "build.sh"}
    assert both["build.sh"].rstrip().endswith(b"exec make all")
