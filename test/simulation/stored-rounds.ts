/**
 * A life of many restarts. Each round writes, deletes for good, widens types and changes rows whose columns left memory; it
 * compacts, takes checkpoints while the disk holds back the syncs of the log, and ends with a close, a kill or a crash. The
 * next start goes on from the newest checkpoint. What must hold at each of them:
 *
 * - it says nothing: a checkpoint that became current is never ahead of what the log kept, and the log refuses none;
 * - state and answers are those of a store that has the same log and no derived file;
 * - no cell, key or text of a row that was deleted for good is in memory, wherever it was read from.
 */
import type { Vector } from '../../src/log/values/columns.ts';
import type { Segment } from '../../src/projections/rows/segments/segment.ts';
import type { Service } from '../../src/service.ts';
import { TestClock } from '../harness.ts';
import { crashImage, type Survivors } from './crash-image.ts';
import { FaultyDisk, type Image, type Step } from './faulty-disk.ts';
import { Seeded } from './seeded.ts';
import { differenceOf, pictured } from './stored-crash.ts';
import { ask, derivedDirectory, end, fork, hows, openStored, put, register, sentBy, storedTypes, widen } from './stored-life.ts';

/** What lives must have gone through, or they have shown nothing. */
export interface RoundMarks {
  checkpoints: number;
  /** Checkpoints asked for while a write in them was not durable. */
  ahead: number;
  evicted: number;
  hydrated: number;
  compacted: number;
  /** Starts from a checkpoint that an earlier one had been the base of. */
  chained: number;
  restored: number;
  crashes: number;
  removals: number;
  widened: number;
  widenedOnBranches: number;
  /** Rows deleted for good that were looked at. */
  wiped: number;
}

export interface RoundsOptions {
  readonly rounds?: number;
}

const PROPERTIES = { s: 'string', n: 'integer', x: 'number', w: 'integer', v: 'integer' } as const;
/** Turns for which a slow disk holds a sync of the log: a checkpoint is written in fewer. */
const HELD_TURNS = 250;

export class StoredRounds {
  readonly failures: string[] = [];
  readonly marks: RoundMarks = {
    checkpoints: 0,
    ahead: 0,
    evicted: 0,
    hydrated: 0,
    compacted: 0,
    chained: 0,
    restored: 0,
    crashes: 0,
    removals: 0,
    widened: 0,
    widenedOnBranches: 0,
    wiped: 0,
  };
  /** Starts that were compared with what their log says. */
  starts = 0;

  async run(seed: number, { rounds = 10 }: RoundsOptions = {}): Promise<void> {
    const life = new Life(seed, this.marks);
    try {
      await life.begin();
      for (let round = 0; round < rounds && this.failures.length === 0; round++) {
        await life.round(round);
        const wrong = await life.again();
        this.starts++;
        if (wrong) this.failures.push(`seed ${seed}, round ${round}: ${wrong}`);
      }
    } catch (error) {
      this.failures.push(`seed ${seed}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    } finally {
      await life.leave();
    }
  }
}

class Life {
  readonly #seed: number;
  readonly #random: Seeded;
  /** How rows are written. */
  readonly #forming: Seeded;
  readonly #marks: RoundMarks;
  readonly #clock = new TestClock('2024-01-01');
  readonly #said: string[] = [];
  #disk!: FaultyDisk;
  #service!: Service;
  #opened = 0;
  /** While set, syncs of the log wait for it. */
  #held: Promise<void> | null = null;
  #acknowledged = 0;
  #branches: string[] = [];
  /** Checkpoints since the last start, and what the start before went on from. */
  #fromBefore = 0;
  #step = 0;
  /** Types that columns have by now, by branch and type. */
  readonly #types = new Map<string, 'number' | 'json'>();

  constructor(seed: number, marks: RoundMarks) {
    this.#seed = seed;
    this.#random = new Seeded(seed);
    this.#forming = new Seeded(seed + 3);
    this.#marks = marks;
  }

  async begin(): Promise<void> {
    await this.#open({ directories: new Set(['/', '.']), files: new Map() });
    for (const type of storedTypes) await this.#written(register(this.#service, type, PROPERTIES));
  }

  async leave(): Promise<void> {
    this.#disk.powerOff();
    await this.#service.close().catch(() => undefined);
  }

  async round(round: number): Promise<void> {
    const random = this.#random;
    for (let left = 4 + random.below(5); left > 0; left--) {
      await this.#operation();
      if (random.chance(0.35)) await this.#emptied();
      if (random.chance(0.35)) await this.#checkpoint();
    }
    if (random.chance(0.4)) this.#marks.compacted += (await this.#service.store.columns?.compact())?.segments ?? 0;
    if (random.chance(0.8)) await this.#checkpoint();
    for (let left = random.below(4); left > 0; left--) await this.#operation();
    // The first start already goes on from one.
    if (round === 0 || random.chance(0.3)) await this.#checkpoint();
  }

  /** Ends the service in one of the ways, opens it again, and says what is wrong with it. */
  async again(): Promise<string | null> {
    const random = this.#random;
    const way = random.below(5);
    let image: Image;
    if (way === 0) {
      this.#count();
      await this.#service.close();
      image = crashImage(this.#disk.state(), 'none');
    } else {
      const survivors: Survivors = way === 1 ? 'all' : way === 2 ? random : 'none';
      image = await this.#crashed(survivors, random.chance(0.7));
      this.#marks.crashes++;
    }
    const mustHold = this.#acknowledged;
    await this.#open(image);
    const { said } = this;
    if (said.length > 0) return `a healthy start said: ${said.join('; ')}`;
    const from = this.#service.store.checkpoints?.leaves ?? 0;
    if (from > 0) this.#marks.restored++;
    if (from > this.#fromBefore && this.#fromBefore > 0) this.#marks.chained++;
    this.#fromBefore = from;
    return this.#compared(image, mustHold);
  }

  get said(): readonly string[] {
    return this.#said;
  }

  async #compared(image: Image, mustHold: number): Promise<string | null> {
    const files = new Map([...image.files].filter(([name]) => !name.startsWith(derivedDirectory)));
    const plain = new FaultyDisk({}, { directories: image.directories, files });
    const other = await openStored(plain, 5, () => undefined, { derived: false });
    const truth = (await pictured(other))!;
    await other.close();
    if (truth.position < mustHold) return `acknowledged writes are lost: ${truth.position} of ${mustHold}`;
    const found = await pictured(this.#service);
    if (!found) return 'what nobody damaged can not be read';
    return differenceOf(found, truth) ?? this.#unwiped();
  }

  /** What a row that was deleted for good has left in a segment. */
  #unwiped(): string | null {
    for (const type of storedTypes) {
      for (const segment of this.#service.store.projections.rows.table(null, type)?.segments ?? []) {
        for (let row = 0; row < segment.length; row++) {
          if (!segment.isRemoved(row)) continue;
          this.#marks.wiped++;
          const left = leftOf(segment, row);
          if (left) return `${type}: ${left} of row ${segment.firstRow + row}, which was deleted for good, is still there`;
        }
      }
    }
    return null;
  }

  async #operation(): Promise<void> {
    const random = this.#random;
    const service = this.#service;
    this.#step++;
    this.#clock.wallNs += BigInt(random.below(5_000)) * 1_000_000_000n;
    const type = random.pick(storedTypes);
    const branch = this.#branches.length > 0 && random.chance(0.3) ? random.pick(this.#branches) : 'main';
    const action = random.below(16);
    if (action < 9) {
      const how = this.#forming.pick(hows);
      await this.#written(put(service, type, sentBy(this.#forming, how, this.#rows()), branch, how));
    } else if (action < 11) await this.#written(end(service, 'delete', type, [this.#key()], branch));
    else if (action < 13) {
      this.#marks.removals++;
      await this.#written(end(service, 'remove', type, [this.#key()], 'main'));
    } else if (action < 15) await this.#widened(type, branch);
    else if (this.#branches.length < 2) {
      const name = `b${this.#branches.length}`;
      await this.#written(fork(service, name));
      this.#branches.push(name);
    }
  }

  /** From whole numbers to numbers, from anything to JSON: on a branch for those who read it alone. */
  async #widened(type: string, branch: string): Promise<void> {
    if (this.#step < 12) return;
    const column = this.#random.pick(['w', 'v']);
    const place = `${branch} ${type} ${column}`;
    const known = this.#types.get(place) ?? (branch === 'main' ? undefined : this.#types.get(`main ${type} ${column}`));
    const to = known === undefined && this.#random.chance(0.7) ? 'number' : 'json';
    await this.#written(widen(this.#service, type, column, to, branch));
    this.#types.set(place, to);
    this.#marks.widened++;
    if (branch !== 'main') this.#marks.widenedOnBranches++;
  }

  /** Every column that can leaves memory; some come back. */
  async #emptied(): Promise<void> {
    const { columns } = this.#service.store;
    await columns?.whenIdle();
    columns?.trim(0);
    columns?.trim(0);
    if (this.#random.chance(0.5)) await ask(this.#service, `SELECT k, w FROM ${this.#random.pick(storedTypes)} AS OF CURRENT`);
  }

  /** As often as not a write is in it that the disk has not made durable. */
  async #checkpoint(): Promise<void> {
    const { checkpoints } = this.#service.store;
    if (!checkpoints) return;
    if (this.#random.chance(0.3)) {
      this.#marks.checkpoints += Number(await checkpoints.take());
      return;
    }
    const release = this.#hold();
    const under = this.#written(put(this.#service, this.#random.pick(storedTypes), this.#rows()));
    const taken = this.#ahead();
    await Promise.race([taken, turns(HELD_TURNS)]);
    release();
    this.#marks.checkpoints += Number(await taken);
    await under;
  }

  /** A crash, as often as not while a checkpoint that holds more than the log on the disk does is being taken. */
  async #crashed(survivors: Survivors, taking: boolean): Promise<Image> {
    this.#count();
    if (taking) {
      const release = this.#hold();
      const under = put(this.#service, this.#random.pick(storedTypes), this.#rows()).catch(() => undefined);
      const taken = this.#ahead();
      await Promise.race([taken, turns(this.#random.chance(0.5) ? HELD_TURNS : this.#random.below(HELD_TURNS))]);
      const state = this.#disk.state();
      this.#disk.powerOff();
      release();
      await Promise.all([under, taken]);
      await this.#service.close().catch(() => undefined);
      return crashImage(state, survivors);
    }
    const state = this.#disk.state();
    this.#disk.powerOff();
    await this.#service.close().catch(() => undefined);
    return crashImage(state, survivors);
  }

  async #ahead(): Promise<boolean> {
    const { log, projections } = this.#service.store;
    const before = projections.projector.watermark;
    for (let n = 0; n < HELD_TURNS / 5 && projections.projector.watermark === before; n++) await turns(1);
    if (projections.projector.watermark > before && log.next().position > this.#acknowledged) this.#marks.ahead++;
    return this.#service.store.checkpoints!.take();
  }

  #hold(): () => void {
    let release = (): void => undefined;
    this.#held = new Promise((resolve) => {
      release = () => {
        this.#held = null;
        resolve();
      };
    });
    return release;
  }

  async #open(image: Image): Promise<void> {
    this.#said.length = 0;
    const turn = async ({ kind, path }: Step): Promise<void> => {
      if (kind === 'sync' && !path.startsWith(derivedDirectory)) await this.#held;
    };
    this.#disk = new FaultyDisk({ turn }, image);
    const said = this.#said;
    const disk = this.#disk;
    const say = (line: string): void => void (disk === this.#disk && said.push(line));
    this.#service = await openStored(disk, (this.#seed * 1_000 + this.#opened++) * 2, say, {}, this.#clock);
    const position = this.#service.store.log.next().position;
    this.#acknowledged = Math.max(this.#acknowledged, position);
  }

  async #written(work: Promise<unknown>): Promise<void> {
    await work;
    this.#acknowledged = this.#service.store.log.next().position;
  }

  #count(): void {
    const counts = this.#service.store.columns?.counts;
    this.#marks.evicted += counts?.evicted ?? 0;
    this.#marks.hydrated += counts?.hydrated ?? 0;
  }

  #key(): string {
    return `k${this.#random.below(14)}`;
  }

  /** Texts are new all the time: a dictionary that was saved a while ago lacks some. Bounds leave several open versions of a key. */
  #rows(): object[] {
    const random = this.#random;
    const rows = new Map<string, object>();
    const width = this.#step < 20 ? 100n : this.#step < 40 ? 1n << 40n : 1n << 62n;
    for (let left = 1 + random.below(9); left > 0; left--) {
      // What is left of a key that was deleted for good looks like this one.
      const k = random.chance(0.1) ? '\0'.repeat(2 + random.below(2)) : this.#key();
      const n = random.chance(0.2) ? null : (BigInt(random.bits()) * width) / 4_294_967_296n;
      const x = random.chance(0.3) ? null : random.below(1000) / 7;
      const s = random.chance(0.1) ? null : `text ${Math.max(0, this.#step - random.below(6))}`;
      const month = 1 + random.below(8);
      const bounds = random.chance(0.7) && {
        valid_from: `2019-0${month}-01T00:00:00Z`,
        valid_to: random.chance(0.9) ? `2019-0${month + 1}-01T00:00:00Z` : null,
      };
      rows.set(k, { k, s, n, x, w: random.below(100), v: random.below(1_000_000), ...bounds });
    }
    return [...rows.values()];
  }
}

function leftOf(segment: Segment, row: number): string | null {
  if (!isWiped(segment.keys.vector(segment.length), row)) return 'the key';
  for (const name of segment.columnNames()) {
    if (!isWiped(segment.column(name)!.vector(segment.length), row)) return `cell ${name}`;
  }
  return null;
}

/** Zeros, or what they were widened to since. */
const wiped = /^(?:\0*|0|"(?:\\u0000)*")$/;

function isWiped(vector: Vector, row: number): boolean {
  if (vector.kind === 'null' || vector.kind === 'vec') return true;
  if (vector.kind === 'text') {
    return wiped.test(Buffer.from(vector.heap.subarray(vector.offsets[row]!, vector.offsets[row + 1]!)).toString());
  }
  // Every code has a meaning: what is left must be none.
  return Number(vector.values[row]) === 0 && (vector.kind !== 'dict' || vector.nulls?.[row] === 1);
}

async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await new Promise<void>((resolve) => setImmediate(resolve));
}
