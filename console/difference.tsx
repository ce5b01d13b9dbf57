/** One statement at two instants, side by side: rows that were added, rows that are gone, cells that changed. */
import { useMemo, useState } from 'preact/hooks';
import { keyOf } from './catalog.ts';
import { plural } from './format.ts';
import { Grid } from './grid.tsx';
import { Head, Problem, useLoad } from './parts.tsx';
import { amend, place } from './place.ts';
import { ask } from './query.tsx';
import { atInstants, type Instants, instantsOf, typeOf } from './sql.ts';
import type { Rows } from './table.ts';
import { TimeBar } from './timebar.tsx';

interface Changed {
  readonly kind: 'added' | 'gone' | 'changed';
  readonly before: number;
  readonly after: number;
  readonly cells: ReadonlySet<number>;
}

const system = new Set(['valid_from', 'valid_to', 'system_from', 'system_to', '_provenance']);

/** By key; rows that stand the same in both are left out. */
function compare(before: Rows, after: Rows, key: string): readonly Changed[] {
  const keyAt = Math.max(
    0,
    after.columns.findIndex(({ name }) => name === key || name === '_pk' || name === 'id'),
  );
  const text = (rows: Rows, row: number, column: number): string => String(rows.cell(row, column));
  const old = new Map<string, number>();
  for (let row = 0; row < before.length; row++) old.set(text(before, row, keyAt), row);
  const all: Changed[] = [];
  for (let row = 0; row < after.length; row++) {
    const at = old.get(text(after, row, keyAt));
    if (at === undefined) {
      all.push({ kind: 'added', before: -1, after: row, cells: new Set() });
      continue;
    }
    old.delete(text(after, row, keyAt));
    const cells = new Set(
      after.columns.flatMap(({ name }, i) => (!system.has(name) && text(before, at, i) !== text(after, row, i) ? [i] : [])),
    );
    if (cells.size > 0) all.push({ kind: 'changed', before: at, after: row, cells });
  }
  for (const row of old.values()) all.push({ kind: 'gone', before: row, after: -1, cells: new Set() });
  return all;
}

export function Difference() {
  const { params } = place.value;
  const sql = params['sql'] ?? '';
  const type = typeOf(sql);
  const now = instantsOf(sql);
  const [left, setLeft] = useState<Instants>({
    true: params['true_a'] || now.true,
    believed: params['believed_a'] || now.believed,
  });
  const [right, setRight] = useState<Instants>({ true: params['true_b'] || null, believed: params['believed_b'] || null });
  const key = JSON.stringify([sql, left, right]);
  const { value, error, isLoading } = useLoad(sql === '' ? null : key, (signal) =>
    Promise.all([ask(atInstants(sql, left), signal), ask(atInstants(sql, right), signal)]),
  );
  const changes = useMemo(() => (value ? compare(value[0].rows!, value[1].rows!, keyOf(type ?? '')) : []), [value]);
  if (type === null) return <p>A difference is of one type: open it from a statement about one.</p>;
  const moved = (side: 'a' | 'b', instants: Instants): void => {
    (side === 'a' ? setLeft : setRight)(instants);
    amend({ [`true_${side}`]: instants.true ?? '', [`believed_${side}`]: instants.believed ?? '' });
  };
  const of = (kind: Changed['kind']): number => changes.filter((each) => each.kind === kind).length;
  return (
    <>
      <Head title="Difference">{type}: what differs between two instants</Head>
      <div class="panes">
        <section aria-label="before">
          <h2>Before</h2>
          <TimeBar type={type} instants={left} onMove={(instants) => moved('a', instants)} />
        </section>
        <section aria-label="after">
          <h2>After</h2>
          <TimeBar type={type} instants={right} onMove={(instants) => moved('b', instants)} />
        </section>
      </div>
      <Problem error={error} />
      {value && (
        <>
          <div class="bar" role="status" aria-busy={isLoading}>
            <span class="tag good">{of('added')} added</span>
            <span class="tag bad">{of('gone')} gone</span>
            <span class="tag warm">{of('changed')} changed</span>
            <span class="soft small">
              {plural(value[0].rows!.length, 'row')} before, {plural(value[1].rows!.length, 'row')} after
            </span>
          </div>
          <ChangeGrid changes={changes} before={value[0].rows!} after={value[1].rows!} />
        </>
      )}
    </>
  );
}

/** A changed row stands twice: as it was, and below as it is. */
function ChangeGrid({ changes, before, after }: { changes: readonly Changed[]; before: Rows; after: Rows }) {
  const lines = useMemo(
    () =>
      changes.flatMap((each) => {
        const was = {
          rows: before,
          row: each.before,
          mark: each.kind === 'gone' ? 'gone' : '',
          cells: each.cells,
          word: each.kind === 'gone' ? 'gone' : 'was',
        };
        const is = {
          rows: after,
          row: each.after,
          mark: each.kind === 'added' ? 'added' : '',
          cells: each.cells,
          word: each.kind === 'added' ? 'added' : 'is',
        };
        return each.kind === 'added' ? [is] : each.kind === 'gone' ? [was] : [was, is];
      }),
    [changes],
  );
  const rows: Rows = useMemo(
    () => ({
      columns: [{ name: '±', type: '' }, ...after.columns],
      length: lines.length,
      cell: (row, column) => (column === 0 ? lines[row]!.word : lines[row]!.rows.cell(lines[row]!.row, column - 1)),
      envelope: {},
    }),
    [lines],
  );
  if (lines.length === 0) return <p class="soft">Nothing differs.</p>;
  return <Grid rows={rows} marks={(row, column) => lines[row]!.mark || (lines[row]!.cells.has(column - 1) ? 'changed' : '')} />;
}
