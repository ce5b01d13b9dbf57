/**
 * One history, asked in every way in which the store may keep and evaluate it. Each mode is one look at the same directory:
 * answers and digests must be those of the first, byte for byte. A mode that did not do what it is named for fails.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { systemClock, type Clock } from '../../../src/clock.ts';
import { loadSettings } from '../../../src/config.ts';
import { assert } from '../../../src/errors.ts';
import type { Caller } from '../../../src/governance/caller.ts';
import type { Invocation } from '../../../src/governance/gate-contract.ts';
import type { Disk } from '../../../src/log/disk/disk.ts';
import { formatInstant } from '../../../src/log/values/timestamp.ts';
import { type Cell, systemColumns } from '../../../src/log/values/value.ts';
import { cellAt } from '../../../src/log/values/vector-builder.ts';
import { readIngest } from '../../../src/planner/formats/ingest-reader.ts';
import { GroupKernels } from '../../../src/planner/operators/group-kernels.ts';
import { RowMask } from '../../../src/planner/kernels/row-mask.ts';
import { passes, Planner } from '../../../src/planner/planner.ts';
import { vectorOf } from '../../../src/planner/writes/rows-read.ts';
import { Service } from '../../../src/service.ts';
import type { DerivedOptions } from '../../../src/store.ts';
import { analyst, TestRandom } from '../../harness.ts';
import { domainQuestions, early, judged, late } from './domain.ts';
import { batches, type History, instantAt, paths, regions } from './history.ts';
import { type Column, columnTypes, PlainAnswer, type Question, questionsOf, sqlOf, type Version } from './questions.ts';

export const modes = [
  'loaded',
  'restored',
  'without kernels',
  'without passes',
  'under a budget',
  'compacted',
  'replayed',
  'from a backup',
  'plain reference',
] as const;
export type Mode = (typeof modes)[number];

export interface Place {
  readonly disk: Disk;
  readonly directory: string;
  readonly history: History;
  /** What a test has smaller than the product. */
  readonly derived?: Partial<DerivedOptions>;
  readonly budgetMb: number;
}

export interface Outcome {
  readonly mode: Mode;
  /** Of each question, by its number: hash of every bit of the answer, and how many rows it has. */
  readonly answers: readonly { readonly hash: string; readonly rows: number }[];
  /** The same of the questions about the graph, by their text; none of them has a plain answer here. */
  readonly graphs: Readonly<Record<string, Outcome['answers'][number]>>;
  readonly digests: Readonly<Record<string, string>>;
  readonly counts: Readonly<Record<string, number>>;
  readonly seconds: number;
}

/** Questions leave access records: the trail of them is no answer to anything. */
const ofQuestions = new Set(['audit']);

export async function runMode(mode: Mode, place: Place): Promise<Outcome> {
  const started = performance.now();
  const now = instantAt(place.history, 1) + 3_600_000_000_000n;
  const clock = new HistoryClock(mode === 'loaded' ? instantAt(place.history, 0) : now);
  const counts: Record<string, number> = {};
  const [filters, groups] = [
    watched(RowMask.prototype, 'select', -1, mode),
    watched(GroupKernels.prototype, 'take', false, mode),
  ];
  if (mode === 'replayed') await removeDerived(place);
  const bounded = mode === 'under a budget' || mode === 'compacted';
  const from = mode === 'from a backup' ? await fromBackup(place, clock) : place;
  const service = await open(from, clock, bounded ? place.budgetMb : 0);
  try {
    const { checkpoints, columns } = service.store;
    assert(checkpoints && columns, 'rows rest on files');
    counts['leavesRestored'] = checkpoints.leaves;
    if (mode === 'loaded') await load(service, clock, place.history);
    clock.wallNs = now;
    // Deciding and reading wait for files that are written beside them: so does what is measured here.
    await columns.whenIdle();
    columns.trim();
    if (mode === 'compacted') counts['compacted'] = (await columns.compact()).segments;
    const asked = questionsOf(place.history, now);
    const answers =
      mode === 'plain reference'
        ? await plainly(service, asked)
        : await byPlanner(service, asked, plannerOf(mode, service, clock));
    const graphs = await byGraph(service, plannerOf(mode, service, clock), graphQuestions(place.history, mode));
    counts['graphQuestions'] = Object.keys(graphs).length;
    assert(
      Object.values(graphs).every(({ rows }) => rows > 0),
      'every question about the graph has an answer',
    );
    const digests = Object.fromEntries(
      Object.entries(service.store.projections.projector.digests()).filter(([name]) => !ofQuestions.has(name)),
    );
    Object.assign(counts, columns.counts, { filters: filters.kept(), groups: groups.kept() });
    if (mode === 'loaded' || mode === 'compacted') assert(await checkpoints.take(), 'a checkpoint is written');
    check(mode, counts, answers);
    return { mode, answers, graphs, digests, counts, seconds: (performance.now() - started) / 1000 };
  } finally {
    filters.end();
    groups.end();
    await service.close();
  }
}

export function differences(first: Outcome, other: Outcome, history: History): string[] {
  const asked = questionsOf(history, instantAt(history, 1) + 3_600_000_000_000n);
  const found = asked.flatMap((question, i) => {
    const [a, b] = [first.answers[i]!, other.answers[i]!];
    return a.hash === b.hash ? [] : [`${other.mode} (${b.rows} rows, ${a.rows} ${first.mode}): ${sqlOf(question)}`];
  });
  for (const [sql, { hash }] of Object.entries(other.graphs)) {
    if (hash !== first.graphs[sql]!.hash) found.push(`${other.mode}: ${sql}`);
  }
  for (const [name, digest] of Object.entries(first.digests)) {
    if (other.digests[name] !== digest) found.push(`${other.mode}: another digest of ${name}`);
  }
  return found;
}

/** What did not happen was not compared. */
function check(mode: Mode, counts: Readonly<Record<string, number>>, answers: Outcome['answers']): void {
  const has = (name: string): void => assert(counts[name]! > 0, `${mode}: no ${name}`);
  const hasNo = (name: string): void => assert(counts[name] === 0, `${mode}: ${counts[name]} ${name}`);
  if (mode === 'loaded' || mode === 'replayed' || mode === 'from a backup') hasNo('leavesRestored');
  else has('leavesRestored');
  for (const name of ['filters', 'groups']) {
    if (mode === 'without kernels' || mode === 'plain reference') hasNo(name);
    else if (mode !== 'without passes') has(name);
  }
  if (mode === 'under a budget' || mode === 'compacted') for (const name of ['evicted', 'hydrated']) has(name);
  if (mode === 'compacted') has('compacted');
  assert(answers.filter(({ rows }) => rows > 0).length > answers.length * 0.8, 'most questions have an answer');
}

function plannerOf(mode: Mode, service: Service, clock: Clock): Planner {
  if (mode !== 'without passes') return service.planner;
  // Conditions stay where they were written, no key or zone is looked up, and everything goes through generated code.
  return new Planner({ clock, passes: passes.slice(0, 1), limits: unlimited });
}

const unlimited = { timeoutMs: 3_600_000, resultRowsMax: 1e9, scannedRowsMax: 1e12, memoryBytesMax: 2 ** 32 };
const at = (path: string): Caller => ({ ...analyst, path, tenant: path.split('/')[0]! });
const invoke = <T>(
  service: Service,
  path: string,
  action: 'query' | 'ingest' | 'delete' | 'schema',
  run: (invocation: Invocation) => Promise<T>,
) => service.gate.invoke(at(path), { action, purpose: null, correlationId: 'equality' }, run);

function byPlanner(service: Service, asked: readonly Question[], planner: Planner): Promise<Outcome['answers']> {
  return answered(
    service,
    planner,
    asked.map((question) => ({ path: question.path, sql: sqlOf(question) })),
  );
}

/** Facts are edges from themselves to their regions. Each is asked twice: the second time of what was kept, and then once more read anew. */
async function byGraph(service: Service, planner: Planner, questions: readonly string[]): Promise<Outcome['graphs']> {
  const asked = questions.map((sql) => ({ path: 'acme', sql }));
  const first = await answered(service, planner, asked);
  const kept = await answered(service, planner, asked);
  assert(JSON.stringify(first) === JSON.stringify(kept), 'a kept graph gives the same answers');
  return Object.fromEntries(questions.map((sql, i) => [sql, first[i]!]));
}

/** Of more rows a pattern is not asked where no pass finds its keys: it is a product of all rows then, and would have no end. */
const productRowsMax = 100_000;

function graphQuestions(history: History, mode: Mode): string[] {
  if (mode === 'plain reference') return [];
  const isProduct = (sql: string): boolean => sql.startsWith('MATCH (');
  const asked = everyGraphQuestion(history);
  return mode === 'without passes' && history.rows > productRowsMax ? asked.filter((sql) => !isProduct(sql)) : asked;
}

function everyGraphQuestion(history: History): string[] {
  const then = `AS OF SYSTEM TIME '${formatInstant(instantAt(history, 0.5))}'`;
  return [
    "GRAPH_PAGERANK('Region', 'Fact', MAX_ITER => 5)",
    "GRAPH_PAGERANK('Fact', WEIGHT => amount, DIRECTION => 'both') WHERE amount > 0 LIMIT 1000",
    `CONNECTED_COMPONENTS('Fact') ${then} LIMIT 1000`,
    `GRAPH_COMMUNITY('Fact') ${then} WHERE qty < 5`,
    "NETWORK_EXPAND('r7', 3) LIMIT 500",
    `PATHS_BETWEEN('k00000001', 'k00000004', 6) ${then} LIMIT 50`,
    `MATCH (a:Region {id: 'r3'})<-[e:Fact]-(b) ${then} RETURN b, e.amount ORDER BY e.amount, b LIMIT 100`,
    ...domainQuestions(then),
  ];
}

async function answered(
  service: Service,
  planner: Planner,
  asked: readonly { readonly path: string; readonly sql: string }[],
): Promise<Outcome['answers']> {
  const answers: { hash: string; rows: number }[] = [];
  for (const { path, sql } of asked) {
    const answer = await invoke(service, path, 'query', (invocation) => planner.query(invocation, { sql }));
    const digest = new AnswerDigest();
    for (const { columns, selection, first, count } of answer.batches) {
      for (let k = 0; k < count; k++) {
        const row = selection === null ? first + k : selection[k]!;
        digest.add(answer.columns.map(({ type }, column) => cellAt(columns[column]!, type, row)));
      }
    }
    answers.push(digest.result());
  }
  return answers;
}

/** One pass over every version that a path may see, for all questions of it. */
async function plainly(service: Service, asked: readonly Question[]): Promise<Outcome['answers']> {
  const names = Object.keys(columnTypes) as Column[];
  const plain = asked.map((question) => ({ question, answer: new PlainAnswer(question) }));
  for (const path of new Set(asked.map((question) => question.path))) {
    const own = plain.filter(({ question }) => question.path === path);
    await invoke(service, path, 'query', async (invocation) => {
      const blocks = invocation.snapshot().rows.scan({ type: 'Fact', columns: names, time: { system: 'all', valid: 'all' } });
      for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
        const { columns, selection, first, count } = step.value;
        for (let k = 0; k < count; k++) {
          const at = selection === null ? first + k : selection[k]!;
          const row = {} as Record<Column, Cell>;
          for (const [i, name] of names.entries()) row[name] = cellAt(columns[i]!, columnTypes[name], at);
          for (const { answer } of own) answer.take(row as Version);
        }
      }
    });
  }
  return plain.map(({ answer }) => {
    const digest = new AnswerDigest();
    for (const row of answer.rows()) digest.add(row);
    return digest.result();
  });
}

class AnswerDigest {
  readonly #hash = createHash('sha256');
  #rows = 0;

  add(cells: readonly Cell[]): void {
    this.#rows++;
    this.#hash.update(`${cells.map(exact).join(',')}\n`);
  }

  result(): { hash: string; rows: number } {
    return { hash: this.#hash.digest('hex'), rows: this.#rows };
  }
}

const double = Buffer.alloc(8);

function exact(cell: Cell): string {
  if (typeof cell === 'number') {
    double.writeDoubleBE(cell);
    return `f${double.toString('hex')}`;
  }
  return typeof cell === 'bigint' ? `i${cell}` : JSON.stringify(cell);
}

async function load(service: Service, clock: HistoryClock, history: History): Promise<void> {
  const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 };
  const properties = Object.fromEntries(
    Object.entries(columnTypes).flatMap(([name, type]) =>
      Object.hasOwn(systemColumns, name) ? [] : [[name, { ...plain, type }]],
    ),
  );
  const declared = { ...properties, id: { ...plain, type: 'string' as const } };
  // Without a tenant: all organisations of the history mean this type.
  const everybody: Caller = { ...analyst, path: null, tenant: null };
  await service.gate.invoke(everybody, { action: 'schema', purpose: null, correlationId: 'equality' }, (invocation) =>
    invocation.submit({
      kind: 'migrate-types',
      steps: [
        {
          kind: 'register-type',
          name: 'Fact',
          properties: declared,
          primaryKey: 'id',
          graphTriggers: [],
          meaning: { edge: { from: 'id', to: 'region' } },
        },
        { kind: 'register-type', name: 'Region', properties: { id: declared.id }, primaryKey: 'id', graphTriggers: [] },
      ],
    }),
  );
  const provenance = { source: 'equality', method: 'put', confidence: 1, derivedFrom: null };
  const names = Array.from({ length: regions }, (_, i) => `r${i}`);
  const regionRows = { length: regions, columns: [{ name: 'id', type: 'string', vector: vectorOf(names, 'string') } as const] };
  for (const path of paths) {
    await invoke(service, path, 'ingest', (invocation) =>
      invocation.submit({ kind: 'put-rows', type: 'Region', rows: regionRows, atomic: true, createType: false, provenance }),
    );
  }
  await loadDomain(service, early);
  for (const { path, instant, lines, deleted } of batches(history)) {
    clock.wallNs = instant;
    await invoke(service, path, 'ingest', async (invocation) => {
      const definition = invocation.snapshot().catalog.type('Fact') ?? null;
      const body = async function* (): AsyncGenerator<Uint8Array> {
        yield Buffer.from(lines.join(''));
      };
      for await (const { rows, rejections } of readIngest(body(), { definition, batchRows: 1e6, batchBytes: 1e9 })) {
        assert(rejections.length === 0, JSON.stringify(rejections.slice(0, 3)));
        await invocation.submit({ kind: 'put-rows', type: 'Fact', rows, atomic: true, createType: false, provenance });
      }
    });
    if (deleted.length > 0)
      await invoke(service, path, 'delete', (invocation) =>
        invocation.submit({ kind: 'delete-rows', type: 'Fact', keys: deleted }),
      );
  }
  await loadDomain(service, late);
  for (const sql of judged)
    await invoke(service, 'acme', 'query', (invocation) => service.planner.query(invocation, { sql: `SELECT * FROM ${sql}` }));
}

async function loadDomain(service: Service, world: typeof early): Promise<void> {
  const provenance = { source: 'equality', method: 'put', confidence: 1, derivedFrom: null };
  for (const { type, columns, cells } of world) {
    const vectors = Object.entries(columns).map(([name, of], i) => ({
      name,
      type: of,
      vector: vectorOf(
        cells.map((row) => (of === 'integer' ? BigInt(row[i]!) : row[i]!)),
        of,
      ),
    }));
    const rows = { length: cells.length, columns: vectors };
    await invoke(service, 'acme', 'ingest', (invocation) =>
      invocation.submit({ kind: 'put-rows', type, rows, atomic: true, createType: true, provenance }),
    );
  }
}

/** Where a store lies that a backup was restored to. */
async function fromBackup(place: Place, clock: Clock): Promise<Place> {
  const directory = `${place.directory}-restored`;
  const service = await open(place, clock, 0);
  try {
    const { backup } = await service.upkeep.backups.create();
    const { root_match, projections } = await service.upkeep.backups.restore(backup, directory);
    assert(root_match && projections.every(({ match }) => match), 'a restore gives the store that was backed up');
  } finally {
    await service.close();
  }
  return { ...place, directory };
}

function open({ disk, directory, derived }: Place, clock: Clock, budgetMb: number): Promise<Service> {
  const env = {
    SERVICE_DATA_DIR: directory,
    SERVICE_KEK: '07'.repeat(32),
    SERVICE_WAL_SYNC: 'interval',
    SERVICE_QUERY_QUOTA: '1000000000000',
    SERVICE_MAX_SCANNED_ROWS: String(unlimited.scannedRowsMax),
    SERVICE_MAX_RESULT_ROWS: String(unlimited.resultRowsMax),
    SERVICE_QUERY_TIMEOUT_SECS: '3600',
    SERVICE_QUERY_MEMORY_MB: '4096',
    ...(budgetMb > 0 && { SERVICE_MEMORY_BUDGET_MB: String(budgetMb) }),
  };
  return Service.open({
    settings: loadSettings({ env, workingDirectory: '/nowhere', homeDirectory: '/nowhere' }),
    disk,
    clock,
    random: new TestRandom(),
    version: 'equality',
    say: () => undefined,
    sealIdleMs: 0,
    derived: {
      machineBytes: 2 ** 40,
      ...derived,
      // Without a bound: everything stays.
      ...(budgetMb === 0 && { budgetBytes: 2 ** 40 }),
    },
  });
}

async function removeDerived({ disk, directory }: Place): Promise<void> {
  const derived = join(directory, 'projections');
  for (const name of await disk.list(derived)) await disk.unlink(join(derived, name));
}

/** Instants are those of the history; durations pass as they do. */
class HistoryClock implements Clock {
  wallNs: bigint;

  constructor(wallNs: bigint) {
    this.wallNs = wallNs;
  }

  now = (): bigint => this.wallNs;
  // A question about a graph that takes longer than a moment is on record as a job: none does, however slow the machine is.
  monotonicMs = (): number => systemClock.monotonicMs() / 1_000_000;
  sleep = (ms: number, signal?: AbortSignal): Promise<void> => systemClock.sleep(ms, signal);
}

/** Counts the blocks that a kernel took; without kernels it takes none. `left` says that it leaves a block to others. */
function watched<K extends string>(prototype: Record<K, (...args: never[]) => unknown>, name: K, left: unknown, mode: Mode) {
  const original = prototype[name];
  let kept = 0;
  prototype[name] = function (this: unknown, ...args: never[]) {
    if (mode === 'without kernels') return left;
    const result = original.apply(this, args);
    if (result !== left) kept++;
    return result;
  };
  return {
    kept: () => kept,
    end: () => {
      prototype[name] = original;
    },
  };
}
