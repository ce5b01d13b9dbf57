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
  readonly #planPosition: number;
  readonly #planTime: bigint;
  /** Where the cells of each version are, as in `OpenVersion`. */
  readonly cells: number[] = [];
  readonly ops: number[] = [];
  /** Given bounds; null = own system_from, and FOREVER. */
  readonly from: (bigint | null)[] = [];
  readonly to: (bigint | null)[] = [];
  readonly closes: number[] = [];
  /** End of each version's range of `closes`. */
  readonly closeEnds: number[] = [];
  #remainderCount = 0;

  /** `position` and `time` are those of the entry's first row. */
  constructor(position: number, time: bigint) {
    this.#planPosition = position;
    this.#planTime = time;
  }

  get length(): number {
    return this.cells.length;
  }

  /** Number of the last version that is no remainder. */
  get newestStated(): number {
    let lastStated = this.length - 1;
    while (this.ops[lastStated] === rowOp.remainder) lastStated--;
    return lastStated;
  }

  get remainders(): number {
    return this.#remainderCount;
  }

  /** system_from of the version that comes next. */
  get nextTime(): bigint {
    return this.#planTime + BigInt(this.length);
  }

  get mark(): PlanMark {
    return { versions: this.length, closes: this.closes.length, remainders: this.#remainderCount };
  }

  /** As if nothing had been planned since. */
  goBack({ versions, closes, remainders }: PlanMark): void {
    for (const plannedList of [this.cells, this.ops, this.from, this.to, this.closeEnds]) plannedList.length = versions;
    this.closes.length = closes;
    this.#remainderCount = remainders;
  }

  /** A put without bounds over these open versions. `row`: where its cells are, as in `OpenVersion`. */
  put(row: number, open: readonly OpenVersion[]): OpenVersion[] {
    return this.replace(row, null, null, open);
  }

  /** A put that holds from..to, after which the key has no version; if `from` is given, the time before it is asserted again. */
  replace(row: number, from: bigint | null, to: bigint | null, openVersions: readonly OpenVersion[]): OpenVersion[] {
    const plannedVersion = {
      position: this.#planPosition + this.length,
      from: from ?? this.nextTime,
      to: to ?? FOREVER,
      cells: -1 - row,
    };
    const endedVersions = from === null ? openVersions : openVersions.filter((openVersion) => from < openVersion.to);
    for (const { position } of endedVersions) this.closes.push(position);
    this.#addPlannedVersion(rowOp.put, plannedVersion.cells, from, to);
    const leftRemainders: OpenVersion[] = [];
    for (const other of endedVersions) {
      if (from !== null && other.from < from) leftRemainders.unshift(this.#addRemainder(other, other.from, from));
    }
    return [...leftRemainders, plannedVersion, ...openVersions.filter((openVersion) => !endedVersions.includes(openVersion))];
  }

  /** A put that holds from..to; null is the default of that end. Returns what is open afterwards, newest first. */
  putWithin(row: number, from: bigint | null, to: bigint | null, openVersions: readonly OpenVersion[]): OpenVersion[] {
    const plannedVersion = {
      position: this.#planPosition + this.length,
      from: from ?? this.nextTime,
      to: to ?? FOREVER,
      cells: -1 - row,
    };
    const overlappedVersions = openVersions.filter(
      (openVersion) => openVersion.from < plannedVersion.to && plannedVersion.from < openVersion.to,
    );
    for (const { position } of overlappedVersions) this.closes.push(position);
    this.#addPlannedVersion(rowOp.put, plannedVersion.cells, from, to);
    const leftRemainders: OpenVersion[] = [];
    for (const other of overlappedVersions) {
      if (other.from < plannedVersion.from) leftRemainders.unshift(this.#addRemainder(other, other.from, plannedVersion.from));
      if (plannedVersion.to < other.to) leftRemainders.unshift(this.#addRemainder(other, plannedVersion.to, other.to));
    }
    return [
      ...leftRemainders,
      plannedVersion,
      ...openVersions.filter((openVersion) => !overlappedVersions.includes(openVersion)),
    ];
  }

  /**
   * Writes each of these open versions anew over the range that it shares with from..to, with the cells of its row in `rows`. They
   * ascend in valid time and each holds somewhere within the bounds. Returns what is open afterwards, newest first.
   */
  patch(
    rows: readonly number[],
    patchedOver: readonly OpenVersion[],
    from: bigint | null,
    to: bigint | null,
    openVersions: readonly OpenVersion[],
  ): OpenVersion[] {
    const isPatchBounded = from !== null || to !== null;
    const patchStart = from ?? this.nextTime;
    const patchEnd = to ?? FOREVER;
    const patchedVersions: OpenVersion[] = [];
    patchedOver.forEach((patchedVersion, i) => {
      const versionBegins = patchedVersion.from > patchStart ? patchedVersion.from : isPatchBounded ? patchStart : null;
      const versionStops = patchedVersion.to < patchEnd ? patchedVersion.to : patchEnd;
      const cells = -1 - rows[i]!;
      patchedVersions.push({
        position: this.#planPosition + this.length,
        from: versionBegins ?? this.nextTime,
        to: versionStops,
        cells,
      });
      this.closes.push(patchedVersion.position);
      this.#addPlannedVersion(rowOp.put, cells, versionBegins, versionStops === FOREVER ? null : versionStops);
      if (patchedVersion.from < patchStart)
        patchedVersions.push(this.#addRemainder(patchedVersion, patchedVersion.from, patchStart));
      if (patchEnd < patchedVersion.to) patchedVersions.push(this.#addRemainder(patchedVersion, patchEnd, patchedVersion.to));
    });
    return [...patchedVersions.reverse(), ...openVersions.filter((patchedVersion) => !patchedOver.includes(patchedVersion))];
  }

  /** The end of an open version: the same cells, true until now at the latest. */
  end(endedVersion: OpenVersion): void {
    const now = this.nextTime;
    const endedAt = endedVersion.to < now ? endedVersion.to : now;
    this.closes.push(endedVersion.position);
    this.#addPlannedVersion(
      rowOp.delete,
      endedVersion.cells,
      endedVersion.from,
      endedAt < endedVersion.from ? endedVersion.from : endedAt,
    );
  }

  /** The end of an open version between two instants: its cells are asserted again before and after them. */
  endWithin(endedVersion: OpenVersion, from: bigint, to: bigint): void {
    this.closes.push(endedVersion.position);
    this.#addPlannedVersion(rowOp.delete, endedVersion.cells, endedVersion.from, endedVersion.from);
    if (endedVersion.from < from) this.#addRemainder(endedVersion, endedVersion.from, from);
    if (to < endedVersion.to) this.#addRemainder(endedVersion, to, endedVersion.to);
  }

  #addRemainder(cutVersion: OpenVersion, from: bigint, to: bigint): OpenVersion {
    const remainderVersion = { position: this.#planPosition + this.length, from, to, cells: cutVersion.cells };
    this.#addPlannedVersion(rowOp.remainder, cutVersion.cells, from, to);
    this.#remainderCount++;
    return remainderVersion;
  }

  #addPlannedVersion(op: number, cells: number, from: bigint | null, to: bigint | null): void {
    this.cells.push(cells);
    this.ops.push(op);
    this.from.push(from);
    this.to.push(to);
    this.closeEnds.push(this.closes.length);
  }
}
