/** Rows of several drafts as one. */
import type { EntryDraft } from '../../src/log/entries/entry.ts';
import { rowBodiesOf } from '../../src/log/entries/entry.ts';

export function partsDraft(...drafts: readonly EntryDraft[]): EntryDraft {
  return { context: drafts[0]!.context, body: { kind: 'parts', parts: drafts.flatMap(({ body }) => rowBodiesOf(body)) } };
}
