/** Rows of a long table, fetched in windows as they come on the screen. */

import { batch, signal, type Signal } from "@preact/signals";
import { waiting } from "./hands.ts";
import { refusal, type Refusal } from "./source.ts";

export interface WindowAnswer<Row> {
  total: number;
  rows: Row[];
}

/** One window of rows. */
export type AskWindow<Answer> = (offset: number, limit: number, signal: AbortSignal) => Promise<Answer>;

const SIZE = 100;

/** A table behind a question; a new question forgets the rows once the answer is there. */
export class Windows<Row, Answer extends WindowAnswer<Row>> {
  readonly total = signal(0);
  readonly error: Signal<Refusal | null> = signal(null);
  readonly answer: Signal<Answer | null> = signal(null);
  /** Counts up when rows changed. */
  readonly changed = signal(0);
  private rows = new Map<number, Row>();
  private pages = new Set<number>();
  private seen: [number, number] = [0, 30];
  private stop = new AbortController();
  private asking = false;
  private owed = false;

  constructor(private ask: AskWindow<Answer>) {}

  row(index: number): Row | undefined {
    return this.rows.get(index);
  }

  /** Where a row is, of those fetched so far; -1: not among them. */
  indexOf(is: (row: Row) => boolean): number {
    for (const [i, row] of this.rows) if (is(row)) return i;
    return -1;
  }

  /** All rows fetched so far. */
  known(): IterableIterator<Row> {
    return this.rows.values();
  }

  /** Says which rows are on the screen. */
  see(first: number, last: number): void {
    this.seen = [first, last];
    void this.fill();
  }

  /** Something changed: asks again, behind an answer that is under way. That one is not thrown away for a newer one. */
  async renew(): Promise<void> {
    if (this.asking) this.owed = true;
    else await this.again();
  }

  /** Asks anew, with a new question or because something changed; what is shown stays until then. */
  async again(ask: AskWindow<Answer> = this.ask): Promise<void> {
    this.ask = ask;
    this.stop.abort();
    this.stop = new AbortController();
    [this.asking, this.owed] = [true, false];
    const { signal: alive } = this.stop;
    const come = waiting();
    alive.addEventListener("abort", come);
    const page = Math.floor(Math.min(this.seen[0], Math.max(0, this.total.peek() - 1)) / SIZE);
    try {
      const first = Math.max(0, page) * SIZE;
      const answer = await ask(first, SIZE * 2, alive);
      if (alive.aborted) return;
      this.rows = new Map(answer.rows.map((row, i) => [first + i, row]));
      this.pages = new Set([page, page + 1]);
      // At once: rows drawn with the total of before would leave the last one out, and with it its focus.
      batch(() => {
        this.error.value = null;
        this.answer.value = answer;
        this.total.value = answer.total;
        this.changed.value += 1;
      });
      void this.fill();
    } catch (error) {
      if (!alive.aborted) this.error.value = refusal(error);
    }
    come();
    if (alive.aborted) return;
    this.asking = false;
    if (this.owed) await this.again();
  }

  /** Puts newer contents into the rows that are known, without moving any. */
  patch(change: (row: Row) => Row): void {
    for (const [i, row] of this.rows) this.rows.set(i, change(row));
    this.changed.value += 1;
  }

  private async fill(): Promise<void> {
    const { signal: alive } = this.stop;
    const last = Math.min(this.seen[1], this.total.peek() - 1);
    for (let page = Math.floor(this.seen[0] / SIZE); page * SIZE <= last; page++) {
      if (this.pages.has(page)) continue;
      this.pages.add(page);
      try {
        const answer = await this.ask(page * SIZE, SIZE, alive);
        if (alive.aborted) return;
        answer.rows.forEach((row, i) => this.rows.set(page * SIZE + i, row));
        this.changed.value += 1;
      } catch {
        this.pages.delete(page);
        return;
      }
    }
  }
}
