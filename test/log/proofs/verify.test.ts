/** The fsck says what a directory holds, with keys and without, and calls nothing broken that a crash may leave. */
import { beforeAll, describe, expect, it } from 'vitest';
import { systemRandom } from '../../../src/clock.ts';
import { Blobs } from '../../../src/log/blobs/blobs.ts';
import { type Keyring, openKeyring } from '../../../src/log/keys/keys.ts';
import type { CommittedEntry } from '../../../src/log/entries/entry.ts';
import { LocalLog } from '../../../src/log/log.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { verifyDirectory } from '../../../src/log/proofs/verify.ts';
import { inlineWorker, threadWorker } from '../../../src/log/threads/workers.ts';
import { draftsFor, textOf } from '../../simulation/drafts.ts';
import { Seeded } from '../../simulation/seeded.ts';
import { SimulatedClock } from '../../simulation/world.ts';

const directory = '/data';
const kek = new Uint8Array(32).fill(3);

async function openLog(disk: MemoryDisk, keyring: Keyring): Promise<LocalLog> {
  return await LocalLog.open({
    disk,
    keyring,
    directory,
    clock: new SimulatedClock(),
    random: systemRandom,
    origin: 'test/log/main',
    engineVersion: '0.0.0',
    walSync: 'interval',
    sealIdleMs: 1000,
    limits: { fileBytesMax: 16_384 },
    replay: () => undefined,
  });
}

describe('verifyDirectory', () => {
  let disk: MemoryDisk;
  let keyring: Keyring;

  beforeAll(async () => {
    disk = new MemoryDisk();
    await disk.makeDirectory(directory);
    keyring = await openKeyring({ disk, random: systemRandom, directory, kek });
    const log = await openLog(disk, keyring);
    const random = new Seeded(1);
    for (let i = 0; i < 100; i++) await log.append(draftsFor(random, i, i), { sync: true }).acknowledged;
    await log.seal();
    await log.close();
  });

  it('says the same of sound and of broken logs with bodies opened in a thread beside it', async () => {
    for (const damage of [null, 5_000, 20_000, 40_000]) {
      const copy = new MemoryDisk();
      await copy.makeDirectory(`${directory}/log`);
      for (const name of await disk.list(`${directory}/log`)) {
        const bytes = Uint8Array.from((await disk.readFile(`${directory}/log/${name}`))!);
        if (damage !== null && name === '00000001.log') bytes[damage % bytes.length]! ^= 16;
        await copy.replaceFile(`${directory}/log/${name}`, bytes);
      }
      const taken: string[] = [];
      // Taken down within the call: bodies lie in memory that is used again.
      const onEntry = async (entry: CommittedEntry): Promise<void> => {
        taken.push(textOf(entry));
        await new Promise((resolve) => setImmediate(resolve));
        taken.push(textOf(entry));
      };
      const report = await verifyDirectory({ disk: copy, directory, keyring, onEntry });
      expect(report.ok).toBe(damage === null);
      for (const startWorker of [threadWorker, inlineWorker]) {
        const openBeside = { startWorker, bytesMin: 0, windowBytes: 3000, poison: true };
        expect(await verifyDirectory({ disk: copy, directory, keyring, openBeside })).toEqual(report);
        const inTurn = taken.splice(0);
        expect(await verifyDirectory({ disk: copy, directory, keyring, openBeside, onEntry })).toEqual(report);
        expect(taken).toEqual(inTurn);
      }
    }
  });

  it('counts what is there and gives the root that the log gives', async () => {
    const log = await openLog(disk, keyring);
    const { leaves, positions, files } = log.status();
    const root = Buffer.from(log.head().root).toString('hex');
    await log.close();
    const entries: number[] = [];
    const progress: number[] = [];
    const report = await verifyDirectory({
      disk,
      directory,
      keyring,
      onEntry: ({ leaf }) => void entries.push(leaf),
      onProgress: (bytes, total) => progress.push(bytes / total),
    });
    expect(report).toMatchObject({ ok: true, findings: [], notes: [], leaves, positions, files, root, bodiesOpened: leaves });
    expect(report.checkpoint).toEqual({ size: leaves, signature: 'verified' });
    expect(report.rows).toBeGreaterThan(50);
    expect(entries).toEqual(Array.from({ length: leaves }, (_, i) => i));
    expect(progress.at(-1)).toBe(1);
  });

  it('says what it could not check without keys', async () => {
    const report = await verifyDirectory({ disk, directory });
    expect(report).toMatchObject({ ok: true, bodiesOpened: 0 });
    expect(report.checkpoint?.signature).toBe('not checked');
    expect(report.notes.join('\n')).toMatch(/signature was not checked.*\n.*bodies were not opened/);
  });

  it('refuses a head that other keys have signed', async () => {
    const stranger = await openKeyring({ disk: new MemoryDisk(), random: systemRandom, directory, kek });
    const report = await verifyDirectory({ disk, directory, publicKeys: stranger.publicKeys });
    expect(report.findings).toMatchObject([{ place: 'log/checkpoint', what: expect.stringContaining('no key of this log') }]);
  });

  it('lists every damage, not only the first', async () => {
    const damaged = await copyOf(disk);
    for (const [name, at] of [
      ['00000000.log', 300],
      ['00000001.log', 200],
    ] as const) {
      const file = await damaged.open(`${directory}/log/${name}`, 'write');
      await file.write(Uint8Array.of(0xff, 0xff, 0xff, 0xff), at);
      await file.close();
    }
    await damaged.replaceFile(`${directory}/log/manifest`, new TextEncoder().encode('annals-log 1 nothing\n'));
    const { findings, root } = await verifyDirectory({ disk: damaged, directory, keyring });
    const places = findings.map(({ place }) => place.split('@')[0]);
    expect(new Set(places)).toEqual(new Set(['log/manifest', 'log/00000000.log', 'log/00000001.log', 'log/checkpoint']));
    expect(root).toBeNull();
  });

  it('says that there is no log where there is none', async () => {
    const report = await verifyDirectory({ disk: new MemoryDisk(), directory: '/nowhere' });
    expect(report).toMatchObject({ ok: false, leaves: 0, findings: [{ place: 'log', what: 'there is no log here' }] });
  });

  it('finds a blob that is not what its name says', async () => {
    const copy = await copyOf(disk);
    const blobs = new Blobs({ disk: copy, random: systemRandom, directory, keyring });
    const writer = await blobs.begin('acme');
    await writer.write(new Uint8Array(5000).fill(9));
    const hash = blobs.address(await writer.finish());
    expect(await verifyDirectory({ disk: copy, directory, keyring })).toMatchObject({ ok: true, blobs: 1 });
    const path = `${directory}/blobs/${hash.slice(0, 2)}/${hash}`;
    const bytes = await copy.readFile(path);
    bytes![100] = bytes![100]! ^ 1;
    await copy.replaceFile(path, bytes!);
    const report = await verifyDirectory({ disk: copy, directory, keyring });
    expect(report.findings).toMatchObject([
      { place: path.slice(directory.length + 1), what: expect.stringContaining('damaged') },
    ]);
  });

  it('works beside a log that is being written', async () => {
    const copy = await copyOf(disk);
    const log = await openLog(copy, keyring);
    const random = new Seeded(2);
    for (let i = 0; i < 60; i++) {
      const { acknowledged } = log.append(draftsFor(random, i, i), { sync: true });
      const report = await verifyDirectory({ disk: copy, directory, keyring });
      expect(report.findings).toEqual([]);
      await acknowledged;
      if (i % 20 === 0) await log.seal();
    }
    await log.close();
  });
});

async function copyOf(source: MemoryDisk): Promise<MemoryDisk> {
  const target = new MemoryDisk();
  for (const folder of ['log', 'keys']) {
    await target.makeDirectory(`${directory}/${folder}`);
    for (const name of await source.list(`${directory}/${folder}`)) {
      await target.replaceFile(`${directory}/${folder}/${name}`, (await source.readFile(`${directory}/${folder}/${name}`))!);
    }
  }
  return target;
}
