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
/** Rows that are looked at on the way to whose they are; beyond that the row is sealed by itself. */
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
  const types = session.snapshot.catalog.types();
  if (sources.length === 0 || !types.some((type) => subjectOf(type) !== null)) return null;
  const subject = jointSubject(await subjectsOf(session, types, sources));
  if (subject === null) return null;
  const column = subjectOf(definition);
  const isJoint = subjectsIn(subject).length > 1;
  if (column === null) return isJoint ? ownSubject(definition.name, session.invocation.caller.path, key) : subject;
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
  const types = session.snapshot.catalog.types();
  if (!types.some((each) => subjectOf(each) !== null)) return [[null, rows]];
  const subject = jointSubject(await subjectsOf(session, types, sources));
  if (subject === null || subjectsIn(subject).length === 1) return [[subject, rows]];
  return rows.map((row) => [ownSubject(type, session.invocation.caller.path, row._pk), [row]]);
}

/** Subjects of these rows, and of those that they were made from. */
async function subjectsOf(
  session: VerbSession,
  types: readonly TypeDefinition[],
  sources: readonly string[],
): Promise<ReadonlySet<string>> {
  const subjects = new Set<string>();
  const seen = new Set(sources);
  for (let round: readonly string[] = [...seen]; round.length > 0 && seen.size <= sourcesMax; ) {
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
  return subjects;
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
