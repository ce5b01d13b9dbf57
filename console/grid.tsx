/** A window of rows: as many elements as fit the screen, however many rows there are. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { isInstantColumn } from './format.ts';
import { Cell, cellText, Dialog } from './parts.tsx';
import type { Column, Rows } from './table.ts';

const rowHeight = 27;
const headHeight = 28;
const sampleRows = 60;

interface GridProps {
  readonly rows: Rows;
  readonly sort?: string;
  readonly onSort?: (column: string) => void;
  readonly onRow?: (row: number) => void;
  readonly onFilter?: (column: Column, value: unknown) => void;
  /** Names of classes for a row's cells. */
  readonly marks?: (row: number, column: number) => string;
}

export function Grid({ rows, sort = '', onSort, onRow, onFilter, marks }: GridProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  const [chosen, setChosen] = useState(-1);
  const [opened, setOpened] = useState<{ column: Column; value: unknown } | null>(null);
  const widths = useMemo(() => widthsOf(rows), [rows]);
  useEffect(() => {
    const element = frame.current!;
    element.scrollTop = 0;
    setTop(0);
    setChosen(-1);
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, [rows]);
  const first = Math.max(0, Math.floor(top / rowHeight) - 6);
  const last = Math.min(rows.length, Math.ceil((top + height) / rowHeight) + 6);
  const choose = (row: number): void => {
    if (row < 0 || row >= rows.length) return;
    setChosen(row);
    const element = frame.current!;
    if (row * rowHeight < element.scrollTop) element.scrollTop = row * rowHeight;
    const end = (row + 1) * rowHeight + headHeight;
    if (end > element.scrollTop + element.clientHeight) element.scrollTop = end - element.clientHeight;
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.target !== frame.current) return;
    const page = Math.floor(height / rowHeight) - 1;
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -chosen,
      End: rows.length - 1 - chosen,
    };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      choose(Math.min(rows.length - 1, Math.max(0, chosen + step)));
    } else if (event.key === 'Enter' && chosen >= 0) onRow?.(chosen);
  };
  const visible = Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i);
  return (
    <>
      <div
        class="grid"
        ref={frame}
        role="grid"
        aria-label="rows"
        aria-rowcount={rows.length}
        aria-colcount={rows.columns.length}
        tabIndex={0}
        onScroll={() => setTop(frame.current!.scrollTop)}
        onKeyDown={onKey}
      >
        <div class="header" role="row">
          <div class="headcell rownumber" role="columnheader">
            #
          </div>
          {rows.columns.map((column, i) => (
            <div
              class={`headcell${isNumber(rows, i) ? ' number' : ''}`}
              role="columnheader"
              style={{ width: `${widths[i]}px` }}
              aria-sort={sortState(sort, column.name)}
              title={column.type}
            >
              {onSort ? (
                <button type="button" onClick={() => onSort(column.name)}>
                  {column.name}
                </button>
              ) : (
                column.name
              )}
              {sortArrow(sort, column.name)}
            </div>
          ))}
        </div>
        <div class="rows" role="rowgroup" style={{ height: `${rows.length * rowHeight}px` }}>
          {visible.map((row) => (
            <div
              class="row"
              key={row}
              role="row"
              aria-rowindex={row + 1}
              aria-selected={row === chosen}
              style={{ transform: `translateY(${row * rowHeight}px)` }}
              onClick={() => choose(row)}
              onDblClick={() => onRow?.(row)}
            >
              <div class="cell rownumber" role="rowheader">
                {row + 1}
              </div>
              {rows.columns.map((column, i) => {
                const value = rows.cell(row, i);
                return (
                  <div
                    class={`cell${isNumber(rows, i) ? ' number' : ''} ${marks?.(row, i) ?? ''}`}
                    role="gridcell"
                    style={{ width: `${widths[i]}px` }}
                    onContextMenu={(event) => {
                      event.preventDefault();
                      setOpened({ column, value });
                    }}
                  >
                    <Cell value={value} name={column.name} type={column.type} />
                  </div>
                );
              })}
            </div>
          ))}
        </div>
      </div>
      {opened && (
        <Dialog title={opened.column.name} close={() => setOpened(null)}>
          <pre>{cellText(opened.value, opened.column.name, opened.column.type)}</pre>
          {onFilter && (
            <p>
              <button
                type="button"
                onClick={() => {
                  onFilter(opened.column, opened.value);
                  setOpened(null);
                }}
              >
                Only rows with this value
              </button>
            </p>
          )}
        </Dialog>
      )}
    </>
  );
}

function isNumber(rows: Rows, column: number): boolean {
  const { name, type } = rows.columns[column]!;
  return !isInstantColumn(name) && /^(int|float)/.test(type);
}

function sortState(sort: string, column: string): 'ascending' | 'descending' | 'none' {
  if (sort === `ORDER BY ${column}`) return 'ascending';
  return sort === `ORDER BY ${column} DESC` ? 'descending' : 'none';
}

function sortArrow(sort: string, column: string): string {
  const state = sortState(sort, column);
  return state === 'none' ? '' : state === 'ascending' ? '↑' : '↓';
}

/** By a few rows: measuring all of a million would take as long as showing them. */
function widthsOf(rows: Rows): number[] {
  return rows.columns.map(({ name, type }, i) => {
    let longest = name.length + 2;
    for (let row = 0; row < Math.min(sampleRows, rows.length); row++)
      longest = Math.max(longest, cellText(rows.cell(row, i), name, type).length);
    return Math.round(Math.min(340, Math.max(64, longest * 7.7 + 20)));
  });
}
