/** A traceback and what stderr said, as one reads them: own frames, libraries folded, no line twice. */

export interface Frame {
  /** `train.py:212`; the library of folded frames; empty for a line that is no frame, such as the exception. */
  place: string;
  where: string;
  code: string;
  /** How many frames of a library stand for this one. */
  folded: number;
}

const LIBRARY = /[\\/](?:site-packages|dist-packages)[\\/]([^\\/]+)/;
const STANDARD = /[\\/]lib[\\/]python[\d.]+[\\/]|^<frozen /;

/** The frames of a Python traceback in its order. */
export function frames(traceback: string): Frame[] {
  const out: Frame[] = [];
  const lines = traceback.split("\n");
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? "";
    const at = /^\s+File "([^"]+)", line (\d+), in (.+)$/.exec(line);
    if (at === null) {
      const isCode = /^\s/.test(line) || line.startsWith("Traceback (most recent");
      if (!isCode && line.trim() !== "") out.push({ place: "", where: "", code: line, folded: 0 });
      continue;
    }
    const [, path = "", number = "", where = ""] = at;
    const next = lines[i + 1] ?? "";
    const code = /^\s{4}/.test(next) ? next.trim() : "";
    const name = LIBRARY.exec(path)?.[1] ?? (STANDARD.test(path) ? "Python" : null);
    if (name === null) {
      out.push({ place: `${path.split(/[\\/]/).at(-1) ?? path}:${number}`, where, code, folded: 0 });
      continue;
    }
    const last = out.at(-1);
    if (last !== undefined && last.folded > 0 && last.place === name) last.folded += 1;
    else out.push({ place: name, where: "", code: "", folded: 1 });
  }
  return out;
}

/** What rollbook writes to the terminal while a run goes on, also of a line whose beginning was left out. */
const PROGRESS = [
  /^\[\d+:\d\d:\d\d\] .+ [0-9a-z]{8}( \||$)/, // [0:00:01] cartpole/ppo  8mktgz99 | env_step …
  /\| time: (\S+ \d+%(, )?)+$/,
  /^… [\d,]+ characters left out …$/,
];

/** The last `most` lines of stderr that say something, without those that the traceback or the charts say already. */
export function lastMessages(stderr: string, traceback: string, most: number): string[] {
  const told = new Set(traceback.split("\n").map((line) => line.trim()));
  const lines = stderr
    .split("\n")
    .filter((line) => line.trim() !== "" && !told.has(line.trim()) && !PROGRESS.some((of) => of.test(line)));
  return lines.filter((line) => !line.startsWith("Traceback (most recent")).slice(-most);
}
