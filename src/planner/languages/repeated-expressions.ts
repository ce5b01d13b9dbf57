/**
 * Some expressions stand in several places of a tree though a statement says them once: the operands of IS DISTINCT FROM, the items of
 * rows that are compared. Where one stands within another, and that within a third, later passes would go through two to the power of
 * their depth of them.
 */

/** Nodes of a tree with all that is repeated, beside two for each that the statement says. */
const repeatedNodesMax = 20_000;

/** Whether the tree of a statement is much larger than the statement. */
export function repeatsTooMuch(statementTree: object): boolean {
  const nodeSizes = new Map<object, number>();
  const statementSize = treeSize(statementTree, nodeSizes);
  return statementSize > repeatedNodesMax + 2 * nodeSizes.size;
}

function treeSize(treeNode: object, nodeSizes: Map<object, number>): number {
  const knownSize = nodeSizes.get(treeNode);
  if (knownSize !== undefined) return knownSize;
  let nodeSize = 1;
  for (const [name, value] of Object.entries(treeNode) as [string, unknown][])
    if (typeof value === 'object' && value !== null && name !== 'location') nodeSize += treeSize(value, nodeSizes);
  nodeSizes.set(treeNode, nodeSize);
  return nodeSize;
}
