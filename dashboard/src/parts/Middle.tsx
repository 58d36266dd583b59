/** A name where room is short: cut in the middle, since names of one study differ at their ends. */

const TAIL = 8;

/** Its parts, for an element with the class "middle"; a short name is one part. */
export function halves(text: string, tail = TAIL) {
  const end = text.slice(-tail).trimStart(); // a space after the dots would be a second one
  if (text.length <= end.length + 3) return text;
  return (
    <>
      <bdi>{text.slice(0, -end.length)}</bdi>
      <bdi>{end}</bdi>
    </>
  );
}

/** Who hears the page hears the name as one; `name`: the whole of it. */
export const Middle = (of: { text: string; name?: string; tail?: number; title?: string }) => (
  <span class="middle" role="img" aria-label={of.name ?? of.text} title={of.title}>
    {halves(of.text, of.tail)}
  </span>
);
