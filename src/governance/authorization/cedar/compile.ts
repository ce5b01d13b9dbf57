/**
 * Decisions of a set of policies about rows and cells of one type, for one caller and action. Default deny; any forbid that is
 * true or errs denies; else any permit that is true allows. Cells need no permit of their own: they are read with their row.
 */
import type { MaskKind, TypeDefinition } from '../../../log/entries/entry.ts';
import { compareText, systemColumns, type ColumnType } from '../../../log/values/value.ts';
import type { CellMask, RowCondition } from '../grant.ts';
import { compileCondition } from './conditions.ts';
import type { Question, Resource, Situation } from './entities.ts';
import { fold } from './fold.ts';
import type { CedarAction, Policy } from './policies.ts';
import type { Expr } from './syntax.ts';
import type { Instant } from './values.ts';

/** An invocation without its resource. */
export interface CedarRequest {
  readonly situation: Situation;
  readonly action: CedarAction;
  readonly now: Instant;
}

/** A policy that may matter, and its residual. */
export interface Residual {
  readonly policy: Policy;
  /** A value that is a boolean, an error, or about cells. */
  readonly left: Expr;
}

export interface RowDecision {
  /** null: every row; 'none': no row. */
  readonly rows: RowCondition | null | 'none';
  /** Residuals that may be true for some row. */
  readonly residuals: readonly Residual[];
  /** The ids that alone decide, where rows are all or none: forbids, else permits. Empty: nothing permits it. */
  readonly because: readonly string[];
}

export function decideRows(policies: readonly Policy[], type: TypeDefinition, asked: CedarRequest): RowDecision {
  return rowsOf(residualsOf(policies, { kind: 'row', type }, asked), type);
}

/**
 * The decision while some columns are not known yet: a forbid that reads one does not deny, a permit that reads one allows. Rows
 * denied then stay denied for any values of these columns.
 */
export function decideEarly({ residuals }: RowDecision, type: TypeDefinition, unknown: ReadonlySet<string>): RowDecision {
  const looks = (left: Expr): boolean =>
    !isCertain(left) &&
    compileCondition({ always: false, permits: [left], forbids: [] }, typesOf(type)).columns.some((name) => unknown.has(name));
  const early = residuals.flatMap((residual): Residual[] => {
    if (!looks(residual.left)) return [residual];
    return residual.policy.effect === 'forbid' ? [] : [{ ...residual, left: { op: 'value', value: true } }];
  });
  return rowsOf(early, type);
}

export interface MaskDecision {
  readonly masks: ReadonlyMap<string, CellMask>;
  readonly residuals: readonly (Residual & { readonly column: string })[];
}

/**
 * Columns of which cells are hidden. Of the store's own columns those that repeat the key are: hiding the property that is
 * the key hides them, and the other way round. When a row was written, and whose it is, is no cell of it.
 */
export function decideMasks(
  policies: readonly Policy[],
  type: TypeDefinition,
  asked: Omit<CedarRequest, 'action'>,
): MaskDecision {
  const forbids = policies.filter(({ effect, actions }) => effect === 'forbid' && (actions === null || actions.has('readCell')));
  const masks = new Map<string, CellMask>();
  const residuals: (Residual & { column: string })[] = [];
  if (forbids.length === 0) return { masks, residuals };
  const keys = new Set(['_pk', 'id', ...(type.primaryKey === null ? [] : [type.primaryKey])]);
  const ofKey: Residual[] = [];
  const hide = (column: string, found: readonly Residual[]): void => {
    if (found.length === 0) return;
    residuals.push(...found.map((residual) => ({ ...residual, column })));
    masks.set(column, strictestOf(found, type));
  };
  for (const column of new Set([...Object.keys(type.properties), ...keys])) {
    const cellForbids = residualsOf(forbids, { kind: 'cell', type, column }, { ...asked, action: 'readCell' });
    if (keys.has(column)) ofKey.push(...cellForbids);
    else hide(column, cellForbids);
  }
  for (const column of keys) hide(column, ofKey);
  return { masks, residuals };
}

/** Policies for this action that are not false for every row. */
export function residualsOf(
  policies: readonly Policy[],
  resource: Resource,
  asked: Omit<Question, 'resource'>,
): readonly Residual[] {
  const question: Question = { ...asked, resource };
  const residuals: Residual[] = [];
  for (const policy of policies) {
    if (policy.actions !== null && !policy.actions.has(asked.action)) continue;
    const left = fold(policy.condition, question);
    if (isFalse(left) || (policy.effect === 'permit' && isError(left))) continue;
    residuals.push({ policy, left });
  }
  return residuals;
}

function rowsOf(residuals: readonly Residual[], type: TypeDefinition): RowDecision {
  const withEffect = (effect: Policy['effect']): readonly Residual[] =>
    residuals.filter(({ policy }) => policy.effect === effect);
  const ids = (from: readonly Residual[]): readonly string[] => from.map(({ policy }) => policy.id);
  const forbids = withEffect('forbid');
  const permits = withEffect('permit');
  const denying = forbids.filter(({ left }) => isCertain(left));
  if (denying.length > 0) return { rows: 'none', residuals, because: ids(denying) };
  if (permits.length === 0) return { rows: 'none', residuals, because: [] };
  const allowing = permits.filter(({ left }) => isCertain(left));
  if (allowing.length > 0 && forbids.length === 0) return { rows: null, residuals, because: ids(allowing) };
  const rows = compileCondition(
    {
      always: allowing.length > 0,
      permits: permits.map(({ left }) => left),
      forbids: forbids.map(({ left }) => left),
    },
    typesOf(type),
  );
  return { rows, residuals, because: [] };
}

/** True in every row, or an error in every row. */
function isCertain(left: Expr): boolean {
  return left.op === 'value' || left.op === 'error';
}

function isFalse(left: Expr): boolean {
  return left.op === 'value' && left.value === false;
}

function isError(left: Expr): boolean {
  return left.op === 'error' || (left.op === 'value' && typeof left.value !== 'boolean');
}

/** When two masks apply, the one with the higher number holds. */
export const strictness: Readonly<Record<MaskKind, number>> = { redact: 5, null: 4, hash: 3, bucket: 2, last4: 1, year: 1 };

/**
 * One mask a column: the strictest of those that may apply, in every row in which any of them does. Masks of one column
 * under different conditions hide more than each alone would, never less.
 */
function strictestOf(residuals: readonly Residual[], type: TypeDefinition): CellMask {
  const ordered = residuals.toSorted(
    ({ policy: a }, { policy: b }) =>
      strictness[kindOf(b)] - strictness[kindOf(a)] ||
      (b.mask?.size ?? 0) - (a.mask?.size ?? 0) ||
      compareText(kindOf(a), kindOf(b)),
  );
  const strictest = ordered[0]!.policy.mask;
  const always = ordered.some(({ left }) => isCertain(left));
  const forbids = ordered.map(({ left }) => left);
  return {
    kind: strictest?.kind ?? 'redact',
    ...(strictest?.size === undefined ? {} : { size: strictest.size }),
    when: always ? null : invert(compileCondition({ always: true, permits: [], forbids }, typesOf(type))),
    because: ordered.map(({ policy }) => policy.id).join(', '),
  };
}

function kindOf(policy: Policy): MaskKind {
  return policy.mask?.kind ?? 'redact';
}

/** 1 where the condition says 0: a mask is where a forbid is. */
function invert(condition: RowCondition): RowCondition {
  return {
    columns: condition.columns,
    key: `not ${condition.key}`,
    test(columns, selection, first, count, out) {
      condition.test(columns, selection, first, count, out);
      for (let k = 0; k < count; k++) out[k] = 1 - out[k]!;
    },
  };
}

export function typesOf(type: TypeDefinition): (column: string) => ColumnType {
  return (column) =>
    Object.hasOwn(type.properties, column)
      ? type.properties[column]!.type
      : (systemColumns[column as keyof typeof systemColumns] satisfies ColumnType);
}
