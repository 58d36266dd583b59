"""DreamerV3's logger (package `elements`) with a rollbook run: one more output.

outputs = [elements.logger.TerminalOutput(), RollbookOutput(project="crafter", seed=1)]
logger = elements.Logger(step, outputs)
"""

from __future__ import annotations

from rollbook.adapters._run import JoinedRun, harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["RollbookOutput"]


class RollbookOutput:
    """An output of `elements.Logger` that writes to a run.

    Args:
      run: a run or a scope of a run. None uses the current run, or opens one.
      fps: frames per second of videos.
      run_options: arguments of `rollbook.init`. If any is given, a new run is opened instead of using the current one.
        Default of `project`: "dreamerv3"; of `name`: the program's.
    """

    def __init__(self, run: object = None, *, fps: float = 20.0, **run_options: Any) -> None:
        from rollbook.run.arguments import program_name

        self._joined = JoinedRun("RollbookOutput", run, "dreamerv3", program_name(), run_options, host="elements")
        self.run, self._fps = self._joined.run, fps

    @harmless
    def __call__(self, summaries: Iterable[tuple[int, str, Any]]) -> None:
        """Log what was collected since the last call: (step, name, value). All numbers of a step form one row.

        The number of dimensions decides: none is a number, one a histogram, two or three an image, four a video. Texts
        are logged as text. The step is the clock `env_step`.

        Args:
          summaries: (step, name, value) for each value, in any order of steps.
        """
        rows: dict[int, dict[str, object]] = {}
        for step, name, value in summaries:
            if isinstance(value, str):
                self._joined.keep(
                    "text", "keeping a text", lambda k, v, s: self.run.log_text(k, v, env_step=s), name, value, step
                )
            elif not getattr(value, "ndim", 0):
                rows.setdefault(step, {})[name] = value
            else:
                self._joined.keep("media", f"keeping {name!r}", self._shaped, name, value, step)
        for step, row in rows.items():
            self._joined.log(row, env_step=step)

    def _shaped(self, name: str, value: Any, step: int) -> None:
        from rollbook.adapters._pixels import as_uint8

        if value.ndim == 1:
            self.run.log_histogram(name, value, env_step=step)
        elif value.ndim < 4:
            self.run.log_image(name, as_uint8(value), env_step=step)
        else:
            self.run.log_video(name, as_uint8(value), fps=self._fps, env_step=step)

    def wait(self) -> None:
        """Finish the run if it was opened here. `Logger.close()` calls this."""
        self._joined.finish()
