/** Why a caller sees what they see of a type: from the very decision that a read goes by, so that the two can't differ. */
import type { MaskKind } from '../../../log/entries/entry.ts';
import type { MaskDecision, Residual, RowDecision } from './compile.ts';
import { type Expr, textOf } from './syntax.ts';

export interface Explanation {
  readonly decision: 'allow' | 'deny' | 'by row';
  /** Policies that decide, or that may: with what is left of them, in Cedar's words. */
  readonly determining: readonly { readonly id: string; readonly effect: 'permit' | 'forbid'; readonly left: string }[];
  /** The condition on rows; null where all rows, or none, are visible. */
  readonly residual: string | null;
  readonly masks: readonly {
    readonly column: string;
    readonly kind: MaskKind;
    /** null: in every row. */
    readonly when: string | null;
    readonly because: string;
  }[];
}

export function explain(
  { rows, residuals, because }: RowDecision,
  { masks, residuals: cellResiduals }: MaskDecision,
): Explanation {
  const isDecided = rows === null || rows === 'none';
  const determiningResiduals = residuals.filter(({ policy }) => !isDecided || because.includes(policy.id));
  return {
    decision: rows === null ? 'allow' : rows === 'none' ? 'deny' : 'by row',
    determining: determiningResiduals.map(({ policy, left }) => ({ id: policy.id, effect: policy.effect, left: textOf(left) })),
    residual: isDecided ? null : residualText(residuals),
    masks: [...masks].map(([column, { kind, when, because: maskPolicies }]) => ({
      column,
      kind,
      when: when === null ? null : anyResidualText(cellResiduals.filter((cell) => cell.column === column)),
      because: maskPolicies,
    })),
  };
}

/** `(permit || permit) && !(forbid || forbid)`. */
function residualText(residuals: readonly Residual[]): string {
  const permits = residuals.filter(({ policy }) => policy.effect === 'permit');
  const forbids = residuals.filter(({ policy }) => policy.effect === 'forbid');
  const isAlwaysTrue = ({ left }: { left: Expr }): boolean => left.op === 'value' && left.value === true;
  const residualParts = [
    ...(permits.some(isAlwaysTrue) ? [] : [`(${anyResidualText(permits)})`]),
    ...(forbids.length === 0 ? [] : [`!(${anyResidualText(forbids)})`]),
  ];
  return residualParts.join(' && ');
}

function anyResidualText(residuals: readonly Residual[]): string {
  return [...new Set(residuals.map(({ left }) => textOf(left)))].join(' || ');
}
