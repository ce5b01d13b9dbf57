/**
 * Jobs by id, with what became of their runs, and for each group of rules the instant up to which changes were judged. A job belongs to
 * the organisation path of whoever made it. One whose definition names an erased subject is gone with it, and so is long work whose
 * statement does. Of a workflow's run that was asked for once, the newest are kept.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { type CommittedEntry, isOpen } from '../../log/entries/entry.ts';
import { compareText } from '../../log/values/value.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';
import { type OpenText, textOpener } from '../sealed-definitions.ts';
import { decodeJob, decodeRun } from './codec.ts';
import { type JobRecord, nameKey, type RecordedStep, type RunRecord, type WorkRecord } from './job.ts';

interface Saved {
  readonly jobs: readonly JobRecord[];
  readonly steps: readonly (readonly [string, ReadonlyMap<string, RecordedStep>])[];
  readonly judged: readonly (readonly [string, bigint])[];
  readonly works: readonly WorkRecord[];
  readonly epoch: number;
}

/** Runs that were asked for once and have ended: with more of them the oldest goes. */
const onceEndedMax = 10_000;
/** Work that was asked for once: with more of it the oldest goes. */
const worksMax = 2_000;

export class Jobs implements Projection {
  readonly name = 'jobs';
  readonly formatVersion = 4;
  #jobs = new Map<string, JobRecord>();
  /** Jobs that have not ended, by path: their ids by name. */
  #names = new Map<string | null, Map<string, string>>();
  /** By job: the steps of its last run, by path. They grow in place, since a run may have tens of thousands. */
  #steps = new Map<string, Map<string, RecordedStep>>();
  #onceEnded = 0;
  #judged = new Map<string, bigint>();
  /** By run, in the order in which they were asked for. */
  #works = new Map<string, WorkRecord>();
  #epoch = -1;
  readonly #open: OpenText;

  constructor(open: OpenText = textOpener(undefined)) {
    this.#open = open;
  }

  /** Rises with every change of a job. */
  get epoch(): number {
    return this.#epoch;
  }

  job(id: string): JobRecord | undefined {
    return this.#jobs.get(id);
  }

  /** Steps of the job's last run, by path, in the order in which they were begun. */
  steps(id: string): ReadonlyMap<string, RecordedStep> {
    return this.#steps.get(id) ?? noSteps;
  }

  /** Ids of the jobs of a path that have not ended, by `nameKey`. */
  namesOf(path: string | null): ReadonlyMap<string, string> {
    return this.#names.get(path) ?? none;
  }

  /** In the order in which they were made, ended ones included. */
  all(): Iterable<JobRecord> {
    return this.#jobs.values();
  }

  /** Long work that was asked for once, in that order. */
  works(): Iterable<WorkRecord> {
    return this.#works.values();
  }

  /** Nanoseconds: changes up to there were judged by the rules of the group; undefined before its first alert. */
  judgedUpTo(group: string): bigint | undefined {
    return this.#judged.get(group);
  }

  apply(entry: CommittedEntry): void {
    const { body, position } = entry;
    if (isOpen(body)) {
      if (body.kind === 'job') this.#applyJob(entry);
      else if (body.kind === 'run') {
        const run = decodeRun(body, this.#open);
        if (run !== null) this.#applyRun(run, entry);
      }
    } else if (body.kind === 'erasure') {
      const mentions = new Set(body.mentions);
      if (mentions.size === 0) return;
      for (const job of this.#jobs.values()) {
        if (!mentions.has(job.position)) continue;
        this.#forget(job);
        this.#epoch = position;
      }
      for (const work of this.#works.values()) if (mentions.has(work.position)) this.#works.delete(work.run.id);
    }
  }

  #applyJob(entry: CommittedEntry): void {
    const { body, context, position, time } = entry;
    const change = isOpen(body) ? decodeJob(body, this.#open) : null;
    if (change === null) return;
    this.#epoch = position;
    if (change.change === 'made') {
      const { id, definition, owner } = change;
      this.#set({
        id,
        definition,
        owner: { principal: context.principal, credential: owner.credential, token: owner.token },
        path: context.path,
        branch: context.branch,
        state: 'scheduled',
        reason: null,
        position,
        made: time,
        lastDue: time,
        runCount: 0,
        totalAlerts: 0,
        lastError: null,
        open: null,
        last: null,
      });
      return;
    }
    const before = this.#jobs.get(change.id);
    if (before === undefined) return;
    const state = change.change === 'resumed' ? 'scheduled' : change.change;
    // Runs that were due while it was paused are not made up for.
    const lastDue = change.change === 'resumed' ? time : before.lastDue;
    if (state === 'ended') this.#unname(before);
    this.#jobs.set(change.id, { ...before, state, reason: change.reason, lastDue });
    if (state === 'ended') this.#countEnded(before);
  }

  #set(job: JobRecord): void {
    this.#jobs.set(job.id, job);
    if (job.state === 'ended') return;
    const names = this.#names.get(job.path) ?? new Map<string, string>();
    this.#names.set(job.path, names.set(nameKey(job.id, job.definition), job.id));
  }

  #unname({ id, path, definition }: JobRecord): void {
    const names = this.#names.get(path);
    const key = nameKey(id, definition);
    if (names?.get(key) === id) names.delete(key);
  }

  #forget(job: JobRecord): void {
    this.#jobs.delete(job.id);
    this.#steps.delete(job.id);
    this.#unname(job);
    if (hasEndedOnce(job)) this.#onceEnded--;
  }

  /** It has ended just now. */
  #countEnded({ definition }: JobRecord): void {
    if (definition.once !== true || ++this.#onceEnded <= onceEndedMax) return;
    for (const job of this.#jobs.values()) if (hasEndedOnce(job)) return this.#forget(job);
  }

  #applyRun({ step, ...run }: RunRecord, { position, time, context }: CommittedEntry): void {
    const { work } = run;
    if (work !== undefined) {
      const first = this.#works.get(run.id);
      // Its beginning named a subject that was erased: nothing is left of it.
      if (first === undefined && work.finished !== null) return;
      this.#works.set(run.id, { run: { ...run, work }, path: context.path, position: first?.position ?? position });
      if (this.#works.size > worksMax) this.#works.delete(this.#works.keys().next().value!);
      return;
    }
    const { job: id, group, due, basis, state, alerts, reason } = run;
    if (group !== null) this.#judged.set(group, BigInt(basis));
    const job = id === null ? undefined : this.#jobs.get(id);
    if (job === undefined) return;
    this.#epoch = position;
    const isOver = state !== 'running' && state !== 'queued';
    const lastDue = BigInt(due) > job.lastDue ? BigInt(due) : job.lastDue;
    if (job.last?.id !== run.id) this.#steps.delete(job.id);
    if (step !== undefined) {
      const steps = this.#steps.get(job.id) ?? new Map<string, RecordedStep>();
      this.#steps.set(job.id, steps.set(step.path, { ...step, at: time }));
    }
    const ends = isOver && job.definition.once === true && job.state !== 'ended';
    this.#jobs.set(job.id, {
      ...job,
      ...(ends && { state: 'ended' }),
      lastDue,
      open: isOver ? null : run,
      last: run,
      runCount: job.runCount + (isOver ? 1 : 0),
      totalAlerts: job.totalAlerts + (isOver ? alerts : 0),
      lastError: isOver ? reason : job.lastError,
    });
    if (!ends) return;
    this.#unname(job);
    this.#countEnded(job);
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    const saved: Saved = {
      jobs: [...this.#jobs.values()],
      steps: [...this.#steps],
      judged: [...this.#judged],
      works: [...this.#works.values()],
      epoch: this.#epoch,
    };
    target.section('jobs', serialize(saved));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('jobs');
    assert(bytes, 'a checkpoint of jobs has them');
    const { jobs, steps, judged, works, epoch } = deserialize(bytes) as Saved;
    this.reset();
    for (const job of jobs) {
      this.#set(job);
      if (hasEndedOnce(job)) this.#onceEnded++;
    }
    this.#steps = new Map(steps.map(([id, each]) => [id, new Map(each)]));
    this.#judged = new Map(judged);
    this.#works = new Map(works.map((each) => [each.run.id, each]));
    this.#epoch = epoch;
  }

  reset(): void {
    this.#jobs = new Map();
    this.#names = new Map();
    this.#steps = new Map();
    this.#onceEnded = 0;
    this.#judged = new Map();
    this.#works = new Map();
    this.#epoch = -1;
  }

  digest(): string {
    const hash = new CanonicalHash();
    hash.value([...this.#jobs.values()]);
    hash.value(
      [...this.#steps].map(([id, steps]) => [id, [...steps.values()]]).sort(([a], [b]) => compareText(a as string, b as string)),
    );
    hash.value([...this.#works.values()]);
    hash.value([...this.#judged].sort(([a], [b]) => compareText(a, b)));
    return hash.hex();
  }
}

const hasEndedOnce = ({ definition, state }: JobRecord): boolean => definition.once === true && state === 'ended';

const none: ReadonlyMap<string, string> = new Map();
const noSteps: ReadonlyMap<string, RecordedStep> = new Map();
