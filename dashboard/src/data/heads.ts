/** What stands in the heads of columns of the runs table. */

/** The last part of each key, with as many of those before it as tell it from the others. */
export const lastParts = (keys: readonly string[], between = "/"): string[] =>
  keys.map((key) => {
    const parts = key.split(between);
    const isOwn = (end: string): boolean =>
      !keys.some((other) => other !== key && (other === end || other.endsWith(between + end)));
    const ends = parts.map((_, i) => parts.slice(parts.length - 1 - i).join(between));
    return ends.find(isOwn) ?? key;
  });

/** What a column has of a key: `last:train/return` its last value; null of other columns. */
export const metricOf = (id: string): RegExpExecArray | null =>
  /^(last|max|min):(.*)$/s.exec(id === "return" ? "last:return" : id);

/** The heads of columns beside each other, no two alike. `curveOf`: the key of the column "spark". */
export function headsOf(ids: readonly string[], curveOf: string): string[] {
  const plain = ids.map((id) => metricOf(id)?.[2] ?? (id === "progress" ? "done" : id.replace(/^config\./, "")));
  const kinds = ids.map((id) => metricOf(id)?.[1] ?? "last");
  const heads = ids.map((_, i) => {
    const others = plain.filter((_, k) => kinds[k] === kinds[i]);
    const isSetting = ids[i]?.startsWith("config.") === true;
    const [end = ""] = lastParts([plain[i] as string, ...others], isSetting ? "." : "/");
    return kinds[i] === "last" ? end : `${kinds[i]} ${end}`;
  });
  const shown = curveOf.slice(curveOf.lastIndexOf("/") + 1);
  const isTwin = heads.some((head) => head === shown || head.endsWith(`/${shown}`));
  return ids.map((id, i) => (id !== "spark" ? (heads[i] as string) : isTwin ? "curve" : shown));
}
