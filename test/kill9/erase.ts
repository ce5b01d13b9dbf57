/**
 * The built server under real `kill -9` while subjects are erased:
 *
 *   npx tsx test/kill9/erase.ts [--rounds 20] [--seed 1]
 *
 * Each round: rows of some subjects, a kill at a random moment of an erasure, `annals verify` on what is left, a start that goes on
 * with it. Then the subject is whole or gone, never in part; asked again it is certified, and the receipt verifies without
 * Annals; nobody else lost a row, and receipts of earlier rounds are the same to the byte. One line of JSON; exit code 1 when
 * any of that does not hold.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Seeded } from '../simulation/seeded.ts';
import { freePort } from '../clients/free-port.ts';
import { sleep, stop } from './processes.ts';
import { beginStore } from '../harness.ts';

interface Verifier {
  verifyReceipt(receipt: string, logKey: string, erasureKey: string): string[];
}

interface Erased {
  readonly certified: boolean;
  readonly receipt: object;
  readonly verification_key: string;
}

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '20' }, seed: { type: 'string', default: String(process.pid) } },
});

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const { verifyReceipt } = (await import(join(root, 'verify/annals-verify.mjs'))) as Verifier;
const annals = join(root, 'bin/annals');
const home = mkdtempSync(join(tmpdir(), 'annals-erase-'));
const data = join(home, 'data');
const random = new Seeded(Number(options.seed));
const [port, adminPort] = [await freePort(), await freePort()];
const url = `http://127.0.0.1:${port}`;
const env = {
  ...process.env,
  SERVICE_PORT: String(port),
  SERVICE_ADMIN_BIND: `127.0.0.1:${adminPort}`,
  SERVICE_RATE_LIMIT_RPS: '1000000',
  SERVICE_READ_RATE_LIMIT_RPS: '1000000',
  SERVICE_CHECKPOINT_LOG_MB: '1',
};
const rowsEach = 400;
await beginStore(data);
const token = run(['token', 'mint', '--data-dir', data]).stdout.trim();
const problems: string[] = [];
const earlier: { readonly subject: string; readonly receipt: string }[] = [];
const ends = { before: 0, within: 0, after: 0 };
let rounds = 0;

for (; rounds < Number(options.rounds) && problems.length === 0; rounds++) await round();
if (problems.length === 0) rmSync(home, { recursive: true, force: true });
console.log(JSON.stringify({ rounds, ends, problems, ...(problems.length > 0 ? { data } : {}) }));
process.exit(problems.length > 0 ? 1 : 0);

async function round(): Promise<void> {
  const [gone, kept] = [`gone ${rounds}`, `kept ${rounds}`];
  const first = await start();
  if (rounds === 0) {
    const text = { type: 'string' };
    const properties = { id: text, who: { ...text, subject: true }, note: text };
    await good('/types', { name: 'Person', primary_key: 'id', properties });
  }
  const row = (who: string) => (_: unknown, i: number) => ({ id: `${who} ${i}`, who, note: 'x'.repeat(200) });
  for (const who of [gone, kept]) {
    await good('/ingest?object_type=Person', Array.from({ length: rowsEach }, row(who)));
  }
  let answered = false;
  const asked = erase(gone).then(
    () => (answered = true),
    () => undefined,
  );
  await sleep(random.below(random.chance(0.3) ? 100 : 1200));
  await stop(first, 'SIGKILL');
  await asked;
  const verify = run(['verify', '--data-dir', data]);
  if (verify.status !== 0) problem(`verify: ${verify.stdout}${verify.stderr}`);

  const second = await start();
  const left = await countOf(gone);
  if (left !== 0 && (left !== rowsEach || answered)) problem(`${left} of ${rowsEach} rows are left`);
  ends[answered ? 'after' : left === 0 ? 'within' : 'before']++;
  const { certified, receipt, verification_key: key } = await erase(gone);
  if (!certified) problem('it is not certified');
  const proven = verifyReceipt(JSON.stringify(receipt), await logKey(), key);
  if (proven.length < 4) problem(`the receipt proves ${proven.join('; ')}`);
  if ((await countOf(gone)) !== 0) problem('rows are back');
  if ((await countOf(kept)) !== rowsEach) problem('rows of another subject are lost');
  for (const { subject, receipt: before } of earlier) {
    if (JSON.stringify((await erase(subject)).receipt) !== before) problem(`the receipt of ${subject} is another`);
  }
  earlier.push({ subject: gone, receipt: JSON.stringify(receipt) });
  await stop(second, 'SIGTERM');
  const after = run(['verify', '--data-dir', data]);
  if (after.status !== 0) problem(`verify after the erasure: ${after.stdout}${after.stderr}`);
  process.stderr.write(`round ${rounds + 1}: ${JSON.stringify(ends)}\n`);
}

async function erase(subject: string): Promise<Erased> {
  const { rows } = await good('/query', { sql: `ERASE SUBJECT '${subject}' REASON 'asked for it' CERTIFY` });
  return (rows as Erased[])[0]!;
}

async function countOf(who: string): Promise<number> {
  const { rows } = await good('/query', { sql: `SELECT COUNT(*) AS n FROM Person WHERE who = '${who}'` });
  return (rows as { n: number }[])[0]!.n;
}

async function logKey(): Promise<string> {
  const reply = await fetch(`${url}/audit/log`, { headers: { authorization: `Bearer ${token}` } });
  return ((await reply.json()) as { key: string }).key;
}

async function good(path: string, body: unknown): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const reply = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await reply.text();
  if (reply.status >= 300) throw new Error(`${path}: ${reply.status} ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

function problem(what: string): void {
  problems.push(`round ${rounds}: ${what}`);
}

async function start(): Promise<ChildProcess> {
  const server = spawn(process.execPath, [annals, 'serve', '--data-dir', data], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  server.stderr!.on('data', (chunk) => (said += chunk));
  for (let tries = 0; tries < 600 && server.exitCode === null; tries++) {
    const ready = await fetch(`${url}/health/ready`).then(
      ({ status }) => status === 200,
      () => false,
    );
    if (ready) return server;
    await sleep(50);
  }
  server.kill('SIGKILL');
  throw new Error(`the server did not start in round ${rounds}; ${data}\n${said}`);
}

function run(args: readonly string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [annals, ...args], { env, encoding: 'utf8', maxBuffer: 1 << 26 });
}
