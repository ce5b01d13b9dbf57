/** `annals verify` on real files: what it prints, how it ends, and that it leaves everything as it was. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { verifyCommand } from '../src/cli/verify.ts';
import { systemClock, systemRandom } from '../src/clock.ts';
import { loadSettings } from '../src/config.ts';
import { openKeyring } from '../src/log/keys/keys.ts';
import { LocalLog } from '../src/log/log.ts';
import { nodeDisk } from '../src/log/disk/node-disk.ts';
import type { VerifyReport } from '../src/log/proofs/verify.ts';
import { masterKeys } from '../src/master-keys.ts';
import { contextOf, rowsBody } from './simulation/drafts.ts';
import { Seeded } from './simulation/seeded.ts';

describe('annals verify', () => {
  const home = mkdtempSync(join(tmpdir(), 'annals-verify-'));
  const original = join(home, 'original');
  const dataDir = join(home, 'data');

  beforeAll(async () => {
    const settings = loadSettings({ env: {}, overrides: { SERVICE_DATA_DIR: original } });
    await nodeDisk.makeDirectory(original);
    const keys = await masterKeys(settings, nodeDisk, systemRandom, () => undefined);
    const log = await LocalLog.open({
      disk: nodeDisk,
      clock: systemClock,
      random: systemRandom,
      directory: original,
      keyring: await openKeyring({ disk: nodeDisk, random: systemRandom, directory: original, ...keys }),
      origin: 'test/log/main',
      engineVersion: '0.0.0',
      walSync: 'interval',
      sealIdleMs: 0,
      replay: () => undefined,
    });
    for (let i = 0; i < 20; i++) {
      await log.append([{ context: contextOf(i, i), body: rowsBody(new Seeded(i), i) }]).acknowledged;
    }
    await log.close();
  });

  beforeEach(() => {
    rmSync(dataDir, { recursive: true, force: true });
    cpSync(original, dataDir, { recursive: true });
  });

  afterAll(() => rmSync(home, { recursive: true, force: true }));

  it('says that an intact directory is intact, and changes no byte of it', async () => {
    const before = contents(dataDir);
    const { code, text } = await run({ dataDir });
    expect(code).toBe(0);
    expect(text).toMatch(/signed head 22 leaves, signature verified\nintact\n$/);
    expect(contents(dataDir)).toEqual(before);
  });

  it('says how many rows are erased, and that nothing is wrong with that', async () => {
    const settings = loadSettings({ env: {}, overrides: { SERVICE_DATA_DIR: dataDir } });
    const keys = await masterKeys(settings, nodeDisk, systemRandom, () => undefined);
    const keyring = await openKeyring({ disk: nodeDisk, random: systemRandom, directory: dataDir, ...keys });
    const ids = [null, 'tenant-1', 'tenant-2'].flatMap((tenant) => keyring.subjects.idsOf(tenant, 'subject-0'));
    expect(ids.length).toBeGreaterThan(0);
    await keyring.subjects.destroy(ids, 'e-1');
    await keyring.close();
    const { code, text } = await run({ dataDir });
    expect(code).toBe(0);
    expect(text).toMatch(/erased {6}[1-9]\d* rows: their keys are destroyed, their hashes hold\n/);
    expect(text).toMatch(/intact\n$/);
    const { text: json } = await run({ dataDir, json: true });
    expect((JSON.parse(json) as VerifyReport).rowsErased).toBeGreaterThan(0);
  });

  it('names the place of what is broken and ends with 1', async () => {
    const path = join(dataDir, 'log/00000000.log');
    const bytes = readFileSync(path);
    bytes[700] = bytes[700]! ^ 4;
    writeFileSync(path, bytes);
    const { code, text } = await run({ dataDir });
    expect(code).toBe(1);
    expect(text).toMatch(/BAD {3}log\/00000000\.log@\d+ \(leaf \d+\): a frame that fails its checksum/);
    expect(text).toMatch(/NOT INTACT: \d+ finding/);
  });

  it('prints one line of JSON that says the same', async () => {
    const { code, text } = await run({ dataDir, json: true });
    const report = JSON.parse(text) as VerifyReport & { keys: string | null };
    expect(code).toBe(0);
    expect(report).toMatchObject({ ok: true, leaves: 22, seals: 1, keys: null, findings: [] });
    expect(report.bodiesOpened).toBe(22);
  });

  it('says what it checked, and how fast', async () => {
    const { text } = await run({ dataDir });
    expect(text).toContain(
      'checked     manifest, frame checksums, payload digests, chain, tree, signed heads, every body, rows roots, blobs\n',
    );
    expect(text).toMatch(/speed {7}\d+\.\d\d s, [\d ]+ MB\/s, [\d ]+ rows\/s\n/);
    const { text: json } = await run({ dataDir, json: true });
    const report = JSON.parse(json) as { seconds: number; rowsPerSecond: number; bytesPerSecond: number; rows: number };
    expect(report.rowsPerSecond * report.seconds).toBeCloseTo(report.rows, 6);
    expect(report.bytesPerSecond).toBeGreaterThan(0);
  });

  it('leaves bodies shut where it is asked to, and still knows who signed', async () => {
    const { code, text } = await run({ dataDir, sealed: true });
    expect(code).toBe(0);
    expect(text).toContain('content     not opened: asked to leave bodies shut');
    expect(text).toContain('checked     manifest, frame checksums, payload digests, chain, tree, signed heads\n');
    expect(text).toContain('note  20 bodies were not opened: only what is sealed was to be checked');
    expect(text).toMatch(/signature verified\nintact\n$/);
    const path = join(dataDir, 'log/00000000.log');
    const bytes = readFileSync(path);
    bytes[700] = bytes[700]! ^ 4;
    writeFileSync(path, bytes);
    expect((await run({ dataDir, sealed: true })).code).toBe(1);
  });

  it('checks chain and digests of a directory whose keys are elsewhere, and says what it did not open', async () => {
    rmSync(join(dataDir, 'keys'), { recursive: true });
    const { code, text } = await run({ dataDir });
    expect(code).toBe(0);
    expect(text).toContain('not opened: no keys were given');
  });

  it('reports a key file that the given key does not open', async () => {
    writeFileSync(join(dataDir, 'keys/kek'), `${'ab'.repeat(32)}\n`);
    const { code, text } = await run({ dataDir });
    expect(code).toBe(1);
    expect(text).toContain('BAD   keys: the key-encryption key given is not the one');
  });

  it('ends with 1 where there is no log', async () => {
    const { code, text } = await run({ dataDir: join(home, 'nowhere') });
    expect(code).toBe(1);
    expect(text).toContain('there is no log here');
  });
});

async function run(options: Parameters<typeof verifyCommand>[0]): Promise<{ code: number; text: string }> {
  let text = '';
  const stdout = vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  try {
    return { code: await verifyCommand(options, '0.0.0'), text };
  } finally {
    stdout.mockRestore();
  }
}

function contents(directory: string): Record<string, string> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(files.map((file) => [file.name, readFileSync(join(file.parentPath, file.name), 'base64')]));
}
