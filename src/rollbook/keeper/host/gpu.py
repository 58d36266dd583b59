"""GPU probes: NVIDIA through the driver's library, else through nvidia-smi; AMD through the kernel's files.

Nothing is installed, imported or started unless the machine has such a device. Reading NVML makes no CUDA context and
takes no GPU memory. Keys are host/gpu/<index>/utilization_percent, memory_used_bytes, memory_total_bytes,
temperature_celsius and power_watts. A value that the device does not report is missing.
"""

from __future__ import annotations

import os

from rollbook.system.files import exists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rollbook.protocols import Probe

_FIELDS = ("utilization.gpu", "memory.used", "memory.total", "temperature.gpu", "power.draw")
_KEYS = ("utilization_percent", "memory_used_bytes", "memory_total_bytes", "temperature_celsius", "power_watts")
_SCALES = (1.0, 2.0**20, 2.0**20, 1.0, 1.0)


def gpu_probe(devices: str = "/dev", drm: str = "/sys/class/drm") -> Probe | None:
    """The probe for this machine's GPUs, None if it has none that can be read."""
    if exists(f"{devices}/nvidiactl") or exists(f"{devices}/dxg") or os.name == "nt":
        try:
            return NvidiaGpus()
        except (OSError, AttributeError):
            smi = _find("nvidia-smi")
            if smi is not None:
                return NvidiaSmi(smi)
    amd = AmdGpus(drm)
    return amd if amd.count else None


class NvidiaGpus:
    """All GPUs that this process may see, by NVML.

    Args:
      library: a loaded NVML; by default the driver's.
    Raises:
      OSError: there is no library, or it does not find its driver.
    """

    def __init__(self, library: Any = None) -> None:
        import ctypes

        self._c = ctypes
        if library is None:
            library = ctypes.CDLL("nvml.dll" if os.name == "nt" else "libnvidia-ml.so.1")
        self._nvml = library
        if self._nvml.nvmlInit_v2() != 0:
            raise OSError("the NVIDIA driver's library is there, but it finds no driver")
        count = ctypes.c_uint(0)
        self._nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
        self._handles: dict[int, Any] = {}
        for index in _visible(count.value, self._uuid):
            handle = self._handle(index)
            if handle is not None:
                self._handles[index] = handle

    def __call__(self) -> Mapping[str, float]:
        """The current values of each device; takes well below a millisecond each."""
        readings: dict[str, float] = {}
        for index, handle in self._handles.items():
            at = f"host/gpu/{index}"
            rates = self._ask("nvmlDeviceGetUtilizationRates", handle, self._c.c_uint * 2)
            if rates is not None:
                readings[f"{at}/utilization_percent"] = float(rates[0])
            memory = self._ask("nvmlDeviceGetMemoryInfo", handle, self._c.c_ulonglong * 3)  # total, free, used
            if memory is not None:
                readings[f"{at}/memory_used_bytes"] = float(memory[2])
                readings[f"{at}/memory_total_bytes"] = float(memory[0])
            degrees = self._ask("nvmlDeviceGetTemperature", handle, self._c.c_uint, self._c.c_uint(0))
            if degrees is not None:
                readings[f"{at}/temperature_celsius"] = float(degrees.value)
            milliwatts = self._ask("nvmlDeviceGetPowerUsage", handle, self._c.c_uint)
            if milliwatts is not None:
                readings[f"{at}/power_watts"] = milliwatts.value / 1000.0
        return readings

    def _ask(self, function: str, handle: object, kind: Any, *arguments: object) -> Any:
        answer = kind()
        code = getattr(self._nvml, function)(handle, *arguments, self._c.byref(answer))
        return answer if code == 0 else None

    def _handle(self, index: int) -> Any:
        handle = self._c.c_void_p()
        code = self._nvml.nvmlDeviceGetHandleByIndex_v2(self._c.c_uint(index), self._c.byref(handle))
        return handle if code == 0 else None

    def _uuid(self, index: int) -> str:
        handle, text = self._handle(index), self._c.create_string_buffer(96)
        if handle is None or self._nvml.nvmlDeviceGetUUID(handle, text, self._c.c_uint(96)) != 0:
            return ""
        return str(text.value.decode("ascii", "replace"))


class NvidiaSmi:
    """The same through the `nvidia-smi` program. Each call returns the output of the program started at the call
    before.

    The program takes up to a second, so nothing waits for it.
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self._running: Any = None

    def __call__(self) -> Mapping[str, float]:
        """The output of the program that was started last; empty while it still runs and at the first call."""
        if self._running is not None:
            if self._running.poll() is None:
                return {}
            text, self._running = self._running.communicate(timeout=1.0)[0], None
        else:
            text = b""
        import subprocess

        self._running = subprocess.Popen(
            [self._program, f"--query-gpu=index,{','.join(_FIELDS)}", "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return parse_smi(text.decode("utf-8", "replace"))


def parse_smi(text: str) -> dict[str, float]:
    """The numbers in the output of nvidia-smi; "[N/A]" is left out."""
    rows: dict[int, list[str]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(_FIELDS) + 1 and cells[0].isdigit():
            rows[int(cells[0])] = cells[1:]
    readings: dict[str, float] = {}
    for index in sorted(rows):
        if not _is_visible(index):
            continue
        for key, cell, scale in zip(_KEYS, rows[index], _SCALES, strict=True):
            try:
                readings[f"host/gpu/{index}/{key}"] = float(cell) * scale
            except ValueError:
                continue
    return readings


class AmdGpus:
    """AMD GPUs by the driver's files in the kernel's file system."""

    def __init__(self, drm: str = "/sys/class/drm") -> None:
        try:
            cards = sorted(name for name in os.listdir(drm) if name.startswith("card") and name[4:].isdigit())
        except OSError:
            cards = []
        devices = [os.path.join(drm, card, "device") for card in cards]
        self._devices = [device for device in devices if exists(f"{device}/gpu_busy_percent")]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._devices)

    def __call__(self) -> Mapping[str, float]:
        """Busy percent, memory in use, and total memory."""
        names = ("gpu_busy_percent", "mem_info_vram_used", "mem_info_vram_total")
        readings: dict[str, float] = {}
        for index, device in enumerate(self._devices):
            for name, key in zip(names, _KEYS, strict=False):
                try:
                    with open(f"{device}/{name}", encoding="ascii") as file:
                        readings[f"host/gpu/{index}/{key}"] = float(file.read())
                except (OSError, ValueError):
                    continue
        return readings


def _visible(count: int, uuid: Callable[[int], str]) -> list[int]:
    """The devices that the trainer may use: CUDA_VISIBLE_DEVICES, by number or the beginning of the UUID."""
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return list(range(count))
    named = [word.strip() for word in wanted.split(",") if word.strip()]
    if all(word.lstrip("-").isdigit() for word in named):
        return [i for i in range(count) if str(i) in named]
    return [i for i in range(count) if any(uuid(i).startswith(word) for word in named)]


def _is_visible(index: int) -> bool:
    words = os.environ.get("CUDA_VISIBLE_DEVICES")
    return words is None or str(index) in words.split(",") or not words.replace(",", "").strip().lstrip("-").isdigit()


def _find(program: str) -> str | None:
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, program)
        if folder and os.access(path, os.X_OK):
            return path
    return None
