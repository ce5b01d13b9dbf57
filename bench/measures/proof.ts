/**
 * Proofs over a log of a million entries: out of the tree in memory, fed with hashes alone, and over HTTP out of a server
 * that holds a log of one-row entries of the size that the run's rows allow.
 */
import { createHash } from 'node:crypto';
import { Frontier } from '../../src/log/tree/merkle-tree.ts';
import { TreeStore } from '../../src/log/tree/tree-store.ts';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';

const treeSize = 1_000_000;
const runs = 2_000;

export async function proof(context: BenchContext): Promise<void> {
  inMemory(context);
  await overHttp(context);
}

function inMemory({ report }: BenchContext): void {
  const store = new TreeStore();
  const tree = new Frontier(0, [], store);
  for (let i = 0; i < treeSize; i++) tree.append(createHash('sha256').update(String(i)).digest());
  const shape = { product: 'annals', unit: 'ms', better: 'smaller' } as const;
  // Sizes and places all over the tree: multiplying by a large prime stands for chance.
  const place = (i: number, below: number): number => (i * 7_368_787) % below;
  const inclusion = timed((i) => store.inclusion(place(i, treeSize / 2), treeSize - place(i, treeSize / 2)));
  report.add({
    measure: 'inclusion proof, 1,000,000 entries',
    ...shape,
    samples: inclusion,
    note: `hashes appended directly; ${(store.bytes / 1e6).toFixed(1)} MB of nodes`,
  });
  const consistency = timed((i) => store.consistency(1 + place(i, treeSize - 1), treeSize));
  report.add({ measure: 'consistency proof, 1,000,000 entries', ...shape, samples: consistency });
}

async function overHttp({ report, directory, port, rows }: BenchContext): Promise<void> {
  const entries = Math.min(rows, 100_000);
  const server = await AnnalsServer.start(directory, 'proof', port());
  try {
    const properties = { id: { type: 'string' }, n: { type: 'integer' } };
    await server.request('/types', JSON.stringify({ name: 'Proven', properties, primary_key: 'id' }));
    const lanes = 64;
    const instants: string[] = [];
    for (let i = 0; i < entries; i += lanes) {
      const replies = await Promise.all(
        Array.from({ length: Math.min(lanes, entries - i) }, (_, lane) =>
          server.request('/ingest?object_type=Proven', JSON.stringify([{ id: `k${i + lane}`, n: i + lane }])),
        ),
      );
      for (const reply of replies) instants.push(/"system_from":(\d+)/.exec(reply)![1]!);
    }
    const samples: number[] = [];
    for (let run = 0; run < runs / 2; run++) {
      // The newest rows are left out: no head covers them yet, and making one is an fsync.
      const nth = (run * 7919) % (instants.length - lanes * 4);
      const began = performance.now();
      const query = `system_from=${instants[nth]}&row=k${nth}&from=1`;
      const reply = await (
        await fetch(`http://127.0.0.1:${server.port}/audit/proof?${query}`, { headers: server.headers })
      ).text();
      samples.push(performance.now() - began);
      if (!reply.includes('"rows_root"')) throw new Error(reply);
    }
    report.add({
      measure: `row, entry and growth over HTTP, ${entries.toLocaleString('en')} one-row entries`,
      product: 'annals',
      unit: 'ms',
      better: 'smaller',
      samples: samples.slice(100),
      note: 'JSON; leaf and row read from the log file',
    });
  } finally {
    await server.stop();
  }
}

function timed(work: (i: number) => unknown): number[] {
  const samples: number[] = [];
  for (let i = 0; i < runs; i++) {
    const began = performance.now();
    work(i);
    samples.push(performance.now() - began);
  }
  // The first ones are those of code that is not compiled yet.
  return samples.slice(100);
}
