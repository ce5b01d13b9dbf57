/**
 * Rules and jobs on a disk that stops at every call. A life puts rows, late and corrected ones too, changes rules, forks a branch, lets jobs
 * run and cancels them. The store that is opened on what a crash left judges the rest. What must hold then: there are exactly the alerts
 * that all rules make of all rows, each once, and of every job the last run has ended or waits.
 */
import { tenantlessCaller } from '../../src/governance/caller.ts';
import type { Invocation } from '../../src/governance/gate-contract.ts';
import type { Command } from '../../src/projections/command.ts';
import type { JobDefinition } from '../../src/projections/jobs/job.ts';
import type { DetectionDefinition } from '../../src/projections/rules/rule.ts';
import { rowsOf } from '../../src/doors/verbs/verb-rows.ts';
import type { Service } from '../../src/service.ts';
import { TestClock } from '../harness.ts';
import { crashImage, sameImage, type Survivors } from './crash-image.ts';
import { type DiskState, FaultyDisk, type Image } from './faulty-disk.ts';
import { Seeded } from './seeded.ts';
import { fork, openStored, put, register } from './stored-life.ts';

export interface JobsFailure {
  readonly seed: number;
  readonly path: string;
  readonly what: string;
}

const operations = 40;
const owner = tenantlessCaller('annals', 'operator', 'internal');
const secondNs = 1_000_000_000n;
const options = { derived: false };
/** Rules by their names: the limit above which `n` matches, in the version that a change makes. */
const limitOf = (rule: number, version: number): number => rule * 7 + version;

export class JobsSimulation {
  readonly failures: JobsFailure[] = [];
  readonly marks = { alerts: 0, counted: 0, runs: 0, cancelled: 0, changed: 0, late: 0 };
  states = 0;
  readonly #statesMax: number;
  /** Replaces what is looked at, for a canary. */
  readonly #open: typeof openStored;

  constructor(statesMax: number, open: typeof openStored = openStored) {
    this.#statesMax = statesMax;
    this.#open = open;
  }

  get enough(): boolean {
    return this.states >= this.#statesMax || this.failures.length > 0;
  }

  async run(seed: number, statesOfSeed = Number.POSITIVE_INFINITY): Promise<void> {
    const { points, end } = await this.#live(seed);
    const random = new Seeded(seed + 11);
    const until = this.states + statesOfSeed;
    const seen: Image[] = [];
    const inAnyOrder = [...points.entries()].map((point) => [random.bits(), point] as const).toSorted(([a], [b]) => a - b);
    for (const [, [i, disk]] of inAnyOrder) {
      for (const [name, survivors] of [
        ['none', 'none'],
        ['some', random],
      ] as [string, Survivors][]) {
        if (this.enough || this.states >= until) return;
        const image = crashImage(disk, survivors);
        if (seen.some((other) => sameImage(other, image))) continue;
        seen.push(image);
        this.states++;
        await this.#check(seed, `crash.${i}.${name}`, image, end);
      }
    }
  }

  async #check(seed: number, path: string, image: Image, instant: bigint): Promise<void> {
    const clock = new JudgingClock('2024-01-01');
    clock.wallNs = instant;
    const service = await this.#open(new FaultyDisk({}, image), seed, () => undefined, options, clock);
    try {
      await settle(service);
      const wrong = await differenceOf(service, this.marks);
      if (wrong !== null) this.failures.push({ seed, path, what: wrong });
    } finally {
      await service.close();
    }
  }

  async #live(seed: number): Promise<{ points: readonly DiskState[]; end: bigint }> {
    const random = new Seeded(seed);
    const clock = new JudgingClock('2024-01-01');
    const points: DiskState[] = [];
    let version = -1;
    let isMade = false;
    const disk: FaultyDisk = new FaultyDisk({
      beforeStep: () => {
        if (isMade && disk.version !== version) {
          version = disk.version;
          points.push(disk.state());
        }
        return undefined;
      },
    });
    const service = await openStored(disk, seed * 2 + 1, () => undefined, options, clock);
    await register(service, 'Login', { who: 'string', n: 'integer' });
    await register(service, 'Calm', { n: 'integer' });
    isMade = true;
    const rules: { id: string; version: number }[] = [];
    const jobs: string[] = [];
    let isForked = false;
    for (let i = 0; i < operations; i++) {
      clock.wallNs += BigInt(1 + random.below(1_200)) * secondNs;
      const action = random.below(16);
      if (action < 8)
        await put(service, 'Login', loginsOf(random, clock.wallNs, this.marks), isForked && random.chance(0.2) ? 'b' : 'main');
      else if (action < 10 && rules.length < 4) {
        const id = service.ids.next();
        await submit(service, { kind: 'put-rule', id, definition: ruleOf(rules.length, 1), author });
        rules.push({ id, version: 1 });
      } else if (action === 10 && rules.length > 0) {
        const at = random.below(rules.length);
        const rule = rules[at]!;
        await submit(service, { kind: 'put-rule', id: 'x', changes: rule.id, definition: ruleOf(at, ++rule.version), author });
        this.marks.changed++;
      } else if (action === 11 && jobs.length < 3) {
        const id = service.ids.next();
        await submit(service, { kind: 'put-job', id, definition: jobOf(jobs.length, await groupRule(service)), owner: author });
        jobs.push(id);
      } else if (action === 12 && jobs.length > 0) {
        const change = random.pick(['paused', 'resumed', 'resumed'] as const);
        await submit(service, { kind: 'change-job', id: random.pick(jobs), change, reason: null });
        this.marks.cancelled++;
      } else if (action === 13 && !isForked) {
        isForked = true;
        await fork(service, 'b');
      } else if (action === 14) await service.automation.rules.settle();
      else await settle(service);
    }
    await settle(service);
    await service.close();
    return { points, end: clock.wallNs + 7_200n * secondNs };
  }
}

/** Judging rests between rounds for some milliseconds; these pass, and whatever waits longer waits for the end. */
class JudgingClock extends TestClock {
  override sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
    if (ms < 500) return new Promise((resolve) => setImmediate(resolve));
    await new Promise<void>((resolve) => {
      if (signal?.aborted) resolve();
      else signal?.addEventListener('abort', () => resolve(), { once: true });
    });
  };
}

const author = { credential: 'operator', token: null } as const;

async function settle(service: Service): Promise<void> {
  await service.automation.rules.settle();
  await service.automation.scheduler.settle();
}

function submit(service: Service, command: Command): Promise<unknown> {
  const request = { action: 'administer', purpose: 'test', correlationId: 'simulation' } as const;
  return service.gate.invoke(owner, request, (invocation) => invocation.submit(command));
}

function loginsOf(random: Seeded, now: bigint, marks: { late: number }): object[] {
  const rows = new Map<string, object>();
  for (let left = 1 + random.below(4); left > 0; left--) {
    const k = `k${random.below(12)}`;
    const isLate = random.chance(0.2);
    if (isLate) marks.late++;
    const late = { valid_from: now - BigInt(random.below(9_000)) * secondNs };
    rows.set(k, { k, who: random.pick(['ann', 'bob']), n: random.below(30), ...(isLate && late) });
  }
  return [...rows.values()];
}

/** The first two name each match, the others count those of a person. */
function ruleOf(rule: number, version: number): DetectionDefinition {
  return {
    kind: 'detection',
    name: `rule ${rule}`,
    language: 'sql',
    condition: `n > ${limitOf(rule, version)}`,
    object_type: 'Login',
    severity: 'low',
    enabled: true,
    dedupe_by: rule < 2 ? [] : ['who'],
    window_secs: 31_536_000,
    interval_secs: 31_536_000,
    purpose: 'test',
  };
}

/** A rule that no single row decides, which jobs judge. */
async function groupRule(service: Service): Promise<string> {
  const condition = 'SELECT who, COUNT(*) AS logins FROM Login GROUP BY who HAVING COUNT(*) > 1';
  const definition: DetectionDefinition = { ...ruleOf(0, 1), name: 'group', condition, object_type: null };
  const known = [...service.store.projections.rules.rulesOn(0)].find((each) => each.definition.name === 'group');
  if (known !== undefined) return known.id;
  const id = service.ids.next();
  await submit(service, { kind: 'put-rule', id, definition, author });
  return id;
}

function jobOf(job: number, rule: string): JobDefinition {
  return {
    name: `job ${job}`,
    run: job === 0 ? { sql: 'SELECT COUNT(*) FROM Login' } : { rules: [rule] },
    interval_secs: job === 1 ? null : 3_600,
    cron: job === 1 ? '*/30 * * * *' : null,
    time_zone: job === 1 ? 'Europe/Berlin' : null,
    at: null,
    after: null,
    catch_up: 'one',
    run_now: true,
    timeout_secs: 3_600,
    purpose: 'test',
  };
}

interface AlertRow {
  readonly rule_id: string;
  readonly rule_version: bigint;
  readonly matched_pk: string | null;
  readonly matched_system_from: bigint | null;
  readonly count: bigint;
}

/** Null: the alerts are those of all rules over all rows. */
async function differenceOf(service: Service, marks: JobsSimulation['marks']): Promise<string | null> {
  const { rules, jobs } = service.store.projections;
  const alerts = (await ask(service, 'SELECT * FROM Alert AS OF CURRENT')) as unknown as readonly AlertRow[];
  const logins = await ask(service, 'SELECT _pk, who, n, system_from FROM Login');
  const raised = new Map<string, bigint>();
  for (const { rule_id: rule, rule_version: version, matched_pk: key, matched_system_from: from, count } of alerts) {
    const name = rules.rulesOn(0).find(({ id }) => id === rule)?.definition.name;
    if (name === 'group') continue;
    const isCounted = name === 'rule 2' || name === 'rule 3';
    const who = isCounted ? logins.find(({ _pk, system_from: at }) => _pk === key && at === from)?.['who'] : `${key} ${from}`;
    const id = `${name} ${version} ${String(who)}`;
    if (raised.has(id)) return `${id} was raised twice`;
    raised.set(id, count);
    marks.alerts++;
    if (count > 1n) marks.counted++;
  }
  const expected = new Map<string, bigint>();
  for (const { id, definition } of rules.rulesOn(0)) {
    if (definition.name === 'group') continue;
    const at = Number(definition.name.at(-1));
    const versions = rules.versions(0, id);
    for (const { _pk: key, who, n, system_from: from } of logins) {
      const version = versions.findLast(({ time }) => time < (from as bigint));
      if (version === undefined || n === null || Number(n) <= limitOf(at, version.version)) continue;
      const named = `${definition.name} ${version.version} ${at < 2 ? `${String(key)} ${String(from)}` : String(who)}`;
      expected.set(named, at < 2 ? 1n : (expected.get(named) ?? 0n) + 1n);
    }
  }
  for (const [id, count] of expected)
    if (raised.get(id) !== count) return `${id}: ${count} expected, ${String(raised.get(id))} raised`;
  for (const id of raised.keys()) if (!expected.has(id)) return `${id} was raised for nothing`;
  let told = 0;
  for (const job of jobs.all()) {
    if (job.open !== null && job.open.state !== 'queued') return `a run of ${job.definition.name} is ${job.open.state}`;
    told += job.totalAlerts;
    marks.runs += job.runCount;
  }
  // A run is on record with its alerts, and they with it.
  const grouped = alerts.length - raised.size;
  return told === grouped ? null : `${grouped} alerts of runs that say ${told}`;
}

function ask(service: Service, sql: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const request = { action: 'query', purpose: 'test', correlationId: 'simulation' } as const;
  return service.gate.invoke(owner, request, async (invocation: Invocation) =>
    rowsOf(await service.planner.query(invocation, { sql })),
  );
}
