/** Notes in Markdown, as elements: nothing of a text becomes markup or code, and only plain links lead anywhere. */

import type { ComponentChildren, VNode } from "preact";

const INLINE =
  /(`[^`]+`)|(\*\*[^*]+\*\*|__[^_]+__)|(\*[^*\s][^*]*\*|\b_[^_]+_\b)|(\[[^\]]+\]\([^()\s]+\))|(https?:\/\/[^\s<>)]+)/;
const MOST = 20_000; // letters

function inline(text: string, depth = 0): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let rest = text;
  for (let match = INLINE.exec(rest); match !== null && depth < 4; match = INLINE.exec(rest)) {
    if (match.index > 0) out.push(rest.slice(0, match.index));
    const [all, code, strong, soft, link] = match;
    if (code !== undefined) out.push(<code>{code.slice(1, -1)}</code>);
    else if (strong !== undefined) out.push(<b>{inline(strong.slice(2, -2), depth + 1)}</b>);
    else if (soft !== undefined) out.push(<i class="said">{inline(soft.slice(1, -1), depth + 1)}</i>);
    else if (link !== undefined) {
      const cut = link.lastIndexOf("](");
      out.push(anchor(link.slice(cut + 2, -1), link.slice(1, cut), all));
    } else out.push(anchor(all, all, all));
    rest = rest.slice(match.index + all.length);
  }
  if (rest !== "") out.push(rest);
  return out;
}

/** A link to the web, or to a place of this page; anything else stays text. */
function anchor(address: string, text: string, whole: string): ComponentChildren {
  if (/^https?:\/\//i.test(address))
    return (
      <a href={address} target="_blank" rel="noopener noreferrer nofollow">
        {text}
      </a>
    );
  return address.startsWith("#/") ? <a href={address}>{text}</a> : whole;
}

const ITEM = /^\s*(?:[-*+]|(\d+)[.)])\s+(?:\[([ xX])\]\s+)?(.*)$/;

/** The line below the head of a table. */
const RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$|^\s*\|\s*:?-+:?\s*\|\s*$/;
const isTable = (lines: string[], i: number): boolean =>
  (lines[i] ?? "").includes("|") && RULE.test(lines[i + 1] ?? "");

const cellsOf = (line: string): string[] =>
  line
    .trim()
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));

function table([head = "", , ...rows]: string[]): VNode {
  return (
    <div class="wide" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {cellsOf(head).map((cell) => (
              <th>{inline(cell)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {cellsOf(row).map((cell) => (
                <td>{inline(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function blocks(lines: string[]): VNode[] {
  const out: VNode[] = [];
  for (let i = 0; i < lines.length;) {
    const line = lines[i] as string;
    const fence = /^\s*(```|~~~)/.exec(line)?.[1];
    const head = /^(#{1,6})\s+(.*)$/.exec(line);
    if (fence !== undefined) {
      const end = lines.findIndex((other, k) => k > i && other.trimStart().startsWith(fence));
      const stop = end < 0 ? lines.length : end;
      out.push(
        <pre class="line" tabIndex={0}>
          {lines.slice(i + 1, stop).join("\n")}
        </pre>,
      );
      i = stop + 1;
    } else if (head) {
      out.push(<p class="head">{inline(head[2] ?? "")}</p>);
      i++;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      out.push(<hr />);
      i++;
    } else if (ITEM.test(line)) {
      const numbered = ITEM.exec(line)?.[1] !== undefined;
      const items: VNode[] = [];
      for (let found = ITEM.exec(line); found !== null; found = ITEM.exec(lines[++i] ?? "")) {
        const box = found[2] === undefined ? "" : found[2] === " " ? "☐ " : "☑ ";
        items.push(
          <li>
            {box}
            {inline(found[3] ?? "")}
          </li>,
        );
      }
      out.push(numbered ? <ol>{items}</ol> : <ul>{items}</ul>);
    } else if (line.startsWith(">")) {
      const from = i;
      while ((lines[i] ?? "").startsWith(">")) i++;
      out.push(
        <blockquote>
          {inline(
            lines
              .slice(from, i)
              .map((one) => one.replace(/^>\s?/, ""))
              .join("\n"),
          )}
        </blockquote>,
      );
    } else if (isTable(lines, i)) {
      const from = i;
      while ((lines[i] ?? "").includes("|")) i++;
      out.push(table(lines.slice(from, i)));
    } else if (line.trim() === "") i++;
    else {
      const from = i;
      while (
        i < lines.length &&
        (lines[i] as string).trim() !== "" &&
        (i === from ||
          (!/^(#|>|\s*(```|~~~))/.test(lines[i] as string) && !ITEM.test(lines[i] as string) && !isTable(lines, i)))
      )
        i++;
      out.push(<p>{inline(lines.slice(from, i).join("\n"))}</p>);
    }
  }
  return out;
}

export const Markdown = ({ text }: { text: string }) => (
  <div class="markdown">{blocks(text.slice(0, MOST).split(/\r?\n/))}</div>
);
