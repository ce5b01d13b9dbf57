/** Projections of a saved state stand alone, and derived files are of known kinds. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import type { CommittedEntry } from '../../src/log/entries/entry.ts';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../../src/projections/projection.ts';
import { Rows } from '../../src/projections/rows/projection.ts';
import { answers, FrozenStore } from '../frozen-store.ts';
import { acme, ErasureWorld } from '../governance/erasure/erasure-world.ts';

const home = fileURLToPath(new URL('../../fixtures/directories/v1/', import.meta.url));
const expected = JSON.parse(readFileSync(join(home, 'expected.json'), 'utf8')) as { exhibit: string; answers: unknown };

/** Counts entries by kind. */
class Toy implements Projection {
  readonly name = 'toy';
  readonly formatVersion: number;
  leaves: number[] = [];
  restored = 0;

  constructor(formatVersion = 1) {
    this.formatVersion = formatVersion;
  }

  apply({ leaf }: CommittedEntry): void {
    this.leaves.push(leaf);
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('leaves', Buffer.from(JSON.stringify(this.leaves)));
  }

  async restore(source: CheckpointReader): Promise<void> {
    this.restored++;
    this.leaves = JSON.parse(Buffer.from(source.section('leaves')!).toString()) as number[];
  }

  reset(): void {
    this.leaves = [];
  }

  digest(): string {
    return this.leaves.join();
  }
}

async function frozenDisk(): Promise<MemoryDisk> {
  const disk = new MemoryDisk();
  for (const entry of readdirSync(join(home, 'data'), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const folder = `/data${entry.parentPath.slice(join(home, 'data').length)}`;
    await disk.makeDirectory(folder);
    await disk.replaceFile(`${folder}/${entry.name}`, readFileSync(join(entry.parentPath, entry.name)));
  }
  return disk;
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, leaf) => leaf);

test('a projection that a store of before does not know is rebuilt, and it alone', async () => {
  const world = await (await new ErasureWorld().open()).fill();
  const names = await world.names();
  const saved = world.store.service.store.projections.projector.watermark;
  await world.store.close();
  const applied = vi.spyOn(Rows.prototype, 'apply');
  const toy = new Toy();
  await world.open({ moreProjections: [toy] });
  const { projector } = world.store.service.store.projections;
  expect([projector.behind, toy.restored]).toEqual([[], 0]);
  expect(toy.leaves).toEqual(upTo(projector.watermark));
  // The rows came from the saved state.
  expect(applied.mock.calls.filter(([{ leaf }]) => leaf < saved)).toEqual([]);
  expect(world.said.filter((line) => line.includes('does not hold toy as'))).toHaveLength(1);
  expect(await world.names()).toEqual(names);

  // From then on it is saved with the others, until its format is raised.
  const again = new Toy();
  await world.restart({ moreProjections: [again] });
  expect(again.restored).toBe(1);
  const raised = new Toy(2);
  await world.restart({ moreProjections: [raised] });
  expect([raised.restored, raised.leaves]).toEqual([0, upTo(world.store.service.store.projections.projector.watermark)]);
  applied.mockRestore();
});

test('of a store of an earlier release what has another format is rebuilt beside the others, and their files of before go', async () => {
  const disk = await frozenDisk();
  const before = (await disk.list('/data/projections')).filter((name) => name.startsWith('segment-'));
  expect(before.length).toBeGreaterThan(0);
  const store = await FrozenStore.open(disk, '/data', '2024-04-01', 2);
  expect(store.said.filter((line) => /does not hold .*\brows\b/.test(line))).toHaveLength(1);
  expect(await answers(store, expected.exhibit)).toEqual(expected.answers);
  const after = await disk.list('/data/projections');
  expect(before.filter((name) => after.includes(name))).toEqual([]);
  expect(await store.service.store.checkpoints!.strays()).toEqual([]);
  await store.close();
});

test('an unknown derived file stops an erasure certificate, and a directory among them stops no start', async () => {
  const disk = new MemoryDisk();
  const world = await (await new ErasureWorld(disk).open()).fill();
  await (await disk.open('/data/projections/vector-0011223344556677', 'create')).close();
  const refused = await world.store.refusal("ERASE SUBJECT 'alice' REASON 'r' CERTIFY", acme);
  expect(refused.message).toContain('files');
  expect(await world.names()).toEqual(['Bob', 'Nobody']);
  // The next start removes what it does not know; what it can't remove it tells.
  await disk.makeDirectory('/data/projections/lost+found');
  await world.restart();
  expect(world.said.filter((line) => line.includes('lost+found'))).toHaveLength(1);
  expect(await disk.list('/data/projections')).not.toContain('vector-0011223344556677');
  expect(await world.store.service.store.checkpoints!.strays()).toEqual(['lost+found']);
});
