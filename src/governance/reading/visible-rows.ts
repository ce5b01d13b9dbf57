/**
 * Rows of every tenant that a name stands for, each let out by the gate for itself and put in one order of `system_from`, as if
 * they lay in one table. Columns that an assigner's rows lack, or that mean something else there, read as NULL.
 */
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import {
  type PathCodes,
  type Near,
  type NearRequest,
  type Preparation,
  type RowBlock,
  type RowProvenance,
  type RowReader,
  type ScanEstimate,
  type ScanRequest,
  shownOf,
} from '../../projections/access-paths.ts';
import { GovernedRows, noPathCodes, type Reading } from './governed-rows.ts';
import type { Scope } from './path-scopes.ts';
import type { GovernedBlock } from '../search/visible-texts.ts';
import { isAlike, openSources, type RowSource, type VisibleType, type VisibleTypes } from './visible-types.ts';

export interface VisibleRowsDependencies {
  readonly types: VisibleTypes;
  /** Scope of the caller's own path. */
  readonly scope: Scope;
  readonly reading: Reading;
  readonly instant: bigint;
}

export class VisibleRows implements RowReader<GovernedBlock> {
  readonly #parts: VisibleRowsDependencies;

  constructor(parts: VisibleRowsDependencies) {
    this.#parts = parts;
  }

  prepare(type: string, columns: readonly string[]): Preparation | null {
    const found = this.#parts.types.typeNamed(type);
    const begun = openSources(found, columns).flatMap((source) => {
      const alike = columns.filter((column) => isAlike(found.definition, source.declared, column));
      return this.#rowsOf(source).prepare(source.declared.name, alike) ?? [];
    });
    if (begun.length === 0) return null;
    return {
      ready: Promise.all(begun.map(({ ready }) => ready)).then(() => undefined),
      progress: () => {
        const each = begun.map((preparation) => preparation.progress());
        return { done: each.reduce((sum, { done }) => sum + done, 0), of: each.reduce((sum, { of }) => sum + of, 0) };
      },
    };
  }

  canBeNear(request: Pick<NearRequest, 'type' | 'column' | 'time'>): boolean {
    return this.#nearIn(request)?.canBeNear(request) ?? false;
  }

  near(request: NearRequest): Promise<Near> | null {
    return this.#nearIn(request)?.near(request) ?? null;
  }

  /** Where the rows are one tenant's, as they are declared there. */
  #nearIn({ type, column }: Pick<NearRequest, 'type' | 'column'>): GovernedRows | null {
    const found = this.#parts.types.typeNamed(type);
    const [source, ...others] = openSources(found, [column]);
    if (source === undefined || others.length > 0) return null;
    if (type !== source.declared.name || !isAlike(found.definition, source.declared, column)) return null;
    return this.#rowsOf(source);
  }

  scan(request: ScanRequest): Iterator<GovernedBlock, void> {
    const found = this.#parts.types.typeNamed(request.type);
    const sources = openSources(found, request.columns.map(columnOf));
    const [first] = sources;
    if (sources.length === 1) return this.#scanOne(found, first!, request);
    const { unsiftedRows: _, ...asked } = request;
    const withPlace = { ...asked, columns: [...request.columns, 'system_from'] };
    return new MergedBlocks(sources.map((source) => this.#scanOne(found, source, withPlace)));
  }

  #scanOne({ definition }: VisibleType, source: RowSource, request: ScanRequest): Iterator<GovernedBlock, void> {
    const rows = this.#rowsOf(source);
    const { declared } = source;
    const alike = (column: string): boolean => isAlike(definition, declared, columnOf(column));
    const there = request.columns.filter(alike);
    const zones = request.zones?.filter(({ column }) => alike(column));
    if (there.length === request.columns.length && request.type === declared.name) return rows.scan(request);
    const indexed = request.indexed?.filter(alike);
    const identifiers = request.identifiers?.every(({ column }) => alike(column)) ? request.identifiers : undefined;
    const blocks = rows.scan({ ...request, type: declared.name, columns: there, zones, indexed, identifiers });
    return new PaddedBlocks(
      blocks,
      request.columns.map((column) => there.indexOf(column)),
    );
  }

  estimate(request: ScanRequest): ScanEstimate {
    const found = this.#parts.types.typeNamed(request.type);
    const sources = openSources(found, request.columns.map(columnOf));
    const estimates = sources.map((source) => {
      const alike = (column: string): boolean => isAlike(found.definition, source.declared, columnOf(column));
      const zones = request.zones?.filter(({ column }) => alike(column));
      const columns = request.columns.filter(alike);
      return this.#rowsOf(source).estimate({ ...request, type: source.declared.name, columns, ...(zones && { zones }) });
    });
    const [first] = estimates;
    if (estimates.length === 1) return first!;
    const sum = (of: 'rows' | 'segments'): number => estimates.reduce((total, each) => total + each[of], 0);
    return { access: first!.access, rows: sum('rows'), segments: sum('segments') };
  }

  provenanceOf(name: string, systemFrom: bigint): RowProvenance | undefined {
    for (const source of openSources(this.#parts.types.typeNamed(name), [])) {
      const found = this.#rowsOf(source).provenanceOf(source.declared.name, systemFrom);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Above the gate nothing may learn which organisations exist. */
  pathCodes(): PathCodes {
    return noPathCodes;
  }

  #rowsOf(source: RowSource): GovernedRows {
    const { scope, reading, instant } = this.#parts;
    return new GovernedRows({ rows: source.paths.rows, scope, sourceOf: () => source, reading, instant });
  }
}

const columnOf = (asked: string): string => shownOf(asked) ?? asked;

const nullVector: Vector = { kind: 'null' };

/** Blocks with the columns that were asked for: NULL where there are none. */
class PaddedBlocks implements Iterator<GovernedBlock, void> {
  readonly #blocks: Iterator<GovernedBlock, void>;
  /** Number of each column among those of the blocks; -1 for none. */
  readonly #columns: readonly number[];

  constructor(blocks: Iterator<GovernedBlock, void>, columns: readonly number[]) {
    this.#blocks = blocks;
    this.#columns = columns;
  }

  next(): IteratorResult<GovernedBlock, void> {
    const step = this.#blocks.next();
    if (step.done === true) return step;
    const columns = this.#columns.map((number) => (number < 0 ? nullVector : step.value.columns[number]!));
    return { done: false, value: { ...step.value, columns } };
  }

  return(): IteratorResult<GovernedBlock, void> {
    this.#blocks.return?.();
    return { done: true, value: undefined };
  }
}

/** A block of one source and how many of its rows have left. */
interface Head {
  readonly block: RowBlock;
  readonly times: BigInt64Array;
  taken: number;
}

/** Blocks of several sources in one order of `system_from`, which is the last column of each. A block is cut where another's rows come between. */
class MergedBlocks implements Iterator<RowBlock, void> {
  readonly #sources: readonly Iterator<RowBlock, void>[];
  readonly #heads: (Head | null | 'ended')[];

  constructor(sources: readonly Iterator<RowBlock, void>[]) {
    this.#sources = sources;
    this.#heads = sources.map(() => null);
  }

  next(): IteratorResult<RowBlock, void> {
    for (const [i, source] of this.#sources.entries()) {
      if (this.#heads[i] !== null) continue;
      const step = source.next();
      if (step.done === true) this.#heads[i] = 'ended';
      else if (step.value.count === 0) return { done: false, value: cut(step.value, 0, 0) };
      else this.#heads[i] = headOf(step.value);
    }
    let least: { readonly head: Head; readonly number: number; readonly time: bigint } | null = null;
    let bound: bigint | null = null;
    for (const [number, head] of this.#heads.entries()) {
      if (head === null || head === 'ended') continue;
      const time = timeAt(head, head.taken);
      if (least === null || time < least.time) {
        if (least !== null) bound = bound === null || least.time < bound ? least.time : bound;
        least = { head, number, time };
      } else bound = bound === null || time < bound ? time : bound;
    }
    if (least === null) return { done: true, value: undefined };
    const { head, number } = least;
    const from = head.taken;
    while (head.taken < head.block.count && (bound === null || timeAt(head, head.taken) < bound)) head.taken++;
    if (head.taken === head.block.count) this.#heads[number] = null;
    return { done: false, value: cut(head.block, from, head.taken) };
  }

  return(): IteratorResult<RowBlock, void> {
    for (const source of this.#sources) source.return?.();
    return { done: true, value: undefined };
  }
}

function headOf(block: RowBlock): Head {
  const times = block.columns.at(-1);
  assert(block.sift === undefined && times?.kind === 'i64', 'rows of several tenants come sifted and with their time');
  return { block, times: times.values, taken: 0 };
}

const timeAt = ({ block, times }: Head, place: number): bigint =>
  times[block.selection === null ? block.first + place : block.selection[place]!]!;

/** Rows from .. to-1 by place, without the time that they were put in order by. */
function cut({ columns, selection, first, count, scanned, path }: RowBlock, from: number, to: number): RowBlock {
  const asked = columns.slice(0, -1);
  const told = Math.min(scanned, to - from);
  if (from === 0 && to === count) return { columns: asked, selection, first, count, scanned, path };
  if (selection === null) return { columns: asked, selection, first: first + from, count: to - from, scanned: told, path };
  return { columns: asked, selection: selection.subarray(from, to), first: 0, count: to - from, scanned: told, path };
}
