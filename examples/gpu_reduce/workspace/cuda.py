"""The driver and NVIDIA's run-time compiler, through ctypes: nothing else is needed to run a kernel from its source.

libcuda comes with the driver of the machine, libnvrtc with the image. Not to be edited.
"""

import ctypes
import ctypes.util
import sys
from collections.abc import Iterator
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any

_COMPUTE_MAJOR, _COMPUTE_MINOR = 75, 76
_COMPILERS = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so")


class CudaError(RuntimeError):
    """A call of the driver or the compiler failed; the message has its own words."""


def _compilers() -> Iterator[str]:
    """By name, then in the folders of NVIDIA's wheels."""
    yield from _COMPILERS
    for folder in sys.path:
        yield from sorted(str(path) for path in Path(folder).glob("nvidia/*/lib/libnvrtc.so.*[0-9]"))


def load_compiler() -> ctypes.CDLL:
    for name in _compilers():
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise CudaError("libnvrtc is not here; use an image with NVIDIA's run-time compiler, like blastdoor-cuda")


def compile_source(source: str, architecture: int | None, defines: dict[str, int]) -> tuple[bytes, bool]:
    """Machine code for this architecture where the compiler knows it, else PTX for the newest that it knows.

    The second value tells whether it is machine code. None as the architecture is the newest that it knows.
    """
    nvrtc = load_compiler()
    nvrtc.nvrtcGetErrorString.restype = c_char_p

    def check(code: int, doing: str) -> None:
        if code:
            raise CudaError(f"{doing}: {nvrtc.nvrtcGetErrorString(code).decode()}")

    amount = c_int()
    check(nvrtc.nvrtcGetNumSupportedArchs(byref(amount)), "architectures")
    known = (c_int * amount.value)()
    check(nvrtc.nvrtcGetSupportedArchs(known), "architectures")
    usable = [it for it in known if architecture is None or it <= architecture]
    if not usable:
        raise CudaError(f"this compiler knows no GPU as old as architecture {architecture}; use an older one")
    newest = max(usable)
    exact = architecture is None or newest == architecture
    program = c_void_p()
    check(nvrtc.nvrtcCreateProgram(byref(program), source.encode(), b"kernel.cu", 0, None, None), "create")
    words = [f"--gpu-architecture={'sm' if exact else 'compute'}_{newest}", "--std=c++17"]
    words += [f"--define-macro={name}={value}" for name, value in defines.items()]
    code = nvrtc.nvrtcCompileProgram(program, len(words), (c_char_p * len(words))(*(it.encode() for it in words)))
    kind = "CUBIN" if exact else "PTX"
    if code:
        raise CudaError(f"kernel.cu does not compile:\n{_text(nvrtc, program, 'ProgramLog').decode(errors='replace')}")
    made = _text(nvrtc, program, kind)
    nvrtc.nvrtcDestroyProgram(byref(program))
    return made, exact


def _text(nvrtc: ctypes.CDLL, program: c_void_p, what: str) -> bytes:
    size = c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, text)
    return text.raw


class Gpu:
    """The first GPU that is there, with a context on it."""

    def __init__(self) -> None:
        try:
            self.driver = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise CudaError("libcuda.so.1 is not here: this chamber has no GPU; ask for one in limits.gpu") from None
        self.call("cuInit", 0)
        device, self._context = c_int(), c_void_p()
        self.call("cuDeviceGet", byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", byref(self._context), device)
        self.call("cuCtxSetCurrent", self._context)
        major, minor = c_int(), c_int()
        self.call("cuDeviceGetAttribute", byref(major), _COMPUTE_MAJOR, device)
        self.call("cuDeviceGetAttribute", byref(minor), _COMPUTE_MINOR, device)
        self.architecture = 10 * major.value + minor.value

    def call(self, name: str, *arguments: Any) -> None:
        if code := getattr(self.driver, name)(*arguments):
            text = c_char_p()
            self.driver.cuGetErrorString(code, byref(text))
            raise CudaError(f"{name}: {(text.value or b'unknown error').decode()}")

    def compile(self, source: str, name: str, **defines: int) -> "Kernel":
        code, _ = compile_source(source, self.architecture, defines)
        return Kernel(self, code, name)

    def wait(self) -> None:
        self.call("cuCtxSynchronize")


class Kernel:
    """`kernel((blocks, splits), threads, *arguments)`: whole numbers are u4, addresses are `Address`es."""

    def __init__(self, gpu: Gpu, code: bytes, name: str) -> None:
        self._gpu = gpu
        self._module, self._function = c_void_p(), c_void_p()
        gpu.call("cuModuleLoadData", byref(self._module), code)
        gpu.call("cuModuleGetFunction", byref(self._function), self._module, name.encode())

    def __call__(self, blocks: tuple[int, int], threads: int, *arguments: "int | c_uint64") -> None:
        held = [it if isinstance(it, c_uint64) else c_uint(it) for it in arguments]
        places = (c_void_p * len(held))(*(ctypes.cast(byref(it), c_void_p) for it in held))
        self._gpu.call("cuLaunchKernel", self._function, *blocks, 1, threads, 1, 1, 0, None, places, None)


class Buffer:
    """Memory of the GPU that grows as it must."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._room = 0
        self.size = 0
        self.address = c_uint64()

    def put(self, data: bytes) -> None:
        self._resize(len(data))
        if data:
            self._gpu.call("cuMemcpyHtoD_v2", self.address, data, c_size_t(len(data)))

    def zeros(self, size: int) -> None:
        self._resize(size)
        if size:
            self._gpu.call("cuMemsetD8_v2", self.address, 0, c_size_t(size))

    def get(self) -> bytes:
        """Waits for what was launched before."""
        data = ctypes.create_string_buffer(max(1, self.size))
        if self.size:
            self._gpu.call("cuMemcpyDtoH_v2", data, self.address, c_size_t(self.size))
        else:
            self._gpu.wait()
        return data.raw[: self.size]

    def _resize(self, size: int) -> None:
        self.size = size
        if size > self._room:
            if self._room:
                self._gpu.call("cuMemFree_v2", self.address)
            self.address = c_uint64()
            self._gpu.call("cuMemAlloc_v2", byref(self.address), c_size_t(size))
            self._room = size
