/** A failing tree made small: parts left out, nodes replaced by their own parts, for as long as it goes on failing. */
import { nullLiteral } from './expressions.ts';
import { type Expr, isNode, type TreeNode } from './tree.ts';

/** `fails` must say whether a tree still shows the same failure; trees that make no sense do not. */
export async function shrunk<T extends TreeNode>(tree: T, fails: (smaller: T) => Promise<boolean>, triesMax = 600): Promise<T> {
  let smallest = tree;
  let tries = 0;
  for (let progress = true; progress && tries < triesMax; ) {
    progress = false;
    for (const candidate of smaller(smallest)) {
      if (++tries > triesMax) break;
      if (!(await fails(candidate as T))) continue;
      smallest = candidate as T;
      progress = true;
      break;
    }
  }
  return smallest;
}

/** One change each, the big ones first: those near the root. */
function* smaller(node: TreeNode): Generator<TreeNode> {
  for (const part of partsLike(node)) yield part;
  for (const [name, value] of Object.entries(node) as [string, unknown][]) {
    if (Array.isArray(value) && value.length > leastOf(node, name)) {
      for (let i = 0; i < value.length; i++) yield { ...node, [name]: value.toSpliced(i, 1) } as TreeNode;
    }
    if (value !== null && optional.has(`${node.kind}.${name}`)) yield { ...node, [name]: null } as TreeNode;
    if (value === true && name !== 'value' && name !== 'recursive') yield { ...node, [name]: false } as TreeNode;
  }
  if ('type' in node && 'size' in node && node.kind !== 'literal') {
    const { type } = node as Expr;
    if (type === 'boolean') yield { ...nullLiteral(type), value: true } as TreeNode;
    else yield { kind: 'literal', type, ...plain[type] } as TreeNode;
  }
  for (const [name, value] of Object.entries(node) as [string, unknown][]) {
    if (Array.isArray(value)) {
      for (const [i, each] of (value as unknown[]).entries()) {
        if (isNode(each)) for (const part of smaller(each)) yield { ...node, [name]: value.with(i, part) } as TreeNode;
      }
    } else if (isNode(value)) {
      for (const part of smaller(value)) yield { ...node, [name]: part } as TreeNode;
    }
  }
}

const plain: Readonly<Record<string, object>> = {
  integer: { value: 1n, size: 1, grain: 0 },
  number: { value: 0.5, size: 1, grain: 1 },
  string: { value: 'a', size: Number.POSITIVE_INFINITY, grain: 0 },
  timestamp: { value: 0n, size: Number.POSITIVE_INFINITY, grain: 0 },
};

const optional = new Set(['select.where', 'select.having', 'query.limit', 'query.asOf', 'case.otherwise', 'aggregate.filter']);

/** Lists that must not become empty. */
function leastOf(node: TreeNode, name: string): number {
  return (node.kind === 'select' && name === 'groupBy') || node.kind === 'query' ? 0 : 1;
}

/** The nearest parts of a node that could stand in its place. */
function* partsLike(node: TreeNode): Generator<TreeNode> {
  const sort = sortOf(node);
  if (sort === null) return;
  for (const value of Object.values(node) as unknown[]) {
    for (const each of Array.isArray(value) ? (value as unknown[]) : [value]) if (isNode(each)) yield* nearest(each, sort, node);
  }
}

function* nearest(node: TreeNode, sort: string, of: TreeNode): Generator<TreeNode> {
  if (sortOf(node) === sort) {
    yield node.kind === 'query' ? ({ ...node, asOf: (of as { asOf?: unknown }).asOf } as TreeNode) : node;
    return;
  }
  for (const value of Object.values(node) as unknown[]) {
    for (const each of Array.isArray(value) ? (value as unknown[]) : [value]) if (isNode(each)) yield* nearest(each, sort, of);
  }
}

function sortOf(node: TreeNode): string | null {
  switch (node.kind) {
    case 'query':
      return 'query';
    case 'select':
    case 'set-operation':
      return 'body';
    case 'table':
    case 'subquery':
    case 'join':
      return 'source';
    case 'item':
    case 'branch':
    case 'order':
    case 'as-of':
    case 'common':
      return null;
    default:
      return (node as Expr).type;
  }
}
