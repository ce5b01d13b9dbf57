/** Backups of every format restore for ever, with the escrow that was made beside them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { loadSettings } from '../src/config.ts';
import { readEscrow } from '../src/log/keys/escrow.ts';
import { MemoryDisk } from '../src/log/disk/memory-disk.ts';
import { restoreStore } from '../src/upkeep/store-restores.ts';
import { TestClock, TestRandom, TestStore } from './harness.ts';

const fixtures = fileURLToPath(new URL('../fixtures/backups/', import.meta.url));

interface Expected {
  readonly backup: string;
  readonly root: string;
  readonly tree_size: number;
  readonly rows: readonly (readonly [string, string, number])[];
}

test.each(readdirSync(fixtures))('format %s restores to what it was made of', async (format) => {
  const home = join(fixtures, format);
  const disk = new MemoryDisk();
  const names = readdirSync(home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const { parentPath, name } of names) {
    const path = join(parentPath, name).slice(fixtures.length - 1);
    await disk.makeDirectory(path.slice(0, path.lastIndexOf('/')));
    await disk.replaceFile(path, readFileSync(join(parentPath, name)));
  }
  const expected = JSON.parse(readFileSync(join(home, 'expected.json'), 'utf8')) as Expected;
  const env = { SERVICE_IN_MEMORY: 'false', SERVICE_KEK: '09'.repeat(32) };
  const yieldTurn = async (): Promise<void> => undefined;
  const report = await restoreStore({
    disk,
    clock: new TestClock('2025-01-01'),
    random: new TestRandom(3),
    settings: loadSettings({ env, workingDirectory: '/nowhere', homeDirectory: '/nowhere' }),
    // Digests of projections are of a version: only the log is for ever.
    version: 'a later one',
    source: `/${format}/backup`,
    target: '/restored',
    keys: await readEscrow({ disk, path: `/${format}/escrow`, key: new Uint8Array(32).fill(5), yieldTurn }),
    say: () => undefined,
    yieldTurn,
  });
  const { backup, root, tree_size } = expected;
  expect(report).toMatchObject({ backup, root, tree_size, root_match: true, blobs: 1, erased_absent: true });
  expect(report.compared_with).toContain('it was backed up by version test');
  const store = await TestStore.open('2025-01-01', { ...env, SERVICE_DATA_DIR: '/restored' }, { disk });
  const rows = await store.rows('SELECT id, name, age FROM Person ORDER BY id, age');
  expect(rows.map(({ id, name, age }) => [id, name, Number(age)])).toEqual(expected.rows);
  await store.close();
});
