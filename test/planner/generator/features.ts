/** Which parts of the dialect a tree uses: a part that no statement of a run used was not tested. */
import { calls } from './calls.ts';
import type { Features } from './statements.ts';
import { nodesOf, outputsOf, type BodyNode, type Expr, type QueryNode, type SourceNode } from './tree.ts';

type Node = QueryNode | BodyNode | SourceNode | Expr | { readonly kind: 'common'; readonly recursive: boolean };

export function featuresOf(query: QueryNode): Set<string> {
  const seen = new Set<string>();
  for (const node of nodesOf(query)) for (const feature of ofNode(node as Node)) seen.add(feature);
  if (query.orderBy.length > 1) seen.add('order by several columns');
  if (query.orderBy.some(({ descending }) => descending)) seen.add('order by … desc');
  if (query.orderBy.some(({ nullsFirst }) => nullsFirst)) seen.add('nulls first');
  if (query.orderBy.some(({ byPlace }) => byPlace)) seen.add('order by place');
  return seen;
}

function* ofNode(node: Node): Generator<string> {
  switch (node.kind) {
    case 'query':
      if (node.orderBy.length > 0) yield 'order by';
      if (node.limit !== null) yield 'limit';
      if (node.asOf) yield `as of ${node.asOf.axis}`;
      return;
    case 'select':
      if (node.distinct) yield 'distinct';
      if (node.items.length === 0) yield '*';
      if (node.groupBy.length > 0) yield 'group by';
      if (node.groupBy.length > 1) yield 'group by several keys';
      if (node.byPlace === true && node.groupBy.some((key) => node.items.some(({ expression }) => expression === key)))
        yield 'group by place';
      if (node.having) yield node.groupBy.length > 0 ? 'having' : 'having without group by';
      return;
    case 'set-operation':
      yield node.op;
      if (node.right.kind === 'set-operation') yield 'arm in brackets';
      return;
    case 'join': {
      yield `${node.type} join`;
      const names = tablesOf(node);
      if (new Set(names).size < names.length) yield 'self-join';
      if (names.length >= 3) yield `join of ${names.length > 3 ? '4' : '3'}`;
      if (node.using) yield node.using.length === 0 ? 'cross join' : 'using';
      if (node.type !== 'inner' && [...nodesOf(node.on)].some(({ kind }) => kind === 'exists'))
        yield 'query in on of an outer join';
      yield hasEquality(node.on) ? 'join on equality' : 'join on any condition';
      return;
    }
    case 'subquery':
      yield 'subquery in from';
      return;
    case 'common':
      yield node.recursive ? 'recursive common table' : 'common table';
      return;
    case 'table':
      return;
    case 'aggregate':
      yield node.operand === null ? 'count(*)' : node.function;
      if (node.distinct) yield 'distinct aggregate';
      if (node.filter) yield 'aggregate of some rows';
      return;
    case 'arithmetic':
    case 'compare':
      yield node.op;
      return;
    case 'logic':
      yield node.op;
      return;
    case 'quantified':
      yield node.all ? 'ALL' : 'ANY';
      return;
    case 'call':
      yield `call ${node.name}`;
      return;
    case 'window':
      yield `window ${node.function}`;
      return;
    case 'exists':
    case 'in-query':
    case 'between':
    case 'like':
    case 'distinct-from':
    case 'is-null':
      yield node.negated ? `not ${node.kind}` : node.kind;
      return;
    case 'in-list':
      yield node.negated ? 'not in-list' : 'in-list';
      if (node.items.some((item) => item.kind === 'literal' && item.value === null)) yield 'in-list with NULL';
      return;
    case 'case':
      yield node.operand ? 'case of a value' : 'case of conditions';
      return;
    case 'scalar-query': {
      yield 'scalar-query';
      if (!outputsOf(node.query.body).some(({ expression }) => expression.kind === 'aggregate')) yield 'scalar-query of any cell';
      if (node.query.limit === 0) yield 'scalar-query of limit 0';
      return;
    }
    case 'literal':
      if (node.value === null) yield 'NULL';
      return;
    case 'column':
      return;
    default:
      yield node.kind;
  }
}

/** What a run of enough statements must have used. */
export function expectedFeatures(features: Features): string[] {
  const always = [
    'order by',
    'order by several columns',
    'order by … desc',
    'limit',
    'distinct',
    'group by',
    'group by several keys',
    'having',
    'having without group by',
    'count(*)',
    'count',
    'sum',
    'avg',
    'min',
    'max',
    'distinct aggregate',
    '+',
    '-',
    '*',
    '/',
    '%',
    '=',
    '!=',
    '<',
    '<=',
    '>',
    '>=',
    'and',
    'or',
    'not',
    'negate',
    'between',
    'not between',
    'like',
    'not like',
    'is-null',
    'not is-null',
    'in-list',
    'not in-list',
    'in-list with NULL',
    'case of a value',
    'case of conditions',
    'NULL',
  ];
  const joins = ['inner', 'left', 'right', 'full'].map((type) => `${type} join`);
  return [
    ...always,
    ...(features.joins ? [...joins, 'self-join', 'join of 3', 'join of 4', 'join on equality', 'join on any condition'] : []),
    ...(features.subqueries ? ['subquery in from'] : []),
    ...(features.inQueries ? ['in-query', 'not in-query'] : []),
    ...(features.setOperations ? ['union', 'union all', 'intersect', 'except', 'arm in brackets'] : []),
    ...(features.common ? ['common table'] : []),
    ...(features.recursive ? ['recursive common table'] : []),
    ...(features.asOf ? ['as of current', 'as of system', 'as of valid'] : []),
    ...(features.storedColumns ? ['*'] : []),
    ...(features.wide ? wide : []),
  ];
}

const wide: readonly string[] = [
  ...Object.keys(calls).map((name) => `call ${name}`),
  ...['sum', 'count', 'min', 'max', 'rank', 'dense_rank'].map((name) => `window ${name}`),
  'distinct-from',
  'not distinct-from',
  'row-compare',
  'row-in',
  'aggregate of some rows',
  'exists',
  'not exists',
  'scalar-query',
  'scalar-query of any cell',
  'scalar-query of limit 0',
  'ANY',
  'ALL',
  'using',
  'cross join',
  'query in on of an outer join',
  'values',
  'nulls first',
  'order by place',
  'group by place',
];

function tablesOf(source: SourceNode): string[] {
  return source.kind === 'join'
    ? [...tablesOf(source.left), ...tablesOf(source.right)]
    : [source.kind === 'table' ? source.name : source.alias];
}

function hasEquality(on: Expr): boolean {
  return on.kind === 'compare'
    ? on.op === '=' && on.left.kind === 'column' && on.right.kind === 'column'
    : on.kind === 'logic' && on.op === 'and' && (hasEquality(on.left) || hasEquality(on.right));
}
