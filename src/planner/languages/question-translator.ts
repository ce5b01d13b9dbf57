/** A model that turns a plain question into a statement of SQL. */
export interface Translator {
  readonly name: string;
  /** `types`: one line a type that the asker may name. Rejects with REL_UNAVAILABLE where the model does not answer. */
  translate(question: string, types: readonly string[], signal: AbortSignal | undefined): Promise<string>;
}
