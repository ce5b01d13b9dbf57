/**
 * A document as rows: one DocumentSource and its DocumentChunks, in one append. A chunk's key is that of its source and its
 * number, so the same source again is a new version of each: surplus chunks end, and an earlier AS OF still shows them.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { Batch, DeleteRows } from '../../../projections/command.ts';
import { record } from '../../schemas/schema-check.ts';
import { chunksMax } from '../../rich-text/rich-text.ts';
import { embeddingColumn, vectorOf } from '../embedding.ts';
import { float } from '../../schemas/exact-numbers.ts';
import { putting, textOf } from '../verb-rows.ts';
import type { VerbCall } from '../verb-call.ts';
import { nanosecondsOut } from '../verb.ts';

const textsAtOnce = 8;

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

export async function storeDocument(verbCall: VerbCall, document: NewDocument): Promise<z.output<typeof stored>> {
  const id = document.source_id ?? verbCall.parts.ids.next();
  const notices: string[] = [];
  const rows = await chunkRows(verbCall, id, document, notices);
  const known = new Set(rows.map(({ _pk }) => _pk));
  const before = await verbCall.ask('SELECT _pk, namespace_path FROM DocumentChunk WHERE source_id = $1', [id]);
  const { path } = verbCall.invocation.caller;
  // A document of another path under the same id is another document.
  const stale = before
    .filter((row) => textOf(row['namespace_path']) === path && !known.has(String(row['_pk'])))
    .map((row) => String(row['_pk']));
  const { title, uri, subject, format, length, content_hash: hash } = document;
  const source = {
    _pk: id,
    title: title ?? null,
    uri: uri ?? null,
    format: format ?? null,
    length: length ?? null,
    content_hash: hash ?? null,
    tool_call_id: verbCall.callId,
    subject: subject ?? null,
  };
  const ids = rows.map(({ _pk }) => _pk);
  verbCall.note({ result: { source_id: id, chunks: ids.length, replaced: stale.length } });
  const provenance = verbCall.provenance();
  const ends: readonly DeleteRows[] = stale.length === 0 ? [] : [{ kind: 'delete-rows', type: 'DocumentChunk', keys: stale }];
  const steps: Batch['steps'] = [
    putting({ definition: verbCall.type('DocumentSource'), rows: [source], provenance }),
    putting({ definition: verbCall.type('DocumentChunk'), rows, provenance }),
    ...ends,
  ];
  const { systemFrom } = await verbCall.commit(steps);
  return {
    source_id: id,
    chunks: ids.length,
    chunk_ids: ids,
    replaced: stale.length,
    system_from: systemFrom,
    ...(notices.length > 0 && { notices }),
  };
}

type ChunkRow = Readonly<Record<string, unknown>> & { readonly _pk: string };

async function chunkRows(
  verbCall: VerbCall,
  id: string,
  { pieces: given, subject }: Pick<NewDocument, 'pieces' | 'subject'>,
  notices: string[],
): Promise<readonly ChunkRow[]> {
  const rows: ChunkRow[] = [];
  for (let first = 0; first < given.length; first += textsAtOnce) {
    const some = given.slice(first, first + textsAtOnce);
    rows.push(
      ...(await Promise.all(some.map((each, i) => chunkRow(verbCall, id, first + i, each, notices)))).map((row) => ({
        ...row,
        subject: subject ?? null,
      })),
    );
  }
  return rows;
}

async function chunkRow(
  verbCall: VerbCall,
  id: string,
  sequence: number,
  given: string | DocumentPiece,
  notices: string[],
): Promise<ChunkRow> {
  const each = typeof given === 'string' ? { content: given } : given;
  const content = contentOf(each, sequence);
  const { start_offset: start, end_offset: end } = each;
  if (start !== undefined && end !== undefined && end < start)
    throw new ServiceError('REL_INVALID', `chunk ${sequence}: it ends before it starts`);
  const vector = each.embedding ?? (await vectorOf(verbCall, content, notices));
  return {
    _pk: `${id}#${sequence}`,
    source_id: id,
    sequence,
    content,
    element_type: each.type ?? null,
    start_offset: start ?? null,
    end_offset: end ?? null,
    page: each.page ?? null,
    heading: each.heading ?? null,
    metadata: each.metadata ?? null,
    tool_call_id: verbCall.callId,
    ...(vector !== null && { [embeddingColumn]: vector }),
  };
}

function contentOf({ content, text }: DocumentPiece, sequence: number): string {
  if (content !== undefined && text !== undefined && content !== text)
    throw new ServiceError('REL_INVALID', `chunk ${sequence}: content and text differ: give one of them`);
  const said = content ?? text ?? '';
  if (said === '') throw new ServiceError('REL_INVALID', `chunk ${sequence}: content is missing`);
  return said;
}
