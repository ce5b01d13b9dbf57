/**
 * Row versions by type, key and organisation path, each with its bounds on both axes and its provenance. Nothing is
 * overwritten: an update closes a version and appends another, so any earlier basis still reads what it saw.
 */
import { assert } from '../../errors.ts';
import type { CommittedEntry } from '../../log/entry.ts';
import { compareText } from '../../log/value.ts';
import type { PathCodes, RowBlock, RowProvenance, RowReader, ScanEstimate, ScanRequest } from '../access-paths.ts';
import type { StoredColumns } from '../catalog/commands.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';
import type { Timeline } from '../../log/timeline.ts';
import { provenanceOf } from './lineage.ts';
import { estimateRows, scanRows, type ScanSource } from './scan.ts';
import { Scopes } from './scopes.ts';
import { Table } from './table.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import { hashTable } from './table-digest.ts';
import { restoreTables, saveTables } from './table-checkpoint.ts';

export class Rows implements Projection, StoredColumns {
  readonly name = 'rows';
  readonly formatVersion = 1;
  readonly timeline: Timeline;
  #scopes = new Scopes();
  #tables = new Map<string, Table>();

  /** The timeline must have applied an entry before this projection does. */
  constructor(timeline: Timeline) {
    this.timeline = timeline;
  }

  get scopes(): Scopes {
    return this.#scopes;
  }

  table(type: string): Table | undefined {
    return this.#tables.get(type);
  }

  /** What a snapshot with this basis reads. */
  reader(basis: number): RowReader {
    return new RowsAt(this, basis);
  }

  integersFitNumber(type: string, column: string): boolean {
    const segments = this.#tables.get(type)?.segments ?? [];
    return segments.every((segment) => segment.column(column)?.integersFitNumber() ?? true);
  }

  /** Heap that segments, indexes and dictionaries take. */
  get bytes(): number {
    let total = 0;
    for (const table of this.#tables.values()) total += table.bytes;
    return total;
  }

  apply(entry: CommittedEntry): void {
    const { body } = entry;
    switch (body.kind) {
      case 'rows':
        this.#tableFor(body.type).append(entry, body, this.#scopes.encode(entry.context.path));
        return;
      case 'removal': {
        const table = this.#tables.get(body.type);
        assert(table, 'a removal follows the rows that it removes');
        table.remove(body, this.#scopes.encode(entry.context.path));
        return;
      }
      case 'type': {
        const { name, properties } = body.definition;
        const table = this.#tableFor(name);
        for (const [column, { type }] of Object.entries(properties)) table.setColumnType(column, type);
        return;
      }
      default:
        return;
    }
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    saveTables(target, this.#scopes, [...this.#tables.values()]);
  }

  async restore(source: CheckpointReader): Promise<void> {
    const { scopes, tables } = restoreTables(source, this.timeline);
    this.#scopes = scopes;
    this.#tables = new Map(tables.map((table) => [table.type, table]));
  }

  reset(): void {
    this.#scopes = new Scopes();
    this.#tables = new Map();
  }

  /** Over values, never over layouts: segment sizes, widths, dictionaries and codes leave no trace. */
  digest(): string {
    const hash = new CanonicalHash();
    for (const type of this.#types()) hashTable(hash, this.#tables.get(type)!, this.#scopes, this.timeline);
    return hash.hex();
  }

  #types(): string[] {
    return [...this.#tables.keys()].sort(compareText);
  }

  #tableFor(type: string): Table {
    let table = this.#tables.get(type);
    if (!table) this.#tables.set(type, (table = new Table(type, this.timeline)));
    return table;
  }
}

class RowsAt implements RowReader {
  readonly #rows: Rows;
  readonly #basis: number;

  constructor(rows: Rows, basis: number) {
    this.#rows = rows;
    this.#basis = basis;
  }

  scan(request: ScanRequest): Iterator<RowBlock, void> {
    return scanRows(this.#source(request.type), request);
  }

  estimate(request: ScanRequest): ScanEstimate {
    return estimateRows(this.#source(request.type), request);
  }

  pathCodes(): PathCodes {
    return this.#rows.scopes;
  }

  provenanceOf(type: string, systemFrom: bigint, paths?: readonly number[]): RowProvenance | undefined {
    return provenanceOf(this.#source(type), systemFrom, paths);
  }

  #source(type: string): ScanSource {
    const { timeline, scopes } = this.#rows;
    return { timeline, scopes, table: this.#rows.table(type), basis: this.#basis };
  }
}
