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

export function encodeJob(change: JobChange, seal: SealText): OpenBody {
  const outside = { id: change.id, change: change.change };
  if (change.change !== 'made') return { kind: 'job', content: plainContent({ ...outside, reason: change.reason }) };
  const { credential, token } = change.owner;
  const sealed = { job: change.definition as unknown as Json, credential, token };
  return { kind: 'job', content: sealedContent(outside, sealed, seal) };
}

/** Null for an entry of this kind that has another form, and for a job that is erased. */
export function decodeJob(body: OpenBody, open: OpenText): JobChange | null {
  const read = membersIn(body, open);
  if (read === null) return null;
  const id = read['id'] as string;
  if (read['change'] !== 'made')
    return { change: read['change'] as 'paused' | 'resumed' | 'ended', id, reason: (read['reason'] ?? null) as string | null };
  return {
    change: 'made',
    id,
    definition: read['job'] as unknown as JobDefinition,
    owner: { credential: read['credential'] as RuleAuthor['credential'], token: read['token'] as string | null },
  };
}

export function encodeRun(run: RunRecord, seal: SealText): OpenBody {
  const members = { run: run as unknown as Json };
  const isSealed = run.work?.statement !== undefined;
  return { kind: 'run', content: isSealed ? sealedContent({ id: run.id }, members, seal) : plainContent(members) };
}

export function decodeRun(body: OpenBody, open: OpenText): RunRecord | null {
  const read = membersIn(body, open);
  return read === null ? null : (read['run'] as unknown as RunRecord);
}

/** Whether an entry is of a run that has no statement. Its form tells: runs are many, and are not read for it. */
export function isCountsAlone({ kind, content }: OpenBody): boolean {
  if (kind !== 'run' || typeof content !== 'string') return false;
  return content.startsWith('{"run":{') && content.endsWith('},"v":1}') && !content.includes('"statement":');
}

function membersIn(body: OpenBody, open: OpenText): Readonly<Record<string, Json>> | null {
  const runDefinition = definitionIn(body, open);
  return runDefinition === null || runDefinition.isErased ? null : runDefinition.members;
}
