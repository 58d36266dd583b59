"""Published scores that put tasks on one scale: Atari (random, human) and D4RL (random, expert).

Numbers only, each table with its source. A name is found in the spelling of any library: "Breakout", "breakout",
"ALE/Breakout-v5", "BreakoutNoFrameskip-v4"; "hopper-medium-replay-v2" is "hopper".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rollbook.errors import UnknownKey, did_you_mean


@dataclass(frozen=True)
class Reference:
    """A named table of scores.

    Attributes:
      name: the name of the table.
      low: the agent of the lower anchor, which becomes 0.
      high: the agent of the upper anchor, which becomes 1.
      source: where the numbers were published, and under which conditions.
      scores: task -> (low, high).
    """

    name: str
    low: str
    high: str
    source: str
    scores: Mapping[str, tuple[float, float]]

    def of(self, task: str) -> tuple[float, float]:
        """The anchors of a task, in any spelling.

        Raises:
          UnknownKey: the table does not have it.
        """
        plain = _plain(task)
        for name, anchors in self.scores.items():
            if _plain(name) == plain:
                return anchors
        known = sorted(self.scores, key=lambda name: -len(name))
        for name in known if self.name == "d4rl" else ():  # the dataset does not change the environment's anchors
            if plain.startswith(_plain(name)):
                return self.scores[name]
        raise UnknownKey(
            f"The reference scores {self.name!r} have no task {task!r}.", did_you_mean(task, list(self.scores))
        )


def _plain(task: str) -> str:
    """Only the letters and digits of the game's name."""
    name = re.sub(r"-v\d+$", "", task.rpartition("/")[2] if task.startswith(("ALE/", "ale/")) else task)
    name = re.sub(r"(?i)[-_]?(NoFrameskip|Deterministic)$", "", name)
    return re.sub(r"[^a-z0-9]", "", name.lower())


ATARI = Reference(
    "atari",
    "random play",
    "a professional human tester",
    "Mnih et al. (2015) and Wang et al., Dueling Network Architectures (2016), no-op starts, 57 games; the values of "
    "DQN Zoo (Quan and Ostrovski, 2020). On Video Pinball random play beats the tester in other evaluations.",
    {
        "Alien": (227.8, 7127.7),
        "Amidar": (5.8, 1719.5),
        "Assault": (222.4, 742.0),
        "Asterix": (210.0, 8503.3),
        "Asteroids": (719.1, 47388.7),
        "Atlantis": (12850.0, 29028.1),
        "BankHeist": (14.2, 753.1),
        "BattleZone": (2360.0, 37187.5),
        "BeamRider": (363.9, 16926.5),
        "Berzerk": (123.7, 2630.4),
        "Bowling": (23.1, 160.7),
        "Boxing": (0.1, 12.1),
        "Breakout": (1.7, 30.5),
        "Centipede": (2090.9, 12017.0),
        "ChopperCommand": (811.0, 7387.8),
        "CrazyClimber": (10780.5, 35829.4),
        "Defender": (2874.5, 18688.9),
        "DemonAttack": (152.1, 1971.0),
        "DoubleDunk": (-18.6, -16.4),
        "Enduro": (0.0, 860.5),
        "FishingDerby": (-91.7, -38.7),
        "Freeway": (0.0, 29.6),
        "Frostbite": (65.2, 4334.7),
        "Gopher": (257.6, 2412.5),
        "Gravitar": (173.0, 3351.4),
        "Hero": (1027.0, 30826.4),
        "IceHockey": (-11.2, 0.9),
        "Jamesbond": (29.0, 302.8),
        "Kangaroo": (52.0, 3035.0),
        "Krull": (1598.0, 2665.5),
        "KungFuMaster": (258.5, 22736.3),
        "MontezumaRevenge": (0.0, 4753.3),
        "MsPacman": (307.3, 6951.6),
        "NameThisGame": (2292.3, 8049.0),
        "Phoenix": (761.4, 7242.6),
        "Pitfall": (-229.4, 6463.7),
        "Pong": (-20.7, 14.6),
        "PrivateEye": (24.9, 69571.3),
        "Qbert": (163.9, 13455.0),
        "Riverraid": (1338.5, 17118.0),
        "RoadRunner": (11.5, 7845.0),
        "Robotank": (2.2, 11.9),
        "Seaquest": (68.4, 42054.7),
        "Skiing": (-17098.1, -4336.9),
        "Solaris": (1236.3, 12326.7),
        "SpaceInvaders": (148.0, 1668.7),
        "StarGunner": (664.0, 10250.0),
        "Surround": (-10.0, 6.5),
        "Tennis": (-23.8, -8.3),
        "TimePilot": (3568.0, 5229.2),
        "Tutankham": (11.4, 167.6),
        "UpNDown": (533.4, 11693.2),
        "Venture": (0.0, 1187.5),
        "VideoPinball": (16256.9, 17667.9),
        "WizardOfWor": (563.5, 4756.5),
        "YarsRevenge": (3092.9, 54576.9),
        "Zaxxon": (32.5, 9173.3),
    },
)

D4RL = Reference(
    "d4rl",
    "random play",
    "an expert policy (a solved task where there is none)",
    "Fu et al., D4RL: Datasets for Deep Data-Driven Reinforcement Learning (2020), reference scores of its release.",
    {
        "halfcheetah": (-280.178953, 12135.0),
        "hopper": (-20.272305, 3234.3),
        "walker2d": (1.629008, 4592.3),
        "ant": (-325.6, 3879.7),
        "antmaze": (0.0, 1.0),
        "pen": (96.262799, 3076.8331017826877),
        "hammer": (-274.856578, 12794.134825156867),
        "relocate": (-6.425911, 4233.877797728884),
        "door": (-56.512833, 2880.5693087298737),
        "kitchen": (0.0, 4.0),
        "maze2d-open": (0.01, 20.66),
        "maze2d-umaze": (23.85, 161.86),
        "maze2d-medium": (13.13, 277.39),
        "maze2d-large": (6.7, 273.99),
        "maze2d-open-dense": (11.17817, 27.166538620695782),
        "maze2d-umaze-dense": (68.537689, 193.66285642381482),
        "maze2d-medium-dense": (44.264742, 297.4552547777125),
        "maze2d-large-dense": (30.569041, 303.4857382709002),
        "minigrid-fourrooms": (0.01442, 2.89685),
    },
)

REFERENCES = {table.name: table for table in (ATARI, D4RL)}
"""Name -> table."""
