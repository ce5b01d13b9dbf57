/** Answers about access records and moves of agreements by reading them back from the log, stretch by stretch. Holds one page at most. */
import { ServiceError } from '../../errors.ts';
import type { AccessRecord, CommittedEntry } from '../../log/entries/entry.ts';
import type { AuditEntry, AuditPage, AuditQuery, AuditReader } from '../access-paths.ts';
import { type AuditProjection, moveAction } from './projection.ts';

const pageRecordsMax = 1000;

type Filter = Omit<AuditQuery, 'after' | 'limit'>;

interface RecordPosition {
  readonly leaf: number;
  readonly indexInEntry: number;
}

/** Stretches, and the leaf of the last record in them. */
interface End {
  readonly rangeCount: number;
  readonly leaf: number;
}

const fromTheStart: RecordPosition = { leaf: -1, indexInEntry: -1 };

/** Which records one reader may see: by the organisation path that they were made under. */
export type AuditScope = (path: string | null) => boolean;

export class LogAuditReader implements AuditReader {
  readonly #projection: AuditProjection;
  readonly #readFrom: (leaf: number) => AsyncIterable<CommittedEntry>;
  readonly #visible: AuditScope;

  constructor(projection: AuditProjection, readFrom: (leaf: number) => AsyncIterable<CommittedEntry>, visible: AuditScope) {
    this.#projection = projection;
    this.#readFrom = readFrom;
    this.#visible = visible;
  }

  async count(filter: Filter): Promise<{ count: number; byAction: Readonly<Record<string, number>> }> {
    const known = isEmpty(filter) ? this.#projection.countByAction(this.#visible) : undefined;
    const byAction = known ?? (await this.#countByReading(filter));
    let count = 0;
    for (const n of byAction.values()) count += n;
    const sorted = [...byAction].sort((a, b) => (a[0] < b[0] ? -1 : 1));
    return { count, byAction: Object.fromEntries(sorted) };
  }

  async entries(query: AuditQuery): Promise<AuditPage> {
    const limit = Math.min(query.limit, pageRecordsMax);
    const after = query.after === undefined ? fromTheStart : parseCursor(query.after);
    const entries: AuditEntry[] = [];
    if (limit <= 0) return { entries, next: null };
    for await (const entry of this.#matching(query, after)) {
      if (entries.length === limit) {
        const last = entries[limit - 1]!;
        return { entries, next: `${last.leaf}.${last.indexInEntry}` };
      }
      entries.push(entry);
    }
    return { entries, next: null };
  }

  all(filter: Filter): AsyncIterable<AuditEntry> {
    const end = this.#end();
    return { [Symbol.asyncIterator]: () => this.#matching(filter, fromTheStart, end) };
  }

  async #countByReading(filter: Filter): Promise<Map<string, number>> {
    const sums = new Map<string, number>();
    for await (const { action } of this.#matching(filter, fromTheStart)) {
      sums.set(action, (sums.get(action) ?? 0) + 1);
    }
    return sums;
  }

  /** Entries that arrive while an answer is read are not part of it. */
  #end(): End {
    const rangeCount = this.#projection.stretchCount;
    return { rangeCount, leaf: rangeCount === 0 ? -1 : this.#projection.leafRange(rangeCount - 1).lastLeaf };
  }

  async *#matching(filter: Filter, after: RecordPosition, end = this.#end()): AsyncGenerator<AuditEntry, void> {
    for (let i = 0; i < end.rangeCount; i++) {
      const leafRange = this.#projection.leafRange(i);
      if (leafRange.lastLeaf < after.leaf) continue;
      if (filter.since !== undefined && leafRange.until < filter.since) continue;
      if (filter.until !== undefined && leafRange.since >= filter.until) continue;
      const lastLeaf = Math.min(leafRange.lastLeaf, end.leaf);
      for await (const entry of this.#readFrom(Math.max(leafRange.firstLeaf, after.leaf))) {
        if (entry.leaf > lastLeaf) break;
        const records = recordsOf(entry, this.#visible);
        for (let at = 0; at < records.length; at++) {
          const record = records[at]!;
          if (entry.leaf === after.leaf && at <= after.indexInEntry) continue;
          if ((record.action === moveAction || this.#visible(record.path)) && passes(filter, record))
            yield { ...record, leaf: entry.leaf, indexInEntry: at };
        }
        if (entry.leaf === lastLeaf) break;
      }
    }
  }
}

/** The access records of an entry, or the move of an agreement as the visible side sees it. */
function recordsOf({ body, context, time }: CommittedEntry, visible: AuditScope): readonly AccessRecord[] {
  if (body.kind === 'access') return body.records;
  if (body.kind !== 'agreement') return [];
  const { change, agreement } = body;
  if (!visible(agreement.assigner) && !visible(agreement.assignee)) return [];
  const { correlationId, principal, tenant, path, door, purpose } = context;
  const move = { time, correlationId, principal, tenant, path, door, purpose, action: moveAction };
  return [{ ...move, ...nothingRead, objectType: agreement.types.join(','), template: `${change} ${agreement.id}` }];
}

const nothingRead = {
  decision: 'allow',
  code: null,
  literalDigest: null,
  basis: 0n,
  rowCount: 0,
  costUnits: 0,
  durationMs: 0,
} as const;

function passes(filter: Filter, record: AccessRecord): boolean {
  return (
    (filter.since === undefined || record.time >= filter.since) &&
    (filter.until === undefined || record.time < filter.until) &&
    (filter.objectType === undefined || isAbout(record, filter.objectType)) &&
    (filter.principal === undefined || record.principal === filter.principal) &&
    (filter.purpose === undefined || record.purpose === filter.purpose) &&
    (filter.action === undefined || record.action === filter.action)
  );
}

/** A question over several types names them all, separated by commas. */
function isAbout({ objectType, statements = [] }: AccessRecord, type: string): boolean {
  // The list of types may be cut where an invocation asked many questions.
  return names(objectType, type) || statements.some((statement) => names(statement.objectType, type));
}

function names(objectType: string | null, type: string): boolean {
  return objectType !== null && (objectType === type || objectType.split(',').includes(type));
}

function isEmpty(filter: Filter): boolean {
  const { since, until, objectType, principal, purpose, action } = filter;
  return [since, until, objectType, principal, purpose, action].every((given) => given === undefined);
}

function parseCursor(text: string): RecordPosition {
  const match = /^(\d{1,15})\.(\d{1,9})$/.exec(text);
  if (match === null) throw new ServiceError('REL_INVALID', 'after is not a cursor of this list');
  return { leaf: Number(match[1]), indexInEntry: Number(match[2]) };
}
