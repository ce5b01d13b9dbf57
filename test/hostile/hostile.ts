/**
 * Hostile statements, then hostile clients, with a login and without one, against a started server, `/health` asked every 10 ms meanwhile from a process of its own:
 *
 *   npm run hostile -- [--scale 1] [--only '<part of a name>|<of another>'] [--timeout 10] [--limit 50] [--connections 50] [--crowd 1000] [--json]
 *
 * A line a statement: how it ended, after how long; the slowest answer of /health, less what the machine kept its cores from the
 * server and from whoever asks, and by the clock (`wall`); the longest absence of the event loop by the clock (`loop`) and in its own
 * CPU time (`hold`: what another process can't make longer), and its longest pause for the collector (`gc`); memory. At the end the ten longest holds of all. Exit code 1 where one
 * ended wrongly, took more than its timeout and a tenth, held the loop for longer than the limit, or /health was slower than that.
 */
import { parseArgs } from 'node:util';
import { bombs } from './bombs.ts';
import { scalarBombs } from './scalars.ts';
import { type Endured, endure, heldMaxKb, hostileClients, supplyHeld } from './clients.ts';
import { cameAtOnce, crowds, socketMaxKb, stand } from './crowds.ts';
import { burst, doorBombs } from './door-bombs.ts';
import { frameBombs } from './frame-bombs.ts';
import { ruleBombs } from './rule-bombs.ts';
import { strangers, strangersMaxMb } from './strangers.ts';
import { besiege, type Suffered, suffer, supply } from './siege.ts';

const { values: options } = parseArgs({
  options: {
    scale: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    timeout: { type: 'string', default: '10' },
    limit: { type: 'string', default: '50' },
    heap: { type: 'string', default: '3072' },
    connections: { type: 'string', default: '50' },
    crowd: { type: 'string', default: '1000' },
    json: { type: 'boolean', default: false },
  },
});

const meant = options.only.split('|');
const isMeant = (name: string): boolean => meant.some((part) => name.includes(part));
const scale = Number(options.scale);
const sizes = { big: Math.round(1_000_000 * scale), middle: Math.round(200_000 * scale), sides: Math.round(100_000 * scale) };
const limitMs = Number(options.limit);
const timeoutMs = Number(options.timeout) * 1000;

const siege = await besiege(
  { SERVICE_QUERY_TIMEOUT_SECS: options.timeout, SERVICE_BODY_LIMIT_MB: '64', SERVICE_MAX_SCANNED_ROWS: '20000000' },
  Number(options.heap),
  // As it is built: `built.mjs` says why.
  ['--import', new URL('../../scripts/built.mjs', import.meta.url).href],
);
const suffered: Suffered[] = [];
const endured: Endured[] = [];
const holds: { readonly name: string; readonly holdMs: number }[] = [];
let bursts = 0;
const complaints: string[] = [];
try {
  await supply(siege, sizes);
  const quiet = await rest();
  for (const bomb of [...bombs(sizes), ...scalarBombs(40)].filter(({ name }) => isMeant(name))) {
    const one = await suffer(siege, bomb);
    suffered.push(one);
    holds.push(one);
    const { name, end, ms, health, loopDelayMs, holdMs, collectMs, rssMb, wrong } = one;
    if (wrong !== null) complaints.push(`${name}: ${wrong}`);
    if (health.worstMs > limitMs) complaints.push(`${name}: /health took ${health.worstMs.toFixed(0)} ms`);
    if (holdMs > limitMs) complaints.push(`${name}: the loop was held for ${holdMs.toFixed(0)} ms`);
    if (health.failed > 0) complaints.push(`${name}: /health failed ${health.failed} times`);
    if (end === 'REL_TIMEOUT' && ms > timeoutMs * 1.1 + 100) complaints.push(`${name}: timed out after ${ms.toFixed(0)} ms`);
    console.error(
      `${name.padEnd(38)} ${end.padEnd(16)} ${ms.toFixed(0).padStart(7)} ms  health p100 ${health.worstMs.toFixed(1).padStart(6)} p99 ${health.p99Ms.toFixed(1).padStart(6)} wall ${health.wallMs.toFixed(0).padStart(4)} ms of ${String(health.polls).padStart(5)}  loop ${loopDelayMs.toFixed(1).padStart(6)} hold ${holdMs.toFixed(1).padStart(6)} gc ${collectMs.toFixed(0).padStart(3)} ms  ${rssMb.toFixed(0).padStart(5)} MiB`,
    );
  }
  if (hostileClients.some(({ name }) => isMeant(name))) await supplyHeld(siege);
  for (const client of hostileClients.filter(({ name }) => isMeant(name))) {
    const one = await endure(siege, client, Number(options.connections));
    endured.push(one);
    const { name, connections, heldKb, rssMb, ended, health, holdMs } = one;
    holds.push({ name, holdMs });
    if (health.p99Ms > limitMs) complaints.push(`${name}: /health p99 ${health.p99Ms.toFixed(0)} ms`);
    if (holdMs > limitMs) complaints.push(`${name}: the loop was held for ${holdMs.toFixed(0)} ms`);
    if (heldKb > heldMaxKb) complaints.push(`${name}: ${heldKb.toFixed(0)} KiB held for a connection`);
    console.error(
      `${name.padEnd(38)} ${String(connections).padStart(5)} connections, ${String(ended).padStart(4)} ended  ${heldKb.toFixed(0).padStart(6)} KiB held for each  health p100 ${health.worstMs.toFixed(1).padStart(6)} p99 ${health.p99Ms.toFixed(1).padStart(6)} wall ${health.wallMs.toFixed(0).padStart(4)} ms  hold ${holdMs.toFixed(1).padStart(6)} ms  ${rssMb.toFixed(0).padStart(5)} MiB`,
    );
  }
  for (const bomb of [...doorBombs, ...frameBombs, ...ruleBombs, ...strangers].filter(({ name }) => isMeant(name))) {
    const before = await siege.measure();
    await siege.health();
    const { name, end, ms, wrong } = await burst(siege, bomb);
    const health = await siege.health();
    const { holdMs, collectMs, rssMb } = await siege.measure();
    bursts++;
    holds.push({ name, holdMs });
    if (wrong) complaints.push(`${name}: ended with ${end}`);
    const isStranger = strangers.includes(bomb);
    // A crowd that connects is a crowd: one answer among many may wait.
    const slowestMs = isStranger || frameBombs.includes(bomb) ? health.p99Ms : health.worstMs;
    if (slowestMs > limitMs) complaints.push(`${name}: /health took ${slowestMs.toFixed(0)} ms`);
    if (holdMs > limitMs) complaints.push(`${name}: the loop was held for ${holdMs.toFixed(0)} ms`);
    const grownMb = rssMb - before.rssMb;
    if (isStranger && grownMb > strangersMaxMb) complaints.push(`${name}: ${grownMb.toFixed(0)} MiB more`);
    console.error(
      `${name.padEnd(48)} ${end.slice(0, 24).padEnd(24)} ${ms.toFixed(0).padStart(7)} ms  health p100 ${health.worstMs.toFixed(1).padStart(6)} p99 ${health.p99Ms.toFixed(1).padStart(6)} wall ${health.wallMs.toFixed(0).padStart(4)} ms  hold ${holdMs.toFixed(1).padStart(6)} gc ${collectMs.toFixed(0).padStart(3)} ms  ${rssMb.toFixed(0).padStart(5)} MiB`,
    );
  }
  for (const crowd of crowds.filter(({ door }) => isMeant(`${door}: a crowd`))) {
    const { door, sockets, ended, heldKb, grownMb, health, holdMs } = await stand(siege, crowd, Number(options.crowd));
    const name = `${door}: a crowd`;
    if (health.p99Ms > limitMs) complaints.push(`${name}: /health p99 ${health.p99Ms.toFixed(0)} ms`);
    if (ended > endedMax(door, sockets)) complaints.push(`${name}: ${ended} were ended before their time`);
    holds.push({ name, holdMs });
    if (heldKb > socketMaxKb || grownMb > 100) complaints.push(`${name}: ${grownMb.toFixed(0)} MiB`);
    console.error(
      `${name.padEnd(38)} ${String(sockets).padStart(5)} sockets, ${String(ended).padStart(4)} ended  ${heldKb.toFixed(1).padStart(6)} KiB held for each, ${grownMb.toFixed(0)} MiB more  health p100 ${health.worstMs.toFixed(1)} p99 ${health.p99Ms.toFixed(1)} wall ${health.wallMs.toFixed(0)} ms of ${health.polls}  hold ${holdMs.toFixed(1)} ms`,
    );
  }
  for (const { name, holdMs } of holds.toSorted((a, b) => b.holdMs - a.holdMs).slice(0, 10))
    console.error(`longest turns: ${holdMs.toFixed(1).padStart(7)} ms  ${name}`);
  for (const complaint of complaints) console.error(complaint);
  const worst = Math.max(...suffered.map(({ health }) => health.worstMs));
  console.log(
    JSON.stringify({
      statements: suffered.length,
      rows: sizes,
      quietHealthMs: Number(quiet.worstMs.toFixed(1)),
      worstHealthMs: Number(worst.toFixed(1)),
      worstOf: suffered.find(({ health }) => health.worstMs === worst)?.name,
      worstLoopDelayMs: Number(Math.max(...suffered.map(({ loopDelayMs }) => loopDelayMs)).toFixed(1)),
      worstHoldMs: Number(Math.max(...suffered.map(({ holdMs }) => holdMs)).toFixed(1)),
      rssMb: Math.round(Math.max(...suffered.map(({ rssMb }) => rssMb))),
      clients: endured.length,
      bursts,
      worstHeldKb: Math.round(Math.max(0, ...endured.map(({ heldKb }) => heldKb))),
      worstHeldOf: endured.toSorted((a, b) => b.heldKb - a.heldKb)[0]?.name,
      complaints: complaints.length,
    }),
  );
} finally {
  await siege.stop();
}
process.exitCode = complaints.length > 0 ? 1 : 0;

/**
 * Of a crowd without a login, those beyond the bound of strangers make room for the next; at the key-value door half of it logs in,
 * but for those that are about to.
 */
function endedMax(door: string, sockets: number): number {
  return Math.max(0, (door === 'kv' ? sockets / 2 + cameAtOnce : sockets) - 1_000);
}

/** What the machine itself does to /health, with nothing to do. */
async function rest() {
  await siege.health();
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  return siege.health();
}
