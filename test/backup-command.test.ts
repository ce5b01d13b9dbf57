/** `annals backup`, `backups`, `restore` on real files: what they print, how they end, and what they leave. */
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { backupCommand, backupsCommand, restoreCommand } from '../src/cli/backup.ts';
import { escrowCommand } from '../src/cli/escrow.ts';
import { withService } from '../src/cli/local-store.ts';
import { verifyCommand } from '../src/cli/verify.ts';
import { analyst, beginStore } from './harness.ts';

const home = mkdtempSync(join(tmpdir(), 'annals-backup-'));
const dataDir = join(home, 'data');
const kept = join(home, 'kept');
const escrow = join(home, 'escrow');
const escrowKeyFile = join(home, 'escrow.key');
const keys = { escrow, escrowKeyFile };
let taken: { backup: string; root: string; tree_size: number };
let home1: string;

beforeAll(async () => {
  writeFileSync(escrowKeyFile, 'ab'.repeat(32));
  await beginStore(dataDir);
  await withService({ dataDir }, 'test', (service) =>
    service.gate.invoke(analyst, { action: 'schema', purpose: null, correlationId: 'test' }, async (invocation) => {
      const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 };
      const properties = { id: { ...plain, type: 'string' as const } };
      await invocation.submit({ kind: 'register-type', name: 'Note', properties, primaryKey: 'id', graphTriggers: [] });
    }),
  );
  const { code, text } = await run(() => backupCommand({ dataDir, to: kept, json: true }, 'test'));
  expect(code).toBe(0);
  taken = JSON.parse(text) as typeof taken;
  home1 = join(kept, taken.backup);
  expect((await run(() => escrowCommand({ dataDir, out: escrow, escrowKeyFile }))).code).toBe(0);
});

afterAll(() => rmSync(home, { recursive: true, force: true }));

it('says where the backup lies, and lists it', async () => {
  const { code, text } = await run(() => backupCommand({ dataDir, to: join(home, 'other') }, 'test'));
  const [path, what] = text.split('\n');
  expect([code, existsSync(join(path!, 'backup.json'))]).toEqual([0, true]);
  expect(what).toMatch(/^\d+ entries, [\d ]+ bytes, root [0-9a-f]{64}$/);
  const listed = await run(() => backupsCommand({ dataDir, from: kept }));
  expect(listed).toEqual({
    code: 0,
    text: expect.stringMatching(new RegExp(`^${taken.backup}  .*root ${taken.root}\n$`)) as string,
  });
  expect((await run(() => backupsCommand({ from: kept, ...keys }))).text).toBe(listed.text);
});

it('restores from backup and escrow alone, into what verifies and opens', async () => {
  const target = join(home, 'restored');
  const { code, text } = await run(() => restoreCommand(home1, { dataDir: join(home, 'gone'), target, ...keys }, 'test'));
  expect(text).toMatch(new RegExp(`^restored +${taken.backup} into ${target}\n`));
  expect(text).toContain(`${taken.root}  as it was signed\n`);
  expect(text).toMatch(/^rows +[0-9a-f]{64} {2}same$/m);
  expect(text).toMatch(/^compared +with the store that was backed up$/m);
  expect(text).toMatch(/^erased +0 keys, none of which opens anything; 0 rows are left as hashes$/m);
  expect(code).toBe(0);
  expect(readdirSync(target)).toEqual(['keys', 'log']);
  expect(await run(() => verifyCommand({ dataDir: target }, 'test'))).toMatchObject({
    code: 0,
    text: expect.stringContaining(taken.root) as string,
  });
  const types = await withService(
    { dataDir: target },
    'test',
    async ({ store: { projections } }) => projections.rows.table(null, 'Note') !== null,
  );
  expect(types).toBe(true);
});

it('drills: the same report, and nothing is left', async () => {
  const drills = mkdtempSync(join(home, 'drills-'));
  // Others drill in the directory of all.
  vi.stubEnv('TMPDIR', drills);
  const { code, text } = await run(() =>
    restoreCommand(join(home1, 'backup.json'), { dataDir, drill: true, json: true }, 'test'),
  );
  vi.unstubAllEnvs();
  const report = JSON.parse(text) as Record<string, unknown>;
  expect([code, report]).toEqual([0, expect.objectContaining({ root_match: true, root: taken.root, erased_absent: true })]);
  expect(readdirSync(drills).filter((name) => name.startsWith('annals-drill-'))).toEqual([]);
});

it('refuses what is not whole, and leaves the target empty', async () => {
  const damaged = join(home, 'damaged');
  const target = join(home, 'never');
  cpSync(kept, damaged, { recursive: true });
  truncateSync(join(damaged, taken.backup, 'log/00000000.log'), 100);
  await expect(restoreCommand(join(damaged, taken.backup), { dataDir, target }, 'test')).rejects.toMatchObject({
    code: 'REL_UNPROCESSABLE',
  });
  expect(readdirSync(target)).toEqual([]);
  truncateSync(join(damaged, taken.backup, 'backup.json'), 100);
  const { code, text } = await run(() => backupsCommand({ dataDir, from: damaged }));
  expect([code, text]).toEqual([1, expect.stringContaining('DAMAGED')]);
  await expect(restoreCommand(join(damaged, taken.backup), { dataDir, drill: true }, 'test')).rejects.toMatchObject({
    code: 'REL_UNPROCESSABLE',
  });
});

it('asks for a target, or a drill, and for keys', async () => {
  for (const options of [{ dataDir }, { dataDir, target: 'x', drill: true }])
    await expect(restoreCommand(home1, options, 'test')).rejects.toThrow('give --target <dir> or --drill');
  const nowhere = { dataDir: join(home, 'gone'), target: join(home, 'never') };
  await expect(restoreCommand(home1, nowhere, 'test')).rejects.toThrow('give --escrow <file>');
  expect(existsSync(join(home, 'gone'))).toBe(false);
  await expect(restoreCommand('no-such', { dataDir, target: join(home, 'never') }, 'test')).rejects.toMatchObject({
    code: 'REL_NOT_FOUND',
  });
});

it('holds no key, in no file', () => {
  const { secrets } = { secrets: readFileSync(join(dataDir, 'keys/kek'), 'utf8').trim() };
  for (const name of readdirSync(home1, { recursive: true }) as string[]) {
    if (!/\.(log|json)$|manifest|checkpoint/.test(name)) continue;
    const bytes = readFileSync(join(home1, name));
    expect(bytes.includes(secrets) || bytes.includes(Buffer.from(secrets, 'hex'))).toBe(false);
  }
});

async function run(command: () => Promise<number>): Promise<{ code: number; text: string }> {
  let text = '';
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  try {
    return { code: await command(), text };
  } finally {
    write.mockRestore();
  }
}
