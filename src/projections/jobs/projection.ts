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

interface SavedJobs {
  readonly jobs: readonly JobRecord[];
  readonly steps: readonly (readonly [string, ReadonlyMap<string, RecordedStep>])[];
  readonly judged: readonly (readonly [string, bigint])[];
  readonly works: readonly WorkRecord[];
  readonly epoch: number;
}

/** Runs that were asked for once and have ended: with more of them the oldest goes. */
const onceEndedJobsMax = 10_000;
/** Work that was asked for once: with more of it the oldest goes. */
const worksMax = 2_000;

export class Jobs implements Projection {
  readonly name = 'jobs';
  readonly formatVersion = 4;
  #jobsById = new Map<string, JobRecord>();
  /** Jobs that have not ended, by path: their ids by name. */
  #jobNamesByPath = new Map<string | null, Map<string, string>>();
  /** By job: the steps of its last run, by path. They grow in place, since a run may have tens of thousands. */
  #stepsByJob = new Map<string, Map<string, RecordedStep>>();
  #onceEndedCount = 0;
  #judgedUpToByGroup = new Map<string, bigint>();
  /** By run, in the order in which they were asked for. */
  #worksByRun = new Map<string, WorkRecord>();
  #jobsEpoch = -1;
  readonly #openJobText: OpenText;

  constructor(openJobText: OpenText = textOpener(undefined)) {
    this.#openJobText = openJobText;
  }

  /** Rises with every change of a job. */
  get epoch(): number {
    return this.#jobsEpoch;
  }

  job(jobId: string): JobRecord | undefined {
    return this.#jobsById.get(jobId);
  }

  /** Steps of the job's last run, by path, in the order in which they were begun. */
  steps(jobId: string): ReadonlyMap<string, RecordedStep> {
    return this.#stepsByJob.get(jobId) ?? noRecordedSteps;
  }

  /** Ids of the jobs of a path that have not ended, by `nameKey`. */
  namesOf(path: string | null): ReadonlyMap<string, string> {
    return this.#jobNamesByPath.get(path) ?? noJobNames;
  }

  /** In the order in which they were made, ended ones included. */
  all(): Iterable<JobRecord> {
    return this.#jobsById.values();
  }

  /** Long work that was asked for once, in that order. */
  works(): Iterable<WorkRecord> {
    return this.#worksByRun.values();
  }

  /** Nanoseconds: changes up to there were judged by the rules of the group; undefined before its first alert. */
  judgedUpTo(group: string): bigint | undefined {
    return this.#judgedUpToByGroup.get(group);
  }

  apply(jobEntry: CommittedEntry): void {
    const { body, position } = jobEntry;
    if (isOpen(body)) {
      if (body.kind === 'job') this.#applyJob(jobEntry);
      else if (body.kind === 'run') {
        const decodedRun = decodeRun(body, this.#openJobText);
        if (decodedRun !== null) this.#applyJobRun(decodedRun, jobEntry);
      }
    } else if (body.kind === 'erasure') {
      const mentionedPositions = new Set(body.mentions);
      if (mentionedPositions.size === 0) return;
      for (const job of this.#jobsById.values()) {
        if (!mentionedPositions.has(job.position)) continue;
        this.#forgetJob(job);
        this.#jobsEpoch = position;
      }
      for (const work of this.#worksByRun.values())
        if (mentionedPositions.has(work.position)) this.#worksByRun.delete(work.run.id);
    }
  }

  #applyJob(jobEntry: CommittedEntry): void {
    const { body, context, position, time } = jobEntry;
    const jobChange = isOpen(body) ? decodeJob(body, this.#openJobText) : null;
    if (jobChange === null) return;
    this.#jobsEpoch = position;
    if (jobChange.change === 'made') {
      const { id, definition, owner } = jobChange;
      this.#setJob({
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
    const jobBefore = this.#jobsById.get(jobChange.id);
    if (jobBefore === undefined) return;
    const jobState = jobChange.change === 'resumed' ? 'scheduled' : jobChange.change;
    // Runs that were due while it was paused are not made up for.
    const lastDue = jobChange.change === 'resumed' ? time : jobBefore.lastDue;
    if (jobState === 'ended') this.#removeJobName(jobBefore);
    this.#jobsById.set(jobChange.id, { ...jobBefore, state: jobState, reason: jobChange.reason, lastDue });
    if (jobState === 'ended') this.#countEndedOnceJob(jobBefore);
  }

  #setJob(job: JobRecord): void {
    this.#jobsById.set(job.id, job);
    if (job.state === 'ended') return;
    const jobNames = this.#jobNamesByPath.get(job.path) ?? new Map<string, string>();
    this.#jobNamesByPath.set(job.path, jobNames.set(nameKey(job.id, job.definition), job.id));
  }

  #removeJobName({ id: jobId, path, definition }: JobRecord): void {
    const jobNames = this.#jobNamesByPath.get(path);
    const jobNameKey = nameKey(jobId, definition);
    if (jobNames?.get(jobNameKey) === jobId) jobNames.delete(jobNameKey);
  }

  #forgetJob(forgottenJob: JobRecord): void {
    this.#jobsById.delete(forgottenJob.id);
    this.#stepsByJob.delete(forgottenJob.id);
    this.#removeJobName(forgottenJob);
    if (hasEndedOnce(forgottenJob)) this.#onceEndedCount--;
  }

  /** It has ended just now. */
  #countEndedOnceJob({ definition }: JobRecord): void {
    if (definition.once !== true || ++this.#onceEndedCount <= onceEndedJobsMax) return;
    for (const job of this.#jobsById.values()) if (hasEndedOnce(job)) return this.#forgetJob(job);
  }

  #applyJobRun({ step, ...run }: RunRecord, { position, time, context }: CommittedEntry): void {
    const { work: runWork } = run;
    if (runWork !== undefined) {
      const firstWork = this.#worksByRun.get(run.id);
      // Its beginning named a subject that was erased: nothing is left of it.
      if (firstWork === undefined && runWork.finished !== null) return;
      this.#worksByRun.set(run.id, {
        run: { ...run, work: runWork },
        path: context.path,
        position: firstWork?.position ?? position,
      });
      if (this.#worksByRun.size > worksMax) this.#worksByRun.delete(this.#worksByRun.keys().next().value!);
      return;
    }
    const { job: jobId, group: judgedGroup, due, basis, state, alerts, reason } = run;
    if (judgedGroup !== null) this.#judgedUpToByGroup.set(judgedGroup, BigInt(basis));
    const jobOfRun = jobId === null ? undefined : this.#jobsById.get(jobId);
    if (jobOfRun === undefined) return;
    this.#jobsEpoch = position;
    const isRunOver = state !== 'running' && state !== 'queued';
    const lastDue = BigInt(due) > jobOfRun.lastDue ? BigInt(due) : jobOfRun.lastDue;
    if (jobOfRun.last?.id !== run.id) this.#stepsByJob.delete(jobOfRun.id);
    if (step !== undefined) {
      const recordedSteps = this.#stepsByJob.get(jobOfRun.id) ?? new Map<string, RecordedStep>();
      this.#stepsByJob.set(jobOfRun.id, recordedSteps.set(step.path, { ...step, at: time }));
    }
    const endsOnceJob = isRunOver && jobOfRun.definition.once === true && jobOfRun.state !== 'ended';
    this.#jobsById.set(jobOfRun.id, {
      ...jobOfRun,
      ...(endsOnceJob && { state: 'ended' }),
      lastDue,
      open: isRunOver ? null : run,
      last: run,
      runCount: jobOfRun.runCount + (isRunOver ? 1 : 0),
      totalAlerts: jobOfRun.totalAlerts + (isRunOver ? alerts : 0),
      lastError: isRunOver ? reason : jobOfRun.lastError,
    });
    if (!endsOnceJob) return;
    this.#removeJobName(jobOfRun);
    this.#countEndedOnceJob(jobOfRun);
  }

  async checkpoint(jobCheckpoint: CheckpointWriter): Promise<void> {
    const savedJobs: SavedJobs = {
      jobs: [...this.#jobsById.values()],
      steps: [...this.#stepsByJob],
      judged: [...this.#judgedUpToByGroup],
      works: [...this.#worksByRun.values()],
      epoch: this.#jobsEpoch,
    };
    jobCheckpoint.section('jobs', serialize(savedJobs));
  }

  async restore(jobCheckpoint: CheckpointReader): Promise<void> {
    const jobBytes = jobCheckpoint.section('jobs');
    assert(jobBytes, 'a checkpoint of jobs has them');
    const { jobs, steps, judged: judgedGroups, works, epoch } = deserialize(jobBytes) as SavedJobs;
    this.reset();
    for (const job of jobs) {
      this.#setJob(job);
      if (hasEndedOnce(job)) this.#onceEndedCount++;
    }
    this.#stepsByJob = new Map(steps.map(([id, savedJobPart]) => [id, new Map(savedJobPart)]));
    this.#judgedUpToByGroup = new Map(judgedGroups);
    this.#worksByRun = new Map(works.map((savedJobPart) => [savedJobPart.run.id, savedJobPart]));
    this.#jobsEpoch = epoch;
  }

  reset(): void {
    this.#jobsById = new Map();
    this.#jobNamesByPath = new Map();
    this.#stepsByJob = new Map();
    this.#onceEndedCount = 0;
    this.#judgedUpToByGroup = new Map();
    this.#worksByRun = new Map();
    this.#jobsEpoch = -1;
  }

  digest(): string {
    const jobsHash = new CanonicalHash();
    jobsHash.value([...this.#jobsById.values()]);
    jobsHash.value(
      [...this.#stepsByJob]
        .map(([id, recordedSteps]) => [id, [...recordedSteps.values()]])
        .sort(([a], [b]) => compareText(a as string, b as string)),
    );
    jobsHash.value([...this.#worksByRun.values()]);
    jobsHash.value([...this.#judgedUpToByGroup].sort(([a], [b]) => compareText(a, b)));
    return jobsHash.hex();
  }
}

const hasEndedOnce = ({ definition, state }: JobRecord): boolean => definition.once === true && state === 'ended';

const noJobNames: ReadonlyMap<string, string> = new Map();
const noRecordedSteps: ReadonlyMap<string, RecordedStep> = new Map();
