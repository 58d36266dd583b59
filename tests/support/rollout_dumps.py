"""What frameworks leave on disk of their rollouts, in their formats; none of these files was written by the framework.

The writers themselves were run once on the same data, and their files gave the importers the same rows: NeMo-RL's
`log_batched_dict_as_jsonl` (nemo_rl/utils/logger.py at 7ea279a; the fields are those of nemo_rl/algorithms/grpo.py),
slime's `Sample.to_dict` and `save_debug_rollout_data` (slime/utils/types.py and
slime/observability/rollout_data_utils.py at 624b824, with tensors in two samples), and verifiers 0.4.0's
`Episode.to_record`, written as by `FileMonitor.log_episodes` (src/prime_rl/monitors/file.py at 559b447). Their
repositories have no sample files.

The sources: Tinker: thinking-machines-lab/tinker-cookbook at 08ee6ea (summaries) and 025e706 (logtree). NeMo-RL:
NVIDIA-NeMo/RL at 7ea279a. prime-rl: verifiers at 00eee6c (episodes), PrimeIntellect-ai/prime-rl at 0b77f23 (files).
slime: THUDM/slime at 0d234f3.
"""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path
from typing import Any


def verl_dumps(folder: Path) -> Path:
    """Dumps of generations in the format of verl's `_dump_generations`."""
    made = folder / "rollouts"
    made.mkdir()
    for step in (1, 2):
        lines = [
            {"input": f"{n // 2} + 2?", "output": f"{n}", "gts": "4", "score": n % 2, "step": step, "acc": n % 2 == 1}
            for n in range(8)
        ]
        (made / f"{step}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return made


def tinker_summaries(folder: Path) -> Path:
    """Rollout summaries in the format of the Tinker cookbook's `serialize_rollout_summaries`."""
    made = folder / "tinker" / "iteration_000003"
    made.mkdir(parents=True)
    step = {"ob_len": 9, "ac_len": 4, "reward": 0.5, "episode_done": True, "stop_reason": "stop", "metrics": {}}
    lines = [
        {
            "schema_version": 1, "split": "train", "iteration": 3, "group_idx": n // 2, "traj_idx": n % 2,
            "tags": ["gsm8k"], "sampling_client_step": 2, "total_reward": 0.5 + n, "final_reward": float(n),
            "trajectory_metrics": {"correct": 1.0}, "final_ob_len": 13,
            "steps": [{"step_idx": 0, **step, "ac_len": 4 + n, "logs": {"answer": "4"}}],
        }
        for n in range(8)
    ]  # fmt: skip
    talk = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": [{"type": "text", "text": "5"}]}]
    lines[7] |= {"schema_version": 3, "conversation": talk, "status": "error", "error_type": "TimeoutError"}
    (made / "train_rollout_summaries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    groups = [_logtree_group([(9, 4 + 2 * group), (9, 5 + 2 * group)], group) for group in (1, 40)]
    tree = {"title": "RL", "started_at": "2026-01-01T00:00:00", "root": {"tag": "body", "children": groups}}
    (made / "train_logtree.json").write_text(json.dumps(tree))
    return made.parent


def _logtree_group(lengths: list[tuple[int, int]], group: int) -> dict[str, Any]:
    """A group as `do_group_rollout` leaves it in a logtree: transcripts, then the numbers of each episode."""
    talks = [
        [{"role": "user", "content": f"{group} & 2?"}, {"role": "assistant", "content": f"{group}.{n}"}]
        for n in range(len(lengths))
    ]
    said = [
        _section(
            "do_single_rollout", {"tag": "div", "children": [], "data": {"type": "conversation", "messages": part}}
        )
        for talk in talks
        for part in [talk]
    ]
    for n, section in enumerate(said):  # a later step logs what was there before it once more
        more = [*talks[n], {"role": "tool", "content": "ok"}]
        section["children"][1]["children"].append({"tag": "div", "data": {"type": "conversation", "messages": more}})
    episodes = [
        _section(f"Trajectory {n} Episode", _section("Turn 1", _table(ob_len=ob, ac_len=ac, step_reward="0.500")))
        for n, (ob, ac) in enumerate(lengths)
    ]
    return _section("do_group_rollout", *said, _section("Trajectory Details", *episodes))


def _section(title: str, *inside: object) -> dict[str, Any]:
    return {
        "tag": "section",
        "attrs": {"class": "lt-section"},
        "children": [
            {"tag": "h2", "children": [title]},
            {"tag": "div", "children": list(inside)},
        ],
    }


def _table(**cells: object) -> dict[str, Any]:
    rows = [
        {"tag": "tr", "children": [{"tag": "td", "children": [str(text)]} for text in row]} for row in cells.items()
    ]
    return {"tag": "table", "children": [{"tag": "tbody", "children": rows}]}


def nemo_batches(folder: Path) -> Path:
    """Training batches in the format of NeMo-RL's `log_batched_dict_as_jsonl`: each cell a list of one."""
    made = folder / "nemo" / "exp_001"
    made.mkdir(parents=True)
    for step in (1, 2):
        lines = [
            {
                "content": [f"user: 2 + 2?\nassistant: {n}"],
                "rewards": [float(n % 2)],
                "input_lengths": [4],
                "token_ids": [[1, 2, 3, 4, 0]],
                "token_loss_mask": [[0, 0, 1, 1, 0]],
                "sample_loss_mask": [float(n != 3)],
                "advantages": [[0.0, 0.0, 0.5, 0.5, 0.0]],
                "generation_logprobs": [[0.0, 0.0, -1.0, -2.0, 0.0]],
                "prev_logprobs": [[0.0, 0.0, -1.5, -2.0, 0.0]],
                "idx": n,
            }
            for n in range(4)
        ]
        (made / f"train_data_step{step}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return made.parent


def prime_traces(folder: Path) -> Path:
    """Episodes in the format of prime-rl's file monitor, with what was learned later and an export of tokens."""
    made = folder / "prime" / "traces" / "step_3" / "train"
    (made / "annotations").mkdir(parents=True)
    nodes = [
        {"message": {"role": "user", "content": "2 + 2?"}, "sampled": False, "token_ids": [5, 6], "mask": [False] * 2},
        {"parent": 0, "sampled": True, "token_ids": [7, 8], "mask": [False, True], "logprobs": [-0.5],
         "message": {"role": "assistant", "tool_calls": [{"id": "a", "name": "py", "arguments": "{}"}]}},
        {"parent": 1, "message": {"role": "tool", "content": "4"}, "token_ids": [9], "mask": [False]},
        {"parent": 2, "message": {"role": "assistant", "content": "4"}, "sampled": True, "token_ids": [10, 11],
         "mask": [True, True], "logprobs": [-1.0, -2.0]},
    ]  # fmt: skip
    shared = {
        "env": {"id": "sums"},
        "task": {"type": "Sums", "data": {}},
        "group": {"id": "g"},
        "ok": True,
        "errors": [],
        "run": {"type": "train", "id": "r", "work": {"type": "train", "step": 3, "policy": {"start": 2, "end": 3}}},
    }
    trace = {
        "version": 1,
        "id": "t1",
        "nodes": nodes,
        "stop_condition": "agent_completed",
        "errors": [],
        "calls": [{"node": 3, "finish_reason": "stop", "time": {"start": 10.0, "end": 12.5}}],
        "rewards": {"exact": {"score": 1.0, "weight": 1.0}, "short": {"score": 0.5, "weight": 0.2}},
        "metrics": {"turns": 2.0},
        "info": {"train": {"logged_at_step": 3}},
        "timing": {
            "start": 1.7e9,
            "scoring": {"start": 4.0, "end": 4.5},
            "agent": {"start": 0, "end": 4, "model": {"duration": 3}, "harness": {"duration": 1}},
        },
    }
    failed = {**shared, "id": "e2", "ok": False, "errors": [{"type": "SandboxError", "message": "gone"}], "traces": []}
    episodes = [{**shared, "id": "e1", "traces": [trace, {**trace, "id": "t2"}]}, failed]
    (made / "traces.jsonl").write_text("".join(json.dumps(line) + "\n" for line in episodes))
    info = {"train": {"effective": True, "trained_at_step": 4}, "advantage": 0.75}
    update = {"version": 1, "trace_id": "t1", "info": info, "branches": []}
    (made / "annotations" / "orchestrator.jsonl").write_text(json.dumps(update) + "\n")
    exports = folder / "prime" / "token_exports" / "step_4"
    exports.mkdir(parents=True)
    columns = {"trainer_logprobs": [0.0, 0.0, 0.0, -0.6, 0.0, -1.0, -2.5], "entropy": [0.25] * 7}
    ids = [5, 6, 7, 8, 9, 10, 11]
    export = {"schema_version": 1, "step": 4, "rank": 0, "micro_step": 0, "token_ids": ids, **columns}
    others = {**export, "token_ids": [1, 2], "trainer_logprobs": [0.0, 0.0], "entropy": [0.0, 0.0]}
    (exports / "rank_0.jsonl").write_text(json.dumps(export) + "\n" + json.dumps(others) + "\n")
    return folder / "prime"


def slime_dumps(folder: Path) -> Path:
    """Rollout dumps in the format of slime's `save_debug_rollout_data`: what torch.save makes of plain data."""
    made = folder / "slime"
    made.mkdir()
    samples = [
        {
            "group_index": n // 2, "index": n, "prompt": "2 + 2?", "tokens": [5, 6, 7, 8], "response": f"{n}",
            "response_length": 2, "label": "4", "reward": float(n % 2), "loss_mask": [1, 0],
            "weight_versions": ["3", "4"], "rollout_log_probs": [-0.5, -1.0], "remove_sample": n == 3,
            "status": "truncated" if n == 2 else "completed",
            "metadata": {}, "session_id": None, "non_generation_time": 0.25,
        }
        for n in range(4)
    ]  # fmt: skip
    torch_file(made / "rollout_7.pt", {"rollout_id": 7, "samples": samples})
    return made


def torch_file(path: Path, data: object) -> None:
    """What torch.save makes of data without tensors."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(data, protocol=2))
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/version", "3\n")
