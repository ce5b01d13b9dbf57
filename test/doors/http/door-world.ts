/**
 * The HTTP door over a gate and planner that do as they are told: for what the door alone decides (headers, bodies,
 * problem records, listeners). Rows that must survive a real store are tested over the whole stack elsewhere.
 */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { Ids, systemClock, systemRandom } from '../../../src/clock.ts';
import type { Clock } from '../../../src/clock.ts';
import type { HttpDoorOptions, LogLine } from '../../../src/doors/http/context.ts';
import type { WorkflowDesk } from '../../../src/governance/desks/workflow-desk.ts';
import type { JobDesk } from '../../../src/governance/desks/job-desk.ts';
import { JobRunner } from '../../../src/governance/jobs/job-runner.ts';
import { readDocument } from '../../../src/doors/rich-text/chunks.ts';
import { createHttpDoor, type HttpDoor } from '../../../src/doors/http/server.ts';
import { ServiceError } from '../../../src/errors.ts';
import { RateLimiter } from '../../../src/governance/admission/rate-limit.ts';
import type { Caller } from '../../../src/governance/caller.ts';
import type {
  BranchView,
  GateContract,
  GovernedSnapshot,
  Invocation,
  InvocationDetails,
  InvocationRequest,
  TokenView,
} from '../../../src/governance/gate-contract.ts';
import type { TypeDefinition } from '../../../src/log/entries/entry.ts';
import type { Answer, QueryRequest } from '../../../src/planner/planner-contract.ts';
import { LookupTables } from '../../../src/planner/continuous/views/lookup-tables.ts';
import { StandingQueries } from '../../../src/planner/continuous/watch/watch.ts';
import type { AuditEntry } from '../../../src/projections/access-paths.ts';
import type { Command, Outcome } from '../../../src/projections/command.ts';

export const goodToken = 'good-token';
export const adminToken = 'admin-token';

export interface Recorded {
  readonly caller: Caller;
  readonly request: InvocationRequest;
  readonly facts: InvocationDetails;
  /** Error code of what the invocation ended with; null when it succeeded. */
  readonly code: string | null;
}

export const emptyAnswer: Answer = {
  columns: [],
  batches: [],
  rowCount: 0,
  costUnits: 1,
  estimatedTotalHits: 0,
  asOfSystem: 1n,
  cursor: null,
  nextCursor: null,
  provenance: null,
  facets: null,
  plan: null,
  actualRows: null,
  processingTimeMs: 0.5,
  overtaken: () => false,
};

const backupOfNothing = {
  backup: '00000000-0',
  created_at: '2024-01-01T00:00:00Z',
  engine_version: '1.2.3',
  root: '00',
  tree_size: 1,
  size_bytes: 2,
  digest_tree_size: null,
};
/** No job is scheduled here, and none can be. */
const noSchedule = {
  list: () => [],
  find: () => null,
  next: () => null,
  progress: () => null,
  make: () => Promise.reject(new ServiceError('REL_NOT_IMPLEMENTED', 'no jobs here')),
  run: () => Promise.reject(new ServiceError('REL_NOT_FOUND', 'no such job')),
  change: () => Promise.reject(new ServiceError('REL_NOT_FOUND', 'no such job')),
  cancel: () => Promise.reject(new ServiceError('REL_NOT_FOUND', 'no such job')),
} as unknown as JobDesk;

const noRun = (): never => {
  throw new ServiceError('REL_NOT_FOUND', 'no such run');
};
const noWorkflows = {
  builtins: [],
  list: () => [],
  idOf: () => null,
  findRun: noRun,
  make: () => Promise.reject(new ServiceError('REL_NOT_IMPLEMENTED', 'no workflows here')),
  run: async () => noRun(),
  end: async () => noRun(),
  cancel: async () => noRun(),
  approve: async () => noRun(),
} as unknown as WorkflowDesk;

const noSuchBackup = () => Promise.reject(new ServiceError('REL_NOT_FOUND', 'no such backup'));

export const openType = (name: string): TypeDefinition => ({
  name,
  properties: {},
  open: true,
  primaryKey: null,
  graphTriggers: [],
  ontologyVersion: 1,
});

export class DoorWorld {
  readonly records: Recorded[] = [];
  readonly commands: { readonly command: Command; readonly sync: boolean }[] = [];
  readonly questions: QueryRequest[] = [];
  readonly lines: LogLine[] = [];
  readonly types = new Map<string, TypeDefinition>();
  tokens: TokenView[] = [];
  branches: BranchView[] = [];
  state: 'starting' | 'ready' | 'draining' | 'failed' = 'ready';
  answer: (request: QueryRequest, invocation: Invocation) => Promise<Answer> = async () => emptyAnswer;
  submit: (command: Command) => Promise<Partial<Outcome>> = async () => ({});
  authenticator: HttpDoorOptions['authenticator'] = {
    dataCaller,
    renew: (caller) => caller,
    adminCaller,
    absentCaller: () => {
      throw new ServiceError('REL_ACL', 'nobody is absent here');
    },
  };
  /** Access records, for who exports them. */
  trail: () => AsyncIterator<AuditEntry> = async function* () {};
  /** Thrown instead of recording: the log refuses. */
  recordFailure: ServiceError | null = null;
  door!: HttpDoor;

  async open(options: Partial<HttpDoorOptions> = {}): Promise<this> {
    const clock: Clock = options.clock ?? systemClock;
    this.door = await createHttpDoor({
      settings: {
        SERVICE_PROFILE: 'free',
        SERVICE_HTTP_BIND: '127.0.0.1',
        SERVICE_PORT: 0,
        SERVICE_ADMIN_BIND: '127.0.0.1:0',
        SERVICE_ERRORS_BASE: 'urn:test:errors',
        SERVICE_BODY_LIMIT_MB: 1,
        SERVICE_DRAIN_TIMEOUT_SECS: 5,
        SERVICE_PINNED_NAMESPACES: ['pinned'],
        SERVICE_MAX_RESULT_ROWS: 1_000,
        SERVICE_WORKBENCH_ENABLE: false,
      },
      gate: this.#gate(),
      jobs: new JobRunner({
        now: () => clock.now(),
        newId: () => 'job',
        record: () => Promise.resolve(),
        listRecorded: () => [],
        warn: () => undefined,
      }),
      schedule: noSchedule,
      workflows: noWorkflows,
      planner: this.#planner(),
      embedder: null,
      translator: null,
      readDocuments: readDocument,
      lookups: new LookupTables({ files: null, clock }),
      watch: new StandingQueries({
        gate: this.#gate(),
        planner: this.#planner(),
        clock,
        ids: new Ids(clock, systemRandom),
        subscriptionsMax: 10,
        yieldTurn: async () => undefined,
      }),
      authenticator: {
        dataCaller: (given) => this.authenticator.dataCaller(given),
        renew: (caller) => this.authenticator.renew(caller),
        adminCaller: (given) => this.authenticator.adminCaller(given),
        absentCaller: (owner) => this.authenticator.absentCaller(owner),
      },
      system: {
        version: '1.2.3',
        profile: 'free',
        nodeId: 'annals.test',
        demo: false,
        state: () => this.state,
        failure: () => null,
        doors: () => [{ name: 'http', port: 1, state: 'listening' }],
        storage: () => ({
          storedBytes: 11,
          segmentBytes: 22,
          segmentCount: 3,
          rowBytes: 44,
          columnBytes: 33,
          columnsHydrated: 5,
          columnsEvicted: 6,
          segmentsPruned: 8,
          segmentsPrunedByBloom: 7,
        }),
        compact: async () => ({ segments: 2, bytesBefore: 70, bytesAfter: 50 }),
        reindex: async (type) => (type === 'Nothing' ? undefined : { indexes: 3, bytes: 9 }),
        rotateDataKey: async () => ({ activeKey: 2, previousKey: 1, keys: 2, rotatedAt: '2026-01-01T00:00:00.000000000Z' }),
        backups: { create: async () => backupOfNothing, list: async () => [backupOfNothing], restore: noSuchBackup },
        walSync: () => 'interval',
        posture: () => ({ kms_dev_mode: false, cluster_fencing: true, grpc_tls: false, security_mode: 'strict' }),
        config: () => ({ SERVICE_ADMIN_TOKEN: { value: '<redacted>', source: 'environment' } }),
      },
      readLimit: new RateLimiter(1e9),
      writeLimit: new RateLimiter(1e9),
      memoryLimit: new RateLimiter(1e9),
      clock,
      ids: new Ids(clock, systemRandom),
      random: systemRandom,
      log: (line) => this.lines.push(line),
      isCrowded: () => false,
      yieldTurn: () => new Promise((resolve) => setImmediate(resolve)),
      ...options,
    });
    await this.door.start();
    return this;
  }

  close(): Promise<void> {
    return this.door.stop();
  }

  /** One request with the good token, unless `headers` say otherwise (`authorization: ''` sends none). */
  call(method: string, path: string, body?: unknown, headers: Record<string, string | string[]> = {}): Promise<Reply> {
    return send(this.door.port, method, path, body, { authorization: `Bearer ${goodToken}`, ...headers });
  }

  admin(method: string, path: string, body?: unknown, headers: Record<string, string | string[]> = {}): Promise<Reply> {
    return send(this.door.adminPort, method, path, body, { authorization: `Bearer ${adminToken}`, ...headers });
  }

  #planner(): HttpDoorOptions['planner'] {
    return {
      querySeries: (invocation) => ({
        query: (request) => {
          this.questions.push(request);
          return this.answer(request, invocation);
        },
        snapshot: () => invocation.snapshot(),
        overtaken: () => false,
      }),
      query: (invocation, request) => {
        this.questions.push(request);
        return this.answer(request, invocation);
      },
      readSigma: async () => [],
      turns: () => async () => undefined,
    };
  }

  #gate(): GateContract {
    return {
      invoke: async (caller, request, run) => {
        let facts: InvocationDetails = {};
        const invocation = this.#invocation(caller, request, (given) => (facts = { ...facts, ...given }));
        const ending = await (async () => run(invocation))().then(
          (value) => ({ value, code: null }),
          (error: unknown) => ({ error, code: error instanceof ServiceError ? error.code : 'REL_INTERNAL' }),
        );
        if (this.recordFailure) throw this.recordFailure;
        this.records.push({ caller, request, facts, code: ending.code });
        if ('error' in ending) throw ending.error;
        return ending.value;
      },
      checkStanding: () => undefined,
      onVisible: () => () => undefined,
      rehearsal: () => {
        throw new ServiceError('REL_NOT_IMPLEMENTED', 'no rehearsals here');
      },
      transactions: () => [],
      transaction: () => {
        throw new ServiceError('REL_NOT_FOUND', 'no such transaction');
      },
      begin: () => {
        throw new ServiceError('REL_NOT_IMPLEMENTED', 'no transactions here');
      },
    };
  }

  #invocation(caller: Caller, request: InvocationRequest, describe: (facts: InvocationDetails) => void): Invocation {
    const catalog = { type: (name: string) => this.types.get(name), types: () => [...this.types.values()], ontologyVersion: 7 };
    return {
      caller,
      correlationId: request.correlationId,
      describe,
      snapshot: () => {
        const protection = () => ({ protected: false, accessScope: false, masked: new Set(), references: new Map() });
        return {
          catalog,
          branchId: 0,
          offers: () => true,
          protection,
          views: [],
          rules: () => [],
        } as unknown as GovernedSnapshot;
      },
      erasing: () => undefined,
      retryConflicts: (_about, attempt) => attempt(),
      bodies: () => {
        throw new ServiceError('REL_NOT_IMPLEMENTED', 'no bodies here');
      },
      retentionOf: () => [],
      heldRows: () => [],
      checkInspects: () => undefined,
      deletable: () => {
        throw new ServiceError('REL_NOT_FOUND', 'no such row');
      },
      rehearse: async () => ({ errors: [] }),
      commit: async () => null,
      transaction: null,
      submit: async (command, options) => {
        this.commands.push({ command, sync: options?.sync === true });
        return { ...outcomeOf(command), ...(await this.submit(command)) };
      },
      audit: () => ({
        count: async () => ({ count: this.records.length, byAction: { query: this.records.length } }),
        entries: async () => ({ entries: [], next: null }),
        all: () => ({ [Symbol.asyncIterator]: () => this.trail() }),
      }),
      proofs: () => ({
        origin: 'annals.test/log/main',
        key: 'annals.test/log/main+00000000+AQ==',
        treeSize: 1,
        leafHash: () => new Uint8Array(32),
        head: async () => ({ size: 1, root: new Uint8Array(32), note: 'a note' }),
        entry: () => Promise.reject(new ServiceError('REL_NOT_FOUND', 'no such entry')),
        tile: async (_level, _index, width) => new Uint8Array(width * 32),
      }),
      exhibits: () => {
        throw new ServiceError('REL_NOT_FOUND', 'no such exhibit');
      },
      branches: () => this.branches,
      tokens: () => this.tokens,
      tenants: () => {
        throw new ServiceError('REL_NOT_FOUND', 'no such tenant');
      },
      policies: () => {
        throw new ServiceError('REL_NOT_FOUND', 'no such policy');
      },
      explainPolicy: () => ({
        decision: 'allow',
        because: [],
        scope: '',
        determining: [],
        residual: null,
        masks: [],
        policyDigest: '',
        position: 0,
        satisfiedPath: [],
      }),
    };
  }
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

/** Strings and bytes go as they are, anything else as JSON. */
export function send(
  port: number,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string | string[]> = {},
): Promise<Reply> {
  const bytes =
    body === undefined
      ? null
      : typeof body === 'string' || body instanceof Uint8Array
        ? Buffer.from(body)
        : Buffer.from(JSON.stringify(body));
  const sent = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ''));
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { port, host: '127.0.0.1', method, path, headers: { ...(bytes ? { 'content-length': bytes.length } : {}), ...sent } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          const isJson = /(?<!nd)json/.test(response.headers['content-type'] ?? '');
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            json: isJson && text !== '' ? (JSON.parse(text) as Record<string, unknown>) : {},
          });
        });
      },
    );
    request.on('error', reject);
    request.end(bytes ?? undefined);
  });
}

/** Raw bytes on a socket, and everything that came back until the server closed it or `quietMs` passed. */
/** What comes back: until the connection ends, nothing comes for so long, or `isWhole` says that it is all. */
export function sendRaw(
  port: number,
  bytes: string | Buffer,
  quietMs = 500,
  isWhole: (text: string) => boolean = () => false,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    let text = '';
    const finish = (): void => {
      socket.destroy();
      resolve(text);
    };
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (isWhole(text)) finish();
    });
    socket.on('close', finish);
    socket.on('error', reject);
    socket.setTimeout(quietMs, finish);
  });
}

const someone: Caller = {
  principal: 'tester',
  credential: 'token',
  tokenId: 'token-1',
  tenant: null,
  path: null,
  roles: [],
  attributes: {},
  purposes: [],
  door: 'http',
  branch: 'main',
  clientIp: null,
  sharedFrom: null,
};

function dataCaller(given: { authorization: string | undefined; organization?: string | readonly string[] | undefined }): Caller {
  if (given.authorization !== `Bearer ${goodToken}`) {
    throw new ServiceError('REL_UNAUTHENTICATED', 'missing or invalid credential');
  }
  return { ...someone, path: typeof given.organization === 'string' ? given.organization : null };
}

function adminCaller(given: { authorization: string | undefined }): Caller {
  if (given.authorization !== `Bearer ${adminToken}`) {
    throw new ServiceError('REL_UNAUTHENTICATED', 'missing or invalid credential');
  }
  return { ...someone, principal: 'admin', credential: 'admin', door: 'http-admin' };
}

function outcomeOf(command: Command): Outcome {
  const accepted = command.kind === 'put-rows' ? command.rows.length : 1;
  return {
    kind: command.kind,
    accepted,
    rejected: 0,
    errors: [],
    ids: [],
    idsTruncated: false,
    systemFrom: 1_700_000_000_000_000_001n,
    systemFromLast: 1_700_000_000_000_000_000n + BigInt(accepted),
    changed: true,
    durability: 'synced',
  };
}
