/**
 * Jobs and runs as entries of the kinds `job` and `run` hold them: RFC 8785 JSON, version 1.
 *
 *   job  {"v": 1, "id", "change": "made", "job": JobDefinition, "credential", "token"}
 *        {"v": 1, "id", "change": "paused" | "resumed" | "ended", "reason"}
 *   run  {"v": 1, "run": RunRecord}
 */
import type { OpenBody } from '../../log/entries/entry.ts';
import { canonicalJson, type Json } from '../../log/values/canonical-json.ts';
import type { RuleAuthor } from '../rules/rule.ts';
import type { JobDefinition, RunRecord } from './job.ts';

export type JobChange =
  | {
      readonly change: 'made';
      readonly id: string;
      readonly definition: JobDefinition;
      readonly owner: Omit<RuleAuthor, 'principal'>;
    }
  | { readonly change: 'paused' | 'resumed' | 'ended'; readonly id: string; readonly reason: string | null };

export function encodeJob(change: JobChange): OpenBody {
  const { id } = change;
  const rest =
    change.change === 'made'
      ? { job: change.definition as unknown as Json, credential: change.owner.credential, token: change.owner.token }
      : { reason: change.reason };
  return { kind: 'job', content: canonicalJson({ v: 1, id, change: change.change, ...rest }) };
}

/** Null for an entry of this kind that has another form. */
export function decodeJob(body: OpenBody): JobChange | null {
  const read = versionOne(body);
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

export function encodeRun(run: RunRecord): OpenBody {
  return { kind: 'run', content: canonicalJson({ v: 1, run: run as unknown as Json }) };
}

export function decodeRun(body: OpenBody): RunRecord | null {
  const read = versionOne(body);
  return read === null ? null : (read['run'] as unknown as RunRecord);
}

function versionOne({ content }: OpenBody): Readonly<Record<string, Json>> | null {
  if (typeof content !== 'string' || content === '') return null;
  const read = JSON.parse(content) as Readonly<Record<string, Json>>;
  return read['v'] === 1 ? read : null;
}
