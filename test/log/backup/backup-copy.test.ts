/** A log is copied, into a backup and out of one, and read behind the copying. */
import { beforeEach, describe, expect, it } from 'vitest';
import { copyLog, type CopyRequest, handedKeys } from '../../../src/log/backup/backup-copy.ts';
import { CopiedPrefix } from '../../../src/log/disk/copied-prefix.ts';
import { copyAndRead, FileCopier } from '../../../src/log/backup/file-copier.ts';
import { formatManifest, logFileName } from '../../../src/log/files/manifest.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { hexOf, sha256Hex } from '../../../src/log/bytes/sha256.ts';
import { TestRandom, TestStore } from '../../harness.ts';
import { type Fault, FaultyDisk, type Step } from '../../simulation/faulty-disk.ts';

const yieldTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a copy of a log', () => {
  let disk: FaultyDisk;
  let steps: Step[];
  let fault: (step: Step) => Fault | undefined;
  let request: CopyRequest;
  let store: TestStore;
  let bytes: number;

  beforeEach(async () => {
    steps = [];
    fault = () => undefined;
    const beforeStep = (step: Step): Fault | undefined => {
      steps.push(step);
      return fault(step);
    };
    disk = new FaultyDisk({ beforeStep });
    store = await TestStore.open('2024-01-01', { SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data' }, { disk });
    // What does not pack.
    const random = new TestRandom(9);
    const name = (): string => Buffer.from(random.fill(new Uint8Array(3_000))).toString('base64');
    for (let batch = 0; batch < 20; batch++)
      await store.put(
        'Person',
        Array.from({ length: 100 }, (_, i) => ({ id: `${batch}-${i}`, name: name() })),
      );
    await store.service.store.log.seal();
    const { manifest, openLength, head } = await store.service.store.log.capture();
    const log = manifest.files.map((record) => ({
      name: `log/${logFileName(record)}`,
      length: record.state === 'sealed' ? record.length : openLength,
    }));
    bytes = log.reduce((sum, { length }) => sum + length, 0);
    request = {
      directory: '/data',
      home: '/copy',
      log,
      manifest: Buffer.from(formatManifest(manifest), 'latin1'),
      head: { note: head.note, size: head.size, root: hexOf(head.root) },
      keys: handedKeys(store.service.store.keyring),
    };
    expect(bytes).toBeGreaterThan(4 << 20);
    steps.length = 0;
  });

  it('holds the bytes, and says how far it is', async () => {
    const told: number[] = [];
    const copied = await copyLog(request, { disk, yieldTurn, onProgress: (done, total) => told.push(done, total) });
    expect(copied.files.map(({ name }) => name)).toEqual([
      ...request.log.map(({ name }) => name),
      'log/manifest',
      'log/checkpoint',
    ]);
    for (const { name, length, sha256 } of copied.files) {
      const content = (await disk.readFile(`/copy/${name}`))!;
      expect([name, content.length, sha256Hex(content)]).toEqual([name, length, sha256]);
    }
    const done = told.filter((_, i) => i % 2 === 0);
    expect(done).toEqual([...done].sort((a, b) => a - b));
    expect(told.slice(-2)).toEqual([2 * bytes, 2 * bytes]);
  });

  it('is read back while it is written, and durable before it resolves', async () => {
    await copyLog(request, { disk, yieldTurn });
    const path = `/copy/${request.log[0]!.name}`;
    const of = (kind: Step['kind']): number[] =>
      steps.filter((step) => step.kind === kind && step.path === path).map(({ index }) => index);
    expect(of('read')[0]).toBeLessThan(of('write').at(-1)!);
    expect(of('sync')).toHaveLength(1);
    expect(of('sync')[0]).toBeGreaterThan(of('write').at(-1)!);
    expect(steps.at(-1)!.kind === 'syncDirectory' || of('read').at(-1)! > of('sync')[0]!).toBe(true);
  });

  it.each<[string, (step: Step) => boolean]>([
    ['can not be read', ({ kind, path }) => kind === 'read' && path.startsWith('/data/log/')],
    ['can not be written', ({ kind, path }) => kind === 'write' && path.startsWith('/copy/log/0')],
    ['can not be brought to the disk', ({ kind, path }) => kind === 'sync' && path.startsWith('/copy/log/0')],
    ['can not be read back', ({ kind, path }) => kind === 'read' && path.startsWith('/copy/log/0')],
  ])('that %s is refused once nobody is at it any more', async (_, hit) => {
    for (const nth of [1, 3]) {
      let [hits, failing] = [0, false];
      fault = (step) => {
        if (!hit(step) || (!failing && ++hits < nth)) return undefined;
        // A disk that has failed goes on to.
        failing = true;
        return { kind: 'error', code: 'EIO', bytes: 0 };
      };
      const copying = copyLog(request, { disk, yieldTurn });
      if (nth > 1 && hit({ kind: 'sync', path: '/copy/log/0' } as Step)) await copying;
      else await expect(copying).rejects.toThrow(/EIO/);
      const { length } = steps;
      for (let turn = 0; turn < 20; turn++) await yieldTurn();
      expect(steps).toHaveLength(length);
      fault = () => undefined;
      for (const name of await disk.list('/copy/log')) await disk.unlink(`/copy/log/${name}`);
    }
  });

  it('ends when whoever it yields to says so', async () => {
    for (const turns of [1, 2, 5]) {
      let left = turns;
      const ending = async (): Promise<void> => {
        if (--left < 0) throw new Error('the store is draining');
        await yieldTurn();
      };
      await expect(copyLog(request, { disk, yieldTurn: ending })).rejects.toThrow('draining');
      for (const name of await disk.list('/copy/log')) await disk.unlink(`/copy/log/${name}`);
    }
  });

  it('of another head is refused', async () => {
    const head = { ...request.head, root: '0'.repeat(64) };
    await expect(copyLog({ ...request, head }, { disk, yieldTurn })).rejects.toThrow(/another root than the signed head/);
  });

  describe('out of a backup', () => {
    let backup: string;
    const path = '/restored/log/00000000.log';
    beforeEach(async () => {
      ({ backup } = await store.service.upkeep.backups.create());
      steps.length = 0;
    });

    it('is replayed while it is written, and durable before it counts', async () => {
      await store.service.upkeep.backups.restore(backup, '/restored');
      const of = (kind: Step['kind'], at = path): number[] =>
        steps.filter((step) => step.kind === kind && step.path === at).map(({ index }) => index);
      expect(of('read')[0]).toBeLessThan(of('write').at(-1)!);
      const counts = of('unlink', '/restored/.annals-restoring').at(-1)!;
      expect([of('sync')[0]! > of('write').at(-1)!, of('sync')[0]! < counts]).toEqual([true, true]);
      expect(of('syncDirectory', '/restored/log').some((index) => index < counts)).toBe(true);
    });

    it.each<[string, (step: Step) => boolean]>([
      ['can not be read', (step) => step.kind === 'read' && step.path.endsWith(`${backup}/log/00000000.log`)],
      ['can not be written', (step) => step.kind === 'write' && step.path === path],
      ['can not be brought to the disk', (step) => step.kind === 'sync' && step.path === path],
      ['can not be replayed', (step) => step.kind === 'read' && step.path === path],
    ])('that %s is refused once nobody is at it any more, and leaves nothing', async (_, hit) => {
      fault = (step) => (hit(step) ? { kind: 'error', code: 'EIO', bytes: 0 } : undefined);
      await expect(store.service.upkeep.backups.restore(backup, '/restored')).rejects.toThrow(/EIO/);
      const { length } = steps;
      for (let turn = 0; turn < 20; turn++) await yieldTurn();
      expect(steps).toHaveLength(length);
      expect(await disk.list('/restored')).toEqual([]);
    });

    it('with a byte that turned is refused for its checksum, though it was read by then', async () => {
      const file = await disk.open(`/data/backups/${backup}/log/00000000.log`, 'write');
      const byte = new Uint8Array(1);
      await file.read(byte, 2_000);
      await file.write(Uint8Array.of(byte[0]! ^ 1), 2_000);
      await file.close();
      await expect(store.service.upkeep.backups.restore(backup, '/restored')).rejects.toMatchObject({
        code: 'REL_UNPROCESSABLE',
        message: expect.stringContaining('another checksum') as string,
      });
      expect(await disk.list('/restored')).toEqual([]);
    });
  });
});

describe('what is behind a copy', () => {
  it('waits for its bytes, file after file, and hears of a failure', async () => {
    const disk = new MemoryDisk();
    await disk.makeDirectory('/c');
    const front = new CopiedPrefix([
      { path: '/c/a', length: 10 },
      { path: '/c/b', length: 4 },
    ]);
    const behind = front.limitedDisk(disk);
    expect([await behind.size('/c/a'), await behind.size('/c/b'), await behind.size('/c/x')]).toEqual([10, 4, undefined]);
    const said: string[] = [];
    const read = async (path: string, offset: number, length: number): Promise<void> => {
      try {
        const file = await behind.open(path, 'read');
        const target = new Uint8Array(length);
        said.push(`${path} ${offset} ${await file.read(target, offset)} ${target.join('')}`);
        await file.close();
      } catch (error) {
        said.push(`${path} ${offset} ${(error as Error).message}`);
      }
    };
    const reading = [read('/c/a', 0, 4), read('/c/a', 4, 6), read('/c/b', 0, 2), read('/c/b', 0, 4)];
    await yieldTurn();
    expect(said).toEqual([]);
    await disk.replaceFile('/c/a', Uint8Array.of(1, 1, 1, 1, 2, 2, 2, 2, 2, 2));
    front.advance(5);
    await yieldTurn();
    expect(said).toEqual(['/c/a 0 4 1111']);
    front.advance(5);
    await yieldTurn();
    expect(said.slice(1)).toEqual(['/c/a 4 6 222222']);
    await disk.replaceFile('/c/b', Uint8Array.of(3, 3));
    front.advance(2);
    await yieldTurn();
    expect(said.slice(2)).toEqual(['/c/b 0 2 33']);
    front.fail(new Error('no more'));
    await Promise.all(reading);
    await read('/c/b', 0, 3);
    await read('/c/a', 0, 1);
    expect(said.slice(3)).toEqual(['/c/b 0 no more', '/c/b 0 no more', '/c/a 0 1 1']);
  });

  it('waits for no byte of a file that has none', async () => {
    const disk = new MemoryDisk();
    await disk.makeDirectory('/c');
    await disk.replaceFile('/c/empty', new Uint8Array(0));
    const behind = new CopiedPrefix([{ path: '/c/empty', length: 0 }]).limitedDisk(disk);
    const file = await Promise.race([behind.open('/c/empty', 'read'), yieldTurn()]);
    expect(file?.path).toBe('/c/empty');
  });
});

describe('files that are copied', () => {
  it('are let go of before a failure is told', async () => {
    const disk = new MemoryDisk();
    for (const directory of ['/from', '/to']) await disk.makeDirectory(directory);
    await disk.replaceFile('/from/a', Uint8Array.of(1));
    let release = (): void => undefined;
    const syncing = new Promise<void>((resolve) => (release = resolve));
    const open = disk.open.bind(disk);
    disk.open = async (path, mode) => {
      const file = await open(path, mode);
      if (path === '/to/a') file.sync = () => syncing;
      return file;
    };
    const files = [
      { name: 'a', length: 1 },
      { name: 'missing', length: 1 },
    ];
    const copier = new FileCopier({ disk, yieldTurn, from: '/from', to: '/to' });
    let told = '';
    const copying = copyAndRead(
      copier,
      { disk, to: '/to' },
      files,
      async (copy) => {
        for (const file of files) await copy(file);
      },
      async () => undefined,
    ).catch((error: unknown) => void (told = String(error)));
    for (let turn = 0; turn < 20; turn++) await yieldTurn();
    expect(told).toBe('');
    release();
    await copying;
    expect(told).toMatch(/missing/);
  });
});
