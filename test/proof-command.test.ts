/** `annals proof` as a user types it: over a data directory and over a running server, checked by the one file. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Said, runHere } from './annals-here.ts';
import { anyPorts } from './any-ports.ts';
import { beginStore } from './harness.ts';

const root = join(import.meta.dirname, '..');
const home = mkdtempSync(join(tmpdir(), 'annals-proof-'));
const data = join(home, 'data');
const at = (name: string): string => join(home, name);
const env = { PATH: process.env['PATH'], HOME: home, ...anyPorts };
let server: ChildProcess | undefined;

afterAll(() => {
  server?.kill('SIGKILL');
  rmSync(home, { recursive: true, force: true });
});

const annals = (...args: readonly string[]): Promise<Said> => runHere(args, { env, folder: home });

/** In a process of its own. */
function annalsAlone(...args: readonly string[]): Said {
  return spawnSync(process.execPath, [join(root, 'bin/annals'), ...args], { cwd: home, env, encoding: 'utf8' });
}

/** The file alone, in a folder of its own: what somebody has who has nothing of ours. */
function expert(...args: readonly string[]): Said {
  const alone = at('annals-verify.mjs');
  writeFileSync(alone, readFileSync(join(root, 'verify/annals-verify.mjs')));
  return spawnSync(process.execPath, [alone, ...args], { cwd: home, env: { PATH: env.PATH }, encoding: 'utf8' });
}

beforeAll(() => beginStore(data));

async function ingest(row: object): Promise<void> {
  writeFileSync(at('rows.ndjson'), JSON.stringify(row));
  expect(await annals('ingest', at('rows.ndjson'), '--type', 'Deed', '--auto', '--data-dir', data)).toMatchObject({ status: 0 });
}

test('a row of a data directory: key and head kept first, proof made later, checked offline', async () => {
  const here = ['--data-dir', data];
  await ingest({ id: 'd1', owner: 'Ada' });
  expect(annalsAlone('proof', 'key', ...here, '--out', at('log.key'))).toMatchObject({ status: 0, stdout: '' });
  expect(await annals('proof', 'head', ...here, '--out', at('old.checkpoint'))).toMatchObject({ status: 0 });
  await ingest({ id: 'd1', owner: 'Bob' });
  const held = ['--head', at('old.checkpoint')];
  expect(annalsAlone('proof', '--type', 'Deed', '--row', 'd1', ...held, ...here, '--out', at('deed.json'))).toMatchObject({
    status: 0,
  });

  const verified = expert(at('deed.json'), '--key', at('log.key'), ...held);
  expect(verified).toMatchObject({ status: 0, stderr: '' });
  expect(verified.stdout).toMatch(/"owner": "Bob"[^]*of the checkpoint that you hold, unchanged/);
  expect(annalsAlone('proof', 'verify', at('deed.json'), '--key', at('log.key'), ...held)).toEqual(
    expect.objectContaining({ status: 0, stdout: verified.stdout }),
  );

  const forged = readFileSync(at('deed.json'), 'utf8').replace(/"salt": "../, '"salt": "AA');
  writeFileSync(at('forged.json'), forged);
  for (const judge of [expert, (...args: string[]) => annals('proof', 'verify', ...args)]) {
    expect(await judge(at('forged.json'), '--key', at('log.key'))).toMatchObject({ status: 1, stdout: '' });
    expect(await judge(at('deed.json'), '--key', 'nonsense')).toMatchObject({ status: 2, stdout: '' });
  }
  expect((await annals('proof', '--leaf', '99999', ...here)).stderr).toMatch(/no such entry[^]*REL_NOT_FOUND/);
  expect((await annals('proof', '--leaf', '1', '--position', '1', ...here)).status).toBe(2);
  expect((await annals('proof', '--row', 'd1', ...here)).status).toBe(2);
});

test('the same from a running server, on other credentials', async () => {
  const token = (await annals('token', 'mint', '--data-dir', data)).stdout.trim();
  server = spawn(process.execPath, [join(root, 'bin/annals'), 'serve', '--data-dir', data], {
    cwd: home,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const said = await new Promise<string>((resolve, reject) => {
    let text = '';
    server!.stderr!.setEncoding('utf8').on('data', (more: string) => {
      text += more;
      if (/serves (http:\S+),/.test(text)) resolve(text);
    });
    server!.once('exit', (code) => reject(new Error(`ended with ${code}: ${text}`)));
  });
  const there = ['--url', /serves (http:\S+),/.exec(said)![1]!, '--token', token];
  expect((await annals('proof', 'key', ...there)).stdout).toBe(readFileSync(at('log.key'), 'utf8'));
  const made = await annals(
    'proof',
    '--type',
    'Deed',
    '--row',
    'd1',
    '--head',
    at('old.checkpoint'),
    ...there,
    '--out',
    at('remote.json'),
  );
  expect(made).toMatchObject({ status: 0, stderr: '' });
  expect(expert(at('remote.json'), '--key', at('log.key'), '--head', at('old.checkpoint'))).toMatchObject({ status: 0 });
  expect((await annals('proof', '--leaf', '99999', ...there)).status).toBe(3);
});
