/** What stands where there is nothing to show: empty, refused, on its way. */

import type { ComponentChildren } from "preact";
import type { Refusal } from "../state/source.ts";
import { Icon } from "./Icon.tsx";

/** An empty place says what would stand there and the line that fills it. */
export function Empty({ title, code, children, after }: { title: string; code?: string; children?: ComponentChildren; after?: ComponentChildren }) {
  return (
    <div class="empty">
      <b>{title}</b>
      {children}
      {code !== undefined && (
        <pre class="line" tabIndex={0}>
          {code}
        </pre>
      )}
      {after}
    </div>
  );
}

/** What was asked, what was found, what to do; in the place of the one thing it concerns. */
export function Failure({ error, again }: { error: Refusal; again?: () => void }) {
  return (
    <div class="alert bad" role="alert">
      <Icon name="info" />
      <div class="grow">
        <b>{error.message}</b>
        {error.hint !== null && <div>{error.hint}</div>}
      </div>
      {again && (
        <button class="btn" type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** The frame of what is coming; nothing moves. */
export function Waiting({ what }: { what: string }) {
  return (
    <div class="empty" role="status">
      <span class="soft">Reading {what}…</span>
    </div>
  );
}

/** One of value, error, wait, in that order of what can be shown. */
export function Answered<T>({ of, what, children }: {
  of: { value: T | null; error: Refusal | null; slow: boolean; again: () => void };
  what: string;
  children: (value: T) => ComponentChildren;
}) {
  return (
    <>
      {of.error && <Failure error={of.error} again={of.again} />}
      {of.value !== null ? children(of.value) : of.slow && !of.error ? <Waiting what={what} /> : null}
    </>
  );
}
