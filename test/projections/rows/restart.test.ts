/**
 * A store on its derived files: it goes on from them where they are any good, rebuilds where they are not, and gives the same
 * answers in every case, however little memory its rows may take.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import { loadSettings } from '../../../src/config.ts';
import { type Caller, tenantlessCaller } from '../../../src/governance/caller.ts';
import type { Action } from '../../../src/governance/gate-contract.ts';
import { ColumnMemory } from '../../../src/log/values/column-memory.ts';
import { DerivedFile } from '../../../src/log/blobs/derived-file.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import type { Command } from '../../../src/projections/command.ts';
import { Service } from '../../../src/service.ts';
import type { DerivedOptions } from '../../../src/store.ts';
import { TestClock, TestRandom } from '../../harness.ts';
import { batchOf, everything } from '../store.ts';

const operator: Caller = tenantlessCaller('operator', 'operator', 'test');
const folder = '/d/projections';
/** However busy the machine is. */
const soon = { timeout: 60_000 };
const small: DerivedOptions = { machineBytes: 2 ** 30, budgetBytes: 20_000, checkpointBytes: 2 ** 40, segmentRows: 16 };

/** A disk that can be copied as a power cut would leave it, and on which derived files can be made to fail. */
class FaultyDisk extends MemoryDisk {
  full = false;

  override async open(...[path, mode]: Parameters<MemoryDisk['open']>): ReturnType<MemoryDisk['open']> {
    if (this.full && mode === 'create' && path.startsWith(folder)) throw new Error('ENOSPC: no space left on device');
    return super.open(path, mode);
  }

  async copy(): Promise<FaultyDisk> {
    const copy = new FaultyDisk();
    for (const directory of ['/d', '/d/log', '/d/keys', folder]) {
      await copy.makeDirectory(directory);
      for (const name of await this.list(directory)) {
        const bytes = await this.readFile(`${directory}/${name}`);
        if (bytes && name !== 'lock') await copy.replaceFile(`${directory}/${name}`, bytes);
      }
    }
    return copy;
  }
}

/** Whoever sleeps wakes when the test says so. */
class SleepyClock extends TestClock {
  readonly #sleepers: { readonly ms: number; wake(): void }[] = [];

  override sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise<void>((wake) => {
      this.#sleepers.push({ ms, wake });
      signal?.addEventListener('abort', () => wake(), { once: true });
    });

  wake(ms: number): void {
    for (const sleeper of this.#sleepers) if (sleeper.ms === ms) sleeper.wake();
  }
}

class World {
  disk = new FaultyDisk();
  readonly clock = new SleepyClock('2024-01-01');
  readonly said: string[] = [];
  service!: Service;
  memory!: ColumnMemory;
  replayed = 0;
  #random = 1;

  async open(derived: Partial<DerivedOptions> | null = {}, env: Record<string, string> = {}): Promise<void> {
    this.replayed = 0;
    this.said.length = 0;
    this.memory = new ColumnMemory({ memoryBytes: 2 ** 26, poison: true });
    this.service = await Service.open({
      settings: loadSettings({
        env: { SERVICE_DATA_DIR: '/d', SERVICE_KEK: '07'.repeat(32), SERVICE_QUERY_QUOTA: '1000000', ...env },
        workingDirectory: '/nowhere',
        homeDirectory: '/nowhere',
      }),
      disk: this.disk,
      clock: this.clock,
      random: new TestRandom(this.#random++),
      version: 'test',
      say: (line) => this.said.push(line),
      ...(derived && { derived: { ...small, memory: this.memory, ...derived } }),
      onReplay: () => this.replayed++,
      sealIdleMs: 0,
    });
  }

  /** The process dies; what it wrote stays. */
  async kill(): Promise<void> {
    this.disk = await this.disk.copy();
  }

  async submit(action: Action, command: Command): Promise<void> {
    this.clock.wallNs += 1_000_000n;
    const request = { action, purpose: null, correlationId: this.service.ids.next() };
    await this.service.gate.invoke(operator, request, (invocation) => invocation.submit(command));
  }

  async put(from: number, count: number, version = 0): Promise<void> {
    const rows = Array.from({ length: count }, (_, i) => ({
      id: `key ${from + i}`,
      n: BigInt((from + i) * 10 + version),
      word: `word ${(from + i) % 5}`,
      note: `a note of version ${version} on ${from + i}`,
    }));
    await this.submit('ingest', {
      kind: 'put-rows',
      type: 'T',
      rows: batchOf({ id: 'string', n: 'integer', word: 'string', note: 'string' }, rows),
      atomic: false,
      createType: true,
      provenance: { source: 's', method: 'm', confidence: 1, derivedFrom: null },
    });
  }

  remove(...keys: string[]): Promise<void> {
    return this.submit('remove', { kind: 'remove-rows', type: 'T', keys });
  }

  digests(): Readonly<Record<string, string>> {
    return this.service.store.projections.digests();
  }

  /** What a rebuild from the log alone has. */
  async rebuilt(): Promise<Readonly<Record<string, string>>> {
    const other = new World();
    other.disk = await this.disk.copy();
    await other.open(null);
    return other.digests();
  }

  count(): number {
    const { rows } = this.service.store.projections.snapshot(this.service.store.log.basis(), 'main', null);
    let count = 0;
    const scan = rows.scan({ type: 'T', columns: ['n'], time: everything });
    for (let block = scan.next(); !block.done; block = scan.next()) count += block.value.count;
    return count;
  }

  /** All derived files in the clear. */
  async plain(): Promise<string> {
    const { keyring } = this.service.store;
    let text = '';
    for (const name of await this.disk.list(folder)) {
      const file = (await DerivedFile.open({ disk: this.disk, keyring, directory: folder, logId: null }, name))!;
      // Which keys were removed is remembered: it tells whoever follows the type.
      const chunks = file.chunks().filter((chunk) => !chunk.startsWith('removed-keys/'));
      for (const chunk of chunks) text += Buffer.from(file.readNow(chunk)).toString('latin1');
      await file.close();
    }
    return text;
  }
}

let world: World;
beforeEach(async () => {
  world = new World();
  await world.open();
  await world.put(0, 100);
});

describe('a start', () => {
  test('after a clean close reads nothing again', async () => {
    await world.put(50, 20, 1);
    const before = world.digests();
    await world.service.close();
    await world.open();
    expect(world.replayed).toBe(0);
    expect(world.said).toEqual([]);
    const { temporal: _, audit: __, ...rows } = world.digests();
    expect(rows).toMatchObject({ rows: before['rows'], catalog: before['catalog'] });
    expect(world.digests()).toEqual(await world.rebuilt());
    expect(world.count()).toBe(120);
  });

  test('after a crash replays what came after the last checkpoint, and removes what that does not name', async () => {
    expect(await world.service.store.checkpoints!.take()).toBe(true);
    const { leaves } = world.service.store.checkpoints!;
    await world.put(90, 40, 1);
    await world.service.store.columns!.whenIdle();
    await world.kill();
    await world.open();
    expect(world.replayed).toBe(world.service.store.log.status().leaves - leaves);
    expect(world.digests()).toEqual(await world.rebuilt());
    await world.put(0, 130, 2);
    await world.service.store.checkpoints!.take();
    const named = await world.disk.list(folder);
    expect(named.filter((name) => name.startsWith('segment-')).length).toBe(
      world.service.store.projections.rows.table(null, 'T')!.segments.length - 1,
    );
    expect(world.digests()).toEqual(await world.rebuilt());
  });

  test('that is to verify everything reads everything', async () => {
    await world.service.close();
    await world.open({}, { SERVICE_VERIFY_ON_START: 'true' });
    expect(world.replayed).toBe(world.service.store.log.status().leaves);
    expect(world.digests()).toEqual(await world.rebuilt());
  });

  test('without derived files loses nothing', async () => {
    await world.service.close();
    for (const name of await world.disk.list(folder)) await world.disk.unlink(`${folder}/${name}`);
    await world.open();
    expect(world.replayed).toBe(world.service.store.log.status().leaves);
    expect(world.digests()).toEqual(await world.rebuilt());
  });

  test('believes no file that was changed, cut, left out or taken from elsewhere', async () => {
    await world.service.close();
    const intact = await world.disk.copy();
    const names = await intact.list(folder);
    const [segment, other] = names.filter((name) => name.startsWith('segment-'));
    const bytesOf = async (name: string): Promise<Uint8Array> => (await intact.readFile(`${folder}/${name}`))!;
    const flipped = async (name: string, at: (length: number) => number): Promise<Uint8Array> => {
      const bytes = (await bytesOf(name)).slice();
      bytes[at(bytes.length)]! ^= 4;
      return bytes;
    };
    const harms: (readonly [name: string, bytes: Uint8Array | null])[] = [
      ['checkpoint', await flipped('checkpoint', () => 20)],
      ['checkpoint', await flipped('checkpoint', (length) => length >>> 1)],
      ['checkpoint', (await bytesOf('checkpoint')).slice(0, -1)],
      [segment!, null],
      [segment!, await flipped(segment!, (length) => length - 5)],
      [segment!, await bytesOf(other!)],
    ];
    for (const [name, bytes] of harms) {
      world.disk = await intact.copy();
      if (bytes) await world.disk.replaceFile(`${folder}/${name}`, bytes);
      else await world.disk.unlink(`${folder}/${name}`);
      await world.open();
      expect(world.said.join()).toMatch(/^the saved state is of no use \(.*\); everything is rebuilt from the log$/);
      expect(world.replayed).toBe(world.service.store.log.status().leaves);
      expect(world.digests()).toEqual(await world.rebuilt());
      await world.service.close();
      await world.open();
      expect(world.said).toEqual([]);
      expect(world.replayed).toBe(0);
    }
  });

  test('with a checkpoint of more than the log holds rebuilds', async () => {
    const log = await world.disk.copy();
    await world.put(0, 10, 1);
    await world.service.close();
    for (const name of await world.disk.list(folder)) {
      await log.replaceFile(`${folder}/${name}`, (await world.disk.readFile(`${folder}/${name}`))!);
    }
    world.disk = log;
    await world.open();
    expect(world.said.join()).toMatch(/^the saved state is of no use/);
    expect(world.digests()).toEqual(await world.rebuilt());
    expect(world.count()).toBe(100);
  });
});

describe('a file that rots while the store runs', () => {
  test('ends the question, and the next start rebuilds', async () => {
    await world.service.close();
    await world.open({ segmentRows: 1000 });
    await world.put(0, 1500);
    await world.service.close();
    const names = (await world.disk.list(folder)).filter((name) => name.startsWith('segment-'));
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) {
      const bytes = (await world.disk.readFile(`${folder}/${name}`))!;
      // Behind its head and before its directory: among keys and columns.
      for (let at = bytes.length >>> 1; at < bytes.length - 900; at++) bytes[at]! ^= 1;
      await world.disk.replaceFile(`${folder}/${name}`, bytes);
    }
    await world.open();
    expect(world.replayed).toBe(0);
    expect(() => world.digests()).toThrow('a column can not be read from its file; a restart rebuilds it from the log');
    expect(world.said.join()).toMatch(/a derived file can't be read .* the next start rebuilds from the log/);
    await world.kill();
    await world.open();
    expect(world.replayed).toBe(world.service.store.log.status().leaves);
    expect(world.digests()).toEqual(await world.rebuilt());
  });
});

describe('a hard delete', () => {
  test('leaves no byte of the rows in derived files soon after, wherever they rested', async () => {
    // Keys 0 to 95 rest in sealed segments, the rest in the one that grows.
    await world.service.store.checkpoints!.take();
    expect(await world.plain()).toContain('a note of version 0 on 7');
    await world.remove('key 7', 'key 98');
    world.clock.wake(1000);
    await expect.poll(async () => world.service.store.checkpoints!.leaves, soon).toBe(world.service.store.log.status().leaves);
    const plain = await world.plain();
    for (const gone of ['on 7', 'key 7', 'on 98', 'key 98']) expect(plain).not.toMatch(new RegExp(`${gone}(?!\\d)`));
    expect(plain).toContain('a note of version 0 on 8');
    await world.kill();
    await world.open();
    expect(world.replayed).toBeLessThan(world.service.store.log.status().leaves);
    expect(world.count()).toBe(98);
    expect(world.digests()).toEqual(await world.rebuilt());
  });

  test('after the last checkpoint is made again at a start', async () => {
    await world.service.store.checkpoints!.take();
    await world.remove('key 7', 'key 98');
    await world.kill();
    await world.open();
    expect(world.replayed).toBeGreaterThan(0);
    expect(world.count()).toBe(98);
    expect(world.digests()).toEqual(await world.rebuilt());
    expect(await world.plain()).toContain('a note of version 0 on 7a');
    world.clock.wake(1000);
    await expect.poll(() => world.service.store.checkpoints!.leaves, soon).toBe(world.service.store.log.status().leaves);
    expect(await world.plain()).not.toContain('a note of version 0 on 7a');
  });
});

test('a start goes on from what was saved after rows left the log, and not from what was saved before', async () => {
  const { log, checkpoints, projections } = world.service.store;
  await checkpoints!.take();
  await world.remove('key 7', 'key 98');
  world.clock.wake(1000);
  await expect.poll(() => checkpoints!.leaves, soon).toBe(log.status().leaves);
  const { positions, through } = projections.redactions.next()!;
  expect(await log.redact(positions, () => Promise.resolve(), through)).toMatchObject({ rows: positions.length });
  world.clock.wake(1000);
  await expect.poll(() => checkpoints!.leaves, soon).toBe(log.status().leaves);
  await world.kill();
  await world.open();
  expect(world.replayed).toBeLessThan(world.service.store.log.status().leaves);
  expect(world.count()).toBe(98);
  expect(world.digests()).toEqual(await world.rebuilt());
});

describe('a disk without room', () => {
  test('keeps nothing from working: it is said once, and made up for', async () => {
    await world.service.store.columns!.whenIdle();
    world.disk.full = true;
    await world.put(100, 100);
    expect(await world.service.store.checkpoints!.take()).toBe(false);
    expect(await world.service.store.checkpoints!.take()).toBe(false);
    expect(world.said.filter((line) => line.includes("a checkpoint can't be written"))).toHaveLength(1);
    expect(world.count()).toBe(200);
    world.disk.full = false;
    expect(await world.service.store.checkpoints!.take()).toBe(true);
    expect(world.service.store.columns!.unsaved).toBe(0);
    await world.kill();
    await world.open();
    expect(world.digests()).toEqual(await world.rebuilt());
  });
});

describe('a budget', () => {
  test('is kept to by what is read and written, and compaction changes no answer', async () => {
    for (let version = 1; version <= 3; version++) await world.put(0, 80, version);
    const { columns, projections } = world.service.store;
    await columns!.whenIdle();
    columns!.trim();
    const rebuilt = await world.rebuilt();
    expect(columns!.residentBytes).toBeLessThanOrEqual(small.budgetBytes!);
    const used = world.memory.used;
    expect(world.digests()).toEqual(rebuilt);
    expect(columns!.residentBytes).toBeLessThanOrEqual(small.budgetBytes!);
    // All was read, a segment at a time: memory of one was used for the next.
    expect(world.memory.used).toBeLessThanOrEqual(used + small.budgetBytes!);
    const compacted = await columns!.compact();
    expect(compacted.segments).toBeGreaterThan(4);
    expect(world.digests()).toEqual(rebuilt);
    expect((await columns!.compact()).segments).toBe(0);
    expect(projections.rows.table(null, 'T')!.segments.length).toBeGreaterThan(10);
    await world.service.store.checkpoints!.take();
    await world.kill();
    await world.open();
    expect(world.digests()).toEqual(await world.rebuilt());
  });
});

test('checkpoints are taken after so much log', async () => {
  await world.service.close();
  await world.open({ checkpointBytes: 10_000 });
  const { leaves } = world.service.store.checkpoints!;
  for (let i = 0; i < 5; i++) await world.put(i * 50, 50);
  await expect.poll(() => world.service.store.checkpoints!.leaves, soon).toBeGreaterThan(leaves);
});
