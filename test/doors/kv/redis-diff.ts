/**
 * `npm run redis:diff -- [--n 100000] [--seed 1]`: random commands on strings, counters and the ends of keys, put to `redis-server` too
 * (Redis 7, of the distribution). Prints what differs, with what came before it (0).
 */
import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { freePort } from '../../clients/free-port.ts';
import { Dice } from '../../fuzz/mutate.ts';
import { StoreWorld } from '../http/store-world.ts';
import { commandOf } from './commands.ts';
import { kvConnected, kvSecret } from './kv-client.ts';

/** The last millisecond that an instant of the store can be in. */
const lastMs = 9_223_372_036_854n;
const perSequence = 40;

/** Replies that tell a time: how far they may be apart, and what they count. */
const times: Readonly<Record<string, { readonly apart: bigint; readonly ms: bigint; readonly relative: boolean }>> = {
  TTL: { apart: 3n, ms: 1_000n, relative: true },
  PTTL: { apart: 3_000n, ms: 1n, relative: true },
  EXPIRETIME: { apart: 3n, ms: 1_000n, relative: false },
  PEXPIRETIME: { apart: 3_000n, ms: 1n, relative: false },
};

type Reply = readonly [Error | null, unknown];

function told([error, value]: Reply): string {
  return error === null ? JSON.stringify(value) : `error ${error.message}`;
}

function same(command: readonly string[], own: Reply, other: Reply): boolean {
  if (told(own) === told(other)) return true;
  const time = Object.hasOwn(times, command[0]!) ? times[command[0]!]! : undefined;
  if (time === undefined || own[0] !== null || other[0] !== null) return false;
  const [one, two] = [BigInt(String(own[1])), BigInt(String(other[1]))];
  if (one < 0n || two < 0n) return false;
  const last = (lastMs - (time.relative ? BigInt(Date.now()) : 0n)) / time.ms;
  const wanted = two > last ? last : two;
  return one - wanted <= time.apart && wanted - one <= time.apart;
}

const { values } = parseArgs({ options: { n: { type: 'string', default: '100000' }, seed: { type: 'string', default: '1' } } });
const total = Number(values.n);
const port = await freePort();
const server = spawn('redis-server', ['--port', String(port), '--save', '', '--appendonly', 'no'], { stdio: 'ignore' });
const redis = new Redis(port, '127.0.0.1', { replyMapping: 'legacy' });
redis.on('error', () => undefined);
const world = await StoreWorld.open({
  SERVICE_BEARER_TOKEN: kvSecret,
  SERVICE_RATE_LIMIT_RPS: '1000000',
  SERVICE_READ_RATE_LIMIT_RPS: '1000000',
  SERVICE_QUERY_QUOTA: '1000000000',
});
const own = kvConnected(world, { stringNumbers: true });
const other = redis.duplicate({ stringNumbers: true, replyMapping: 'legacy' });
let different = 0;
for (let done = 0; done < total && different < 20; done += perSequence) {
  const dice = new Dice(Number(values.seed) * 1_000_003 + done);
  // Keys of a sequence are its own: nothing has to be deleted in between.
  const commands = Array.from({ length: perSequence }, () =>
    commandOf(dice).map((word, i) => (i > 0 && /^[abc]$/.test(word) ? `${word}${done}` : word)),
  );
  const ask = (client: Redis): Promise<Reply[]> =>
    client.pipeline(commands.map(([name, ...words]) => ['call', name!, ...words])).exec() as Promise<Reply[]>;
  const [mine, theirs] = await Promise.all([ask(own), ask(other)]);
  for (const [i, command] of commands.entries()) {
    if (same(command, mine[i]!, theirs[i]!)) continue;
    different++;
    console.log(`${JSON.stringify(commands.slice(0, i + 1))}\n  here  ${told(mine[i]!)}\n  redis ${told(theirs[i]!)}`);
    break;
  }
}
console.log(JSON.stringify({ suite: 'redis-diff', seed: Number(values.seed), commands: total, different }));
own.disconnect();
other.disconnect();
redis.disconnect();
await world.close();
server.kill();
process.exitCode = different === 0 ? 0 : 1;
