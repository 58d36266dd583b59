/** Where two texts differ, word by word. */

export interface Part {
  kind: "same" | "only a" | "only b";
  text: string;
}

const MOST = 1200;

/** Longest common run of words (Myers would be faster; texts are cut at 1,200 words, so a table will do). */
export function diff(a: string, b: string): Part[] {
  const [left, right] = [words(a), words(b)];
  const [n, m] = [left.length, right.length];
  const table = new Uint16Array((n + 1) * (m + 1));
  const at = (i: number, j: number): number => table[i * (m + 1) + j] as number;
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--)
      table[i * (m + 1) + j] = left[i] === right[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const parts: Part[] = [];
  const put = (kind: Part["kind"], text: string | undefined): void => {
    const last = parts[parts.length - 1];
    if (last?.kind === kind) last.text += text ?? "";
    else parts.push({ kind, text: text ?? "" });
  };
  let [i, j] = [0, 0];
  while (i < n || j < m) {
    if (i < n && j < m && left[i] === right[j]) {
      put("same", left[i]);
      i++;
      j++;
    } else if (i < n && (j >= m || at(i + 1, j) >= at(i, j + 1))) put("only a", left[i++]);
    else put("only b", right[j++]);
  }
  return parts;
}

function words(text: string): string[] {
  const all = text.match(/[\p{L}\p{N}_]+\s*|[^\p{L}\p{N}_]\s*/gu) ?? [];
  return all.length > MOST ? [...all.slice(0, MOST), "…"] : all;
}

/** A text that cannot reorder or hide what stands around it: bidirectional and control characters by their code. */
export function shown(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (sign) => `⟨U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}
