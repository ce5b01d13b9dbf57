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

interface SubjectPositions {
  readonly positions: number[];
  /** Codes. */
  readonly paths: Set<number>;
}

const subjectEncoder = new TextEncoder();
const integerSubjectPattern = /^(?:0|-?[1-9]\d{0,18})$/;

/** A slice is a segment: some 30 µs where its column is coded, some 200 where it is spelled out, and the time of reading it where it rests. */
export function* findVersions(
  tenant: string | null,
  subject: string,
  from: number,
  end: number,
  layers: readonly BranchLayer[],
  scopes: OrganisationCodes,
): Generator<undefined, SubjectVersions> {
  const versionsByTable = new Map<string, SubjectPositions>();
  const wantedSubject = new WantedSubject(subject);
  const subjectBuffers = sameBytes();
  for (const branchLayer of layers) {
    for (const table of branchLayer.tablesOf(tenant)) {
      const { type } = table;
      const subjectColumn = branchLayer.names.subjectOf(tenant, type);
      if (subjectColumn === null) continue;
      const subjectRows: SubjectPositions = versionsByTable.get(type) ?? { positions: [], paths: new Set() };
      versionsByTable.set(type, subjectRows);
      for (const segment of table.segments) {
        const firstRow = segment.rowAtOrAfter(from);
        if (firstRow === segment.length) continue;
        const cells = segment.cells.glance(subjectColumn, subjectBuffers);
        if (cells)
          addSubjectRows(segment, cells, wantedSubject, { first: firstRow, end: segment.rowAtOrAfter(end) }, subjectRows);
        yield;
      }
    }
  }
  const erasedVersions = [...versionsByTable]
    .filter(([, { positions }]) => positions.length > 0)
    .sort(([a], [b]) => compareText(a, b))
    .map(
      ([type, { positions, paths }]): ErasedVersions => ({
        type,
        paths: [...paths].map((pathCode) => scopes.path(pathCode)).sort((a, b) => compareText(a ?? '', b ?? '')),
        positions: positions.sort((a, b) => a - b),
      }),
    );
  return { versions: erasedVersions, end };
}

/** Adds the versions of the wanted subject among rows [first, end) of a segment, whose subject cells are these. */
function addSubjectRows(
  segment: Segment,
  cells: Vector,
  wanted: WantedSubject,
  { first, end }: { readonly first: number; readonly end: number },
  into: SubjectPositions,
): void {
  for (const row of wanted.rows(cells, first, end)) {
    if (segment.isRemoved(row)) continue;
    into.positions.push(segment.positionOf(row));
    into.paths.add(segment.paths.codeAt(row));
  }
}

/** Rows whose cell has the subject's text. */
class WantedSubject {
  readonly #wantedText: string;
  readonly #wantedBytes: Uint8Array;
  /** Null where the text is no integer. */
  readonly #wantedInteger: bigint | null;

  constructor(subjectText: string) {
    this.#wantedText = subjectText;
    this.#wantedBytes = subjectEncoder.encode(subjectText);
    const integerSubject = integerSubjectPattern.test(subjectText) ? BigInt(subjectText) : null;
    this.#wantedInteger =
      integerSubject !== null && integerSubject >= I64_MIN && integerSubject <= I64_MAX ? integerSubject : null;
  }

  rows(subjectVector: Vector, first: number, end: number): readonly number[] {
    const wantedRows: number[] = [];
    switch (subjectVector.kind) {
      case 'null':
        return wantedRows;
      case 'dict': {
        const subjectCode = subjectVector.dictionary.codeOf(this.#wantedText);
        const { values, nulls } = subjectVector;
        if (subjectCode >= 0)
          for (let row = first; row < end; row++) if (values[row] === subjectCode && nulls?.[row] !== 1) wantedRows.push(row);
        return wantedRows;
      }
      case 'text':
        return this.#wantedTextRows(subjectVector, first, end);
      case 'i32':
      case 'f64': {
        const { values, nulls } = subjectVector;
        const wantedNumber = this.#wantedInteger === null ? NaN : Number(this.#wantedInteger);
        // A column of doubles cannot hold an integer that is not exact as a double.
        if (!Number.isSafeInteger(wantedNumber)) return wantedRows;
        for (let row = first; row < end; row++) if (values[row] === wantedNumber && nulls?.[row] !== 1) wantedRows.push(row);
        return wantedRows;
      }
      case 'i64': {
        const { values, nulls } = subjectVector;
        for (let row = first; row < end; row++)
          if (values[row] === this.#wantedInteger && nulls?.[row] !== 1) wantedRows.push(row);
        return wantedRows;
      }
      case 'bool':
      case 'vec':
        // Neither can say whose a row is.
        return wantedRows;
      default:
        return unreachable(subjectVector);
    }
  }

  #wantedTextRows({ offsets, heap, nulls }: Extract<Vector, { kind: 'text' }>, first: number, end: number): readonly number[] {
    const wantedRows: number[] = [];
    const subjectBytes = this.#wantedBytes;
    const subjectLength = subjectBytes.length;
    for (let row = first; row < end; row++) {
      const subjectStart = offsets[row]!;
      if (offsets[row + 1]! - subjectStart !== subjectLength || nulls?.[row] === 1) continue;
      let matchedBytes = 0;
      while (matchedBytes < subjectLength && heap[subjectStart + matchedBytes] === subjectBytes[matchedBytes]) matchedBytes++;
      if (matchedBytes === subjectLength) wantedRows.push(row);
    }
    return wantedRows;
  }
}
