/** Mistakes in the SQL lexer, the parser and LIKE. */
import type { Mutant } from '../mutant.ts';

const lexer = 'src/planner/languages/sql-lexer.ts';
const cursor = 'src/planner/languages/token-cursor.ts';
const expressions = 'src/planner/languages/sql-expressions.ts';
const query = 'src/planner/languages/sql-query.ts';
const parser = 'src/planner/languages/sql-parser.ts';
const like = 'src/planner/expressions/like.ts';

const byLexer = ['test/planner/languages/sql-lexer.test.ts'];
const byParser = ['test/planner/languages/sql-parser.test.ts', 'test/planner/languages/sql-statements.test.ts'];
const byAnswers = ['test/planner/queries.test.ts', 'test/planner/sql-rules.test.ts'];
const byDuckDb = ['test/planner/sql-differential.test.ts'];
const bySegments = ['test/planner/sql-segments.test.ts'];
const byLike = ['test/planner/expressions/like.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'sql: the smallest i64 is refused',
    file: lexer,
    find: 'if (value > FOREVER || value < -FOREVER - 1n) fail(',
    replace: 'if (value > FOREVER || value < -FOREVER) fail(',
    killedBy: byLexer,
  },
  {
    name: 'sql: long integers go through a double',
    file: lexer,
    find: 'const value = BigInt(written);',
    replace: 'const value = BigInt(Number(written));',
    killedBy: byLexer,
  },
  {
    name: 'sql: a doubled quote is lost',
    file: lexer,
    find: 'value += mark;',
    replace: '',
    killedBy: byLexer,
  },
  {
    name: 'sql: literals of all types share a template',
    file: lexer,
    find: "type === 'null' ? 'NULL' : '?' + type",
    replace: "'?'",
    killedBy: byLexer,
  },
  {
    name: 'sql: text of a graph pattern reaches the template',
    file: lexer,
    find: 'code === doubleQuote && isPattern()',
    replace: 'code === doubleQuote && false',
    killedBy: byLexer,
  },
  {
    name: 'sql: the NULL of IS NULL takes a slot',
    file: lexer,
    find: "word.key === 'NULL' && !ofOperator",
    replace: "word.key === 'NULL'",
    killedBy: byLexer,
  },
  {
    name: 'sql: half a surrogate pair passes',
    file: lexer,
    find: 'const lone = loneSurrogate.exec(value);',
    replace: 'const lone = null;',
    killedBy: byLexer,
  },
  {
    name: 'sql: a subtraction becomes two operands',
    file: lexer,
    find: '!afterOperand && (isDigit(next)',
    replace: '(isDigit(next)',
    killedBy: byLexer,
  },
  {
    name: 'sql: places count lines from zero',
    file: lexer,
    find: 'line: low + 1,',
    replace: 'line: low,',
    killedBy: byLexer,
  },
  {
    name: 'sql: chains of operators have no end',
    file: cursor,
    find: 'const linksMax = 1000;',
    replace: 'const linksMax = Infinity;',
    killedBy: byParser,
  },
  {
    name: 'sql: brackets nest without end',
    file: cursor,
    find: 'const nestingMax = 200;',
    replace: 'const nestingMax = Infinity;',
    killedBy: byParser,
  },
  {
    name: 'sql: 41 subqueries nest',
    file: cursor,
    find: 'this.#subqueries === subqueriesMax',
    replace: 'this.#subqueries > subqueriesMax',
    killedBy: byParser,
  },
  {
    name: 'sql: conditions nest as deep as they are many',
    file: expressions,
    find: 'const middle = (from + to) >> 1;',
    replace: 'const middle = from + 1;',
    killedBy: byParser,
  },
  {
    name: 'sql: SOUNDEX is compared with <',
    file: expressions,
    find: "if (key !== '=' && key !== '!=') {",
    replace: 'if (false) {',
    killedBy: byParser,
  },
  {
    name: 'sql: AND binds as loosely as OR',
    file: expressions,
    find: "const read = op === 'or' ? readConjunction : readNegation;",
    replace: 'const read = readNegation;',
    killedBy: byParser,
  },
  {
    name: 'sql: an aggregate may hold another',
    file: expressions,
    find: "cursor.aggregates = 'within'; const operand",
    replace: 'const operand',
    killedBy: byParser,
  },
  {
    name: 'sql: AFTER combines with ORDER BY',
    file: query,
    find: 'orderBy.length > 0 || ranked',
    replace: 'ranked',
    killedBy: byParser,
  },
  {
    name: 'sql: a second AS OF replaces the first',
    file: query,
    find: 'if (cursor.asOf) throw',
    replace: 'if (false) throw',
    killedBy: byParser,
  },
  {
    name: 'sql: INTERSECT binds no tighter than UNION',
    file: query,
    find: 'setOperation(cursor, op, left, readIntersections(cursor), place)',
    replace: 'setOperation(cursor, op, left, readArm(cursor), place)',
    killedBy: byParser,
  },
  {
    name: 'sql: a table function joins',
    file: query,
    in: 'readSource',
    find: "if (side.kind === 'function') throw functionAlone(cursor, side.place);",
    replace: '',
    killedBy: byParser,
  },
  {
    name: 'sql: AS OF of a subquery is forgotten',
    file: parser,
    find: 'query: { ...inner, asOf: cursor.asOf }',
    replace: 'query: inner',
    killedBy: byParser,
  },
  {
    name: 'like: a failed start forgets what it matched',
    file: like,
    find: 'byte !== codes[matched]) matched = borders[matched - 1]!;',
    replace: 'byte !== codes[matched]) matched = 0;',
    killedBy: byLike,
  },
  {
    name: 'like: _ takes one byte',
    file: like,
    find: 'while (at < to && isContinuation(bytes[at]!)) at++;',
    replace: '',
    killedBy: byLike,
  },
  {
    name: 'like: the last segment may overlap the first',
    file: like,
    find: 'bytes, start, to);\n    if (end < 0)',
    replace: 'bytes, from, to);\n    if (end < 0)',
    killedBy: byLike,
  },
  {
    name: 'answers: BETWEEN excludes its lower bound',
    file: 'src/planner/expressions/kernel-code.ts',
    find: "this.#compare('>=', operand, this.#operand(bound.low))",
    replace: "this.#compare('>', operand, this.#operand(bound.low))",
    killedBy: byAnswers,
  },
  {
    name: 'answers: NOT IN and NOT BETWEEN forget their NOT',
    file: 'src/planner/expressions/bind-expression.ts',
    find: "return negated ? { kind: 'not', operand, type: 'boolean' } : operand;",
    replace: 'return operand;',
    killedBy: byAnswers,
  },
  {
    name: 'answers: a long NOT IN list forgets its NULL',
    file: 'src/planner/expressions/kernel-code.ts',
    find: '(!${found} & !${set}.hasNull)',
    replace: '!${found}',
    killedBy: byDuckDb,
  },
  {
    name: 'answers: the first rows of an order lose ties with the last of them',
    file: 'src/planner/operators/row-order.ts',
    find: 'stays = descending ? value >= (worst as number) : value <= (worst as number);',
    replace: 'stays = descending ? value > (worst as number) : value < (worst as number);',
    killedBy: bySegments,
  },
  {
    name: 'answers: HAVING over an aggregate is tested on rows',
    file: 'src/planner/passes/push-down-filters.ts',
    find: 'within(each, 0, node.groups)',
    replace: 'within(each, 0, node.groups + 1)',
    killedBy: byDuckDb,
  },
  {
    name: 'answers: a literal on the left skips the wrong segments',
    file: 'src/planner/passes/choose-access-paths.ts',
    find: "'<': '>', '<=': '>=',",
    replace: "'<': '<', '<=': '<=',",
    killedBy: bySegments,
  },
  {
    name: 'answers: equal literals of one statement are shared by the next',
    file: 'src/planner/plans.ts',
    find: 'return known?.plan.guards.every((guard) => guardHolds(guard, parameters)) === true ? known : null;',
    replace: 'return known ?? null;',
    killedBy: byAnswers,
  },
  {
    name: 'answers: a version is still believed at its system_to',
    file: 'src/projections/rows/visibility.ts',
    find: 'if (visibility.openOnly && segment.closingOf(row) < visibility.bound) return false;',
    replace: 'if (visibility.openOnly && segment.closingOf(row) < visibility.bound - 1) return false;',
    killedBy: byAnswers,
  },
  {
    name: 'shapes: a doubled quote ends a text',
    file: 'src/planner/languages/sql-shapes.ts',
    find: 'if (end < 0 || text.charCodeAt(end + 1) === quote) return -1;',
    replace: 'if (end < 0) return -1;',
    killedBy: ['test/planner/languages/sql-shapes.test.ts'],
  },
  {
    name: 'shapes: whatever follows the last piece',
    file: 'src/planner/languages/sql-shapes.ts',
    find: 'return at === text.length ? literals : null;',
    replace: 'return literals;',
    killedBy: ['test/planner/languages/sql-shapes.test.ts'],
  },
  {
    name: 'json: beside a text it is compared as written',
    file: 'src/planner/expressions/bind-call.ts',
    in: 'jsonText',
    find: "if (bound.type !== 'json') return bound;",
    replace: 'return bound;',
    killedBy: bySegments,
  },
  {
    name: 'json: a subquery behind IN yields it as written',
    file: 'src/planner/binding/subselects.ts',
    find: "other.type === 'string' && values.type === 'json'",
    replace: "other.type === 'json' && values.type === 'json'",
    killedBy: bySegments,
  },
  {
    name: 'json: an operand beside NULL is compared as written',
    file: 'src/planner/expressions/bind-expression.ts',
    find: "bounds.some(({ type }) => type === 'string') ? jsonText(operand) : operand",
    replace: 'operand',
    killedBy: bySegments,
  },
  {
    name: 'json: quotes that are too many are not told of',
    file: 'src/planner/expressions/caveats.ts',
    find: 'if (!isQuoted(literals[slot])) return [];',
    replace: 'return [];',
    killedBy: bySegments,
  },
];
