/** Whose a row is that is made from others: its sources' subject, or all of theirs together. It is erased with each of them. */
import { ServiceError } from '../../errors.ts';
import { namingColumns } from '../../projections/catalog/naming-columns.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { jointSubject, ownSubject, subjectsIn } from '../../log/keys/subjects.ts';
import { listOf, quoted, type Row, textOf } from './rows.ts';
import type { VerbSession } from './session.ts';

/** A row that is about to be made from others. */
export interface MadeRow {
  readonly definition: TypeDefinition;
  readonly key: string;
  readonly sources: readonly string[];
}

const idsAtOnce = 500;
/** Rows that are looked at on the way to whose they are; what is made of more is sealed by itself, as what is made of several people's is. */
const sourcesMax = 4_000;

/**
 * Says in the row whose it is, where its type has a column for that; else the subject that it is to be sealed under is returned.
 * Throws REL_MASKED_COLUMN where the caller does not see whose a source is, and REL_INVALID where the row says that it is another's:
 * it could be erased with neither of the two.
 */
export async function carrySubject(
  session: VerbSession,
  row: Record<string, unknown>,
  { definition, key, sources }: MadeRow,
): Promise<string | null> {
  const whose = await whoseAre(session, sources);
  if (whose === null) return null;
  const { subject, isOne } = whose;
  const column = subjectOf(definition);
  if (column === null) return isOne ? subject : ownSubject(definition.name, session.invocation.caller.path, key);
  if (subject === null)
    throw new ServiceError(
      'REL_TOO_LARGE',
      `the row is derived from more than ${sourcesMax} rows, counting those that they are derived from: whose they are can't be told`,
    );
  const stated = row[column];
  const theirs: readonly unknown[] = [subject, ...subjectsIn(subject)];
  if (stated !== undefined && stated !== null && !theirs.includes(stated))
    throw new ServiceError(
      'REL_INVALID',
      `fields: ${JSON.stringify(column)} names another subject than the rows that this one is derived from: leave it out, and it is theirs`,
    );
  row[column] = subject;
  return null;
}

/**
 * The same for many rows of a type without such a column, all made from the same sources: for each group that is sealed as one, under
 * which subject; null: nobody's.
 */
export async function sealedTogether<R extends { readonly _pk: string }>(
  session: VerbSession,
  rows: readonly R[],
  { type, sources }: { readonly type: string; readonly sources: readonly string[] },
): Promise<readonly (readonly [string | null, readonly R[]])[]> {
  const whose = await whoseAre(session, sources);
  if (whose === null || whose.isOne) return [[whose === null ? null : whose.subject, rows]];
  return rows.map((row) => [ownSubject(type, session.invocation.caller.path, row._pk), [row]]);
}

interface Whose {
  /** One, or all of them together; null: they are more than can be told. */
  readonly subject: string | null;
  readonly isOne: boolean;
}

/** Whose these rows are, and those that they were made from; null: nobody's. */
async function whoseAre(session: VerbSession, sources: readonly string[]): Promise<Whose | null> {
  const types = session.snapshot.catalog.types();
  const subjects = new Set<string>();
  const seen = new Set(sources);
  for (let round: readonly string[] = [...seen]; round.length > 0; ) {
    if (seen.size > sourcesMax) return { subject: null, isOne: false };
    const next = new Set<string>();
    for (const { name, properties } of types) {
      const own = subjectOf({ properties });
      const naming = namingColumns(name, { has: (column) => Object.hasOwn(properties, column) });
      const columns = [...(own === null ? [] : [own]), ...naming];
      if (columns.length === 0) continue;
      for (const row of await rowsOf(session, name, columns, round)) {
        if (own !== null && session.snapshot.masked(name).has(own))
          throw new ServiceError(
            'REL_MASKED_COLUMN',
            `${JSON.stringify(own)} of a source is masked: nothing can be derived from it`,
          );
        const whose = own === null ? null : textOf(row[own]);
        if (whose !== null) subjects.add(whose);
        const named = naming.flatMap((column) => [...listOf(row[column]), textOf(row[column]) ?? []].flat());
        for (const each of named) if (!seen.has(each)) next.add(each);
      }
    }
    for (const each of next) seen.add(each);
    round = [...next];
  }
  const subject = jointSubject(subjects);
  return subject === null ? null : { subject, isOne: subjectsIn(subject).length === 1 };
}

async function rowsOf(
  session: VerbSession,
  type: string,
  columns: readonly string[],
  ids: readonly string[],
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (let first = 0; first < ids.length; first += idsAtOnce) {
    const some = ids.slice(first, first + idsAtOnce);
    const marks = some.map((_, i) => `$${i + 1}`).join(', ');
    const sql = `SELECT ${columns.map(quoted).join(', ')} FROM ${quoted(type)} WHERE _pk IN (${marks})`;
    try {
      rows.push(...(await session.ask(sql, some, 'all')));
    } catch (error) {
      // Nothing can be derived from what the caller may not read: other sources do not suffer for its guard.
      if (error instanceof ServiceError && guards.has(error.code)) return [];
      throw error;
    }
  }
  return rows;
}

const guards: ReadonlySet<string> = new Set(['REL_HUMINT', 'REL_ACCESS_SCOPE', 'REL_PROTECTED_COLUMN', 'REL_ACL']);

function subjectOf({ properties }: Pick<TypeDefinition, 'properties'>): string | null {
  const found = Object.entries(properties).find(([, { subject, type }]) => subject && type === 'string');
  return found?.[0] ?? null;
}
