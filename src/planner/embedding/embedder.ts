/** Texts to vectors whose angles tell how alike the texts are. */
export interface Embedder {
  /** Vectors of two names are never compared. */
  readonly name: string;
  /** Rejects with REL_UNAVAILABLE where the model does not answer. */
  embed(text: string, signal: AbortSignal | undefined): Promise<Float32Array>;
}
