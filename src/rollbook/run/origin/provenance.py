"""Where a run came from: command line, code, packages, machine. Never secrets.

`collect` starts `git` and reads folders. It takes about 20 ms, so it runs in a thread or in the keeper, not before the
first step. It never raises and never changes anything: git runs without locks, hooks, pagers, prompts or file-system
monitors, and with a time limit.
"""

from __future__ import annotations

import os
import sys

from rollbook.run.origin.patch import patch_of
from rollbook.run.origin.secrets import hidden, is_secret_name, without_secrets
from rollbook.system.files import exists, is_folder
from rollbook.system.guard import ours, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ENVIRONMENT = (
    "CONDA_DEFAULT_ENV", "CUBLAS_WORKSPACE_CONFIG", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
    "JAX_DISABLE_JIT", "JAX_ENABLE_X64", "JAX_PLATFORMS", "LOCAL_RANK", "MKL_NUM_THREADS", "MUJOCO_GL",
    "NUMEXPR_NUM_THREADS", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
    "PYOPENGL_PLATFORM", "PYTHONHASHSEED", "PYTHONOPTIMIZE", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
    "RANK", "RAY_JOB_ID", "SDL_VIDEODRIVER", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_JOB_ID",
    "SLURM_JOB_NAME", "SLURM_JOB_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "TF_DETERMINISTIC_OPS",
    "TORCH_COMPILE_DISABLE", "VIRTUAL_ENV", "WORLD_SIZE", "XLA_FLAGS", "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
)  # fmt: skip
"""The environment variables that are stored: those that affect training. No others are read."""

_MOST_CHANGED = 200
_LARGE_DIFF = 4_000  # lines of one file, which the patch of changes leaves out: it is data


def collect(
    cwd: str | os.PathLike[str] = ".",
    *,
    seeds: Mapping[str, object] | None = None,
    git_seconds: float = 5.0,
    patched: Callable[[dict[str, object]], dict[str, object]] | None = None,
) -> dict[str, object]:
    """Collect everything, as plain JSON data.

    Args:
      cwd: the folder in which the training was started.
      seeds: name -> seed, stored as given.
      git_seconds: time limit for each call of git.
      patched: keeps the patch of uncommitted changes (`origin.patch`); what it returns is added to `git`.
    Returns:
      host, platform, python, executable, command, cwd, environment, packages {name: version}, cpu {name, cores,
      cores_allowed, memory_bytes}, gpus [{name, …}], git {commit, branch, dirty, changed, files_changed, insertions,
      deletions, remote} or None, seeds. Missing values are None, and `problems` gives the reasons.
    """
    origin: dict[str, object] = {}
    problems: dict[str, str] = {}
    parts: dict[str, Callable[[], object]] = {
        "host": _host,
        "platform": _platform,
        "python": lambda: sys.version.split()[0],
        "executable": lambda: sys.executable,
        "command": lambda: command_line([sys.executable, *getattr(sys, "argv", ())]),
        "cwd": lambda: os.path.abspath(cwd),
        "environment": lambda: {name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
        "packages": packages,
        "cpu": _cpu,
        "gpus": gpus,
        "git": lambda: _git(os.fspath(cwd), git_seconds, patched),
        "seeds": lambda: {str(name): _number_or_text(seed) for name, seed in (seeds or {}).items()},
    }
    for name, part in parts.items():
        try:
            origin[name] = part()
        except ours(Exception) as err:  # each part is useful without the others
            origin[name] = None
            problems[name] = f"{type(err).__name__}: {err}"[:200]
    if problems:
        origin["problems"] = problems
    return origin


def command_line(command: Sequence[str]) -> list[str]:
    """A command line without the values of options such as `--api-key`, and without anything like a credential."""
    shown: list[str] = []
    option = ""
    for word in map(str, command):
        name, equals, value = word.partition("=")
        if option and not word.startswith("-"):
            secret = option == "-p" or is_secret_name(option)
            shown.append(word if secret and word.isdigit() else str(hidden("secret" if secret else option, word)))
            option = ""
        elif equals and value and not any(mark in name for mark in "/?&: "):  # a name, not the address of something
            shown.append(f"{name}={hidden(name, value)}" if without_secrets(word) == word else without_secrets(word))
            option = ""
        else:
            shown.append(without_secrets(word))
            option = "" if equals or not name.startswith("-") else name
    return shown


def packages() -> dict[str, str]:
    """Installed distribution -> version, from the names of the metadata folders (reading 300 of them takes 0.2 s)."""
    versions: dict[str, str] = {}
    for folder in dict.fromkeys(sys.path):
        try:
            entries = list(os.scandir(folder or "."))
        except OSError:
            continue
        for entry in entries:
            stem, kind = os.path.splitext(entry.name)
            if kind not in (".dist-info", ".egg-info"):
                continue
            name, _, version = stem.partition("-")
            version = version.partition("-py")[0] if kind == ".egg-info" else version
            if name and version:
                versions.setdefault(name.lower().replace("_", "-"), version)
    return dict(sorted(versions.items()))


def gpus() -> list[dict[str, object]]:
    """The GPUs of this host: the name, and what is known without calling a driver that may hang."""
    devices: list[dict[str, object]] = []
    root = "/proc/driver/nvidia/gpus"
    if is_folder(root):
        for bus in sorted(os.listdir(root)):
            with open(os.path.join(root, bus, "information"), encoding="utf-8", errors="replace") as file:
                facts = {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in file)}
            devices.append({"name": facts.get("Model", "NVIDIA GPU"), "bus": bus})
        return devices
    if exists("/dev/dxg") or sys.platform == "win32":  # no /proc entry under WSL and Windows
        answer = _run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], 5.0)
        return [{"name": line.strip()} for line in (answer or "").splitlines() if line.strip()]
    cards = "/sys/class/drm"
    for card in sorted(os.listdir(cards)) if is_folder(cards) else ():
        name = os.path.join(cards, card, "device", "product_name")  # amdgpu
        if "-" not in card and exists(name):
            with open(name, encoding="utf-8", errors="replace") as file:
                devices.append({"name": file.read().strip() or card})
    return devices


def _host() -> str:
    import platform

    return platform.node()


def _platform() -> str:
    import platform

    return platform.platform()


def _cpu() -> dict[str, object]:
    name = ""
    if exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() in ("model name", "Model"):
                    name = value.strip()
                    break
    elif sys.platform == "darwin":
        name = (_run(["sysctl", "-n", "machdep.cpu.brand_string"], 2.0) or "").strip()
    if not name:
        import platform

        name = platform.processor() or platform.machine()
    allowed = getattr(os, "sched_getaffinity", None)
    memory = None
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "name": name,
        "cores": os.cpu_count(),
        "cores_allowed": len(allowed(0)) if allowed is not None else os.cpu_count(),
        "memory_bytes": memory,
    }


def _git(
    cwd: str, seconds: float, patched: Callable[[dict[str, object]], dict[str, object]] | None
) -> dict[str, object] | None:
    # The repository's configuration may name programs (monitors, diff drivers, hooks): none of them may run.
    git = ["git", "-C", cwd, "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "--no-pager"]
    own = "--ignore-submodules"
    status = _run([*git, "status", "--porcelain=v2", "--branch", "--untracked-files=no", own], seconds)
    if status is None:
        return None
    facts: dict[str, object] = {"commit": None, "branch": None}
    changed: list[str] = []
    large: list[str] = []
    for line in status.splitlines():
        if line.startswith("# branch.oid "):
            facts["commit"] = line[13:].strip() if line[13:].strip() != "(initial)" else None
        elif line.startswith("# branch.head "):
            facts["branch"] = line[14:].strip() if line[14:].strip() != "(detached)" else None
        elif line[:2] in ("1 ", "2 ", "u "):
            fields = line.split(" ", {"1": 8, "2": 9, "u": 10}[line[0]])
            changed.append(fields[-1].partition("\t")[0])
    facts["dirty"] = bool(changed)
    facts["changed"] = changed[:_MOST_CHANGED]
    facts["files_changed"] = len(changed)
    if changed and facts["commit"]:
        how = ["--numstat", "--no-renames", "-z", "--no-ext-diff", "--no-textconv", own]
        rows = [line.split("\t") for line in (_run([*git, "diff", *how, "HEAD"], seconds) or "").split("\0")]
        large = [row[2] for row in rows if len(row) == 3 and sum(int(n) for n in row[:2] if n.isdigit()) > _LARGE_DIFF]
        facts["insertions"] = sum(int(row[0]) for row in rows if row[0].isdigit())
        facts["deletions"] = sum(int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit())
    remote = _run([*git, "config", "--get", "remote.origin.url"], seconds)
    if remote and remote.strip():
        facts["remote"] = without_secrets(remote.strip())
    if patched is not None:
        is_new = facts["commit"] is None
        with tolerating(OSError):
            found = patch_of(
                git, _environ(), cwd, is_changed=bool(changed), is_new=is_new, seconds=seconds, large=large
            )
            facts.update(patched(found))
    return facts


def _run(command: list[str], seconds: float) -> str | None:
    """The output of a program, or None if it is missing, fails, or takes too long."""
    import subprocess

    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            env=_environ(),
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _environ() -> dict[str, str]:
    """The environment in which git writes nothing, asks nothing and finds the repository of its folder."""
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "LC_ALL": "C"}
    # Variables set by an outer git (for example in a hook) would point to another repository.
    elsewhere = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    environ = {name: value for name, value in os.environ.items() if name not in elsewhere}
    return {**environ, **quiet}


def _number_or_text(value: object) -> object:
    return value if value is None or type(value) in (int, float, bool, str) else str(value)
