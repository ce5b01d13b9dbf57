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

export function explain({ rows, residuals, because }: RowDecision, { masks, residuals: cells }: MaskDecision): Explanation {
  const decided = rows === null || rows === 'none';
  const determining = residuals.filter(({ policy }) => !decided || because.includes(policy.id));
  return {
    decision: rows === null ? 'allow' : rows === 'none' ? 'deny' : 'by row',
    determining: determining.map(({ policy, left }) => ({ id: policy.id, effect: policy.effect, left: textOf(left) })),
    residual: decided ? null : residualText(residuals),
    masks: [...masks].map(([column, { kind, when, because: of }]) => ({
      column,
      kind,
      when: when === null ? null : anyOf(cells.filter((cell) => cell.column === column)),
      because: of,
    })),
  };
}

/** `(permit || permit) && !(forbid || forbid)`. */
function residualText(residuals: readonly Residual[]): string {
  const permits = residuals.filter(({ policy }) => policy.effect === 'permit');
  const forbids = residuals.filter(({ policy }) => policy.effect === 'forbid');
  const isAlways = ({ left }: { left: Expr }): boolean => left.op === 'value' && left.value === true;
  const parts = [
    ...(permits.some(isAlways) ? [] : [`(${anyOf(permits)})`]),
    ...(forbids.length === 0 ? [] : [`!(${anyOf(forbids)})`]),
  ];
  return parts.join(' && ');
}

function anyOf(residuals: readonly Residual[]): string {
  return [...new Set(residuals.map(({ left }) => textOf(left)))].join(' || ');
}
