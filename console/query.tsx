/** The statement and its answer. What is shown is always what the statement says. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { data, json, parseExact, post, terms } from './api.ts';
import { keyOf, remember, types } from './catalog.ts';
import type { Editor } from './editor.ts';
import { bytes, plural, textOf } from './format.ts';
import { Grid } from './grid.tsx';
import { cellText, copy, Dialog, Instant, Problem, save } from './parts.tsx';
import { amend, go, link, place } from './place.ts';
import { Plan, type Operator } from './plan.tsx';
import { addFilter, atInstants, instantsOf, literal, name, sortBy, sortOf, typeOf } from './sql.ts';
import type { Column, Rows } from './table.ts';
import { ResultChart } from './resultchart.tsx';
import { TimeBar } from './timebar.tsx';

interface Shown {
  readonly sql: string;
  readonly rows: Rows | null;
  readonly operators: readonly Operator[] | null;
  readonly plan: readonly string[] | null;
  readonly size: number;
  readonly ms: number;
}

/** Rows by Arrow: integers stay exact, and a million rows are a few arrays. */
export async function ask(sql: string, signal: AbortSignal): Promise<Shown> {
  const began = performance.now();
  if (/^\s*(?:PURPOSE\s+'[^']*'\s+)?EXPLAIN\b/i.test(sql)) {
    const reply = await json<Record<string, unknown>>(data('/query', { ...post({ sql }), signal }));
    const list = reply['rows'] as Record<string, unknown>[];
    const { rowsOf } = await import('./table.ts');
    return {
      sql,
      rows: reply['plan'] === undefined ? rowsOf(list, reply['columns'] as string[]) : null,
      operators: (reply['operators'] as Operator[] | undefined) ?? null,
      plan: (reply['plan'] as string[] | undefined) ?? null,
      size: 0,
      ms: performance.now() - began,
    };
  }
  const [buffer, { readArrow }] = await Promise.all([
    data('/query/arrow', { ...post({ sql }), signal }).then((response) => response.arrayBuffer()),
    import('./table.ts'),
  ]);
  const rows = readArrow(new Uint8Array(buffer), parseExact, /^\s*SELECT\s+\*/i.test(sql));
  return { sql, rows, operators: null, plan: null, size: buffer.byteLength, ms: performance.now() - began };
}

export function Query() {
  const { params } = place.value;
  const sql = params['sql'] ?? '';
  const frame = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const draft = useRef(sql);
  const flying = useRef<AbortController | null>(null);
  const [shown, setShown] = useState<Shown | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isRunning, setRunning] = useState(false);
  const withTime = params['time'] === '1';
  const withChart = params['chart'] === '1';

  const asked = useRef('');
  const under = JSON.stringify(terms.value);

  const run = (text: string): void => {
    asked.current = `${text}\0${under}`;
    flying.current?.abort();
    const abort = new AbortController();
    flying.current = abort;
    setRunning(true);
    setError(null);
    ask(text, abort.signal)
      .then((answer) => {
        if (abort.signal.aborted) return;
        setShown(answer);
        remember(text);
      })
      .catch((thrown: unknown) => {
        if (abort.signal.aborted) return;
        setError(thrown);
        const [, line, column] = /^(\d+):(\d+): /.exec((thrown as Error).message) ?? [];
        if (line !== undefined) editor.current?.moveTo(Number(line), Number(column));
      })
      .finally(() => flying.current === abort && setRunning(false));
  };
  /** Writes the statement into editor and address, and asks it. */
  const show = (text: string): void => {
    draft.current = text;
    editor.current?.set(text);
    amend({ sql: text });
    run(text);
  };

  useEffect(() => {
    let isGone = false;
    void import('./editor.ts').then(({ openEditor }) => {
      if (isGone) return;
      const host = document.createElement('div');
      frame.current!.replaceChildren(host);
      editor.current = openEditor(
        host,
        draft.current,
        (text) => (draft.current = text),
        () => show(draft.current),
      );
      editor.current.complete(schema());
    });
    return () => {
      isGone = true;
      editor.current?.destroy();
      flying.current?.abort();
    };
  }, []);
  useEffect(() => editor.current?.complete(schema()), [types.value]);
  useEffect(() => {
    // The page's own moves have asked already.
    if (asked.current === `${sql}\0${under}`) return;
    draft.current = sql;
    editor.current?.set(sql);
    if (sql !== '') run(sql);
  }, [sql, under]);

  const type = typeOf(shown?.sql ?? sql);
  const openRow = (row: number): void => {
    const { rows } = shown!;
    if (type === null || rows === null) return;
    const cellOf = (wanted: string): unknown => {
      const at = rows.columns.findIndex((column) => column.name === wanted);
      return at === -1 ? undefined : rows.cell(row, at);
    };
    const key = cellOf('_pk') ?? cellOf(keyOf(type)) ?? cellOf('id');
    if (key !== undefined && key !== null) go('row', { type, key: textOf(key) });
  };
  const filter = (column: Column, value: unknown): void => {
    const text =
      value === null
        ? `${name(column.name)} IS NULL`
        : `${name(column.name)} = ${typeof value === 'string' ? literal(value) : textOf(value)}`;
    show(addFilter(draft.current, text));
  };
  return (
    <>
      <h1 class="unseen">Query</h1>
      <div class="editor" ref={frame}>
        <textarea aria-label="statement" defaultValue={sql} onInput={(event) => (draft.current = event.currentTarget.value)} />
      </div>
      <div class="bar">
        {isRunning ? (
          <button
            type="button"
            class="primary"
            onClick={() => {
              flying.current?.abort();
              setRunning(false);
            }}
          >
            Cancel
          </button>
        ) : (
          <button type="button" class="primary" title="Ctrl-Enter" onClick={() => show(draft.current)}>
            Run
          </button>
        )}
        <button
          type="button"
          aria-pressed={withTime}
          disabled={type === null}
          onClick={() => amend({ time: withTime ? '' : '1' })}
        >
          Time
        </button>
        {type !== null && (
          <a class="button" href={link('difference', { sql: draft.current })}>
            Difference
          </a>
        )}
        <button
          type="button"
          onClick={() => show(draft.current.replace(/^\s*(?:EXPLAIN\s+(?:ANALYZE\s+)?)?/i, 'EXPLAIN ANALYZE '))}
        >
          Plan
        </button>
        <button
          type="button"
          aria-pressed={withChart}
          disabled={!shown?.rows}
          onClick={() => amend({ chart: withChart ? '' : '1' })}
        >
          Chart
        </button>
        <span class="spring" />
        {shown?.rows && <Exports shown={shown} />}
        <button type="button" onClick={() => void copy(location.href)}>
          Copy link
        </button>
      </div>
      {withTime && type !== null && (
        <TimeBar
          type={type}
          instants={instantsOf(draft.current)}
          onMove={(instants) => show(atInstants(draft.current, instants))}
        />
      )}
      <Problem error={error} />
      {withChart && shown?.rows && <ResultChart rows={shown.rows} />}
      {shown && (
        <Answer
          shown={shown}
          isStale={isRunning}
          onSort={(column) => show(sortBy(draft.current, column))}
          onRow={openRow}
          onFilter={filter}
        />
      )}
      {shown === null && error === null && !isRunning && (
        <p class="soft">Ctrl-Enter asks. Ctrl-K finds types, views and earlier statements.</p>
      )}
    </>
  );
}

interface AnswerProps {
  readonly shown: Shown;
  readonly isStale: boolean;
  onSort(column: string): void;
  onRow(row: number): void;
  onFilter(column: Column, value: unknown): void;
}

function Answer({ shown, isStale, onSort, onRow, onFilter }: AnswerProps) {
  const { rows, operators, plan, ms, size } = shown;
  const notices = (rows?.envelope['notices'] as string[] | undefined) ?? [];
  const basis = rows?.envelope['as_of_system'];
  return (
    <>
      {notices.map((notice) => (
        <div class="notice">{notice}</div>
      ))}
      {(operators ?? plan) && <Plan operators={operators ?? []} lines={plan ?? []} />}
      {rows && (
        <>
          <div class="bar small soft" role="status" aria-busy={isStale}>
            <span>{plural(rows.length, 'row')}</span>
            <span>{ms.toFixed(ms < 10 ? 1 : 0)} ms</span>
            {size > 0 && <span>{bytes(size)}</span>}
            {basis !== undefined && (
              <span>
                as known at <Instant ns={textOf(basis)} />
              </span>
            )}
            <span class="spring" />
            <span>Double-click or Enter: history and proof. Right-click: the whole cell.</span>
          </div>
          <Grid rows={rows} sort={sortOf(shown.sql)} onSort={onSort} onRow={onRow} onFilter={onFilter} />
        </>
      )}
    </>
  );
}

function Exports({ shown: { sql, rows } }: { shown: Shown }) {
  const [isOpen, setOpen] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const file = (format: string): void => {
    data(`/export?${new URLSearchParams({ sql, format })}`)
      .then(async (response) => save(`rows.${format}`, await response.arrayBuffer(), response.headers.get('content-type') ?? ''))
      .catch((thrown: unknown) => setError(thrown));
  };
  const curl = `curl -sS -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\\n  "$ANNALS_URL/query" -d ${shellQuoted(JSON.stringify({ sql }))}`;
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Export
      </button>
      {isOpen && (
        <Dialog title="Take the rows along" close={() => setOpen(false)}>
          <p class="soft">Files are asked for anew, as an export: another access record, the same rules.</p>
          <div class="bar">
            {['csv', 'json', 'ndjson', 'arrow', 'parquet'].map((format) => (
              <button type="button" onClick={() => file(format)}>
                {format}
              </button>
            ))}
            <button type="button" onClick={() => void copy(asText(rows!, ','))}>
              Copy CSV
            </button>
            <button type="button" onClick={() => void copy(asJson(rows!))}>
              Copy JSON
            </button>
            <button type="button" onClick={() => void copy(curl)}>
              Copy curl
            </button>
          </div>
          <Problem error={error} />
          <pre class="small">{curl}</pre>
        </Dialog>
      )}
    </>
  );
}

const shellQuoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

const copyMax = 10_000;

function asText(rows: Rows, between: string): string {
  const quoted = (text: string): string => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = [rows.columns.map((column) => quoted(column.name)).join(between)];
  for (let row = 0; row < Math.min(copyMax, rows.length); row++)
    lines.push(
      rows.columns
        .map((column, i) => (rows.cell(row, i) === null ? '' : quoted(cellText(rows.cell(row, i), column.name, column.type))))
        .join(between),
    );
  return `${lines.join('\n')}\n`;
}

/** Integers as they are, however long. */
function asJson(rows: Rows): string {
  const value = (each: unknown): string => (typeof each === 'bigint' ? String(each) : JSON.stringify(each));
  const lines: string[] = [];
  for (let row = 0; row < Math.min(copyMax, rows.length); row++)
    lines.push(`{${rows.columns.map((column, i) => `${JSON.stringify(column.name)}:${value(rows.cell(row, i))}`).join(',')}}`);
  return `[${lines.join(',\n')}]\n`;
}

function schema(): Record<string, string[]> {
  const instants = ['valid_from', 'valid_to', 'system_from', 'system_to', '_pk', 'id'];
  return Object.fromEntries(types.value.map((type) => [type.name, [...Object.keys(type.properties), ...instants]]));
}

export const openType = (type: string): string => link('query', { sql: `SELECT * FROM ${name(type)} AS OF CURRENT LIMIT 1000` });
