/** The interface of document readers: reading takes long and may never end, so it runs in another thread. */

export const documentFormats = ['text', 'markdown', 'html', 'pdf'] as const;
export type DocumentFormat = (typeof documentFormats)[number];

export interface DocumentRequest {
  readonly bytes: Uint8Array;
  /** null: inferred from the bytes and the name. */
  readonly format: DocumentFormat | null;
  /** The file or page it came from; its ending may tell the format. */
  readonly name: string | null;
  /** Most characters of a chunk, and of the overlap between two chunks. */
  readonly chunkSize: number;
  readonly overlap: number;
}

/** Most chunks of one document: its rows are one batch, with one for the document and one for the call. */
export const chunksMax = 4_000;

/** Offsets count characters (code points) of the text that the document was read as. */
export interface DocumentChunk {
  readonly content: string;
  readonly start: number;
  readonly end: number;
  /** Page number from 1; null where the format has no pages. */
  readonly page: number | null;
  /** The heading it stands under; null: none. */
  readonly heading: string | null;
}

export interface ReadDocument {
  readonly format: DocumentFormat;
  readonly title: string | null;
  /** Characters of the text. */
  readonly length: number;
  /** SHA-256 of the bytes that came, in hex. */
  readonly contentHash: string;
  readonly chunks: readonly DocumentChunk[];
}

/** Rejects with REL_UNPROCESSABLE for a malformed or too large document. Tenants take turns. */
export type ReadDocuments = (
  request: DocumentRequest,
  asker: { readonly tenant: string; readonly signal: AbortSignal | undefined },
) => Promise<ReadDocument>;
