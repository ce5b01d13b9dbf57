/** A server under hostile statements: how each ends, and whether the server went on answering others meanwhile. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { send } from '../doors/http/door-world.ts';
import { loading, running } from '../runner/running.ts';
import type { Bomb, Sizes } from './bombs.ts';
import type { Polled } from './poller.ts';
import type { Measured, Order } from './server.ts';
import { residentBytes } from './thread.ts';

export interface Siege {
  readonly port: number;
  readonly token: string;
  /** Of the doors beside HTTP, by their names. */
  readonly ports: Readonly<Record<string, number>>;
  measure(): Promise<Measured>;
  /** The same without a collection, for which everybody waits. */
  look(): Promise<Measured>;
  /** Memory of the server now, without asking it: it may be busy. */
  residentMb(): number;
  /** Keeps the server's event loop busy for so many milliseconds of CPU time. */
  hold(ms: number): void;
  /** What happened since the last call. */
  health(): Promise<Polled>;
  stop(): Promise<void>;
}

export interface Suffered {
  readonly name: string;
  /** `answered` or the error's code. */
  readonly end: string;
  readonly ms: number;
  readonly health: Polled;
  readonly loopDelayMs: number;
  /** Longest turn of the server's event loop in CPU time. */
  readonly holdMs: number;
  readonly collectMs: number;
  readonly rssMb: number;
  /** What is wrong; null where the statement ended as it must. */
  readonly wrong: string | null;
}

const pollEveryMs = 10;
/** Opens the doors beside HTTP. */
export const doorSecret = 'bearer-for-hostile-tests';

/**
 * `heapMb` bounds the server's JavaScript heap: one that wants more dies, and that is a failure. `flags` are more of what Node is
 * started with.
 */
export async function besiege(
  settings: Readonly<Record<string, string>>,
  heapMb: number,
  flags: readonly string[] = [],
): Promise<Siege> {
  const server = started(
    'server',
    [JSON.stringify({ SERVICE_BEARER_TOKEN: doorSecret, SERVICE_FLIGHT_ENABLE: 'true', ...settings })],
    [`--max-old-space-size=${heapMb}`, '--max-semi-space-size=32', ...flags],
  );
  const { port, token, ports } = (await reply(server)) as Pick<Siege, 'port' | 'token' | 'ports'>;
  const poller = started('poller', [String(port), String(pollEveryMs), String(server.pid)]);
  await reply(poller);
  const measured = async (order: Order): Promise<Measured> => {
    server.send(order);
    return (await reply(server)) as Measured;
  };
  return {
    port,
    token,
    ports,
    measure: () => measured('measure'),
    look: () => measured('look'),
    residentMb: () => residentBytes(server.pid!) / 2 ** 20,
    hold(ms) {
      server.send(ms satisfies Order);
    },
    async health() {
      poller.send('report');
      return (await reply(poller)) as Polled;
    },
    async stop() {
      for (const child of [poller, server]) {
        const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null;
        if (child.connected) child.disconnect();
        await ended;
      }
    },
  };
}

function started(file: string, parameters: readonly string[], flags: readonly string[] = []): ChildProcess {
  return fork(fileURLToPath(running(`test/hostile/${file}`)), parameters, {
    execArgv: [...loading, '--expose-gc', ...flags],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

/** The next message; an end before it is a failure, not a wait. */
function reply(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const gone = (code: number | null) => reject(new Error(`the process ended with ${code}`));
    child.once('exit', gone);
    child.once('message', (message) => {
      child.off('exit', gone);
      resolve(message);
    });
    if (child.exitCode !== null) gone(child.exitCode);
  });
}

/**
 * Tables of the bombs: `Small` (1,000 rows), `Left1` and `Right1`, `Middle`, `Big` with n = 0, 1, 2 …, a text s of a
 * thousand, g scattered, few of twenty, x a number and t a second apart; `Text` with 200 texts of 100,000 characters;
 * `Wide` with 60 columns.
 */
export async function supply(siege: Siege, sizes: Sizes): Promise<void> {
  await load(siege, 'Small', 'n,s', 1_000, (i) => `${i},s${i % 7}`);
  await load(siege, 'Left1', 'n', sizes.sides, String);
  await load(siege, 'Right1', 'n', sizes.sides, String);
  const columns = 'n,s,g,few,x,t';
  const row = (i: number) =>
    `${i},s${(i * 7919) % 1000},${(i * 104_729) % 1_000_003},${i % 20},${i / 8},${new Date(1_700_000_000_000 + i * 1000).toISOString()}`;
  for (const name of ['Middle', 'Big']) {
    const properties = { n: 'integer', s: 'string', g: 'integer', few: 'integer', x: 'number', t: 'timestamp' };
    const made = await send(siege.port, 'POST', '/types', { name, properties }, { authorization: `Bearer ${siege.token}` });
    if (made.status !== 201) throw new Error(made.text);
  }
  await load(siege, 'Middle', columns, sizes.middle, row);
  await load(siege, 'Big', columns, sizes.big, row);
  await load(siege, 'Text', 'body', 200, (i) => `${'a'.repeat(100_000)}${i}`);
  await supplyGraphs(siege, sizes.sides);
  const wide = Array.from({ length: 60 }, (_, i) => `w${i}`);
  await load(siege, 'Wide', wide.join(','), sizes.sides, (i) => wide.map((_, c) => `v${(i * (c + 1)) % 5000}`).join(','));
}

/** A chain, a clique, and a web in which everything is a few hops away, over one type of nodes. */
async function supplyGraphs(siege: Siege, nodes: number): Promise<void> {
  await load(siege, 'Spot', 'id', nodes, (i) => `v${i}`);
  const ends = 'id,from_id,to_id';
  await load(siege, 'Chain', ends, nodes - 1, (i) => `${i},v${i},v${i + 1}`);
  const side = Math.round(Math.sqrt(nodes));
  await load(siege, 'Clique', ends, side * side, (i) => `${i},v${i % side},v${Math.floor(i / side)}`);
  await load(siege, 'Web', ends, 5 * nodes, (i) => `${i},v${i % nodes},v${(i * 7919 + Math.floor(i / nodes) * 104_729) % nodes}`);
}

async function load(siege: Siege, type: string, header: string, rows: number, row: (i: number) => string): Promise<void> {
  for (let from = 0; from < rows; from += 50_000) {
    const lines = [header];
    for (let i = from; i < Math.min(rows, from + 50_000); i++) lines.push(row(i));
    const reply = await send(siege.port, 'POST', `/ingest/auto?object_type=${type}`, lines.join('\n'), {
      authorization: `Bearer ${siege.token}`,
      'content-type': 'text/csv',
    });
    if (reply.status !== 200) throw new Error(`${type}: ${reply.text.slice(0, 500)}`);
  }
}

export async function suffer(siege: Siege, bomb: Bomb): Promise<Suffered> {
  await siege.measure();
  await siege.health();
  const started = performance.now();
  const reply = await send(siege.port, 'POST', '/query', { sql: bomb.sql }, { authorization: `Bearer ${siege.token}` });
  const ms = performance.now() - started;
  const health = await siege.health();
  const { loopDelayMs, holdMs, collectMs, rssMb } = await siege.measure();
  const { type } = reply.json as { type?: string };
  const end = reply.status === 200 ? 'answered' : (type?.split('/').at(-1) ?? `status ${reply.status}`);
  return {
    name: bomb.name,
    end,
    ms,
    health,
    loopDelayMs,
    holdMs,
    collectMs,
    rssMb,
    wrong: wrongOf(bomb, end, reply.text, reply.json),
  };
}

function wrongOf(bomb: Bomb, end: string, text: string, json: Record<string, unknown>): string | null {
  if (!bomb.ends.includes(end)) return `ended with ${end}: ${text.slice(0, 300)}`;
  if (end !== 'answered' || !bomb.first) return null;
  const [row] = json['rows'] as Record<string, unknown>[];
  const differs = Object.entries(bomb.first).filter(([name, value]) => row?.[name] !== value);
  return differs.length === 0 ? null : `answered ${JSON.stringify(row)}, not ${JSON.stringify(bomb.first)}`;
}
