/** What the first view does not need waits here until its curves are drawn. */

const LATEST = 4_000; // ms: a page may have no curves, or none that can be read

let drew: () => void = () => undefined;

/** Through once the first curves are there, or a page without any is shown. */
export const behind = new Promise<void>((resolve) => {
  drew = resolve;
  setTimeout(resolve, LATEST);
});

/** The first view is there. */
export const shown = (): void => drew();
