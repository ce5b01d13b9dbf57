/** What a user gets wrong, verb by verb: one line that says what, an exit code, and nothing made of it. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { backupCommand, backupsCommand, restoreCommand } from '../src/cli/backup.ts';
import { branchCommand } from '../src/cli/branch.ts';
import { escrowCommand } from '../src/cli/escrow.ts';
import { finish } from '../src/cli/exit-codes.ts';
import { ingestCommand } from '../src/cli/ingest.ts';
import { makeProofCommand, proofHeadCommand } from '../src/cli/proof.ts';
import { queryCommand } from '../src/cli/query.ts';
import { objectKeyCommand } from '../src/cli/object-key.ts';
import { rekeyCommand } from '../src/cli/rekey.ts';
import { replayCommand } from '../src/cli/replay.ts';
import { mintTokenCommand } from '../src/cli/token.ts';
import { beginStore } from './harness.ts';

const home = mkdtempSync(join(tmpdir(), 'annals-refusals-'));
/** Holds a log. */
const begun = join(home, 'begun');
const absent = join(home, 'absent');

const keyFile = join(home, 'key');

beforeAll(async () => {
  writeFileSync(keyFile, 'ab'.repeat(32));
  await beginStore(begun);
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** As the process ends that runs it. */
async function ended(command: () => Promise<number> | number): Promise<{ code: unknown; said: string }> {
  let said = '';
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((chunk) => {
    said += String(chunk);
    return true;
  });
  try {
    await finish(async () => command());
    return { code: process.exitCode, said };
  } finally {
    process.exitCode = 0;
    write.mockRestore();
  }
}

const wanted = { role: [], tokenPurpose: [], projection: [], format: 'table' };

/** Each verb that works on a data directory or on a server. */
const verbs: readonly [string, (where: { dataDir?: string; url?: string }) => Promise<number>][] = [
  ['token mint', (where) => mintTokenCommand({ ...wanted, ...where }, 'test')],
  ['query', (where) => queryCommand('SELECT 1 FROM X', { ...wanted, ...where }, 'test')],
  ['branch --list', (where) => branchCommand(undefined, { list: true, ...where }, 'test')],
  ['proof head', (where) => proofHeadCommand(where, 'test')],
  ['proof', (where) => makeProofCommand({ leaf: '0', ...where }, 'test')],
  ['ingest', (where) => ingestCommand([join(begun, 'lock')], { type: 'X', ...where }, 'test')],
];

test.each([
  ...verbs,
  ['replay --check', (where: { dataDir?: string }) => replayCommand({ ...wanted, check: true, ...where }, 'test')],
  ['backup', (where: { dataDir?: string }) => backupCommand(where, 'test')],
] as typeof verbs)('%s: a directory without a log is refused, and nothing is made there', async (_, verb) => {
  const { code, said } = await ended(() => verb({ dataDir: absent }));
  expect([code, said]).toEqual([3, expect.stringMatching(/^annals: there is no log here: [^\n]*\n$/)]);
  expect(existsSync(absent)).toBe(false);
});

test.each<[string, number, () => Promise<number>]>([
  ['proof head --out', 3, () => proofHeadCommand({ dataDir: begun, out: join(absent, 'head') }, 'test')],
  ['proof --head', 3, () => makeProofCommand({ dataDir: begun, leaf: '0', head: absent }, 'test')],
  ['escrow --check', 2, () => escrowCommand({ dataDir: begun, check: absent, escrowKeyFile: absent })],
  ['escrow --out', 3, () => escrowCommand({ dataDir: absent, out: join(home, 'escrow'), escrowKeyFile: keyFile })],
  ['backups --from', 2, () => backupsCommand({ dataDir: begun, from: absent })],
  ['rekey', 2, () => rekeyCommand({ dataDir: begun, newKekFile: absent })],
  ['object-key', 2, () => objectKeyCommand({ config: absent })],
  ['restore', 3, () => restoreCommand(absent, { dataDir: begun, target: join(home, 'never') }, 'test')],
  ['--config', 2, () => queryCommand('SELECT 1 FROM X', { ...wanted, config: absent, dataDir: begun }, 'test')],
  ['--url', 2, () => queryCommand('SELECT 1 FROM X', { ...wanted, url: 'localhost:9090' }, 'test')],
])('%s of what is not there: one line, no stack', async (_, expected, command) => {
  const { code, said } = await ended(command);
  expect([code, said]).toEqual([expected, expect.stringMatching(/^annals: [^\n]*\n$/)]);
  expect(existsSync(absent)).toBe(false);
});

describe('a server that is no Annals', () => {
  test.each(['<html>hello', '[]', '{}', 'null', ''])('answers %j', async (answer) => {
    const server = createServer((_, reply) => reply.end(answer));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    vi.stubEnv('SERVICE_ADMIN_TOKEN', 'a'.repeat(32));
    for (const [name, verb] of verbs) {
      const { code, said } = await ended(() => verb({ url }));
      expect([name, code, said]).toEqual([
        name,
        3,
        expect.stringMatching(/^annals: \S+ answers, but not as Annals does[^\n]*\n$/),
      ]);
    }
    vi.unstubAllEnvs();
    server.closeAllConnections();
    server.close();
  });

  test('does not answer at all', async () => {
    vi.stubEnv('SERVICE_ADMIN_TOKEN', 'a'.repeat(32));
    for (const [name, verb] of verbs) {
      const { code, said } = await ended(() => verb({ url: 'http://127.0.0.1:1' }));
      expect([name, code, said]).toEqual([name, 3, expect.stringMatching(/^annals: \S+ does not answer: [^\n]*\n$/)]);
    }
    vi.unstubAllEnvs();
  });
});
