/** Tells how well texts answer a question, better than words or angles can, and at a price: asked only where a call says so. */
export interface Reranker {
  readonly name: string;
  /** By text, the higher the better. Rejects with REL_UNAVAILABLE where the model does not answer. */
  rerank(question: string, texts: readonly string[], signal: AbortSignal | undefined): Promise<readonly number[]>;
}
