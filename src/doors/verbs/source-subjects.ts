/** The subject of a row made from other rows: its sources' subject, or all of theirs together. It is erased with each of them. */
import { ServiceError } from '../../errors.ts';
import { builtinSubjects } from '../../projections/catalog/builtin-types.ts';
import { namesIn, namingColumns } from '../../projections/catalog/naming-columns.ts';
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { jointSubject, ownSubject, subjectsIn } from '../../log/keys/joint-subject.ts';
import { quote, type VerbRow, textOf } from './verb-rows.ts';
import type { VerbCall } from './verb-call.ts';

/** A row that is about to be made from others. */
export interface MadeRow {
  readonly definition: TypeDefinition;
  readonly key: string;
  readonly sources: readonly string[];
}

const integer = /^(?:0|-?[1-9]\d{0,17})$/;
const idsAtOnce = 500;
/** Most rows read to find the subject; a row derived from more is sealed by itself, as one derived from several subjects is. */
const sourcesMax = 4_000;
/** Rows that are read ahead for many rows at once. */
const aheadMax = 16 * sourcesMax;

/**
 * Says in the row whose it is, where its type has a column for that; else the subject that it is to be sealed under is returned.
 * Throws REL_MASKED_COLUMN where the caller does not see whose a source is, and REL_INVALID where the row says that it is another's:
 * it could be erased with neither of the two.
 */
export async function carrySubject(
  verbCall: VerbCall,
  row: Record<string, unknown>,
  { definition, key, sources }: MadeRow,
): Promise<string | null> {
  const whose = await whoseAre(verbCall, sources);
  if (whose === null) return null;
  const { subject, isOne } = whose;
  const column = subjectOf(definition);
  if (column === null) return isOne ? subject : ownSubject(definition.name, verbCall.invocation.caller.path, key);
  if (subject === null)
    throw new ServiceError(
      'REL_TOO_LARGE',
      `the row is derived from more than ${sourcesMax} rows in several steps: too many to find whose they are`,
    );
  const stated = row[column];
  const theirs = [subject, ...subjectsIn(subject)];
  if (stated !== undefined && stated !== null && !theirs.includes(String(stated as string | number | bigint)))
    throw new ServiceError(
      'REL_INVALID',
      `fields: ${JSON.stringify(column)} names another subject than the rows that this one is derived from: leave it out to take theirs`,
    );
  if (definition.properties[column]!.type === 'string') row[column] = subject;
  // A number names a single subject; the seal of a row follows its sources anyhow.
  else if (isOne && integer.test(subject)) row[column] = BigInt(subject);
  return null;
}

interface Whose {
  /** One subject, or all of them together; null: there are too many to name. */
  readonly subject: string | null;
  readonly isOne: boolean;
}

/** The subject of these rows and their sources; null: none has a subject. */
async function whoseAre(verbCall: VerbCall, sources: readonly string[]): Promise<Whose | null> {
  if (sources.length === 0 || !(await hasSubjects(verbCall))) return null;
  const subjects = new Set<string>();
  const seen = new Set(sources);
  for (let round: readonly string[] = [...seen]; round.length > 0; ) {
    if (seen.size > sourcesMax) return { subject: null, isOne: false };
    const known = await knownOf(verbCall, round);
    const next = new Set<string>();
    for (const id of round) {
      const { masked, whose, names } = known.get(id)!;
      if (masked !== null)
        throw new ServiceError(
          'REL_MASKED_COLUMN',
          `${JSON.stringify(masked)} of a source is masked: nothing can be derived from it`,
        );
      for (const each of whose) subjects.add(each);
      for (const each of names) if (!seen.has(each)) next.add(each);
    }
    for (const each of next) seen.add(each);
    round = [...next];
  }
  const subject = jointSubject(subjects);
  return subject === null ? null : { subject, isOne: subjectsIn(subject).length === 1 };
}

/** Reads the sources of many rows at once, so that `carrySubject` of each of them finds them read. */
export async function readSources(verbCall: VerbCall, sources: readonly string[]): Promise<void> {
  if (sources.length === 0 || !(await hasSubjects(verbCall))) return;
  const seen = new Set(sources);
  for (let round: readonly string[] = [...seen]; round.length > 0 && seen.size <= aheadMax; ) {
    const known = await knownOf(verbCall, round);
    round = [...new Set(round.flatMap((id) => [...known.get(id)!.names]))].filter((id) => !seen.has(id));
    for (const each of round) seen.add(each);
  }
}

const haveSubjects = new WeakMap<GovernedSnapshot, Promise<boolean>>();

/** Whether rows may have subjects: a type was registered that names them, or a document was stored with one. */
function hasSubjects(verbCall: VerbCall): Promise<boolean> {
  const { snapshot } = verbCall;
  let has = haveSubjects.get(snapshot);
  if (has === undefined) haveSubjects.set(snapshot, (has = findSubjects(verbCall)));
  return has;
}

async function findSubjects(verbCall: VerbCall): Promise<boolean> {
  const types = verbCall.snapshot.catalog.types().filter((type) => subjectOf(type) !== null);
  if (types.some(({ name }) => !builtinSubjects.has(name))) return true;
  for (const { name } of types) {
    const column = builtinSubjects.get(name)!;
    const sql = `SELECT _pk FROM ${quote(name)} WHERE ${quote(column)} IS NOT NULL LIMIT 1`;
    if (verbCall.snapshot.masksOf(name).has(column) || (await unlessGuarded(verbCall, sql, [])).length > 0) return true;
  }
  return false;
}

/** A source that the caller may not read contributes nothing; other sources are not affected by its guard. */
async function unlessGuarded(verbCall: VerbCall, sql: string, parameters: readonly string[]): Promise<readonly VerbRow[]> {
  try {
    return await verbCall.ask(sql, parameters, 'all');
  } catch (error) {
    if (error instanceof ServiceError && guards.has(error.code)) return [];
    throw error;
  }
}

/** The subjects and sources that rows of one key name, over all types. */
interface Source {
  /** Its column that says whose it is, where the caller does not see it. */
  masked: string | null;
  readonly whose: Set<string>;
  /** Rows that it was made from. */
  readonly names: Set<string>;
}

/** Sources by id, as one snapshot shows them, missing rows included. */
const knownSources = new WeakMap<GovernedSnapshot, Map<string, Source>>();

async function knownOf(verbCall: VerbCall, ids: readonly string[]): Promise<ReadonlyMap<string, Source>> {
  const { snapshot } = verbCall;
  const known = knownSources.get(snapshot) ?? new Map<string, Source>();
  knownSources.set(snapshot, known);
  const asked = ids.filter((id) => !known.has(id));
  for (const id of asked) known.set(id, { masked: null, whose: new Set(), names: new Set() });
  if (asked.length === 0) return known;
  for (const { name, properties } of snapshot.catalog.types()) {
    const own = subjectOf({ properties });
    const naming = namingColumns(name, { has: (column) => Object.hasOwn(properties, column) });
    if (own === null && naming.length === 0) continue;
    const isMasked = own !== null && snapshot.masksOf(name).has(own);
    for (const row of await rowsOf(verbCall, name, ['_pk', ...(own === null ? [] : [own]), ...naming], asked)) {
      const source = known.get(String(row['_pk']))!;
      if (isMasked) source.masked = own;
      const whose = own === null ? null : textOf(row[own]);
      if (whose !== null) source.whose.add(whose);
      for (const column of naming) for (const each of namesIn(row[column] ?? null)) source.names.add(each);
    }
  }
  return known;
}

async function rowsOf(
  verbCall: VerbCall,
  type: string,
  columns: readonly string[],
  ids: readonly string[],
): Promise<readonly VerbRow[]> {
  const rows: VerbRow[] = [];
  for (let first = 0; first < ids.length; first += idsAtOnce) {
    const some = ids.slice(first, first + idsAtOnce);
    const marks = some.map((_, i) => `$${i + 1}`).join(', ');
    const sql = `SELECT ${columns.map(quote).join(', ')} FROM ${quote(type)} WHERE _pk IN (${marks})`;
    rows.push(...(await unlessGuarded(verbCall, sql, some)));
  }
  return rows;
}

const guards: ReadonlySet<string> = new Set(['REL_HUMINT', 'REL_ACCESS_SCOPE', 'REL_PROTECTED_COLUMN', 'REL_ACL']);

function subjectOf({ properties }: Pick<TypeDefinition, 'properties'>): string | null {
  return Object.keys(properties).find((name) => properties[name]!.subject) ?? null;
}
