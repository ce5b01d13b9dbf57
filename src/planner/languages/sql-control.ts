/**
 * Statements that do something other than answer a query: the control statements of the specification's operator table,
 * and the writes and definitions that are recognised only to be refused by name.
 */
import type {
  ControlWhat,
  FunctionArgument,
  Location,
  ProjectionItem,
  Query,
  Slot,
  Source,
  Statement,
} from '../syntax/statement.ts';
import { readColumnNames } from './sql-query.ts';
import { queryOf, selectOf } from './tree-builders.ts';
import type { TokenCursor } from './token-cursor.ts';

type ControlStatement = Extract<Statement, { kind: 'control' }>;
type ControlOption = ControlStatement['options'][number];

function memoryRoute(verb: string): string {
  return verb === 'RESOLVE' ? 'GET /memory/resolve/:id' : `POST /memory/${verb.toLowerCase()}`;
}

/** Parses a control statement; null where the first word is none of theirs. */
export function readControl(sqlCursor: TokenCursor, purpose: Slot | null): Statement | null {
  if (sqlCursor.token.kind !== 'word') return null;
  const { location } = sqlCursor;
  const controlVerb = sqlCursor.key();
  const secondKey = sqlCursor.key(1);
  if (controlVerb === 'DROP' && (secondKey === 'MATERIALIZED' || secondKey === 'VIEW' || secondKey === 'LOOKUP'))
    return readDrop(sqlCursor, purpose);
  if (writeVerbs.has(controlVerb)) return { kind: 'write', verb: controlVerb, location };
  switch (controlVerb) {
    case 'CREATE':
      return readCreate(sqlCursor, purpose);
    case 'ALTER':
      if (secondKey === 'TABLE')
        return {
          kind: 'unimplemented',
          verb: 'ALTER TABLE',
          instead: 'POST /ontology/migrate or POST /types/:name/schema',
          location,
        };
      throw sqlCursor.notImplemented('ALTER');
    case 'BRANCH':
      return readBranch(sqlCursor, purpose);
    case 'WATCH':
      return readWatch(sqlCursor, purpose);
    case 'ERASE':
      return readErasure(sqlCursor, purpose);
    case 'REGISTER':
      return readLookupTable(sqlCursor, purpose);
    case 'REMEMBER':
    case 'RECALL':
    case 'REFLECT':
      return { kind: 'unimplemented', verb: controlVerb, instead: memoryRoute(controlVerb), location };
    case 'CONSOLIDATE':
    case 'FORGET':
    case 'ASSOCIATE':
    case 'RESOLVE':
      return secondKey === 'MEMORY'
        ? { kind: 'unimplemented', verb: `${controlVerb} MEMORY`, instead: memoryRoute(controlVerb), location }
        : null;
    default:
      return null;
  }
}

const controlFunctions: ReadonlyMap<string, { readonly what: ControlWhat; readonly count: number; readonly most?: number }> =
  new Map([
    ['FUSE_IDENTITIES', { what: 'fuse-identities', count: 2, most: 3 }],
    ['SPLIT_IDENTITIES', { what: 'split-identities', count: 2, most: 3 }],
    ['EXPLAIN_REPLAY', { what: 'explain-replay', count: 1 }],
  ]);

/** Calls that are statements of their own, however they are written. */
export function controlFunction(name: string): boolean {
  return controlFunctions.has(name);
}

export function readFunctionControl(
  sqlCursor: TokenCursor,
  purpose: Slot | null,
  controlCall: Extract<Source, { kind: 'function' }>,
): Statement {
  const {
    what: controlKind,
    count: leastArguments,
    most: mostArguments = leastArguments,
  } = controlFunctions.get(controlCall.name)!;
  const { slots: argumentSlots, options } = literalArguments(sqlCursor, controlCall.arguments, controlCall.location);
  if (argumentSlots.length < leastArguments || argumentSlots.length > mostArguments) {
    const valueCounts = mostArguments === leastArguments ? String(leastArguments) : `${leastArguments} or ${mostArguments}`;
    throw sqlCursor.error(`${controlCall.name} takes ${valueCounts} values by position`, controlCall.location);
  }
  return controlStatement(controlKind, controlCall.location, purpose, { arguments: argumentSlots, options });
}

const writeVerbs: ReadonlySet<string> = new Set(
  'INSERT UPDATE DELETE MERGE UPSERT REPLACE DROP TRUNCATE COPY GRANT REVOKE'.split(' '),
);

function readCreate(sqlCursor: TokenCursor, purpose: Slot | null): Statement {
  const { location } = sqlCursor;
  const verb = sqlCursor.key(1);
  if (verb === 'TABLE' || verb === 'EXTENSION') return { kind: 'write', verb: `CREATE ${verb}`, location };
  const isReplaced = verb === 'OR' && sqlCursor.key(2) === 'REPLACE' && sqlCursor.key(3) === 'VIEW';
  if (verb === 'VIEW' || isReplaced) {
    for (let wordsLeft = isReplaced ? 4 : 2; wordsLeft > 0; wordsLeft--) sqlCursor.next();
    const viewNames = [sqlCursor.name('the name of the view')];
    const viewColumns = readColumnNames(sqlCursor);
    sqlCursor.expect('AS');
    const viewQuery = readAsOfQuery(sqlCursor);
    const query = viewColumns.length === 0 ? viewQuery : withColumnNames(viewQuery, viewNames[0]!, viewColumns, location);
    return controlStatement(isReplaced ? 'replace-view' : 'create-view', location, purpose, {
      names: [...viewNames, ...viewColumns],
      query,
    });
  }
  if (verb !== 'MATERIALIZED') {
    const unsupportedKind = ['INDEX', 'TYPE', 'SCHEMA'].find((unsupportedWord) => unsupportedWord === verb);
    if (unsupportedKind || verb === 'UNIQUE') throw sqlCursor.notImplemented(`CREATE ${unsupportedKind ?? 'INDEX'}`);
    sqlCursor.next();
    throw sqlCursor.expectedError('TABLE, EXTENSION, VIEW or MATERIALIZED VIEW');
  }
  sqlCursor.next();
  sqlCursor.next();
  sqlCursor.expect('VIEW');
  const names = [sqlCursor.name('the name of the view')];
  sqlCursor.expect('AS');
  const viewQuery = readAsOfQuery(sqlCursor);
  const viewOptions: ControlOption[] = [];
  if (sqlCursor.accept('REFRESH')) {
    sqlCursor.expect('INCREMENTAL');
    sqlCursor.expect('EVERY');
    viewOptions.push({ name: 'SECONDS', value: sqlCursor.literal('i', 'a number of seconds') });
    sqlCursor.accept('SECONDS');
  }
  return controlStatement('create-materialized-view', location, purpose, { names, query: viewQuery, options: viewOptions });
}

function withColumnNames(query: Query, view: string, columns: readonly string[], location: Location): Query {
  const viewSource: Source = { kind: 'subquery', query, alias: view, columns, location };
  const starItem: ProjectionItem = { kind: 'star', table: null, location };
  return queryOf(selectOf({ projection: [starItem], from: viewSource, where: null, location }), null);
}

/** DROP [MATERIALIZED] VIEW name, DROP LOOKUP name. */
function readDrop(sqlCursor: TokenCursor, purpose: Slot | null): Statement {
  const { location } = sqlCursor;
  sqlCursor.next();
  if (sqlCursor.accept('LOOKUP')) {
    return controlStatement('drop-lookup', location, purpose, { names: [sqlCursor.name('the name of the lookup table')] });
  }
  const statementKind = sqlCursor.accept('MATERIALIZED') ? 'drop-materialized-view' : 'drop-view';
  sqlCursor.expect('VIEW');
  return controlStatement(statementKind, location, purpose, { names: [sqlCursor.name('the name of the view')] });
}

/** BRANCH name FROM source: names bare or in quotes of either kind. */
function readBranch(sqlCursor: TokenCursor, purpose: Slot | null): Statement {
  const { location } = sqlCursor;
  sqlCursor.next();
  const branchName = readBranchName(sqlCursor);
  sqlCursor.expect('FROM');
  return controlStatement('branch', location, purpose, { names: [branchName, readBranchName(sqlCursor)] });
}

function readBranchName(sqlCursor: TokenCursor): string {
  const { location } = sqlCursor;
  const branchName = sqlCursor.isLiteral('s')
    ? sqlCursor.textOf(sqlCursor.literal('s', 'a branch name'))
    : sqlCursor.name('a branch name');
  if (branchName.length === 0 || branchName.length > 128)
    throw sqlCursor.error('a branch name has 1 to 128 characters', location);
  return branchName;
}

/** WATCH [PURPOSE 'id'] select. */
function readWatch(sqlCursor: TokenCursor, outerPurpose: Slot | null): Statement {
  const { location } = sqlCursor;
  sqlCursor.next();
  if (outerPurpose && sqlCursor.key() === 'PURPOSE') throw sqlCursor.error('a statement has one PURPOSE');
  const watchPurpose = sqlCursor.accept('PURPOSE') ? sqlCursor.literal('s', 'a purpose in quotes') : outerPurpose;
  return controlStatement('watch', location, watchPurpose, { query: readAsOfQuery(sqlCursor) });
}

/** ERASE SUBJECT 'subject' REASON 'reason' [CERTIFY]. */
function readErasure(sqlCursor: TokenCursor, purpose: Slot | null): Statement {
  const { location } = sqlCursor;
  sqlCursor.next();
  sqlCursor.expect('SUBJECT');
  const subjectSlot = sqlCursor.literal('s', 'a subject in quotes');
  sqlCursor.expect('REASON');
  const reasonSlot = sqlCursor.literal('s', 'a reason in quotes');
  if (sqlCursor.textOf(reasonSlot).trim() === '') throw sqlCursor.error('the reason is empty', reasonSlot.location);
  const certifyOption = sqlCursor.accept('CERTIFY') ? ['CERTIFY'] : [];
  return controlStatement('erase-subject', location, purpose, { arguments: [subjectSlot, reasonSlot], names: certifyOption });
}

/** REGISTER LOOKUP name FROM 'path' KEY (column) FIELDS (column, …) [REFRESH EVERY n MINUTES]. */
function readLookupTable(sqlCursor: TokenCursor, purpose: Slot | null): Statement {
  const { location } = sqlCursor;
  sqlCursor.next();
  sqlCursor.expect('LOOKUP');
  const lookupNames = [sqlCursor.name('the name of the lookup table')];
  sqlCursor.expect('FROM');
  const csvPath = sqlCursor.literal('s', 'the path of a CSV file in quotes');
  sqlCursor.expect('KEY');
  sqlCursor.expect('(');
  lookupNames.push(sqlCursor.name('a column name'));
  sqlCursor.expect(')');
  sqlCursor.expect('FIELDS');
  sqlCursor.expect('(');
  do lookupNames.push(sqlCursor.name('a column name'));
  while (sqlCursor.accept(','));
  sqlCursor.expect(')');
  const refreshOptions: ControlOption[] = [];
  if (sqlCursor.accept('REFRESH')) {
    sqlCursor.expect('EVERY');
    refreshOptions.push({ name: 'MINUTES', value: sqlCursor.literal('i', 'a number of minutes') });
    if (!sqlCursor.accept('MINUTE')) sqlCursor.expect('MINUTES');
  }
  return controlStatement('register-lookup', location, purpose, {
    names: lookupNames,
    arguments: [csvPath],
    options: refreshOptions,
  });
}

/** The query of another statement. AS OF stands on the outermost query, which this one is. */
function readAsOfQuery(sqlCursor: TokenCursor): Query {
  const wholeQuery = sqlCursor.query();
  return { ...wholeQuery, asOf: sqlCursor.asOf };
}

function literalArguments(
  sqlCursor: TokenCursor,
  controlArguments: readonly FunctionArgument[],
  location: Location,
): { slots: Slot[]; options: ControlOption[] } {
  const literalSlots: Slot[] = [];
  const literalOptions: ControlOption[] = [];
  for (const { name, value } of controlArguments) {
    if (value.kind !== 'literal') throw sqlCursor.error('only literals can be given here', value.location ?? location);
    const literalSlot = { slot: value.slot, location: value.location };
    if (name === null) literalSlots.push(literalSlot);
    else literalOptions.push({ name, value: literalSlot });
  }
  return { slots: literalSlots, options: literalOptions };
}

function controlStatement(
  controlKind: ControlWhat,
  location: Location,
  purpose: Slot | null,
  controlParts: Partial<Pick<ControlStatement, 'arguments' | 'options' | 'query' | 'names'>>,
): ControlStatement {
  return {
    kind: 'control',
    what: controlKind,
    location,
    purpose,
    arguments: [],
    options: [],
    query: null,
    names: [],
    ...controlParts,
  };
}
