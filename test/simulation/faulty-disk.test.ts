/** The simulated disk loses what a real one may lose, and nothing that it promised to keep. */
import { describe, expect, it } from 'vitest';
import { crashImage, isSettled, sameImage } from './crash-image.ts';
import { FaultyDisk, type Image } from './faulty-disk.ts';
import { Seeded } from './seeded.ts';
import { applied, type Change, tornFile } from './torn-file.ts';
import { SimulatedClock, settle, Turnstile } from './world.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (content: Uint8Array | undefined): string | undefined => content && new TextDecoder().decode(content);
const names = (image: Image): string[] => [...image.files.keys()].sort();

async function oneFile(disk: FaultyDisk) {
  await disk.makeDirectory('/d');
  const file = await disk.open('/d/a', 'create');
  await file.write(bytes('synced '), 0);
  return file;
}

describe('what survives a crash', () => {
  it('keeps bytes by the sync of their file and names by the sync of their directory', async () => {
    const disk = new FaultyDisk();
    const file = await oneFile(disk);
    await file.sync();
    expect(names(crashImage(disk.state(), 'none'))).toEqual([]);
    await disk.syncDirectory('/d');
    expect(text(crashImage(disk.state(), 'none').files.get('/d/a'))).toBe('synced ');
    expect(isSettled(disk.state())).toBe(true);
    await file.write(bytes('pending'), 7);
    expect(text(crashImage(disk.state(), 'none').files.get('/d/a'))).toBe('synced ');
    expect(text(crashImage(disk.state(), 'all').files.get('/d/a'))).toBe('synced pending');
    expect(isSettled(disk.state())).toBe(false);
  });

  it('keeps by a sync what was written before it was asked for, and not what is written while it is under way', async () => {
    let end!: () => void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const disk = new FaultyDisk({ turn: async ({ kind }) => void (kind === 'sync' && (await ended)) });
    const file = await oneFile(disk);
    const syncing = file.sync();
    await disk.syncDirectory('/d');
    await file.write(bytes('beside'), 7);
    end();
    await syncing;
    expect(text(crashImage(disk.state(), 'none').files.get('/d/a'))).toBe('synced ');
    expect(text(crashImage(disk.state(), 'all').files.get('/d/a'))).toBe('synced beside');
    await file.sync();
    expect(text(crashImage(disk.state(), 'none').files.get('/d/a'))).toBe('synced beside');
  });

  it('takes a crash point that later calls do not change', async () => {
    const disk = new FaultyDisk();
    const file = await oneFile(disk);
    const before = disk.state();
    await file.write(bytes('more'), 7);
    await file.sync();
    await disk.syncDirectory('/d');
    await disk.unlink('/d/a');
    expect(text(crashImage(before, 'all').files.get('/d/a'))).toBe('synced ');
    expect(names(crashImage(before, 'none'))).toEqual([]);
  });

  it('keeps a prefix of the changes of a directory, and all of a replacement or nothing of it', async () => {
    const disk = new FaultyDisk();
    await disk.makeDirectory('/d');
    await disk.replaceFile('/d/m', bytes('old'));
    const seen = new Set<string>();
    const points: ReturnType<FaultyDisk['state']>[] = [];
    const watched = new FaultyDisk({ beforeStep: () => void points.push(watched.state()) }, crashImage(disk.state(), 'none'));
    await watched.replaceFile('/d/m', bytes('new'));
    points.push(watched.state());
    for (const [i, point] of points.entries()) {
      for (let seed = 0; seed < 50; seed++) seen.add(text(crashImage(point, new Seeded(seed * 100 + i)).files.get('/d/m'))!);
    }
    expect([...seen].sort()).toEqual(['new', 'old']);
    expect(points).toHaveLength(6);
  });

  it('tears, drops and reorders sectors, always within what the file once held', () => {
    const durable = new Uint8Array(1536).fill(1);
    const changes: Change[] = [
      { kind: 'write', offset: 0, bytes: new Uint8Array(1536).fill(2) },
      { kind: 'write', offset: 1536, bytes: new Uint8Array(1024).fill(3) },
      { kind: 'truncate', length: 1024 },
    ];
    const outcomes = new Set<string>();
    let reordered = 0;
    let torn = 0;
    for (let seed = 0; seed < 2000; seed++) {
      const image = tornFile(durable, changes.slice(0, 2), new Seeded(seed));
      expect(image.length).toBeGreaterThanOrEqual(1536);
      const sectors = [0, 1, 2, 3, 4].map((i) => image.subarray(i * 512, (i + 1) * 512));
      if (sectors[0]!.every((b) => b === 1) && sectors[2]!.every((b) => b === 2)) reordered++;
      if (sectors[1]!.includes(1) && sectors[1]!.includes(2)) torn++;
      outcomes.add(Buffer.from(image).toString('base64'));
    }
    expect(outcomes.size).toBeGreaterThan(200);
    expect(reordered).toBeGreaterThan(0);
    expect(torn).toBeGreaterThan(0);
    expect(applied(durable, changes)).toEqual(new Uint8Array(1024).fill(2));
  });

  it('keeps pending changes pending when only the process dies', async () => {
    const disk = new FaultyDisk();
    await oneFile(disk);
    const revived = FaultyDisk.afterKill(disk.state());
    expect(text(await revived.readFile('/d/a'))).toBe('synced ');
    expect(names(crashImage(revived.state(), 'none'))).toEqual([]);
    const file = await revived.open('/d/a', 'write');
    await file.sync();
    await revived.syncDirectory('/d');
    expect(text(crashImage(revived.state(), 'none').files.get('/d/a'))).toBe('synced ');
  });
});

describe('what can go wrong', () => {
  it('drops what a failed sync was to write, shows it all the same, and lies the next time', async () => {
    let failing = true;
    const disk = new FaultyDisk({
      beforeStep: ({ kind }) => (kind === 'sync' && failing ? { kind: 'error', code: 'EIO' } : undefined),
    });
    const file = await oneFile(disk);
    await disk.syncDirectory('/d');
    await expect(file.sync()).rejects.toMatchObject({ code: 'EIO' });
    failing = false;
    expect(disk.syncsAfterFailure).toBe(0);
    await file.sync();
    expect(disk.syncsAfterFailure).toBe(1);
    expect(text(await disk.readFile('/d/a'))).toBe('synced ');
    expect(text(crashImage(disk.state(), 'all').files.get('/d/a'))).toBe('');
    await file.write(bytes('!'), 2);
    await file.sync();
    expect(text(crashImage(disk.state(), 'none').files.get('/d/a'))).toBe('\0\0!');
  });

  it('shortens, misplaces and fails writes, and reads what was there before', async () => {
    const faults = [
      { kind: 'short', bytes: 3 },
      { kind: 'misdirected', offset: 10 },
      { kind: 'error', code: 'ENOSPC', bytes: 1 },
    ] as const;
    let write = 0;
    const disk = new FaultyDisk({
      beforeStep: ({ kind }) => (kind === 'write' ? faults[write++] : kind === 'read' ? { kind: 'stale' } : undefined),
    });
    await disk.makeDirectory('/d');
    const file = await disk.open('/d/a', 'create');
    expect(await file.write(bytes('abcdef'), 0)).toBe(3);
    expect(await file.write(bytes('xyz'), 3)).toBe(3);
    await expect(file.write(bytes('!!'), 13)).rejects.toMatchObject({ code: 'ENOSPC' });
    expect(await file.read(new Uint8Array(20), 0)).toBe(0);
    await file.sync();
    const target = new Uint8Array(20);
    expect(text(target.subarray(0, await file.read(target, 0)))).toBe('abc\0\0\0\0\0\0\0xyz!');
  });

  it('refuses every call once the power is off', async () => {
    const disk: FaultyDisk = new FaultyDisk({ beforeStep: ({ index }) => void (index === 3 && disk.powerOff()) });
    const file = await oneFile(disk);
    await expect(file.write(bytes('lost'), 7)).rejects.toMatchObject({ code: 'EPOWER' });
    await expect(file.sync()).rejects.toMatchObject({ code: 'EPOWER' });
    await expect(disk.open('/d/b', 'create')).rejects.toMatchObject({ code: 'EPOWER' });
    expect(text(crashImage(disk.state(), 'all').files.get('/d/a'))).toBe('synced ');
  });
});

describe('the world around it', () => {
  it('is decided by its seed', async () => {
    const run = async (seed: number): Promise<string[]> => {
      const order: string[] = [];
      const turnstile = new Turnstile(new Seeded(seed));
      const disk = new FaultyDisk({ turn: turnstile.turn, beforeStep: ({ path }) => void order.push(path) });
      for (const name of ['a', 'b', 'c', 'd', 'e']) void disk.size(`/${name}`);
      do await settle();
      while (turnstile.admit());
      return order;
    };
    expect(await run(1)).toEqual(await run(1));
    expect((await run(1)).sort()).toEqual(['/a', '/b', '/c', '/d', '/e']);
    expect(new Set((await Promise.all([1, 2, 3, 4].map(run))).map(String)).size).toBeGreaterThan(1);
  });

  it('wakes sleepers in the order of their times, and at once when they are called off', async () => {
    const clock = new SimulatedClock();
    const woken: string[] = [];
    const abort = new AbortController();
    void clock.sleep(20).then(() => woken.push('late'));
    void clock.sleep(10).then(() => woken.push('early'));
    void clock.sleep(99, abort.signal).then(() => woken.push('called off'));
    abort.abort();
    while (clock.advance()) await settle();
    expect(woken).toEqual(['called off', 'early', 'late']);
    expect(clock.monotonicMs()).toBe(20);
  });

  it('tells equal images from different ones', () => {
    const image = (content: string): Image => ({ directories: new Set(), files: new Map([['/a', bytes(content)]]) });
    expect(sameImage(image('x'), image('x'))).toBe(true);
    expect(sameImage(image('x'), image('y'))).toBe(false);
  });
});
