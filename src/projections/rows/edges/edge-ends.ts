/** Both ends of every edge of a row, by what its type's graph triggers name. Pure. */
import type { ErrorCode } from '../../../errors.ts';
import type { GraphTrigger, TypeDefinition } from '../../../log/entries/entry.ts';
import { sha256Hex } from '../../../log/bytes/sha256.ts';
import type { Cell, ColumnType } from '../../../log/values/value.ts';
import { keyText } from '../checks/fit-column.ts';
import type { RowCells } from '../cells/row-cells.ts';

/** Ends of one row's triggers, multiplied. */
const edgesPerRow = 1_000;

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
  readonly #type: TypeDefinition;
  readonly #cells: RowCells;
  /** Organisation path of the rows. */
  readonly #path: string | null;

  constructor(type: TypeDefinition, cells: RowCells, path: string | null) {
    this.#type = type;
    this.#cells = cells;
    this.#path = path;
  }

  /** Ends of a row with this key and these cells. */
  endsOf(key: string, cells: number): Ends[] | Refusal {
    const ends: Ends[] = [];
    for (const trigger of this.#type.graphTriggers) {
      const sources = this.#nodes(key, cells, trigger.sourceField);
      const targets = this.#nodes(key, cells, trigger.targetField);
      if (sources === null || targets === null) {
        const field = sources === null ? trigger.sourceField : trigger.targetField;
        return refusal(
          'REL_TYPE_MISMATCH',
          `${JSON.stringify(field)} cannot name a row: an end of an edge must be a text or a list of texts`,
        );
      }
      if (ends.length + sources.length * targets.length > edgesPerRow) {
        return refusal('REL_UNPROCESSABLE', `a row has at most ${edgesPerRow} edges`);
      }
      for (const source of sources) for (const target of targets) ends.push(this.#ends(trigger, key, source, target));
    }
    return ends;
  }

  #ends({ linkType: link }: GraphTrigger, row: string, source: string, target: string): Ends {
    return { link, source, target, key: edgeKey(this.#type.name, row, link, source, target) };
  }

  #nodes(key: string, cells: number, field: string): readonly string[] | null {
    const path = this.#path;
    switch (field) {
      case '_pk':
        return [key];
      case 'id':
        return nodesOf(this.#cells.cell(cells, 'id') ?? key, this.#cells.types.get('id') ?? 'string');
      case 'tenant_id':
        return path === null ? [] : [path.split('/', 1)[0]!];
      case 'namespace_path':
        return path === null ? [] : [path];
      default:
        return nodesOf(this.#cells.cell(cells, field), this.#cells.types.get(field) ?? 'string');
    }
  }
}

/**
 * Nodes that a cell names: a node is a text, and every visible row of the tenant whose `id`, else `_pk`, is that text.
 * None for NULL and the empty text, several for a list; null where a cell names none and says something else.
 */
function nodesOf(cell: Cell, type: ColumnType): readonly string[] | null {
  if (cell === null) return [];
  if (type === 'vector') return null;
  if (type !== 'json') return distinctTexts([keyText(cell)]);
  const value: unknown = JSON.parse(String(cell));
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  const texts: string[] = [];
  for (const item of items) {
    if (item === null) continue;
    if (typeof item === 'object' || (typeof item === 'number' && !Number.isSafeInteger(item))) return null;
    texts.push(String(item as string | number | boolean));
  }
  return distinctTexts(texts);
}

function distinctTexts(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].filter((text) => text !== '');
}
