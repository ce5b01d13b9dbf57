/**
 * The built server under real `kill -9`, with a ledger of acknowledgements kept outside of it:
 *
 *   npm run kill9 -- [--rounds 50] [--writers 8] [--seed 1] [--keep] [--during backup|restore|jobs]
 *
 * Each round: start, look for every acknowledged row through /query, write from several connections, kill at a random
 * moment while data keys are rotated, `annals verify` on what is left, `annals replay --check` on a copy of it. The next start finds the crash
 * itself, untouched, and goes on from the checkpoint that it left. Some writes patch rows of before, some hold only where there is no
 * row, and in some rounds a process of its own writes batches (`batch-writer.ts`). One line of JSON; exit code 1 when a row is lost, a request
 * came back in part, a data key that was in use is not, a check failed, or a checkpoint that a kill left was of no use. Every row
 * is somebody's, so that keys of subjects are made all the while. `--during`: backups are taken, or one is restored, all the while
 * too, and what the kill left of them is whole or nothing (`copies.ts`); or rules judge and a job runs, and no alert is lost or there twice
 * (`alerts.ts`).
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Alerts } from './alerts.ts';
import { Backups, type Copying, type Killed, Restores } from './copies.ts';
import { Seeded } from '../simulation/seeded.ts';
import { freePort } from '../clients/free-port.ts';
import { sleep, stop } from './processes.ts';
import { beginStore } from '../harness.ts';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '50' },
    writers: { type: 'string', default: '8' },
    seed: { type: 'string', default: String(process.pid) },
    keep: { type: 'boolean', default: false },
    during: { type: 'string' },
  },
});

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const annals = join(root, 'bin/annals');
const home = mkdtempSync(join(tmpdir(), 'annals-kill9-'));
const data = join(home, 'data');
const random = new Seeded(Number(options.seed));
const [port, adminPort] = [await freePort(), await freePort()];
const url = `http://127.0.0.1:${port}`;
const adminToken = 'kill9-admin-token';
const env = {
  ...process.env,
  SERVICE_PORT: String(port),
  SERVICE_ADMIN_BIND: `127.0.0.1:${adminPort}`,
  SERVICE_ADMIN_TOKEN: adminToken,
  SERVICE_RATE_LIMIT_RPS: '1000000',
  SERVICE_READ_RATE_LIMIT_RPS: '1000000',
  // Saved every few hundred requests, so that a kill comes in the middle of that too; and less memory than the rows take.
  SERVICE_CHECKPOINT_LOG_MB: '1',
  SERVICE_MEMORY_BUDGET_MB: '1',
};

/** One request: its rows stand or fall together. */
interface Sent {
  readonly ids: readonly string[];
  outcome: 'unknown' | 'acknowledged' | 'refused';
}

const ledger: Sent[] = [];
/** Notes that rows of this writer's were given by patches, in order: none is older than the last that was acknowledged. */
const patched = new Map<string, { sent: number; acknowledged: number }>();
const problems: string[] = [];
const started = performance.now();
let rounds = 0;
/** Starts that found a checkpoint and went on from it. */
let restored = 0;
/** Batches that were acknowledged. */
let batches = 0;
/** The data key that was last said to be in use, and how often that was. */
let keyInUse = 1;
let rotations = 0;
/** Asked for since, and never answered. */
let unheard = 0;

const copying = copyingDuring(options.during);
await beginStore(data);
const token = run(['token', 'mint', '--data-dir', data]).stdout.trim();
try {
  for (; rounds < Number(options.rounds) && problems.length === 0; rounds++) await round();
  const server = await start();
  await checkLedger();
  await copying?.started?.();
  await stop(server, 'SIGTERM');
} finally {
  if (!options.keep && problems.length === 0) rmSync(home, { recursive: true, force: true });
}

console.log(
  JSON.stringify({
    rounds,
    acknowledgedRows: count('acknowledged'),
    unknownRows: count('unknown'),
    patchedRows: patched.size,
    batches,
    refusedRows: count('refused'),
    restored,
    rotations,
    ...copying?.figures,
    problems,
    ...(problems.length > 0 ? { data } : {}),
    seconds: Math.round((performance.now() - started) / 100) / 10,
  }),
);
process.exit(problems.length > 0 ? 1 : 0);

function count(outcome: Sent['outcome']): number {
  return ledger.reduce((sum, sent) => sum + (sent.outcome === outcome ? sent.ids.length : 0), 0);
}

async function round(): Promise<void> {
  const server = await start();
  if (rounds === 0) await registerType();
  await checkLedger();
  await copying?.started?.();
  const writers = Array.from({ length: Number(options.writers) }, (_, writer) => write(writer));
  const rotating = rotateKeys();
  let copies: Promise<void> | undefined;
  if (copying)
    await new Promise<void>((begun) => {
      copies = copying.work(begun);
    });
  await sleep(50 + random.below(random.chance(0.2) ? 3000 : 1200));
  await stop(server, 'SIGKILL');
  await Promise.all([...writers, rotating, copies]);
  copying?.check();
  if (rounds % 3 === 1) await batchRound();

  const verify = run(['verify', '--data-dir', data]);
  if (verify.status !== 0) problems.push(`round ${rounds}: verify: ${verify.stdout}${verify.stderr}`);
  const copy = join(home, 'copy');
  cpSync(data, copy, { recursive: true });
  const replay = run(['replay', '--check', '--data-dir', copy]);
  if (replay.status !== 0) problems.push(`round ${rounds}: replay: ${replay.stdout}${replay.stderr}`);
  rmSync(copy, { recursive: true, force: true });
  console.error(`round ${rounds + 1}: ${ledger.length} requests, ${count('acknowledged')} rows acknowledged`);
}

/** A process that writes batches, killed at a random moment after its first. */
async function batchRound(): Promise<void> {
  const script = join(root, 'test/kill9/batch-writer.ts');
  const args = [...process.execArgv, script, data, `${rounds}-b`, String(random.below(1_000_000))];
  const writer = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const sent = new Map<number, Sent>();
  let said = '';
  const read = (line: string): void => {
    const told = JSON.parse(line) as { ready?: true; request?: number; ids?: string[]; acknowledged?: number };
    if (told.ids !== undefined) {
      const asked: Sent = { ids: told.ids, outcome: 'unknown' };
      ledger.push(asked);
      sent.set(told.request!, asked);
    }
    if (told.acknowledged === undefined) return;
    sent.get(told.acknowledged)!.outcome = 'acknowledged';
    batches++;
  };
  const begun = new Promise<void>((resolve) => {
    writer.stdout.on('data', (chunk) => {
      said += chunk;
      const lines = said.split('\n');
      said = lines.pop()!;
      for (const line of lines) read(line);
      if (lines.length > 0) resolve();
    });
    writer.once('close', () => resolve());
  });
  await begun;
  await sleep(100 + random.below(700));
  if (writer.exitCode !== null) return void problems.push(`round ${rounds}: the writer of batches ended by itself`);
  await stop(writer, 'SIGKILL');
}

function copyingDuring(what: string | undefined): Copying | null {
  const killed: Killed = {
    data,
    home,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    adminToken,
    run,
    problem: (text) => void problems.push(`round ${rounds}: ${text}`),
  };
  if (what === undefined) return null;
  if (what === 'backup') return new Backups(killed);
  if (what === 'restore') return new Restores(killed);
  if (what === 'jobs') return new Alerts(killed, send, (below) => random.below(below));
  throw new Error('--during backup, restore or jobs');
}

/** Writes until the connection breaks. */
async function write(writer: number): Promise<void> {
  const own: string[] = [];
  for (let request = 0; ; request++) {
    // Now and then so many that segments fill up and are sealed.
    const rows = random.chance(0.02) ? 3_000 : 1 + random.below(5);
    if (own.length > 0 && random.chance(0.3)) {
      if (!(await patch(random.pick(own)))) return;
      continue;
    }
    const how = random.pick(['', '', '&when=absent', '&replace=true']);
    const ids = Array.from({ length: rows }, (_, i) => `${rounds}-${writer}-${request}-${i}`);
    const sent: Sent = { ids, outcome: 'unknown' };
    ledger.push(sent);
    const body = ids
      .map((id) =>
        JSON.stringify({ id, round: rounds, owner: `owner ${random.below(3_000)}`, note: 'x'.repeat(random.below(200)) }),
      )
      .join('\n');
    try {
      const reply = await ask(`/ingest/auto?object_type=Kill&purpose=test${how}`, body);
      if (reply.status < 300) {
        sent.outcome = 'acknowledged';
        own.push(ids[0]!);
        const { accepted } = JSON.parse(reply.text) as { accepted: number };
        if (accepted !== rows) problems.push(`round ${rounds}: ${accepted} of ${rows} new rows were accepted${how}`);
      } else if (reply.status < 500) sent.outcome = 'refused';
      else return;
    } catch {
      return;
    }
  }
}

/** False once the connection is broken. */
async function patch(id: string): Promise<boolean> {
  const known = patched.get(id) ?? { sent: -1, acknowledged: -1 };
  patched.set(id, known);
  const number = ++known.sent;
  try {
    const body = JSON.stringify({ id, note: `patch ${number}` });
    const reply = await ask('/ingest?object_type=Kill&purpose=test&patch=true&when=present', body);
    if (reply.status >= 500) return false;
    const { accepted } = JSON.parse(reply.text) as { accepted?: number };
    if (accepted === 1) known.acknowledged = number;
    else problems.push(`round ${rounds}: a patch of ${id} was refused: ${reply.text}`);
    return true;
  } catch {
    return false;
  }
}

/** Rotates data keys until the connection breaks. One that was put into use stays in use; more may be that nobody was told of. */
async function rotateKeys(): Promise<void> {
  for (;;) {
    await sleep(random.below(150));
    unheard++;
    let reply: Response;
    let said: { readonly active_key: number; readonly previous_key: number };
    try {
      const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
      reply = await fetch(`http://127.0.0.1:${adminPort}/admin/rotate-dek`, { method: 'POST', headers, body: '{}' });
      said = (await reply.json()) as typeof said;
    } catch {
      return;
    }
    if (reply.status !== 200) return void problems.push(`round ${rounds}: rotation: ${reply.status} ${JSON.stringify(said)}`);
    if (said.previous_key < keyInUse || said.previous_key >= keyInUse + unheard)
      problems.push(`round ${rounds}: data key ${keyInUse} was in use, and then ${said.previous_key}`);
    unheard = 0;
    keyInUse = said.active_key;
    rotations++;
  }
}

async function registerType(): Promise<void> {
  const string = { type: 'string' };
  const properties = { id: string, round: { type: 'integer' }, note: string, owner: { ...string, subject: true } };
  const reply = await ask(
    '/types?purpose=test',
    JSON.stringify({ name: 'Kill', primary_key: 'id', properties }),
    'application/json',
  );
  if (reply.status !== 201) throw new Error(`the type was not registered: ${reply.text}`);
}

async function checkLedger(): Promise<void> {
  if (ledger.length === 0) return;
  const found = new Set<string>();
  for (let of = 0; of < Number(options.writers); of++) {
    const sql = `SELECT id FROM Kill WHERE id LIKE '%-${of}-%-%' LIMIT 1000000`;
    const reply = await ask('/query?purpose=test', JSON.stringify({ sql }), 'application/json');
    // Killed before the first row: even its type may be unknown.
    if (reply.status === 404 && count('acknowledged') === 0) continue;
    if (reply.status !== 200) return void problems.push(`round ${rounds}: query: ${reply.status} ${reply.text}`);
    for (const { id } of (JSON.parse(reply.text) as { rows: { id: string }[] }).rows) found.add(id);
  }
  for (const type of batches === 0 ? [] : ['Kill', 'Kill2']) {
    const sql = `SELECT id FROM ${type} WHERE id LIKE '%-b-%-%' LIMIT 1000000`;
    const reply = await ask('/query?purpose=test', JSON.stringify({ sql }), 'application/json');
    if (reply.status !== 200) return void problems.push(`round ${rounds}: query: ${reply.status} ${reply.text}`);
    for (const { id } of (JSON.parse(reply.text) as { rows: { id: string }[] }).rows) found.add(id);
  }
  await checkPatches();
  for (const { ids, outcome } of ledger) {
    const there = ids.filter((id) => found.has(id)).length;
    if (there === ids.length && outcome !== 'refused') continue;
    if (outcome === 'acknowledged') problems.push(`round ${rounds}: ${ids.length - there} of ${shown(ids)} are lost`);
    else if (there > 0) problems.push(`round ${rounds}: ${shown(ids)} ${outcome}, and ${there} of them are there`);
  }
}

/** The last patch that was acknowledged, or a later one, stands, and what it did not send. */
async function checkPatches(): Promise<void> {
  const sql = `SELECT id, note, owner FROM Kill AS OF CURRENT WHERE note LIKE 'patch %' LIMIT 1000000`;
  const reply = await ask('/query?purpose=test', JSON.stringify({ sql }), 'application/json');
  if (reply.status === 404 && count('acknowledged') === 0) return;
  if (reply.status !== 200) return void problems.push(`round ${rounds}: query: ${reply.status} ${reply.text}`);
  const { rows } = JSON.parse(reply.text) as { rows: { id: string; note: string; owner: string | null }[] };
  const standing = new Map(rows.map((row) => [row.id, row]));
  for (const [id, { sent, acknowledged }] of patched) {
    const row = standing.get(id);
    const number = row === undefined ? -1 : Number(row.note.slice(6));
    if (number < acknowledged || number > sent) {
      problems.push(`round ${rounds}: ${id} has patch ${number}, and ${acknowledged} of ${sent} was acknowledged`);
    } else if (row !== undefined && row.owner === null) problems.push(`round ${rounds}: a patch took the owner of ${id}`);
  }
}

const shown = (ids: readonly string[]): string => ids.slice(0, 5).join(' ');

async function ask(path: string, body: string, type = 'application/x-ndjson'): Promise<{ status: number; text: string }> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': type };
  const reply = await fetch(url + path, { method: 'POST', headers, body });
  return { status: reply.status, text: await reply.text() };
}

async function send(method: string, path: string, body?: unknown): Promise<{ status: number; text: string }> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const reply = await fetch(url + path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
  return { status: reply.status, text: await reply.text() };
}

async function start(): Promise<ChildProcess> {
  const saved = existsSync(join(data, 'projections/checkpoint'));
  const server = spawn(process.execPath, [annals, 'serve', '--data-dir', data], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  server.stderr!.on('data', (chunk) => (said += chunk));
  for (let tries = 0; tries < 600; tries++) {
    if (server.exitCode !== null) break;
    const ready = await fetch(`${url}/health/ready`).then(
      ({ status }) => status === 200,
      () => false,
    );
    if (ready) {
      // A kill leaves a checkpoint that is of use, or none.
      if (said.includes('rebuilt from the log')) problems.push(`round ${rounds}: ${said}`);
      else if (saved) restored++;
      return server;
    }
    await sleep(100);
  }
  server.kill('SIGKILL');
  throw new Error(`the server did not start in round ${rounds}; ${data}\n${said}`);
}

function run(args: readonly string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [annals, ...args], { env, encoding: 'utf8', maxBuffer: 1 << 26 });
}
