/**
 * A gate over a log and projections small enough to read at a glance. Rows are pairs of path and key; the log can be
 * told to refuse, and every step that matters leaves a word in `steps`.
 */
import { noSearchConfig } from '../../src/projections/tenants/search-config.ts';
import { protectionOf } from '../../src/projections/catalog/type-guards.ts';
import type { Clock } from '../../src/clock.ts';
import { ServiceError } from '../../src/errors.ts';
import type { Caller } from '../../src/governance/caller.ts';
import type { Action, Invocation } from '../../src/governance/gate-contract.ts';
import type { GateDependencies, GateSettings, GovernedState } from '../../src/governance/gate-core.ts';
import { Gate } from '../../src/governance/gate.ts';
import { licenceOf } from '../../src/governance/tenancy/licence.ts';
import type { AccessRecord, CommittedEntry, EntryDraft, TokenRecord, TypeDefinition } from '../../src/log/entries/entry.ts';
import { positionsOf } from '../../src/log/entries/entry.ts';
import type {
  Appended,
  AppendOptions,
  Basis,
  Durability,
  LogProofs,
  LogStatus,
  LogStore,
  NextPosition,
} from '../../src/log/log-store.ts';
import { FOREVER } from '../../src/log/values/timestamp.ts';
import {
  pathColumn,
  type AccessPaths,
  type CatalogReader,
  type PathCodes,
  type RowBlock,
  type ScanRequest,
} from '../../src/projections/access-paths.ts';
import { AuditProjection } from '../../src/projections/audit/projection.ts';
import type { Command, PutRows } from '../../src/projections/command.ts';
import type { Decision } from '../../src/projections/decision.ts';
import type { RegisteredToken } from '../../src/projections/tokens/projection.ts';
import { Branches } from '../../src/projections/branches/projection.ts';
import { Exhibits } from '../../src/projections/exhibits/projection.ts';
import { Policies } from '../../src/projections/policies/projection.ts';
import { Retention } from '../../src/projections/retention/projection.ts';
import { Tenants } from '../../src/projections/tenants/projection.ts';

export interface Row {
  readonly path: string | null;
  readonly key: string;
}

export class ManualClock implements Clock {
  wallNs = 1_700_000_000_000_000_000n;
  steadyMs = 0;
  now = (): bigint => this.wallNs;
  monotonicMs = (): number => this.steadyMs;
  sleep = (): Promise<void> => Promise.resolve();
}

export class FakeLog implements LogStore {
  readonly entries: CommittedEntry[] = [];
  readonly steps: string[];
  bytes = 0;
  /** Thrown by `append`. */
  refusal: ServiceError | null = null;
  /** Rejects `written` of what is appended from now on. */
  writeFailure: ServiceError | null = null;
  /** While set, acknowledgements wait for it. */
  hold: Promise<void> | null = null;
  lastOptions: AppendOptions | undefined;
  acknowledged: Promise<Durability> = Promise.resolve('synced');

  constructor(steps: string[]) {
    this.steps = steps;
  }

  redact(): Promise<never> {
    return Promise.reject(new Error('a log of the test keeps what it has'));
  }

  status(): LogStatus {
    const last = this.next();
    return {
      state: 'open',
      logId: 'log',
      origin: 'origin',
      leaves: this.entries.length,
      positions: last.position,
      durableLeaves: this.entries.length,
      bytes: this.bytes,
      files: 1,
      recovery: { cutBytes: 0, cutFrom: null, replayedLeaves: 0 },
      failure: null,
    };
  }

  next(): NextPosition {
    const last = this.entries.at(-1);
    const position = last === undefined ? 0 : last.position + last.positions;
    return { position, time: 1000n + BigInt(position) };
  }

  claim({ position }: NextPosition): boolean {
    return position === this.next().position;
  }

  get proofs(): LogProofs {
    throw new Error('this log proves nothing');
  }

  basis(): Basis {
    const { position, time } = this.next();
    return { position, instant: time };
  }

  append(drafts: readonly EntryDraft[], options?: AppendOptions): Appended {
    this.lastOptions = options;
    if (this.refusal !== null) throw this.refusal;
    const entries = drafts.map((draft) => {
      const { position, time } = this.next();
      const entry = { ...draft, leaf: this.entries.length, position, positions: positionsOf(draft.body), time };
      this.entries.push(entry);
      this.steps.push(`append ${draft.body.kind}`);
      return entry;
    });
    const failure = this.writeFailure;
    const written = failure === null ? Promise.resolve() : Promise.reject(failure);
    const acknowledged = (this.hold ?? Promise.resolve()).then((): Durability => {
      if (failure !== null) throw failure;
      this.steps.push(`ack ${drafts[0]?.body.kind}`);
      return 'synced';
    });
    for (const promise of [acknowledged, written]) promise.catch(() => undefined);
    if (!drafts.every(({ body }) => body.kind === 'access')) this.acknowledged = acknowledged;
    return { entries, acknowledged, written };
  }

  async *read(fromLeaf: number): AsyncIterable<CommittedEntry> {
    for (const entry of this.entries.slice(fromLeaf)) yield entry;
  }

  onVisible(): void {}
  head = (): never => {
    throw new Error('not asked here');
  };
  seal = (): Promise<void> => Promise.resolve();
  durable = (): Promise<void> => Promise.resolve();
  savedState = (): never => {
    throw new Error('not asked here');
  };
  close = (): Promise<void> => Promise.resolve();
}

/** `T` rows as blocks of mixed paths, honouring or ignoring the paths that a scan is limited to. */
export class FakeState implements GovernedState {
  readonly rows: Row[] = [];
  readonly codes: (string | null)[] = [null];
  readonly tokens: RegisteredToken[] = [];
  readonly types: TypeDefinition[] = [];
  readonly steps: string[];
  readonly audit: AuditProjection;
  readonly timeline = {
    positionAfter: (instant: bigint): number => Number(instant - 999n),
    positionAt: (instant: bigint): number => Number(instant - 1000n),
    timeOf: (position: number): bigint => 1000n + BigInt(position),
  };
  readonly policies = new Policies();
  readonly tenants = new Tenants();
  readonly exhibits = new Exhibits();
  readonly branches = new Branches();
  readonly retention = new Retention();
  /** A storage that forgets the scope: what leaves must be filtered all the same. */
  ignoresPaths = false;
  blockRows = 3;
  applyFailure: Error | null = null;
  lastScan: ScanRequest | undefined;

  constructor(steps: string[], audit: AuditProjection) {
    this.steps = steps;
    this.audit = audit;
  }

  readonly catalog: GovernedState['catalog'] = {
    catalogOn: () => this.#types(),
    protection: (_branch, _tenant, name) => protectionOf(this.types.filter((type) => type.name === name)),
    definitions: (_branch, name) => this.types.filter((type) => type.name === name),
  };

  readonly directory = {
    token: (id: string) => this.tokens.find((token) => token.record.id === id),
    tokens: () => this.tokens,
    get size(): number {
      return 0;
    },
  };

  put(path: string | null, key: string): void {
    if (!this.codes.includes(path)) this.codes.push(path);
    this.rows.push({ path, key });
  }

  snapshot(basis: Basis, branch: string, tenant: string | null): AccessPaths {
    this.steps.push('snapshot');
    const codes: PathCodes = {
      size: this.codes.length,
      path: (code) => this.codes[code] ?? null,
      codeOf: (path) => this.codes.indexOf(path),
    };
    const paths: AccessPaths = {
      tenant: null,
      pathsOf: () => paths,
      branch,
      branchId: this.branches.idOf(branch, tenant) ?? 0,
      position: basis.position,
      instant: basis.instant,
      catalog: this.#types(),
      protectionEpoch: 0,
      protection: (name) => protectionOf(this.types.filter((type) => type.name === name)),
      removals: { removedAfter: () => [] },
      embeddings: () => ({ vectorAt: () => null }),
      recalls: () => ({ recallsOf: () => ({ count: 0, last: null }) }),
      erasures: { count: 0, pathsOf: () => [] },
      isPrivate: false,
      views: [],
      judgements: () => [],
      rules: () => [],
      textLanguage: 'english',
      searchAt: () => noSearchConfig,
      rows: {
        scan: (request) => this.#blocks(request),
        estimate: (request) => ({ access: 'live', rows: this.#visible(request).length, segments: 1 }),
        pathCodes: () => codes,
        provenanceOf: (_type, systemFrom, paths) => {
          const row = this.rows[Number(systemFrom)];
          if (row === undefined || (paths !== undefined && !paths.includes(this.codes.indexOf(row.path)))) return undefined;
          return { source: row.key, method: 'test', confidence: 1, recordedAt: systemFrom, derivedFrom: null };
        },
      },
    };
    return paths;
  }

  writtenSince(): never {
    throw new Error('no transaction is committed here');
  }

  privately(): never {
    throw new Error('no transactions here');
  }

  removals(): number {
    return 0;
  }

  keysWithin(): null {
    return null;
  }

  keptOf(): undefined {
    return undefined;
  }

  heldRows(): readonly never[] {
    return [];
  }

  snapshotOf(instant: bigint, branch: string, tenant: string | null): AccessPaths {
    return this.snapshot({ position: Number(instant - 1000n), instant }, branch, tenant);
  }

  *decideInSteps(command: Command): Generator<undefined, Decision> {
    yield;
    return this.decide(command);
  }

  decide(command: Command): Decision {
    this.steps.push(`decide ${command.kind}`);
    const accepted = command.kind === 'put-rows' ? command.rows.length : 0;
    const context = {
      branch: 'main',
      tenant: null,
      path: null,
      principal: '',
      door: '',
      purpose: null,
      correlationId: '',
      policyDigest: '',
    };
    const body = { kind: 'genesis', logId: '', origin: '', engineVersion: '' } as const;
    return {
      drafts: accepted === 0 ? [] : [{ context, body }],
      outcome: {
        kind: command.kind,
        accepted,
        rejected: 0,
        errors: [],
        ids: [],
        idsTruncated: false,
        systemFrom: 0n,
        systemFromLast: 0n,
        changed: accepted > 0,
      },
    };
  }

  apply(entry: CommittedEntry): void {
    if (this.applyFailure !== null) throw this.applyFailure;
    this.steps.push(`apply ${entry.body.kind}`);
    this.audit.apply(entry);
    this.exhibits.apply(entry);
    this.branches.apply(entry);
    this.policies.apply(entry);
    this.tenants.apply(entry);
  }

  #types(): CatalogReader {
    return {
      type: (name) => this.types.find((type) => type.name === name),
      types: () => this.types,
      isOwn: () => true,
      ontologyVersion: 1,
    };
  }

  #visible(request: ScanRequest): readonly Row[] {
    const { paths } = request;
    if (paths === undefined || this.ignoresPaths) return this.rows;
    return this.rows.filter((row) => paths.includes(this.codes.indexOf(row.path)));
  }

  /** Two columns in a block: the row's number in `rows`, and its path code; every second block selects rows explicitly. */
  *#blocks(request: ScanRequest): Generator<RowBlock, void> {
    this.lastScan = request;
    const seen = new Set(this.#visible(request));
    for (let first = 0; first < this.rows.length; first += this.blockRows) {
      const stretch = this.rows.slice(first, first + this.blockRows);
      const numbers = stretch.map((row, i) => (seen.has(row) ? i : -1)).filter((i) => i >= 0);
      if (numbers.length === 0) continue;
      const codes = stretch.map((row) => this.codes.indexOf(row.path));
      const dense = numbers.length === stretch.length && first % 2 === 0;
      yield {
        columns: request.columns.map((name) => ({
          kind: 'i32' as const,
          nulls: null,
          values: Int32Array.from(name === pathColumn ? codes : stretch.map((_, i) => first + i)),
        })),
        selection: dense ? null : Int32Array.from(numbers),
        first: 0,
        count: numbers.length,
        scanned: 100,
        path: codes.every((code) => code === codes[0]) ? codes[0]! : -1,
      };
    }
  }
}

export const settings: GateSettings = {
  SERVICE_PURPOSE_MODE: 'strict',
  SERVICE_PURPOSES: ['analytics', 'fraud'],
  SERVICE_QUERY_QUOTA: 1000,
  SERVICE_QUERY_QUOTA_PERIOD_SECS: 60,
  SERVICE_MAX_INFLIGHT_QUERIES: 10,
  SERVICE_MAX_RUNNING_QUERIES: 32,
  SERVICE_QUERY_QUEUE_MAX: 256,
  SERVICE_QUERY_TIMEOUT_SECS: 30,
  SERVICE_INGEST_QUEUE_MB: 256,
  SERVICE_DURABILITY: 'group',
  SERVICE_WAL_SYNC: 'interval',
  SERVICE_TENANCY_MODE: 'single',
};

export function caller(over: Partial<Caller> = {}): Caller {
  return {
    principal: 'ada',
    credential: 'token',
    tokenId: 'token-ada',
    tenant: null,
    path: null,
    roles: [],
    attributes: {},
    purposes: [],
    door: 'http',
    branch: 'main',
    clientIp: null,
    sharedFrom: null,
    ...over,
  };
}

export class World {
  readonly steps: string[] = [];
  readonly clock = new ManualClock();
  readonly log = new FakeLog(this.steps);
  readonly audit = new AuditProjection();
  readonly state = new FakeState(this.steps, this.audit);
  readonly warnings: string[] = [];
  readonly gate: Gate;
  #ids = 0;

  constructor(over: Partial<GateSettings> = {}, parts: Partial<GateDependencies> = {}) {
    this.gate = new Gate({
      log: this.log,
      projections: this.state,
      audit: this.audit,
      clock: this.clock,
      ids: { next: () => `id-${++this.#ids}` },
      settings: { ...settings, ...over },
      licence: { ...licenceOf('free'), storageBytesMax: 1000 },
      digestKey: new Uint8Array(32).fill(7),
      textSeals: { seal: (text) => text, open: (stored) => stored, sealFor: (_, __, text) => text, hasKey: () => false },
      warn: (line) => this.warnings.push(line),
      ...parts,
    });
  }

  /** Access records in the log, in order. */
  get records(): AccessRecord[] {
    return this.log.entries.flatMap((entry) => (entry.body.kind === 'access' ? entry.body.records : []));
  }

  invoke<T>(who: Caller, action: Action, run: (invocation: Invocation) => Promise<T>, purpose: string | null = null): Promise<T> {
    return this.gate.invoke(who, { action, purpose, correlationId: `c${this.records.length}` }, run);
  }

  /** Keys that a scan of `who` delivers. */
  seen(who: Caller): Promise<string[]> {
    return this.invoke(who, 'query', async (invocation) => {
      const blocks = invocation.snapshot().rows.scan({ type: 'T', columns: ['number'], time: { system: 'all', valid: 'all' } });
      return keysOf(this.state.rows, blocks);
    });
  }
}

export function keysOf(rows: readonly Row[], blocks: Iterator<RowBlock, void>): string[] {
  const keys: string[] = [];
  for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
    const { columns, selection, first, count } = step.value;
    const numbers = columns[0];
    if (numbers?.kind !== 'i32') throw new Error('the number column is i32');
    for (let i = 0; i < count; i++) keys.push(rows[numbers.values[selection === null ? first + i : selection[i]!]!]!.key);
  }
  return keys;
}

export function putRows(type = 'T', count = 1): PutRows {
  return {
    kind: 'put-rows',
    type,
    rows: { length: count, columns: [] },
    atomic: false,
    createType: false,
    provenance: { source: 'test', method: 'test', confidence: 1, derivedFrom: null },
  };
}

export function tokenRecord(over: Partial<TokenRecord> = {}): TokenRecord {
  return {
    id: 'token-ada',
    secretHash: '00',
    principal: 'ada',
    tenant: null,
    organization: null,
    roles: [],
    attributes: {},
    purposes: [],
    expiresAt: FOREVER,
    ...over,
  };
}

export function registered(record: TokenRecord, endedAt: bigint | null = null): RegisteredToken {
  return { record, mintedAt: 0n, endedAt, replacedBy: null };
}

/** The ServiceError that `work` ends with; fails when it ends otherwise. */
export async function refusalOf(work: Promise<unknown> | (() => unknown)): Promise<ServiceError> {
  try {
    await (typeof work === 'function' ? work() : work);
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}
