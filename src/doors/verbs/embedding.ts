/** The vector that a row keeps of its text, where there is a model. Without its answer the row is stored all the same. */
import { ServiceError } from '../../errors.ts';
import type { VerbCall } from './verb-call.ts';

export const embeddingColumn = '_emb_content';

/** The vector of a text; null without a model, or where it does not answer, which `verbNotices` then says once. */
export async function vectorOf(
  verbCall: VerbCall,
  embeddedText: string,
  verbNotices: string[],
): Promise<readonly number[] | null> {
  const { embedder } = verbCall.parts;
  if (embedder === null) return null;
  try {
    return [...(await embedder.embed(embeddedText, verbCall.signal))];
  } catch (embedderError) {
    if (!(embedderError instanceof ServiceError) || embedderError.code !== 'REL_UNAVAILABLE') throw embedderError;
    const embedderNotice = `${embedderError.message}: rows without a vector are found by words alone`;
    if (!verbNotices.includes(embedderNotice)) verbNotices.push(embedderNotice);
    return null;
  }
}
