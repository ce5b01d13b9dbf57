/**
 * Some expressions stand in several places of a tree though a statement says them once: the operands of IS DISTINCT FROM, the items of
 * rows that are compared. Where one stands within another, and that within a third, later passes would go through two to the power of
 * their depth of them.
 */

/** Nodes of a tree with all that is repeated, beside two for each that the statement says. */
const repeatedMax = 20_000;

/** Whether the tree of a statement is much larger than the statement. */
export function repeatsTooMuch(tree: object): boolean {
  const sizes = new Map<object, number>();
  const size = sizeOf(tree, sizes);
  return size > repeatedMax + 2 * sizes.size;
}

function sizeOf(node: object, sizes: Map<object, number>): number {
  const known = sizes.get(node);
  if (known !== undefined) return known;
  let size = 1;
  for (const [name, value] of Object.entries(node) as [string, unknown][])
    if (typeof value === 'object' && value !== null && name !== 'location') size += sizeOf(value, sizes);
  sizes.set(node, size);
  return size;
}
