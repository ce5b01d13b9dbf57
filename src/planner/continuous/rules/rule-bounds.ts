/**
 * Rules that can match a row of a change set at all. A condition bounds single columns (`category = 'a' AND amount > 9000`), and the planner
 * tells storage of these bounds: here they are held against the cells of the new rows, for all rules in one pass, so that a rule is asked
 * only where some row is within all of its bounds. They are necessary conditions: the rule itself still decides.
 */
import { compareText, type Cell } from '../../../log/values/value.ts';
import type { ScanRequest, ZonePredicate } from '../../../projections/access-paths.ts';
import type { ChangeSet } from '../watch/change-set.ts';

/** Each holds of every row that the rule matches. */
type RuleZones = readonly ZonePredicate[];

/** A bound that rules are found by: their row has one of these values in this column. */
interface BoundsAnchor {
  readonly column: string;
  readonly values: readonly BoundValue[];
}

type BoundValue = ZonePredicate['value'];

interface BoundedRule<T> {
  readonly rule: T;
  readonly ordinal: number;
  readonly bounds: RuleZones;
}

/** Rules with anchors in one column, of values of one type. */
interface AnchoredRules<T> {
  readonly column: string;
  readonly type: string;
  readonly byValue: Map<BoundValue, BoundedRule<T>[]>;
}

/** Rows between two turns of others. */
const changedRowsAtOnce = 64;

export class RuleBounds<T> {
  readonly #anchoredRules: AnchoredRules<T>[] = [];
  readonly #unanchoredRules: BoundedRule<T>[] = [];

  /** `scans`: what the rule asks storage for. */
  constructor(rules: readonly { readonly rule: T; readonly scans: readonly ScanRequest[] }[]) {
    for (const [ordinal, { rule, scans }] of rules.entries()) {
      const [ruleScan, ...otherScans] = scans;
      // A condition reads its type once; of one that reads otherwise nothing is known.
      const ruleZones = ruleScan === undefined || otherScans.length > 0 ? [] : (ruleScan.zones ?? []).filter(canBoundDecide);
      const boundKeys = otherScans.length === 0 && ruleScan?.keys?.every((key) => key.isWellFormed()) ? ruleScan.keys : null;
      const boundedRule: BoundedRule<T> = { rule, ordinal, bounds: ruleZones };
      const zoneAnchor = boundKeys === null ? equalityAnchor(ruleZones) : { column: '_pk', values: boundKeys };
      if (zoneAnchor === null) this.#unanchoredRules.push(boundedRule);
      else for (const value of zoneAnchor.values) this.#anchorRule(zoneAnchor.column, value, boundedRule);
    }
  }

  #anchorRule(column: string, anchorValue: BoundValue, boundedRule: BoundedRule<T>): void {
    const type = typeof anchorValue;
    let columnAnchor = this.#anchoredRules.find((each) => each.column === column && each.type === type);
    if (columnAnchor === undefined) this.#anchoredRules.push((columnAnchor = { column, type, byValue: new Map() }));
    const { byValue } = columnAnchor;
    const anchoredRules = byValue.get(anchorValue);
    if (anchoredRules === undefined) byValue.set(anchorValue, [boundedRule]);
    else anchoredRules.push(boundedRule);
  }

  /** In the order in which they were given; in steps between which others may have their turn. */
  *findPossible(changes: Pick<ChangeSet, 'newCells'>): Generator<undefined, readonly T[], void> {
    const changedCells = new Map<string, readonly Cell[]>();
    const cellsOf = (column: string): readonly Cell[] => {
      let columnCells = changedCells.get(column);
      if (columnCells === undefined) changedCells.set(column, (columnCells = changes.newCells(column)));
      return columnCells;
    };
    const isWithin = (bounds: RuleZones, row: number): boolean =>
      bounds.every((bound) => mayBoundHold(bound, cellsOf(bound.column)[row]!));
    const possibleRules = new Set<BoundedRule<T>>();
    for (const { column, type, byValue } of this.#anchoredRules) {
      for (const [row, cell] of cellsOf(column).entries()) {
        if (row % changedRowsAtOnce === changedRowsAtOnce - 1) yield;
        if (cell === null) continue;
        // Cells of another type are left to the rules.
        const rules = typeof cell === type ? (byValue.get(cell as BoundValue) ?? []) : [...byValue.values()].flat();
        for (const boundedRule of rules)
          if (!possibleRules.has(boundedRule) && isWithin(boundedRule.bounds, row)) possibleRules.add(boundedRule);
      }
    }
    for (const each of this.#unanchoredRules) {
      const [firstBound] = each.bounds;
      const boundedCells = firstBound === undefined ? [] : cellsOf(firstBound.column);
      if (firstBound === undefined || boundedCells.some((_, row) => isWithin(each.bounds, row))) possibleRules.add(each);
      yield;
    }
    return [...possibleRules].sort((a, b) => a.ordinal - b.ordinal).map(({ rule }) => rule);
  }
}

function equalityAnchor(ruleZones: RuleZones): BoundsAnchor | null {
  const equalityBound = ruleZones.find(({ op }) => op === '=');
  return equalityBound === undefined ? null : { column: equalityBound.column, values: [equalityBound.value] };
}

/** Ends of versions come later; what is no text, or no number, is left to the rule. */
function canBoundDecide({ column, value }: ZonePredicate): boolean {
  if (column === 'system_to') return false;
  return typeof value === 'string' ? value.isWellFormed() : typeof value !== 'number' || !Number.isNaN(value);
}

/** False only where the bound surely does not hold of the cell. */
function mayBoundHold({ op, value }: ZonePredicate, changedCell: Cell): boolean {
  if (changedCell === null) return false;
  if (typeof changedCell !== typeof value) return true;
  if (op === '=') return changedCell === value;
  // Where NaN is in the order of numbers is the dialect's affair, and a whole number beyond these was rounded on its way here.
  if (typeof changedCell === 'number' && !(Math.abs(changedCell) <= Number.MAX_SAFE_INTEGER)) return true;
  const boundOrder =
    typeof changedCell === 'string'
      ? compareText(changedCell, value as string)
      : changedCell < value
        ? -1
        : changedCell > value
          ? 1
          : 0;
  return boundOrder === 0 ? op !== '<' && op !== '>' : boundOrder < 0 ? op === '<' || op === '<=' : op === '>' || op === '>=';
}
