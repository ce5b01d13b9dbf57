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

type Control = Extract<Statement, { kind: 'control' }>;
type Option = Control['options'][number];

function memoryRoute(verb: string): string {
  return verb === 'RESOLVE' ? 'GET /memory/resolve/:id' : `POST /memory/${verb.toLowerCase()}`;
}

/** Parses a control statement; null where the first word is none of theirs. */
export function readControl(cursor: TokenCursor, purpose: Slot | null): Statement | null {
  if (cursor.token.kind !== 'word') return null;
  const { location } = cursor;
  const key = cursor.key();
  const second = cursor.key(1);
  if (key === 'DROP' && (second === 'MATERIALIZED' || second === 'VIEW' || second === 'LOOKUP')) return readDrop(cursor, purpose);
  if (writeVerbs.has(key)) return { kind: 'write', verb: key, location };
  switch (key) {
    case 'CREATE':
      return readCreate(cursor, purpose);
    case 'ALTER':
      if (second === 'TABLE')
        return {
          kind: 'unimplemented',
          verb: 'ALTER TABLE',
          instead: 'POST /ontology/migrate or POST /types/:name/schema',
          location,
        };
      throw cursor.notImplemented('ALTER');
    case 'BRANCH':
      return readBranch(cursor, purpose);
    case 'WATCH':
      return readWatch(cursor, purpose);
    case 'ERASE':
      return readErasure(cursor, purpose);
    case 'REGISTER':
      return readLookupTable(cursor, purpose);
    case 'REMEMBER':
    case 'RECALL':
    case 'REFLECT':
      return { kind: 'unimplemented', verb: key, instead: memoryRoute(key), location };
    case 'CONSOLIDATE':
    case 'FORGET':
    case 'ASSOCIATE':
    case 'RESOLVE':
      return second === 'MEMORY' ? { kind: 'unimplemented', verb: `${key} MEMORY`, instead: memoryRoute(key), location } : null;
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
  cursor: TokenCursor,
  purpose: Slot | null,
  call: Extract<Source, { kind: 'function' }>,
): Statement {
  const { what, count, most = count } = controlFunctions.get(call.name)!;
  const { slots, options } = literalsOf(cursor, call.arguments, call.location);
  if (slots.length < count || slots.length > most) {
    const values = most === count ? String(count) : `${count} or ${most}`;
    throw cursor.error(`${call.name} takes ${values} values by position`, call.location);
  }
  return control(what, call.location, purpose, { arguments: slots, options });
}

const writeVerbs: ReadonlySet<string> = new Set(
  'INSERT UPDATE DELETE MERGE UPSERT REPLACE DROP TRUNCATE COPY GRANT REVOKE'.split(' '),
);

function readCreate(cursor: TokenCursor, purpose: Slot | null): Statement {
  const { location } = cursor;
  const verb = cursor.key(1);
  if (verb === 'TABLE' || verb === 'EXTENSION') return { kind: 'write', verb: `CREATE ${verb}`, location };
  const replaces = verb === 'OR' && cursor.key(2) === 'REPLACE' && cursor.key(3) === 'VIEW';
  if (verb === 'VIEW' || replaces) {
    for (let words = replaces ? 4 : 2; words > 0; words--) cursor.next();
    const names = [cursor.name('the name of the view')];
    const columns = readColumnNames(cursor);
    cursor.expect('AS');
    const viewQuery = readWholeQuery(cursor);
    const query = columns.length === 0 ? viewQuery : withColumnNames(viewQuery, names[0]!, columns, location);
    return control(replaces ? 'replace-view' : 'create-view', location, purpose, { names: [...names, ...columns], query });
  }
  if (verb !== 'MATERIALIZED') {
    const named = ['INDEX', 'TYPE', 'SCHEMA'].find((each) => each === verb);
    if (named || verb === 'UNIQUE') throw cursor.notImplemented(`CREATE ${named ?? 'INDEX'}`);
    cursor.next();
    throw cursor.expectedError('TABLE, EXTENSION, VIEW or MATERIALIZED VIEW');
  }
  cursor.next();
  cursor.next();
  cursor.expect('VIEW');
  const names = [cursor.name('the name of the view')];
  cursor.expect('AS');
  const query = readWholeQuery(cursor);
  const options: Option[] = [];
  if (cursor.accept('REFRESH')) {
    cursor.expect('INCREMENTAL');
    cursor.expect('EVERY');
    options.push({ name: 'SECONDS', value: cursor.literal('i', 'a number of seconds') });
    cursor.accept('SECONDS');
  }
  return control('create-materialized-view', location, purpose, { names, query, options });
}

function withColumnNames(query: Query, view: string, columns: readonly string[], location: Location): Query {
  const from: Source = { kind: 'subquery', query, alias: view, columns, location };
  const star: ProjectionItem = { kind: 'star', table: null, location };
  return queryOf(selectOf({ projection: [star], from, where: null, location }), null);
}

/** DROP [MATERIALIZED] VIEW name, DROP LOOKUP name. */
function readDrop(cursor: TokenCursor, purpose: Slot | null): Statement {
  const { location } = cursor;
  cursor.next();
  if (cursor.accept('LOOKUP')) {
    return control('drop-lookup', location, purpose, { names: [cursor.name('the name of the lookup table')] });
  }
  const statementKind = cursor.accept('MATERIALIZED') ? 'drop-materialized-view' : 'drop-view';
  cursor.expect('VIEW');
  return control(statementKind, location, purpose, { names: [cursor.name('the name of the view')] });
}

/** BRANCH name FROM source: names bare or in quotes of either kind. */
function readBranch(cursor: TokenCursor, purpose: Slot | null): Statement {
  const { location } = cursor;
  cursor.next();
  const name = readBranchName(cursor);
  cursor.expect('FROM');
  return control('branch', location, purpose, { names: [name, readBranchName(cursor)] });
}

function readBranchName(cursor: TokenCursor): string {
  const { location } = cursor;
  const name = cursor.isLiteral('s') ? cursor.textOf(cursor.literal('s', 'a branch name')) : cursor.name('a branch name');
  if (name.length === 0 || name.length > 128) throw cursor.error('a branch name has 1 to 128 characters', location);
  return name;
}

/** WATCH [PURPOSE 'id'] select. */
function readWatch(cursor: TokenCursor, outer: Slot | null): Statement {
  const { location } = cursor;
  cursor.next();
  if (outer && cursor.key() === 'PURPOSE') throw cursor.error('a statement has one PURPOSE');
  const purpose = cursor.accept('PURPOSE') ? cursor.literal('s', 'a purpose in quotes') : outer;
  return control('watch', location, purpose, { query: readWholeQuery(cursor) });
}

/** ERASE SUBJECT 'subject' REASON 'reason' [CERTIFY]. */
function readErasure(cursor: TokenCursor, purpose: Slot | null): Statement {
  const { location } = cursor;
  cursor.next();
  cursor.expect('SUBJECT');
  const subject = cursor.literal('s', 'a subject in quotes');
  cursor.expect('REASON');
  const reason = cursor.literal('s', 'a reason in quotes');
  if (cursor.textOf(reason).trim() === '') throw cursor.error('the reason is empty', reason.location);
  const names = cursor.accept('CERTIFY') ? ['CERTIFY'] : [];
  return control('erase-subject', location, purpose, { arguments: [subject, reason], names });
}

/** REGISTER LOOKUP name FROM 'path' KEY (column) FIELDS (column, …) [REFRESH EVERY n MINUTES]. */
function readLookupTable(cursor: TokenCursor, purpose: Slot | null): Statement {
  const { location } = cursor;
  cursor.next();
  cursor.expect('LOOKUP');
  const names = [cursor.name('the name of the lookup table')];
  cursor.expect('FROM');
  const path = cursor.literal('s', 'the path of a CSV file in quotes');
  cursor.expect('KEY');
  cursor.expect('(');
  names.push(cursor.name('a column name'));
  cursor.expect(')');
  cursor.expect('FIELDS');
  cursor.expect('(');
  do names.push(cursor.name('a column name'));
  while (cursor.accept(','));
  cursor.expect(')');
  const options: Option[] = [];
  if (cursor.accept('REFRESH')) {
    cursor.expect('EVERY');
    options.push({ name: 'MINUTES', value: cursor.literal('i', 'a number of minutes') });
    if (!cursor.accept('MINUTE')) cursor.expect('MINUTES');
  }
  return control('register-lookup', location, purpose, { names, arguments: [path], options });
}

/** The query of another statement. AS OF stands on the outermost query, which this one is. */
function readWholeQuery(cursor: TokenCursor): Query {
  const query = cursor.query();
  return { ...query, asOf: cursor.asOf };
}

function literalsOf(
  cursor: TokenCursor,
  list: readonly FunctionArgument[],
  location: Location,
): { slots: Slot[]; options: Option[] } {
  const slots: Slot[] = [];
  const options: Option[] = [];
  for (const { name, value } of list) {
    if (value.kind !== 'literal') throw cursor.error('only literals can be given here', value.location ?? location);
    const slot = { slot: value.slot, location: value.location };
    if (name === null) slots.push(slot);
    else options.push({ name, value: slot });
  }
  return { slots, options };
}

function control(
  what: ControlWhat,
  location: Location,
  purpose: Slot | null,
  parts: Partial<Pick<Control, 'arguments' | 'options' | 'query' | 'names'>>,
): Control {
  return { kind: 'control', what, location, purpose, arguments: [], options: [], query: null, names: [], ...parts };
}
