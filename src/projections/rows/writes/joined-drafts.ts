/** Rows that follow each other in a commit become one entry, of which each draft is a part. Positions stay as they were decided. Pure. */
import type { EntryDraft, RowsBody } from '../../../log/entries/entry.ts';

export function joinDrafts(drafts: readonly EntryDraft[]): readonly EntryDraft[] {
  const joinedDrafts: EntryDraft[] = [];
  let rowsParts: RowsBody[] = [];
  for (const unjoinedDraft of drafts) {
    const { context, body } = unjoinedDraft;
    if (body.kind !== 'rows') {
      rowsParts = [];
      joinedDrafts.push(unjoinedDraft);
      continue;
    }
    rowsParts.push(body);
    if (rowsParts.length === 1) joinedDrafts.push(unjoinedDraft);
    else joinedDrafts[joinedDrafts.length - 1] = { context, body: { kind: 'parts', parts: rowsParts } };
  }
  return joinedDrafts;
}

/** Types that a commit defines behind rows of it; empty where all of its rows can be one entry. */
export function typesBehindRows(drafts: readonly EntryDraft[]): readonly EntryDraft[] {
  const typeDrafts = drafts.filter(({ body }) => body.kind === 'type');
  return typeDrafts.some((draft, i) => drafts[i] !== draft) ? typeDrafts : [];
}
