/** Who has the threads that read documents, and what a parser is spared. */
import { expect, test } from 'vitest';
import { systemClock } from '../src/clock.ts';
import { richTextReader } from '../src/rich-text-reader.ts';
import { blocksOf, formatOf } from '../src/doors/rich-text/blocks.ts';
import type { ReadDocument } from '../src/doors/rich-text/rich-text.ts';
import { ServiceError } from '../src/errors.ts';
import type { StartWorker } from '../src/log/threads/workers.ts';

/** A reader whose threads end when they are told to; `begun` names the documents that have one. */
function controlled(): {
  readonly begun: string[];
  readonly end: (name: string) => void;
  readonly read: (tenant: string, name: string, signal?: AbortSignal) => Promise<unknown>;
} {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const startWorker = (() => ({
    ask: ({ name }: { readonly name: string }) => {
      begun.push(name);
      return new Promise<ReadDocument>((resolve) => ends.set(name, () => resolve({} as ReadDocument)));
    },
    end: async () => undefined,
  })) as unknown as StartWorker;
  const reader = richTextReader(systemClock, startWorker);
  const bytes = Buffer.alloc(100_000, 'a');
  return {
    begun,
    end: (name) => ends.get(name)!(),
    read: (tenant, name, signal) => reader({ bytes, format: 'html', name, chunkSize: 100, overlap: 0 }, { tenant, signal }),
  };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a tenant with many documents keeps nobody else waiting, and has both threads while nobody waits', async () => {
  const { begun, end, read } = controlled();
  const all = ['a1', 'a2', 'a3', 'a4'].map((name) => read('a', name));
  await settled();
  expect(begun).toEqual(['a1', 'a2']);
  all.push(read('b', 'b1'));
  await settled();
  expect(begun).toEqual(['a1', 'a2', 'b1']);
  all.push(read('c', 'c1'));
  for (const name of ['a1', 'a2']) end(name);
  await settled();
  // Two tenants at a time; c, which has none, comes before a's third.
  expect(begun).toEqual(['a1', 'a2', 'b1', 'c1']);
  for (const name of ['b1', 'c1']) end(name);
  await settled();
  expect(begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'a4']);
  for (const name of ['a3', 'a4']) end(name);
  await Promise.all(all);
});

test('a caller that goes away while it waits gives up its place', async () => {
  const { begun, end, read } = controlled();
  const gone = new AbortController();
  const [first, second] = [read('a', 'a1'), read('a', 'a2')];
  const third = read('a', 'a3', gone.signal);
  gone.abort();
  await expect(third).rejects.toMatchObject({ code: 'REL_CANCELLED' });
  for (const name of ['a1', 'a2']) end(name);
  await Promise.all([first, second]);
  expect(begun).toEqual(['a1', 'a2']);
});

test('a format is told without going back: comments without end, blanks without end, elements without end', async () => {
  expect(formatOf(Buffer.from(`${'<!---->'.repeat(144)}x`), null)).toBe('text');
  expect(formatOf(Buffer.from('\ufeff <?xml version="1.0"?>\n<!-- a --><!---->\n<!DOCTYPE html>'), null)).toBe('html');
  const { text } = await blocksOf(Buffer.from(`<pre>\na${' '.repeat(1_000_000)}b \n</pre>`), 'html');
  expect(text).toHaveLength(1_000_002);
  await expect(blocksOf(Buffer.from('<div>'.repeat(300_000)), 'html')).rejects.toThrow(/nest deeper/);
});

test.each([
  ['whose thread has ended', new ServiceError('REL_INTERNAL', 'a worker has ended')],
  ['for which it throws what is no error', { name: 'InvalidPDFException' }],
])('a parser fails on a document %s: that can not be read', async (_, failure) => {
  const startWorker = (() => ({ ask: () => Promise.reject(failure), end: async () => undefined })) as unknown as StartWorker;
  const reader = richTextReader(systemClock, startWorker);
  const bytes = Buffer.alloc(100_000, 'a');
  await expect(
    reader({ bytes, format: 'html', name: 'x', chunkSize: 100, overlap: 0 }, { tenant: 'a', signal: undefined }),
  ).rejects.toMatchObject({ code: 'REL_UNPROCESSABLE' });
});
