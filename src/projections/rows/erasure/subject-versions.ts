/** The stored versions of one subject: a pass over the column that says whose rows are, in every segment of every branch. */
import { unreachable } from '../../../errors.ts';
import type { Vector } from '../../../log/values/columns.ts';
import type { ErasedVersions } from '../../../log/entries/entry.ts';
import { compareText, I64_MAX, I64_MIN } from '../../../log/values/value.ts';
import type { BranchLayer } from '../tables/branch-layer.ts';
import type { OrganisationCodes } from '../cells/path-codes.ts';
import type { Segment } from '../segments/segment.ts';
import { sameBytes } from '../segments/segment-state.ts';

export interface SubjectVersions {
  /** As an erasure names them. */
  readonly versions: readonly ErasedVersions[];
  /** Every version at a position below it was looked at. */
  readonly end: number;
}

interface Found {
  readonly positions: number[];
  /** Codes. */
  readonly paths: Set<number>;
}

const encoder = new TextEncoder();
const integer = /^(?:0|-?[1-9]\d{0,18})$/;

/** A slice is a segment: some 30 µs where its column is coded, some 200 where it is spelled out, and the time of reading it where it rests. */
export function* findVersions(
  tenant: string | null,
  subject: string,
  from: number,
  end: number,
  layers: readonly BranchLayer[],
  scopes: OrganisationCodes,
): Generator<undefined, SubjectVersions> {
  const versionsByTable = new Map<string, Found>();
  const wanted = new Wanted(subject);
  const bytes = sameBytes();
  for (const layer of layers) {
    for (const table of layer.tablesOf(tenant)) {
      const { type } = table;
      const property = layer.names.subjectOf(tenant, type);
      if (property === null) continue;
      const known: Found = versionsByTable.get(type) ?? { positions: [], paths: new Set() };
      versionsByTable.set(type, known);
      for (const segment of table.segments) {
        const first = segment.rowAtOrAfter(from);
        if (first === segment.length) continue;
        const cells = segment.cells.glance(property, bytes);
        if (cells) addSubjectRows(segment, cells, wanted, { first, end: segment.rowAtOrAfter(end) }, known);
        yield;
      }
    }
  }
  const versions = [...versionsByTable]
    .filter(([, { positions }]) => positions.length > 0)
    .sort(([a], [b]) => compareText(a, b))
    .map(
      ([type, { positions, paths }]): ErasedVersions => ({
        type,
        paths: [...paths].map((code) => scopes.path(code)).sort((a, b) => compareText(a ?? '', b ?? '')),
        positions: positions.sort((a, b) => a - b),
      }),
    );
  return { versions, end };
}

/** Adds the versions of the wanted subject among rows [first, end) of a segment, whose subject cells are these. */
function addSubjectRows(
  segment: Segment,
  cells: Vector,
  wanted: Wanted,
  { first, end }: { readonly first: number; readonly end: number },
  into: Found,
): void {
  for (const row of wanted.rows(cells, first, end)) {
    if (segment.isRemoved(row)) continue;
    into.positions.push(segment.positionOf(row));
    into.paths.add(segment.paths.codeAt(row));
  }
}

/** Rows whose cell has the subject's text. */
class Wanted {
  readonly #text: string;
  readonly #bytes: Uint8Array;
  /** Null where the text is no integer. */
  readonly #integer: bigint | null;

  constructor(text: string) {
    this.#text = text;
    this.#bytes = encoder.encode(text);
    const value = integer.test(text) ? BigInt(text) : null;
    this.#integer = value !== null && value >= I64_MIN && value <= I64_MAX ? value : null;
  }

  rows(vector: Vector, first: number, end: number): readonly number[] {
    const rows: number[] = [];
    switch (vector.kind) {
      case 'null':
        return rows;
      case 'dict': {
        const code = vector.dictionary.codeOf(this.#text);
        const { values, nulls } = vector;
        if (code >= 0) for (let row = first; row < end; row++) if (values[row] === code && nulls?.[row] !== 1) rows.push(row);
        return rows;
      }
      case 'text':
        return this.#textRows(vector, first, end);
      case 'i32':
      case 'f64': {
        const { values, nulls } = vector;
        const value = this.#integer === null ? NaN : Number(this.#integer);
        // A column of doubles cannot hold an integer that is not exact as a double.
        if (!Number.isSafeInteger(value)) return rows;
        for (let row = first; row < end; row++) if (values[row] === value && nulls?.[row] !== 1) rows.push(row);
        return rows;
      }
      case 'i64': {
        const { values, nulls } = vector;
        for (let row = first; row < end; row++) if (values[row] === this.#integer && nulls?.[row] !== 1) rows.push(row);
        return rows;
      }
      case 'bool':
      case 'vec':
        // Neither can say whose a row is.
        return rows;
      default:
        return unreachable(vector);
    }
  }

  #textRows({ offsets, heap, nulls }: Extract<Vector, { kind: 'text' }>, first: number, end: number): readonly number[] {
    const rows: number[] = [];
    const bytes = this.#bytes;
    const size = bytes.length;
    for (let row = first; row < end; row++) {
      const start = offsets[row]!;
      if (offsets[row + 1]! - start !== size || nulls?.[row] === 1) continue;
      let at = 0;
      while (at < size && heap[start + at] === bytes[at]) at++;
      if (at === size) rows.push(row);
    }
    return rows;
  }
}
