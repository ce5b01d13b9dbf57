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
const openEnded: Vector = { kind: 'i64', values: new BigInt64Array(SEGMENT_ROWS).fill(FOREVER), nulls: null };

const onePaths = new Map<number, Vector>();

/** The same path code for any row of a segment, as most segments have it: made once, not once a block. */
function onePath(code: number): Vector {
  let vector = onePaths.get(code);
  if (!vector) {
    if (onePaths.size === 16) onePaths.clear();
    vector = { kind: 'i32', values: new Int32Array(SEGMENT_ROWS).fill(code), nulls: null };
    onePaths.set(code, vector);
  }
  return vector;
}

export class BlockColumns {
  readonly #timeline: Timeline;
  readonly #scopes: OrganisationCodes;
  readonly #basis: number;
  readonly #idIsKey: boolean;
  /** The inherited part of a table on a branch; null where the segments' own columns say all. */
  readonly #inherited: Inherited | null;
  readonly #indexes: SegmentIndexes;
  /** Texts say which rows have the same. */
  readonly #distinct: boolean;
  /** Arrays of system columns in a segment's own row numbers: blocks of one segment fill different ranges of them. */
  #segment: Segment | null = null;
  /** system_from of the block at hand, which is valid_from too where no row was given one. */
  #ownTimes: Vector | null = null;
  #arrays: Map<string, BigInt64Array> | null = null;

  constructor(
    { timeline, scopes, basis, idIsKey, indexes }: Pick<ScanSource, 'timeline' | 'scopes' | 'basis' | 'idIsKey' | 'indexes'>,
    inherited: Inherited | null,
    distinct: boolean,
  ) {
    this.#inherited = inherited;
    this.#distinct = distinct;
    this.#indexes = indexes;
    this.#timeline = timeline;
    this.#scopes = scopes;
    this.#basis = basis;
    this.#idIsKey = idIsKey;
  }

  /** Vectors for `names`, in segment row numbers, or 0 .. count-1 when `compact`. */
  vectors(names: readonly string[], chosen: ChosenRows, compact: boolean): Vector[] {
    if (this.#segment !== chosen.segment) {
      this.#segment = chosen.segment;
      this.#arrays = null;
    }
    this.#ownTimes = null;
    return names.map((name) => this.#vector(name, chosen, compact));
  }

  #vector(name: string, chosen: ChosenRows, compact: boolean): Vector {
    const { segment } = chosen;
    switch (name) {
      case 'system_from':
        return this.#systemFrom(chosen, compact);
      case 'system_to':
        return this.#systemTo(chosen, compact);
      case 'valid_from':
        if (!segment.validFrom) return this.#systemFrom(chosen, compact);
        return whole({ kind: 'i64', values: segment.validFrom, nulls: null }, chosen, compact);
      case 'valid_to':
        if (!segment.validTo) return openEnded;
        return whole({ kind: 'i64', values: segment.validTo, nulls: null }, chosen, compact);
      case '_pk':
        return whole(segment.keys.vector(segment.length), chosen, compact);
      case 'id':
        return this.#id(chosen, compact);
      case 'namespace_path':
        return this.#pathVector(chosen, compact, false);
      case 'tenant_id':
        return this.#pathVector(chosen, compact, true);
      case pathColumn:
        return this.#pathCodes(chosen, compact);
      case opColumn:
        return this.#ops(chosen, compact);
      default: {
        const column = this.#column(segment, name);
        if (!column) return { kind: 'null' };
        const vector = whole(column.vector(segment.length), chosen, compact);
        // A copy of the column, and rows that were gathered, are numbered otherwise or hold something else.
        if (compact || column !== segment.column(name)) return vector;
        if (vector.kind === 'vec') return { ...vector, coarse: { cells: () => this.#indexes.coarse(segment, name) } };
        if (vector.kind !== 'text' || !this.#distinct) return vector;
        return { ...vector, distinct: { cells: () => this.#indexes.ends(segment, name) } };
      }
    }
  }

  #systemFrom(chosen: ChosenRows, compact: boolean): Vector {
    if (this.#ownTimes) return this.#ownTimes;
    const values = this.#array('system_from', chosen, compact);
    this.#timeline.writeTimes(values, chosen.segment, chosen.rows, chosen.first, chosen.count, compact);
    return (this.#ownTimes = { kind: 'i64', values, nulls: null });
  }

  /** A closing at or after the basis has not happened for this reader, nor has one of the source's after the fork. */
  #systemTo(chosen: ChosenRows, compact: boolean): Vector {
    const { segment, rows, first, count } = chosen;
    const below = this.#inherited ? Math.min(this.#basis, this.#inherited.end) : this.#basis;
    const inherited = this.#inherited?.touches(segment) ? this.#inherited : null;
    if (segment.closedLeast >= below && !inherited) return openEnded;
    const values = this.#array('system_to', chosen, compact);
    for (let k = 0; k < count; k++) {
      const row = rows ? rows[k]! : first + k;
      let closing = segment.closingOf(row);
      if (closing >= below) {
        const onBranch = inherited ? inherited.closingOf(segment.firstRow + row) : Infinity;
        closing = onBranch < this.#basis ? onBranch : Infinity;
      }
      values[compact ? k : row] = closing === Infinity ? FOREVER : this.#timeline.timeOf(closing);
    }
    return { kind: 'i64', values, nulls: null };
  }

  #column(segment: Segment, name: string): SegmentColumn | undefined {
    return this.#inherited ? this.#inherited.column(segment, name) : segment.column(name);
  }

  /** The `id` as declared or sent; where none was declared and a row was sent without, its key. */
  #id(chosen: ChosenRows, compact: boolean): Vector {
    const { segment, rows, first, count } = chosen;
    const column = this.#column(segment, 'id');
    const own: Vector = column ? column.vector(segment.length) : { kind: 'null' };
    if (!this.#idIsKey || (own.kind !== 'null' && !own.nulls)) return whole(own, chosen, compact);
    const keys = segment.keys.vector(segment.length);
    if (own.kind === 'null') return whole(keys, chosen, compact);
    const builder = new VectorBuilder('string', compact ? count : first + count);
    let row = 0;
    for (let k = 0; k < count; k++) {
      row = rows ? rows[k]! : first + k;
      if (!compact) while (builder.length < row) builder.appendNull();
      builder.append(cellAt(own, 'string', row) ?? cellAt(keys, 'string', row));
    }
    return builder.build();
  }

  #pathCodes(chosen: ChosenRows, compact: boolean): Vector {
    const { paths } = chosen.segment;
    return paths.values === null ? onePath(paths.constant!) : spread(paths, chosen, compact);
  }

  #ops(chosen: ChosenRows, compact: boolean): Vector {
    return spread(chosen.segment.ops, chosen, compact);
  }

  #pathVector(chosen: ChosenRows, compact: boolean, tenant: boolean): Vector {
    const { paths, length } = chosen.segment;
    const dictionary = tenant ? this.#scopes.tenantDictionary : this.#scopes.pathDictionary;
    if (paths.values === null) {
      if (paths.constant === 0) return { kind: 'null' };
      const code = tenant ? this.#scopes.tenantCodeOf(paths.constant!) : paths.constant!;
      return { kind: 'dict', values: new Int32Array(compact ? chosen.count : length).fill(code), dictionary, nulls: null };
    }
    const values = new Int32Array(compact ? chosen.count : length);
    const nulls = new Uint8Array(values.length);
    for (let k = 0; k < chosen.count; k++) {
      const row = chosen.rows ? chosen.rows[k]! : chosen.first + k;
      const at = compact ? k : row;
      const path = paths.values[row]!;
      if (path === 0) nulls[at] = 1;
      else values[at] = tenant ? this.#scopes.tenantCodeOf(path) : path;
    }
    return { kind: 'dict', values, dictionary, nulls };
  }

  #array(name: string, chosen: ChosenRows, compact: boolean): BigInt64Array {
    if (compact) return new BigInt64Array(chosen.count);
    const arrays = (this.#arrays ??= new Map());
    let array = arrays.get(name);
    if (!array || array.length < chosen.segment.length) arrays.set(name, (array = new BigInt64Array(chosen.segment.length)));
    return array;
  }
}

/** Codes rest in as few bytes as they need: those of the chosen rows as the words that readers expect. */
function spread(codes: CodeColumn, { segment, rows, first, count }: ChosenRows, compact: boolean): Vector {
  const values = new Int32Array(compact ? count : segment.length);
  for (let k = 0; k < count; k++) {
    const row = rows ? rows[k]! : first + k;
    values[compact ? k : row] = codes.codeAt(row);
  }
  return { kind: 'i32', values, nulls: null };
}

function whole(vector: Vector, { rows, first, count }: ChosenRows, compact: boolean): Vector {
  if (!compact || vector.kind === 'null') return vector;
  return rows ? gather(vector, rows) : windowOf(vector, first, count);
}
