/** Rows that follow each other in a commit become one entry, of which each draft is a part. Positions stay as they were decided. Pure. */
import type { EntryDraft, RowsBody } from '../../../log/entries/entry.ts';

export function joinDrafts(drafts: readonly EntryDraft[]): readonly EntryDraft[] {
  const joined: EntryDraft[] = [];
  let parts: RowsBody[] = [];
  for (const draft of drafts) {
    const { context, body } = draft;
    if (body.kind !== 'rows') {
      parts = [];
      joined.push(draft);
      continue;
    }
    parts.push(body);
    if (parts.length === 1) joined.push(draft);
    else joined[joined.length - 1] = { context, body: { kind: 'parts', parts } };
  }
  return joined;
}

/** Types that a commit defines behind rows of it; empty where all of its rows can be one entry. */
export function typesBehindRows(drafts: readonly EntryDraft[]): readonly EntryDraft[] {
  const types = drafts.filter(({ body }) => body.kind === 'type');
  return types.some((draft, i) => drafts[i] !== draft) ? types : [];
}
