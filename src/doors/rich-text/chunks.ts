/**
 * Blocks to chunks: as many whole ones as fit, of one page and under one heading; a block that is too long by itself is cut
 * between sentences, else between words. A chunk is a piece of the text, character by character.
 */
import { createHash } from 'node:crypto';
import { isMainThread } from 'node:worker_threads';
import { ServiceError } from '../../errors.ts';
import { type Block, blocksOf, formatOf } from './blocks.ts';
import { chunksMax, type DocumentChunk, type DocumentRequest, type ReadDocument } from './rich-text.ts';

export async function readDocument({
  bytes: documentBytes,
  format: statedFormat,
  name: documentName,
  chunkSize,
  overlap,
}: DocumentRequest): Promise<ReadDocument> {
  const documentFormat = statedFormat ?? formatOf(documentBytes, documentName);
  const { title: documentTitle, text: documentText, blocks: textBlocks } = await blocksOf(documentBytes, documentFormat);
  if (documentText.includes('\0'))
    throw new ServiceError('REL_UNPROCESSABLE', 'the document contains the character NUL: it is not a text');
  const documentChunks = chunksOf(documentText, textBlocks, chunkSize, overlap);
  const documentHash = createHash('sha256').update(documentBytes).digest('hex');
  return {
    format: documentFormat,
    title: documentTitle,
    length: codePointCount(documentText, 0, documentText.length),
    contentHash: documentHash,
    chunks: documentChunks,
  };
}

/** Reads documents in a thread of its own. */
export const readingJob = {
  module: import.meta.url,
  name: 'readingJob',
  begin: () => {
    boundDecompressedArrays();
    return readDocument;
  },
};

/** Most bytes of an array that a parser makes in one piece, such as an inflated PDF stream. */
const decompressedBytesMax = 64 << 20;

/**
 * Bytes lie outside the heap that bounds a thread, and a few kilobytes of a compressed stream unfold to gigabytes: arrays that this
 * thread makes have a bound of their own.
 */
function boundDecompressedArrays(): void {
  if (isMainThread) return;
  globalThis.Uint8Array = new Proxy(Uint8Array, {
    construct(arrayConstructor, arrayArguments: readonly unknown[], newTarget: new () => object) {
      if (typeof arrayArguments[0] === 'number' && arrayArguments[0] > decompressedBytesMax)
        throw new ServiceError(
          'REL_UNPROCESSABLE',
          `a part of the document decompresses to more than ${decompressedBytesMax >> 20} MiB`,
        );
      return Reflect.construct(arrayConstructor, arrayArguments, newTarget) as Uint8Array;
    },
  });
}

export function chunksOf(
  documentText: string,
  textBlocks: readonly Block[],
  chunkSize: number,
  chunkOverlap: number,
): readonly DocumentChunk[] {
  const blockSpans = textBlocks.flatMap((textBlock) => chunkSpans(documentText, textBlock, chunkSize));
  const documentChunks: DocumentChunk[] = [];
  // Code points before a place, counted once from one chunk to the next.
  const countedPoints = { offset: 0, points: 0 };
  const codePointAt = (offset: number): number => {
    if (offset < countedPoints.offset) return countedPoints.points - codePointCount(documentText, offset, countedPoints.offset);
    countedPoints.points += codePointCount(documentText, countedPoints.offset, offset);
    countedPoints.offset = offset;
    return countedPoints.points;
  };
  for (let firstSpan = 0; firstSpan < blockSpans.length; ) {
    const chunkStartSpan = blockSpans[firstSpan]!;
    let lastSpan = firstSpan;
    while (
      lastSpan + 1 < blockSpans.length &&
      isSameSection(chunkStartSpan, blockSpans[lastSpan + 1]!) &&
      blockSpans[lastSpan + 1]!.end - chunkStartSpan.start <= chunkSize
    )
      lastSpan++;
    const { start: chunkStart, page: chunkPage, heading: chunkHeading } = chunkStartSpan;
    const { end: chunkEndOffset } = blockSpans[lastSpan]!;
    if (documentChunks.length === chunksMax) {
      throw new ServiceError(
        'REL_UNPROCESSABLE',
        `the document has more than ${chunksMax} chunks: raise chunk_size, or split the document`,
      );
    }
    documentChunks.push({
      content: documentText.slice(chunkStart, chunkEndOffset),
      start: codePointAt(chunkStart),
      end: codePointAt(chunkEndOffset),
      page: chunkPage,
      heading: chunkHeading,
    });
    if (lastSpan + 1 >= blockSpans.length) break;
    // The next chunk begins with the overlap, but always behind the beginning of this one.
    let nextSpan = lastSpan + 1;
    while (
      nextSpan - 1 > firstSpan &&
      isSameSection(blockSpans[nextSpan - 1]!, blockSpans[lastSpan + 1]!) &&
      chunkEndOffset - blockSpans[nextSpan - 1]!.start <= chunkOverlap
    )
      nextSpan--;
    firstSpan = nextSpan;
  }
  return documentChunks;
}

function isSameSection(blockA: Block, blockB: Block): boolean {
  return blockA.page === blockB.page && blockA.heading === blockB.heading;
}

/** A block, or its sentences, each no longer than a chunk. */
function chunkSpans(documentText: string, textBlock: Block, chunkSize: number): Block[] {
  if (textBlock.end - textBlock.start <= chunkSize) return [textBlock];
  const blockSentences = new Intl.Segmenter('en', { granularity: 'sentence' }).segment(
    documentText.slice(textBlock.start, textBlock.end),
  );
  return [...blockSentences].flatMap(({ segment: sentenceSegment, index: sentenceOffset }) => {
    const cutSpans: Block[] = [];
    const sentenceText = sentenceSegment.trimEnd();
    for (let sentencePosition = 0; sentencePosition < sentenceText.length; ) {
      const spanEnd = chunkEnd(sentenceText, sentencePosition, chunkSize);
      const spanText = sentenceText.slice(sentencePosition, spanEnd);
      const spanStart = textBlock.start + sentenceOffset + sentencePosition + (spanText.length - spanText.trimStart().length);
      if (spanText.trim() !== '')
        cutSpans.push({
          ...textBlock,
          start: spanStart,
          end: textBlock.start + sentenceOffset + sentencePosition + spanText.trimEnd().length,
        });
      sentencePosition = spanEnd;
    }
    return cutSpans;
  });
}

/** The end of a piece: behind the last blank that fits, else at a boundary between characters. */
function chunkEnd(sentenceText: string, spanStart: number, chunkSize: number): number {
  if (sentenceText.length - spanStart <= chunkSize) return sentenceText.length;
  const lastBlank = Math.max(
    sentenceText.lastIndexOf(' ', spanStart + chunkSize),
    sentenceText.lastIndexOf('\n', spanStart + chunkSize),
  );
  if (lastBlank > spanStart + chunkSize / 2) return lastBlank;
  const spanEnd = spanStart + chunkSize;
  return isLowSurrogate(sentenceText.charCodeAt(spanEnd)) ? spanEnd - 1 : spanEnd;
}

const isLowSurrogate = (codeUnit: number): boolean => codeUnit >= 0xdc00 && codeUnit <= 0xdfff;

function codePointCount(documentText: string, fromOffset: number, toOffset: number): number {
  let pointCount = toOffset - fromOffset;
  for (let i = fromOffset; i < toOffset; i++) if (isLowSurrogate(documentText.charCodeAt(i))) pointCount--;
  return pointCount;
}
