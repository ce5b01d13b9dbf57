/**
 * Answers about access records and moves of agreements by reading them back from the log, one range of leaves at a time. Holds
 * one page at most.
 */
import { ServiceError } from '../../errors.ts';
import type { AccessRecord, CommittedEntry } from '../../log/entries/entry.ts';
import type { AuditEntry, AuditPage, AuditQuery, AuditReader } from '../access-paths.ts';
import { type AuditProjection, moveAction } from './projection.ts';

const pageRecordsMax = 1000;

type AuditFilter = Omit<AuditQuery, 'after' | 'limit'>;

interface AuditCursor {
  readonly leaf: number;
  readonly indexInEntry: number;
}

/** Stretches, and the leaf of the last record in them. */
interface AuditLogEnd {
  readonly rangeCount: number;
  readonly leaf: number;
}

const firstAuditCursor: AuditCursor = { leaf: -1, indexInEntry: -1 };

/** Which records one reader may see: by the organisation path that they were made under. */
export type AuditScope = (path: string | null) => boolean;

export class LogAuditReader implements AuditReader {
  readonly #auditProjection: AuditProjection;
  readonly #readLogFrom: (leaf: number) => AsyncIterable<CommittedEntry>;
  readonly #isAuditVisible: AuditScope;

  constructor(
    auditProjection: AuditProjection,
    readLogFrom: (leaf: number) => AsyncIterable<CommittedEntry>,
    isAuditVisible: AuditScope,
  ) {
    this.#auditProjection = auditProjection;
    this.#readLogFrom = readLogFrom;
    this.#isAuditVisible = isAuditVisible;
  }

  async count(auditFilter: AuditFilter): Promise<{ count: number; byAction: Readonly<Record<string, number>> }> {
    const knownActionCounts = isEmptyAuditFilter(auditFilter)
      ? this.#auditProjection.countByAction(this.#isAuditVisible)
      : undefined;
    const byAction = knownActionCounts ?? (await this.#countActionsInLog(auditFilter));
    let count = 0;
    for (const n of byAction.values()) count += n;
    const sortedActionCounts = [...byAction].sort((a, b) => (a[0] < b[0] ? -1 : 1));
    return { count, byAction: Object.fromEntries(sortedActionCounts) };
  }

  async entries(query: AuditQuery): Promise<AuditPage> {
    const auditPageLimit = Math.min(query.limit, pageRecordsMax);
    const auditCursor = query.after === undefined ? firstAuditCursor : parseAuditCursor(query.after);
    const entries: AuditEntry[] = [];
    if (auditPageLimit <= 0) return { entries, next: null };
    for await (const auditEntry of this.#matchingAuditEntries(query, auditCursor)) {
      if (entries.length === auditPageLimit) {
        const lastAuditEntry = entries[auditPageLimit - 1]!;
        return { entries, next: `${lastAuditEntry.leaf}.${lastAuditEntry.indexInEntry}` };
      }
      entries.push(auditEntry);
    }
    return { entries, next: null };
  }

  all(auditFilter: AuditFilter): AsyncIterable<AuditEntry> {
    const auditLogEnd = this.#auditLogEnd();
    return { [Symbol.asyncIterator]: () => this.#matchingAuditEntries(auditFilter, firstAuditCursor, auditLogEnd) };
  }

  async #countActionsInLog(auditFilter: AuditFilter): Promise<Map<string, number>> {
    const actionSums = new Map<string, number>();
    for await (const { action } of this.#matchingAuditEntries(auditFilter, firstAuditCursor)) {
      actionSums.set(action, (actionSums.get(action) ?? 0) + 1);
    }
    return actionSums;
  }

  /** Entries that arrive while an answer is read are not part of it. */
  #auditLogEnd(): AuditLogEnd {
    const rangeCount = this.#auditProjection.rangeCount;
    return { rangeCount, leaf: rangeCount === 0 ? -1 : this.#auditProjection.leafRange(rangeCount - 1).lastLeaf };
  }

  async *#matchingAuditEntries(
    auditFilter: AuditFilter,
    auditCursor: AuditCursor,
    auditLogEnd = this.#auditLogEnd(),
  ): AsyncGenerator<AuditEntry, void> {
    for (let i = 0; i < auditLogEnd.rangeCount; i++) {
      const leafRange = this.#auditProjection.leafRange(i);
      if (leafRange.lastLeaf < auditCursor.leaf) continue;
      if (auditFilter.since !== undefined && leafRange.until < auditFilter.since) continue;
      if (auditFilter.until !== undefined && leafRange.since >= auditFilter.until) continue;
      const lastAuditLeaf = Math.min(leafRange.lastLeaf, auditLogEnd.leaf);
      for await (const auditedEntry of this.#readLogFrom(Math.max(leafRange.firstLeaf, auditCursor.leaf))) {
        if (auditedEntry.leaf > lastAuditLeaf) break;
        const accessRecords = accessRecordsOf(auditedEntry, this.#isAuditVisible);
        for (let recordIndex = 0; recordIndex < accessRecords.length; recordIndex++) {
          const accessRecord = accessRecords[recordIndex]!;
          if (auditedEntry.leaf === auditCursor.leaf && recordIndex <= auditCursor.indexInEntry) continue;
          if (
            (accessRecord.action === moveAction || this.#isAuditVisible(accessRecord.path)) &&
            passesAuditFilter(auditFilter, accessRecord)
          )
            yield { ...accessRecord, leaf: auditedEntry.leaf, indexInEntry: recordIndex };
        }
        if (auditedEntry.leaf === lastAuditLeaf) break;
      }
    }
  }
}

/** The access records of an entry, or the move of an agreement as the visible side sees it. */
function accessRecordsOf({ body, context, time }: CommittedEntry, isAuditVisible: AuditScope): readonly AccessRecord[] {
  if (body.kind === 'access') return body.records;
  if (body.kind !== 'agreement') return [];
  const { change, agreement } = body;
  if (!isAuditVisible(agreement.assigner) && !isAuditVisible(agreement.assignee)) return [];
  const { correlationId, principal, tenant, path, door, purpose } = context;
  const agreementMove = { time, correlationId, principal, tenant, path, door, purpose, action: moveAction };
  return [{ ...agreementMove, ...noRowsRead, objectType: agreement.types.join(','), template: `${change} ${agreement.id}` }];
}

const noRowsRead = {
  decision: 'allow',
  code: null,
  literalDigest: null,
  basis: 0n,
  rowCount: 0,
  costUnits: 0,
  durationMs: 0,
} as const;

function passesAuditFilter(auditFilter: AuditFilter, accessRecord: AccessRecord): boolean {
  return (
    (auditFilter.since === undefined || accessRecord.time >= auditFilter.since) &&
    (auditFilter.until === undefined || accessRecord.time < auditFilter.until) &&
    (auditFilter.objectType === undefined || isAboutObjectType(accessRecord, auditFilter.objectType)) &&
    (auditFilter.principal === undefined || accessRecord.principal === auditFilter.principal) &&
    (auditFilter.purpose === undefined || accessRecord.purpose === auditFilter.purpose) &&
    (auditFilter.action === undefined || accessRecord.action === auditFilter.action)
  );
}

/** A question over several types names them all, separated by commas. */
function isAboutObjectType({ objectType, statements = [] }: AccessRecord, auditedType: string): boolean {
  // The list of types may be cut where an invocation asked many questions.
  return (
    namesObjectType(objectType, auditedType) || statements.some((statement) => namesObjectType(statement.objectType, auditedType))
  );
}

function namesObjectType(objectType: string | null, auditedType: string): boolean {
  return objectType !== null && (objectType === auditedType || objectType.split(',').includes(auditedType));
}

function isEmptyAuditFilter(auditFilter: AuditFilter): boolean {
  const { since, until, objectType, principal, purpose, action } = auditFilter;
  return [since, until, objectType, principal, purpose, action].every((criterion) => criterion === undefined);
}

function parseAuditCursor(cursorText: string): AuditCursor {
  const cursorMatch = /^(\d{1,15})\.(\d{1,9})$/.exec(cursorText);
  if (cursorMatch === null) throw new ServiceError('REL_INVALID', 'after is not a cursor of this list');
  return { leaf: Number(cursorMatch[1]), indexInEntry: Number(cursorMatch[2]) };
}
