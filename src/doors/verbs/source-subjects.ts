/** Whose a row is that is made from others: its sources' subject, or all of theirs together. It is erased with each of them. */
import { ServiceError } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entry.ts';
import { jointSubject, subjectsIn } from '../../log/subjects.ts';
import { quoted } from './rows.ts';
import type { VerbSession } from './session.ts';

interface SourceSubject {
  /** The column of the new row that says so. */
  readonly column: string;
  readonly subject: string;
}

const idsAtOnce = 500;

/**
 * Null where the type says of no row whose it is, or no source does: an erasure finds the row by what it names. Throws
 * REL_MASKED_COLUMN where the caller does not see whose a source is, for then nobody would know whose the new row is.
 */
export async function sourceSubject(
  session: VerbSession,
  definition: TypeDefinition,
  sources: readonly string[],
): Promise<SourceSubject | null> {
  const column = subjectOf(definition);
  if (column === null || sources.length === 0) return null;
  const subjects = new Set<string>();
  for (const type of session.snapshot.catalog.types()) {
    const own = subjectOf(type);
    if (own === null) continue;
    for (let first = 0; first < sources.length; first += idsAtOnce) {
      const some = sources.slice(first, first + idsAtOnce);
      const marks = some.map((_, i) => `$${i + 1}`).join(', ');
      const sql = `SELECT ${quoted(own)} AS subject FROM ${quoted(type.name)} WHERE _pk IN (${marks})`;
      const rows = await session.ask(sql, some, 'all');
      if (rows.length > 0 && session.snapshot.masked(type.name).has(own))
        throw new ServiceError(
          'REL_MASKED_COLUMN',
          `${JSON.stringify(own)} of a source is masked: nothing can be derived from it`,
        );
      for (const { subject } of rows) if (subject !== null && subject !== undefined) subjects.add(String(subject));
    }
  }
  const subject = jointSubject(subjects);
  return subject === null ? null : { column, subject };
}

/** Throws REL_INVALID where the row says that it is another's: it could be erased with neither of the two. */
export function carry(row: Record<string, unknown>, { column, subject }: SourceSubject): void {
  const stated = row[column];
  if (stated !== undefined && stated !== null && !subjectsIn(subject).includes(String(stated)) && stated !== subject)
    throw new ServiceError(
      'REL_INVALID',
      `fields: ${JSON.stringify(column)} names another subject than the rows that this one is derived from: leave it out, and it is theirs`,
    );
  row[column] = subject;
}

function subjectOf({ properties }: TypeDefinition): string | null {
  const found = Object.entries(properties).find(([, { subject, type }]) => subject && type === 'string');
  return found?.[0] ?? null;
}
