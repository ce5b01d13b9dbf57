/** A store without a log: decides commands, gives entries their places, applies them, reads answers back as plain rows. */
import type { EntryBody, EntryContext, EntryDraft, CommittedEntry, Provenance } from '../../src/log/entries/entry.ts';
import { positionsOf } from '../../src/log/entries/entry.ts';
import type { Dictionary, NamedColumn, RowBatch, Vector } from '../../src/log/values/columns.ts';
import type { Cell, ColumnType } from '../../src/log/values/value.ts';
import { cellAt, VectorBuilder } from '../../src/log/values/vector-builder.ts';
import type { AccessPaths, CatalogReader, RowBlock, ScanRequest, TimeBounds } from '../../src/projections/access-paths.ts';
import type { Command } from '../../src/projections/command.ts';
import { columnTypeOf } from '../../src/projections/catalog/projection.ts';
import type { Decision, TextSeals } from '../../src/projections/decision.ts';
import { Projections } from '../../src/projections/projections.ts';
import type { RowStorageOptions } from '../../src/projections/rows/tables/row-storage.ts';

export type PlainRow = Readonly<Record<string, Cell>>;
export type Columns = Readonly<Record<string, ColumnType>>;

export const START = 1_700_000_000_000_000_000n;
export const everything: TimeBounds = { system: 'all', valid: 'all' };
const written: Provenance = { source: 'test', method: 'ingest', confidence: 0.5, derivedFrom: null };

export function contextOf(path: string | null, branch = 'main'): EntryContext {
  return {
    branch,
    tenant: path?.split('/')[0] ?? null,
    path,
    principal: 'tester',
    door: 'http',
    purpose: 'test',
    correlationId: '0',
    policyDigest: '',
  };
}

/** Columns of the given types; a missing cell is NULL. */
export function batchOf(columns: Columns, rows: readonly PlainRow[]): RowBatch {
  const named: NamedColumn[] = Object.entries(columns).map(([name, type]) => {
    const builder = new VectorBuilder(type, Math.max(1, rows.length));
    for (const row of rows) builder.append(Object.hasOwn(row, name) ? row[name]! : null);
    return { name, type, vector: builder.build() };
  });
  return { length: rows.length, columns: named };
}

/** Reads are those of the store's `tenant`, where no other is named. */
export interface OfTenant {
  readonly tenant?: string | null;
}

/** Texts rest as they are: nobody is erased. */
export const plainTexts: TextSeals = { seal: (text) => text, sealFor: (_, __, text) => text, hasKey: () => false };

export class Store {
  readonly projections: Projections;
  readonly entries: CommittedEntry[] = [];
  /** Whose rows and types are read; null: those without an organisation path. */
  readonly tenant: string | null;
  /** Nanoseconds of the next append. */
  time = START;
  #position = 0;
  #leaf = 0;
  #made = 0;

  constructor(projections?: Projections, { tenant = null }: OfTenant = {}) {
    this.tenant = tenant;
    this.projections = projections ?? freshProjections(() => `made-${this.#made++}`);
  }

  static of(tenant: string, projections?: Projections): Store {
    return new Store(projections, { tenant });
  }

  get position(): number {
    return this.#position;
  }

  /** From where another store is: its state was restored here. */
  goOn(other: Store): void {
    [this.#position, this.#leaf, this.time] = [other.#position, other.#leaf, other.time];
  }

  run(command: Command, path: string | null = null, branch = 'main'): Decision['outcome'] {
    const { drafts, outcome } = this.decide(command, path, branch);
    this.commit(drafts);
    return outcome;
  }

  decide(command: Command, path: string | null = null, branch = 'main'): Decision {
    const next = { position: this.#position, time: this.time };
    return this.projections.decide(command, contextOf(path, branch), next, { textSeals: plainTexts });
  }

  put(
    type: string,
    columns: Columns,
    rows: readonly PlainRow[],
    options: { path?: string | null; atomic?: boolean; branch?: string; idsMax?: number } = {},
  ): Decision['outcome'] {
    return this.run(
      {
        kind: 'put-rows',
        ...(options.idsMax === undefined ? {} : { idsMax: options.idsMax }),
        type,
        rows: batchOf(columns, rows),
        atomic: options.atomic ?? false,
        createType: true,
        provenance: written,
      },
      options.path ?? null,
      options.branch,
    );
  }

  /** One append: contiguous positions and times. The next one is `gap` nanoseconds later. */
  commit(drafts: readonly EntryDraft[], gap = 1000n): void {
    for (const draft of drafts) {
      const positions = positionsOf(draft.body);
      const entry = { ...draft, leaf: this.#leaf++, position: this.#position, positions, time: this.time };
      this.#position += positions;
      this.time += BigInt(positions);
      this.entries.push(entry);
      this.projections.apply(entry);
    }
    this.time += gap;
  }

  /** Entries of another store, in the places that they have there. Those that a restored state covers are passed over. */
  replay(entries: readonly CommittedEntry[]): void {
    for (const entry of entries) {
      this.entries.push(entry);
      this.projections.apply(entry);
      this.#leaf = entry.leaf + 1;
      this.#position = entry.position + entry.positions;
      this.time = entry.time + BigInt(entry.positions) + 1000n;
    }
  }

  append(body: EntryBody, path: string | null = null): void {
    this.commit([{ context: contextOf(path), body }]);
  }

  read(
    type: string,
    columns: readonly string[],
    { tenant = this.tenant, ...request }: Partial<ScanRequest> & OfTenant = {},
    basis = this.#position,
    branch = 'main',
  ): PlainRow[] {
    const blocks = this.blocks({ type, columns, time: everything, ...request, tenant }, basis, branch);
    return blocks.flatMap((block) => this.rowsOf(type, columns, block, branch, tenant));
  }

  snapshot(basis = this.#position, branch = 'main', tenant = this.tenant): AccessPaths {
    return this.projections.snapshot({ position: basis, instant: this.time }, branch, tenant);
  }

  /** Types as the tenant means them. */
  types(tenant = this.tenant, branch = 'main'): CatalogReader {
    return this.snapshot(this.#position, branch, tenant).catalog;
  }

  blocks({ tenant = this.tenant, ...request }: ScanRequest & OfTenant, basis = this.#position, branch = 'main'): RowBlock[] {
    const snapshot = this.snapshot(basis, branch, tenant);
    const blocks: RowBlock[] = [];
    const scan = snapshot.rows.scan(request);
    for (let next = scan.next(); !next.done; next = scan.next()) blocks.push(next.value);
    return blocks;
  }

  rowsOf(type: string, columns: readonly string[], block: RowBlock, branch = 'main', tenant = this.tenant): PlainRow[] {
    const definition = this.types(tenant, branch).type(type);
    return Array.from({ length: block.count }, (_, k) => {
      const row = block.selection ? block.selection[k]! : block.first + k;
      return Object.fromEntries(
        columns.map((name, i) => [
          name,
          cellAt(block.columns[i]!, (definition && columnTypeOf(definition, name)) ?? 'string', row),
        ]),
      );
    });
  }
}

/** Of a vector of so many cells, or of a dictionary. */
export function texts(of: Vector | Dictionary, length = 0): (string | null)[] {
  if ('codeOf' in of) return Array.from({ length: of.size }, (_, code) => of.text(code));
  return Array.from({ length }, (_, row) => cellAt(of, 'string', row) as string | null);
}

export function freshProjections(newKey: () => string = () => 'made', rows: RowStorageOptions = {}): Projections {
  return new Projections({ newKey, tokensMax: 4, rows });
}

/** The same history in other portions: rows entries cut into pieces of at most `rows`, leaves numbered again. */
export function recut(entries: readonly CommittedEntry[], rows: number): CommittedEntry[] {
  const cut: CommittedEntry[] = [];
  for (const entry of entries) {
    if (entry.body.kind !== 'rows') {
      cut.push({ ...entry, leaf: cut.length });
      continue;
    }
    // Whose rows are is for the log; nothing is derived from it.
    const { subjects: _, ...body } = entry.body;
    for (let from = 0; from < body.ops.length; from += rows) {
      const to = Math.min(body.ops.length, from + rows);
      const closeFrom = body.closeOffsets[from]!;
      cut.push({
        ...entry,
        leaf: cut.length,
        position: entry.position + from,
        positions: to - from,
        time: entry.time + BigInt(from),
        body: {
          ...body,
          ops: body.ops.slice(from, to),
          keys: sliceBatch(body.keys, from, to),
          closeOffsets: body.closeOffsets.slice(from, to + 1).map((offset) => offset - closeFrom),
          closes: body.closes.slice(closeFrom, body.closeOffsets[to]),
          cells: sliceBatch(body.cells, from, to),
          ...(body.dropped && { dropped: body.dropped.filter((row) => row >= from && row < to).map((row) => row - from) }),
        },
      });
    }
  }
  return cut;
}

function sliceBatch(batch: RowBatch, from: number, to: number): RowBatch {
  const columns = batch.columns.map(({ name, type, vector }) => {
    const builder = new VectorBuilder(type, to - from);
    for (let row = from; row < to; row++) builder.append(cellAt(vector, type, row));
    const built = builder.build();
    // Keys are text even where every cell is empty.
    return { name, type, vector: built };
  });
  return { length: to - from, columns };
}
