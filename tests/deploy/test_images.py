"""The images on an engine: what chambers take, what each is for, and that no network is needed to build one."""

import json
import subprocess
from pathlib import Path

import pytest

from sandbox import Bundle, DockerConfig, Ending, Job, Limits
from sandbox.answers import Answer, fields, items, text
from sandbox.posture import image_objections
from tests.deploy.templates import IMAGES

KERNEL = """
import ctypes
compiler, program = ctypes.CDLL("libnvrtc.so.12"), ctypes.c_void_p()
source = b'#include <cuda_fp16.h>\\nextern "C" __global__ void there(float *x) { *x = __half2float(__float2half(*x)); }'
options = (ctypes.c_char_p * 2)(b"--gpu-architecture=sm_80", b"--include-path=/usr/local/cuda/include")
assert compiler.nvrtcCreateProgram(ctypes.byref(program), source, b"there.cu", 0, None, None) == 0
assert compiler.nvrtcCompileProgram(program, 2, options) == 0
size = ctypes.c_size_t()
assert compiler.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0
assert size.value > 1000
ctypes.CDLL("libcudart.so.12")
"""
TOOLKIT = """
FROM blastdoor-cuda:latest
RUN cp -rL /usr/local/cuda /usr/local/cuda-12.8 && rm -rf /usr/local/cuda && ln -s cuda-12.8 /usr/local/cuda \\
    && touch /usr/local/cuda/planted
ENV LD_LIBRARY_PATH=/usr/local/cuda/lib64
"""


def _docker(*words: str, stdin: str | None = None) -> str:
    result = subprocess.run(["docker", *words], input=stdin, capture_output=True, text=True, check=False)
    assert result.returncode == 0, (
        f"{result.stderr or result.stdout}; build the images with scripts/build-images judge cuda"
    )
    return result.stdout


def _config(image: str) -> Answer:
    return fields({"Config": json.loads(_docker("image", "inspect", "--format", "{{json .Config}}", image))}, "Config")


async def _runs(image: str, program: str) -> None:
    backend = await DockerConfig().connect()
    try:
        job = Job(command=("python3", "-c", program), image=image, limits=Limits(memory="1GiB", wall=120.0))
        async with await backend.open(job) as chamber:
            outcome = await chamber.run(Bundle({}))
    finally:
        await backend.close()
    assert outcome.ending is Ending.COMPLETED, outcome.log_tail


@pytest.mark.docker
@pytest.mark.parametrize("name", ["trial", "judge", "cuda", "agent"])
def test_chambers_take_it(name: str) -> None:
    """No user, volume, entry point or variable that a chamber would have to refuse; nothing that raises privileges."""
    config = _config(f"blastdoor-{name}:latest")
    assert image_objections(config) == []
    assert not text(config, "User")
    assert not items(config, "Entrypoint")
    raising = "find / -xdev -type f -perm /6000"
    tools = "for tool in sh head tar setpriv python3; do command -v $tool >/dev/null || echo $tool; done"
    run = ["run", "--rm", "--network", "none", f"blastdoor-{name}:latest", "sh", "-c"]
    assert _docker(*run, f"{raising}; {tools}") == ""


@pytest.mark.docker
async def test_judge_computes_with_arrays() -> None:
    """The judge's image has numpy, in a chamber like any other; the trial's has not."""
    await _runs("blastdoor-judge:latest", "import numpy; assert numpy.arange(4).sum() == 6")
    await _runs("blastdoor-trial:latest", "import importlib.util; assert importlib.util.find_spec('numpy') is None")


@pytest.mark.docker
async def test_cuda_compiles_without_a_gpu() -> None:
    """In a chamber, without variables from the image: the compiler is found, with NVIDIA's headers."""
    await _runs("blastdoor-cuda:latest", KERNEL)


@pytest.mark.touching("packaging")
@pytest.mark.docker
async def test_toolkit_leaves_the_environment_behind(tmp_path: Path) -> None:
    """NVIDIA's own image, here a stand-in made like it, gives its files and not its variables."""
    tags = ["blastdoor-test-toolkit-source:latest", "blastdoor-test-toolkit:latest"]
    try:
        _docker("build", "--quiet", "--network", "none", "--tag", tags[0], "-", stdin=TOOLKIT)
        source, target = (
            f"--build-arg={name}={value}" for name, value in (("TOOLKIT", tags[0]), ("BASE", "blastdoor-cuda:latest"))
        )
        _docker("build", "--quiet", "--network", "none", source, target, "--tag", tags[1], str(IMAGES / "toolkit"))
        config = _config(tags[1])
        assert image_objections(config) == []
        await _runs(tags[1], "import os; assert os.path.exists('/usr/local/cuda/planted')" + KERNEL)
    finally:
        _docker("rmi", "--force", *tags)
