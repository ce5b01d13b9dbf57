/**
 * Keys of subjects on a disk that dies before each of its calls. What was said to be on disk opens afterwards, what was said
 * to be destroyed doesn't, nothing is half one and half the other, and what is made after the restart lasts as well.
 */
import * as crypto from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { SubjectKeyFiles } from '../../../src/log/keys/subject-keys.ts';
import { crashImage, sameImage } from '../../simulation/crash-image.ts';
import { type DiskState, FaultyDisk, type Image } from '../../simulation/faulty-disk.ts';
import { Seeded } from '../../simulation/seeded.ts';
import { SeededRandom } from '../world.ts';

const directory = '/keys';
const dataKey = crypto.createSecretKey(new Uint8Array(32).fill(1));
const dataKeys = { activeDataKey: 1, open: () => dataKey };

/** As the keyring does: a name that is seen may not be durable yet. */
async function open(disk: FaultyDisk, seed: string): Promise<SubjectKeyFiles> {
  await disk.syncDirectory(directory);
  const random = new SeededRandom(seed);
  return await SubjectKeyFiles.open({ disk, random, directory, dataKeys, hmacKey: new Uint8Array(32), shardKeysMax: 4 });
}

/** What somebody outside knows, and what each restart must hold to. */
class Promises {
  readonly keys = new Map<string, crypto.KeyObject>();
  readonly durable = new Set<string>();
  readonly destroying = new Set<string>();
  readonly destroyed = new Set<string>();

  copy(): Promises {
    const copy = new Promises();
    for (const [id, key] of this.keys) copy.keys.set(id, key);
    for (const name of ['durable', 'destroying', 'destroyed'] as const) for (const id of this[name]) copy[name].add(id);
    return copy;
  }

  faultOf(subjects: SubjectKeyFiles): string | null {
    const ledger = new Set(subjects.tombstones().map(({ id }) => id));
    for (const [id, key] of this.keys) {
      let found: crypto.KeyObject | null | undefined;
      try {
        found = subjects.opening(id);
      } catch {
        found = undefined;
      }
      if (found && !found.equals(key)) return `${id} opens with another key`;
      if (found && this.destroyed.has(id)) return `${id} was destroyed and opens`;
      if (found === undefined && this.durable.has(id)) return `${id} was on disk and is lost`;
      if (found === null && !this.destroying.has(id)) return `${id} is called destroyed, and nobody asked for that`;
      if ((found === null) !== ledger.has(id)) return `the ledger tells otherwise of ${id}`;
    }
    return null;
  }
}

class Life {
  readonly promises = new Promises();
  readonly subjects: SubjectKeyFiles;
  #subject = 0;

  constructor(subjects: SubjectKeyFiles) {
    this.subjects = subjects;
  }

  make(count: number): string[] {
    return Array.from({ length: count }, () => {
      const { id, key } = this.subjects.sealing('t', `subject ${this.#subject++}`);
      this.promises.keys.set(id, key);
      return id;
    });
  }

  async durable(ids: readonly string[]): Promise<void> {
    await this.subjects.durable();
    for (const id of ids) this.promises.durable.add(id);
  }

  async destroy(ids: readonly string[]): Promise<void> {
    for (const id of ids) this.promises.destroying.add(id);
    await this.subjects.destroy(ids, `receipt of ${ids.length}`);
    for (const id of ids) this.promises.destroyed.add(id);
  }

  /** Appends, full files, the next file, keys destroyed in one file and in several, before they were written, beside others. */
  async run(): Promise<void> {
    const [a, b] = this.make(2) as [string, string];
    await this.durable([a, b]);
    const [c] = this.make(1) as [string];
    await this.durable([c]);
    await this.destroy([b]);
    const more = this.make(3);
    await this.durable(more);
    const unwritten = this.make(2);
    await this.destroy([unwritten[0]!]);
    await this.durable(unwritten);
    const beside = this.make(6);
    await Promise.all([this.durable(beside), this.destroy([a, more[0]!, unwritten[1]!]), this.durable(beside)]);
    await this.durable(this.make(1));
    await this.subjects.close();
  }
}

interface Point {
  readonly step: number;
  readonly state: DiskState;
  readonly promises: Promises;
}

async function pointsOf(run: (life: Life) => Promise<void>): Promise<Point[]> {
  const points: Point[] = [];
  let life: Life | null = null;
  const disk: FaultyDisk = new FaultyDisk({
    beforeStep: ({ index }) => {
      if (life) points.push({ step: index, state: disk.state(), promises: life.promises.copy() });
      return undefined;
    },
  });
  await disk.makeDirectory(directory);
  life = new Life(await open(disk, 'life'));
  await run(life);
  points.push({ step: disk.steps, state: disk.state(), promises: life.promises.copy() });
  return points;
}

/** Opens what a crash left, writes to it, cuts the power, opens it again. */
async function follow(disk: FaultyDisk, promises: Promises, seed: string): Promise<void> {
  const life = new Life(await open(disk, seed));
  expect(promises.faultOf(life.subjects)).toBeNull();
  const before = [...promises.keys].filter(([id]) => standing(life.subjects, id));
  const made = life.make(1);
  await life.durable([...made, ...before.map(([id]) => id)]);
  for (const [id, key] of before) life.promises.keys.set(id, key);
  const again = await open(new FaultyDisk({}, crashImage(disk.state(), 'none')), `${seed} again`);
  expect(life.promises.faultOf(again)).toBeNull();
  expect(promises.faultOf(again)).toBeNull();
  expect(again.durable()).toBe(again.durable());
}

function standing(subjects: SubjectKeyFiles, id: string): boolean {
  try {
    return subjects.opening(id) !== null;
  } catch {
    return false;
  }
}

describe('keys of subjects', () => {
  test('survive a crash before every disk call', async () => {
    const points = await pointsOf((life) => life.run());
    expect(points.length).toBeGreaterThan(40);
    let images = 0;
    for (const { step, state, promises } of points) {
      const seen: Image[] = [];
      for (const survivors of ['none', 'all', ...[1, 2, 3, 4].map((seed) => new Seeded(step * 10 + seed))] as const) {
        const image = crashImage(state, survivors);
        if (seen.some((other) => sameImage(other, image))) continue;
        seen.push(image);
        images++;
        await follow(new FaultyDisk({}, image), promises, `image ${step}.${seen.length}`);
      }
    }
    expect(images).toBeGreaterThan(points.length);
  });

  test('survive a process that is killed before every disk call, and a power cut after the next one wrote', async () => {
    for (const { step, state, promises } of await pointsOf((life) => life.run()))
      await follow(FaultyDisk.afterKill(state), promises, `kill ${step}`);
  });

  test('a failing disk call is told, fails no later one, and loses nothing', async () => {
    const steps = (await pointsOf((life) => life.run())).length;
    let told = 0;
    for (let failing = 3; failing < steps + 2; failing++) {
      for (const bytes of [0, 7]) {
        const disk = new FaultyDisk({
          beforeStep: ({ index }) => (index === failing ? { kind: 'error', code: 'EIO', bytes } : undefined),
        });
        await disk.makeDirectory(directory);
        const life = new Life(await open(disk, 'life'));
        const failed = await life.run().then(
          () => false,
          () => true,
        );
        if (failed) told++;
        expect(disk.syncsAfterFailure).toBe(0);
        // The same process goes on: what failed is done again, from the beginning.
        await life.durable([...life.promises.keys.keys()].filter((id) => standing(life.subjects, id)));
        await life.destroy([...life.promises.destroying]);
        expect(life.promises.faultOf(life.subjects)).toBeNull();
        await follow(new FaultyDisk({}, crashImage(disk.state(), 'none')), life.promises, `failing ${failing}`);
      }
    }
    expect(told).toBeGreaterThan(steps);
  });
});
