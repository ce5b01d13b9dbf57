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
  const sqlCursor = new TokenCursor(lexed, { readQuery, readOrder }, dialect);
  const { location } = sqlCursor;
  const statementTree = readStatement(sqlCursor);
  if (sqlCursor.repeats && repeatsTooMuch(statementTree))
    throw sqlCursor.error('comparisons of rows, or IS DISTINCT FROM, are nested too deeply within each other', location);
  return { template: lexed.template, statement: statementTree, parameters: lexed.parameters };
}

/** A rank expression by itself, as it stands behind COMPUTE: its slots number its own parameters. */
export function parseRankExpression(text: string): {
  readonly expression: Expression;
  readonly template: string;
  readonly parameters: readonly Literal[];
} {
  const lexedRanking = lexStatement(text);
  const sqlCursor = new TokenCursor(lexedRanking, { readQuery, readOrder }, 'spec');
  sqlCursor.aggregates = 'functions';
  const rankExpression = readExpression(sqlCursor);
  expectStatementEnd(sqlCursor);
  return { expression: rankExpression, template: lexedRanking.template, parameters: lexedRanking.parameters };
}

function readStatement(sqlCursor: TokenCursor): Statement {
  if (!sqlCursor.accept('EXPLAIN')) return readPurposedStatement(sqlCursor);
  if (sqlCursor.dialect === 'wide' && sqlCursor.key() === '(' && explainOptions.has(sqlCursor.key(1)))
    return readExplainOptions(sqlCursor);
  const explainMode = sqlCursor.accept('ANALYZE') ? 'analyze' : sqlCursor.accept('POLICY') ? 'policy' : 'plan';
  return { kind: 'explain', mode: explainMode, statement: readPurposedStatement(sqlCursor) };
}

/** Options of Postgres without effect here: they add figures that these plans never have. */
const explainOptions: ReadonlySet<string> = new Set(
  'ANALYZE VERBOSE COSTS SETTINGS BUFFERS WAL TIMING SUMMARY FORMAT'.split(' '),
);

function readExplainOptions(sqlCursor: TokenCursor): Statement {
  let explainMode: 'analyze' | 'plan' = 'plan';
  let isAsJson = false;
  sqlCursor.expect('(');
  do {
    const explainOption = sqlCursor.key();
    if (!explainOptions.has(explainOption)) throw sqlCursor.expectedError('an option of EXPLAIN');
    sqlCursor.next();
    const optionValue = sqlCursor.key() === ',' || sqlCursor.key() === ')' ? 'TRUE' : sqlCursor.name('a value').toUpperCase();
    if (explainOption === 'FORMAT') {
      if (optionValue !== 'TEXT' && optionValue !== 'JSON') throw sqlCursor.notImplemented(`EXPLAIN (FORMAT ${optionValue})`);
      isAsJson = optionValue === 'JSON';
    } else if (!['TRUE', 'ON', 'FALSE', 'OFF'].includes(optionValue)) throw sqlCursor.error('an option is on or off');
    else if (explainOption === 'ANALYZE') explainMode = optionValue === 'TRUE' || optionValue === 'ON' ? 'analyze' : 'plan';
  } while (sqlCursor.accept(','));
  sqlCursor.expect(')');
  return {
    kind: 'explain',
    mode: explainMode,
    ...(isAsJson && { asJson: true as const }),
    statement: readPurposedStatement(sqlCursor),
  };
}

function readPurposedStatement(sqlCursor: TokenCursor): Statement {
  const purposeSlot = sqlCursor.accept('PURPOSE') ? sqlCursor.literal('s', 'a purpose in quotes') : null;
  const statementKey = sqlCursor.key();
  if (
    statementKey === 'SELECT' ||
    statementKey === 'WITH' ||
    statementKey === '(' ||
    (statementKey === 'VALUES' && sqlCursor.key(1) === '(')
  )
    return endQueryStatement(sqlCursor, purposeSlot, readQuery(sqlCursor));
  const keywordSource = readKeywordForm(sqlCursor);
  if (keywordSource) return endQueryStatement(sqlCursor, purposeSlot, readQueryOver(sqlCursor, keywordSource));
  if (startsPattern(sqlCursor)) {
    const readStatementPattern = readPattern(sqlCursor);
    if ('verb' in readStatementPattern) {
      if (readStatementPattern.pattern !== null) expectStatementEnd(sqlCursor);
      return { kind: 'write', verb: readStatementPattern.verb, location: readStatementPattern.location };
    }
    return endQueryStatement(sqlCursor, purposeSlot, patternQuery(readStatementPattern, sqlCursor.isGraph));
  }
  if (sqlCursor.accept('CALL')) return readProcedure(sqlCursor, (query) => endQueryStatement(sqlCursor, purposeSlot, query));
  const controlStatement = readControl(sqlCursor, purposeSlot);
  if (controlStatement) {
    if (controlStatement.kind === 'control') expectStatementEnd(sqlCursor);
    return controlStatement;
  }
  if (sqlCursor.token.kind === 'word' && sqlCursor.key(1) === '(') {
    throw sqlCursor.error(`no statement and no table function is called '${sqlCursor.token.text}'`);
  }
  throw sqlCursor.expectedError('a statement');
}

function endQueryStatement(sqlCursor: TokenCursor, purpose: Slot | null, innerQuery: Query): Statement {
  const { location } = sqlCursor;
  const rowLock = sqlCursor.locks() ? readLock(sqlCursor, innerQuery) : null;
  const withProvenance = sqlCursor.acceptPair('WITH', 'PROVENANCE');
  expectStatementEnd(sqlCursor);
  const { body } = innerQuery;
  if (body.kind === 'select' && body.from.kind === 'function' && controlFunction(body.from.name)) {
    const isBareCall = !body.where && !sqlCursor.asOf && !innerQuery.limit && innerQuery.orderBy.length === 0 && !withProvenance;
    if (!isBareCall) throw sqlCursor.error(`${body.from.name} takes no further clauses`, location);
    return readFunctionControl(sqlCursor, purpose, body.from);
  }
  return {
    kind: 'query',
    purpose,
    query: { ...innerQuery, asOf: sqlCursor.asOf, ...(rowLock && { lock: rowLock }) },
    withProvenance,
  };
}

/** FOR UPDATE | NO KEY UPDATE | SHARE | KEY SHARE [OF t, …] [NOWAIT], once or several times. */
function readLock(sqlCursor: TokenCursor, { body, with: commonTables }: Query): RowLock {
  const { location } = sqlCursor;
  if (
    body.kind !== 'select' ||
    body.distinct ||
    body.groupBy.length > 0 ||
    body.groupingSets ||
    body.having !== null ||
    commonTables.length > 0
  )
    throw sqlCursor.notImplemented('FOR UPDATE of what is not read row by row from tables');
  const lockedTables: string[] = [];
  let locksAll = false;
  while (sqlCursor.locks()) {
    sqlCursor.next();
    if (sqlCursor.accept('NO')) sqlCursor.expect('KEY');
    else sqlCursor.accept('KEY');
    if (!sqlCursor.accept('SHARE')) sqlCursor.expect('UPDATE');
    if (sqlCursor.accept('OF')) {
      do lockedTables.push(sqlCursor.name('the name of a table'));
      while (sqlCursor.accept(','));
    } else locksAll = true;
    if (sqlCursor.key() === 'SKIP') throw sqlCursor.notImplemented('SKIP LOCKED');
    sqlCursor.accept('NOWAIT');
  }
  return { tables: locksAll ? [] : lockedTables, location };
}

const clauseWords: ReadonlySet<string> = new Set(
  'AS WHERE GROUP HAVING RANK COMPUTE ORDER LIMIT AFTER FACETS WITH UNION INTERSECT EXCEPT JOIN PURPOSE'.split(' '),
);

function expectStatementEnd(sqlCursor: TokenCursor): void {
  const hasSemicolon = sqlCursor.accept(';');
  if (sqlCursor.token.kind === 'end') return;
  if (hasSemicolon) throw sqlCursor.error('one statement at a time');
  if (!clauseWords.has(sqlCursor.key())) throw sqlCursor.expectedError('the end of the statement');
  throw sqlCursor.error(
    `${sqlCursor.key()} cannot stand here: the order is FROM, AS OF, WHERE, GROUP BY, HAVING, RANK BY, COMPUTE, ORDER BY, ` +
      'LIMIT [AFTER], FACETS, WITH PROVENANCE',
  );
}

/** Table functions written without SELECT * FROM. */
function readKeywordForm(sqlCursor: TokenCursor): Source | null {
  const { location } = sqlCursor;
  if (sqlCursor.token.kind !== 'word') return null;
  if (sqlCursor.acceptPair('HYBRID_SEARCH', 'FROM')) {
    const typeLocation = sqlCursor.location;
    const typeName = sqlCursor.name('a type');
    sqlCursor.expect('QUERY');
    const searchText = sqlCursor.literal('s', 'the text to search, in quotes');
    const searchArguments: FunctionArgument[] = [
      { name: null, value: { kind: 'column', table: null, name: typeName, location: typeLocation } },
      { name: 'QUERY', value: { kind: 'literal', ...searchText } },
    ];
    if (sqlCursor.accept('FUSION'))
      searchArguments.push({ name: 'FUSION', value: { kind: 'literal', ...sqlCursor.literal('s', "'rrf' or 'linear'") } });
    const rerankFlag: Expression = { kind: 'column', table: null, name: 'true', location: sqlCursor.location };
    if (sqlCursor.accept('RERANK')) searchArguments.push({ name: 'RERANK', value: rerankFlag });
    return { kind: 'function', name: 'HYBRID_SEARCH', arguments: searchArguments, alias: null, location };
  }
  if (sqlCursor.acceptPair('SIMILAR', 'TO')) {
    const typeLocation = sqlCursor.location;
    const typeName = sqlCursor.name('a type');
    const similarType = { name: null, value: { kind: 'column', table: null, name: typeName, location: typeLocation } } as const;
    return { kind: 'function', name: 'SIMILAR', arguments: [similarType], alias: null, location };
  }
  const functionKey = sqlCursor.key();
  if (!isTableFunction(functionKey) || sqlCursor.key(1) !== '(') return null;
  sqlCursor.next();
  return { kind: 'function', name: functionKey, arguments: readArguments(sqlCursor), alias: null, location };
}
