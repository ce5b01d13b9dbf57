/** Rows by their keys, without a statement: straight from the governed snapshot; those of a few keys within one turn. */
import { ServiceError } from '../../errors.ts';
import type { GovernedSnapshot, Invocation } from '../../governance/gate-contract.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { shownColumn, type TimeBounds } from '../../projections/access-paths.ts';
import { readableColumns } from '../binding/source-binder.ts';
import { fewRows } from './row-copies.ts';
import type { Answer, KeyLookUp, OutputBatch, OutputColumn } from '../planner-contract.ts';
import type { DefaultTime } from '../syntax/statement.ts';

export type BoundsAt = (time: DefaultTime, now: bigint) => TimeBounds;

/** A hundredth of the cost of a query. */
export const unitsOfKey = 0.01;

/** Keys that are looked up in one turn. */
const keysPerTurn = 1_024;

export function lookUp(invocation: Invocation, request: KeyLookUp, boundsOf: BoundsAt): Answer {
  const { read: readKeys, answer: keyedAnswer } = prepareLookUp(invocation, request, boundsOf);
  readKeys(request.keys);
  return keyedAnswer();
}

/** `yieldTurn` throws where the lookup has taken too long, or its caller is gone. */
export async function lookUpInTurns(
  invocation: Invocation,
  request: KeyLookUp,
  { boundsOf, yieldTurn }: { readonly boundsOf: BoundsAt; readonly yieldTurn: () => Promise<void> },
): Promise<Answer> {
  const { keys } = request;
  if (keys.length <= keysPerTurn) return lookUp(invocation, request, boundsOf);
  const { read: readKeys, answer: keyedAnswer } = prepareLookUp(invocation, request, boundsOf);
  for (let keysStart = 0; keysStart < keys.length; keysStart += keysPerTurn) {
    if (keysStart > 0) await yieldTurn();
    readKeys(keys.slice(keysStart, keysStart + keysPerTurn));
  }
  return keyedAnswer();
}

interface PreparedLookUp {
  read(keys: readonly string[]): void;
  answer(): Answer;
}

function prepareLookUp(invocation: Invocation, request: KeyLookUp, boundsOf: BoundsAt): PreparedLookUp {
  const { type, keys, time = 'current' } = request;
  invocation.describe({ objectType: type, literals: keys });
  const snapshot = invocation.snapshot();
  const listedColumns = listedColumnsOf(snapshot, request);
  const { columns, template } = listedColumns;
  const costUnits = keys.length * unitsOfKey;
  invocation.describe({ template, costUnits });
  const isOvertaken = snapshot.erasing([type]);
  const maskedColumns = snapshot.masksOf(type);
  const shownColumns = maskedColumns.size === 0 ? listedColumns.names : shownNamesOf(listedColumns, maskedColumns);
  const keyedBounds = boundsOf(time, snapshot.instant);
  const keyedBatches: OutputBatch[] = [];
  let rowCount = 0;
  const readKeys = (someKeys: readonly string[]): void => {
    const keyedBlocks = snapshot.rows.scan({ type, columns: shownColumns, time: keyedBounds, keys: someKeys });
    for (let keyedStep = keyedBlocks.next(); keyedStep.done !== true; keyedStep = keyedBlocks.next()) {
      if (keyedStep.value.count === 0) continue;
      keyedBatches.push(fewRows(keyedStep.value, null, columns));
      rowCount += keyedStep.value.count;
    }
  };
  const answer = (): Answer => {
    invocation.describe({ rowCount });
    return {
      columns,
      batches: keyedBatches,
      rowCount,
      costUnits,
      estimatedTotalHits: rowCount,
      asOfSystem: snapshot.instant,
      cursor: null,
      nextCursor: null,
      provenance: null,
      facets: null,
      plan: null,
      actualRows: null,
      processingTimeMs: 0,
      overtaken: isOvertaken,
    };
  };
  return { read: readKeys, answer };
}

/** Values derived from a list of columns, cached by that list. */
interface ListedColumns {
  readonly columns: readonly OutputColumn[];
  readonly names: readonly string[];
  readonly template: string;
  /** Names under the masks that were met last. */
  shown: { readonly masked: ReadonlyMap<string, unknown>; readonly names: readonly string[] } | null;
}

/** By definition and list: lookups by key repeat the same ones. */
const listedByDefinition = new WeakMap<object, WeakMap<readonly string[], ListedColumns>>();
const allColumns: readonly string[] = [];

function listedColumnsOf(snapshot: GovernedSnapshot, { type, columns }: KeyLookUp): ListedColumns {
  const definition = snapshot.catalog.type(type);
  if (definition === undefined) throw new ServiceError('REL_UNKNOWN_TYPE', `type ${JSON.stringify(type)} is not registered`);
  let listedOfType = listedByDefinition.get(definition);
  if (listedOfType === undefined) listedByDefinition.set(definition, (listedOfType = new WeakMap()));
  const columnNames = columns ?? allColumns;
  let listedColumns = listedOfType.get(columnNames);
  if (listedColumns === undefined) {
    const readableOfType = readableColumns(definition);
    const typesByColumn = new Map<string, ColumnType>(readableOfType.map((each) => [each.name, each.type]));
    const outputNames = columns ?? [...typesByColumn.keys()];
    const outputColumns = outputNames.map((name) => {
      const outputType = typesByColumn.get(name);
      if (outputType === undefined) throw new ServiceError('REL_UNKNOWN_COLUMN', `${type} has no column ${JSON.stringify(name)}`);
      return { name, type: outputType };
    });
    listedColumns = {
      columns: outputColumns,
      names: outputNames,
      template: `KEYS OF ${type}: ${columns === null ? '*' : outputNames.join(', ')}`,
      shown: null,
    };
    listedOfType.set(columnNames, listedColumns);
  }
  return listedColumns;
}

function shownNamesOf(listed: ListedColumns, maskedColumns: ReadonlyMap<string, unknown>): readonly string[] {
  if (listed.shown?.masked !== maskedColumns)
    listed.shown = {
      masked: maskedColumns,
      names: listed.names.map((name) => (maskedColumns.has(name) ? shownColumn(name) : name)),
    };
  return listed.shown.names;
}
