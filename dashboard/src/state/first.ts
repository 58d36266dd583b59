/** What the first view does not need waits here until its curves are drawn. */

const LATEST = 4_000; // ms: a page may have no curves, or none that can be read
const CALM = 2_000; // ms from the start of the page

let drew: () => void = () => undefined;

/** Through once the first curves are there, or a page without any is shown. */
export const behind = new Promise<void>((resolve) => {
  drew = resolve;
  setTimeout(resolve, LATEST);
});

/** The first view is there. */
export const shown = (): void => drew();

const IDLE = 5_000; // ms: behind what the browser is doing, but not for ever

/** Whether each byte counts: somebody said so, or the network is slow. */
function isThrifty(): boolean {
  const { connection } = navigator as { connection?: { saveData?: boolean; effectiveType?: string } };
  return connection?.saveData === true || /2g$/.test(connection?.effectiveType ?? "");
}

/**
 * Through once the first view is looked at and the browser rests: what a click may open comes then, so that it opens at
 * once, also while the server is away. Never where each byte counts: then it comes when it is opened.
 */
export const calm: Promise<void> = isThrifty()
  ? new Promise(() => undefined)
  : Promise.all([behind, new Promise((resolve) => setTimeout(resolve, CALM))]).then(
      () => new Promise((resolve) => requestIdleCallback(() => resolve(), { timeout: IDLE })),
    );
