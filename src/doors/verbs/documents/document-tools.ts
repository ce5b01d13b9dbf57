/** Documents, and answers from them. Source: specification, "Tool protocol (MCP)", Ingest/RAG. */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import { tenantOf } from '../../../log/values/value.ts';
import { documentFormats } from '../../rich-text/rich-text.ts';
import { nanosecondsOut, verb } from '../verb.ts';
import { confidence, sessionId } from '../memory/memory-items.ts';
import { findRow } from '../memory/provenance.ts';
import { sessionSteps, storing } from '../memory/remember.ts';
import { pieces, sourceFields, storeDocument, stored } from './store-document.ts';

const bytesMax = 32 << 20;

const writing = { action: 'ingest', units: 1, purpose: 'required', bucket: 'write' } as const;

export const ingestDocument = verb({
  ...writing,
  name: 'ingest_document',
  description:
    'Store a document: plain text, Markdown, HTML or PDF. It is cut into chunks that search_knowledge finds, each with its place in the ' +
    'document. The same source_id again replaces it by a new version.',
  input: z.object({
    content: z.string().min(1).max(bytesMax).optional().describe('the document as text'),
    content_base64: z
      .base64()
      .min(1)
      .max((bytesMax / 3) * 4)
      .optional()
      .describe('or its bytes, which a PDF needs'),
    format: z.enum(documentFormats).optional().describe('told from the content and the name where it is not given'),
    ...sourceFields,
    chunk_size: z.int().min(100).max(16_000).default(1_200).describe('characters of a chunk at most'),
    overlap: z.int().min(0).max(4_000).default(0).describe('characters that a chunk may repeat of the one before'),
  }),
  output: stored.extend({
    format: z.enum(documentFormats),
    title: z.string().nullable(),
    length: z.int().describe('characters'),
    content_hash: z.string().describe('SHA-256 of what was sent, in hex'),
  }),
  tool: { title: 'Ingest a document', readOnly: false },
  contents: ['content', 'content_base64', 'title', 'uri', 'subject'],
  example: { content: '# Kettles\n\nA kettle boils water.', format: 'markdown', title: 'Kettles', uri: 'kettles.md' },
  run: async (verbCall, input) => {
    const { content, content_base64: encoded, format = null, title, uri, subject, chunk_size: chunkSize, overlap } = input;
    if ((content === undefined) === (encoded === undefined)) {
      throw new ServiceError('REL_INVALID', 'content: give the document as content or as content_base64');
    }
    if (overlap * 2 > chunkSize) throw new ServiceError('REL_INVALID', 'overlap: half of chunk_size at most');
    const bytes = content === undefined ? Buffer.from(encoded!, 'base64') : Buffer.from(content, 'utf8');
    const read = await verbCall.parts.readDocuments(
      { bytes, format, name: uri ?? title ?? null, chunkSize, overlap },
      { tenant: tenantOf(verbCall.invocation.caller.path) ?? '', signal: verbCall.signal },
    );
    const { format: isFormat, length, contentHash } = read;
    if (read.chunks.length === 0) throw new ServiceError('REL_UNPROCESSABLE', 'the document holds no text');
    const named = title ?? read.title;
    const storedDocument = await storeDocument(verbCall, {
      source_id: input.source_id,
      title: named,
      uri,
      subject,
      format: isFormat,
      length,
      content_hash: contentHash,
      pieces: read.chunks.map(({ content: said, start, end, page, heading }) => ({
        content: said,
        start_offset: start,
        end_offset: end,
        ...(page !== null && { page }),
        ...(heading !== null && { heading }),
      })),
    });
    return { ...storedDocument, format: isFormat, title: named, length, content_hash: contentHash };
  },
});

export const ragStoreElements = verb({
  ...writing,
  name: 'rag_store_elements',
  description:
    'Store a document that you have cut already: its elements, in their order, each a text with what you know of its place. ' +
    'search_knowledge finds them.',
  input: z.object({ ...sourceFields, elements: pieces.describe('texts, or objects with a text') }),
  output: stored,
  tool: { title: 'Store elements', readOnly: false },
  contents: ['elements', 'title', 'uri', 'subject'],
  example: {
    title: 'Kettles',
    elements: [
      { type: 'Title', text: 'Kettles' },
      { text: 'A kettle boils water.', page: 1 },
    ],
  },
  run: (verbCall, { elements, ...source }) => storeDocument(verbCall, { ...source, pieces: elements }),
});

/** The verb behind POST /rag/ingest. It is no tool: `rag_store_elements` does the same at once. */
export const ragIngest = verb({
  ...ragStoreElements,
  name: 'rag_ingest',
  input: z.object({ ...sourceFields, chunks: pieces.describe('texts, or objects with a content') }),
  output: stored,
  contents: ['chunks', 'title', 'uri', 'subject'],
  example: { title: 'Kettles', chunks: ['A kettle boils water.'] },
  run: (verbCall, { chunks, ...source }) => storeDocument(verbCall, { ...source, pieces: chunks }),
});

export const ragStoreAnswer = verb({
  ...writing,
  name: 'rag_store_answer',
  description:
    'Keep an answer that you gave, with the question and what it rests on, as a memory: recall finds it, justify names its sources, and ' +
    'quarantine of a source hides it.',
  input: z.object({
    question: z.string().min(1).max(10_000),
    answer: z
      .string()
      .min(1)
      .max(1 << 20),
    source_ids: z
      .array(z.string().min(1).max(1_024))
      .max(1_000)
      .default([])
      .describe('ids of the chunks, documents and memories that it rests on'),
    confidence: confidence.default(1),
    session_id: sessionId.optional(),
  }),
  output: z.object({
    id: z.string(),
    confidence: z.number(),
    source_ids: z.array(z.string()),
    valid_from: nanosecondsOut,
    notices: z.array(z.string()).optional(),
  }),
  tool: { title: 'Store an answer', readOnly: false },
  contents: ['question', 'answer'],
  example: { question: 'what boils water', answer: 'A kettle does.', source_ids: ['a memory'], confidence: 0.8 },
  run: async (verbCall, { question, answer, source_ids: sources, confidence: sure, session_id: named }) => {
    for (const each of sources) {
      // A row that the caller does not see counts as absent.
      if ((await findRow(verbCall, each)) === null)
        throw new ServiceError('REL_INVALID', `source_ids: no document, chunk or memory ${JSON.stringify(each)} is there`);
    }
    const id = verbCall.parts.ids.next();
    const item = {
      content: answer,
      confidence: sure,
      type: 'MemoryItem',
      memory_class: 'answer',
      derived_from: [...sources],
      fields: { question },
      ...(named !== undefined && { session_id: named }),
    };
    const { step, notices } = await storing(verbCall, item, id);
    verbCall.note({ sessionId: named ?? null, result: { id, source_ids: sources } });
    const { steps } = await verbCall.commit([step, ...(await sessionSteps(verbCall, [item]))]);
    return {
      id,
      confidence: sure,
      source_ids: [...sources],
      valid_from: steps![0]!.systemFrom,
      ...(notices.length > 0 && { notices: [...notices] }),
    };
  },
});
