/** Rows that belong to subjects. */
import fc from 'fast-check';
import type { Vector } from '../../src/log/values/columns.ts';
import type { EntryDraft, RowsBody } from '../../src/log/entries/entry.ts';
import { VectorBuilder } from '../../src/log/values/vector-builder.ts';
import { rowsBodyOf, text } from './arbitrary.ts';
import { rowsDraft } from './world.ts';

export function subjectsOf(subjects: readonly (string | null)[]): Vector {
  const builder = new VectorBuilder('string');
  for (const subject of subjects) builder.append(subject);
  return builder.build();
}

/** Rows of a body whose subject is one of these. */
export function rowsOfSubjects(subjects: readonly (string | null)[], gone: ReadonlySet<string>): number[] {
  return subjects.flatMap((subject, row) => (subject !== null && gone.has(subject) ? [row] : []));
}

/** Rows like those of `rowsDraft`, each somebody's or nobody's. */
export function subjectDraft(subjects: readonly (string | null)[], seed = 0): EntryDraft {
  const draft = rowsDraft(
    subjects.map((subject, i) => `${subject ?? 'nobody'} ${seed}-${i}`),
    seed,
  );
  return { ...draft, body: { ...(draft.body as RowsBody), subjects: subjectsOf(subjects) } };
}

export interface OwnedRows {
  readonly body: RowsBody;
  readonly subjects: readonly (string | null)[];
}

const fewSubjects = fc.oneof(fc.constantFrom('ada', 'bob', 'eve', 'ünï \u{1F600}', ''), text);

/** Any rows, of a few subjects. */
export function ownedRows(rowsMax: number): fc.Arbitrary<OwnedRows> {
  return fc
    .integer({ min: 1, max: rowsMax })
    .chain((rows) =>
      fc
        .tuple(rowsBodyOf(rows), fc.array(fc.option(fewSubjects, { freq: 3 }), { minLength: rows, maxLength: rows }))
        .map(([body, subjects]) => ({ body: { ...body, subjects: subjectsOf(subjects) }, subjects })),
    );
}
