/**
 * Rules that can match a row of a change set at all. A condition bounds single columns (`category = 'a' AND amount > 9000`), and the planner
 * tells storage of these bounds: here they are held against the cells of the new rows, for all rules in one pass, so that a rule is asked
 * only where some row is within all of its bounds. They are necessary conditions: the rule itself still decides.
 */
import { compareText, type Cell } from '../../../log/values/value.ts';
import type { ScanRequest, ZonePredicate } from '../../../projections/access-paths.ts';
import type { ChangeSet } from '../watch/change-set.ts';

/** Each holds of every row that the rule matches. */
type Bounds = readonly ZonePredicate[];

/** A bound that rules are found by: their row has one of these values in this column. */
interface Anchor {
  readonly column: string;
  readonly values: readonly Value[];
}

type Value = ZonePredicate['value'];

interface BoundedRule<T> {
  readonly rule: T;
  readonly ordinal: number;
  readonly bounds: Bounds;
}

/** Rules with anchors in one column, of values of one type. */
interface Anchored<T> {
  readonly column: string;
  readonly type: string;
  readonly byValue: Map<Value, BoundedRule<T>[]>;
}

/** Rows between two turns of others. */
const rowsAtOnce = 64;

export class RuleBounds<T> {
  readonly #anchored: Anchored<T>[] = [];
  readonly #others: BoundedRule<T>[] = [];

  /** `scans`: what the rule asks storage for. */
  constructor(rules: readonly { readonly rule: T; readonly scans: readonly ScanRequest[] }[]) {
    for (const [ordinal, { rule, scans }] of rules.entries()) {
      const [scan, ...more] = scans;
      // A condition reads its type once; of one that reads otherwise nothing is known.
      const bounds = scan === undefined || more.length > 0 ? [] : (scan.zones ?? []).filter(canDecide);
      const keys = more.length === 0 && scan?.keys?.every((key) => key.isWellFormed()) ? scan.keys : null;
      const bounded: BoundedRule<T> = { rule, ordinal, bounds };
      const anchor = keys === null ? anchorIn(bounds) : { column: '_pk', values: keys };
      if (anchor === null) this.#others.push(bounded);
      else for (const value of anchor.values) this.#anchor(anchor.column, value, bounded);
    }
  }

  #anchor(column: string, value: Value, bounded: BoundedRule<T>): void {
    const type = typeof value;
    let anchored = this.#anchored.find((each) => each.column === column && each.type === type);
    if (anchored === undefined) this.#anchored.push((anchored = { column, type, byValue: new Map() }));
    const { byValue } = anchored;
    const rules = byValue.get(value);
    if (rules === undefined) byValue.set(value, [bounded]);
    else rules.push(bounded);
  }

  /** In the order in which they were given; in steps between which others may have their turn. */
  *findPossible(changes: Pick<ChangeSet, 'newCells'>): Generator<undefined, readonly T[], void> {
    const cells = new Map<string, readonly Cell[]>();
    const cellsOf = (column: string): readonly Cell[] => {
      let columnCells = cells.get(column);
      if (columnCells === undefined) cells.set(column, (columnCells = changes.newCells(column)));
      return columnCells;
    };
    const isWithin = (bounds: Bounds, row: number): boolean =>
      bounds.every((bound) => mayHold(bound, cellsOf(bound.column)[row]!));
    const possible = new Set<BoundedRule<T>>();
    for (const { column, type, byValue } of this.#anchored) {
      for (const [row, cell] of cellsOf(column).entries()) {
        if (row % rowsAtOnce === rowsAtOnce - 1) yield;
        if (cell === null) continue;
        // Cells of another type are left to the rules.
        const rules = typeof cell === type ? (byValue.get(cell as Value) ?? []) : [...byValue.values()].flat();
        for (const each of rules) if (!possible.has(each) && isWithin(each.bounds, row)) possible.add(each);
      }
    }
    for (const each of this.#others) {
      const [first] = each.bounds;
      const rows = first === undefined ? [] : cellsOf(first.column);
      if (first === undefined || rows.some((_, row) => isWithin(each.bounds, row))) possible.add(each);
      yield;
    }
    return [...possible].sort((a, b) => a.ordinal - b.ordinal).map(({ rule }) => rule);
  }
}

function anchorIn(bounds: Bounds): Anchor | null {
  const equal = bounds.find(({ op }) => op === '=');
  return equal === undefined ? null : { column: equal.column, values: [equal.value] };
}

/** Ends of versions come later; what is no text, or no number, is left to the rule. */
function canDecide({ column, value }: ZonePredicate): boolean {
  if (column === 'system_to') return false;
  return typeof value === 'string' ? value.isWellFormed() : typeof value !== 'number' || !Number.isNaN(value);
}

/** False only where the bound surely does not hold of the cell. */
function mayHold({ op, value }: ZonePredicate, cell: Cell): boolean {
  if (cell === null) return false;
  if (typeof cell !== typeof value) return true;
  if (op === '=') return cell === value;
  // Where NaN is in the order of numbers is the dialect's affair, and a whole number beyond these was rounded on its way here.
  if (typeof cell === 'number' && !(Math.abs(cell) <= Number.MAX_SAFE_INTEGER)) return true;
  const order = typeof cell === 'string' ? compareText(cell, value as string) : cell < value ? -1 : cell > value ? 1 : 0;
  return order === 0 ? op !== '<' && op !== '>' : order < 0 ? op === '<' || op === '<=' : op === '>' || op === '>=';
}
