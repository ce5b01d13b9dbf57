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

const documentBytesMax = 32 << 20;

const documentWriting = { action: 'ingest', units: 1, purpose: 'required', bucket: 'write' } as const;

export const ingestDocument = verb({
  ...documentWriting,
  name: 'ingest_document',
  description:
    'Store a document: plain text, Markdown, HTML or PDF. It is cut into chunks that search_knowledge finds, each with its place in the ' +
    'document. The same source_id again replaces it by a new version.',
  input: z.object({
    content: z.string().min(1).max(documentBytesMax).optional().describe('the document as text'),
    content_base64: z
      .base64()
      .min(1)
      .max((documentBytesMax / 3) * 4)
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
  run: async (verbCall, documentInput) => {
    const {
      content: documentText,
      content_base64: documentBase64,
      format: documentFormat = null,
      title: documentTitle,
      uri: documentUri,
      subject: documentSubject,
      chunk_size: chunkCharacters,
      overlap: chunkOverlap,
    } = documentInput;
    if ((documentText === undefined) === (documentBase64 === undefined)) {
      throw new ServiceError('REL_INVALID', 'content: give the document as content or as content_base64');
    }
    if (chunkOverlap * 2 > chunkCharacters) throw new ServiceError('REL_INVALID', 'overlap: half of chunk_size at most');
    const documentBytes = documentText === undefined ? Buffer.from(documentBase64!, 'base64') : Buffer.from(documentText, 'utf8');
    const readDocument = await verbCall.parts.readDocuments(
      {
        bytes: documentBytes,
        format: documentFormat,
        name: documentUri ?? documentTitle ?? null,
        chunkSize: chunkCharacters,
        overlap: chunkOverlap,
      },
      { tenant: tenantOf(verbCall.invocation.caller.path) ?? '', signal: verbCall.signal },
    );
    const { format: readFormat, length: documentLength, contentHash: documentHash } = readDocument;
    if (readDocument.chunks.length === 0) throw new ServiceError('REL_UNPROCESSABLE', 'the document holds no text');
    const namedTitle = documentTitle ?? readDocument.title;
    const storedDocument = await storeDocument(verbCall, {
      source_id: documentInput.source_id,
      title: namedTitle,
      uri: documentUri,
      subject: documentSubject,
      format: readFormat,
      length: documentLength,
      content_hash: documentHash,
      pieces: readDocument.chunks.map(
        ({ content: chunkContent, start: chunkStart, end: chunkEnd, page: chunkPage, heading: chunkHeading }) => ({
          content: chunkContent,
          start_offset: chunkStart,
          end_offset: chunkEnd,
          ...(chunkPage !== null && { page: chunkPage }),
          ...(chunkHeading !== null && { heading: chunkHeading }),
        }),
      ),
    });
    return { ...storedDocument, format: readFormat, title: namedTitle, length: documentLength, content_hash: documentHash };
  },
});

export const ragStoreElements = verb({
  ...documentWriting,
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
  run: (verbCall, { elements: documentElements, ...elementSource }) =>
    storeDocument(verbCall, { ...elementSource, pieces: documentElements }),
});

/** The verb behind POST /rag/ingest. It is no tool: `rag_store_elements` does the same at once. */
export const ragIngest = verb({
  ...ragStoreElements,
  name: 'rag_ingest',
  input: z.object({ ...sourceFields, chunks: pieces.describe('texts, or objects with a content') }),
  output: stored,
  contents: ['chunks', 'title', 'uri', 'subject'],
  example: { title: 'Kettles', chunks: ['A kettle boils water.'] },
  run: (verbCall, { chunks: ragChunks, ...elementSource }) => storeDocument(verbCall, { ...elementSource, pieces: ragChunks }),
});

export const ragStoreAnswer = verb({
  ...documentWriting,
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
  run: async (
    verbCall,
    { question: ragQuestion, answer: ragAnswer, source_ids: answerSources, confidence: answerConfidence, session_id: namedTitle },
  ) => {
    for (const answerSource of answerSources) {
      // A row that the caller does not see counts as absent.
      if ((await findRow(verbCall, answerSource)) === null)
        throw new ServiceError(
          'REL_INVALID',
          `source_ids: no document, chunk or memory ${JSON.stringify(answerSource)} is there`,
        );
    }
    const answerId = verbCall.parts.ids.next();
    const answerItem = {
      content: ragAnswer,
      confidence: answerConfidence,
      type: 'MemoryItem',
      memory_class: 'answer',
      derived_from: [...answerSources],
      fields: { question: ragQuestion },
      ...(namedTitle !== undefined && { session_id: namedTitle }),
    };
    const { step: answerStep, notices: answerNotices } = await storing(verbCall, answerItem, answerId);
    verbCall.note({ sessionId: namedTitle ?? null, result: { id: answerId, source_ids: answerSources } });
    const { steps: answerSteps } = await verbCall.commit([answerStep, ...(await sessionSteps(verbCall, [answerItem]))]);
    return {
      id: answerId,
      confidence: answerConfidence,
      source_ids: [...answerSources],
      valid_from: answerSteps![0]!.systemFrom,
      ...(answerNotices.length > 0 && { notices: [...answerNotices] }),
    };
  },
});
