/**
 * Where each row of a batch came from: what the request says, save where a row says otherwise in its own `_provenance`.
 * Pure. Source: specification, "Provenance entry".
 */
import { ServiceError } from '../../../errors.ts';
import type { RowBatch } from '../../../log/values/columns.ts';
import type { Provenance, RowsBody } from '../../../log/entries/entry.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import { gather } from './gather-rows.ts';
import type { RejectedRows } from './rejected-rows.ts';

export const provenanceColumn = '_provenance';

const textMax = 1_024;
/** The source row's system_from as 16 hex digits, or a hash of 64. */
const reference = /^[0-9a-f]{16}(?:[0-9a-f]{48})?$/;
/** Entries that one batch may become. */
const runsMax = 4_096;

/** Provenances of a batch, and which of them each row has. */
export interface RowProvenances {
  readonly list: readonly Provenance[];
  readonly codes: Int32Array;
}

/** Null when no row says anything: all have that of the request. Rows that say it wrongly are rejected. */
export function rowProvenances(batch: RowBatch, base: Provenance, rejections: RejectedRows): RowProvenances | null {
  const column = batch.columns.find(({ name }) => name === provenanceColumn);
  if (column === undefined || column.vector.kind === 'null') return null;
  const list = [base];
  const codes = new Int32Array(batch.length);
  const known = new Map<string, number | string>();
  for (let row = 0; row < batch.length; row++) {
    const cell = cellAt(column.vector, column.type, row);
    if (cell === null) continue;
    const text = String(cell);
    let code = known.get(text);
    if (code === undefined) {
      const read = readProvenance(text, base);
      code = typeof read === 'string' ? read : list.push(read) - 1;
      known.set(text, code);
    }
    if (typeof code === 'string') rejections.add(row, 'REL_INVALID', `${provenanceColumn}: ${code}`);
    else codes[row] = code;
  }
  return { list, codes };
}

/** Throws REL_INVALID for what no provenance can be. */
export function checkProvenance({ source, method, confidence, derivedFrom }: Provenance): void {
  if (isShort(source) && isShort(method) && isShare(confidence) && isReference(derivedFrom)) return;
  const why = problemOf({ source, method, confidence, derived_from: derivedFrom });
  if (why !== null) throw new ServiceError('REL_INVALID', `provenance: ${why}`);
}

/** Rows that follow each other with one provenance share an entry; together the entries are the rows in order. */
export function byProvenance(
  body: Omit<RowsBody, 'provenance'>,
  origins: Int32Array | null,
  { list, codes }: RowProvenances,
): RowsBody[] {
  const codeOf = (row: number): number => codes[origins === null ? row : origins[row]!]!;
  const bodies: RowsBody[] = [];
  const { length } = body.ops;
  for (let first = 0; first < length; ) {
    let end = first + 1;
    while (end < length && codeOf(end) === codeOf(first)) end++;
    if (bodies.length === runsMax) {
      throw new ServiceError('REL_UNPROCESSABLE', `the provenance of rows changes more than ${runsMax} times in one batch`);
    }
    bodies.push({ ...slice(body, first, end), provenance: list[codeOf(first)]! });
    first = end;
  }
  return bodies;
}

function slice(body: Omit<RowsBody, 'provenance'>, first: number, end: number): Omit<RowsBody, 'provenance'> {
  if (first === 0 && end === body.ops.length) return body;
  const rows = Int32Array.from({ length: end - first }, (_, i) => first + i);
  const part = ({ columns }: RowBatch): RowBatch => ({
    length: rows.length,
    columns: columns.map((column) => ({ ...column, vector: gather(column.vector, rows) })),
  });
  const closeFrom = body.closeOffsets[first]!;
  return {
    ...body,
    ops: body.ops.slice(first, end),
    keys: part(body.keys),
    closeOffsets: body.closeOffsets.slice(first, end + 1).map((offset) => offset - closeFrom),
    closes: body.closes.slice(closeFrom, body.closeOffsets[end]!),
    cells: part(body.cells),
    ...(body.subjects && { subjects: gather(body.subjects, rows) }),
  };
}

/** The provenance that a row's own text gives, or why it gives none. */
function readProvenance(text: string, base: Provenance): Provenance | string {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    return 'not JSON';
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return 'an object expected';
  const fields = given as Record<string, unknown>;
  const why = problemOf(fields);
  if (why !== null) return why;
  const { source, method, confidence, derived_from: derivedFrom } = fields as Partial<Record<string, never>>;
  return {
    source: source ?? base.source,
    method: method ?? base.method,
    confidence: confidence ?? base.confidence,
    derivedFrom: derivedFrom === undefined ? base.derivedFrom : derivedFrom,
  };
}

function problemOf(fields: Readonly<Record<string, unknown>>): string | null {
  for (const [name, value] of Object.entries(fields)) {
    const right = checks.get(name);
    if (right === undefined) return `no field ${JSON.stringify(name.slice(0, 64))}`;
    if (!right.holds(value)) return `${name} must be ${right.says}`;
  }
  return null;
}

const isShort = (value: unknown): boolean => typeof value === 'string' && value.length > 0 && value.length <= textMax;

const isShare = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value <= 1;
const isReference = (value: unknown): boolean => value === null || (typeof value === 'string' && reference.test(value));

const checks: ReadonlyMap<string, { readonly says: string; readonly holds: (value: unknown) => boolean }> = new Map([
  ['source', { says: `a text of 1 to ${textMax} characters`, holds: isShort }],
  ['method', { says: `a text of 1 to ${textMax} characters`, holds: isShort }],
  ['confidence', { says: 'a number from 0 to 1', holds: isShare }],
  ['derived_from', { says: 'null, or 16 or 64 lower-case hex digits', holds: isReference }],
]);

/** Where rows of a table came from, each way once. */
export class Provenances {
  readonly all: Provenance[] = [];
  #last = -1;
  /** By text; null while there is one at most: small tables have one, and it mostly is the one of last time. */
  #codes: Map<string, number> | null = null;

  /** Index of the provenance in `all`. */
  codeOf(provenance: Provenance): number {
    if (this.#last >= 0 && isSame(this.all[this.#last]!, provenance)) return this.#last;
    if (this.all.length > 0) this.#codes ??= new Map(this.all.map((each, code) => [textOf(each), code]));
    let code = this.#codes?.get(textOf(provenance));
    if (code === undefined) {
      code = this.all.push(provenance) - 1;
      this.#codes?.set(textOf(provenance), code);
    }
    return (this.#last = code);
  }
}

function isSame(a: Provenance, b: Provenance): boolean {
  return a.source === b.source && a.method === b.method && a.confidence === b.confidence && a.derivedFrom === b.derivedFrom;
}

function textOf({ source, method, confidence, derivedFrom }: Provenance): string {
  return JSON.stringify([source, method, confidence, derivedFrom]);
}
