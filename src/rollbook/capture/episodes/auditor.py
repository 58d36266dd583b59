"""The episode auditor: compares the return and length of the reward stream with what other tools report.

`RecordEpisodeStatistics`, Stable-Baselines3's `Monitor` and training frameworks add up rewards too. Their errors are
easy to miss: the step at which a vector environment resets itself is counted or forgotten, a return leaks into the next
episode, the last info gets lost. Each difference becomes an alert with the numbers.

    auditor = EpisodeAuditor(scope)
    auditor.check("e1.0.7", own=(3.0, 3), reported=(2.0, 2), source="RecordEpisodeStatistics", env_index=0)
"""

from __future__ import annotations

from rollbook.schema.alerts import Alerts
from rollbook.values import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollbook.protocols import Recorder

_FIRST_EPISODES = 3


class EpisodeAuditor:
    """Checks reported returns and lengths. One auditor may serve many environments; it stores the last episode of each.

    Args:
      recorder: gets the alerts and the counts.
      relative, per_step: tolerance for rounding of returns: relative to the larger one, and per step (Monitor rounds to
        six digits, others sum in float32).
    Attributes:
      checked: number of episodes that were compared with a report.
      differences: number of findings.

    The first finding of each kind is an alert, then the tenth, the hundredth … with a count. At the end of the run, the
    text `audit` reports what was checked and what was not.
    """

    def __init__(self, recorder: Recorder, *, relative: float = 1e-5, per_step: float = 2e-6) -> None:
        self._recorder, self.relative, self.per_step = recorder, relative, per_step
        self._alerts = Alerts(recorder)
        self._previous: dict[tuple[str, int], tuple[float, int]] = {}
        self._reporting: set[str] = set()
        self._first_episodes: dict[tuple[str, str], list[object]] = {}
        self._not_checked: dict[str, int] = {}
        self.checked = 0
        self.differences = 0
        run = getattr(recorder, "run", recorder)
        if hasattr(run, "on_finish"):
            run.on_finish(lambda status: self.conclude())

    def check(
        self,
        episode_id: str,
        own: tuple[float, int],
        reported: tuple[float | None, int | None] | None,
        *,
        source: str,
        env_index: int = 0,
        autoreset: str = "",
        compare_return: bool = True,
        compare_length: bool = True,
    ) -> str:
        """Compare one finished episode. Returns the problem in a word or two, "" if there is none.

        Args:
          own: (return, length) of the reward stream.
          reported: (return, length) from `source`; None for a missing value; None as a whole if there is no report.
          autoreset: the vector environment's mode, for the evidence.
          compare_return, compare_length: False if a wrapper in between changes rewards, or the number of steps.
        """
        before = self._previous.get((source, env_index))
        self._previous[source, env_index] = own
        if reported is None:
            if source not in self._reporting:
                self.not_checked("no return or length was reported")
                return ""
            self.not_checked(f"{source} did not report them")
            self._report(
                "missing final info",
                episode_id,
                own,
                None,
                before,
                source=source,
                env_index=env_index,
                autoreset=autoreset,
            )
            return "missing final info"
        self._reporting.add(source)
        if not compare_return and not compare_length:
            self.not_checked(f"a wrapper outside {source} may change rewards and the number of steps")
            return ""
        self.checked += 1
        if reported == own:
            return ""
        their_return = reported[0] if compare_return else None
        wrong = self._verdict(own, their_return, reported[1] if compare_length else None, before)
        if wrong:
            self._report(
                wrong, episode_id, own, reported, before, source=source, env_index=env_index, autoreset=autoreset
            )
        return wrong

    def not_checked(self, reason: str) -> None:
        """Count an episode that cannot be compared; the end of the run reports the reason."""
        self._not_checked[reason] = self._not_checked.get(reason, 0) + 1

    def end_not_passed_on(self, episode_id: str, length: int, *, source: str, env_index: int = 0) -> None:
        """An end was reported at a step without an end: an autoreset further inside hides ends."""
        self.differences += 1
        message = (
            f"end not passed on: {source} reported an episode that ended at a step which was neither terminated nor "
            f"truncated (step {length} of episode {episode_id} of environment {env_index}); a wrapper or "
            "vector inside resets by itself and hides the end"
        )
        evidence = {"episode_id": episode_id, "env_index": env_index, "own_length": length}
        self._alert({"wrong": "end not passed on", **evidence}, message, source)

    def stepped_on(self, episode_id: str, *, env_index: int = 0) -> None:
        """A step came after an episode's end without a reset, in an environment that does not reset itself."""
        self.differences += 1
        message = (
            f"stepped after the end: environment {env_index} was stepped after episode {episode_id} had ended, "
            "without a reset; these steps belong to no episode"
        )
        evidence = {"episode_id": episode_id, "env_index": env_index}
        self._alert({"wrong": "stepped after the end", **evidence}, message, "the loop")

    def conclude(self) -> str:
        """A report of what was checked and what was not; also updates the counts of findings. "" without episodes."""
        self._alerts.conclude()
        missed = sum(self._not_checked.values())
        total = self.checked + missed
        if not total:
            return ""
        sentence = f"{self.checked} of {total} episodes were compared with what was reported of them"
        if missed:
            reasons = "; ".join(f"{n} because {reason}" for reason, n in self._not_checked.items())
            sentence += f"; {missed} were not: {reasons}"
        outcome = f"{self.differences:,} findings, see the alerts" if self.differences else "None differed"
        sentence += f". {outcome}." if self.differences or self.checked else "."
        self._recorder.record("text", {"key": "audit", "text": sentence})
        return sentence

    def expects(self, source: str) -> None:
        """Mark `source` as reporting: from now on, an episode without its report is a finding."""
        self._reporting.add(source)

    def sums_differ(self, own: tuple[float, int, int], reported: tuple[float, int, int], autoreset: str = "") -> None:
        """Report that the sub-environments' recorders and the vector have different sums.

        Args:
          own, reported: (sum of returns, steps, episodes) of the vector and of its recorders.
        """
        self.differences += 1
        evidence = dict(zip(("own_return", "own_steps", "own_episodes"), own, strict=True))
        evidence.update(zip(("reported_return", "reported_steps", "reported_episodes"), reported, strict=True))
        message = (
            f"sums differ: the vector gave {own[2]} episodes of {own[1]} steps with return {_short(own[0])} in all, "
            f"its sub-environments recorded {reported[2]} of {reported[1]} with {_short(reported[0])}"
        )
        self._alert({"wrong": "sums differ", "autoreset": autoreset, **evidence}, message, "sub-environments")

    def _same(self, own: float, reported: float, length: int) -> bool:
        if own != own or reported != reported:
            return own != own and reported != reported
        if own == reported:  # infinities too
            return True
        return abs(own - reported) <= self.relative * max(abs(own), abs(reported)) + self.per_step * max(1, length)

    def _verdict(
        self,
        own: tuple[float, int],
        their_return: float | None,
        their_length: int | None,
        before: tuple[float, int] | None,
    ) -> str:
        total, length = own
        return_differs = their_return is not None and not self._same(total, their_return, length)
        length_differs = their_length is not None and their_length != length
        if not return_differs and not length_differs:
            return ""
        if before is not None:
            leaked_length = their_length is None or their_length in (length, length + before[1])
            leaked_return = their_return is not None and self._same(total + before[0], their_return, length + before[1])
            if leaked_length and leaked_return and before[0]:
                return "leaked return"
        if length_differs and their_length is not None and abs(their_length - length) == 1:
            return "off by one"
        if length_differs:
            return "length differs"
        return "return differs"

    def _report(
        self,
        wrong: str,
        episode_id: str,
        own: tuple[float, int],
        reported: tuple[float | None, int | None] | None,
        before: tuple[float, int] | None,
        *,
        source: str,
        env_index: int,
        autoreset: str,
    ) -> None:
        self.differences += 1
        evidence: dict[str, object] = {
            "wrong": wrong,
            "episode_id": episode_id,
            "env_index": env_index,
            "own_return": own[0],
            "own_length": own[1],
            "reported_return": reported[0] if reported else None,
            "reported_length": reported[1] if reported else None,
            "previous_return": before[0] if before else None,
            "previous_length": before[1] if before else None,
            "autoreset": autoreset,
        }
        if reported is None:
            account = "reported nothing"
        else:
            account = f"reported return {_short(reported[0])}, length {_short(reported[1])}"
        message = (
            f"{wrong}: episode {episode_id} of environment {env_index} has return {_short(own[0])} and length "
            f"{own[1]} by its reward stream, {source} {account}"
        )
        self._alert(evidence, message, source)

    def _alert(self, evidence: Mapping[str, object], message: str, source: str) -> None:
        from rollbook.protocols import Alert

        episodes = self._first_episodes.setdefault((str(evidence["wrong"]), source), [])
        if len(episodes) < _FIRST_EPISODES:
            episodes.append(evidence.get("episode_id", ""))
        named = {**evidence, "first_episodes": episodes}
        self._alerts.report(
            Alert("episode_audit", "warn", message, named, source),
            f"{evidence['wrong']} {source}",
            "the run's own numbers are kept, see its alerts",
        )


def reported_in(info: Mapping[str, object] | None, key: str = "episode") -> tuple[float | None, int | None] | None:
    """(return, length) from the keys "r" and "l" of `info["episode"]`, or None if it is missing.

    Reads the infos of single environments, where both are numbers or arrays of one element.
    """
    reported = info.get(key) if info else None
    if reported is None or not hasattr(reported, "get"):
        return None
    total, length = scalar_of(reported.get("r")), scalar_of(reported.get("l"))
    if total is None and length is None:
        return None
    return (None if total is None else float(total)), (None if length is None else int(length))


def _short(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.6g}"
