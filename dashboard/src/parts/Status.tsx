/** The status of a run: a shape and a word, never a colour alone. */
export function Status({ status, text, count }: { status: string; text?: string; count?: number }) {
  const known = ["running", "finished", "killed", "crashed", "stale"].includes(status) ? status : "killed";
  return (
    <span class={`st ${known}`} title={count === undefined ? undefined : `${count} ${status}`}>
      <svg viewBox="0 0 12 12" aria-hidden="true">
        <Shape status={known} />
      </svg>
      {count === undefined ? (text ?? status) : count}
      {count !== undefined && <span class="sr"> {status}</span>}
    </span>
  );
}

function Shape({ status }: { status: string }) {
  if (status === "running") return <circle cx="6" cy="6" r="4.5" fill="currentColor" />;
  if (status === "finished") return <path d="M2 6.5l3 3 5-7" fill="none" stroke="currentColor" stroke-width="1.8" />;
  if (status === "crashed") return <path d="M2.5 2.5l7 7M9.5 2.5l-7 7" stroke="currentColor" stroke-width="2" />;
  if (status === "stale")
    return (
      <circle cx="6" cy="6" r="4.2" fill="none" stroke="currentColor" stroke-width="1.6" stroke-dasharray="2.2 2" />
    );
  return <rect x="2" y="2" width="8" height="8" fill="currentColor" />;
}
