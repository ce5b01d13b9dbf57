/** Texts to vectors whose angles tell how alike the texts are. */
import type { EmbeddingModel } from '../../projections/access-paths.ts';

/** Vectors of two models are never compared. */
export interface Embedder extends EmbeddingModel {
  /** Rejects with REL_UNAVAILABLE where the model does not answer. */
  embed(text: string, signal: AbortSignal | undefined): Promise<Float32Array>;
  /** Embeds several texts: vectors in their order, all of one length. */
  embedAll(texts: readonly string[], signal: AbortSignal | undefined): Promise<readonly Float32Array[]>;
}

/** Requests embeddings for rows that were written without a vector. */
export interface EmbeddingWishes {
  want(tenant: string | null, type: string): void;
}
