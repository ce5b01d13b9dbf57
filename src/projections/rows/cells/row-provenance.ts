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

const provenanceTextMax = 1_024;
/** The source row's system_from as 16 hex digits, or a hash of 64. */
const derivedFromPattern = /^[0-9a-f]{16}(?:[0-9a-f]{48})?$/;
/** Entries that one batch may become. */
const provenanceRunsMax = 4_096;

/** Provenances of a batch, and which of them each row has. */
export interface RowProvenances {
  readonly list: readonly Provenance[];
  readonly codes: Int32Array;
}

/** Null when no row says anything: all have that of the request. Rows that say it wrongly are rejected. */
export function rowProvenances(batch: RowBatch, batchProvenance: Provenance, rejections: RejectedRows): RowProvenances | null {
  const provenanceCells = batch.columns.find(({ name }) => name === provenanceColumn);
  if (provenanceCells === undefined || provenanceCells.vector.kind === 'null') return null;
  const provenanceList = [batchProvenance];
  const provenanceCodes = new Int32Array(batch.length);
  const codesByText = new Map<string, number | string>();
  for (let row = 0; row < batch.length; row++) {
    const cell = cellAt(provenanceCells.vector, provenanceCells.type, row);
    if (cell === null) continue;
    const provenanceText = String(cell);
    let provenanceCode = codesByText.get(provenanceText);
    if (provenanceCode === undefined) {
      const parsedProvenance = readProvenance(provenanceText, batchProvenance);
      provenanceCode = typeof parsedProvenance === 'string' ? parsedProvenance : provenanceList.push(parsedProvenance) - 1;
      codesByText.set(provenanceText, provenanceCode);
    }
    if (typeof provenanceCode === 'string') rejections.add(row, 'REL_INVALID', `${provenanceColumn}: ${provenanceCode}`);
    else provenanceCodes[row] = provenanceCode;
  }
  return { list: provenanceList, codes: provenanceCodes };
}

/** Throws REL_INVALID for what no provenance can be. */
export function checkProvenance({ source, method, confidence, derivedFrom }: Provenance): void {
  if (isShortText(source) && isShortText(method) && isConfidence(confidence) && isDerivedFrom(derivedFrom)) return;
  const provenanceProblem = provenanceProblemOf({ source, method, confidence, derived_from: derivedFrom });
  if (provenanceProblem !== null) throw new ServiceError('REL_INVALID', `provenance: ${provenanceProblem}`);
}

/** Rows that follow each other with one provenance share an entry; together the entries are the rows in order. */
export function byProvenance(
  body: Omit<RowsBody, 'provenance'>,
  originRows: Int32Array | null,
  { list, codes }: RowProvenances,
): RowsBody[] {
  const provenanceCodeOf = (row: number): number => codes[originRows === null ? row : originRows[row]!]!;
  const provenanceBodies: RowsBody[] = [];
  const { length } = body.ops;
  for (let runStart = 0; runStart < length; ) {
    let runEnd = runStart + 1;
    while (runEnd < length && provenanceCodeOf(runEnd) === provenanceCodeOf(runStart)) runEnd++;
    if (provenanceBodies.length === provenanceRunsMax) {
      throw new ServiceError(
        'REL_UNPROCESSABLE',
        `the provenance of rows changes more than ${provenanceRunsMax} times in one batch`,
      );
    }
    provenanceBodies.push({ ...sliceRowsBody(body, runStart, runEnd), provenance: list[provenanceCodeOf(runStart)]! });
    runStart = runEnd;
  }
  return provenanceBodies;
}

function sliceRowsBody(body: Omit<RowsBody, 'provenance'>, first: number, end: number): Omit<RowsBody, 'provenance'> {
  if (first === 0 && end === body.ops.length) return body;
  const slicedRows = Int32Array.from({ length: end - first }, (_, i) => first + i);
  const sliceColumns = ({ columns }: RowBatch): RowBatch => ({
    length: slicedRows.length,
    columns: columns.map((column) => ({ ...column, vector: gather(column.vector, slicedRows) })),
  });
  const firstClose = body.closeOffsets[first]!;
  return {
    ...body,
    ops: body.ops.slice(first, end),
    keys: sliceColumns(body.keys),
    closeOffsets: body.closeOffsets.slice(first, end + 1).map((offset) => offset - firstClose),
    closes: body.closes.slice(firstClose, body.closeOffsets[end]!),
    cells: sliceColumns(body.cells),
    ...(body.subjects && { subjects: gather(body.subjects, slicedRows) }),
  };
}

/** The provenance that a row's own text gives, or why it gives none. */
function readProvenance(text: string, batchProvenance: Provenance): Provenance | string {
  let parsedText: unknown;
  try {
    parsedText = JSON.parse(text);
  } catch {
    return 'not JSON';
  }
  if (typeof parsedText !== 'object' || parsedText === null || Array.isArray(parsedText)) return 'an object expected';
  const provenanceFields = parsedText as Record<string, unknown>;
  const provenanceProblem = provenanceProblemOf(provenanceFields);
  if (provenanceProblem !== null) return provenanceProblem;
  const { source, method, confidence, derived_from: derivedFrom } = provenanceFields as Partial<Record<string, never>>;
  return {
    source: source ?? batchProvenance.source,
    method: method ?? batchProvenance.method,
    confidence: confidence ?? batchProvenance.confidence,
    derivedFrom: derivedFrom === undefined ? batchProvenance.derivedFrom : derivedFrom,
  };
}

function provenanceProblemOf(provenanceFields: Readonly<Record<string, unknown>>): string | null {
  for (const [name, fieldValue] of Object.entries(provenanceFields)) {
    const fieldCheck = provenanceChecks.get(name);
    if (fieldCheck === undefined) return `no field ${JSON.stringify(name.slice(0, 64))}`;
    if (!fieldCheck.holds(fieldValue)) return `${name} must be ${fieldCheck.says}`;
  }
  return null;
}

const isShortText = (value: unknown): boolean =>
  typeof value === 'string' && value.length > 0 && value.length <= provenanceTextMax;

const isConfidence = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value <= 1;
const isDerivedFrom = (value: unknown): boolean =>
  value === null || (typeof value === 'string' && derivedFromPattern.test(value));

const provenanceChecks: ReadonlyMap<string, { readonly says: string; readonly holds: (value: unknown) => boolean }> = new Map([
  ['source', { says: `a text of 1 to ${provenanceTextMax} characters`, holds: isShortText }],
  ['method', { says: `a text of 1 to ${provenanceTextMax} characters`, holds: isShortText }],
  ['confidence', { says: 'a number from 0 to 1', holds: isConfidence }],
  ['derived_from', { says: 'null, or 16 or 64 lower-case hex digits', holds: isDerivedFrom }],
]);

/** Where rows of a table came from, each way once. */
export class Provenances {
  readonly all: Provenance[] = [];
  #lastProvenanceCode = -1;
  /** By text; null while there is one at most: small tables have one, and it mostly is the one of last time. */
  #provenanceCodes: Map<string, number> | null = null;

  /** Index of the provenance in `all`. */
  codeOf(provenance: Provenance): number {
    if (this.#lastProvenanceCode >= 0 && isSameProvenance(this.all[this.#lastProvenanceCode]!, provenance))
      return this.#lastProvenanceCode;
    if (this.all.length > 0)
      this.#provenanceCodes ??= new Map(
        this.all.map((knownProvenance, provenanceCode) => [provenanceTextOf(knownProvenance), provenanceCode]),
      );
    let code = this.#provenanceCodes?.get(provenanceTextOf(provenance));
    if (code === undefined) {
      code = this.all.push(provenance) - 1;
      this.#provenanceCodes?.set(provenanceTextOf(provenance), code);
    }
    return (this.#lastProvenanceCode = code);
  }
}

function isSameProvenance(a: Provenance, b: Provenance): boolean {
  return a.source === b.source && a.method === b.method && a.confidence === b.confidence && a.derivedFrom === b.derivedFrom;
}

function provenanceTextOf({ source, method, confidence, derivedFrom }: Provenance): string {
  return JSON.stringify([source, method, confidence, derivedFrom]);
}
