/** Definitions of jobs, and their runs. Pure vocabulary: every room may name it. */
import type { Json } from '../../log/values/canonical-json.ts';
import type { RuleAuthor } from '../rules/rule.ts';

/** The work of a run: one of its members is there, `arguments` beside it. */
export interface JobTask {
  readonly sql?: string;
  /** Ids of rules that are judged at intervals. */
  readonly rules?: readonly string[];
  readonly function?: string;
  /** Name of a workflow that is looked up when a run begins. */
  readonly workflow?: string;
  /** The steps of a workflow: a definition that others run, and that never runs itself. */
  readonly steps?: Json;
  readonly arguments?: Json;
  readonly chore?: string;
  readonly retention?: TypeRetention;
}

/** How long rows of a type are kept: those go whose `by` is as many days ago. */
export interface TypeRetention {
  readonly type: string;
  readonly days: number;
  /** The last end of what is believed of a row, or its newest version. */
  readonly by: 'valid_to' | 'system_from';
  /** A row is ended and keeps its history, or is removed with all of it. */
  readonly action: 'delete' | 'purge';
}

/** When its runs are due; one of the first four, or by hand alone. */
export interface JobDefinition {
  readonly name: string;
  readonly run: JobTask;
  readonly interval_secs: number | null;
  readonly cron: string | null;
  /** IANA name; the clock that `cron` is read by. */
  readonly time_zone: string | null;
  /** Nanoseconds as decimal text: once. */
  readonly at: string | null;
  /** Id of a job: after each of its runs that is done. */
  readonly after: string | null;
  /** Runs that were missed are made up for by one, by all of them, or by none. */
  readonly catch_up: 'one' | 'all' | 'none';
  /** The first run is due when the job is made. */
  readonly run_now: boolean;
  readonly timeout_secs: number;
  /** The purpose that its runs state. */
  readonly purpose: string | null;
  /** It ends with its first run, and is not named: the run of a workflow that was asked for. */
  readonly once?: true;
}

/** The key of a job among those of its path: workflows have names of their own, a type has one retention, and what runs once has no name. */
export function nameKey(jobId: string, { name, run, once }: JobDefinition): string {
  if (once === true) return `once ${jobId}`;
  if (run.retention !== undefined) return retentionKey(run.retention.type);
  return run.steps === undefined ? `job ${name}` : `workflow ${name}`;
}

export const retentionKey = (type: string): string => `retention ${type}`;

export type JobState = 'scheduled' | 'paused' | 'ended';

export interface JobRecord {
  readonly id: string;
  readonly definition: JobDefinition;
  readonly owner: RuleAuthor;
  readonly path: string | null;
  readonly branch: string;
  readonly state: JobState;
  /** Why it was paused, when not by its owner. */
  readonly reason: string | null;
  /** Position and nanosecond of its first entry. */
  readonly position: number;
  readonly made: bigint;
  /** The last instant, in nanoseconds, for which a run was begun or passed over; runs are due after it. */
  readonly lastDue: bigint;
  readonly runCount: number;
  readonly totalAlerts: number;
  readonly lastError: string | null;
  /** The run that was begun and has not ended. */
  readonly open: RunRecord | null;
  readonly last: RunRecord | null;
}

/** `running`: begun, and not ended when the entry was written; a start that finds it begins it again. */
export type RunState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled';

export interface RunRecord {
  readonly id: string;
  /** The job; null for a round of rules that are judged on every commit. */
  readonly job: string | null;
  /** Rules that are judged together: `planner/continuous/rules/commit-rules.ts`; null for a job's run. */
  readonly group: string | null;
  readonly state: RunState;
  /** From 1. */
  readonly attempt: number;
  /** Nanoseconds as decimal texts: when it was due, and its basis. A round of rules: changes up to there were judged. */
  readonly due: string;
  readonly basis: string;
  readonly alerts: number;
  /** The error of a failed one, or why it was cancelled. */
  readonly reason: string | null;
  /** Runs that were due before it and did not take place. */
  readonly missed: number;
  /** Counts and references, never rows. */
  readonly result: Json;
  /** The id of the workflow that a run of one follows, from its beginning to its end. */
  readonly workflow?: string;
  /** The step of it that the entry tells of. */
  readonly step?: WorkflowStep;
  /** The run is of no job: long work that somebody asked for once. */
  readonly work?: Work;
  /** A queued run goes on at this nanosecond, as decimal text; null: when somebody says so; absent: at once. */
  readonly until?: string | null;
}

/** Long work that somebody asked for once, and whoever did. It lies in the path of its entries. */
export interface Work {
  /** A `JobKind`, and the type or the name that it is about. */
  readonly kind: string;
  readonly about: string | null;
  readonly unit: string;
  readonly principal: string;
  readonly credential: string;
  readonly tenant: string | null;
  /** Nanoseconds as decimal text; null where it never began, and before its end. */
  readonly started: string | null;
  readonly finished: string | null;
  /** Work of a statement that writes has it until it has ended. */
  readonly statement?: WorkStatement;
}

/** A statement that is run again where the end of a process cut it off, and with whose rights. */
export interface WorkStatement {
  readonly sql: string;
  readonly dialect: string;
  readonly purpose: string | null;
  readonly token: string | null;
  readonly branch: string;
}

/** The last entry of a run of such work, and the position of its first. */
export interface WorkRecord {
  readonly run: RunRecord & { readonly work: Work };
  readonly path: string | null;
  readonly position: number;
}

/** One step of a workflow's run, as far as it has come. */
export interface WorkflowStep {
  /** Index of the step; of one inside of others theirs before it, with the index of the item in a `for_each`: `2.17.0`. */
  readonly path: string;
  readonly state: 'waiting' | 'done' | 'failed';
  /** Nanoseconds as decimal text. */
  readonly started: string;
  /** The attempt of the run. */
  readonly attempt: number;
  /** Counts, our own ids and codes: no text of any row. A question's `basis` stands for its rows. */
  readonly result: Readonly<Record<string, string | number | boolean>>;
}

/** With the nanosecond of the entry that tells of it. */
export interface RecordedStep extends WorkflowStep {
  readonly at: bigint;
}

export const attemptsMax = 5;
