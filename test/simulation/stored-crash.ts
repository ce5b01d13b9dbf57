/**
 * Every way in which derived files can be wrong, and what a store makes of them. The oracle is the log: a store that is
 * opened on the same image without any derived file must hold the same state and give the same answers.
 */
import { createHash } from 'node:crypto';
import { ServiceError } from '../../src/errors.ts';
import { DerivedFileError } from '../../src/log/blobs/derived-file.ts';
import type { Service } from '../../src/service.ts';
import { rowsOf } from '../harness.ts';
import { crashImage, sameImage, type Survivors } from './crash-image.ts';
import { faultsOf } from './faults.ts';
import { type Fault, FaultyDisk, type Image, type Step } from './faulty-disk.ts';
import { Seeded } from './seeded.ts';
import {
  ask,
  derivedDirectory,
  liveStored,
  openStored,
  put,
  type StoredCounts,
  type StoredLife,
  storedQuestions,
  storedTypes,
} from './stored-life.ts';

export interface StoredFailure {
  readonly seed: number;
  readonly path: string;
  readonly what: string;
}

/** What a run must have gone through, or it has shown nothing. */
export interface StoredMarks extends StoredCounts {
  /** States of a crash that were opened from a checkpoint. */
  restored: number;
  /** Checkpoints that were refused, with one line, and everything rebuilt. */
  rebuilt: number;
  /** Files that turned out to be damaged when a column of theirs was asked for. */
  unreadable: number;
  failedWrites: number;
  damaged: number;
  ahead: number;
  stale: number;
}

/** A picture of a store: state, and answers as text. */
export interface Picture {
  readonly position: number;
  readonly digests: string;
  readonly answers: string;
}

type Open = typeof openStored;

export class StoredSimulation {
  readonly failures: StoredFailure[] = [];
  readonly marks: StoredMarks = {
    checkpoints: 0,
    evictions: 0,
    compactedSegments: 0,
    restarts: 0,
    removals: 0,
    restored: 0,
    rebuilt: 0,
    unreadable: 0,
    failedWrites: 0,
    damaged: 0,
    ahead: 0,
    stale: 0,
  };
  states = 0;
  readonly #open: Open;
  readonly #statesMax: number;
  readonly #crashesPerSeed: number;
  #seed = 0;
  /** What the log alone makes of the files under a log, by their content. */
  readonly #truths = new Map<string, Picture>();

  constructor(options: { readonly statesMax: number; readonly crashesPerSeed?: number; readonly open?: Open }) {
    this.#crashesPerSeed = options.crashesPerSeed ?? Number.POSITIVE_INFINITY;
    this.#open = options.open ?? openStored;
    this.#statesMax = options.statesMax;
  }

  get enough(): boolean {
    return this.states >= this.#statesMax || this.failures.length > 0;
  }

  async run(seed: number): Promise<void> {
    this.#seed = seed;
    this.#truths.clear();
    let life: StoredLife;
    try {
      life = await liveStored(seed);
    } catch (error) {
      return this.#report('life', messageOf(error));
    }
    for (const [name, count] of Object.entries(life.counts)) this.marks[name as keyof StoredCounts] += count;
    if (life.said.length > 0) this.#report('life', `a healthy life said: ${life.said.join('; ')}`);
    const closed = crashImage(life.closed, 'none');
    const truth = await this.#truth(closed);
    if (truth.digests !== JSON.stringify(life.digests)) this.#report('life', 'the state at the close is not what the log says');
    await this.#damage(closed, 'damage');
    await this.#swapped(life, closed);
    await this.#faults(life, truth);
    await this.#crashes(life);
  }

  /** Crashes before each call on derived files, and before some of the others. */
  async #crashes(life: StoredLife): Promise<void> {
    const random = new Seeded(life.seed + 11);
    const until = this.states + this.#crashesPerSeed;
    const points = [...life.points.entries()].map((point) => [random.bits(), point] as const);
    for (const [, [i, point]] of points.toSorted(([a], [b]) => a - b)) {
      if (this.enough || this.states >= until) return;
      const seen: Image[] = [];
      for (const [name, survivors] of [
        ['none', 'none'],
        ['all', 'all'],
        ['some', random],
      ] as [string, Survivors][]) {
        const image = crashImage(point.disk, survivors);
        if (seen.some((other) => sameImage(other, image))) continue;
        seen.push(image);
        await this.#check(image, `crash.${i}.${name}`, point.acknowledged, 0);
      }
    }
  }

  /** A call on a derived file fails: the life goes on as if nothing had happened, and so does the next start. */
  async #faults(life: StoredLife, healthy: Picture): Promise<void> {
    const random = new Seeded(life.seed + 12);
    // A start that can't make its directory says so and ends; whatever else fails, the store goes on.
    const derived = life.steps.filter(({ path, kind }) => path.startsWith(derivedDirectory) && kind !== 'makeDirectory');
    for (let n = 0; n < 8 && !this.enough; n++) {
      const at = random.pick(derived);
      const [found] = [faultsOf(at, life.seed)].map((faults) => (faults.length > 0 ? random.pick(faults) : undefined));
      if (!found) continue;
      const path = `fault.${at.index}.${found[0]}`;
      try {
        const fault = (step: Step): Fault | undefined => (step.index === at.index ? found[1] : undefined);
        const other = await liveStored(life.seed, { fault, points: 0.02 });
        this.marks.failedWrites++;
        const truth = await this.#truth(crashImage(other.closed, 'none'));
        if (truth.digests !== JSON.stringify(other.digests))
          this.#report(path, 'the state at the close is not what the log says');
        if (toSeconds(truth) !== toSeconds(healthy)) this.#report(path, 'the life became another');
        if (other.said.length > 2) this.#report(path, `too much was said: ${other.said.join('; ')}`);
        await this.#check(crashImage(other.closed, 'none'), path, 0, 1);
        const point = random.pick(other.points);
        await this.#check(crashImage(point.disk, random), `${path}.crash`, point.acknowledged, 1);
      } catch (error) {
        this.#report(path, messageOf(error));
      }
    }
  }

  /** Bits that turn, bytes that are missing, files that are gone or were put in each other's place. */
  async #damage(closed: Image, path: string): Promise<void> {
    const random = new Seeded(this.#seed + 13);
    const names = [...closed.files.keys()].filter((name) => name.startsWith(derivedDirectory));
    for (const name of names) {
      const bytes = closed.files.get(name)!;
      const other = closed.files.get(random.pick(names))!;
      const flipped = bytes.slice();
      const at = random.below(bytes.length);
      flipped[at] = flipped[at]! ^ (1 << random.below(8));
      const wrongs: [string, Uint8Array | null][] = [
        ['bit', flipped],
        ['short', bytes.slice(0, random.below(bytes.length))],
        ['gone', null],
        ['empty', new Uint8Array(0)],
        ['other', other],
      ];
      // Over several seeds each file meets all of them.
      for (const [what, replaced] of wrongs) {
        if (this.enough) return;
        if (random.chance(0.6)) continue;
        const files = new Map(closed.files);
        if (replaced === null) files.delete(name);
        else files.set(name, replaced);
        this.marks.damaged++;
        await this.#check({ directories: closed.directories, files }, `${path}.${name.split('/').at(-1)}.${what}`, 0, 1);
      }
    }
  }

  /** Derived files of another time: ahead of a log whose tail was lost, behind it, or of another log. */
  async #swapped(life: StoredLife, closed: Image): Promise<void> {
    const random = new Seeded(life.seed + 14);
    const derivedOf = (image: Image): [string, Uint8Array][] =>
      [...image.files].filter(([name]) => name.startsWith(derivedDirectory));
    const joined = (log: Image, derived: Image): Image => ({
      directories: log.directories,
      files: new Map([...[...log.files].filter(([name]) => !name.startsWith(derivedDirectory)), ...derivedOf(derived)]),
    });
    for (let n = 0; n < 8 && !this.enough; n++) {
      const image = crashImage(random.pick(life.points).disk, 'none');
      if (![...image.files.keys()].some((name) => name.endsWith('.log'))) continue;
      this.marks.ahead++;
      await this.#check(joined(image, closed), `ahead.${n}`, 0, 1);
      this.marks.stale++;
      await this.#check(joined(closed, image), `stale.${n}`, 0, 1);
    }
    const foreign = await liveStored(life.seed + 1_000_000, { points: 0 });
    await this.#check(joined(closed, crashImage(foreign.closed, 'none')), 'foreign', 0, 1);
  }

  /** One state: opened with its derived files, it is what its log says; and it goes on from there. */
  async #check(image: Image, path: string, mustHold: number, linesMax: number): Promise<void> {
    if (this.enough) return;
    this.states++;
    try {
      const truth = await this.#truth(image);
      if (truth.position < mustHold) return this.#report(path, `acknowledged writes are lost: ${truth.position} of ${mustHold}`);
      const disk = new FaultyDisk({}, image);
      const said: string[] = [];
      let service = await this.#open(disk, this.states, (line) => said.push(line));
      if (said.some((line) => line.includes('rebuilt from the log'))) this.marks.rebuilt++;
      else if (service.store.checkpoints && service.store.checkpoints.leaves > 0) this.marks.restored++;
      let picture = await pictured(service);
      if (picture === null) {
        this.marks.unreadable++;
        await service.close();
        service = await this.#open(disk, this.states + 1, (line) => said.push(line));
        picture = await pictured(service);
        if (picture === null) return this.#report(path, 'a second start still reads what is damaged');
      }
      // A damaged column and the rebuild that it leads to are a line each.
      if (said.length > linesMax * 2) return this.#report(path, `too much was said: ${said.join('; ')}`);
      const wrong = differenceOf(picture, truth);
      if (wrong) return this.#report(path, wrong);
      if (this.states % 5 === 0) await this.#goOn(service, disk, path);
      await service.close();
    } catch (error) {
      this.#report(path, messageOf(error));
    }
  }

  /** More writes, another checkpoint, a crash: the same again. */
  async #goOn(service: Service, disk: FaultyDisk, path: string): Promise<void> {
    if (service.store.projections.rows.table(null, 'Wide') === undefined) return;
    for (let i = 0; i < 3; i++) await put(service, 'Wide', [{ k: `more${i}`, s: 'more', n: 2n ** 61n + BigInt(i), x: i / 3 }]);
    const { position } = service.store.log.next();
    await service.store.checkpoints?.take();
    await put(service, 'Wide', [{ k: 'tail', s: null, n: 1, x: 1 }]);
    const left = crashImage(disk.state(), 'none');
    const truth = await this.#truth(left);
    if (truth.position < position) return this.#report(path, 'what was acknowledged after a restart is lost');
    const again = await this.#open(new FaultyDisk({}, left), 7, () => undefined);
    const picture = await pictured(again);
    const wrong = picture === null ? 'nothing can be read' : differenceOf(picture, truth);
    if (wrong) this.#report(`${path}.then`, wrong);
    await again.close();
  }

  async #truth(image: Image): Promise<Picture> {
    const files = new Map([...image.files].filter(([name]) => !name.startsWith(derivedDirectory)));
    const hash = createHash('sha256');
    for (const [path, bytes] of files) hash.update(`${path}\n${bytes.length}\n`).update(bytes);
    const name = hash.digest('base64');
    const known = this.#truths.get(name);
    if (known) return known;
    const service = await openStored(new FaultyDisk({}, { directories: image.directories, files }), 5, () => undefined, {
      derived: false,
    });
    const picture = (await pictured(service))!;
    await service.close();
    this.#truths.set(name, picture);
    return picture;
  }

  #report(path: string, what: string): void {
    this.failures.push({ seed: this.#seed, path, what });
  }
}

/** Null where a column can't be read from its file. */
export async function pictured(service: Service): Promise<Picture | null> {
  try {
    const { position } = service.store.log.next();
    const digests = JSON.stringify(service.store.projections.projector.digests());
    const lines: string[] = [];
    const branches = ['main', 'b0', 'b1'].filter((name) => service.store.projections.branches.idOf(name, null) !== undefined);
    for (const branch of branches) {
      for (const sql of storedQuestions) {
        if (!storedTypes.some((type) => service.store.projections.rows.table(null, type) && sql.includes(type))) continue;
        const rows = rowsOf(await ask(service, sql, branch));
        lines.push(JSON.stringify([branch, sql, rows], (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value)));
      }
    }
    return { position, digests, answers: lines.join('\n') };
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'REL_STORAGE') return null;
    if (error instanceof DerivedFileError) return null;
    throw error;
  }
}

export function differenceOf(found: Picture, truth: Picture): string | null {
  if (found.position !== truth.position) return `position ${found.position} instead of ${truth.position}`;
  if (found.answers !== truth.answers) {
    const [a, b] = [found.answers.split('\n'), truth.answers.split('\n')];
    const at = a.findIndex((line, i) => line !== b[i]);
    return `another answer:\n${a[at]?.slice(0, 1500)}\ninstead of\n${b[at]?.slice(0, 1500)}`;
  }
  if (found.digests !== truth.digests) return `other digests: ${found.digests} instead of ${truth.digests}`;
  return null;
}

/**
 * Positions and answers of a life, with their instants to the second. The nanosecond of a row counts the entries of its second before it, and a
 * seal is one of them where a checkpoint is faster than the write beside it: it waits for the disk by a seal then, and else finds all durable.
 */
function toSeconds({ position, answers }: Picture): string {
  return `${position}\n${answers.replaceAll(/(_(?:from|to)":"\d{10})\d{9}/g, '$1')}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
