/**
 * One text to one statement: the prefixes EXPLAIN and PURPOSE, then a query, a control statement or a write, which is recognised
 * and refused where it may not run. Source: specification, "SQL dialect".
 *
 * The parser never looks at the value of a query's literal: a cached tree is not parsed again, and a malformed timestamp or
 * interval must give the same error the second time. The code that computes with a literal checks it.
 *
 * Errors are REL_PARSE, their detail starts with `line:column: ` and never shows a literal. Parsing any text ends in time linear
 * in its length and never exhausts the stack.
 */
import { isTableFunction } from '../table-functions/all.ts';
import type {
  Dialect,
  Expression,
  FunctionArgument,
  Literal,
  ParsedStatement,
  Query,
  RowLock,
  Slot,
  Source,
  Statement,
} from '../syntax/statement.ts';
import { controlFunction, readControl, readFunctionControl } from './sql-control.ts';
import { readArguments, readExpression } from './sql-expressions.ts';
import { repeatsTooMuch } from './repeated-expressions.ts';
import { lexStatement, type LexedStatement } from './sql-lexer.ts';
import { readPattern, startsPattern } from './graph-pattern.ts';
import { patternQuery } from './pattern-query.ts';
import { readProcedure } from './sql-procedure.ts';
import { readOrder, readQuery, readQueryOver } from './sql-query.ts';
import { TokenCursor } from './token-cursor.ts';

export function parseStatement(text: string, dialect: Dialect = 'spec'): ParsedStatement {
  return parseLexed(lexStatement(text), dialect);
}

/** For callers that have lexed already, to look the template up among the plans. */
export function parseLexed(lexed: LexedStatement, dialect: Dialect = 'spec'): ParsedStatement {
  const cursor = new TokenCursor(lexed, { readQuery, readOrder }, dialect);
  const { location } = cursor;
  const statement = readStatement(cursor);
  if (cursor.repeats && repeatsTooMuch(statement))
    throw cursor.error('comparisons of rows, or IS DISTINCT FROM, are nested too deeply within each other', location);
  return { template: lexed.template, statement, parameters: lexed.parameters };
}

/** A rank expression by itself, as it stands behind COMPUTE: its slots number its own parameters. */
export function parseRankExpression(text: string): {
  readonly expression: Expression;
  readonly template: string;
  readonly parameters: readonly Literal[];
} {
  const lexed = lexStatement(text);
  const cursor = new TokenCursor(lexed, { readQuery, readOrder }, 'spec');
  cursor.aggregates = 'functions';
  const expression = readExpression(cursor);
  expectEnd(cursor);
  return { expression, template: lexed.template, parameters: lexed.parameters };
}

function readStatement(cursor: TokenCursor): Statement {
  if (!cursor.accept('EXPLAIN')) return readPurposed(cursor);
  if (cursor.dialect === 'wide' && cursor.key() === '(' && explainOptions.has(cursor.key(1))) return readExplainOptions(cursor);
  const mode = cursor.accept('ANALYZE') ? 'analyze' : cursor.accept('POLICY') ? 'policy' : 'plan';
  return { kind: 'explain', mode, statement: readPurposed(cursor) };
}

/** Options of Postgres without effect here: they add figures that these plans never have. */
const explainOptions: ReadonlySet<string> = new Set(
  'ANALYZE VERBOSE COSTS SETTINGS BUFFERS WAL TIMING SUMMARY FORMAT'.split(' '),
);

function readExplainOptions(cursor: TokenCursor): Statement {
  let mode: 'analyze' | 'plan' = 'plan';
  let asJson = false;
  cursor.expect('(');
  do {
    const option = cursor.key();
    if (!explainOptions.has(option)) throw cursor.expectedError('an option of EXPLAIN');
    cursor.next();
    const value = cursor.key() === ',' || cursor.key() === ')' ? 'TRUE' : cursor.name('a value').toUpperCase();
    if (option === 'FORMAT') {
      if (value !== 'TEXT' && value !== 'JSON') throw cursor.notImplemented(`EXPLAIN (FORMAT ${value})`);
      asJson = value === 'JSON';
    } else if (!['TRUE', 'ON', 'FALSE', 'OFF'].includes(value)) throw cursor.error('an option is on or off');
    else if (option === 'ANALYZE') mode = value === 'TRUE' || value === 'ON' ? 'analyze' : 'plan';
  } while (cursor.accept(','));
  cursor.expect(')');
  return { kind: 'explain', mode, ...(asJson && { asJson: true as const }), statement: readPurposed(cursor) };
}

function readPurposed(cursor: TokenCursor): Statement {
  const purpose = cursor.accept('PURPOSE') ? cursor.literal('s', 'a purpose in quotes') : null;
  const key = cursor.key();
  if (key === 'SELECT' || key === 'WITH' || key === '(' || (key === 'VALUES' && cursor.key(1) === '('))
    return endQuery(cursor, purpose, readQuery(cursor));
  const source = readKeywordForm(cursor);
  if (source) return endQuery(cursor, purpose, readQueryOver(cursor, source));
  if (startsPattern(cursor)) {
    const read = readPattern(cursor);
    if ('verb' in read) {
      if (read.pattern !== null) expectEnd(cursor);
      return { kind: 'write', verb: read.verb, location: read.location };
    }
    return endQuery(cursor, purpose, patternQuery(read, cursor.isGraph));
  }
  if (cursor.accept('CALL')) return readProcedure(cursor, (query) => endQuery(cursor, purpose, query));
  const control = readControl(cursor, purpose);
  if (control) {
    if (control.kind === 'control') expectEnd(cursor);
    return control;
  }
  if (cursor.token.kind === 'word' && cursor.key(1) === '(') {
    throw cursor.error(`no statement and no table function is called '${cursor.token.text}'`);
  }
  throw cursor.expectedError('a statement');
}

function endQuery(cursor: TokenCursor, purpose: Slot | null, inner: Query): Statement {
  const { location } = cursor;
  const lock = cursor.locks() ? readLock(cursor, inner) : null;
  const withProvenance = cursor.acceptPair('WITH', 'PROVENANCE');
  expectEnd(cursor);
  const { body } = inner;
  if (body.kind === 'select' && body.from.kind === 'function' && controlFunction(body.from.name)) {
    const bare = !body.where && !cursor.asOf && !inner.limit && inner.orderBy.length === 0 && !withProvenance;
    if (!bare) throw cursor.error(`${body.from.name} takes no further clauses`, location);
    return readFunctionControl(cursor, purpose, body.from);
  }
  return { kind: 'query', purpose, query: { ...inner, asOf: cursor.asOf, ...(lock && { lock }) }, withProvenance };
}

/** FOR UPDATE | NO KEY UPDATE | SHARE | KEY SHARE [OF t, …] [NOWAIT], once or several times. */
function readLock(cursor: TokenCursor, { body, with: common }: Query): RowLock {
  const { location } = cursor;
  if (
    body.kind !== 'select' ||
    body.distinct ||
    body.groupBy.length > 0 ||
    body.groupingSets ||
    body.having !== null ||
    common.length > 0
  )
    throw cursor.notImplemented('FOR UPDATE of what is not read row by row from tables');
  const tables: string[] = [];
  let isAll = false;
  while (cursor.locks()) {
    cursor.next();
    if (cursor.accept('NO')) cursor.expect('KEY');
    else cursor.accept('KEY');
    if (!cursor.accept('SHARE')) cursor.expect('UPDATE');
    if (cursor.accept('OF')) {
      do tables.push(cursor.name('the name of a table'));
      while (cursor.accept(','));
    } else isAll = true;
    if (cursor.key() === 'SKIP') throw cursor.notImplemented('SKIP LOCKED');
    cursor.accept('NOWAIT');
  }
  return { tables: isAll ? [] : tables, location };
}

const clauseWords: ReadonlySet<string> = new Set(
  'AS WHERE GROUP HAVING RANK COMPUTE ORDER LIMIT AFTER FACETS WITH UNION INTERSECT EXCEPT JOIN PURPOSE'.split(' '),
);

function expectEnd(cursor: TokenCursor): void {
  const ended = cursor.accept(';');
  if (cursor.token.kind === 'end') return;
  if (ended) throw cursor.error('one statement at a time');
  if (!clauseWords.has(cursor.key())) throw cursor.expectedError('the end of the statement');
  throw cursor.error(
    `${cursor.key()} cannot stand here: the order is FROM, AS OF, WHERE, GROUP BY, HAVING, RANK BY, COMPUTE, ORDER BY, ` +
      'LIMIT [AFTER], FACETS, WITH PROVENANCE',
  );
}

/** Table functions written without SELECT * FROM. */
function readKeywordForm(cursor: TokenCursor): Source | null {
  const { location } = cursor;
  if (cursor.token.kind !== 'word') return null;
  if (cursor.acceptPair('HYBRID_SEARCH', 'FROM')) {
    const type = cursor.location;
    const name = cursor.name('a type');
    cursor.expect('QUERY');
    const text = cursor.literal('s', 'the text to search, in quotes');
    const list: FunctionArgument[] = [
      { name: null, value: { kind: 'column', table: null, name, location: type } },
      { name: 'QUERY', value: { kind: 'literal', ...text } },
    ];
    if (cursor.accept('FUSION'))
      list.push({ name: 'FUSION', value: { kind: 'literal', ...cursor.literal('s', "'rrf' or 'linear'") } });
    const rerank: Expression = { kind: 'column', table: null, name: 'true', location: cursor.location };
    if (cursor.accept('RERANK')) list.push({ name: 'RERANK', value: rerank });
    return { kind: 'function', name: 'HYBRID_SEARCH', arguments: list, alias: null, location };
  }
  if (cursor.acceptPair('SIMILAR', 'TO')) {
    const type = cursor.location;
    const name = cursor.name('a type');
    const of = { name: null, value: { kind: 'column', table: null, name, location: type } } as const;
    return { kind: 'function', name: 'SIMILAR', arguments: [of], alias: null, location };
  }
  const key = cursor.key();
  if (!isTableFunction(key) || cursor.key(1) !== '(') return null;
  cursor.next();
  return { kind: 'function', name: key, arguments: readArguments(cursor), alias: null, location };
}
