/**
 * How masked cells are shown, and how everything else reads them: as NULL. A text is rendered when it is read, so that a scan of
 * many costs nothing until rows leave. A rendering must reveal nothing else of a cell: `***` stands for NULL too.
 */
import { createHmac } from 'node:crypto';
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import { I64_MIN, type ColumnType } from '../../log/values/value.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { RowWindow } from '../../projections/access-paths.ts';
import { gather } from '../../projections/rows/cells/gather-rows.ts';
import { tenantOfPath } from '../../projections/tenants/tenant-drafts.ts';
import type { CellMask } from './grant.ts';

export type Rows = Pick<RowWindow, 'selection' | 'first' | 'count'>;

/** The mask of a row's cell, by index in the block; null: none. */
export type MaskAt = (row: number) => CellMask | null;

/** The column with the cells of some rows of a block, 1 by place, as NULL; in the block's row numbers. */
export function withoutCells(vector: Vector, rows: Rows, masked: Uint8Array): Vector {
  if (vector.kind === 'null') return vector;
  const { selection, first, count } = rows;
  const nulls = new Uint8Array(rowsIn(rows));
  const held = vector.nulls;
  let hidden = 0;
  for (let k = 0; k < count; k++) {
    const row = selection === null ? first + k : selection[k]!;
    hidden += masked[k]!;
    nulls[row] = held === null ? masked[k]! : masked[k]! | held[row]!;
  }
  if (hidden === 0) return vector;
  if (hidden === count) return { kind: 'null' };
  // Masked cells must not reveal which rows have the same cell.
  return vector.kind === 'text' ? { kind: 'text', offsets: vector.offsets, heap: vector.heap, nulls } : { ...vector, nulls };
}

/** 1 for the places at which something masks the cell. */
export function maskedBy({ count }: Rows, maskAt: MaskAt): Uint8Array {
  const masked = new Uint8Array(count);
  for (let k = 0; k < count; k++) masked[k] = maskAt(k) === null ? 0 : 1;
  return masked;
}

/** Row numbers of a block lie below this. */
export function rowsIn({ selection, first, count }: Rows): number {
  return selection === null ? first + count : count === 0 ? 0 : selection[count - 1]! + 1;
}

/** Hashes of one store, per tenant: equal texts of one tenant are seen to be equal, those of two are not. */
export class MaskHash {
  readonly #key: Uint8Array;
  readonly #keys = new Map<string | null, Uint8Array>();

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  hashOf(text: string, path: string | null): string {
    const tenant = path === null ? null : tenantOfPath(path);
    let key = this.#keys.get(tenant);
    if (key === undefined) {
      // No tenant is called by a control character.
      key = createHmac('sha256', this.#key)
        .update(`masked cells of ${tenant ?? '\u0000'}`)
        .digest();
      if (this.#keys.size >= tenantsKept) this.#keys.clear();
      this.#keys.set(tenant, key);
    }
    return `h:${createHmac('sha256', key).update(text).digest('hex').slice(0, 16)}`;
  }
}

const tenantsKept = 4096;

export interface Rendered {
  readonly vector: Vector;
  readonly type: ColumnType;
  readonly rows: Rows;
  readonly maskAt: MaskAt;
  /** Organisation path of the row. */
  readonly pathAt: (row: number) => string | null;
  readonly hash: MaskHash;
}

/** The column as it is shown, in the block's row numbers. */
export function renderColumn(asked: Rendered): Vector {
  switch (asked.type) {
    case 'string':
      return renderTexts(asked);
    case 'integer':
    case 'timestamp':
      return renderIntegers(asked);
    default: {
      const { vector, rows, maskAt } = asked;
      return withoutCells(vector, rows, maskedBy(rows, maskAt));
    }
  }
}

function renderTexts({ vector, rows, maskAt, pathAt, hash }: Rendered): Vector {
  const { selection, first, count } = rows;
  const size = rowsIn(rows);
  const numbers = selection?.slice(0, count) ?? Int32Array.from({ length: count }, (_, k) => first + k);
  // Storage takes its arrays back before the texts are read, so they are copied.
  const texts = gather(vector, numbers);
  const values = new Int32Array(size);
  const nulls = new Uint8Array(size);
  const masks: (CellMask | null)[] = [];
  const paths: (string | null)[] = [];
  for (let k = 0; k < count; k++) {
    const mask = maskAt(k);
    values[numbers[k]!] = k;
    masks.push(mask);
    paths.push(mask?.kind === 'hash' ? pathAt(k) : null);
    if (isShownAsNull(mask, texts, k)) nulls[numbers[k]!] = 1;
  }
  const render = (k: number): string => {
    const mask = masks[k] ?? null;
    if (mask?.kind === 'redact') return redacted;
    const text = textAt(texts, k);
    return mask === null || text === null ? (text ?? '') : (renderText(text, mask, paths[k] ?? null, hash) ?? '');
  };
  return { kind: 'dict', values, dictionary: new RenderedTexts(count, render), nulls: nulls.includes(1) ? nulls : null };
}

const redacted = '***';

function isShownAsNull(mask: CellMask | null, texts: Vector, k: number): boolean {
  if (mask?.kind === 'redact') return false;
  if (mask?.kind === 'null' || mask?.kind === 'bucket') return true;
  if (texts.kind === 'null' || texts.nulls?.[k] === 1) return true;
  return mask?.kind === 'year' && yearOf(textAt(texts, k)!) === null;
}

function textAt(texts: Vector, k: number): string | null {
  const cell = cellAt(texts, 'string', k);
  return typeof cell === 'string' ? cell : null;
}

function renderText(text: string, { kind }: CellMask, path: string | null, hash: MaskHash): string | null {
  switch (kind) {
    case 'redact':
      return redacted;
    case 'hash':
      return hash.hashOf(text, path);
    case 'last4':
      return lastFour(text);
    case 'year':
      return yearOf(text);
    case 'null':
    case 'bucket':
      return null;
  }
}

function lastFour(text: string): string {
  const points = Array.from(text);
  const hidden = points.length <= 4 ? points.length : points.length - 4;
  return '*'.repeat(hidden) + points.slice(hidden).join('');
}

const isoDate = /^(\d{4})-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01])(?:[T ].*)?)?$/s;

function yearOf(text: string): string | null {
  return isoDate.exec(text)?.[1] ?? null;
}

/** Texts by the rows of one block. A text in a search is never one of them. */
class RenderedTexts implements Dictionary {
  readonly size: number;
  readonly #render: (row: number) => string;
  readonly #known = new Map<number, string>();

  constructor(size: number, render: (row: number) => string) {
    this.size = size;
    this.#render = render;
  }

  text(code: number): string {
    let text = this.#known.get(code);
    if (text === undefined) this.#known.set(code, (text = this.#render(code)));
    return text;
  }

  codeOf(text: string): number {
    for (let code = 0; code < this.size; code++) if (this.text(code) === text) return code;
    return -1;
  }
}

function renderIntegers({ vector, type, rows, maskAt }: Rendered): Vector {
  if (vector.kind === 'null') return vector;
  const { selection, first, count } = rows;
  const values = new BigInt64Array(rowsIn(rows));
  const nulls = new Uint8Array(values.length);
  let masked = 0;
  for (let k = 0; k < count; k++) {
    const row = selection === null ? first + k : selection[k]!;
    const mask = maskAt(k);
    if (mask !== null) masked++;
    const cell = cellAt(vector, type, row);
    const shown = typeof cell !== 'bigint' ? null : mask === null ? cell : renderInteger(cell, type, mask);
    if (shown === null) nulls[row] = 1;
    else values[row] = shown;
  }
  if (masked === 0) return vector;
  return { kind: 'i64', values, nulls: nulls.includes(1) ? nulls : null };
}

function renderInteger(cell: bigint, type: ColumnType, { kind, size }: CellMask): bigint | null {
  if (type === 'timestamp') return kind === 'year' ? startOfYear(cell) : null;
  if (kind !== 'bucket' || size === undefined) return null;
  const width = BigInt(size);
  const remainder = ((cell % width) + width) % width;
  return inRange(cell - remainder);
}

/** 1 January of the instant's year in UTC. */
function startOfYear(nanoseconds: bigint): bigint | null {
  const remainder = ((nanoseconds % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const instant = new Date(Number((nanoseconds - remainder) / 1_000_000n));
  return inRange(BigInt(Date.UTC(instant.getUTCFullYear(), 0, 1)) * 1_000_000n);
}

function inRange(value: bigint): bigint | null {
  return value < I64_MIN ? null : value;
}
