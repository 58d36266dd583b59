"""A training that was killed twice.

The process is killed with SIGKILL in the middle of an update, twice, and started again. The curve has no zigzag and
no gap: what came after the last checkpoint is hidden, and what `log` returned from is there. The run has three
attempts.
"""

import os
import signal
import subprocess
import sys
import threading

import rollbook
from rollbook.demo.loop import CONFIG, train

STEPS = int(os.environ.get("GALLERY_STEPS", "60000"))


def life(kill_at: float | None) -> None:
    """Train, and be killed after that share of the steps."""
    config = {**CONFIG, "env_steps": STEPS}
    run = rollbook.init(
        "cartpole", "killed", seed=1, config=config, total={"env_step": STEPS}, resume="allow", keeper="inline"
    )
    if kill_at is not None:

        def watch() -> None:
            while run.clocks_now().get("env_step", 0) < kill_at * STEPS:
                threading.Event().wait(0.01)
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=watch, daemon=True).start()
    train(run)
    run.finish()


if len(sys.argv) > 1:
    life(float(sys.argv[1]) if sys.argv[1] != "end" else None)
else:
    for share in ("0.4", "0.75", "end"):
        subprocess.run([sys.executable, __file__, share], check=False)
