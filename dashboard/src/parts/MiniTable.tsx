import type { ComponentChildren } from "preact";

export interface MiniColumn {
  id: string;
  head: ComponentChildren;
  number?: boolean;
}

/** A short table whose rows are all there. */
export function MiniTable<Row>({
  label,
  columns,
  rows,
  cell,
  rowClass,
  onOpen,
  onPoint,
}: {
  label: string;
  columns: MiniColumn[];
  rows: readonly Row[];
  cell: (row: Row, id: string) => ComponentChildren;
  rowClass?: (row: Row) => string;
  onOpen?: (row: Row) => void;
  /** The row under the pointer; null when it has left. */
  onPoint?: (row: Row | null) => void;
}) {
  return (
    <div class="minitable" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map(({ id, head, number }) => (
              <th key={id} scope="col" class={number ? "num" : undefined}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr
              key={i}
              class={rowClass?.(row)}
              onClick={onOpen && (() => onOpen(row))}
              onPointerEnter={onPoint && (() => onPoint(row))}
              onPointerLeave={onPoint && (() => onPoint(null))}
            >
              {columns.map(({ id, number }) => (
                <td key={id} class={number ? "num" : undefined}>
                  {cell(row, id)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
