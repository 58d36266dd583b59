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

/**
 * Through once the first view is looked at: what a click may open comes then, so that it opens at once, also while the
 * server is away.
 */
export const calm = Promise.all([behind, new Promise((resolve) => setTimeout(resolve, CALM))]);
