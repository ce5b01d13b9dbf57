/** The vector that a row keeps of its text, where there is a model. Without its answer the row is stored all the same. */
import { ServiceError } from '../../errors.ts';
import type { VerbCall } from './verb-call.ts';

export const embeddingColumn = '_emb_content';

/** The vector of a text; null without a model, or where it does not answer, which `notices` then says once. */
export async function vectorOf(verbCall: VerbCall, text: string, notices: string[]): Promise<readonly number[] | null> {
  const { embedder } = verbCall.parts;
  if (embedder === null) return null;
  try {
    return [...(await embedder.embed(text, verbCall.signal))];
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'REL_UNAVAILABLE') throw error;
    const notice = `${error.message}: rows without a vector are found by words alone`;
    if (!notices.includes(notice)) notices.push(notice);
    return null;
  }
}
