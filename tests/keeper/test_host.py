"""Numbers about the machine."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rollbook.keeper.host.gpu import AmdGpus, NvidiaGpus, NvidiaSmi, gpu_probe, parse_smi
from rollbook.keeper.host.probes import Cpu, Disk, Host, Load, Memory, ProcessTree
from waiting import PATIENCE

STAT = "cpu  {user} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 1 1 1\n"


def test_the_processors_are_busy_for_the_share_of_ticks_that_were_not_idle(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text(STAT.format(user=100, idle=900))
    probe = Cpu(str(tmp_path))
    assert probe() == {}  # nothing has passed yet
    (tmp_path / "stat").write_text(STAT.format(user=130, idle=970))
    assert probe() == {"host/cpu_percent": pytest.approx(30.0)}
    (tmp_path / "stat").write_text(STAT.format(user=130, idle=1070))
    assert probe() == {"host/cpu_percent": 0.0}


def test_memory_is_what_is_not_available(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 250 kB\nBuffers: 1 kB\n")
    (tmp_path / "memory.max").write_text("2048000\n")
    (tmp_path / "memory.current").write_text("512000\n")
    assert Memory(str(tmp_path), cgroup=str(tmp_path))() == {
        "host/memory_used_bytes": 750 * 1024,
        "host/memory_available_bytes": 250 * 1024,
        "host/memory_percent": 75.0,
        "host/container_memory_used_bytes": 512000,
        "host/container_memory_percent": 25.0,
    }
    (tmp_path / "memory.max").write_text("max\n")
    assert "host/container_memory_percent" not in Memory(str(tmp_path), cgroup=str(tmp_path))()


def test_the_disk_is_the_one_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {str(tmp_path): SimpleNamespace(f_bavail=30, f_blocks=120, f_frsize=4096)}
    monkeypatch.setattr(os, "statvfs", sizes.__getitem__, raising=False)
    assert Disk(str(tmp_path))() == {"host/disk_free_bytes": 30 * 4096.0, "host/disk_percent": 75.0}


def test_load_is_the_systems_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (3.5, 2.0, 1.0), raising=False)
    assert Load()() == {"host/load": 3.5}


WITH_A_CHILD = (
    "import subprocess, sys; child = subprocess.Popen([sys.executable, '-I', '-S', '-c', "
    "'print(1, flush=True); import sys; sys.stdin.read()']); sys.stdin.read()"
)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_process_tree_counts_children_and_grandchildren() -> None:
    command, pipe = [sys.executable, "-I", "-S", "-c", WITH_A_CHILD], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        parent.stdout.readline()
        found = ProcessTree(lambda: [parent.pid])()
        alone = ProcessTree(lambda: [os.getpid()])()
        assert found["host/process/count"] == 2.0
        assert 4e6 < found["host/process/rss_bytes"] < 1e9
        assert alone["host/process/count"] >= 3.0
        parent.stdin.close()
    assert ProcessTree(lambda: [parent.pid])() == {}


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_where_the_kernel_lists_no_children_they_are_found_by_their_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    command, pipe = [sys.executable, "-I", "-S", "-c", WITH_A_CHILD], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as parent:  # of this process children come and go
        assert parent.stdout is not None
        parent.stdout.readline()
        listed = ProcessTree(lambda: [parent.pid])._read([parent.pid])
        real = os.path.exists
        monkeypatch.setattr(os.path, "exists", lambda path: not str(path).endswith("/children") and real(path))
        by_parent = ProcessTree(lambda: [parent.pid])._read([parent.pid])
        assert {pid for pid, _ in listed} == {pid for pid, _ in by_parent}
        assert len(by_parent) == 2
        parent.communicate()


def test_a_busy_core_is_a_hundred_percent(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "7").mkdir()
    now = [100.0]

    def has_used(seconds: float) -> None:
        ticks = int(seconds * os.sysconf("SC_CLK_TCK"))
        (tmp_path / "7" / "stat").write_text(f"7 (train) R {' 0' * 10} {ticks} 0 {'0 ' * 6} 55 0 1000 0")

    probe = ProcessTree(lambda: [7], str(tmp_path), clock=lambda: now[0])
    has_used(3.0)
    assert "host/process/cpu_percent" not in probe()
    now[0] += 2.0
    has_used(5.0)
    assert probe()["host/process/cpu_percent"] == pytest.approx(100.0)
    now[0] += 2.0
    has_used(5.5)
    assert probe()["host/process/cpu_percent"] == pytest.approx(25.0)


def test_a_probe_that_keeps_failing_is_left_out_and_the_others_go_on(tmp_path: Path) -> None:
    calls = []

    def broken() -> dict[str, float]:
        calls.append(1)
        raise RuntimeError("no sensor")

    host = Host(str(tmp_path), extra=[broken, lambda: {"host/answer": 42.0}])
    for _ in range(6):
        assert host()["host/answer"] == 42.0
    assert len(calls) == 3


def test_a_machine_without_gpus_has_no_gpu_probe(tmp_path: Path) -> None:
    assert gpu_probe(devices=str(tmp_path), drm=str(tmp_path)) is None


class FakeNvml:
    """The driver's library, for two devices; the second says nothing about its temperature."""

    def nvmlInit_v2(self) -> int:
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> int:
        handle._obj.value = index.value + 1
        return 0

    def nvmlDeviceGetUUID(self, handle: Any, text: Any, size: Any) -> int:
        text.value = f"GPU-{handle.value}abc".encode()
        return 0

    def nvmlDeviceGetUtilizationRates(self, handle: Any, rates: Any) -> int:
        rates._obj[0], rates._obj[1] = 10 * handle.value, 99
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> int:
        memory._obj[0], memory._obj[1], memory._obj[2] = 800, 300, 500  # total, free, used
        return 0

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: Any, degrees: Any) -> int:
        degrees._obj.value = 61
        return 0 if handle.value == 1 else 3

    def nvmlDeviceGetPowerUsage(self, handle: Any, milliwatts: Any) -> int:
        milliwatts._obj.value = 250_500
        return 0


def test_nvidia_devices_say_what_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert NvidiaGpus(FakeNvml())() == {
        "host/gpu/0/utilization_percent": 10.0,
        "host/gpu/0/memory_used_bytes": 500.0,
        "host/gpu/0/memory_total_bytes": 800.0,
        "host/gpu/0/temperature_celsius": 61.0,
        "host/gpu/0/power_watts": 250.5,
        "host/gpu/1/utilization_percent": 20.0,
        "host/gpu/1/memory_used_bytes": 500.0,
        "host/gpu/1/memory_total_bytes": 800.0,
        "host/gpu/1/power_watts": 250.5,
    }


@pytest.mark.parametrize(
    ("wanted", "seen"), [("1", {"1"}), ("0,1", {"0", "1"}), ("", set()), ("-1", set()), ("GPU-2", {"1"})]
)
def test_only_devices_the_trainer_may_use_are_asked(
    monkeypatch: pytest.MonkeyPatch, wanted: str, seen: set[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", wanted)
    assert {key.split("/")[2] for key in NvidiaGpus(FakeNvml())()} == seen


def test_a_library_without_a_driver_is_no_gpu() -> None:
    class NoDriver(FakeNvml):
        def nvmlInit_v2(self) -> int:
            return 9

    with pytest.raises(OSError, match="driver"):
        NvidiaGpus(NoDriver())


def test_the_answer_of_nvidia_smi_is_read_and_what_it_cannot_say_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    text = "0, 35, 1024, 81559, 44, 118.25\n1, [N/A], 0, 81559, [N/A], [Not Supported]\nrubbish\n"
    assert parse_smi(text) == {
        "host/gpu/0/utilization_percent": 35.0,
        "host/gpu/0/memory_used_bytes": 1024 * 2**20,
        "host/gpu/0/memory_total_bytes": 81559 * 2**20,
        "host/gpu/0/temperature_celsius": 44.0,
        "host/gpu/0/power_watts": 118.25,
        "host/gpu/1/memory_used_bytes": 0.0,
        "host/gpu/1/memory_total_bytes": 81559 * 2**20,
    }
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert {key.split("/")[2] for key in parse_smi(text)} == {"1"}


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_no_step_waits_for_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gate, program = tmp_path / "gate", tmp_path / "nvidia-smi"
    os.mkfifo(gate)
    program.write_text(f"#!/bin/sh\nread line < {gate}\necho '0, 35, 1, 2, 44, 118.25'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    probe = NvidiaSmi(str(program))
    assert probe() == {}
    assert probe() == {}  # it is still thinking
    gate.write_text("go\n")
    probe._running.wait(PATIENCE)
    assert probe()["host/gpu/0/utilization_percent"] == 35.0
    gate.write_text("go\n")
    probe._running.wait(PATIENCE)
    probe._running.communicate()


def test_amd_devices_are_read_from_the_kernels_files(tmp_path: Path) -> None:
    device = tmp_path / "card0" / "device"
    device.mkdir(parents=True)
    (tmp_path / "card0-DP-1").mkdir()
    (device / "gpu_busy_percent").write_text("77\n")
    (device / "mem_info_vram_used").write_text("1000\n")
    (device / "mem_info_vram_total").write_text("4000\n")
    assert AmdGpus(str(tmp_path))() == {
        "host/gpu/0/utilization_percent": 77.0,
        "host/gpu/0/memory_used_bytes": 1000.0,
        "host/gpu/0/memory_total_bytes": 4000.0,
    }
    assert isinstance(gpu_probe(devices=str(tmp_path), drm=str(tmp_path)), AmdGpus)
