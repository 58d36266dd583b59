"""Recording wrappers for gymnasium: `RecordEpisodes` for an environment or a vector, `record_envs` for env functions.

    env = RecordEpisodes(gymnasium.make("CartPole-v1"), run.scope("train"))
    envs = RecordEpisodes(AsyncVectorEnv(record_envs(env_fns, run.scope("train"))), run.scope("train"))

Recording changes nothing for the agent: same observations, rewards, infos and random streams. gymnasium merges the
infos of sub-environments into arrays and loses data (2.5 becomes 2 if the first value is an integer, arrays of
different shapes raise). So a vector is recorded inside each sub-environment if possible.
"""

try:
    import gymnasium
except ModuleNotFoundError:
    from rollbook.system.optional import need

    need("gymnasium", extra="gym", why="recording an environment")

from rollbook.capture.gym.envs import record_envs
from rollbook.capture.gym.single import RecordEpisodes
from rollbook.capture.ledger_stage import LedgerStage

__all__ = ["LedgerStage", "RecordEpisodes", "RecordVectorEpisodes", "record_envs"]

if hasattr(gymnasium.vector, "VectorWrapper"):  # gymnasium 1.0 and newer
    from rollbook.capture.gym.vector import RecordVectorEpisodes

    RecordEpisodes.for_vectors = RecordVectorEpisodes
