/** Lines of a log. */

/** What a line begins with where its time is said beside it; a level other than INFO stays. */
const STAMP = /^(\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[^\s\]]*\](\[INFO\])?|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S*( -)?) ?/;

export const unstamped = ({ text, time }: { text: string; time: number | null }): string =>
  time === null ? text : text.replace(STAMP, "");
