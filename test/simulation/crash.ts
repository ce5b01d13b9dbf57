/**
 * Every way in which one seed's log can die, and what each restart must find. A life is run once, with a crash point
 * taken before every disk call; from each point come disks that lost nothing, everything, or a random part of what was
 * not synced. Each is a state: it is opened, compared with what clients had been promised, cut from power again, opened
 * again, written to, and verified by code that shares nothing with the writer but the codecs.
 *
 * Many states have the same image, and some the same saved state: those are opened once a seed (`openings.ts`).
 *
 * Half of all openings go on from a state of the log that was saved while it lived: one of before the crash, or one that is
 * ahead of what the crash left. They must find what reading everything finds, and replay exactly what follows that state.
 *
 * Beside crashes: a failure at every call of a life, at every call of a recovery, crashes inside recovery, processes
 * killed on a machine that lives on, and machines switched off for good.
 */
import { assert, AssertionError, ServiceError } from '../../src/errors.ts';
import type { CommittedEntry } from '../../src/log/entries/entry.ts';
import type { LogStore } from '../../src/log/log-store.ts';
import { verifyDirectory } from '../../src/log/proofs/verify.ts';
import { crashImage, isSettled, sameImage, type Survivors } from './crash-image.ts';
import { rowsBody, contextOf, textOf } from './drafts.ts';
import { faultsOf, WithoutRoom } from './faults.ts';
import { FaultyDisk, type Fault, type Image, type Step } from './faulty-disk.ts';
import { History, type KeptState, type Promises } from './history.ts';
import { imageDisk } from './image-disk.ts';
import { noMarks } from './marks.ts';
import { digestOf, type From, type OpenedLog, Openings } from './openings.ts';
import { Seeded } from './seeded.ts';
import { type CrashPoint, drive, type Life, live, type OpenLog, type Scenario, scenarioOf } from './workload.ts';
import { SimulatedClock } from './world.ts';

export interface Failure {
  readonly seed: number;
  /** Names the state within its seed; `--only` takes it. */
  readonly path: string;
  readonly what: string;
}

export interface CrashOptions {
  readonly openLog: OpenLog;
  /** Data directory of the logs that `openLog` opens. */
  readonly directory: string;
  /** Only states whose path begins with this, or leads there. */
  readonly only?: string;
  /** Random images of each crash point. */
  readonly imagesPerPoint?: number;
  /** Crash points and steps of a life, by number, that are gone through; otherwise all. */
  readonly takes?: (index: number) => boolean;
}

/** Kept states that an opening may go on from. */
type Among = (state: KeptState) => boolean;
const everyState: Among = () => true;
/** Whoever keeps states waits for what they stand for: those that could be there by then. */
const keptBy =
  ({ version }: Promises): Among =>
  ({ early, since }) =>
    !early && since <= version;

export class CrashSimulation {
  readonly marks = noMarks();
  readonly failures: Failure[] = [];
  states = 0;
  /** Openings of different images, states and failing calls: what these states came to. */
  openings = 0;
  crashPoints = 0;
  syncsAfterFailure = 0;
  readonly #options: CrashOptions;
  /** Recovered images of this seed from which a log has been followed to the end. */
  #followed = new Set<string>();
  #openings!: Openings;
  #seed = 0;

  constructor(options: CrashOptions) {
    this.#options = options;
  }

  /** Goes through all states of a seed, or fewer when `statesMax` or the first failure comes before. */
  async run(seed: number, statesMax = Infinity): Promise<void> {
    this.#seed = seed;
    this.#followed = new Set();
    const scenario = scenarioOf(seed);
    this.#openings = new Openings((disk, from, read) => this.#opened(disk, scenario, from, read));
    try {
      await this.#runAll(scenario, statesMax);
    } finally {
      this.openings += this.#openings.count;
    }
  }

  async #runAll(scenario: Scenario, statesMax: number): Promise<void> {
    const { seed } = scenario;
    const enough = (): boolean => this.states >= statesMax || this.failures.length > 0;
    const takes = this.#options.takes ?? ((): boolean => true);
    const life = await live(scenario, this.#options.openLog);
    this.#judgeLife(life, 'life');
    this.#mark(life);
    for (const [i, point] of life.points.entries()) {
      if (enough()) return;
      if (!takes(i)) continue;
      await this.#crash(life, point, `crash.${i}`, this.#options.imagesPerPoint ?? 6);
    }
    for (const step of life.steps) {
      if (enough()) return;
      if (!takes(step.index)) continue;
      for (const [name, fault] of faultsOf(step, scenario.seed))
        await this.#fail(scenario, step, fault, `fault.${step.index}.${name}`);
      if (step.kind === 'write') await this.#misdirect(scenario, step, `misdirected.${step.index}`);
    }
    const random = new Seeded(seed + 3);
    for (let i = 0; i < 6 && !enough(); i++)
      if (takes(i)) await this.#withoutRoom(scenario, life, new Seeded(seed + 1_000 * i), `room.${i}`);
    for (let i = 0; i < 3 && !enough(); i++) await this.#powerOff(scenario, random.below(life.steps.length), `off.${i}`);
    // Names that are not durable yet are what a restarted process trusts too easily.
    const named = life.points.filter(({ disk }) => disk.nameChanges.length > 0);
    const killed = [...(seed % 4 === 0 ? named : [random.pick(named)]), random.pick(life.points), random.pick(life.points)];
    for (const [i, point] of killed.entries()) if (!enough()) await this.#kill(life, point, `kill.${i}`);
    if (life.closed && !enough()) await this.#corrupt(life, random);
  }

  /** All images of one crash point, and the kept states that openings of them may go on from. */
  async #crash(life: Life, point: CrashPoint, path: string, randomImages: number, kept = everyState): Promise<void> {
    if (!this.#wanted(path)) return;
    this.crashPoints++;
    const seen: Image[] = [];
    const random = new Seeded(life.scenario.seed * 1_000_003 + point.step);
    const choices: [string, Survivors][] = [['none', 'none']];
    if (!isSettled(point.disk)) {
      choices.push(['all', 'all']);
      for (let i = 0; i < randomImages; i++) choices.push([String(i), random]);
    }
    for (const [name, survivors] of choices) {
      const image = crashImage(point.disk, survivors);
      if (seen.some((other) => sameImage(other, image))) continue;
      seen.push(image);
      const nested = random.chance(0.08);
      // A frame may be there without the one before it, and a state that is ahead would take it for the end of all of them.
      const among = survivors === random ? keptBy(point.promises) : kept;
      await this.#check(image, life, point.promises, point.promises.synced, `${path}.${name}`, among);
      if (nested) await this.#crashRecovery(image, life, point.promises, `${path}.${name}`, among);
    }
  }

  /** Crashes and failures inside the recovery of one image. */
  async #crashRecovery(image: Image, life: Life, promises: Promises, path: string, among: Among): Promise<void> {
    const from = this.#from(life, path, among);
    const { error, steps, points } = await this.#openings.recovery(image, from);
    this.#markFrom(from, null);
    if (error !== null) {
      if (error instanceof AssertionError) this.#report(path, messageOf(error));
      return;
    }
    const random = new Seeded(life.scenario.seed);
    for (const { step, disk } of points) {
      const images = [crashImage(disk, 'none'), crashImage(disk, random)];
      for (const [i, inner] of images.entries()) {
        if (i > 0 && sameImage(inner, images[0]!)) continue;
        this.marks.crashInsideRecovery++;
        await this.#check(inner, life, promises, promises.synced, `${path}.recovery.${step.index}.${i}`, among);
      }
    }
    for (const step of steps) {
      if (!['write', 'sync', 'read', 'truncate', 'syncDirectory', 'rename'].includes(step.kind)) continue;
      await this.#failRecovery(image, life, promises, step, path, among);
    }
  }

  /** The same recovery, in which one call fails. */
  async #failRecovery(image: Image, life: Life, promises: Promises, at: Step, recovery: string, among: Among): Promise<void> {
    const path = `${recovery}.recoveryFault.${at.index}`;
    if (!this.#wanted(path)) return;
    this.marks.faultInsideRecovery++;
    const from = this.#from(life, recovery, among);
    const { opened, error, syncsAfterFailure, left } = await this.#openings.open(image, from, at);
    this.#markFrom(from, opened);
    if (opened) {
      const wrong = life.history.faultOf(opened.entries, promises.synced, promises);
      if (wrong) this.#report(path, `opened in spite of an EIO, and ${wrong}`);
    } else if (error instanceof AssertionError) this.#report(path, messageOf(error)); // Refusing to open is the other right answer.
    this.syncsAfterFailure += syncsAfterFailure;
    await this.#check(left, life, promises, promises.synced, path, among);
  }

  /** The same life with one failing call, and the crashes after it. */
  async #fail(scenario: Scenario, at: Step, fault: Fault, path: string): Promise<void> {
    if (!this.#wanted(path)) return;
    const life = await live(scenario, this.#options.openLog, {
      fault: (step) => (step.index === at.index ? fault : undefined),
      pointsFrom: at.index + 1,
    });
    this.#judgeLife(life, path);
    if (fault.kind === 'short') this.marks.shortWrite++;
    if (life.state === 'failed') this.marks.poisoned++;
    const random = new Seeded(scenario.seed + at.index);
    const last = life.points.at(-1);
    if (!last) return;
    const some = life.points.length > 2 ? [life.points[random.below(life.points.length - 1)]!, last] : [last];
    // A call that failed may have left a hole on its own.
    for (const [i, point] of some.entries()) await this.#crash(life, point, `${path}.${i}`, 1, keptBy(point.promises));
    if (at.kind === 'sync') await this.#restart(life, last, `${path}.restart`);
  }

  /**
   * A process starts anew on a machine that did not, after an fsync failed: it is shown pages that no fsync will write.
   * What it then acknowledges must survive all the same. A state that was kept early would vouch for those pages, so there is
   * none here: whoever keeps states waits for what they stand for.
   */
  async #restart(life: Life, point: CrashPoint, path: string): Promise<void> {
    if (!this.#wanted(path)) return;
    this.marks.restartedAfterFailure++;
    this.states++;
    const disk = FaultyDisk.afterKill(point.disk);
    try {
      const { log, entries } = await this.#open(disk, life, path, keptBy(point.promises));
      const wrong = life.history.faultOf(entries, point.promises.synced, point.promises);
      if (wrong) return this.#report(path, wrong);
      await this.#appendOnce(log, disk, entries, path);
    } catch (error) {
      this.#report(path, messageOf(error));
    }
  }

  /**
   * The disk takes nothing for a while, any part of a write aside. Once it does again the log goes on by itself: nothing that
   * was taken is missing, acknowledged or not, and a crash in between loses no more than any other.
   */
  async #withoutRoom(scenario: Scenario, healthy: Life, random: Seeded, path: string): Promise<void> {
    if (!this.#wanted(path)) return;
    const code = random.pick(['ENOSPC', 'EDQUOT', 'EROFS'] as const);
    const opened = healthy.steps.findIndex(({ kind, path: file }) => kind === 'write' && file.endsWith('.log')) + 4;
    const room = new WithoutRoom(opened + random.below(healthy.steps.length), 1 + random.below(6), code, random);
    const fault = (step: Step): Fault | undefined => room.fault(step);
    const life = await live(scenario, this.#options.openLog, { fault, pointsFrom: opened, outlast: true });
    this.#judgeLife(life, path);
    const last = life.points.at(-1);
    if (life.state === 'unopened' || room.last < 0 || !last) return;
    const outlived = room.over && room.last < life.closing;
    if (outlived) {
      this.marks.outlivedFull++;
      if (life.state !== 'open' && life.state !== 'closed')
        this.#report(path, `there is room again, and the log is ${life.state}`);
      const image = crashImage(last.disk, 'all');
      const entries = await collect(await this.#openFully(new FaultyDisk({}, image), scenario));
      const wrong = life.history.faultOf(entries, life.history.submissions.length, last.promises);
      if (wrong) this.#report(path, `after a ${code}: ${wrong}`);
      const finding = life.closed ? await this.#alarmOver(image) : null;
      if (finding) this.#report(path, `after a ${code}, verify: ${finding}`);
    }
    const amid = random.pick(life.points);
    for (const [i, point] of [amid, last].entries()) await this.#crash(life, point, `${path}.${i}`, 1, keptBy(point.promises));
  }

  /**
   * A write that landed elsewhere while the disk said that all was well. No log can have what never arrived; it must
   * refuse to open, or hold nothing that was not written.
   */
  async #misdirect(scenario: Scenario, at: Step, path: string): Promise<void> {
    if (!this.#wanted(path) || this.failures.length > 0) return;
    const random = new Seeded(scenario.seed + at.index);
    const fault: Fault = { kind: 'misdirected', offset: 512 * random.below(8) };
    const life = await live(scenario, this.#options.openLog, {
      fault: (step) => (step.index === at.index ? fault : undefined),
      pointsFrom: at.index + 1,
    });
    this.#judgeLife(life, path);
    const last = life.points.at(-1);
    if (!last) return;
    this.states++;
    this.marks.misdirected++;
    let entries: readonly CommittedEntry[];
    try {
      ({ entries } = await this.#openImage(crashImage(last.disk, 'all'), life, path));
    } catch (error) {
      if (!(error instanceof ServiceError)) this.#report(path, messageOf(error));
      return;
    }
    const wrong = life.history.faultOf(entries, 0, last.promises);
    if (wrong) this.#report(path, wrong);
  }

  /** The machine stops for good at one call: whatever the program still does, it is not acknowledged. */
  async #powerOff(scenario: Scenario, at: number, path: string): Promise<void> {
    if (!this.#wanted(path)) return;
    this.marks.poweredOff++;
    const life = await live(scenario, this.#options.openLog, {
      fault: (step, disk) => {
        if (step.index === at) disk.powerOff();
        return undefined;
      },
      pointsFrom: at + 1,
    });
    const point = life.points.at(-1);
    if (point) await this.#crash(life, point, path, 1, keptBy(point.promises));
  }

  /** The process dies and the machine lives: what it had written is there, and what a restart has shown stays. */
  async #kill(life: Life, point: CrashPoint, path: string): Promise<void> {
    if (!this.#wanted(path)) return;
    this.marks.killed++;
    const disk = FaultyDisk.afterKill(point.disk);
    let entries: readonly CommittedEntry[];
    try {
      ({ entries } = await this.#open(disk, life, path));
    } catch (error) {
      return this.#report(path, `does not open after a kill: ${messageOf(error)}`);
    }
    const { promises } = point;
    const wrong = life.history.faultOf(entries, Math.max(promises.written, promises.synced), promises);
    if (wrong) this.#report(path, `after a kill: ${wrong}`);
    const seen = submissionsIn(life.history, entries);
    for (const survivors of ['none', new Seeded(life.scenario.seed + point.step)] as const) {
      await this.#check(crashImage(disk.state(), survivors), life, promises, seen, `${path}.then.${typeof survivors}`);
    }
  }

  /** A bit that turns inside a log that was closed is never taken for a torn tail. */
  async #corrupt(life: Life, random: Seeded): Promise<void> {
    const image = crashImage(life.points.at(-1)!.disk, 'none');
    const logs = [...image.files].filter(([path, bytes]) => path.endsWith('.log') && bytes.length > 0);
    for (let i = 0; i < 4; i++) {
      const path = `rot.${i}`;
      const [name, bytes] = random.pick(logs);
      const rotten = bytes.slice();
      const at = random.below(rotten.length);
      rotten[at] = rotten[at]! ^ (1 << random.below(8));
      const files = new Map(image.files).set(name, rotten);
      if (!this.#wanted(path)) continue;
      this.states++;
      const found = { directories: image.directories, files };
      try {
        await this.#openFully(new FaultyDisk({}, found), life.scenario);
        this.#report(path, `opened in spite of a turned bit in ${name} at ${at}`);
      } catch {
        this.marks.haltOnCorruption++;
      }
      await this.#readRotten(found, life, path);
    }
  }

  /** Going on from a saved state reads little, and may miss the bit; whoever reads all of the log then does not. */
  async #readRotten(image: Image, life: Life, path: string): Promise<void> {
    for (let i = 0; i < 2; i++) {
      try {
        const { entries } = await this.#openImage(image, life, `${path}.${i}`);
        this.#report(path, `${entries.length} entries were read in spite of a turned bit`);
      } catch (error) {
        if (error instanceof AssertionError) this.#report(path, messageOf(error));
      }
    }
  }

  /** One state: what a restart finds, keeps, and goes on from. */
  async #check(
    image: Image,
    life: Life,
    promises: Promises,
    mustHold: number,
    path: string,
    among: Among = everyState,
  ): Promise<void> {
    if (!this.#wanted(path) || this.failures.length > 0) return;
    this.states++;
    const { scenario, history } = life;
    try {
      const alarm = this.states % 4 === 0 ? await this.#alarmOver(image) : null;
      if (alarm) return this.#report(path, `before recovery, verify: ${alarm}`);
      const { log, entries, left: recovered, settled: synced } = await this.#openImage(image, life, path, among);
      const wrong = history.faultOf(entries, mustHold, promises);
      if (wrong) return this.#report(path, wrong);
      if (log.next().position < promises.visible) return this.#report(path, 'positions that readers had seen are gone');
      if (log.status().recovery.cutBytes > 0) this.marks.tornTailCut++;
      const head = log.head();
      const given = history.roots.get(head.size);
      if (given && Buffer.compare(given, head.root) !== 0) return this.#report(path, 'the root is not the one given out before');

      if (!synced) return this.#report(path, 'recovery left changes unsynced');
      // What follows depends on nothing but this image, and many crashes are recovered to the same one.
      const digest = digestOf(recovered);
      if (this.#followed.has(digest)) return;
      this.#followed.add(digest);
      // Where the first opening began a log, it wrote an entry of its own: only the next one is a mere recovery.
      const settled = entries.length > 1 ? recovered : await this.#reopened(recovered, scenario);
      const again = new FaultyDisk({}, settled);
      const { log: second } = await this.#open(again, life, `${path}.again`, among);
      if (!sameImage(again.visible(), settled)) return this.#report(path, 'a second recovery changed the disk');
      const final = await this.#appendOnce(second, again, entries, path);
      if (!final) return;
      const finding = await this.#alarmOver(final);
      if (finding) this.#report(path, `verify: ${finding}`);
    } catch (error) {
      this.#report(path, messageOf(error));
    }
  }

  /** Appends to a recovered log, cuts the power, and expects it back: the image then, or null after a failure. */
  async #appendOnce(log: LogStore, disk: FaultyDisk, entries: readonly CommittedEntry[], path: string): Promise<Image | null> {
    const history = History.of(contentOf(entries));
    const random = new Seeded(this.#seed + entries.length);
    const context = contextOf(1, history.submissions.length);
    const appended = log.append([{ context, body: rowsBody(random, history.submissions.length) }], { sync: true });
    const acknowledged = history.follow(appended);
    if (!(await drive(acknowledged, new SimulatedClock())) || !(await acknowledged)) {
      this.#report(path, 'a recovered log refused an append');
      return null;
    }
    const image = crashImage(disk.state(), 'none');
    const third = await this.#openFully(new FaultyDisk({}, image), scenarioOf(this.#seed));
    const promises = history.promises();
    const wrong = history.faultOf(await collect(third), promises.submitted, promises);
    if (!wrong) return image;
    this.#report(path, `after one more append: ${wrong}`);
    return null;
  }

  /** What a verification without keys finds, if anything. A crash that came before there was a log is no finding. */
  #alarmOver(image: Image): Promise<string | null> {
    return this.#openings.alarm(image, async () => {
      const { findings } = await verifyDirectory({ disk: imageDisk(image), directory: this.#options.directory });
      const finding = findings.find(({ what }) => what !== 'there is no log here');
      return finding ? `${finding.place}: ${finding.what}` : null;
    });
  }

  async #reopened(image: Image, scenario: Scenario): Promise<Image> {
    const disk = new FaultyDisk({}, image);
    await this.#openFully(disk, scenario);
    return crashImage(disk.state(), 'none');
  }

  /** One of the life's saved states as often as not. */
  #from({ history }: Life, path: string, among: Among): From {
    const random = new Seeded(hashOf(path));
    const kept = history.kept.filter(among);
    return kept.length === 0 || random.chance(0.5) ? null : random.pick(kept);
  }

  #markFrom(from: From, opened: OpenedLog | null): void {
    if (!from || !opened) return;
    if (opened.resumed) this.marks.resumed++;
    else this.marks.resumeRefused++;
  }

  async #open(disk: FaultyDisk, life: Life, path: string, among: Among = everyState): Promise<OpenedLog> {
    const from = this.#from(life, path, among);
    const opened = await this.#opened(disk, life.scenario, from);
    this.#markFrom(from, opened);
    return opened;
  }

  /** Opened as any other life's same image was: nobody may write to its log. */
  async #openImage(
    image: Image,
    life: Life,
    path: string,
    among: Among = everyState,
  ): Promise<OpenedLog & { left: Image; settled: boolean }> {
    const from = this.#from(life, path, among);
    const { opened, error, left, settled } = await this.#openings.open(image, from);
    this.#markFrom(from, opened);
    if (!opened) throw error;
    return { ...opened, left, settled };
  }

  /** Throws an AssertionError when a log that goes on from a saved state replays something else than what follows it. */
  async #opened(disk: FaultyDisk, scenario: Scenario, from: From, read = true): Promise<OpenedLog> {
    if (!from) {
      const log = await this.#openFully(disk, scenario);
      return { log, entries: read ? await collect(log) : [], resumed: false };
    }
    const replayed: CommittedEntry[] = [];
    let refused: string | null = null;
    const log = await this.#openFully(disk, scenario, {
      resume: from.resume((reason) => {
        assert(refused === null && replayed.length === 0, 'a state is refused once, and before anything is replayed');
        refused = reason;
      }),
      replay: (entry) => void replayed.push(entry),
    });
    const expected = refused === null ? from.leaves : 0;
    assert(log.head().size >= from.leaves || refused !== null, 'a log is not shorter than a state that it went on from');
    const first = replayed[0]?.leaf ?? log.head().size;
    assert(first === expected, `replay begins with entry ${expected}, not with ${first} (${refused ?? 'resumed'})`);
    const entries = await collect(log);
    const whole = entries.slice(expected);
    assert(whole.length === replayed.length, `${replayed.length} entries were replayed, and ${whole.length} are there`);
    for (const [i, entry] of whole.entries())
      assert(textOf(entry) === textOf(replayed[i]!), `entry ${entry.leaf} was replayed as another`);
    return { log, entries, resumed: refused === null };
  }

  async #openFully(
    disk: FaultyDisk,
    scenario: Scenario,
    more: Pick<Parameters<OpenLog>[0], 'resume' | 'replay'> = {},
  ): Promise<LogStore> {
    const { walSync, fileBytes, seed } = scenario;
    const random = new Seeded(seed + 4 + disk.steps);
    return await this.#options.openLog({ disk, clock: new SimulatedClock(), random, walSync, fileBytes, ...more });
  }

  #judgeLife(life: Life, path: string): void {
    this.syncsAfterFailure += life.syncsAfterFailure;
    if (life.error) this.#report(path, life.error);
    if (life.syncsAfterFailure > 0) this.#report(path, 'fsync was called again after it had failed');
  }

  #mark(life: Life): void {
    if (life.files > 1) this.marks.rolled++;
    if (life.closed) this.marks.closedCleanly++;
  }

  #wanted(path: string): boolean {
    const { only } = this.#options;
    return only === undefined || only.startsWith(path) || path.startsWith(only);
  }

  #report(path: string, what: string): void {
    this.failures.push({ seed: this.#seed, path, what });
  }
}

async function collect(log: LogStore): Promise<CommittedEntry[]> {
  const entries: CommittedEntry[] = [];
  for await (const entry of log.read(0)) entries.push(entry);
  return entries;
}

function contentOf(entries: readonly CommittedEntry[]): CommittedEntry[] {
  return entries.filter(({ body }) => body.kind !== 'seal' && body.kind !== 'genesis');
}

/** How many submissions are among recovered entries. */
function submissionsIn(history: History, entries: readonly CommittedEntry[]): number {
  let left = contentOf(entries).length;
  let count = 0;
  while (left > 0) left -= history.submissions[count++]!.entries.length;
  return count;
}

/** FNV-1a: which choice a path makes depends on nothing else, so that a state can be looked at alone. */
function hashOf(path: string): number {
  let hash = 0x811c_9dc5;
  for (let i = 0; i < path.length; i++) hash = Math.imul(hash ^ path.charCodeAt(i), 0x0100_0193);
  return hash;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
