"""Writers for Ray's actors and tasks.

    run = rollbook.init("ant", "ppo")
    address = rollbook.run.ray.address(run)

    @ray.remote(max_restarts=3)
    class Sampler:
        def __init__(self, address):
            self.run = address.writer()             # a further writer, on any node
        def step(self, i):
            self.run.log({"sampler/reward": 1.0}, env_step=i)

    @ray.remote
    def evaluate(address, weights):
        with address.writer() as run:               # closes when the task ends, not when its worker is reaped
            run.log({"eval/return": 7.0})

A `Run` or a scope can be passed as well: it becomes a further writer in the process that unpickles it. An address
becomes a writer only when `writer()` is called, and closes at the end of a `with` block. One process has one writer of
a run. A restarted actor is a new writer of the same attempt. Ray itself is not imported here.
"""

from __future__ import annotations

from rollbook.run.attaching import unpickle_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.run.run import Run

__all__ = ["Address", "address"]


class Address:
    """The address of a run: small, plain data, valid in any process that imports rollbook.

    Attributes:
      folder: the run's folder where it was opened.
      nonce: identifies the run, wherever its folder is.
      page: the data from which another host makes a part of the run.
    """

    __slots__ = ("folder", "nonce", "page")

    def __init__(self, folder: str, nonce: str, page: dict[str, object]) -> None:
        self.folder, self.nonce, self.page = folder, nonce, page

    def writer(self) -> Run:
        """This process's writer of the run. Created by the first call; later calls return the same one until it is
        finished.

        On a host that does not see the run's folder, it keeps a part of the run in $ROLLBOOK_DIR (or "runs") there.
        `finish()`, or the end of a `with` block, ends the writer and not the run, unless this is the writer that opened
        the run.

        Raises:
          NotARun: the run was opened on this host, and its folder is gone. NewerFormat: a later rollbook wrote it.
        """
        return unpickle_run(self.folder, self.nonce, self.page)

    def __repr__(self) -> str:
        return f"<Address of run {self.page.get('id')} in {self.folder}>"

    def __reduce__(self) -> tuple[object, ...]:
        return Address, (self.folder, self.nonce, self.page)


def address(run: Run) -> Address:
    """The address of a run, for actors and tasks.

    Args:
      run: an open run.
    """
    return Address(*run._address())
