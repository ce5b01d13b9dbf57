/**
 * A document as rows: one DocumentSource and its DocumentChunks, in one append. A chunk's key is that of its source and its
 * number, so the same source again is a new version of each: surplus chunks end, and an earlier AS OF still shows them.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { Batch, DeleteRows } from '../../../projections/command.ts';
import { record } from '../../shared/schema-check.ts';
import { chunksMax } from '../../rich-text/rich-text.ts';
import { embeddingColumn, vectorOf } from '../embedding.ts';
import { float } from '../../shared/exact-numbers.ts';
import { putting, textOf } from '../verb-rows.ts';
import type { VerbCall } from '../verb-call.ts';
import { nanosecondsOut } from '../verb.ts';

const chunksAtOnce = 8;

export const sourceFields = {
  source_id: z
    .string()
    .min(1)
    .max(512)
    .optional()
    .describe('id of the document; one that is there already is replaced by this version of it'),
  title: z.string().max(10_000).optional(),
  uri: z.string().max(10_000).optional().describe('where it is from; a file name will do'),
  subject: z
    .string()
    .min(1)
    .max(1_024)
    .optional()
    .describe('whom it is about: erasing that subject erases the document and what is made from it'),
};

export const piece = z.object({
  content: z
    .string()
    .max(1 << 20)
    .optional()
    .describe('its text'),
  text: z
    .string()
    .max(1 << 20)
    .optional()
    .describe('the same as content'),
  type: z.string().max(256).optional().describe('what it is, such as Title, NarrativeText or Table'),
  start_offset: z.int().min(0).optional().describe('characters of the document before it'),
  end_offset: z.int().min(0).optional(),
  page: z.int().min(0).optional(),
  heading: z.string().max(10_000).optional().describe('the heading that it stands under'),
  metadata: record(z.unknown()).optional().describe('anything more; kept as JSON'),
  embedding: z
    .array(float(z.number()))
    .min(1)
    .max(4_096)
    .optional()
    .describe('a vector of your own; of all chunks of one length'),
});

export type DocumentPiece = z.output<typeof piece>;

export const pieces = z
  .array(
    z.union([
      z
        .string()
        .min(1)
        .max(1 << 20),
      piece,
    ]),
  )
  .min(1)
  .max(chunksMax);

export const stored = z.object({
  source_id: z.string(),
  chunks: z.int(),
  chunk_ids: z.array(z.string()).describe('in their order'),
  replaced: z.int().describe('chunks of an earlier version that this one has no more'),
  system_from: nanosecondsOut,
  notices: z.array(z.string()).optional(),
});

export interface NewDocument {
  readonly source_id?: string | undefined;
  readonly title?: string | null | undefined;
  readonly uri?: string | undefined;
  readonly subject?: string | undefined;
  readonly format?: string;
  readonly length?: number;
  readonly content_hash?: string;
  readonly pieces: readonly (string | DocumentPiece)[];
}

export async function storeDocument(verbCall: VerbCall, newDocument: NewDocument): Promise<z.output<typeof stored>> {
  const documentId = newDocument.source_id ?? verbCall.parts.ids.next();
  const documentNotices: string[] = [];
  const storedChunks = await documentChunkRows(verbCall, documentId, newDocument, documentNotices);
  const chunkKeys = new Set(storedChunks.map(({ _pk }) => _pk));
  const earlierChunks = await verbCall.ask('SELECT _pk, namespace_path FROM DocumentChunk WHERE source_id = $1', [documentId]);
  const { path: callerPath } = verbCall.invocation.caller;
  // A document of another path under the same id is another document.
  const staleChunkKeys = earlierChunks
    .filter(
      (earlierChunk) => textOf(earlierChunk['namespace_path']) === callerPath && !chunkKeys.has(String(earlierChunk['_pk'])),
    )
    .map((earlierChunk) => String(earlierChunk['_pk']));
  const {
    title: documentTitle,
    uri: documentUri,
    subject: documentSubject,
    format: documentFormat,
    length: documentLength,
    content_hash: documentHash,
  } = newDocument;
  const documentSource = {
    _pk: documentId,
    title: documentTitle ?? null,
    uri: documentUri ?? null,
    format: documentFormat ?? null,
    length: documentLength ?? null,
    content_hash: documentHash ?? null,
    tool_call_id: verbCall.callId,
    subject: documentSubject ?? null,
  };
  const chunkIds = storedChunks.map(({ _pk }) => _pk);
  verbCall.note({ result: { source_id: documentId, chunks: chunkIds.length, replaced: staleChunkKeys.length } });
  const documentProvenance = verbCall.provenance();
  const chunkDeletes: readonly DeleteRows[] =
    staleChunkKeys.length === 0 ? [] : [{ kind: 'delete-rows', type: 'DocumentChunk', keys: staleChunkKeys }];
  const documentSteps: Batch['steps'] = [
    putting({ definition: verbCall.type('DocumentSource'), rows: [documentSource], provenance: documentProvenance }),
    putting({ definition: verbCall.type('DocumentChunk'), rows: storedChunks, provenance: documentProvenance }),
    ...chunkDeletes,
  ];
  const { systemFrom: documentSystemFrom } = await verbCall.commit(documentSteps);
  return {
    source_id: documentId,
    chunks: chunkIds.length,
    chunk_ids: chunkIds,
    replaced: staleChunkKeys.length,
    system_from: documentSystemFrom,
    ...(documentNotices.length > 0 && { notices: documentNotices }),
  };
}

type DocumentChunkRow = Readonly<Record<string, unknown>> & { readonly _pk: string };

async function documentChunkRows(
  verbCall: VerbCall,
  documentId: string,
  { pieces: documentPieces, subject: documentSubject }: Pick<NewDocument, 'pieces' | 'subject'>,
  documentNotices: string[],
): Promise<readonly DocumentChunkRow[]> {
  const writtenChunks: DocumentChunkRow[] = [];
  for (let firstPiece = 0; firstPiece < documentPieces.length; firstPiece += chunksAtOnce) {
    const someChunks = documentPieces.slice(firstPiece, firstPiece + chunksAtOnce);
    writtenChunks.push(
      ...(
        await Promise.all(
          someChunks.map((documentPiece, i) =>
            documentChunkRow(verbCall, documentId, firstPiece + i, documentPiece, documentNotices),
          ),
        )
      ).map((writtenChunk) => ({
        ...writtenChunk,
        subject: documentSubject ?? null,
      })),
    );
  }
  return writtenChunks;
}

async function documentChunkRow(
  verbCall: VerbCall,
  documentId: string,
  chunkSequence: number,
  documentPiece: string | DocumentPiece,
  documentNotices: string[],
): Promise<DocumentChunkRow> {
  const pieceFields = typeof documentPiece === 'string' ? { content: documentPiece } : documentPiece;
  const chunkText = chunkContent(pieceFields, chunkSequence);
  const { start_offset: chunkStart, end_offset: chunkEnd } = pieceFields;
  if (chunkStart !== undefined && chunkEnd !== undefined && chunkEnd < chunkStart)
    throw new ServiceError('REL_INVALID', `chunk ${chunkSequence}: it ends before it starts`);
  const chunkVector = pieceFields.embedding ?? (await vectorOf(verbCall, chunkText, documentNotices));
  return {
    _pk: `${documentId}#${chunkSequence}`,
    source_id: documentId,
    sequence: chunkSequence,
    content: chunkText,
    element_type: pieceFields.type ?? null,
    start_offset: chunkStart ?? null,
    end_offset: chunkEnd ?? null,
    page: pieceFields.page ?? null,
    heading: pieceFields.heading ?? null,
    metadata: pieceFields.metadata ?? null,
    tool_call_id: verbCall.callId,
    ...(chunkVector !== null && { [embeddingColumn]: chunkVector }),
  };
}

function chunkContent({ content: pieceContent, text: pieceText }: DocumentPiece, chunkSequence: number): string {
  if (pieceContent !== undefined && pieceText !== undefined && pieceContent !== pieceText)
    throw new ServiceError('REL_INVALID', `chunk ${chunkSequence}: content and text differ: give one of them`);
  const chunkText = pieceContent ?? pieceText ?? '';
  if (chunkText === '') throw new ServiceError('REL_INVALID', `chunk ${chunkSequence}: content is missing`);
  return chunkText;
}
