/** A governed snapshot over arrays: what the planner sees of storage, with layouts and segment sizes chosen by the test. */
import { noSearchConfig } from '../../src/projections/tenants/search-config.ts';
import { protectionOf } from '../../src/projections/catalog/type-guards.ts';
import type { Caller } from '../../src/governance/caller.ts';
import type { GovernedSnapshot, Invocation, InvocationDetails } from '../../src/governance/gate-contract.ts';
import type { Dictionary, Vector } from '../../src/log/values/columns.ts';
import type { MaskKind, PropertyDefinition, TypeDefinition } from '../../src/log/entries/entry.ts';
import { FOREVER } from '../../src/log/values/timestamp.ts';
import { type Cell, type ColumnType, systemColumns } from '../../src/log/values/value.ts';
import { cellAt, VectorBuilder } from '../../src/log/values/vector-builder.ts';
import {
  type RowBlock,
  type RowReader,
  type ScanRequest,
  shownColumn,
  type TimeBounds,
} from '../../src/projections/access-paths.ts';
import type { Answer } from '../../src/planner/planner-contract.ts';

export type Row = Readonly<Record<string, Cell>>;

export interface FakeType {
  readonly name: string;
  readonly properties: Readonly<Record<string, ColumnType>>;
  readonly primaryKey?: string;
  /** In system_from order. Missing system columns get defaults; row i's system_from is 1000 + i. */
  readonly rows: readonly Row[];
  /** Rows in a segment; all in one unless given. */
  readonly segmentRows?: number;
  /** String columns that rest as dictionary codes, one dictionary per column or per segment. */
  readonly dictionaries?: Readonly<Record<string, 'shared' | 'per segment'>>;
  /** Versions in a block; the whole segment unless given. */
  readonly blockRows?: number;
  /** Columns that read as NULL, and are shown as `shownAs` has them. */
  readonly masked?: Readonly<Record<string, MaskKind>>;
}

/** Enough of a mask to tell it from the cell and from NULL. */
export function shownAs(kind: MaskKind, cell: Cell): Cell {
  return kind !== 'null' && typeof cell === 'string' ? `${kind}!` : null;
}

interface Segment {
  readonly length: number;
  readonly columns: ReadonlyMap<string, Vector>;
  readonly rows: readonly Row[];
}

export class FakeStore {
  readonly scans: ScanRequest[] = [];
  readonly #types = new Map<
    string,
    { readonly type: FakeType; readonly definition: TypeDefinition; readonly segments: Segment[] }
  >();
  instant: bigint;
  ontologyVersion = 1;

  constructor(types: readonly FakeType[], instant = 1_000_000n) {
    this.instant = instant;
    for (const type of types) this.#types.set(type.name, { type, definition: definitionOf(type), segments: segmentsOf(type) });
  }

  snapshot(caller: Partial<Caller> = {}): GovernedSnapshot {
    return {
      governed: true,
      breakGlass: null,
      accessScopeRef: null,
      caller: { ...anyone, ...caller },
      purpose: null,
      grantKey: caller.path ?? '',
      tenant: null,
      notices: () => [],
      embeddingsOf: () => null,
      branch: 'main',
      branchId: 0,
      position: 0,
      instant: this.instant,
      catalog: {
        type: (name) => this.#types.get(name)?.definition,
        types: () => [...this.#types.values()].map(({ definition }) => definition),
        isOwn: () => true,
        ontologyVersion: this.ontologyVersion,
      },
      masksOf: (type) => new Map(Object.entries(this.#types.get(type)?.type.masked ?? {})),
      seenBy: () => 'path',
      hides: () => false,
      offers: () => true,
      shares: () => false,
      textLanguage: 'english',
      searchAt: () => noSearchConfig,
      mayShow: () => true,
      protection: () => protectionOf([]),
      protectionEpoch: 0,
      rows: this.#reader(),
      stored: this.#reader(),
      removals: { removedAfter: () => [] },
      recallsOf: (_, rows) => rows.map(() => ({ count: 0, last: null })),
      recalledAs: (_, rows) => ({ salt: '', ids: rows.map(({ key }) => key) }),
      erasing: () => () => false,
      isPrivate: false,
      views: [],
      judgements: () => [],
      rules: () => [],
    };
  }

  invocation(facts: InvocationDetails[] = [], caller: Partial<Caller> = {}): Invocation {
    return {
      caller: { ...anyone, ...caller },
      correlationId: 'c',
      describe: (fact) => void facts.push(fact),
      snapshot: () => this.snapshot(caller),
      submit: () => Promise.reject(new Error('read only')),
      commit: () => Promise.reject(new Error('read only')),
      transaction: null,
      retryConflicts: (_about, attempt) => attempt(),
      rehearse: () => Promise.reject(new Error('read only')),
      retentionOf: () => [],
      heldRows: () => [],
      checkInspects: () => undefined,
      deletable: () => this.snapshot(caller),
      bodies: () => {
        throw new Error('no bodies here');
      },
      erasing: () => {
        throw new Error('nothing is erased here');
      },
      audit: () => {
        throw new Error('no audit here');
      },
      proofs: () => {
        throw new Error('nothing to prove here');
      },
      exhibits: () => {
        throw new Error('no exhibits here');
      },
      tokens: () => [],
      branches: () => [],
      tenants: () => {
        throw new Error('no tenants here');
      },
      policies: () => {
        throw new Error('no policies here');
      },
      explainPolicy: (objectType) => ({
        decision: 'allow',
        because: [`everybody may read ${objectType}`],
        scope: 'all rows',
        determining: [],
        residual: null,
        masks: [],
        policyDigest: '',
        position: 0,
        satisfiedPath: [],
      }),
    };
  }

  #reader(): RowReader {
    return {
      scan: (request) => {
        this.scans.push(request);
        return this.#blocks(request);
      },
      estimate: (request) => {
        const segments = this.#types.get(request.type)?.segments ?? [];
        const rows = request.keys?.length ?? segments.reduce((sum, { length }) => sum + length, 0);
        const timed = request.time.system !== 'all' || request.time.valid !== 'all';
        return { access: request.keys ? 'primary key' : timed ? 'as of' : 'all versions', rows, segments: segments.length };
      },
      pathCodes: () => ({ size: 1, path: () => null, codeOf: () => 0 }),
      provenanceOf: (_, systemFrom) => ({
        source: 'test',
        method: 'made',
        confidence: 1,
        recordedAt: systemFrom,
        derivedFrom: null,
      }),
    };
  }

  *#blocks(request: ScanRequest): Generator<RowBlock, void> {
    const found = this.#types.get(request.type)!;
    const keys = request.keys && new Set(request.keys);
    for (const segment of found.segments) {
      const columns = request.columns.map((name): Vector => segment.columns.get(name) ?? { kind: 'null' });
      const step = Math.min(found.type.blockRows ?? segment.length, request.blockRows ?? segment.length);
      for (let first = 0; first < segment.length; first += step) {
        const end = Math.min(first + step, segment.length);
        const kept: number[] = [];
        for (let i = first; i < end; i++) {
          const row = segment.rows[i]!;
          const visible = inBounds(row, request.time) && (!keys || keys.has(String(row['_pk'])));
          if (visible && (request.after === undefined || (row['system_from'] as bigint) > request.after)) kept.push(i);
        }
        const all = kept.length === end - first;
        yield {
          columns,
          selection: all ? null : Int32Array.from(kept),
          first: all ? first : 0,
          count: kept.length,
          scanned: end - first,
          path: 0,
        };
      }
    }
  }
}

export const anyone: Caller = {
  principal: 'tester',
  credential: 'none',
  tokenId: null,
  tenant: null,
  path: null,
  roles: [],
  attributes: {},
  purposes: [],
  door: 'test',
  branch: 'main',
  clientIp: null,
  sharedFrom: null,
};

/** Rows of an answer as objects, i64 as bigint. */
export function rowsOf(answer: Answer): Record<string, Cell>[] {
  const rows: Record<string, Cell>[] = [];
  for (const batch of answer.batches) {
    for (let j = 0; j < batch.count; j++) {
      const i = batch.selection ? batch.selection[j]! : batch.first + j;
      rows.push(Object.fromEntries(answer.columns.map(({ name, type }, c) => [name, cellAt(batch.columns[c]!, type, i)])));
    }
  }
  return rows;
}

/** Rows of an answer as tuples. */
export function tuplesOf(answer: Answer): Cell[][] {
  return rowsOf(answer).map((row) => Object.values(row));
}

export class FakeDictionary implements Dictionary {
  readonly #texts: string[] = [];
  readonly #codes = new Map<string, number>();

  get size(): number {
    return this.#texts.length;
  }

  text(code: number): string {
    const text = this.#texts[code];
    if (text === undefined) throw new Error(`no code ${code}`);
    return text;
  }

  codeOf(text: string): number {
    return this.#codes.get(text) ?? -1;
  }

  add(text: string): number {
    let code = this.#codes.get(text);
    if (code === undefined) {
      code = this.#texts.push(text) - 1;
      this.#codes.set(text, code);
    }
    return code;
  }
}

function definitionOf(type: FakeType): TypeDefinition {
  const properties = Object.entries(type.properties).map(([name, columnType]): [string, PropertyDefinition] => [
    name,
    { type: columnType, required: false, masked: false, indexed: false, subject: false, dims: columnType === 'vector' ? 2 : 0 },
  ]);
  return {
    name: type.name,
    properties: Object.fromEntries(properties),
    open: true,
    primaryKey: type.primaryKey ?? null,
    graphTriggers: [],
    ontologyVersion: 1,
  };
}

function segmentsOf(type: FakeType): Segment[] {
  const columns: Record<string, ColumnType> = { ...systemColumns, ...type.properties };
  const rows = type.rows.map((row, i): Row => {
    const systemFrom = (row['system_from'] as bigint | undefined) ?? BigInt(1000 + i);
    const pk = row['_pk'] ?? (type.primaryKey ? String(row[type.primaryKey]) : `k${i}`);
    const defaults = { _pk: pk, id: pk, tenant_id: null, namespace_path: null, valid_from: systemFrom, valid_to: FOREVER };
    return { ...defaults, system_to: FOREVER, ...row, system_from: systemFrom };
  });
  const shared = new Map<string, FakeDictionary>();
  const segments: Segment[] = [];
  const size = type.segmentRows ?? Math.max(1, rows.length);
  for (let first = 0; first < rows.length; first += size) {
    const own = rows.slice(first, first + size);
    const vectors = new Map<string, Vector>();
    for (const [name, columnType] of Object.entries(columns)) {
      const mask = type.masked?.[name];
      if (mask !== undefined) {
        vectors.set(name, { kind: 'null' });
        const shown = own.map((row): Row => ({ [name]: shownAs(mask, row[name] ?? null) }));
        vectors.set(shownColumn(name), vectorOf(shown, name, columnType));
        continue;
      }
      const mode = type.dictionaries?.[name];
      let dictionary: FakeDictionary | null = null;
      if (mode === 'per segment') dictionary = new FakeDictionary();
      else if (mode === 'shared') {
        dictionary = shared.get(name) ?? new FakeDictionary();
        shared.set(name, dictionary);
      }
      vectors.set(name, dictionary ? codesOf(own, name, dictionary) : vectorOf(own, name, columnType));
    }
    segments.push({ length: own.length, columns: vectors, rows: own });
  }
  return segments;
}

function vectorOf(rows: readonly Row[], name: string, type: ColumnType): Vector {
  const builder = new VectorBuilder(type, rows.length);
  for (const row of rows) builder.append(row[name] ?? null);
  return builder.build();
}

function codesOf(rows: readonly Row[], name: string, dictionary: FakeDictionary): Vector {
  const values = new Int32Array(rows.length);
  const nulls = new Uint8Array(rows.length);
  rows.forEach((row, i) => {
    const text = row[name] ?? null;
    if (text === null) nulls[i] = 1;
    else values[i] = dictionary.add(String(text));
  });
  return { kind: 'dict', values, dictionary, nulls: nulls.includes(1) ? nulls : null };
}

function inBounds(row: Row, time: TimeBounds): boolean {
  const within = (at: 'all' | bigint, from: Cell | undefined, to: Cell | undefined): boolean =>
    at === 'all' || ((from as bigint) <= at && at < (to as bigint));
  return within(time.system, row['system_from'], row['system_to']) && within(time.valid, row['valid_from'], row['valid_to']);
}
