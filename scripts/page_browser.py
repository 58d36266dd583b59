"""Sees to it that the tests of the page have a browser: Debian's chromium, or the one that ROLLBOOK_CHROMIUM names.

As root on a machine with apt it is installed where it is missing; elsewhere what to install is said.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser() -> str | None:
    """The program to drive, or None."""
    named = os.environ.get("ROLLBOOK_CHROMIUM")
    return named or next((path for path in map(shutil.which, NAMES) if path), None)


def main() -> int:
    """Install it where that is possible."""
    if browser():
        return 0
    if shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        print("Installing chromium for the tests of the page (once; some minutes) …", flush=True)
        quiet = {"stdout": subprocess.DEVNULL}
        subprocess.run(["apt-get", "update", "-q"], check=True, **quiet)
        packages = ["chromium", "fonts-dejavu-core"]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(
            ["apt-get", "install", "-qy", "-o", "DPkg::Lock::Timeout=300", *packages],
            check=True,
            env=environment,
            **quiet,
        )
        return 0 if browser() else 1
    print(
        "The tests of the page drive chromium, and none was found. Install it (Debian: apt install chromium) "
        "or name one: ROLLBOOK_CHROMIUM=/path/to/chrome",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
