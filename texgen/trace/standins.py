"""What stands in for a GPU where there is none, so that a program's host code reaches the compiler.

Each replacement notes its name when the program first meets it; the report lists those.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

met: dict[str, None] = {}
"""The replacements that the program has used, in order."""
note: list[Callable[[str], None]] = []
"""Told of each name when it is first met."""

SM_COUNT = {80: 108, 86: 84, 89: 128, 90: 132, 100: 148, 103: 160, 120: 170, 121: 48}
SMEM_OPTIN = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 103: 232448, 120: 101376, 121: 101376}


def meet(name: str) -> None:
    if name not in met:
        met[name] = None
        for tell in note:
            tell(name)


def device_count() -> int:
    """How many CUDA devices the driver offers; 0 where there is no driver."""
    for library in ("libcuda.so.1", "libcuda.so", "nvcuda.dll"):
        with contextlib.suppress(OSError, AttributeError):
            cuda = ctypes.CDLL(library)
            count = ctypes.c_int(0)
            if cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0:
                return count.value
            return 0
    return 0


class Device:
    """The GPU that the stand-ins speak of."""

    def __init__(self, arch: str) -> None:
        found = re.search(r"(\d+)", arch)
        self.number = int(found[1]) if found else 80
        self.capability = divmod(self.number, 10)
        self.multiprocessors = SM_COUNT.get(self.number, 132)
        self.smem = SMEM_OPTIN.get(self.number, 232448)
        self.name = f"texgen stand-in for {arch or 'a GPU'}"


def standin(name: str, value: Any) -> Callable[..., Any]:
    """A function of that name that gives ``value``."""

    def replacement(*args: Any, **kwargs: Any) -> Any:
        meet(name)
        return value() if isinstance(value, types.FunctionType) else value

    replacement.__name__ = replacement.__qualname__ = name.rsplit(".", 1)[-1]
    return replacement


# cuda.bindings


def patch_bindings(device: Device) -> None:
    """``cuInit``, ``cuDeviceGet``, streams, events, memory: success, and plausible values."""
    for path in ("cuda.bindings.driver", "cuda.bindings.runtime", "cuda.cuda", "cuda.cudart"):
        try:
            module = importlib.import_module(path)
        except Exception:
            continue
        driver = path.endswith(("driver", ".cuda"))
        for name in dir(module):
            if re.match(r"(cu|cuda)[A-Z]\w+$", name) and not isinstance(getattr(module, name), type):
                with contextlib.suppress(AttributeError, TypeError):
                    setattr(module, name, _binding(module, path, name, driver, device))


def _binding(module: Any, path: str, name: str, driver: bool, device: Device) -> Callable[..., Any]:
    short = name[2:] if driver else name[4:]
    label = f"{path}.{name}"
    success = getattr(getattr(module, "CUresult" if driver else "cudaError_t"), "CUDA_SUCCESS" if driver else "cudaSuccess")

    def replacement(*args: Any, **kwargs: Any) -> Any:
        meet(label)
        return (success, *_values(module, short, driver, args, device))

    replacement.__name__ = name
    return replacement


def _values(module: Any, short: str, driver: bool, args: tuple[Any, ...], device: Device) -> tuple[Any, ...]:
    def make(cls: str) -> Any:
        kind = getattr(module, cls, None)
        with contextlib.suppress(Exception):
            return kind(0) if kind is not None else 0
        with contextlib.suppress(Exception):
            return kind() if kind is not None else 0
        return 0

    prefix = "CU" if driver else "cuda"
    if short in ("DeviceGetCount", "GetDeviceCount"):
        return (1,)
    if short in ("DeviceGet", "CtxGetDevice"):
        return (make("CUdevice"),)
    if short == "GetDevice":
        return (0,)
    if short in ("DriverGetVersion", "RuntimeGetVersion"):
        return (13000,)
    if short == "DeviceGetName":
        return (device.name.encode(),)
    if short in ("DeviceGetAttribute",):
        return (_attribute(str(args[0] if args else ""), device),)
    if short == "DeviceComputeCapability":
        return device.capability
    if short == "GetDeviceProperties":
        return (properties(device),)
    if short in ("GetErrorString", "GetErrorName"):
        return (b"no error",) if driver else ("no error",)
    if short in ("MemGetInfo",):
        return (80 << 30, 80 << 30)
    if short.startswith(("MemAlloc", "Malloc")):
        size = next((a for a in args if isinstance(a, int)), 0)
        memory = ctypes.create_string_buffer(size)
        _memory.append(memory)
        address = ctypes.addressof(memory)
        kind = getattr(module, "CUdeviceptr", None)
        return (kind(address) if driver and kind is not None else address,)
    if "ElapsedTime" in short:
        return (1.0,)
    for word, cls in (("Stream", "stream"), ("Event", "event"), ("Graph", "graph"), ("Ctx", "context"), ("Module", "module")):
        if short.startswith((f"{word}Create", f"{word}Get", f"{word}Load")) or (word == "Ctx" and short.endswith("Retain")):
            named = {"context": "CUcontext"}.get(cls, f"{prefix}{cls}" if driver else f"cuda{word}_t")
            return (make(named),)
    if re.search(r"Get|Create|Alloc|Retain|Load|Occupancy|Enumerate", short):
        return (0,)
    return ()


_memory: list[Any] = []


def _attribute(name: str, device: Device) -> int:
    name = name.upper().replace("_", "")
    if "COMPUTECAPABILITYMAJOR" in name:
        return device.capability[0]
    if "COMPUTECAPABILITYMINOR" in name:
        return device.capability[1]
    if "MULTIPROCESSORCOUNT" in name:
        return device.multiprocessors
    if "SHAREDMEMORYPER" in name:
        return device.smem
    if "L2CACHE" in name:
        return 50 << 20
    return 1024 if "THREADSPERBLOCK" in name else 32 if "WARPSIZE" in name else 1


def properties(device: Device) -> types.SimpleNamespace:
    major, minor = device.capability
    return types.SimpleNamespace(
        name=device.name, major=major, minor=minor, multi_processor_count=device.multiprocessors,
        multiProcessorCount=device.multiprocessors, total_memory=80 << 30, totalGlobalMem=80 << 30, warp_size=32,
        shared_memory_per_block=49152, shared_memory_per_block_optin=device.smem, sharedMemPerBlockOptin=device.smem,
        shared_memory_per_multiprocessor=device.smem, max_threads_per_multi_processor=2048, max_threads_per_block=1024,
        L2_cache_size=50 << 20, regs_per_multiprocessor=65536, gcnArchName="", is_integrated=0, uuid="texgen",
        clock_rate=1_700_000, memory_clock_rate=2_600_000, memory_bus_width=5120,
    )  # fmt: skip


# The DSL


def patch_dsl(device: Device) -> None:
    """``HardwareInfo``, tensors of the CPU typed as global memory, ``benchmark`` and ``convert``."""
    from texgen.trace.wrapping import rename

    with contextlib.suppress(Exception):
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            hardware = importlib.import_module("cutlass.utils.hardware_info").HardwareInfo
        hardware.__init__ = _hardware_init
        for name, value in (
            ("get_max_active_clusters", lambda self, cluster_size=1, *a, **k: max(1, device.multiprocessors // max(1, int(cluster_size)))),
            ("get_l2_cache_size_in_bytes", lambda self: 50 << 20),
            ("get_device_multiprocessor_count", lambda self: device.multiprocessors),
        ):
            if hasattr(hardware, name):
                setattr(hardware, name, _noted(f"cutlass.utils.HardwareInfo.{name}", value))
    runtime = importlib.import_module("cutlass.cute.runtime")
    tensor = runtime._Tensor
    original = tensor.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if as_global(getattr(self, "_dlpack_data", None)):
            meet("cute.runtime.from_dlpack (CPU tensors typed as global memory)")

    tensor.__init__ = init
    swap: dict[int, Any] = {}
    for path in ("cutlass.testing", "cutlass.cute.testing"):
        with contextlib.suppress(Exception):
            module = importlib.import_module(path)
            if callable(getattr(module, "benchmark", None)):
                swap[id(module.benchmark)] = _benchmark(module.benchmark)
            if callable(getattr(module, "convert", None)):
                swap[id(module.convert)] = standin("cute.testing.convert", None)
    rename(swap)


def _hardware_init(self: Any, device_id: int = 0) -> None:
    meet("cutlass.utils.HardwareInfo")
    self.device_id, self.device, self.context, self.driver_version = device_id, device_id, None, 13000


def _noted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def replacement(*args: Any, **kwargs: Any) -> Any:
        meet(name)
        return function(*args, **kwargs)

    replacement.__name__ = name.rsplit(".", 1)[-1]
    return replacement


def _benchmark(original: Any) -> Any:
    """Calls the function once (which counts as a launch) and gives a microsecond."""

    @functools.wraps(original)
    def benchmark(callable: Any, *args: Any, **kwargs: Any) -> float:
        meet("cutlass.testing.benchmark")
        arguments = kwargs.get("kernel_arguments")
        if arguments is None and kwargs.get("workspace_generator") is not None:
            arguments = kwargs["workspace_generator"]()
        if arguments is not None:
            callable(*arguments.args, **arguments.kwargs)
        return 1.0

    return benchmark


def as_global(capsule: Any) -> bool:
    """Mark a DLPack capsule's memory as a CUDA device's; False where it is none of the CPU's."""
    api = ctypes.pythonapi
    api.PyCapsule_IsValid.restype, api.PyCapsule_IsValid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    # DLManagedTensor begins with the DLTensor; the versioned form has version, context, deleter and flags before it.
    for name, offset in ((b"dltensor", 0), (b"dltensor_versioned", 32)):
        if type(capsule).__name__ == "PyCapsule" and api.PyCapsule_IsValid(capsule, name):
            kind = ctypes.c_int32.from_address(api.PyCapsule_GetPointer(capsule, name) + offset + ctypes.sizeof(ctypes.c_void_p))
            if kind.value == 1:
                kind.value = 2
                return True
    return False


# torch


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls ``then`` once a module has been imported."""

    def __init__(self, name: str, then: Callable[[Any], None]) -> None:
        self.name, self.then = name, then

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        loader, then = spec.loader, self.then
        run = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            run(module)
            then(module)

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def patch_torch_when_imported(device: Device) -> None:
    if "torch" in sys.modules:
        patch_torch(sys.modules["torch"], device)
    else:
        sys.meta_path.insert(0, _AfterImport("torch", lambda torch: patch_torch(torch, device)))
    if "numpy" in sys.modules:
        patch_numpy(sys.modules["numpy"])


launches_skipped = [0]
"""How many launches did not happen: comparisons after one mean nothing."""


def _compares(name: str, original: Any, agreed: Any) -> Any:
    @functools.wraps(original)
    def compare(*args: Any, **kwargs: Any) -> Any:
        if launches_skipped[0]:
            meet(f"{name} (nothing was computed)")
            return agreed(original(*args, **kwargs)) if callable(agreed) else agreed
        return original(*args, **kwargs)

    return compare


def patch_numpy(numpy: Any) -> None:
    testing = getattr(numpy, "testing", None)
    for name in ("assert_allclose", "assert_array_equal", "assert_array_almost_equal", "assert_equal"):
        if testing is not None and hasattr(testing, name):
            setattr(testing, name, _compares(f"numpy.testing.{name}", getattr(testing, name), None))
    for name in ("allclose", "array_equal"):
        setattr(numpy, name, _compares(f"numpy.{name}", getattr(numpy, name), True))
    numpy.isclose = _compares("numpy.isclose", numpy.isclose, lambda found: found | True)


def _is_cuda(value: Any) -> bool:
    if isinstance(value, str):
        return value.split(":")[0] == "cuda"
    return type(value).__name__ == "device" and getattr(value, "type", "") == "cuda"


def patch_torch(torch: Any, device: Device) -> None:
    """``torch.cuda``, ``.cuda()``, ``device="cuda"`` and comparisons after a launch that did not happen."""
    from torch.overrides import TorchFunctionMode

    tensor = torch.Tensor
    is_cuda, its_device = (getattr(getattr(tensor, name), "__get__", None) for name in ("is_cuda", "device"))
    cpu, first = torch.device("cpu"), torch.device("cuda:0")

    class OnCpu(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func is torch.device:  # only a name: it is replaced where a tensor is made on it
                return func(*args, **kwargs)
            if func == its_device:  # what the program asks; torch's own code sees the CPU
                meet("torch.Tensor.device")
                found = func(*args, **kwargs)
                return first if found.type == "cpu" else found
            if func is tensor.get_device:
                meet("torch.Tensor.get_device")
                return 0
            if func is tensor.cuda:
                meet("torch.Tensor.cuda")
                return args[0]
            if func == is_cuda:
                meet("torch.Tensor.is_cuda")
                return True
            if func is tensor.record_stream:
                return None
            if func is tensor.pin_memory:
                return args[0]
            if _is_cuda(kwargs.get("device")) or (type(kwargs.get("device")) is int):
                meet("torch: device='cuda' on the CPU")
                kwargs = {**kwargs, "device": cpu}
            if kwargs.get("pin_memory"):
                kwargs = {**kwargs, "pin_memory": False}
            if any(_is_cuda(a) for a in args):
                meet("torch: device='cuda' on the CPU")
                args = tuple(cpu if _is_cuda(a) else a for a in args)
            return func(*args, **kwargs)

    def enter() -> None:
        OnCpu().__enter__()

    enter()
    start = getattr(threading.Thread, "_bootstrap_inner", None)
    if start is not None:

        def bootstrap(self: Any) -> None:
            enter()
            start(self)

        threading.Thread._bootstrap_inner = bootstrap  # type: ignore[attr-defined]
    _patch_cuda(torch, device)
    set_default = torch.set_default_device

    def set_default_device(where: Any) -> None:
        if _is_cuda(where):
            meet("torch.set_default_device")
            where = "cpu"
        set_default(where)

    torch.set_default_device = set_default_device
    generator = torch.Generator

    def new(cls: Any, device: Any = "cpu") -> Any:
        return generator.__new__(cls, "cpu" if _is_cuda(device) else device)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        return None

    torch.Generator = type("Generator", (generator,), {"__new__": new, "__init__": init})
    torch.allclose = _compares("torch.allclose", torch.allclose, True)
    torch.equal = _compares("torch.equal", torch.equal, True)
    torch.isclose = _compares("torch.isclose", torch.isclose, lambda found: found | True)
    finder = _AfterImport("torch.testing", lambda m: _patch_testing(m))
    if "torch.testing" in sys.modules:
        _patch_testing(sys.modules["torch.testing"])
    else:
        sys.meta_path.insert(0, finder)


def _patch_testing(testing: Any) -> None:
    if hasattr(testing, "assert_close"):
        testing.assert_close = _compares("torch.testing.assert_close", testing.assert_close, None)


class Stream:
    """A CUDA stream, event, graph or context manager that does nothing."""

    cuda_stream = 0
    stream_id = 0
    device_index = 0
    cuda_event = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        meet(f"torch.cuda.{type(self).__name__}")

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def elapsed_time(self, *args: Any) -> float:
        return 1.0

    def query(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None

    def __call__(self, function: Any = None) -> Any:
        return function


class Event(Stream):
    pass


class CUDAGraph(Stream):
    pass


def _patch_cuda(torch: Any, device: Device) -> None:
    cuda = torch.cuda
    values: dict[str, Any] = {
        "is_available": True, "device_count": 1, "current_device": 0, "is_initialized": True, "init": None,
        "get_device_capability": device.capability, "get_device_name": device.name, "set_device": None,
        "synchronize": None, "empty_cache": None, "memory_allocated": 0, "max_memory_allocated": 0,
        "memory_reserved": 0, "reset_peak_memory_stats": None, "mem_get_info": (80 << 30, 80 << 30),
        "manual_seed": None, "manual_seed_all": None, "seed_all": None, "is_bf16_supported": True, "ipc_collect": None,
        "get_device_properties": lambda: properties(device), "get_arch_list": [f"sm_{device.number}"],
        "current_stream": lambda: Stream(), "default_stream": lambda: Stream(), "set_stream": None,
        "is_current_stream_capturing": False, "utilization": 0, "device": lambda: Stream(), "stream": lambda: Stream(),
        "graph": lambda: Stream(), "cudart": lambda: Stream(), "_lazy_init": None,
    }  # fmt: skip
    for name, value in values.items():
        setattr(cuda, name, standin(f"torch.cuda.{name}", value))
    cuda.Stream, cuda.Event, cuda.CUDAGraph, cuda.ExternalStream = Stream, Event, CUDAGraph, Stream
    for name in ("range_push", "range_pop", "range", "mark"):
        nvtx = getattr(cuda, "nvtx", None)
        if nvtx is not None and hasattr(nvtx, name):
            setattr(nvtx, name, standin(f"torch.cuda.nvtx.{name}", (lambda: Stream()) if name == "range" else None))


def names() -> Iterator[str]:
    """The replacements met so far."""
    return iter(met)
