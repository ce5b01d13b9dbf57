/** Both ends of every edge of a row, by what its type's graph triggers name. Pure. */
import type { ErrorCode } from '../../../errors.ts';
import type { GraphTrigger, TypeDefinition } from '../../../log/entries/entry.ts';
import { sha256Hex } from '../../../log/bytes/sha256.ts';
import type { Cell, ColumnType } from '../../../log/values/value.ts';
import { keyText } from '../checks/fit-column.ts';
import type { RowCells } from '../cells/row-cells.ts';

/** Ends of one row's triggers, multiplied. */
const edgesPerRowMax = 1_000;

/** Why a row is refused. */
export interface Refusal {
  readonly code: ErrorCode;
  readonly detail: string;
  /** The property that is missing. */
  readonly column?: string;
}

export function refusal(code: ErrorCode, detail: string): Refusal {
  return { code, detail };
}

/** Both ends of an edge, and in which type it is. */
export interface Ends {
  readonly link: string;
  /** Key of the edge. */
  readonly key: string;
  readonly source: string;
  readonly target: string;
}

/** The key of a row's edge in its link type. */
export function edgeKey(type: string, row: string, link: string, source: string, target: string): string {
  return sha256Hex(JSON.stringify([type, row, link, source, target]));
}

export class EdgeEnds {
  readonly #edgeSourceType: TypeDefinition;
  readonly #rowCells: RowCells;
  /** Organisation path of the rows. */
  readonly #edgePath: string | null;

  constructor(type: TypeDefinition, rowCells: RowCells, path: string | null) {
    this.#edgeSourceType = type;
    this.#rowCells = rowCells;
    this.#edgePath = path;
  }

  /** Ends of a row with this key and these cells. */
  endsOf(key: string, cells: number): Ends[] | Refusal {
    const edgeEnds: Ends[] = [];
    for (const graphTrigger of this.#edgeSourceType.graphTriggers) {
      const sourceNodes = this.#endNodes(key, cells, graphTrigger.sourceField);
      const targetNodes = this.#endNodes(key, cells, graphTrigger.targetField);
      if (sourceNodes === null || targetNodes === null) {
        const triggerField = sourceNodes === null ? graphTrigger.sourceField : graphTrigger.targetField;
        return refusal(
          'REL_TYPE_MISMATCH',
          `${JSON.stringify(triggerField)} cannot name a row: an end of an edge must be a text or a list of texts`,
        );
      }
      if (edgeEnds.length + sourceNodes.length * targetNodes.length > edgesPerRowMax) {
        return refusal('REL_UNPROCESSABLE', `a row has at most ${edgesPerRowMax} edges`);
      }
      for (const sourceNode of sourceNodes)
        for (const targetNode of targetNodes) edgeEnds.push(this.#edgeEndsFrom(graphTrigger, key, sourceNode, targetNode));
    }
    return edgeEnds;
  }

  #edgeEndsFrom({ linkType: link }: GraphTrigger, row: string, source: string, target: string): Ends {
    return { link, source, target, key: edgeKey(this.#edgeSourceType.name, row, link, source, target) };
  }

  #endNodes(key: string, cells: number, triggerField: string): readonly string[] | null {
    const path = this.#edgePath;
    switch (triggerField) {
      case '_pk':
        return [key];
      case 'id':
        return endNodesOf(this.#rowCells.cell(cells, 'id') ?? key, this.#rowCells.types.get('id') ?? 'string');
      case 'tenant_id':
        return path === null ? [] : [path.split('/', 1)[0]!];
      case 'namespace_path':
        return path === null ? [] : [path];
      default:
        return endNodesOf(this.#rowCells.cell(cells, triggerField), this.#rowCells.types.get(triggerField) ?? 'string');
    }
  }
}

/**
 * Nodes that a cell names: a node is a text, and every visible row of the tenant whose `id`, else `_pk`, is that text.
 * None for NULL and the empty text, several for a list; null where a cell names none and says something else.
 */
function endNodesOf(endCell: Cell, type: ColumnType): readonly string[] | null {
  if (endCell === null) return [];
  if (type === 'vector') return null;
  if (type !== 'json') return distinctNodes([keyText(endCell)]);
  const parsedNodes: unknown = JSON.parse(String(endCell));
  const nodeItems: readonly unknown[] = Array.isArray(parsedNodes) ? parsedNodes : [parsedNodes];
  const nodeTexts: string[] = [];
  for (const nodeItem of nodeItems) {
    if (nodeItem === null) continue;
    if (typeof nodeItem === 'object' || (typeof nodeItem === 'number' && !Number.isSafeInteger(nodeItem))) return null;
    nodeTexts.push(String(nodeItem as string | number | boolean));
  }
  return distinctNodes(nodeTexts);
}

function distinctNodes(nodeTexts: readonly string[]): readonly string[] {
  return [...new Set(nodeTexts)].filter((nodeText) => nodeText !== '');
}
