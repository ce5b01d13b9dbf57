/**
 * The versions that a batch of puts becomes, row by row in order: the versions that each closes, and the ranges of these that
 * stay true beside it. The interval logic of an update, apart from cells and storage.
 *
 * - Without bounds a put closes every open version of its key.
 * - With bounds it closes the open versions that it overlaps, and remainders that follow it assert their uncovered time again.
 * - A put that replaces the future asserts again only the time before it.
 * - A patch writes one version for each open version that it overlaps, over the range that both cover, so that each keeps cells
 *   of its own, and asserts the rest again. Without bounds it is about all time from now on: the range that holds now is cut at
 *   now, as DELETE cuts it.
 */
import { rowOp } from '../../../log/entries/entry.ts';
import { FOREVER } from '../../../log/values/timestamp.ts';

/** An open version of a key. `cells` says where its cells are: a row number of the table, or -1 - row of what is written. */
export interface OpenVersion {
  readonly position: number;
  readonly from: bigint;
  readonly to: bigint;
  readonly cells: number;
}

/** How far a plan has come. */
export interface PlanMark {
  readonly versions: number;
  readonly closes: number;
  readonly remainders: number;
}

export class VersionPlan {
  readonly #position: number;
  readonly #time: bigint;
  /** Where the cells of each version are, as in `OpenVersion`. */
  readonly cells: number[] = [];
  readonly ops: number[] = [];
  /** Given bounds; null = own system_from, and FOREVER. */
  readonly from: (bigint | null)[] = [];
  readonly to: (bigint | null)[] = [];
  readonly closes: number[] = [];
  /** End of each version's range of `closes`. */
  readonly closeEnds: number[] = [];
  #remainders = 0;

  /** `position` and `time` are those of the entry's first row. */
  constructor(position: number, time: bigint) {
    this.#position = position;
    this.#time = time;
  }

  get length(): number {
    return this.cells.length;
  }

  /** Number of the last version that is no remainder. */
  get newestStated(): number {
    let last = this.length - 1;
    while (this.ops[last] === rowOp.remainder) last--;
    return last;
  }

  get remainders(): number {
    return this.#remainders;
  }

  /** system_from of the version that comes next. */
  get nextTime(): bigint {
    return this.#time + BigInt(this.length);
  }

  get mark(): PlanMark {
    return { versions: this.length, closes: this.closes.length, remainders: this.#remainders };
  }

  /** As if nothing had been planned since. */
  goBack({ versions, closes, remainders }: PlanMark): void {
    for (const list of [this.cells, this.ops, this.from, this.to, this.closeEnds]) list.length = versions;
    this.closes.length = closes;
    this.#remainders = remainders;
  }

  /** A put without bounds over these open versions. `row`: where its cells are, as in `OpenVersion`. */
  put(row: number, open: readonly OpenVersion[]): OpenVersion[] {
    return this.replace(row, null, null, open);
  }

  /** A put that holds from..to, after which the key has no version; if `from` is given, the time before it is asserted again. */
  replace(row: number, from: bigint | null, to: bigint | null, open: readonly OpenVersion[]): OpenVersion[] {
    const version = {
      position: this.#position + this.length,
      from: from ?? this.nextTime,
      to: to ?? FOREVER,
      cells: -1 - row,
    };
    const ended = from === null ? open : open.filter((other) => from < other.to);
    for (const { position } of ended) this.closes.push(position);
    this.#add(rowOp.put, version.cells, from, to);
    const left: OpenVersion[] = [];
    for (const other of ended) {
      if (from !== null && other.from < from) left.unshift(this.#remainder(other, other.from, from));
    }
    return [...left, version, ...open.filter((other) => !ended.includes(other))];
  }

  /** A put that holds from..to; null is the default of that end. Returns what is open afterwards, newest first. */
  putWithin(row: number, from: bigint | null, to: bigint | null, open: readonly OpenVersion[]): OpenVersion[] {
    const version = {
      position: this.#position + this.length,
      from: from ?? this.nextTime,
      to: to ?? FOREVER,
      cells: -1 - row,
    };
    const overlapped = open.filter((other) => other.from < version.to && version.from < other.to);
    for (const { position } of overlapped) this.closes.push(position);
    this.#add(rowOp.put, version.cells, from, to);
    const left: OpenVersion[] = [];
    for (const other of overlapped) {
      if (other.from < version.from) left.unshift(this.#remainder(other, other.from, version.from));
      if (version.to < other.to) left.unshift(this.#remainder(other, version.to, other.to));
    }
    return [...left, version, ...open.filter((other) => !overlapped.includes(other))];
  }

  /**
   * Writes each of these open versions anew over the range that it shares with from..to, with the cells of its row in `rows`. They
   * ascend in valid time and each holds somewhere within the bounds. Returns what is open afterwards, newest first.
   */
  patch(
    rows: readonly number[],
    over: readonly OpenVersion[],
    from: bigint | null,
    to: bigint | null,
    open: readonly OpenVersion[],
  ): OpenVersion[] {
    const isBounded = from !== null || to !== null;
    const start = from ?? this.nextTime;
    const end = to ?? FOREVER;
    const written: OpenVersion[] = [];
    over.forEach((other, i) => {
      const begins = other.from > start ? other.from : isBounded ? start : null;
      const stops = other.to < end ? other.to : end;
      const cells = -1 - rows[i]!;
      written.push({ position: this.#position + this.length, from: begins ?? this.nextTime, to: stops, cells });
      this.closes.push(other.position);
      this.#add(rowOp.put, cells, begins, stops === FOREVER ? null : stops);
      if (other.from < start) written.push(this.#remainder(other, other.from, start));
      if (end < other.to) written.push(this.#remainder(other, end, other.to));
    });
    return [...written.reverse(), ...open.filter((other) => !over.includes(other))];
  }

  /** The end of an open version: the same cells, true until now at the latest. */
  end(other: OpenVersion): void {
    const now = this.nextTime;
    const until = other.to < now ? other.to : now;
    this.closes.push(other.position);
    this.#add(rowOp.delete, other.cells, other.from, until < other.from ? other.from : until);
  }

  /** The end of an open version between two instants: its cells are asserted again before and after them. */
  endWithin(other: OpenVersion, from: bigint, to: bigint): void {
    this.closes.push(other.position);
    this.#add(rowOp.delete, other.cells, other.from, other.from);
    if (other.from < from) this.#remainder(other, other.from, from);
    if (to < other.to) this.#remainder(other, to, other.to);
  }

  #remainder(of: OpenVersion, from: bigint, to: bigint): OpenVersion {
    const version = { position: this.#position + this.length, from, to, cells: of.cells };
    this.#add(rowOp.remainder, of.cells, from, to);
    this.#remainders++;
    return version;
  }

  #add(op: number, cells: number, from: bigint | null, to: bigint | null): void {
    this.cells.push(cells);
    this.ops.push(op);
    this.from.push(from);
    this.to.push(to);
    this.closeEnds.push(this.closes.length);
  }
}
