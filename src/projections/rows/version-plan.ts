/**
 * The versions that a batch of puts becomes, row by row in order: what each closes, and which stretches of what it closes
 * stay true beside it. The interval logic of an update, apart from cells and storage.
 *
 * - Without bounds a put closes every open version of its key.
 * - With bounds it closes the open versions that it overlaps, and what they leave uncovered is asserted again by
 *   remainders that follow it.
 */
import { rowOp } from '../../log/entry.ts';
import { FOREVER } from '../../log/timestamp.ts';

/** An open version of a key. `cells` says where its cells are: a row number of the table, or -1 - row of the batch. */
export interface OpenVersion {
  readonly position: number;
  readonly from: bigint;
  readonly to: bigint;
  readonly cells: number;
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
  /** End of each version's stretch of `closes`. */
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

  get remainders(): number {
    return this.#remainders;
  }

  /** system_from of the version that comes next. */
  get nextTime(): bigint {
    return this.#time + BigInt(this.length);
  }

  /** A put without bounds over these open versions. */
  put(batchRow: number, open: readonly OpenVersion[]): OpenVersion[] {
    const version = { position: this.#position + this.length, from: this.nextTime, to: FOREVER, cells: -1 - batchRow };
    for (const { position } of open) this.closes.push(position);
    this.#add(rowOp.put, version.cells, null, null);
    return [version];
  }

  /** A put that holds from..to; null is the default of that end. Returns what is open afterwards, newest first. */
  putWithin(batchRow: number, from: bigint | null, to: bigint | null, open: readonly OpenVersion[]): OpenVersion[] {
    const version = {
      position: this.#position + this.length,
      from: from ?? this.nextTime,
      to: to ?? FOREVER,
      cells: -1 - batchRow,
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

  /** The end of an open version: the same cells, true until now at the latest. */
  end(other: OpenVersion): void {
    const now = this.nextTime;
    const until = other.to < now ? other.to : now;
    this.closes.push(other.position);
    this.#add(rowOp.delete, other.cells, other.from, until < other.from ? other.from : until);
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
