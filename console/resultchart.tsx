/** A chart of an answer: its first instant, number or text across, its numbers up. */
import { useEffect, useRef } from 'preact/hooks';
import { isInstantColumn } from './format.ts';
import { cellText } from './parts.tsx';
import type { Rows } from './table.ts';

const pointsMax = 20_000;
const linesMax = 2;

interface Lines {
  readonly across: string;
  readonly names: readonly string[];
  readonly series: readonly (readonly number[])[];
  /** Of the first column where it is a text. */
  readonly labels: readonly string[] | null;
}

const isNumeric = (type: string): boolean => /^(int|uint|float|integer|number)/i.test(type);

/** null where no column is a number. */
export function linesOf(rows: Rows): Lines | null {
  const columns = rows.columns.map((column, at) => ({ ...column, at }));
  const isTime = ({ name, type }: { name: string; type: string }): boolean => isInstantColumn(name) || /time|instant/i.test(type);
  const across = columns.find(isTime) ?? columns[0];
  const up = columns.filter((column) => column !== across && isNumeric(column.type) && !isTime(column)).slice(0, linesMax);
  if (across === undefined || up.length === 0) return null;
  const length = Math.min(rows.length, pointsMax);
  const order = Array.from({ length }, (_, row) => row);
  const isText = !isTime(across) && !isNumeric(across.type);
  const at = (row: number, column: number): number => Number(rows.cell(row, column) ?? Number.NaN);
  // Nanoseconds to the seconds that the chart counts in.
  const x = (row: number): number => (isText ? row : isTime(across) ? at(row, across.at) / 1e9 : at(row, across.at));
  if (!isText) order.sort((a, b) => x(a) - x(b));
  return {
    across: across.name,
    names: up.map(({ name }) => name),
    series: [order.map(x), ...up.map((column) => order.map((row) => at(row, column.at)))],
    labels: isText ? order.map((row) => cellText(rows.cell(row, across.at), across.name, across.type)) : null,
  };
}

export function ResultChart({ rows }: { rows: Rows }) {
  const frame = useRef<HTMLDivElement>(null);
  const lines = linesOf(rows);
  useEffect(() => {
    if (lines === null) return undefined;
    let isGone = false;
    let destroy = (): void => undefined;
    void import('./chart.ts').then(({ openChart }) => {
      if (isGone) return;
      const isTime = isInstantColumn(lines.across) || lines.series[0]!.some((x) => x > 1e8);
      const plot = openChart(frame.current!, lines.names, lines.series as [number[], ...number[][]], {
        across: isTime && lines.labels === null ? 'time' : (lines.labels ?? 'number'),
      });
      destroy = () => plot.destroy();
    });
    return () => {
      isGone = true;
      destroy();
    };
  }, [rows]);
  if (lines === null) return <p class="soft">No column of this answer is a number.</p>;
  return (
    <section class="card" aria-label={`chart of ${lines.names.join(', ')} by ${lines.across}`}>
      <div ref={frame} />
    </section>
  );
}
