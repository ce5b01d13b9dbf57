/**
 * The vectors of a block: a segment's own columns as they are, system columns made for the rows that leave. Either in
 * the segment's row numbers or, for few rows, gathered so that making a column costs what the rows cost.
 */
import type { Vector } from '../../../log/values/columns.ts';
import { FOREVER } from '../../../log/values/timestamp.ts';
import { VectorBuilder, cellAt } from '../../../log/values/vector-builder.ts';
import { opColumn, pathColumn } from '../../access-paths.ts';
import type { Timeline } from '../../../log/values/timeline.ts';
import type { CodeColumn } from '../cells/code-column.ts';
import { gather, windowOf } from '../cells/gather-rows.ts';
import type { SegmentIndexes } from '../indexes/segment-indexes.ts';
import type { Inherited } from '../tables/branch-overlay.ts';
import type { ScanSource } from './scan-source.ts';
import type { OrganisationCodes } from '../cells/path-codes.ts';
import type { Segment } from '../segments/segment.ts';
import { SEGMENT_ROWS, type SegmentColumn } from '../segments/segment-column.ts';

/** Rows of one segment that leave together, ascending. */
export interface ChosenRows {
  readonly segment: Segment;
  /** Null: first .. first+count-1. */
  readonly rows: Int32Array | null;
  readonly first: number;
  readonly count: number;
}

/** FOREVER for any row of a segment: rows without an end are the common case, and need no array of their own. */
const openEndedTimes: Vector = { kind: 'i64', values: new BigInt64Array(SEGMENT_ROWS).fill(FOREVER), nulls: null };

const onePathVectors = new Map<number, Vector>();

/** The same path code for any row of a segment, as most segments have it: made once, not once a block. */
function onePathVector(pathCode: number): Vector {
  let pathVector = onePathVectors.get(pathCode);
  if (!pathVector) {
    if (onePathVectors.size === 16) onePathVectors.clear();
    pathVector = { kind: 'i32', values: new Int32Array(SEGMENT_ROWS).fill(pathCode), nulls: null };
    onePathVectors.set(pathCode, pathVector);
  }
  return pathVector;
}

export class BlockColumns {
  readonly #blockTimeline: Timeline;
  readonly #organisationCodes: OrganisationCodes;
  readonly #scanBasis: number;
  readonly #idIsKey: boolean;
  /** The inherited part of a table on a branch; null where the segments' own columns say all. */
  readonly #inheritedRows: Inherited | null;
  readonly #indexes: SegmentIndexes;
  /** Texts say which rows have the same. */
  readonly #wantsDistinct: boolean;
  /** Arrays of system columns in a segment's own row numbers: blocks of one segment fill different ranges of them. */
  #blockSegment: Segment | null = null;
  /** system_from of the block at hand, which is valid_from too where no row was given one. */
  #systemFromVector: Vector | null = null;
  #timeArrays: Map<string, BigInt64Array> | null = null;

  constructor(
    { timeline, scopes, basis, idIsKey, indexes }: Pick<ScanSource, 'timeline' | 'scopes' | 'basis' | 'idIsKey' | 'indexes'>,
    inherited: Inherited | null,
    distinct: boolean,
  ) {
    this.#inheritedRows = inherited;
    this.#wantsDistinct = distinct;
    this.#indexes = indexes;
    this.#blockTimeline = timeline;
    this.#organisationCodes = scopes;
    this.#scanBasis = basis;
    this.#idIsKey = idIsKey;
  }

  /** Vectors for `names`, in segment row numbers, or 0 .. count-1 when `isCompact`. */
  vectors(names: readonly string[], chosenRows: ChosenRows, isCompact: boolean): Vector[] {
    if (this.#blockSegment !== chosenRows.segment) {
      this.#blockSegment = chosenRows.segment;
      this.#timeArrays = null;
    }
    this.#systemFromVector = null;
    return names.map((columnName) => this.#blockVector(columnName, chosenRows, isCompact));
  }

  #blockVector(columnName: string, chosenRows: ChosenRows, isCompact: boolean): Vector {
    const { segment } = chosenRows;
    switch (columnName) {
      case 'system_from':
        return this.#systemFromTimes(chosenRows, isCompact);
      case 'system_to':
        return this.#systemToTimes(chosenRows, isCompact);
      case 'valid_from':
        if (!segment.validFrom) return this.#systemFromTimes(chosenRows, isCompact);
        return vectorOfChosen({ kind: 'i64', values: segment.validFrom, nulls: null }, chosenRows, isCompact);
      case 'valid_to':
        if (!segment.validTo) return openEndedTimes;
        return vectorOfChosen({ kind: 'i64', values: segment.validTo, nulls: null }, chosenRows, isCompact);
      case '_pk':
        return vectorOfChosen(segment.keys.vector(segment.length), chosenRows, isCompact);
      case 'id':
        return this.#idVector(chosenRows, isCompact);
      case 'namespace_path':
        return this.#pathVector(chosenRows, isCompact, false);
      case 'tenant_id':
        return this.#pathVector(chosenRows, isCompact, true);
      case pathColumn:
        return this.#pathCodeVector(chosenRows, isCompact);
      case opColumn:
        return this.#opVector(chosenRows, isCompact);
      default: {
        const segmentColumn = this.#segmentColumn(segment, columnName);
        if (!segmentColumn) return { kind: 'null' };
        const blockVector = vectorOfChosen(segmentColumn.vector(segment.length), chosenRows, isCompact);
        // A copy of the column, and rows that were gathered, are numbered otherwise or hold something else.
        if (isCompact || segmentColumn !== segment.column(columnName)) return blockVector;
        if (blockVector.kind === 'vec')
          return { ...blockVector, coarse: { cells: () => this.#indexes.coarse(segment, columnName) } };
        if (blockVector.kind !== 'text' || !this.#wantsDistinct) return blockVector;
        return { ...blockVector, distinct: { cells: () => this.#indexes.ends(segment, columnName) } };
      }
    }
  }

  #systemFromTimes(chosenRows: ChosenRows, isCompact: boolean): Vector {
    if (this.#systemFromVector) return this.#systemFromVector;
    const systemFromTimes = this.#timeArray('system_from', chosenRows, isCompact);
    this.#blockTimeline.writeTimes(
      systemFromTimes,
      chosenRows.segment,
      chosenRows.rows,
      chosenRows.first,
      chosenRows.count,
      isCompact,
    );
    return (this.#systemFromVector = { kind: 'i64', values: systemFromTimes, nulls: null });
  }

  /** A closing at or after the basis has not happened for this reader, nor has one of the source's after the fork. */
  #systemToTimes(chosenRows: ChosenRows, isCompact: boolean): Vector {
    const { segment, rows, first, count } = chosenRows;
    const closingBound = this.#inheritedRows ? Math.min(this.#scanBasis, this.#inheritedRows.end) : this.#scanBasis;
    const inherited = this.#inheritedRows?.touches(segment) ? this.#inheritedRows : null;
    if (segment.closedLeast >= closingBound && !inherited) return openEndedTimes;
    const systemToTimes = this.#timeArray('system_to', chosenRows, isCompact);
    for (let k = 0; k < count; k++) {
      const row = rows ? rows[k]! : first + k;
      let versionClosing = segment.closingOf(row);
      if (versionClosing >= closingBound) {
        const branchClosing = inherited ? inherited.closingOf(segment.firstRow + row) : Infinity;
        versionClosing = branchClosing < this.#scanBasis ? branchClosing : Infinity;
      }
      systemToTimes[isCompact ? k : row] = versionClosing === Infinity ? FOREVER : this.#blockTimeline.timeOf(versionClosing);
    }
    return { kind: 'i64', values: systemToTimes, nulls: null };
  }

  #segmentColumn(segment: Segment, name: string): SegmentColumn | undefined {
    return this.#inheritedRows ? this.#inheritedRows.column(segment, name) : segment.column(name);
  }

  /** The `id` as declared or sent; where none was declared and a row was sent without, its key. */
  #idVector(chosenRows: ChosenRows, isCompact: boolean): Vector {
    const { segment, rows, first, count } = chosenRows;
    const idColumn = this.#segmentColumn(segment, 'id');
    const ownIds: Vector = idColumn ? idColumn.vector(segment.length) : { kind: 'null' };
    if (!this.#idIsKey || (ownIds.kind !== 'null' && !ownIds.nulls)) return vectorOfChosen(ownIds, chosenRows, isCompact);
    const keyVector = segment.keys.vector(segment.length);
    if (ownIds.kind === 'null') return vectorOfChosen(keyVector, chosenRows, isCompact);
    const idBuilder = new VectorBuilder('string', isCompact ? count : first + count);
    let row = 0;
    for (let k = 0; k < count; k++) {
      row = rows ? rows[k]! : first + k;
      if (!isCompact) while (idBuilder.length < row) idBuilder.appendNull();
      idBuilder.append(cellAt(ownIds, 'string', row) ?? cellAt(keyVector, 'string', row));
    }
    return idBuilder.build();
  }

  #pathCodeVector(chosenRows: ChosenRows, isCompact: boolean): Vector {
    const { paths } = chosenRows.segment;
    return paths.values === null ? onePathVector(paths.constant!) : spreadRowCodes(paths, chosenRows, isCompact);
  }

  #opVector(chosen: ChosenRows, compact: boolean): Vector {
    return spreadRowCodes(chosen.segment.ops, chosen, compact);
  }

  #pathVector(chosenRows: ChosenRows, isCompact: boolean, isTenantColumn: boolean): Vector {
    const { paths, length } = chosenRows.segment;
    const pathDictionary = isTenantColumn ? this.#organisationCodes.tenantDictionary : this.#organisationCodes.pathDictionary;
    if (paths.values === null) {
      if (paths.constant === 0) return { kind: 'null' };
      const pathCode = isTenantColumn ? this.#organisationCodes.tenantCodeOf(paths.constant!) : paths.constant!;
      return {
        kind: 'dict',
        values: new Int32Array(isCompact ? chosenRows.count : length).fill(pathCode),
        dictionary: pathDictionary,
        nulls: null,
      };
    }
    const pathCodeValues = new Int32Array(isCompact ? chosenRows.count : length);
    const pathNulls = new Uint8Array(pathCodeValues.length);
    for (let k = 0; k < chosenRows.count; k++) {
      const row = chosenRows.rows ? chosenRows.rows[k]! : chosenRows.first + k;
      const blockRow = isCompact ? k : row;
      const rowPathCode = paths.values[row]!;
      if (rowPathCode === 0) pathNulls[blockRow] = 1;
      else pathCodeValues[blockRow] = isTenantColumn ? this.#organisationCodes.tenantCodeOf(rowPathCode) : rowPathCode;
    }
    return { kind: 'dict', values: pathCodeValues, dictionary: pathDictionary, nulls: pathNulls };
  }

  #timeArray(name: string, chosenRows: ChosenRows, isCompact: boolean): BigInt64Array {
    if (isCompact) return new BigInt64Array(chosenRows.count);
    const timeArrays = (this.#timeArrays ??= new Map());
    let timeArray = timeArrays.get(name);
    if (!timeArray || timeArray.length < chosenRows.segment.length)
      timeArrays.set(name, (timeArray = new BigInt64Array(chosenRows.segment.length)));
    return timeArray;
  }
}

/** Codes rest in as few bytes as they need: those of the chosen rows as the words that readers expect. */
function spreadRowCodes(rowCodes: CodeColumn, { segment, rows, first, count }: ChosenRows, isCompact: boolean): Vector {
  const spreadCodes = new Int32Array(isCompact ? count : segment.length);
  for (let k = 0; k < count; k++) {
    const row = rows ? rows[k]! : first + k;
    spreadCodes[isCompact ? k : row] = rowCodes.codeAt(row);
  }
  return { kind: 'i32', values: spreadCodes, nulls: null };
}

function vectorOfChosen(segmentVector: Vector, { rows, first, count }: ChosenRows, isCompact: boolean): Vector {
  if (!isCompact || segmentVector.kind === 'null') return segmentVector;
  return rows ? gather(segmentVector, rows) : windowOf(segmentVector, first, count);
}
