/**
 * Memory of agents: durable remembers of 16 clients beside our own commits of one row, and recalls over many items, of now and as of
 * an instant before some of them changed.
 */
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { load, post } from '../http-load.ts';
import { quotient, summary } from '../report.ts';
import { orderJson } from '../workload.ts';
import { Texts } from './text.ts';

const clients = 16;
const sessions = 200;
const questions = 40;
const runs = 3;

export async function agentMemory(context: BenchContext): Promise<void> {
  await remembers(context);
  await recalls(context);
}

async function remembers({ report, directory, repeats, seconds, port }: BenchContext): Promise<void> {
  const server = await AnnalsServer.start(directory, 'remembers', port());
  const json = { ...server.headers, 'content-type': 'application/json' };
  const found: Record<'commits' | 'remembers', number[]> = { commits: [], remembers: [] };
  let next = 0;
  const requests = {
    commits: () =>
      post('/ingest?object_type=Purchase', { ...server.headers, 'content-type': 'application/x-ndjson' }, orderJson(next++)),
    remembers: () =>
      post(
        '/memory/remember',
        json,
        JSON.stringify({ content: `Fact ${next} of the day`, session_id: `s${next++ % sessions}`, confidence: 0.9 }),
      ),
  };
  try {
    await server.registerOrders();
    for (let repeat = 0; repeat < repeats; repeat++) {
      for (const name of ['commits', 'remembers'] as const) {
        const { perSecond, firstReply } = await load({
          port: server.port,
          connections: clients,
          seconds,
          request: requests[name],
        });
        if (!/"accepted":1|"isError":false/.test(firstReply)) throw new Error(`not accepted: ${firstReply}`);
        found[name].push(perSecond);
      }
    }
  } finally {
    await server.stop();
  }
  const shape = { unit: 'calls/s', better: 'larger', product: 'annals', note: `HTTP, ${clients} clients` } as const;
  report.add({ ...shape, measure: 'durable commits of 1 row', samples: found.commits });
  report.add({ ...shape, measure: 'durable remembers', samples: found.remembers });
  report.figure('agent-memory.remember', quotient(found.remembers, found.commits));
}

async function recalls({ report, directory, rows, port }: BenchContext): Promise<void> {
  const texts = new Texts();
  const server = await AnnalsServer.start(directory, 'recalls', port());
  const of = `${rows.toLocaleString('en')} memories`;
  const ingest = async (from: number, to: number): Promise<void> => {
    for (let at = from; at < to; at += 20_000) {
      const count = Math.min(to, at + 20_000) - at;
      const lines = Array.from(
        { length: count },
        (_, k) =>
          `{"_pk":"m${at + k}","content":"${texts.document()}","session_id":"s${(at + k) % sessions}","confidence":0.9}\n`,
      );
      await server.ingest('MemoryItem', lines.join(''), count);
    }
  };
  const recall = async (more: object): Promise<{ ms: number; text: string }> => {
    const began = performance.now();
    const text = await server.request('/memory/recall', JSON.stringify({ top_k: 10, ...more }));
    return { ms: performance.now() - began, text };
  };
  try {
    await ingest(0, rows);
    const asked = Array.from({ length: questions }, (_, i) => texts.question(3 + (i % 4)).join(' '));
    const first = await recall({ query: asked[0] });
    report.add({
      measure: `first recall, ${of}`,
      unit: 'ms',
      better: 'smaller',
      product: 'annals',
      samples: [first.ms],
      note: 'texts are indexed in it',
    });
    const instant = /as_of_system\\":(\d+)/.exec(first.text)![1]!;
    await ingest(0, Math.floor(rows / 20));
    await recall({ query: asked[0] });
    const sample = async (more: object): Promise<number[]> => {
      const times: number[] = [];
      for (let run = 0; run <= runs; run++) {
        for (const query of asked) {
          const { ms } = await recall({ query, ...more });
          if (run > 0) times.push(ms);
        }
      }
      return times;
    };
    const [now, then] = [await sample({}), await sample({ as_of: instant })];
    const shape = { unit: 'ms', better: 'smaller', product: 'annals', note: 'HTTP, 1 client' } as const;
    report.add({ ...shape, measure: `recall, ${of}`, samples: now });
    report.add({ ...shape, measure: `recall as of before a twentieth changed, ${of}`, samples: then });
    report.figure('agent-memory.recall-p95', summary([p95(now)]));
    report.figure('agent-memory.recall-then', quotient(then, now));
  } finally {
    await server.stop();
  }
}

function p95(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * 0.95)]!;
}
