/** Rows of cells as a file for other programs. */

const FORMULA = /^[=+\-@\t\r]/;

/** Comma-separated values as RFC 4180 has them: what holds a comma, a quote or a line end stands in quotes. */
export const csvOf = (rows: readonly (readonly unknown[])[]): string =>
  rows.map((row) => row.map(csvCell).join(",") + "\r\n").join("");

/** A text that a spreadsheet would take for a formula is marked as text, as the server does it (`tables/files.py`). */
function csvCell(cell: unknown): string {
  if (cell === null || cell === undefined) return "";
  const said = typeof cell === "object" ? JSON.stringify(cell) : String(cell);
  const text = FORMULA.test(said) && Number.isNaN(Number(said)) ? `'${said}` : said;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
