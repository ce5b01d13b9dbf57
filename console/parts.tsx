/** Small parts that every view is made of. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Refusal } from './api.ts';
import { instantText, isInstantColumn, localText, textOf } from './format.ts';

export interface Loaded<T> {
  readonly value: T | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
  reload(): void;
}

/** Loads anew whenever the key changes; an answer that comes after the next question is dropped. */
export function useLoad<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ value?: T | undefined; error?: unknown; isLoading: boolean }>({ isLoading: key !== null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (key === null) return setState({ isLoading: false });
    const abort = new AbortController();
    setState((before) => ({ value: before.value, isLoading: true }));
    load(abort.signal).then(
      (value) => !abort.signal.aborted && setState({ value, isLoading: false }),
      (error: unknown) => !abort.signal.aborted && setState({ error, isLoading: false }),
    );
    return () => abort.abort();
  }, [key, turn]);
  return { value: state.value, error: state.error, isLoading: state.isLoading, reload: () => setTurn((n) => n + 1) };
}

/** An error in the server's own words; a route that this store lacks is shown as absent, with its reason. */
export function Problem({ error }: { error: unknown }) {
  if (error === undefined || error === null) return null;
  if (!(error instanceof Refusal))
    return (
      <div class="problem" role="alert">
        {String((error as Error).message ?? error)}
      </div>
    );
  if (error.status === 501) return <div class="notice">Not in this store: {error.message}.</div>;
  return (
    <div class="problem" role="alert">
      {error.message}{' '}
      <span class="small">
        ({error.status} {error.code}
        {error.correlation && (
          <>
            {' '}
            · correlation <code>{error.correlation}</code>
          </>
        )}
        )
      </span>
    </div>
  );
}

export function Head({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="head">
      <h1>{title}</h1>
      {children && <p>{children}</p>}
    </div>
  );
}

/** UTC; the local time on hover. */
export function Instant({ ns }: { ns: bigint | string }) {
  return <time title={localText(ns)}>{instantText(ns)}</time>;
}

export const cutAt = 200;

/** A cell as text: never markup. */
export function cellText(value: unknown, name: string, type = ''): string {
  if (value === null || value === undefined) return 'null';
  const text = textOf(value);
  return (isInstantColumn(name) || type === 'timestamp') && /^-?\d+$/.test(text) ? instantText(text) : text;
}

export function Cell({ value, name, type = '' }: { value: unknown; name: string; type?: string }) {
  if (value === null || value === undefined) return <span class="null">null</span>;
  if (value === '***')
    return (
      <span class="masked" title="hidden from this principal by a mask" aria-label="masked" role="img">
        •••
      </span>
    );
  const text = cellText(value, name, type);
  const title = isInstantColumn(name) || type === 'timestamp' ? localText(textOf(value)) : undefined;
  return <span title={title}>{text.length > cutAt ? `${text.slice(0, cutAt)}…` : text}</span>;
}

/** Names and cells, one a line. `nameOf`: as which column a cell is shown. */
export function Fields({
  of,
  nameOf = (name) => name,
}: {
  of: readonly (readonly [name: string, value: unknown])[];
  nameOf?: (name: string) => string;
}) {
  return (
    <dl class="fields">
      {of.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>
            <Cell value={value} name={nameOf(name)} />
          </dd>
        </>
      ))}
    </dl>
  );
}

/** A column of buttons has a heading for those who hear the table. */
export function Heading({ text }: { text: string }) {
  return <th scope="col">{text === '' ? <span class="unseen">acts</span> : text}</th>;
}

/** A table of few rows. */
export function Plain({ columns, rows }: { columns: readonly string[]; rows: readonly (readonly ComponentChildren[])[] }) {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="table">
      <table class="plain">
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading text={column} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {row.map((cell) => (
                <td>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A dialog of the browser's own, with its focus and its Escape. */
export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => element.current?.showModal(), []);
  return (
    <dialog ref={element} onClose={close} aria-label={title}>
      <div class="head">
        <h2>{title}</h2>
        <span class="spring" />
        <button type="button" class="plain" onClick={() => element.current?.close()}>
          Close
        </button>
      </div>
      {children}
    </dialog>
  );
}

export function save(name: string, content: BlobPart, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const anchor = document.createElement('a');
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export const copy = (text: string): Promise<void> => navigator.clipboard.writeText(text);
