import { unstamped } from "./log.ts";
import { describe, expect, test } from "vitest";
import { frames, lastMessages } from "./failure.ts";

const TRACE = `Traceback (most recent call last):
  File "/code/train.py", line 212, in main
    losses = agent.update(batch)
  File "/venv/lib/python3.11/site-packages/torch/nn/module.py", line 1, in _call
    return forward()
  File "/venv/lib/python3.11/site-packages/torch/nn/module.py", line 2, in forward
    return x
  File "C:\\code\\ppo.py", line 61, in check_finite
    raise FloatingPointError("nan")
FloatingPointError: loss is nan`;

describe("a traceback", () => {
  test("shows own frames by file and line, with their code", () => {
    const own = frames(TRACE).filter(({ folded, place }) => folded === 0 && place !== "");
    expect(own.map(({ place }) => place)).toEqual(["train.py:212", "ppo.py:61"]);
    expect(own[0]).toMatchObject({ where: "main", code: "losses = agent.update(batch)" });
  });
  test("folds frames of one library that follow each other, by its name", () => {
    expect(frames(TRACE).filter(({ folded }) => folded > 0)).toEqual([
      { place: "torch", where: "", code: "", folded: 2 },
    ]);
    const standard = '  File "/usr/lib/python3.11/json/decoder.py", line 3, in decode\n    x()';
    expect(frames(standard)).toEqual([{ place: "Python", where: "", code: "", folded: 1 }]);
  });
  test("ends with the exception, and words between two exceptions stay", () => {
    expect(frames(TRACE).at(-1)?.code).toBe("FloatingPointError: loss is nan");
    expect(frames("During handling of the above exception, another exception occurred:")[0]?.place).toBe("");
  });
  test("that is none is shown as it is, and nothing is nothing", () => {
    expect(frames("killed by signal 9")).toEqual([{ place: "", where: "", code: "killed by signal 9", folded: 0 }]);
    expect(frames("")).toEqual([]);
  });
});

describe("the last lines of stderr", () => {
  test("are those that say something else than the traceback, in order", () => {
    const stderr = `a\nb\n\nWARNING c\n${TRACE}\n`;
    expect(lastMessages(stderr, TRACE, 2)).toEqual(["b", "WARNING c"]);
    expect(lastMessages("", TRACE, 8)).toEqual([]);
    expect(lastMessages("x", "", 8)).toEqual(["x"]);
  });
  test("are not those in which rollbook itself reports the progress, which the charts show", () => {
    const progress = [
      "[0:00:00] cartpole/ppo  8mktgz99",
      "… 1,200 characters left out …",
      "return 49.0 | time: rollout 78%, train 22%",
      "[0:00:02] cartpole/ppo  8mktgz99 | env_step 1,112 of 40,000",
    ];
    expect(lastMessages(["[0:00:01] joint 3 left its range", ...progress].join("\n"), "", 8)).toEqual([
      "[0:00:01] joint 3 left its range",
    ]);
  });
});

test("the time of a line that is said beside it is not said again", () => {
  const of = (text: string) => unstamped({ text, time: 1 });
  expect(of("[2026-11-27 23:00:01][INFO] it begins")).toBe("it begins");
  expect(of("[2026-11-27 23:00:01][WARNING] it ends")).toBe("[WARNING] it ends");
  expect(of("2026-11-27T23:00:01.123Z - a step")).toBe("a step");
  expect(of("read 2026-11-27 23:00:01")).toBe("read 2026-11-27 23:00:01");
  expect(unstamped({ text: "2026-11-27 23:00:01 x", time: null })).toBe("2026-11-27 23:00:01 x");
});
