/** What a rollout was asked: its messages before the first turn. */

import type { OneRollout as Found } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { Folded } from "./Turn.tsx";

interface Message {
  role?: unknown;
  content?: unknown;
}

export const LONG_TASK = 400;

export function messagesOf(found: Found): { role: string; text: string }[] {
  let messages: Message[] = [];
  try {
    const read: unknown = found.messages === null ? null : JSON.parse(found.messages);
    if (Array.isArray(read)) messages = read as Message[];
  } catch {
    messages = [];
  }
  if (messages.length === 0 && typeof found.prompt === "string") messages = [{ role: "task", content: found.prompt }];
  return messages.map(({ role, content }) => ({
    role: shown(String(role)),
    text: shown(typeof content === "string" ? content : JSON.stringify(content)),
  }));
}

export function Task({ found, open }: { found: Found; open: boolean }) {
  return (
    <>
      {messagesOf(found).map(({ role, text }, i) => (
        <div key={i} class="turn">
          <span class="nr" />
          <div>
            <b>{role}</b> <span class="soft">not trained</span>
            {text.length > LONG_TASK ? (
              <Folded head={text.slice(0, 160)} text={text} open={open} />
            ) : (
              <pre dir="auto">{text}</pre>
            )}
          </div>
        </div>
      ))}
    </>
  );
}
