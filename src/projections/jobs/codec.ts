/**
 * Jobs and runs as entries of the kinds `job` and `run` hold them: RFC 8785 JSON. A run has counts, codes and ids, so it rests as it is; one
 * of work whose statement is on record is sealed as a definition is.
 *
 *   job  {"v": 2, "id", "change": "made", "sealed"}   sealed: "job": JobDefinition, "credential", "token"
 *        {"v": 1, "id", "change": "paused" | "resumed" | "ended", "reason"}
 *        {"v": 1, "id", "change": "made", "job", "credential", "token"}   in logs of earlier releases
 *   run  {"v": 1, "run": RunRecord}
 *        {"v": 2, "id", "sealed"}   sealed: "run": RunRecord
 */
import type { OpenBody } from '../../log/entries/entry.ts';
import type { Json } from '../../log/values/canonical-json.ts';
import type { RuleAuthor } from '../rules/rule.ts';
import { definitionIn, type OpenText, plainContent, type SealText, sealedContent } from '../sealed-definitions.ts';
import type { JobDefinition, RunRecord } from './job.ts';

export type JobChange =
  | {
      readonly change: 'made';
      readonly id: string;
      readonly definition: JobDefinition;
      readonly owner: Omit<RuleAuthor, 'principal'>;
    }
  | { readonly change: 'paused' | 'resumed' | 'ended'; readonly id: string; readonly reason: string | null };

export function encodeJob(jobChange: JobChange, sealJob: SealText): OpenBody {
  const unsealedJob = { id: jobChange.id, change: jobChange.change };
  if (jobChange.change !== 'made') return { kind: 'job', content: plainContent({ ...unsealedJob, reason: jobChange.reason }) };
  const { credential, token } = jobChange.owner;
  const sealedJob = { job: jobChange.definition as unknown as Json, credential, token };
  return { kind: 'job', content: sealedContent(unsealedJob, sealedJob, sealJob) };
}

/** Null for an entry of this kind that has another form, and for a job that is erased. */
export function decodeJob(jobBody: OpenBody, open: OpenText): JobChange | null {
  const jobMembers = jobMembersIn(jobBody, open);
  if (jobMembers === null) return null;
  const jobId = jobMembers['id'] as string;
  if (jobMembers['change'] !== 'made')
    return {
      change: jobMembers['change'] as 'paused' | 'resumed' | 'ended',
      id: jobId,
      reason: (jobMembers['reason'] ?? null) as string | null,
    };
  return {
    change: 'made',
    id: jobId,
    definition: jobMembers['job'] as unknown as JobDefinition,
    owner: { credential: jobMembers['credential'] as RuleAuthor['credential'], token: jobMembers['token'] as string | null },
  };
}

export function encodeRun(run: RunRecord, seal: SealText): OpenBody {
  const runMembers = { run: run as unknown as Json };
  const isRunSealed = run.work?.statement !== undefined;
  return { kind: 'run', content: isRunSealed ? sealedContent({ id: run.id }, runMembers, seal) : plainContent(runMembers) };
}

export function decodeRun(runBody: OpenBody, open: OpenText): RunRecord | null {
  const runMembers = jobMembersIn(runBody, open);
  return runMembers === null ? null : (runMembers['run'] as unknown as RunRecord);
}

/** Whether an entry is of a run that has no statement. Its form tells: runs are many, and are not read for it. */
export function isCountsAlone({ kind, content }: OpenBody): boolean {
  if (kind !== 'run' || typeof content !== 'string') return false;
  return content.startsWith('{"run":{') && content.endsWith('},"v":1}') && !content.includes('"statement":');
}

function jobMembersIn(jobBody: OpenBody, open: OpenText): Readonly<Record<string, Json>> | null {
  const runDefinition = definitionIn(jobBody, open);
  return runDefinition === null || runDefinition.isErased ? null : runDefinition.members;
}
