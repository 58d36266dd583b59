"""Hugging Face Accelerate with a rollbook run: a tracker for `log_with="rollbook"`.

from rollbook.adapters.accelerate import register

register()
accelerator = Accelerator(log_with="rollbook")
accelerator.init_trackers("my-project", config, init_kwargs={"rollbook": {"name": "ppo", "seed": 1}})
accelerator.log({"loss": loss}, step=step)
accelerator.end_training()
"""

from __future__ import annotations

from rollbook.adapters._run import JoinedRun
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

    class _Base:
        pass

    def _on_main_process(method: F) -> F:
        return method
else:
    _host = need("accelerate.tracking", extra="accelerate", why="RollbookTracker")
    _Base, _on_main_process = _host.GeneralTracker, _host.on_main_process

__all__ = ["RollbookTracker", "register"]


class RollbookTracker(_Base):
    """A tracker of Accelerate that writes to a run. Only the main process opens and writes one.

    Args:
      run_name: the project of a run that is opened here; `Accelerator.init_trackers` passes its `project_name`.
      run: a run or a scope of a run. None uses the current run, or opens one.
      run_options: arguments of `rollbook.init`. If any is given, a new run is opened instead of using the current one.
        Default of `name`: the name of the program.
    Raises:
      BadInput: `run` is something else.
    """

    name = "rollbook"
    requires_logging_directory = False
    main_process_only = True

    def __init__(self, run_name: str = "accelerate", run: object = None, **run_options: object) -> None:
        super().__init__()
        self.run: Any = None
        self._project, self._given, self._options = run_name, run, run_options
        self._joined: JoinedRun | None = None

    @property
    def tracker(self) -> Any:
        """The run, as returned by `accelerator.get_tracker("rollbook", unwrap=True)`. None outside the main process."""
        return self.run

    @_on_main_process
    def start(self) -> None:
        """Find or open the run. Accelerate calls it in `init_trackers`."""
        self._open()

    def _open(self) -> JoinedRun:
        if self._joined is None:
            from rollbook.run.arguments import program_name

            self._joined = JoinedRun(
                "RollbookTracker", self._given, self._project, program_name(), self._options, host="accelerate"
            )
            self.run = self._joined.run
        return self._joined

    @_on_main_process
    def store_init_configuration(self, values: Mapping[str, object]) -> None:
        """Add the configuration to the run's config. Existing entries stay.

        Args:
          values: setting -> value, nested as it is in the program.
        """
        self._open().settings(values)

    @_on_main_process
    def log(self, values: Mapping[str, object], step: int | None = None, **clocks: Any) -> None:
        """Log one row under the native keys, with Accelerate's step as the clock `step`.

        Args:
          values: native key -> number, text or array.
          step: Accelerate's step. None: the run's clock `step` keeps its reading.
          clocks: values of further clocks: `accelerator.log(…, log_kwargs={"rollbook": {"env_step": 2048}})`.
        """
        self._open().log(values, step=step, **clocks)

    @_on_main_process
    def log_images(self, values: Mapping[str, Any], step: int | None = None, **clocks: Any) -> None:
        """Log images under their native keys.

        Args:
          values: key -> an array [number, height, width, channels], or a list of images.
          step: Accelerate's step. None: the run's clock `step` keeps its reading.
          clocks: values of further clocks, as in `log`.
        """
        at = {**({} if step is None else {"step": step}), **clocks}
        self._open().keep("images", "keeping pictures", self._log_images, values, at)

    def _log_images(self, values: Mapping[str, Sequence[object]], clocks: Mapping[str, Any]) -> None:
        from rollbook.adapters._pixels import as_uint8
        from rollbook.values.arrays import host_array

        for key, images in values.items():
            for image in images:
                self.run.log_image(key, as_uint8(host_array(image)), **clocks)

    @_on_main_process
    def finish(self) -> None:
        """Finish the run if it was opened here. Accelerate calls it in `end_training`."""
        if self._joined is not None:
            self._joined.finish()


def register() -> None:
    """Allow `Accelerator(log_with="rollbook")` in this process. Calling it again changes nothing.

    Raises:
      UnsupportedVersion: this Accelerate is too old to have `register_tracker_class`. Pass an object instead:
        `Accelerator(log_with=RollbookTracker("my-project"))`.
    """
    from accelerate import tracking

    if not hasattr(tracking, "register_tracker_class"):
        from rollbook.adapters._versions import UnsupportedVersion, installed

        raise UnsupportedVersion(
            f"register() needs an Accelerate that has register_tracker_class; found {installed('accelerate')}. "
            "Pass a tracker instead of its name: Accelerator(log_with=RollbookTracker('my-project'))"
        )
    if tracking.LOGGER_TYPE_TO_CLASS.get("rollbook") is not RollbookTracker:
        tracking.register_tracker_class(RollbookTracker)
