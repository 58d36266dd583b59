/** What stands where there is nothing to show: empty, refused, on its way. */

import type { ComponentChildren } from "preact";
import { connection } from "../state/live.ts";
import type { Refusal } from "../state/source.ts";
import { Icon } from "./Icon.tsx";
import { lazy } from "./lazy.tsx";

const Reading = lazy(() => import("./Reading.tsx").then((m) => m.Reading));

/** An empty place says what would stand there and the line that fills it. */
export function Empty({
  title,
  code,
  children,
  after,
}: {
  title: string;
  code?: string;
  children?: ComponentChildren;
  after?: ComponentChildren;
}) {
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

/** The frame of what is coming; nothing moves. `many`: of how many runs it is read already is said, too. */
export function Waiting({ what, many = false }: { what: string; many?: boolean }) {
  return (
    <div class="empty" role="status">
      <span class="soft">Reading {what}…</span> {many && <Reading />}
    </div>
  );
}

/** Whether the banner under the head says it already: the server is away. */
export const isInBanner = (error: Refusal | null): boolean =>
  error?.code === "offline" && connection.value.state === "closed" && connection.value.heard > 0;

export function Later({ what }: { what: string }) {
  return (
    <div class="empty" role="status">
      <span class="soft">As soon as the server answers, {what} will stand here.</span>
    </div>
  );
}

/** One of value, error, wait, in that order of what can be shown. That the server is away stands in the banner. */
export function Answered<T>({
  of,
  what,
  many = false,
  children,
}: {
  of: { value: T | null; error: Refusal | null; slow: boolean; again: () => void };
  what: string;
  /** Many runs are read for it. */
  many?: boolean;
  children: (value: T) => ComponentChildren;
}) {
  const away = isInBanner(of.error);
  return (
    <>
      {of.error && !away && <Failure error={of.error} again={of.again} />}
      {of.value !== null ? (
        children(of.value)
      ) : away ? (
        <Later what={what} />
      ) : of.slow && !of.error ? (
        <Waiting what={what} many={many} />
      ) : null}
    </>
  );
}
