/**
 * The verbs as a user types them: exit codes, the directory's lock, the first start, the end. Each verb has been in a process of its
 * own somewhere here; where one is asked again and again, it is so in this process.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tableFromIPC } from 'apache-arrow';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { loadSettings } from '../src/config.ts';
import { checkBoot } from '../src/service.ts';
import { type Said, runHere } from './annals-here.ts';
import { anyPorts } from './any-ports.ts';
import { freePort } from './clients/free-port.ts';
import { beginStore } from './harness.ts';

const root = join(import.meta.dirname, '..');
const home = mkdtempSync(join(tmpdir(), 'annals-cli-'));
const servers: ChildProcess[] = [];
let directories = 0;

const freshDirectory = (): string => join(home, `data-${directories++}`);

/** No setting of the machine reaches the test; ports are the system's choice. */
const cleanEnv = {
  PATH: process.env['PATH'],
  HOME: home,
  ...anyPorts,
};

/** Holds a log. */
const begun = freshDirectory();
beforeAll(() => beginStore(begun));

afterEach(() => {
  for (const server of servers.splice(0)) server.kill('SIGKILL');
});

afterAll(() => rmSync(home, { recursive: true, force: true }));

function annals(args: readonly string[], env: Readonly<Record<string, string>> = {}): Said {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'bin/annals'), ...args], {
    cwd: home,
    env: { ...cleanEnv, ...env },
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

const annalsHere = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Said> =>
  runHere(args, { env: { ...cleanEnv, ...env }, folder: home });

/** Resolves with what it said once it serves, and has offered a token where it is to offer one. */
async function serve(
  directory: string,
  env: Readonly<Record<string, string>> = {},
  offers: 'a token' | 'nothing' = 'nothing',
): Promise<{ server: ChildProcess; said: () => string }> {
  const server = spawn(process.execPath, [join(root, 'bin/annals'), 'serve', '--data-dir', directory], {
    cwd: home,
    env: { ...cleanEnv, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  servers.push(server);
  let said = '';
  await new Promise<void>((resolve, reject) => {
    server.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (offers === 'a token' ? /export TOKEN=ann_\S+\n/.test(said) : /wal sync/.test(said)) setTimeout(resolve, 200);
    });
    server.once('exit', (code) => reject(new Error(`ended with ${code}: ${said}`)));
  });
  return { server, said: () => said };
}

async function stop(server: ChildProcess): Promise<number | null> {
  const ended = new Promise<number | null>((resolve) => server.once('exit', resolve));
  server.kill('SIGTERM');
  return ended;
}

const urlIn = (said: string): string => /serves (http:\S+),/.exec(said)![1]!;

describe('exit codes', () => {
  test('2: a command or flag that does not exist, a file that is not there, a bad setting; one line each', async () => {
    for (const args of [['nope'], ['serve', '--bogus'], ['query'], ['ingest', 'absent.csv', '--type', 'X']])
      expect((await annalsHere(args)).status, args.join(' ')).toBe(2);
    expect((await annalsHere(['replay', '--projection', 'x', '--data-dir', begun])).status).toBe(2);
    const refused = annals(['serve'], { SERVICE_WALL_SYNC: 'off' });
    expect(refused).toMatchObject({ status: 2, stdout: '' });
    expect(refused.stderr).toMatch(/^annals: SERVICE_WALL_SYNC is not a setting[^\n]*\n$/);
  });

  test('1: what was looked for is there and bad; 3: the store refused', async () => {
    expect(annals(['verify', '--data-dir', freshDirectory()]).status).toBe(1);
    const refused = await annalsHere(['query', '--data-dir', begun, 'SELECT * FROM Nope']);
    expect(refused.status).toBe(3);
    expect(refused.stderr).toContain('REL_UNKNOWN_TYPE');
  });

  test('3: a directory without a log is refused, and nothing is made there', () => {
    const directory = freshDirectory();
    const refused = annals(['replay', '--check', '--data-dir', directory]);
    expect(refused).toMatchObject({ status: 3, stdout: '' });
    expect(refused.stderr).toMatch(/^annals: there is no log here: [^\n]*\n$/);
    expect(existsSync(directory)).toBe(false);
  });

  test('0 for --help of every verb', async () => {
    expect(annals(['serve', '--help'])).toMatchObject({ status: 0, stderr: '' });
    for (const verb of ['ingest', 'query', 'replay', 'verify', 'proof', 'token']) {
      expect(await annalsHere([verb, '--help'])).toMatchObject({ status: 0, stderr: '' });
    }
  });
});

test('an error is told with its place in the sources', () => {
  const script = `process.exit = () => { console.log(new Error('here').stack); throw new Error(); };
    await import(${JSON.stringify(join(root, 'scripts/stacks.mjs'))});
    const { main } = await import(${JSON.stringify(join(root, 'dist/main.js'))});
    await main(['nope']).catch(() => undefined);`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { cwd: home, encoding: 'utf8' });
  expect(stdout).toMatch(/^Error: here\n/);
  expect(stdout).toMatch(/ \(?\S+\/src\/main\.ts:\d+:\d+\)?$/m);
});

describe('boot refusals', () => {
  test.each<[string, Record<string, string>, RegExp]>([
    ['a legacy profile', { SERVICE_PROFILE: 'lite' }, /SERVICE_PROFILE/],
    ['an address that others reach, without TLS', { SERVICE_HTTP_BIND: '0.0.0.0' }, /SERVICE_TLS_CERT/],
    ['an admin listener beyond loopback', { SERVICE_ADMIN_BIND: '0.0.0.0:9091' }, /SERVICE_ADMIN_BIND.*loopback/],
    ['a weak-security opt-out in strict mode', { SERVICE_KMS_LOCAL_DEV: 'true' }, /SERVICE_SECURITY_MODE=open/],
    ['a server without its secrets', { SERVICE_PROFILE: 'server' }, /SERVICE_BEARER_TOKEN.*SERVICE_ERASURE_SIGNING_KEY/],
    ['many tenants outside a cluster', { SERVICE_TENANCY_MODE: 'multi' }, /cluster/],
    ['strict purposes without one', { SERVICE_PURPOSES: ',' }, /SERVICE_PURPOSES/],
  ])('%s', (_, env, message) => {
    const given = { ...env, SERVICE_DATA_DIR: freshDirectory() };
    expect(() => checkBoot(loadSettings({ env: given, workingDirectory: home, homeDirectory: home }))).toThrow(message);
  });

  test('end the process before it makes anything', () => {
    const directory = freshDirectory();
    const refused = annals(['serve', '--data-dir', directory], { SERVICE_HTTP_BIND: '0.0.0.0' });
    expect(refused.status).toBe(2);
    expect(refused.stderr).toMatch(/^annals: [^\n]*SERVICE_TLS_CERT[^\n]*\n$/);
    expect(existsSync(directory), 'nothing was made').toBe(false);
  });
});

test.each([
  ['SERVICE_PORT', (port: number) => ({ SERVICE_PORT: String(port) })],
  ['SERVICE_ADMIN_BIND', (port: number) => ({ SERVICE_ADMIN_BIND: `127.0.0.1:${port}` })],
])('a port that is taken: %s and the port are named, and nothing is made', async (setting, env) => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port } = taken.address() as AddressInfo;
  const directory = freshDirectory();
  const refused = annals(['serve', '--data-dir', directory], env(port));
  taken.close();
  expect(refused.status).toBe(2);
  expect(refused.stderr).toMatch(new RegExp(`^annals: ${setting}: 127\\.0\\.0\\.1:${port} is in use[^\\n]*\\n$`));
  expect(existsSync(directory)).toBe(false);
});

test('`npm start` hands signals on to the server', async () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
  const directory = freshDirectory();
  const shell = spawn('sh', ['-c', `${scripts['start']!} --data-dir ${directory}`], {
    cwd: root,
    env: cleanEnv,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  servers.push(shell);
  let said = '';
  await new Promise<void>((resolve, reject) => {
    shell.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (/export TOKEN=/.test(said)) resolve();
    });
    shell.once('exit', () => reject(new Error(said)));
  });
  expect(said).toContain(`process ${shell.pid}, serves`);
  expect(readFileSync(join(directory, 'lock'), 'utf8').split(' ')[0]).toBe(String(shell.pid));
  expect(await stop(shell)).toBe(0);
  expect(said).toContain('SIGTERM: draining');
});

test('the first start makes one token and says so once; server secrets and later starts make none', async () => {
  const directory = freshDirectory();
  const first = await serve(directory, {}, 'a token');
  const token = /export TOKEN=(ann_\S+)/.exec(first.said())![1]!;
  const asked = await fetch(`${urlIn(first.said())}/types`, { headers: { authorization: `Bearer ${token}` } });
  expect(asked.status).toBe(200);
  expect(await stop(first.server)).toBe(0);

  const second = await serve(directory);
  expect(second.said()).not.toContain('ann_');
  expect((await fetch(`${urlIn(second.said())}/types`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
  await stop(second.server);

  const administered = await serve(freshDirectory(), { SERVICE_ADMIN_TOKEN: 'a'.repeat(32) });
  expect(administered.said()).not.toContain('ann_');
});

test('whoever sees /health answer finds every other door open', async () => {
  const [port, relational] = [await freePort(), await freePort()];
  const wire = { SERVICE_BEARER_TOKEN: 'b'.repeat(32), SERVICE_RELATIONAL_PORT: String(relational) };
  const serving = serve(freshDirectory(), { SERVICE_PORT: String(port), ...wire });
  // The first answer, at the first instant at which there is one.
  while (!(await fetch(`http://127.0.0.1:${port}/health`).catch(() => null))?.ok) await new Promise(setImmediate);
  await new Promise<void>((resolve, reject) => {
    const socket = connect(relational, '127.0.0.1', () => socket.end(resolve)).once('error', reject);
  });
  await stop((await serving).server);
});

test('a directory that a server holds is refused to a second process and free again after a kill', async () => {
  const directory = freshDirectory();
  const { server } = await serve(directory);
  const refused = annals(['query', '--data-dir', directory, 'SELECT COUNT(*) FROM Nope']);
  expect(refused.status).toBe(3);
  expect(refused.stderr).toMatch(/^annals: .*\n$/);
  const ended = new Promise((resolve) => server.once('exit', resolve));
  server.kill('SIGKILL');
  await ended;
  expect(annals(['replay', '--check', '--data-dir', directory]).status).toBe(0);
});

test('a token minted on the directory opens the data routes; its secret is nowhere on disk', async () => {
  const directory = freshDirectory();
  await beginStore(directory);
  const minted = annals(['token', 'mint', '--data-dir', directory, '--tenant', 'acme', '--principal', 'loader']);
  expect(minted.status).toBe(0);
  const token = minted.stdout.trim();
  expect(token).toMatch(/^ann_/);
  const { said, server } = await serve(directory);
  const env = { ANNALS_URL: urlIn(said()), ANNALS_TOKEN: token };
  const file = join(home, 'rows.csv');
  writeFileSync(file, 'p1,Ada,\\N\np2,Grace,7\n');
  const ingest = [
    'ingest',
    file,
    '--type',
    'Person',
    '--auto',
    '--columns',
    'id,name,age',
    '--null',
    '\\N',
    '--organization',
    'acme/eu',
  ];
  expect(await annalsHere(ingest, env)).toMatchObject({ status: 0 });
  const rows = await annalsHere(['query', '--format', 'ndjson', 'SELECT id, age, namespace_path FROM Person ORDER BY id'], env);
  expect(rows.stdout).toBe('{"id":"p1","age":null,"namespace_path":"acme/eu"}\n{"id":"p2","age":7,"namespace_path":"acme/eu"}\n');
  expect((await annalsHere(['ingest', file, '--type', 'Person', '--organization', 'globex'], env)).status).toBe(3);
  await stop(server);
  const log = readFileSync(join(directory, 'log/00000000.log'));
  // The secret may itself contain `_`: it is all that follows the key's id.
  const secret = token.split('_').slice(2).join('_');
  expect(secret.length).toBeGreaterThan(20);
  expect(log.includes(secret)).toBe(false);
  expect(statSync(join(directory, 'keys/kek')).mode & 0o777).toBe(0o600);
});

test('query writes every format, to a file or standard output, from a server as from the directory itself', async () => {
  const directory = freshDirectory();
  await beginStore(directory);
  const token = (await annalsHere(['token', 'mint', '--data-dir', directory])).stdout.trim();
  const { said, server } = await serve(directory);
  const env = { ANNALS_URL: urlIn(said()), ANNALS_TOKEN: token };
  const file = join(home, 'exported.ndjson');
  writeFileSync(file, '{"id":"a","n":9223372036854775807,"t":""}\n{"id":"b","t":"x,\\"y\\""}\n');
  expect(await annalsHere(['ingest', file, '--type', 'Thing', '--auto'], env)).toMatchObject({ status: 0 });
  const sql = 'SELECT id, n, t FROM Thing ORDER BY id';
  const csv = '"id","n","t"\r\n"a",9223372036854775807,""\r\n"b",,"x,""y"""\r\n';
  const query = (args: readonly string[], more: Readonly<Record<string, string>> = {}) => annalsHere(['query', ...args], more);

  expect(await query(['--format', 'csv', sql], env)).toEqual({ status: 0, stdout: csv, stderr: '' });
  const parquet = join(home, 'rows.parquet');
  expect(await query(['--format', 'parquet', '--output', parquet, sql], env)).toEqual({ status: 0, stdout: '', stderr: '' });
  expect(readFileSync(parquet).subarray(-4).toString()).toBe('PAR1');
  expect((await query(['--format', 'csv', '--output', join(home, 'no/such/folder.csv'), sql], env)).status).toBe(2);
  const refused = await query(['--format', 'csv', '--output', join(home, 'refused.csv'), 'SELECT * FROM Nope'], env);
  expect(refused).toMatchObject({ status: 3, stderr: expect.stringContaining('REL_UNKNOWN_TYPE') as string });
  expect([existsSync(join(home, 'refused.csv')), existsSync(join(home, 'refused.csv.part'))]).toEqual([false, false]);
  const analyzed = await analyzedBy((format) => query(['--format', format, `EXPLAIN ANALYZE ${sql}`], env));
  const nothing = ['--format', 'ndjson', 'SELECT id FROM Thing WHERE t = NULL'];
  const told = expect.stringMatching(/^annals: 1:32: a comparison with NULL holds for no row[^\n]*\n$/m) as string;
  expect(await query(nothing, env)).toEqual({ status: 0, stdout: '', stderr: told });
  await stop(server);
  expect(await query(['--data-dir', directory, ...nothing])).toMatchObject({ status: 0, stdout: '', stderr: told });

  expect(await analyzedBy((format) => query(['--data-dir', directory, '--format', format, `EXPLAIN ANALYZE ${sql}`]))).toEqual(
    analyzed,
  );
  expect(await query(['--data-dir', directory, '--format', 'csv', sql])).toMatchObject({ status: 0, stdout: csv });
  const arrow = join(home, 'rows.arrows');
  expect((await query(['--data-dir', directory, '--format', 'arrow', '--output', arrow, sql])).status).toBe(0);
  expect([...tableFromIPC(readFileSync(arrow)).getChild('n')!]).toEqual([9_223_372_036_854_775_807n, null]);

  for (const args of [
    ['--format', 'xlsx'],
    ['--output', join(home, 'table.txt')],
  ]) {
    expect((await query([...args, '--data-dir', directory, sql])).status).toBe(2);
  }
});

/** A plan and its figures for a reader and for programs; what they tell, but for times. */
async function analyzedBy(ask: (format: string) => Promise<{ readonly stdout: string }>): Promise<unknown> {
  type Told = Readonly<Record<string, unknown>>;
  const timeless = ({ time_ms: ms, ...others }: Told): Told => ({ ...others, timed: typeof ms });
  const text = (await ask('table')).stdout;
  expect(text).toMatch(
    /^project .*\n  sort id, _pk \[in 2, out 2, expected 2; .* ms; holds 17 bytes\]\n    scan Thing .*\n2 rows in .* ms\n$/,
  );
  const { operators, ...whole } = JSON.parse((await ask('json')).stdout) as Told & { readonly operators: readonly Told[] };
  expect(whole).toEqual({
    plan: expect.any(Array) as unknown,
    actual_rows: 2,
    processing_time_ms: expect.any(Number) as unknown,
  });
  const told = operators.map(timeless);
  const lines = (await ask('ndjson')).stdout.trimEnd().split('\n');
  expect(lines.map((line) => timeless(JSON.parse(line) as Told))).toEqual(told);
  return told;
}

test('branch forks, lists and deletes, on a directory as on a server; query and ingest go by --branch', async () => {
  const directory = freshDirectory();
  await beginStore(directory);
  const here = ['--data-dir', directory];
  const token = (await annalsHere(['token', 'mint', ...here])).stdout.trim();
  const file = join(home, 'branch.ndjson');
  writeFileSync(file, '{"id":"a","n":1}\n');
  expect((await annalsHere(['ingest', file, '--type', 'Thing', '--auto', ...here])).status).toBe(0);
  expect(await annalsHere(['branch', 'dev', '--from', 'main', ...here])).toMatchObject({
    status: 0,
    stdout: 'dev forked from main\n',
  });
  writeFileSync(file, '{"id":"b","n":2}\n');
  expect((await annalsHere(['ingest', file, '--type', 'Thing', '--branch', 'dev', ...here])).status).toBe(0);
  const count = ['query', '--format', 'ndjson', 'SELECT COUNT(*) AS n FROM Thing'];
  expect((await annalsHere([...count, '--branch', 'dev', ...here])).stdout).toBe('{"n":2}\n');
  expect((await annalsHere([...count, ...here])).stdout).toBe('{"n":1}\n');
  for (const args of [['dev'], ['--delete'], ['dev', '--list'], ['dev', '--from', 'main', '--delete']]) {
    expect((await annalsHere(['branch', ...args, ...here])).status).toBe(2);
  }

  const { said, server } = await serve(directory);
  const env = { ANNALS_URL: urlIn(said()), ANNALS_TOKEN: token };
  expect((await annalsHere(['branch', 'über / dev', '--from', 'dev'], env)).status).toBe(0);
  expect((await annalsHere(['branch', 'types', '--from', 'dev', '--ontology'], env)).status).toBe(0);
  writeFileSync(file, '{"id":"c","n":3}\n');
  expect((await annalsHere(['ingest', file, '--type', 'Thing', '--branch', 'über / dev'], env)).status).toBe(0);
  const counts: string[] = [];
  for (const name of ['über / dev', 'dev', 'main', 'types'])
    counts.push((await annalsHere([...count, '--branch', name], env)).stdout);
  expect(counts).toEqual(['{"n":3}\n', '{"n":2}\n', '{"n":1}\n', '{"n":0}\n']);
  const listed = (await annalsHere(['branch', '--list'], env)).stdout;
  expect(
    listed
      .split('\n')
      .slice(2, -1)
      .map((line) => line.split(/ {2,}/)[0]),
  ).toEqual(['main', 'dev', 'types', 'über / dev']);
  expect(await annalsHere(['branch', 'dev', '--delete'], env)).toMatchObject({ status: 0, stdout: 'dev deleted\n' });
  expect(await annalsHere([...count, '--branch', 'dev'], env)).toMatchObject({
    status: 3,
    stderr: expect.stringContaining('REL_NOT_FOUND') as string,
  });
  expect((await annalsHere([...count, '--branch', 'über / dev'], env)).stdout).toBe('{"n":3}\n');
  await stop(server);
});

test('SIGTERM ends with 0 and leaves a sealed, intact log and saved projections', async () => {
  const directory = freshDirectory();
  const { server, said } = await serve(directory, {}, 'a token');
  const token = /export TOKEN=(ann_\S+)/.exec(said())![1]!;
  const auth = { authorization: `Bearer ${token}` };
  const body = Array.from({ length: 50 }, (_, i) => `{"id":"n${i}"}`).join('\n');
  const written = await fetch(`${urlIn(said())}/ingest/auto?object_type=N`, { method: 'POST', headers: auth, body });
  expect(written.status).toBe(200);
  expect(await stop(server)).toBe(0);
  const verified = annals(['verify', '--projections', '--json', '--data-dir', directory]);
  expect(verified.status).toBe(0);
  expect(verified.stdout).toContain('"ok":true');
  expect(verified.stdout).toMatch(/rows +[0-9a-f]{64} {2}same {2}\(saved at leaf \d+\)/);
});
