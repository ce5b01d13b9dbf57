/** Kinds of indexes of segments, each with what it must be by a way of its own: of plain cells, without a segment. */
import { expect, vi } from 'vitest';
import { sha256Hex } from '../../../src/log/bytes/sha256.ts';
import { MEMORY_DIRECTORY } from '../../../src/log/disk/memory-file.ts';
import { steppingJob } from '../../../src/log/threads/stepping-job.ts';
import { inlineWorker, type StartWorker } from '../../../src/log/threads/workers.ts';
import { endRunJob } from '../../../src/projections/rows/indexes/end-run.ts';
import { identifierRunJob } from '../../../src/projections/rows/indexes/identifier-run.ts';
import type { SegmentIndexes } from '../../../src/projections/rows/indexes/segment-indexes.ts';
import { textIndexJob } from '../../../src/projections/rows/indexes/segment-indexes.ts';
import type { TextCells } from '../../../src/projections/rows/indexes/text/text-builder.ts';
import { coarseVectorsJob } from '../../../src/projections/rows/indexes/vectors/coarse-vectors.ts';
import { neighbourGraphJob } from '../../../src/projections/rows/indexes/vectors/neighbour-graph-job.ts';
import type { Segment } from '../../../src/projections/rows/segments/segment.ts';

export const dims = 4;

/** One row as the test knows it; null: there is none any more. */
export type Document = { readonly body: string; readonly v: readonly number[] } | null;

export interface Kind {
  readonly name: string;
  /** Bytes that have room for some segments' and not for all. */
  readonly room: number;
  readonly column: 'body' | 'v';
  /** What the index of a segment is, once it is there. */
  read(indexes: SegmentIndexes, segment: Segment): Promise<string>;
  /** What an index of just these rows is. */
  made(rows: readonly Document[], language: string, startWorker?: StartWorker): Promise<string>;
}

const text: Kind = {
  name: 'text',
  room: 6_000,
  column: 'body',
  read: async (indexes, segment) => {
    await indexes.prepare([segment], ['body'])?.ready;
    return digest(indexes.whole(segment, 'body')!.bytes);
  },
  made: async (rows, language, startWorker = inlineWorker) =>
    digest(await ran(textIndexJob, { cells: textCells(rows), language }, startWorker)),
};

const coarse: Kind = {
  name: 'coarse vectors',
  room: 6_000,
  column: 'v',
  read: async (indexes, segment) => {
    await vi.waitFor(() => expect(indexes.coarse(segment, 'v')).not.toBe(null), soon);
    return digest(indexes.coarse(segment, 'v')!.bytes);
  },
  made: async (rows, _, startWorker = inlineWorker) => {
    const values = Float32Array.from(rows.flatMap((row) => row?.v ?? Array.from({ length: dims }, () => 0)));
    const absent = Uint8Array.from(rows, (row) => (row === null ? 1 : 0));
    return digest(await ran(coarseVectorsJob, { rows: rows.length, dims, values, absent }, startWorker));
  },
};

const sought = [Float32Array.of(1, 0, 0.5, 0.25), Float32Array.of(-0.5, 1, 0, 0.125)];
const count = 10;

const graph: Kind = {
  name: 'graphs',
  room: 14_000,
  column: 'v',
  read: async ({ graphs }, segment) => {
    const paths = [{ segment, path: segment.paths.codeAt(0), visible: null }];
    const found: number[] = [];
    for (const vector of sought) {
      // Those that were asked just now leave no memory for others.
      for (let round = 0; found.length < (sought.indexOf(vector) + 1) * count && round < 20; round++) {
        const [near] = await graphs!.near({ column: 'v', vector, count }, paths);
        found.push(...(near ?? []));
        await graphs!.whenIdle();
      }
    }
    return found.join(' ');
  },
  made: async (rows, _, startWorker = inlineWorker) => {
    const worker = startWorker(neighbourGraphJob, { memory: MEMORY_DIRECTORY });
    const there = Int32Array.from(rows.flatMap((row, i) => (row === null ? [] : i)));
    await worker.ask({ ask: 'begin', graph: 1, dims, rows: there.length });
    for (const row of there) {
      await worker.ask({ ask: 'add', graph: 1, rows: Int32Array.of(row), values: Float32Array.from(rows[row]!.v) });
    }
    const found: number[] = [];
    for (const vector of sought) {
      const { near } = await worker.ask({ ask: 'near', vector, parts: [{ graph: 1, count, effort: 64, visible: null }] });
      found.push(...near![0]!);
    }
    await worker.end();
    return found.join(' ');
  },
};

const ends: Kind = {
  name: 'ends of edges',
  room: 6_000,
  column: 'body',
  read: async (indexes, segment) => {
    await vi.waitFor(() => expect(indexes.ends(segment, 'body')).not.toBe(null), soon);
    return digest(indexes.ends(segment, 'body')!.bytes);
  },
  made: async (rows, _, startWorker = inlineWorker) => digest(await ran(endRunJob, textCells(rows), startWorker)),
};

const identifiers: Kind = {
  name: 'identifiers',
  room: 6_000,
  column: 'body',
  read: async (indexes, segment) => {
    await vi.waitFor(() => expect(indexes.identifiers(segment, 'body', 'id')).not.toBe(null), soon);
    return digest(indexes.identifiers(segment, 'body', 'id')!.bytes);
  },
  made: async (rows, _, startWorker = inlineWorker) =>
    digest(await ran(identifierRunJob, { cells: textCells(rows), kind: 'id' }, startWorker)),
};

export const kinds: readonly Kind[] = [text, coarse, ends, identifiers, graph];

const soon = { timeout: 20_000, interval: 5 };

export function digest(bytes: Uint8Array): string {
  return sha256Hex(bytes.slice());
}

export function textCells(rows: readonly Document[]): TextCells {
  const texts = rows.map((row) => Buffer.from(row?.body ?? ''));
  const offsets = new Uint32Array(rows.length + 1);
  for (const [i, { length }] of texts.entries()) offsets[i + 1] = offsets[i]! + length;
  const absent = Uint8Array.from(rows, (row) => (row === null ? 1 : 0));
  return { rows: rows.length, offsets, heap: new Uint8Array(Buffer.concat(texts)), codes: null, absent };
}

type Made = typeof textIndexJob | typeof coarseVectorsJob | typeof endRunJob | typeof identifierRunJob;

/** A job to its end, step by step, as a keeper of workers has it run. */
async function ran(job: Made, request: unknown, startWorker: StartWorker): Promise<Uint8Array> {
  const worker = startWorker(steppingJob, null);
  const { module, name } = job;
  let step = await worker.ask({ task: 1, module, name, request });
  while (!step || !('reply' in step)) step = await worker.ask({ task: 1, ask: 'step' });
  await worker.end();
  return step.reply as Uint8Array;
}
