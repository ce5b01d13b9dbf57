/** Keys of subjects in memory, and rows that belong to subjects. */
import { createSecretKey } from 'node:crypto';
import fc from 'fast-check';
import { ServiceError } from '../../src/errors.ts';
import type { Vector } from '../../src/log/columns.ts';
import type { EntryDraft, RowsBody } from '../../src/log/entry.ts';
import type { SubjectKey, SubjectKeys } from '../../src/log/subject-keys.ts';
import { VectorBuilder } from '../../src/log/vector-builder.ts';
import { rowsBodyOf, text } from './arbitrary.ts';
import { rowsDraft, SeededRandom } from './world.ts';

/** What sealing and opening asks of the keys of subjects, without a disk. */
export class MemorySubjectKeys implements Pick<SubjectKeys, 'sealing' | 'opening'> {
  readonly #random = new SeededRandom('subjects');
  readonly #ofSubject = new Map<string, SubjectKey>();
  readonly #ofId = new Map<string, SubjectKey | null>();

  sealing(tenant: string | null, subject: string): SubjectKey {
    const name = JSON.stringify([tenant, subject]);
    let made = this.#ofSubject.get(name);
    if (!made) {
      const id = Buffer.from(this.#random.fill(new Uint8Array(16))).toString('hex');
      made = { id, key: createSecretKey(this.#random.fill(new Uint8Array(32))) };
      this.#ofSubject.set(name, made);
      this.#ofId.set(id, made);
    }
    return made;
  }

  opening(id: string): SubjectKey['key'] | null {
    const found = this.#ofId.get(id);
    if (found === undefined) throw new ServiceError('REL_STORAGE', `subject key ${id} is missing`);
    return found && found.key;
  }

  destroy(tenant: string | null, subject: string): void {
    this.#ofId.set(this.sealing(tenant, subject).id, null);
    this.#ofSubject.delete(JSON.stringify([tenant, subject]));
  }

  lose(id: string): void {
    this.#ofId.delete(id);
  }
}

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
