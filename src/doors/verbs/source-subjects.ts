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

const integerSubject = /^(?:0|-?[1-9]\d{0,17})$/;
const sourceIdsAtOnce = 500;
/** Most rows read to find the subject; a row derived from more is sealed by itself, as one derived from several subjects is. */
const subjectSourcesMax = 4_000;
/** Rows that are read ahead for many rows at once. */
const readAheadSourcesMax = 16 * subjectSourcesMax;

/**
 * Says in the row whose it is, where its type has a column for that; else the subject that it is to be sealed under is returned.
 * Throws REL_MASKED_COLUMN where the caller does not see whose a source is, and REL_INVALID where the row says that it is another's:
 * it could be erased with neither of the two.
 */
export async function carrySubject(
  verbCall: VerbCall,
  derivedRow: Record<string, unknown>,
  { definition: derivedType, key: derivedKey, sources: sourceIds }: MadeRow,
): Promise<string | null> {
  const sourceSubject = await findSourceSubject(verbCall, sourceIds);
  if (sourceSubject === null) return null;
  const { subject: jointSubjectText, isOne: isOneSubject } = sourceSubject;
  const subjectColumnName = subjectColumn(derivedType);
  if (subjectColumnName === null)
    return isOneSubject ? jointSubjectText : ownSubject(derivedType.name, verbCall.invocation.caller.path, derivedKey);
  if (jointSubjectText === null)
    throw new ServiceError(
      'REL_TOO_LARGE',
      `the row is derived from more than ${subjectSourcesMax} rows in several steps: too many to find whose they are`,
    );
  const statedSubject = derivedRow[subjectColumnName];
  const sourceSubjects = [jointSubjectText, ...subjectsIn(jointSubjectText)];
  if (
    statedSubject !== undefined &&
    statedSubject !== null &&
    !sourceSubjects.includes(String(statedSubject as string | number | bigint))
  )
    throw new ServiceError(
      'REL_INVALID',
      `fields: ${JSON.stringify(subjectColumnName)} names another subject than the rows that this one is derived from: leave it out to take theirs`,
    );
  if (derivedType.properties[subjectColumnName]!.type === 'string') derivedRow[subjectColumnName] = jointSubjectText;
  // A number names a single subject; the seal of a row follows its sources anyhow.
  else if (isOneSubject && integerSubject.test(jointSubjectText)) derivedRow[subjectColumnName] = BigInt(jointSubjectText);
  return null;
}

interface SourceSubject {
  /** One subject, or all of them together; null: there are too many to name. */
  readonly subject: string | null;
  readonly isOne: boolean;
}

/** The subject of these rows and their sources; null: none has a subject. */
async function findSourceSubject(verbCall: VerbCall, sourceIds: readonly string[]): Promise<SourceSubject | null> {
  if (sourceIds.length === 0 || !(await snapshotHasSubjects(verbCall))) return null;
  const subjectsFound = new Set<string>();
  const seenSources = new Set(sourceIds);
  for (let sourceRound: readonly string[] = [...seenSources]; sourceRound.length > 0; ) {
    if (seenSources.size > subjectSourcesMax) return { subject: null, isOne: false };
    const sourceById = await knownSourcesOf(verbCall, sourceRound);
    const nextSources = new Set<string>();
    for (const sourceId of sourceRound) {
      const { masked: maskedColumn, whose: subjectsOfSource, names: namedSources } = sourceById.get(sourceId)!;
      if (maskedColumn !== null)
        throw new ServiceError(
          'REL_MASKED_COLUMN',
          `${JSON.stringify(maskedColumn)} of a source is masked: nothing can be derived from it`,
        );
      for (const foundSubject of subjectsOfSource) subjectsFound.add(foundSubject);
      for (const each of namedSources) if (!seenSources.has(each)) nextSources.add(each);
    }
    for (const each of nextSources) seenSources.add(each);
    sourceRound = [...nextSources];
  }
  const jointText = jointSubject(subjectsFound);
  return jointText === null ? null : { subject: jointText, isOne: subjectsIn(jointText).length === 1 };
}

/** Reads the sources of many rows at once, so that `carrySubject` of each of them finds them read. */
export async function readSources(verbCall: VerbCall, sourceIds: readonly string[]): Promise<void> {
  if (sourceIds.length === 0 || !(await snapshotHasSubjects(verbCall))) return;
  const seenSources = new Set(sourceIds);
  for (
    let sourceRound: readonly string[] = [...seenSources];
    sourceRound.length > 0 && seenSources.size <= readAheadSourcesMax;
  ) {
    const sourceById = await knownSourcesOf(verbCall, sourceRound);
    sourceRound = [...new Set(sourceRound.flatMap((sourceId) => [...sourceById.get(sourceId)!.names]))].filter(
      (sourceId) => !seenSources.has(sourceId),
    );
    for (const sourceOfRound of sourceRound) seenSources.add(sourceOfRound);
  }
}

const subjectsBySnapshot = new WeakMap<GovernedSnapshot, Promise<boolean>>();

/** Whether rows may have subjects: a type was registered that names them, or a document was stored with one. */
function snapshotHasSubjects(verbCall: VerbCall): Promise<boolean> {
  const { snapshot: sourceSnapshot } = verbCall;
  let hasAnySubject = subjectsBySnapshot.get(sourceSnapshot);
  if (hasAnySubject === undefined) subjectsBySnapshot.set(sourceSnapshot, (hasAnySubject = findAnySubject(verbCall)));
  return hasAnySubject;
}

async function findAnySubject(verbCall: VerbCall): Promise<boolean> {
  const subjectTypes = verbCall.snapshot.catalog.types().filter((catalogType) => subjectColumn(catalogType) !== null);
  if (subjectTypes.some(({ name: typeName }) => !builtinSubjects.has(typeName))) return true;
  for (const { name } of subjectTypes) {
    const builtinSubjectColumn = builtinSubjects.get(name)!;
    const subjectSql = `SELECT _pk FROM ${quote(name)} WHERE ${quote(builtinSubjectColumn)} IS NOT NULL LIMIT 1`;
    if (
      verbCall.snapshot.masksOf(name).has(builtinSubjectColumn) ||
      (await askUnlessGuarded(verbCall, subjectSql, [])).length > 0
    )
      return true;
  }
  return false;
}

/** A source that the caller may not read contributes nothing; other sources are not affected by its guard. */
async function askUnlessGuarded(
  verbCall: VerbCall,
  sourceSql: string,
  sourceParameters: readonly string[],
): Promise<readonly VerbRow[]> {
  try {
    return await verbCall.ask(sourceSql, sourceParameters, 'all');
  } catch (guardError) {
    if (guardError instanceof ServiceError && guardCodes.has(guardError.code)) return [];
    throw guardError;
  }
}

/** The subjects and sources that rows of one key name, over all types. */
interface SourceRow {
  /** Its column that says whose it is, where the caller does not see it. */
  masked: string | null;
  readonly whose: Set<string>;
  /** Rows that it was made from. */
  readonly names: Set<string>;
}

/** Sources by id, as one snapshot shows them, missing rows included. */
const sourcesBySnapshot = new WeakMap<GovernedSnapshot, Map<string, SourceRow>>();

async function knownSourcesOf(verbCall: VerbCall, sourceIds: readonly string[]): Promise<ReadonlyMap<string, SourceRow>> {
  const { snapshot: sourceSnapshot } = verbCall;
  const sourceById = sourcesBySnapshot.get(sourceSnapshot) ?? new Map<string, SourceRow>();
  sourcesBySnapshot.set(sourceSnapshot, sourceById);
  const unknownSourceIds = sourceIds.filter((sourceId) => !sourceById.has(sourceId));
  for (const id of unknownSourceIds) sourceById.set(id, { masked: null, whose: new Set(), names: new Set() });
  if (unknownSourceIds.length === 0) return sourceById;
  for (const { name: typeName, properties: typeProperties } of sourceSnapshot.catalog.types()) {
    const ownSubjectColumn = subjectColumn({ properties: typeProperties });
    const namingColumnNames = namingColumns(typeName, { has: (column) => Object.hasOwn(typeProperties, column) });
    if (ownSubjectColumn === null && namingColumnNames.length === 0) continue;
    const isSubjectMasked = ownSubjectColumn !== null && sourceSnapshot.masksOf(typeName).has(ownSubjectColumn);
    for (const sourceRow of await sourceRows(
      verbCall,
      typeName,
      ['_pk', ...(ownSubjectColumn === null ? [] : [ownSubjectColumn]), ...namingColumnNames],
      unknownSourceIds,
    )) {
      const knownSource = sourceById.get(String(sourceRow['_pk']))!;
      if (isSubjectMasked) knownSource.masked = ownSubjectColumn;
      const rowSubject = ownSubjectColumn === null ? null : textOf(sourceRow[ownSubjectColumn]);
      if (rowSubject !== null) knownSource.whose.add(rowSubject);
      for (const namingColumn of namingColumnNames)
        for (const namedSource of namesIn(sourceRow[namingColumn] ?? null)) knownSource.names.add(namedSource);
    }
  }
  return sourceById;
}

async function sourceRows(
  verbCall: VerbCall,
  sourceType: string,
  sourceColumns: readonly string[],
  sourceIds: readonly string[],
): Promise<readonly VerbRow[]> {
  const sourceRowsFound: VerbRow[] = [];
  for (let firstSource = 0; firstSource < sourceIds.length; firstSource += sourceIdsAtOnce) {
    const someSources = sourceIds.slice(firstSource, firstSource + sourceIdsAtOnce);
    const sourceMarks = someSources.map((_, i) => `$${i + 1}`).join(', ');
    const sourceSql = `SELECT ${sourceColumns.map(quote).join(', ')} FROM ${quote(sourceType)} WHERE _pk IN (${sourceMarks})`;
    sourceRowsFound.push(...(await askUnlessGuarded(verbCall, sourceSql, someSources)));
  }
  return sourceRowsFound;
}

const guardCodes: ReadonlySet<string> = new Set(['REL_HUMINT', 'REL_ACCESS_SCOPE', 'REL_PROTECTED_COLUMN', 'REL_ACL']);

function subjectColumn({ properties: typeProperties }: Pick<TypeDefinition, 'properties'>): string | null {
  return Object.keys(typeProperties).find((columnName) => typeProperties[columnName]!.subject) ?? null;
}
