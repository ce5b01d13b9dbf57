/**
 * Where the access records are, and the moves of sharing agreements, which are of both sides' views: counts, and for each
 * stretch of leaves how many records it holds and from when to when. The records themselves stay in the log and are read back
 * from there, so memory grows with stretches, not with records.
 */
import { createHash } from 'node:crypto';
import { assert } from '../../errors.ts';
import type { AgreementBody, CommittedEntry } from '../../log/entries/entry.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

/** A run of leaves that is read back as one. */
export interface Stretch {
  readonly firstLeaf: number;
  readonly lastLeaf: number;
  readonly records: number;
  /** Nanoseconds of the earliest and latest record. */
  readonly since: bigint;
  readonly until: bigint;
}

const stretchRecordsMax = 4096;
const stretchLeavesMax = 1024;
/** Counts are kept for so many organisation paths; anybody may name new ones, so there must be a limit. */
const countedPathsMax = 65_536;
const wordsPerStretch = 5;

export class AuditProjection implements Projection {
  readonly name = 'audit';
  readonly formatVersion = 2;
  /** Five words a stretch: first leaf, last leaf, records, since, until. */
  #words = new BigInt64Array(64 * wordsPerStretch);
  #rangeCount = 0;
  /** Records by path, then action. The empty string stands for no path: it can't name one. */
  #counts = new Map<string, Map<string, number>>();
  /** Moves of agreements by their sides, assigner first. */
  #moves = new Map<string, number>();
  #uncounted = false;

  apply(entry: CommittedEntry): void {
    if (entry.body.kind === 'agreement') this.#applyMove(entry, entry.body);
    if (entry.body.kind !== 'access') return;
    const { records } = entry.body;
    let since = records[0]?.time ?? entry.time;
    let until = since;
    for (const record of records) {
      if (record.time < since) since = record.time;
      if (record.time > until) until = record.time;
      this.#count(record.path, record.action);
    }
    this.#extend(entry.leaf, records.length, since, until);
  }

  get stretchCount(): number {
    return this.#rangeCount;
  }

  leafRange(index: number): Stretch {
    assert(index >= 0 && index < this.#rangeCount, 'stretch exists');
    const at = index * wordsPerStretch;
    const words = this.#words;
    return {
      firstLeaf: Number(words[at]),
      lastLeaf: Number(words[at + 1]),
      records: Number(words[at + 2]),
      since: words[at + 3]!,
      until: words[at + 4]!,
    };
  }

  /** Records by action under the paths that `visible` admits; undefined when paths are too many to have been counted. */
  countByAction(visible: (path: string | null) => boolean): Map<string, number> | undefined {
    if (this.#uncounted) return undefined;
    const sums = new Map<string, number>();
    for (const [path, actions] of this.#counts) {
      if (!visible(path === '' ? null : path)) continue;
      for (const [action, count] of actions) sums.set(action, (sums.get(action) ?? 0) + count);
    }
    for (const [sides, count] of this.#moves) {
      if (sides.split(sideEnd).some(visible)) sums.set(moveAction, (sums.get(moveAction) ?? 0) + count);
    }
    return sums;
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('state', this.#canonical());
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('state');
    assert(bytes !== undefined, 'an audit checkpoint has its state');
    this.reset();
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#rangeCount = Number(view.getBigUint64(0, true));
    const words = this.#rangeCount * wordsPerStretch;
    this.#words = new BigInt64Array(Math.max(words, 64 * wordsPerStretch));
    for (let i = 0; i < words; i++) this.#words[i] = view.getBigInt64(8 + i * 8, true);
    const dump = JSON.parse(Buffer.from(bytes.subarray(8 + words * 8)).toString()) as CountsDump;
    this.#uncounted = dump.uncounted;
    this.#counts = new Map(dump.counts.map(([path, actions]) => [path, new Map(actions)]));
    this.#moves = new Map(dump.moves);
  }

  reset(): void {
    this.#words = new BigInt64Array(64 * wordsPerStretch);
    this.#rangeCount = 0;
    this.#counts = new Map();
    this.#moves = new Map();
    this.#uncounted = false;
  }

  digest(): string {
    return createHash('sha256').update(this.#canonical()).digest('hex');
  }

  #count(path: string | null, action: string): void {
    if (this.#uncounted) return;
    let actions = this.#counts.get(path ?? '');
    if (actions === undefined) {
      if (this.#counts.size === countedPathsMax) {
        this.#counts = new Map();
        this.#moves = new Map();
        this.#uncounted = true;
        return;
      }
      actions = new Map();
      this.#counts.set(path ?? '', actions);
    }
    actions.set(action, (actions.get(action) ?? 0) + 1);
  }

  #applyMove({ leaf, time }: CommittedEntry, { agreement }: AgreementBody): void {
    const sides = `${agreement.assigner}${sideEnd}${agreement.assignee}`;
    if (!this.#uncounted) this.#moves.set(sides, (this.#moves.get(sides) ?? 0) + 1);
    this.#extend(leaf, 1, time, time);
  }

  #extend(leaf: number, records: number, since: bigint, until: bigint): void {
    const words = this.#words;
    const last = (this.#rangeCount - 1) * wordsPerStretch;
    const joins =
      last >= 0 && Number(words[last + 2]) + records <= stretchRecordsMax && leaf - Number(words[last]) < stretchLeavesMax;
    if (joins) {
      words[last + 1] = BigInt(leaf);
      words[last + 2] = words[last + 2]! + BigInt(records);
      if (since < words[last + 3]!) words[last + 3] = since;
      if (until > words[last + 4]!) words[last + 4] = until;
      return;
    }
    const at = this.#rangeCount * wordsPerStretch;
    if (at === words.length) {
      this.#words = new BigInt64Array(words.length * 2);
      this.#words.set(words);
    }
    this.#words.set([BigInt(leaf), BigInt(leaf), BigInt(records), since, until], at);
    this.#rangeCount++;
  }

  /** Stretch count, words, then counts as JSON sorted by code unit: equal states, equal bytes. */
  #canonical(): Uint8Array {
    const counts: CountsDump['counts'] = [...this.#counts].map(([path, actions]) => [path, [...actions].sort(byName)]);
    const dump: CountsDump = { uncounted: this.#uncounted, counts: counts.sort(byName), moves: [...this.#moves].sort(byName) };
    const json = Buffer.from(JSON.stringify(dump));
    const words = this.#rangeCount * wordsPerStretch;
    const bytes = new Uint8Array(8 + words * 8 + json.length);
    const view = new DataView(bytes.buffer);
    view.setBigUint64(0, BigInt(this.#rangeCount), true);
    for (let i = 0; i < words; i++) view.setBigInt64(8 + i * 8, this.#words[i]!, true);
    bytes.set(json, 8 + words * 8);
    return bytes;
  }
}

interface CountsDump {
  readonly uncounted: boolean;
  readonly counts: [string, [string, number][]][];
  readonly moves: [string, number][];
}

/** The action name of an agreement's moves. */
export const moveAction = 'agreement';

/** Stands in no path. */
const sideEnd = '\u0000';

function byName(a: readonly [string, unknown], b: readonly [string, unknown]): number {
  return a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;
}
