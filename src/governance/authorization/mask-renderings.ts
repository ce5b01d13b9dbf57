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
  const maskedNulls = new Uint8Array(rowsIn(rows));
  const unmaskedNulls = vector.nulls;
  let hiddenCells = 0;
  for (let k = 0; k < count; k++) {
    const maskedRow = selection === null ? first + k : selection[k]!;
    hiddenCells += masked[k]!;
    maskedNulls[maskedRow] = unmaskedNulls === null ? masked[k]! : masked[k]! | unmaskedNulls[maskedRow]!;
  }
  if (hiddenCells === 0) return vector;
  if (hiddenCells === count) return { kind: 'null' };
  // Masked cells must not reveal which rows have the same cell.
  return vector.kind === 'text'
    ? { kind: 'text', offsets: vector.offsets, heap: vector.heap, nulls: maskedNulls }
    : { ...vector, nulls: maskedNulls };
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
  readonly #maskHashKey: Uint8Array;
  readonly #tenantHashKeys = new Map<string | null, Uint8Array>();

  constructor(key: Uint8Array) {
    this.#maskHashKey = key;
  }

  hashOf(text: string, path: string | null): string {
    const tenant = path === null ? null : tenantOfPath(path);
    let tenantHashKey = this.#tenantHashKeys.get(tenant);
    if (tenantHashKey === undefined) {
      // No tenant is called by a control character.
      tenantHashKey = createHmac('sha256', this.#maskHashKey)
        .update(`masked cells of ${tenant ?? '\u0000'}`)
        .digest();
      if (this.#tenantHashKeys.size >= maskHashKeysMax) this.#tenantHashKeys.clear();
      this.#tenantHashKeys.set(tenant, tenantHashKey);
    }
    return `h:${createHmac('sha256', tenantHashKey).update(text).digest('hex').slice(0, 16)}`;
  }
}

const maskHashKeysMax = 4096;

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
export function renderColumn(rendering: Rendered): Vector {
  switch (rendering.type) {
    case 'string':
      return renderTexts(rendering);
    case 'integer':
    case 'timestamp':
      return renderIntegers(rendering);
    default: {
      const { vector, rows, maskAt } = rendering;
      return withoutCells(vector, rows, maskedBy(rows, maskAt));
    }
  }
}

function renderTexts({ vector, rows, maskAt, pathAt, hash }: Rendered): Vector {
  const { selection, first, count } = rows;
  const renderedRows = rowsIn(rows);
  const visibleRowIds = selection?.slice(0, count) ?? Int32Array.from({ length: count }, (_, k) => first + k);
  // Storage takes its arrays back before the texts are read, so they are copied.
  const visibleTexts = gather(vector, visibleRowIds);
  const textCodes = new Int32Array(renderedRows);
  const renderedNulls = new Uint8Array(renderedRows);
  const cellMasks: (CellMask | null)[] = [];
  const cellPaths: (string | null)[] = [];
  for (let k = 0; k < count; k++) {
    const mask = maskAt(k);
    textCodes[visibleRowIds[k]!] = k;
    cellMasks.push(mask);
    cellPaths.push(mask?.kind === 'hash' ? pathAt(k) : null);
    if (isRenderedAsNull(mask, visibleTexts, k)) renderedNulls[visibleRowIds[k]!] = 1;
  }
  const renderCell = (k: number): string => {
    const cellMask = cellMasks[k] ?? null;
    if (cellMask?.kind === 'redact') return redactedText;
    const unmaskedText = unmaskedTextAt(visibleTexts, k);
    return cellMask === null || unmaskedText === null
      ? (unmaskedText ?? '')
      : (renderText(unmaskedText, cellMask, cellPaths[k] ?? null, hash) ?? '');
  };
  return {
    kind: 'dict',
    values: textCodes,
    dictionary: new RenderedTexts(count, renderCell),
    nulls: renderedNulls.includes(1) ? renderedNulls : null,
  };
}

const redactedText = '***';

function isRenderedAsNull(mask: CellMask | null, texts: Vector, k: number): boolean {
  if (mask?.kind === 'redact') return false;
  if (mask?.kind === 'null' || mask?.kind === 'bucket') return true;
  if (texts.kind === 'null' || texts.nulls?.[k] === 1) return true;
  return mask?.kind === 'year' && yearOf(unmaskedTextAt(texts, k)!) === null;
}

function unmaskedTextAt(texts: Vector, k: number): string | null {
  const cell = cellAt(texts, 'string', k);
  return typeof cell === 'string' ? cell : null;
}

function renderText(text: string, { kind }: CellMask, path: string | null, hash: MaskHash): string | null {
  switch (kind) {
    case 'redact':
      return redactedText;
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
  const codePoints = Array.from(text);
  const hiddenCount = codePoints.length <= 4 ? codePoints.length : codePoints.length - 4;
  return '*'.repeat(hiddenCount) + codePoints.slice(hiddenCount).join('');
}

const isoDate = /^(\d{4})-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01])(?:[T ].*)?)?$/s;

function yearOf(text: string): string | null {
  return isoDate.exec(text)?.[1] ?? null;
}

/** Texts by the rows of one block. A text in a search is never one of them. */
class RenderedTexts implements Dictionary {
  readonly size: number;
  readonly #renderText: (row: number) => string;
  readonly #renderedByCode = new Map<number, string>();

  constructor(size: number, render: (row: number) => string) {
    this.size = size;
    this.#renderText = render;
  }

  text(code: number): string {
    let renderedText = this.#renderedByCode.get(code);
    if (renderedText === undefined) this.#renderedByCode.set(code, (renderedText = this.#renderText(code)));
    return renderedText;
  }

  codeOf(text: string): number {
    for (let code = 0; code < this.size; code++) if (this.text(code) === text) return code;
    return -1;
  }
}

function renderIntegers({ vector, type, rows, maskAt }: Rendered): Vector {
  if (vector.kind === 'null') return vector;
  const { selection, first, count } = rows;
  const renderedIntegers = new BigInt64Array(rowsIn(rows));
  const renderedNulls = new Uint8Array(renderedIntegers.length);
  let maskedCells = 0;
  for (let k = 0; k < count; k++) {
    const row = selection === null ? first + k : selection[k]!;
    const cellMask = maskAt(k);
    if (cellMask !== null) maskedCells++;
    const integerCell = cellAt(vector, type, row);
    const renderedInteger =
      typeof integerCell !== 'bigint' ? null : cellMask === null ? integerCell : renderInteger(integerCell, type, cellMask);
    if (renderedInteger === null) renderedNulls[row] = 1;
    else renderedIntegers[row] = renderedInteger;
  }
  if (maskedCells === 0) return vector;
  return { kind: 'i64', values: renderedIntegers, nulls: renderedNulls.includes(1) ? renderedNulls : null };
}

function renderInteger(cell: bigint, type: ColumnType, { kind, size }: CellMask): bigint | null {
  if (type === 'timestamp') return kind === 'year' ? startOfYear(cell) : null;
  if (kind !== 'bucket' || size === undefined) return null;
  const bucketWidth = BigInt(size);
  const remainder = ((cell % bucketWidth) + bucketWidth) % bucketWidth;
  return timestampOrNull(cell - remainder);
}

/** 1 January of the instant's year in UTC. */
function startOfYear(nanoseconds: bigint): bigint | null {
  const remainder = ((nanoseconds % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const instant = new Date(Number((nanoseconds - remainder) / 1_000_000n));
  return timestampOrNull(BigInt(Date.UTC(instant.getUTCFullYear(), 0, 1)) * 1_000_000n);
}

function timestampOrNull(value: bigint): bigint | null {
  return value < I64_MIN ? null : value;
}
