/** Data directories of every format open, verify, rebuild and answer for ever, whatever became of their derived files. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { openKeyring } from '../src/log/keys/keys.ts';
import { MemoryDisk } from '../src/log/disk/memory-disk.ts';
import { verifyDirectory } from '../src/log/proofs/verify.ts';
import { answers, FrozenStore } from './frozen-store.ts';
import { TestRandom } from './harness.ts';

const fixtures = fileURLToPath(new URL('../fixtures/directories/', import.meta.url));

interface Expected {
  readonly exhibit: string;
  readonly answers: Readonly<Record<string, unknown>>;
}

describe.each(readdirSync(fixtures))('directory %s', (format) => {
  const expected = JSON.parse(readFileSync(join(fixtures, format, 'expected.json'), 'utf8')) as Expected;

  /** Of the files whose path matches. */
  async function diskWith(kept: RegExp): Promise<MemoryDisk> {
    const home = join(fixtures, format, 'data');
    const disk = new MemoryDisk();
    for (const entry of readdirSync(home, { recursive: true, withFileTypes: true })) {
      const folder = entry.parentPath.slice(home.length);
      const path = `/data${folder}/${entry.name}`;
      if (!entry.isFile() || !kept.test(path)) continue;
      await disk.makeDirectory(`/data${folder}`);
      await disk.replaceFile(path, readFileSync(join(entry.parentPath, entry.name)));
    }
    return disk;
  }

  test.each([
    ['its derived files', /./],
    ['its log and keys alone', /\/(?:log|keys)\//],
    ['a checkpoint whose segments are gone', /\/(?:log|keys)\/|checkpoint/],
  ])('answers as it did, with %s', async (_, kept) => {
    const store = await FrozenStore.open(await diskWith(kept), '/data', '2024-04-01', 2);
    expect(await answers(store, expected.exhibit)).toEqual(expected.answers);
    await store.good('POST', '/ingest?object_type=Person', [{ id: 'later', who: 'who-9', name: 'later', age: 9 }]);
    await store.close();
  });

  test('a rebuild is what was saved', async () => {
    const digests: Readonly<Record<string, string>>[] = [];
    for (const kept of [/./, /\/(?:log|keys)\//]) {
      const store = await FrozenStore.open(await diskWith(kept), '/data', '2024-04-01', 2);
      digests.push(store.service.store.projections.digests());
      await store.close();
    }
    expect(digests[0]).toEqual(digests[1]);
  });

  test('verifies down to the rows', async () => {
    const disk = await diskWith(/\/(?:log|keys)\//);
    const keyring = await openKeyring({ disk, random: new TestRandom(3), directory: '/data', kek: new Uint8Array(32).fill(7) });
    const report = await verifyDirectory({ disk, directory: '/data', keyring });
    expect(report).toMatchObject({ ok: true, findings: [] });
    expect(report.rowsErased).toBeGreaterThan(0);
    expect(report.rowsPruned).toBeGreaterThan(0);
    await keyring.close();
  });
});
