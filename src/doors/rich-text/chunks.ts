/**
 * Blocks to chunks: as many whole ones as fit, of one page and under one heading; a block that is too long by itself is cut
 * between sentences, else between words. A chunk is a piece of the text, character by character.
 */
import { createHash } from 'node:crypto';
import { isMainThread } from 'node:worker_threads';
import { ServiceError } from '../../errors.ts';
import { type Block, blocksOf, formatOf } from './blocks.ts';
import { chunksMax, type DocumentChunk, type DocumentRequest, type ReadDocument } from './rich-text.ts';

export async function readDocument({ bytes, format: given, name, chunkSize, overlap }: DocumentRequest): Promise<ReadDocument> {
  const format = given ?? formatOf(bytes, name);
  const { title, text, blocks } = await blocksOf(bytes, format);
  if (text.includes('\0'))
    throw new ServiceError('REL_UNPROCESSABLE', 'the document contains the character NUL: it is not a text');
  const chunks = chunksOf(text, blocks, chunkSize, overlap);
  const contentHash = createHash('sha256').update(bytes).digest('hex');
  return { format, title, length: codePoints(text, 0, text.length), contentHash, chunks };
}

/** Reads documents in a thread of its own. */
export const readingJob = {
  module: import.meta.url,
  name: 'readingJob',
  begin: () => {
    boundArrays();
    return readDocument;
  },
};

/** Most bytes of an array that a parser makes in one piece, such as an inflated PDF stream. */
const arrayBytesMax = 64 << 20;

/**
 * Bytes lie outside the heap that bounds a thread, and a few kilobytes of a compressed stream unfold to gigabytes: arrays that this
 * thread makes have a bound of their own.
 */
function boundArrays(): void {
  if (isMainThread) return;
  globalThis.Uint8Array = new Proxy(Uint8Array, {
    construct(target, given: readonly unknown[], asked: new () => object) {
      if (typeof given[0] === 'number' && given[0] > arrayBytesMax)
        throw new ServiceError(
          'REL_UNPROCESSABLE',
          `a part of the document decompresses to more than ${arrayBytesMax >> 20} MiB`,
        );
      return Reflect.construct(target, given, asked) as Uint8Array;
    },
  });
}

export function chunksOf(text: string, blocks: readonly Block[], size: number, overlap: number): readonly DocumentChunk[] {
  const spans = blocks.flatMap((block) => spansOf(text, block, size));
  const chunks: DocumentChunk[] = [];
  // Code points before a place, counted once from one chunk to the next.
  const counted = { offset: 0, points: 0 };
  const pointAt = (offset: number): number => {
    if (offset < counted.offset) return counted.points - codePoints(text, offset, counted.offset);
    counted.points += codePoints(text, counted.offset, offset);
    counted.offset = offset;
    return counted.points;
  };
  for (let first = 0; first < spans.length; ) {
    const begin = spans[first]!;
    let last = first;
    while (last + 1 < spans.length && isTogether(begin, spans[last + 1]!) && spans[last + 1]!.end - begin.start <= size) last++;
    const { start, page, heading } = begin;
    const { end } = spans[last]!;
    if (chunks.length === chunksMax) {
      throw new ServiceError(
        'REL_UNPROCESSABLE',
        `the document has more than ${chunksMax} chunks: raise chunk_size, or split the document`,
      );
    }
    chunks.push({ content: text.slice(start, end), start: pointAt(start), end: pointAt(end), page, heading });
    if (last + 1 >= spans.length) break;
    // The next chunk begins with the overlap, but always behind the beginning of this one.
    let next = last + 1;
    while (next - 1 > first && isTogether(spans[next - 1]!, spans[last + 1]!) && end - spans[next - 1]!.start <= overlap) next--;
    first = next;
  }
  return chunks;
}

function isTogether(a: Block, b: Block): boolean {
  return a.page === b.page && a.heading === b.heading;
}

/** A block, or its sentences, each no longer than a chunk. */
function spansOf(text: string, block: Block, size: number): Block[] {
  if (block.end - block.start <= size) return [block];
  const sentences = new Intl.Segmenter('en', { granularity: 'sentence' }).segment(text.slice(block.start, block.end));
  return [...sentences].flatMap(({ segment, index }) => {
    const cut: Block[] = [];
    const said = segment.trimEnd();
    for (let at = 0; at < said.length; ) {
      const end = endOf(said, at, size);
      const piece = said.slice(at, end);
      const start = block.start + index + at + (piece.length - piece.trimStart().length);
      if (piece.trim() !== '') cut.push({ ...block, start, end: block.start + index + at + piece.trimEnd().length });
      at = end;
    }
    return cut;
  });
}

/** The end of a piece: behind the last blank that fits, else at a boundary between characters. */
function endOf(text: string, from: number, size: number): number {
  if (text.length - from <= size) return text.length;
  const blank = Math.max(text.lastIndexOf(' ', from + size), text.lastIndexOf('\n', from + size));
  if (blank > from + size / 2) return blank;
  const end = from + size;
  return isLow(text.charCodeAt(end)) ? end - 1 : end;
}

const isLow = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

function codePoints(text: string, from: number, to: number): number {
  let count = to - from;
  for (let i = from; i < to; i++) if (isLow(text.charCodeAt(i))) count--;
  return count;
}
