"""Transitions out of RLlib's sampled episodes: single- and multi-agent, infos included, each step once."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

    from rollbook.capture import TransitionRecorder

__all__ = ["add_episode"]


def add_episode(transitions: TransitionRecorder, chunk: SingleAgentEpisode, env_index: int) -> None:
    """Record every step of a sampled chunk.

    Args:
      chunk: a SingleAgentEpisode or a MultiAgentEpisode; only its own steps are taken, not those it looks back on.
    """
    agents = getattr(chunk, "agent_episodes", None)
    if agents is None:
        _add(transitions, chunk, str(chunk.id_), "", env_index)
        return
    # The steps of all agents in the order of time; an agent that is over must not end the episode for the others.
    for agent, agent_episode in agents.items():
        _add(transitions, agent_episode, str(chunk.id_), str(agent), env_index)


def _add(
    transitions: TransitionRecorder, chunk: SingleAgentEpisode, episode_id: str, agent: str, env_index: int
) -> None:
    n, last = len(chunk), len(chunk) - 1
    outputs = [key for key in chunk.extra_model_outputs if key != "infos"]
    for i in range(n):
        transitions.add(
            obs=chunk.get_observations(i),
            action=chunk.get_actions(i),
            reward=chunk.get_rewards(i),
            next_obs=chunk.get_observations(i + 1),
            terminated=bool(chunk.is_terminated) and i == last,
            truncated=bool(chunk.is_truncated) and i == last,
            info=chunk.get_infos(i + 1),
            agent=agent,
            env_index=env_index,
            episode_id=episode_id,
            t=int(chunk.t_started) + i,
            **{str(key): chunk.get_extra_model_outputs(key, i) for key in outputs},
        )
