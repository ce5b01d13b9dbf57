/**
 * Where the access records are, and the moves of sharing agreements, which are of both sides' views: counts, and for each
 * range of leaves how many records it holds and from when to when. The records themselves stay in the log and are read back
 * from there, so memory grows with ranges, not with records.
 */
import { createHash } from 'node:crypto';
import { assert } from '../../errors.ts';
import type { AgreementBody, CommittedEntry } from '../../log/entries/entry.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

/** A run of leaves that is read back as one. */
export interface LeafRange {
  readonly firstLeaf: number;
  readonly lastLeaf: number;
  readonly records: number;
  /** Nanoseconds of the earliest and latest record. */
  readonly since: bigint;
  readonly until: bigint;
}

const rangeRecordsMax = 4096;
const rangeLeavesMax = 1024;
/** Counts are kept for so many organisation paths; anybody may name new ones, so there must be a limit. */
const countedPathsMax = 65_536;
const wordsPerStretch = 5;

export class AuditProjection implements Projection {
  readonly name = 'audit';
  readonly formatVersion = 2;
  /** Five words a range: first leaf, last leaf, records, since, until. */
  #auditWords = new BigInt64Array(64 * wordsPerStretch);
  #rangeCount = 0;
  /** Records by path, then action. The empty string stands for no path: it can't name one. */
  #actionCountsByPath = new Map<string, Map<string, number>>();
  /** Moves of agreements by their sides, assigner first. */
  #agreementMoves = new Map<string, number>();
  #hasLostCounts = false;

  apply(auditEntry: CommittedEntry): void {
    if (auditEntry.body.kind === 'agreement') this.#applyAgreementMove(auditEntry, auditEntry.body);
    if (auditEntry.body.kind !== 'access') return;
    const { records: accessRecords } = auditEntry.body;
    let earliestAccess = accessRecords[0]?.time ?? auditEntry.time;
    let latestAccess = earliestAccess;
    for (const accessRecord of accessRecords) {
      if (accessRecord.time < earliestAccess) earliestAccess = accessRecord.time;
      if (accessRecord.time > latestAccess) latestAccess = accessRecord.time;
      this.#countAction(accessRecord.path, accessRecord.action);
    }
    this.#extendAuditStretch(auditEntry.leaf, accessRecords.length, earliestAccess, latestAccess);
  }

  get rangeCount(): number {
    return this.#rangeCount;
  }

  leafRange(index: number): LeafRange {
    assert(index >= 0 && index < this.#rangeCount, 'range exists');
    const at = index * wordsPerStretch;
    const words = this.#auditWords;
    return {
      firstLeaf: Number(words[at]),
      lastLeaf: Number(words[at + 1]),
      records: Number(words[at + 2]),
      since: words[at + 3]!,
      until: words[at + 4]!,
    };
  }

  /** Records by action under the paths that `isAuditVisible` admits; undefined when paths are too many to have been counted. */
  countByAction(isAuditVisible: (path: string | null) => boolean): Map<string, number> | undefined {
    if (this.#hasLostCounts) return undefined;
    const actionSums = new Map<string, number>();
    for (const [path, actionCounts] of this.#actionCountsByPath) {
      if (!isAuditVisible(path === '' ? null : path)) continue;
      for (const [action, actionCount] of actionCounts) actionSums.set(action, (actionSums.get(action) ?? 0) + actionCount);
    }
    for (const [sides, count] of this.#agreementMoves) {
      if (sides.split(agreementSideEnd).some(isAuditVisible))
        actionSums.set(moveAction, (actionSums.get(moveAction) ?? 0) + count);
    }
    return actionSums;
  }

  async checkpoint(auditCheckpoint: CheckpointWriter): Promise<void> {
    auditCheckpoint.section('state', this.#auditStateBytes());
  }

  async restore(auditCheckpoint: CheckpointReader): Promise<void> {
    const auditBytes = auditCheckpoint.section('state');
    assert(auditBytes !== undefined, 'an audit checkpoint has its state');
    this.reset();
    const auditView = new DataView(auditBytes.buffer, auditBytes.byteOffset, auditBytes.byteLength);
    this.#rangeCount = Number(auditView.getBigUint64(0, true));
    const auditWordCount = this.#rangeCount * wordsPerStretch;
    this.#auditWords = new BigInt64Array(Math.max(auditWordCount, 64 * wordsPerStretch));
    for (let i = 0; i < auditWordCount; i++) this.#auditWords[i] = auditView.getBigInt64(8 + i * 8, true);
    const auditCountsDump = JSON.parse(Buffer.from(auditBytes.subarray(8 + auditWordCount * 8)).toString()) as AuditCountsDump;
    this.#hasLostCounts = auditCountsDump.uncounted;
    this.#actionCountsByPath = new Map(auditCountsDump.counts.map(([path, actions]) => [path, new Map(actions)]));
    this.#agreementMoves = new Map(auditCountsDump.moves);
  }

  reset(): void {
    this.#auditWords = new BigInt64Array(64 * wordsPerStretch);
    this.#rangeCount = 0;
    this.#actionCountsByPath = new Map();
    this.#agreementMoves = new Map();
    this.#hasLostCounts = false;
  }

  digest(): string {
    return createHash('sha256').update(this.#auditStateBytes()).digest('hex');
  }

  #countAction(auditedPath: string | null, action: string): void {
    if (this.#hasLostCounts) return;
    let actionCounts = this.#actionCountsByPath.get(auditedPath ?? '');
    if (actionCounts === undefined) {
      if (this.#actionCountsByPath.size === countedPathsMax) {
        this.#actionCountsByPath = new Map();
        this.#agreementMoves = new Map();
        this.#hasLostCounts = true;
        return;
      }
      actionCounts = new Map();
      this.#actionCountsByPath.set(auditedPath ?? '', actionCounts);
    }
    actionCounts.set(action, (actionCounts.get(action) ?? 0) + 1);
  }

  #applyAgreementMove({ leaf, time }: CommittedEntry, { agreement }: AgreementBody): void {
    const agreementSides = `${agreement.assigner}${agreementSideEnd}${agreement.assignee}`;
    if (!this.#hasLostCounts) this.#agreementMoves.set(agreementSides, (this.#agreementMoves.get(agreementSides) ?? 0) + 1);
    this.#extendAuditStretch(leaf, 1, time, time);
  }

  #extendAuditStretch(leaf: number, recordCount: number, earliestAccess: bigint, latestAccess: bigint): void {
    const auditWords = this.#auditWords;
    const lastStretchOffset = (this.#rangeCount - 1) * wordsPerStretch;
    const joinsLastStretch =
      lastStretchOffset >= 0 &&
      Number(auditWords[lastStretchOffset + 2]) + recordCount <= rangeRecordsMax &&
      leaf - Number(auditWords[lastStretchOffset]) < rangeLeavesMax;
    if (joinsLastStretch) {
      auditWords[lastStretchOffset + 1] = BigInt(leaf);
      auditWords[lastStretchOffset + 2] = auditWords[lastStretchOffset + 2]! + BigInt(recordCount);
      if (earliestAccess < auditWords[lastStretchOffset + 3]!) auditWords[lastStretchOffset + 3] = earliestAccess;
      if (latestAccess > auditWords[lastStretchOffset + 4]!) auditWords[lastStretchOffset + 4] = latestAccess;
      return;
    }
    const newStretchOffset = this.#rangeCount * wordsPerStretch;
    if (newStretchOffset === auditWords.length) {
      this.#auditWords = new BigInt64Array(auditWords.length * 2);
      this.#auditWords.set(auditWords);
    }
    this.#auditWords.set([BigInt(leaf), BigInt(leaf), BigInt(recordCount), earliestAccess, latestAccess], newStretchOffset);
    this.#rangeCount++;
  }

  /** Stretch count, words, then counts as JSON sorted by code unit: equal states, equal bytes. */
  #auditStateBytes(): Uint8Array {
    const actionCounts: AuditCountsDump['counts'] = [...this.#actionCountsByPath].map(([path, actions]) => [
      path,
      [...actions].sort(byActionName),
    ]);
    const auditCountsDump: AuditCountsDump = {
      uncounted: this.#hasLostCounts,
      counts: actionCounts.sort(byActionName),
      moves: [...this.#agreementMoves].sort(byActionName),
    };
    const auditCountsJson = Buffer.from(JSON.stringify(auditCountsDump));
    const auditWordCount = this.#rangeCount * wordsPerStretch;
    const auditBytes = new Uint8Array(8 + auditWordCount * 8 + auditCountsJson.length);
    const auditView = new DataView(auditBytes.buffer);
    auditView.setBigUint64(0, BigInt(this.#rangeCount), true);
    for (let i = 0; i < auditWordCount; i++) auditView.setBigInt64(8 + i * 8, this.#auditWords[i]!, true);
    auditBytes.set(auditCountsJson, 8 + auditWordCount * 8);
    return auditBytes;
  }
}

interface AuditCountsDump {
  readonly uncounted: boolean;
  readonly counts: [string, [string, number][]][];
  readonly moves: [string, number][];
}

/** The action name of an agreement's moves. */
export const moveAction = 'agreement';

/** Stands in no path. */
const agreementSideEnd = '\u0000';

function byActionName(a: readonly [string, unknown], b: readonly [string, unknown]): number {
  return a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;
}
