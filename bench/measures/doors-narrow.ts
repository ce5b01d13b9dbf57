/**
 * The key-value door beside Redis, by redis-benchmark; finding a document by its _id beside asking `/query` for it, by what each takes of
 * the server's core.
 */
import { connect } from 'node:net';
import { MongoClient } from 'mongodb';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { load, post } from '../http-load.ts';
import { clientCore, cpuSeconds, mustRun, pinned, run, serverCore, start, stop } from '../processes.ts';
import { quotient } from '../report.ts';
import { scramble } from '../workload.ts';

const secret = 'bearer-of-the-bench';
const clients = 50;
const finders = 16;
const keys = 100_000;

const loads = [
  { name: 'redis-get-1', measure: 'GET, 50 clients', depth: 1, test: 'get' },
  { name: 'redis-get-16', measure: 'GET, 50 clients, 16 at a time', depth: 16, test: 'get' },
  { name: 'redis-set', measure: 'SET, 50 clients, synced', depth: 1, test: 'set' },
] as const;

export async function narrowDoors(context: BenchContext): Promise<void> {
  const { report, directory, port } = context;
  const [kv, document] = [port(), port()];
  const settings = {
    SERVICE_BEARER_TOKEN: secret,
    SERVICE_KV_PORT: String(kv),
    SERVICE_DOCUMENT_PORT: String(document),
    SERVICE_RELATIONAL_ENABLE: 'false',
    SERVICE_OBJECT_ENABLE: 'false',
  };
  const server = await AnnalsServer.start(directory, 'narrow', port(), { settings });
  try {
    await listening(document);
    const hasClient = await run(['redis-benchmark', '--version']).then(
      ({ status }) => status === 0,
      () => false,
    );
    if (hasClient) await beside(context, kv);
    else report.skip('redis-benchmark', 'not installed here (Debian: apt-get install redis-tools)');
    await byId(context, server, document);
  } finally {
    await server.stop();
  }
}

async function beside({ report, directory, port, repeats, seconds }: BenchContext, own: number): Promise<void> {
  const theirs = port();
  const settings = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'always', '--dir', directory, '--port', String(theirs)];
  const redis = start(pinned(serverCore, ['redis-server', '--bind', '127.0.0.1', '--requirepass', secret, ...settings]));
  const isThere = await Promise.race([
    listening(theirs).then(() => true),
    new Promise<boolean>((resolve) => redis.once('error', () => resolve(false)).once('exit', () => resolve(false))),
  ]);
  if (!isThere) report.skip('Redis', 'no redis-server program here (Debian: apt-get install redis-server)');
  try {
    for (const at of isThere ? [own, theirs] : [own]) await benchmark(at, 'set', 16, keys * 3);
    for (const { name, measure, depth, test } of loads) {
      const shape = { measure, unit: 'requests/s', better: 'larger' } as const;
      const samples = { own: [] as number[], theirs: [] as number[] };
      // So many that a run takes about the time that was asked for.
      const rate = await benchmark(own, test, depth, 2_000);
      for (let repeat = 0; repeat < repeats; repeat++) {
        samples.own.push(await benchmark(own, test, depth, Math.ceil(rate * seconds)));
        if (isThere) samples.theirs.push(await benchmark(theirs, test, depth, Math.ceil(rate * seconds * 4)));
      }
      report.add({ ...shape, product: 'annals', samples: samples.own, note: 'one core, access record included' });
      if (!isThere) continue;
      report.add({ ...shape, product: 'Redis', samples: samples.theirs, note: 'one core, appendfsync always' });
      report.figure(`doors.${name}`, quotient(samples.own, samples.theirs));
    }
  } finally {
    if (isThere) await stop(redis);
  }
}

async function benchmark(port: number, test: string, depth: number, requests: number): Promise<number> {
  const options = [
    '-p',
    String(port),
    '-a',
    secret,
    '-c',
    String(clients),
    '-P',
    String(depth),
    '-t',
    test,
    '-n',
    String(requests),
  ];
  const { stdout } = await mustRun(pinned(clientCore, ['redis-benchmark', ...options, '-r', String(keys), '-d', '32', '--csv']));
  const rate = Number(/^"(?:GET|SET)","([\d.]+)"/m.exec(stdout)?.[1]);
  if (!(rate > 0)) throw new Error(`redis-benchmark said ${stdout.slice(0, 500)}`);
  return rate;
}

async function byId({ report, repeats, seconds }: BenchContext, server: AnnalsServer, port: number): Promise<void> {
  const client = await MongoClient.connect(`mongodb://bench:${secret}@127.0.0.1:${port}/?directConnection=true`, {
    authMechanism: 'SCRAM-SHA-256',
    maxPoolSize: finders,
  });
  try {
    const found = client.db('bench').collection<{ _id: string; n: number; text: string }>('found');
    for (let from = 0; from < keys; from += 2_000)
      await found.insertMany(
        Array.from({ length: 2_000 }, (_, i) => ({ _id: `d${from + i}`, n: from + i, text: 'as long as most' })),
      );
    const id = (n: number): string => `d${scramble(n) % keys}`;
    const headers = { ...server.headers, 'content-type': 'application/json' };
    const asked = (n: number): Buffer =>
      post('/query', headers, `{"sql":"SELECT document FROM DocumentEntry WHERE _pk = 'bench.found/${id(n)}'"}`);
    const samples = { find: [] as number[], query: [] as number[] };
    for (let repeat = 0; repeat <= repeats; repeat++) {
      let began = cpuSeconds(server.pid);
      const finds = await finding(seconds, async (n) => {
        const document = await found.findOne({ _id: id(n) });
        if (document === null) throw new Error(`${id(n)} is not found`);
      });
      const find = finds / (cpuSeconds(server.pid) - began);
      began = cpuSeconds(server.pid);
      const { perSecond } = await load({ port: server.port, connections: finders, seconds, request: asked });
      const query = (perSecond * seconds) / (cpuSeconds(server.pid) - began);
      // The first round is for warming up.
      if (repeat === 0) continue;
      samples.find.push(find);
      samples.query.push(query);
    }
    const shape = { measure: 'a document by its _id', unit: 'requests/s', better: 'larger' } as const;
    report.add({ ...shape, product: 'annals, document door', samples: samples.find, note: 'a second of the server’s core' });
    report.add({ ...shape, product: 'annals, /query', samples: samples.query, note: 'a second of the server’s core' });
    report.figure('doors.document-find', quotient(samples.find, samples.query));
  } finally {
    await client.close();
  }
}

async function finding(seconds: number, find: (n: number) => Promise<void>): Promise<number> {
  const until = performance.now() + seconds * 1000;
  let n = 0;
  await Promise.all(
    Array.from({ length: finders }, async () => {
      while (performance.now() < until) await find(n++);
    }),
  );
  return n;
}

async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 500; tries++) {
    const isThere = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true));
      socket.once('error', () => resolve(false)).once('connect', () => socket.destroy());
    });
    if (isThere) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`nothing listens on port ${port}`);
}
