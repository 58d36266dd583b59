/** What the server pushes, as signals and listeners. The socket itself lives in a worker that all tabs share. */

import { effect, signal } from "@preact/signals";
import { source } from "./here.ts";

export type Push =
  | { type: "hello"; time: number; server: string }
  | { type: "runs"; version: string; live: number; total: number; changed: string[] | null }
  | {
      type: "status";
      run: string;
      name: string;
      project: string;
      seed: number | null;
      status: string;
      was: string | null;
      time: number;
      why: string | null;
      resume_line: string | null;
    }
  | { type: "run"; run: string; time: number; rows_seen: number; tables: string[] | null }
  | {
      type: "log";
      run: string;
      name: string;
      lines: { offset: number; text: string; time: number | null }[];
      end: number;
      /** The lines replace those that are shown. */
      again: boolean;
    }
  | { type: "boards" }
  | { type: "error"; error: { code: string; message: string; hint: string | null } }
  | { type: "pong"; n: number };

export interface Connection {
  state: "none" | "open" | "closed";
  /** When the next try is, in unix ms. */
  again: number;
  /** When something was last heard, in unix s. */
  heard: number;
  needsToken: boolean;
}

export const connection = signal<Connection>({ state: "none", again: 0, heard: 0, needsToken: false });
export const liveRuns = signal<number | null>(null);
/** Counts up whenever everything shown has to be asked for again: the tab woke, the server is another one. */
export const reborn = signal(0);

type Listener<T extends Push["type"]> = (push: Extract<Push, { type: T }>) => void;
const listeners = new Map<string, Set<(push: never) => void>>();
const wanted = new Map<string, number>();
const asleep = signal(document.hidden);
let port: MessagePort | null = null;
let server = "";

/** Calls `on` for pushes of one type; returns what stops it. */
export function hear<T extends Push["type"]>(type: T, on: Listener<T>): () => void {
  const set = listeners.get(type) ?? new Set();
  listeners.set(type, set.add(on));
  return () => set.delete(on);
}

/** Asks for a topic as long as it is on the screen; returns what stops it. */
export function watch(topic: string): () => void {
  wanted.set(topic, (wanted.get(topic) ?? 0) + 1);
  tell();
  return () => {
    const left = (wanted.get(topic) ?? 1) - 1;
    if (left > 0) wanted.set(topic, left);
    else wanted.delete(topic);
    tell();
  };
}

let queued = false;
function tell(): void {
  if (queued) return;
  queued = true;
  queueMicrotask(() => {
    queued = false;
    port?.postMessage({ type: "watch", topics: asleep.peek() ? [] : [...wanted.keys()] });
  });
}

function receive(text: string): void {
  const push = JSON.parse(text) as Push;
  connection.value = { ...connection.peek(), state: "open", heard: Date.now() / 1000 };
  if (push.type === "hello") {
    if (server !== "" && server !== push.server) reborn.value += 1;
    server = push.server;
  }
  if (push.type === "runs") liveRuns.value = push.live;
  for (const on of listeners.get(push.type) ?? []) (on as (push: Push) => void)(push);
}

/** Tries again now, whatever the waiting time. */
export function tryNow(): void {
  port?.postMessage({ type: "now" });
}

export function start(): void {
  if (!source.live) return;
  const worker = new SharedWorker(new URL("./live.worker.ts", import.meta.url), { type: "module", name: "rollbook" });
  port = worker.port;
  port.onmessage = ({ data }: MessageEvent<{ type: string; text?: string; again?: number; code?: number }>) => {
    if (data.type === "said" && data.text !== undefined) receive(data.text);
    else if (data.type === "open") {
      if (connection.peek().state === "closed") reborn.value += 1;
      connection.value = { ...connection.peek(), state: "open", heard: Date.now() / 1000, needsToken: false };
      tell();
    } else if (data.type === "closed") {
      connection.value = {
        ...connection.peek(),
        state: "closed",
        again: Date.now() + (data.again ?? 1) * 1000,
        needsToken: data.code === 4401,
      };
    }
  };
  port.start();
  const name = `rollbook-tab-${Math.random().toString(36).slice(2)}`;
  const socket = new URL("api/live", location.href);
  socket.protocol = socket.protocol === "https:" ? "wss:" : "ws:";
  socket.hash = "";
  const here = (lock: string | null): void => port?.postMessage({ type: "here", name: lock, socket: socket.href });
  // Locks exist on secure addresses only (loopback is one); elsewhere the tab says goodbye when it is closed.
  if (navigator.locks === undefined) here(null);
  else void navigator.locks.request(name, () => new Promise(() => here(name)));
  addEventListener("pagehide", () => port?.postMessage({ type: "bye" }));
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });
  document.addEventListener("visibilitychange", () => {
    asleep.value = document.hidden;
    if (!document.hidden) {
      tryNow();
      reborn.value += 1;
    }
  });
  addEventListener("online", tryNow);
  effect(() => {
    void asleep.value;
    tell();
  });
}
