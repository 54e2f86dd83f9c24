"""The gpu_reduce example as far as no GPU is needed: the judge, the task file, the kernel's compiling.

A stand-in without a GPU takes the candidate's place, with questions that it can answer in time; the judge is the same.
That the kernels are right on a GPU is tried by `blastdoor check examples/gpu_reduce`, where there is one.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestrator.change import File, Tree
from orchestrator.domain.fingerprint import GPU
from orchestrator.domain.tier import Tier
from orchestrator.loop.rehearsal import Rehearsal, rehearse
from orchestrator.settings import Settings
from orchestrator.task import Choice, Task, load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.wiring.backends.docker import docker_config, docker_site
from orchestrator.wiring.parts import make_parts
from orchestrator.wiring.site import Site
from sandbox import Bundle, DockerConfig, Ending, ImageSpec, Job, Limits
from tests.examples.judging import EXAMPLES
from tests.orchestrator.views.judging.stage import Stage
from tests.started import completed

FOLDER = EXAMPLES / "gpu_reduce"
BASELINE = json.loads((FOLDER / "workspace/params.json").read_text())
SMALLER = {"VALUES": "2000", "KEYS": "60"}
CALLS = 24

STAND_IN = """
from blastdoor_values import Array
import array

def numbers(given):
    return array.array("I", given.data if isinstance(given, Array) else given.tobytes())

def answers(values, keys):
    found = []
    for key in keys:
        total = 0
        for value in values:
            t = (value ^ key) * 0x9E3779B1 & 0xFFFFFFFF
            t = (t ^ t >> 15) * 0x85EBCA77 & 0xFFFFFFFF
            total += t ^ t >> 13
        found.append(total & 0xFFFFFFFF)
    return found

def told(found):
    return Array("u4", (len(found),), array.array("I", found).tobytes())

def solve(values, keys):
    return told(answers(numbers(values), numbers(keys)))
"""


def solving(body: str) -> str:
    """The stand-in with another `solve`."""
    begun = "kept = {}\ndef solve(values, keys):\n    values, keys = numbers(values), numbers(keys)"
    return f"{STAND_IN}\n{begun}\n{body}\n"


def without_gpu() -> Task:
    """The task with smaller questions, on an image that is always there."""
    task = load_task(FOLDER)
    image = task.image.model_copy(update={"base": None})
    limits = task.limits.model_copy(update={"gpu": None, "memory": 256 << 20})
    judge = task.judge.model_copy(update={"env": SMALLER})
    return task.model_copy(update={"image": image, "limits": limits, "judge": judge})


async def judged_on(site: Site, solve: str) -> Rehearsal:
    task = without_gpu()
    taken = snapshot(task, FOLDER)
    tree = Tree({**taken.tree, "solve.py": File(solve.encode())})
    return await rehearse(await make_parts(task, taken, site), tree=tree)


async def judged(solve: str) -> Rehearsal:
    async with Stage().site() as site:
        return await judged_on(site, solve)


def test_task_file_is_good() -> None:
    """The task is read without a warning, asks for a GPU, is timed from outside, and its times are bound to the GPU."""
    task = load_task(FOLDER)
    assert task.warnings == ()
    assert (str(task.limits.gpu), task.judge.mode, task.search.width) == ("any:1", "relay", 1)
    assert task.metrics[0].timing
    assert set(GPU) <= set(task.metrics[0].binds)
    assert "cuda.py" not in task.editable
    assert task.parameters
    assert set(task.parameters.space) == set(BASELINE)
    for name, choice in task.parameters.space.items():
        assert isinstance(choice, Choice)
        assert BASELINE[name] in choice.values


async def test_right_answers_have_a_time() -> None:
    """Every size is asked, small ones before and after the timed calls, and the time is the channel's."""
    run = await judged(STAND_IN)
    assert run.scored, (run.reason, run.judgement)
    assert run.verdict
    assert run.verdict.tier is Tier.RELAY
    assert run.calibration
    assert run.calibration.calls >= CALLS
    assert 0 < run.verdict.metrics["seconds"] <= run.verdict.metrics["slowest"]


WRONG = {
    "one too many": "    return told([it + 1 & 0xFFFFFFFF for it in answers(values, keys)])",
    "nothing added up": "    return told([0] * len(keys))",
    "the last value is left out": "    return told(answers(values[:-1], keys))",
    "the last key is left out": "    return told(answers(values, keys[:-1]) + [0] * (len(keys) > 0))",
    "every other key": "    return told([it * (at % 2) for at, it in enumerate(answers(values, keys))])",
    "right while it is small": "    return told(answers(values, keys) if len(values) < 2000 else [7] * len(keys))",
    "answers of an earlier call": "    return told(kept.setdefault(len(keys), answers(values, keys)))",
    "answers made before": "    return told([2654435761 * len(values) + it & 0xFFFFFFFF for it in keys])",
}
NO_ANSWER = {
    "NaN": '    return Array("f4", (len(keys),), array.array("f", [float("nan")] * len(keys)).tobytes())',
    "right, as floats": '    return Array("f8", (len(keys),), array.array("d", answers(values, keys)).tobytes())',
    "right, as a list": "    return answers(values, keys)",
    "right, with a sign": '    return Array("i4", (len(keys),), told(answers(values, keys)).data)',
    "right, in another shape": '    return Array("u4", (1, len(keys)), told(answers(values, keys)).data)',
    "one more": "    return told([*answers(values, keys), 0])",
    "nothing": "    return None",
}


@pytest.mark.parametrize("name", [*WRONG, *NO_ANSWER])
async def test_wrong_is_no_solution(name: str) -> None:
    """However fast, what is wrong, of another kind, or was not added up for this very question, has no time."""
    run = await judged(solving((WRONG | NO_ANSWER)[name]))
    assert run.verdict
    assert (run.verdict.valid, run.ending) == (False, None)
    wanted = "an answer is wrong" if name in WRONG else "the answer must be an array of"
    assert wanted in run.verdict.notes


async def test_without_a_gpu_the_candidate_says_so() -> None:
    """The real candidate, where there is none, fails with a line that says what to do."""
    blind = 'import os\nos.environ["CUDA_VISIBLE_DEVICES"] = ""\n'  # the machine may have one
    run = await judged(blind + (FOLDER / "workspace/solve.py").read_text())
    assert not run.scored
    assert "this chamber has no GPU; ask for one in limits.gpu" in run.reason


@pytest.mark.touching("examples")
@pytest.mark.docker
async def test_in_real_chambers(tmp_path: Path) -> None:
    """The stand-in and the judge, each in a chamber of its own, with frames carried between them."""
    settings = Settings()
    async with docker_site(docker_config(settings, inputs_folder=tmp_path), settings.image) as site:
        run = await judged_on(site, STAND_IN)
    assert run.scored, (run.reason, run.judgement)
    assert run.calibration
    assert run.calibration.calls >= CALLS


@pytest.mark.touching("examples")
@pytest.mark.docker
def test_check_up_to_the_missing_gpu(tmp_path: Path) -> None:
    """`blastdoor check` reads the task, and says in one line that this engine has no GPU."""
    if Path("/proc/driver/nvidia/gpus").exists():
        pytest.skip("this machine has GPUs: what is tested here is their absence")
    folder = tmp_path / "task"
    shutil.copytree(FOLDER, folder)
    text = (folder / "blastdoor.toml").read_text()
    (folder / "blastdoor.toml").write_text(text.replace("blastdoor-cuda:latest", "blastdoor-trial:latest"))
    ran = completed("check", folder)
    assert ran.returncode == 1, ran.stderr
    assert "✗ images, inputs or GPUs cannot be had" in ran.stdout
    assert "the engine has no GPU runtime; install the NVIDIA container toolkit" in ran.stdout


COMPILE = """
import json, cuda
source = open("kernel.cu").read()
made = {}
for architecture in (75, 80, 86, 89, 90, 100, 120):
    for keys in (1, 8):
        code, exact = cuda.compile_source(source, architecture, {"THREADS": 64, "KEYS": keys, "TILE": 4096})
        made[architecture] = [exact, all(name in code for name in (b"atomics", b"sums", b"tiles"))]
try:
    cuda.compile_source(source + "oops", 90, {"THREADS": 64, "KEYS": 1, "TILE": 256})
except cuda.CudaError as error:
    made["broken"] = str(error)
print(json.dumps(made))
"""


@pytest.mark.touching("examples")
@pytest.mark.docker
async def test_kernels_compile_without_a_gpu() -> None:
    """NVRTC needs no GPU: all kernels compile for seven generations, as PTX for those that came after it."""
    spec = ImageSpec(base="blastdoor-trial:latest", pip=("nvidia-cuda-nvrtc-cu12==12.6.85",))
    image = (await DockerConfig().bake(spec, lambda _: None)).name
    files: Any = {name: (FOLDER / "workspace" / name).read_text() for name in ("cuda.py", "kernel.cu")}
    backend = await DockerConfig().connect()
    try:
        job = Job(command=("python3", "compile.py"), image=image, limits=Limits(wall=600, memory="512MiB"))
        async with await backend.open(job) as chamber:
            outcome = await chamber.run(Bundle.of(**files, **{"compile.py": COMPILE}))
    finally:
        await backend.close()
    assert outcome.ending is Ending.COMPLETED, outcome.log_tail
    made = json.loads(outcome.log_tail)
    assert "kernel.cu does not compile" in made.pop("broken")
    assert made == {str(number): [number <= 90, True] for number in (75, 80, 86, 89, 90, 100, 120)}
