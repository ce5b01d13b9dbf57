/**
 * What superseded versions cost those who read the current ones: the same rows without history, with a hundred older versions
 * each written in rounds, and with as many written in random order. All three in one server, asked in turn.
 */
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { load, post } from '../http-load.ts';
import { quotient } from '../report.ts';
import { scramble } from '../workload.ts';

const superseded = 100;
const runs = 15;
const warmUp = 4;
const connections = 8;

/** The key of the nth version that is written; the last round writes each key once, so that all types hold the same rows. */
type Order = (n: number, keys: number) => number;

const histories: Readonly<Record<'Flat' | 'Rounds' | 'Scattered', { readonly rounds: number; readonly key: Order }>> = {
  Flat: { rounds: 0, key: (n) => n },
  Rounds: { rounds: superseded, key: (n, keys) => n % keys },
  Scattered: { rounds: superseded, key: (n, keys) => scramble(n) % keys },
};
const types = Object.keys(histories) as (keyof typeof histories)[];

export async function history({ report, directory, rows, seconds, repeats, port }: BenchContext): Promise<void> {
  const keys = Math.round(rows / 50);
  const scans: Record<keyof typeof histories, number[]> = { Flat: [], Rounds: [], Scattered: [] };
  const reads: Record<keyof typeof histories, number[]> = { Flat: [], Rounds: [], Scattered: [] };
  const server = await AnnalsServer.start(directory, 'history', port());
  try {
    const properties = {
      id: { type: 'string' },
      category: { type: 'string' },
      n: { type: 'integer' },
      amount: { type: 'number' },
    };
    for (const type of types) {
      await server.request('/types', JSON.stringify({ name: type, properties, primary_key: 'id' }));
      await server.ingest(type, lines(type, keys), keys * (histories[type].rounds + 1));
    }
    for (let run = 0; run < runs + warmUp; run++) {
      for (const type of types) {
        const sql = `SELECT category, SUM(amount) AS total, COUNT(*) AS n FROM ${type} AS OF CURRENT WHERE n >= 0 GROUP BY category`;
        const { text, insideMs } = await server.query(sql);
        if (run === 0 && !text.includes('"row_count":100,'))
          throw new Error(`${type}: not every category: ${text.slice(0, 300)}`);
        if (run >= warmUp) scans[type].push(insideMs);
      }
    }
    const headers = { ...server.headers, 'content-type': 'application/json' };
    for (let repeat = 0; repeat < repeats + 1; repeat++) {
      for (const type of types) {
        const request = (n: number): Buffer =>
          post('/query', headers, `{"sql":"SELECT * FROM ${type} AS OF CURRENT WHERE _pk = 'k${scramble(n) % keys}'"}`);
        const result = await load({ port: server.port, connections, seconds: seconds / 2, request });
        if (!result.firstReply.includes('"row_count":1,')) throw new Error(`not one row: ${result.firstReply}`);
        if (repeat > 0) reads[type].push(1000 / result.perSecond);
      }
    }
  } finally {
    await server.stop();
  }
  const of = `${keys.toLocaleString('en')} rows`;
  const names = {
    Flat: 'no history',
    Rounds: `${superseded} superseded each, in rounds`,
    Scattered: `${superseded} superseded each, random`,
  };
  for (const type of types) {
    report.add({
      measure: `aggregate as of current, ${of}`,
      unit: 'ms',
      better: 'smaller',
      product: `annals, ${names[type]}`,
      samples: scans[type],
    });
    report.add({
      measure: `point read as of current, ${of}`,
      unit: 'ms',
      better: 'smaller',
      product: `annals, ${names[type]}`,
      samples: reads[type],
      note: 'server’s time for one of a closed loop',
    });
  }
  report.figure('history.scan-rounds', quotient(scans.Rounds, scans.Flat));
  report.figure('history.scan-random', quotient(scans.Scattered, scans.Flat));
  report.figure('history.read-rounds', quotient(reads.Rounds, reads.Flat));
  report.figure('history.read-random', quotient(reads.Scattered, reads.Flat));
}

function* lines(type: keyof typeof histories, keys: number): Generator<Buffer> {
  const { rounds, key } = histories[type];
  const count = keys * (rounds + 1);
  for (let n = 0; n < count; ) {
    let text = '';
    for (const end = Math.min(n + 5_000, count); n < end; n++) {
      const k = n < keys * rounds ? key(n, keys) : n % keys;
      text += `{"id":"k${k}","category":"c${k % 100}","n":${n},"amount":${(scramble(n) % 100_000) / 100}}\n`;
    }
    yield Buffer.from(text);
  }
}
