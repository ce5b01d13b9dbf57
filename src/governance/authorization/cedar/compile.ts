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

export function decideRows(policies: readonly Policy[], type: TypeDefinition, request: CedarRequest): RowDecision {
  return rowDecisionOf(residualsOf(policies, { kind: 'row', type }, request), type);
}

/**
 * The decision while some columns are not known yet: a forbid that reads one does not deny, a permit that reads one allows. Rows
 * denied then stay denied for any values of these columns.
 */
export function decideEarly({ residuals }: RowDecision, type: TypeDefinition, unknown: ReadonlySet<string>): RowDecision {
  const readsUnknownColumn = (left: Expr): boolean =>
    !isCertain(left) &&
    compileCondition({ always: false, permits: [left], forbids: [] }, typesOf(type)).columns.some((name) => unknown.has(name));
  const earlyResiduals = residuals.flatMap((residual): Residual[] => {
    if (!readsUnknownColumn(residual.left)) return [residual];
    return residual.policy.effect === 'forbid' ? [] : [{ ...residual, left: { op: 'value', value: true } }];
  });
  return rowDecisionOf(earlyResiduals, type);
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
  request: Omit<CedarRequest, 'action'>,
): MaskDecision {
  const forbids = policies.filter(({ effect, actions }) => effect === 'forbid' && (actions === null || actions.has('readCell')));
  const columnMasks = new Map<string, CellMask>();
  const maskResiduals: (Residual & { column: string })[] = [];
  if (forbids.length === 0) return { masks: columnMasks, residuals: maskResiduals };
  const keyColumns = new Set(['_pk', 'id', ...(type.primaryKey === null ? [] : [type.primaryKey])]);
  const keyResiduals: Residual[] = [];
  const maskColumn = (column: string, columnResiduals: readonly Residual[]): void => {
    if (columnResiduals.length === 0) return;
    maskResiduals.push(...columnResiduals.map((residual) => ({ ...residual, column })));
    columnMasks.set(column, strictestMaskOf(columnResiduals, type));
  };
  for (const column of new Set([...Object.keys(type.properties), ...keyColumns])) {
    const cellForbids = residualsOf(forbids, { kind: 'cell', type, column }, { ...request, action: 'readCell' });
    if (keyColumns.has(column)) keyResiduals.push(...cellForbids);
    else maskColumn(column, cellForbids);
  }
  for (const column of keyColumns) maskColumn(column, keyResiduals);
  return { masks: columnMasks, residuals: maskResiduals };
}

/** Policies for this action that are not false for every row. */
export function residualsOf(
  policies: readonly Policy[],
  resource: Resource,
  asked: Omit<Question, 'resource'>,
): readonly Residual[] {
  const cedarQuestion: Question = { ...asked, resource };
  const residuals: Residual[] = [];
  for (const policy of policies) {
    if (policy.actions !== null && !policy.actions.has(asked.action)) continue;
    const foldedCondition = fold(policy.condition, cedarQuestion);
    if (isFalseExpr(foldedCondition) || (policy.effect === 'permit' && isErrorExpr(foldedCondition))) continue;
    residuals.push({ policy, left: foldedCondition });
  }
  return residuals;
}

function rowDecisionOf(residuals: readonly Residual[], type: TypeDefinition): RowDecision {
  const withEffect = (effect: Policy['effect']): readonly Residual[] =>
    residuals.filter(({ policy }) => policy.effect === effect);
  const policyIds = (from: readonly Residual[]): readonly string[] => from.map(({ policy }) => policy.id);
  const forbidResiduals = withEffect('forbid');
  const permitResiduals = withEffect('permit');
  const certainForbids = forbidResiduals.filter(({ left }) => isCertain(left));
  if (certainForbids.length > 0) return { rows: 'none', residuals, because: policyIds(certainForbids) };
  if (permitResiduals.length === 0) return { rows: 'none', residuals, because: [] };
  const certainPermits = permitResiduals.filter(({ left }) => isCertain(left));
  if (certainPermits.length > 0 && forbidResiduals.length === 0)
    return { rows: null, residuals, because: policyIds(certainPermits) };
  const rowCondition = compileCondition(
    {
      always: certainPermits.length > 0,
      permits: permitResiduals.map(({ left }) => left),
      forbids: forbidResiduals.map(({ left }) => left),
    },
    typesOf(type),
  );
  return { rows: rowCondition, residuals, because: [] };
}

/** True in every row, or an error in every row. */
function isCertain(left: Expr): boolean {
  return left.op === 'value' || left.op === 'error';
}

function isFalseExpr(left: Expr): boolean {
  return left.op === 'value' && left.value === false;
}

function isErrorExpr(left: Expr): boolean {
  return left.op === 'error' || (left.op === 'value' && typeof left.value !== 'boolean');
}

/** When two masks apply, the one with the higher number holds. */
export const strictness: Readonly<Record<MaskKind, number>> = { redact: 5, null: 4, hash: 3, bucket: 2, last4: 1, year: 1 };

/**
 * One mask a column: the strictest of those that may apply, in every row in which any of them does. Masks of one column
 * under different conditions hide more than each alone would, never less.
 */
function strictestMaskOf(residuals: readonly Residual[], type: TypeDefinition): CellMask {
  const strictestFirst = residuals.toSorted(
    ({ policy: a }, { policy: b }) =>
      strictness[maskKindOf(b)] - strictness[maskKindOf(a)] ||
      (b.mask?.size ?? 0) - (a.mask?.size ?? 0) ||
      compareText(maskKindOf(a), maskKindOf(b)),
  );
  const strictestMask = strictestFirst[0]!.policy.mask;
  const isAlwaysMasked = strictestFirst.some(({ left }) => isCertain(left));
  const maskConditions = strictestFirst.map(({ left }) => left);
  return {
    kind: strictestMask?.kind ?? 'redact',
    ...(strictestMask?.size === undefined ? {} : { size: strictestMask.size }),
    when: isAlwaysMasked
      ? null
      : invertedCondition(compileCondition({ always: true, permits: [], forbids: maskConditions }, typesOf(type))),
    because: strictestFirst.map(({ policy }) => policy.id).join(', '),
  };
}

function maskKindOf(policy: Policy): MaskKind {
  return policy.mask?.kind ?? 'redact';
}

/** 1 where the condition says 0: a mask is where a forbid is. */
function invertedCondition(condition: RowCondition): RowCondition {
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
