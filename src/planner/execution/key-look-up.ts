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
const keysInTurn = 1_024;

export function lookUp(invocation: Invocation, request: KeyLookUp, boundsOf: BoundsAt): Answer {
  const { read, answer } = prepare(invocation, request, boundsOf);
  read(request.keys);
  return answer();
}

/** `yieldTurn` throws where the lookup has taken too long, or its caller is gone. */
export async function lookUpInTurns(
  invocation: Invocation,
  request: KeyLookUp,
  { boundsOf, yieldTurn }: { readonly boundsOf: BoundsAt; readonly yieldTurn: () => Promise<void> },
): Promise<Answer> {
  const { keys } = request;
  if (keys.length <= keysInTurn) return lookUp(invocation, request, boundsOf);
  const { read, answer } = prepare(invocation, request, boundsOf);
  for (let at = 0; at < keys.length; at += keysInTurn) {
    if (at > 0) await yieldTurn();
    read(keys.slice(at, at + keysInTurn));
  }
  return answer();
}

interface Prepared {
  read(keys: readonly string[]): void;
  answer(): Answer;
}

function prepare(invocation: Invocation, request: KeyLookUp, boundsOf: BoundsAt): Prepared {
  const { type, keys, time = 'current' } = request;
  invocation.describe({ objectType: type, literals: keys });
  const snapshot = invocation.snapshot();
  const known = columnsOf(snapshot, request);
  const { columns, template } = known;
  const costUnits = keys.length * unitsOfKey;
  invocation.describe({ template, costUnits });
  const overtaken = snapshot.erasing([type]);
  const masked = snapshot.masksOf(type);
  const shown = masked.size === 0 ? known.names : shownIn(known, masked);
  const bounds = boundsOf(time, snapshot.instant);
  const batches: OutputBatch[] = [];
  let rowCount = 0;
  const read = (some: readonly string[]): void => {
    const blocks = snapshot.rows.scan({ type, columns: shown, time: bounds, keys: some });
    for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
      if (step.value.count === 0) continue;
      batches.push(fewRows(step.value, null, columns));
      rowCount += step.value.count;
    }
  };
  const answer = (): Answer => {
    invocation.describe({ rowCount });
    return {
      columns,
      batches,
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
      overtaken,
    };
  };
  return { read, answer };
}

/** Values derived from a list of columns, cached by that list. */
interface Listed {
  readonly columns: readonly OutputColumn[];
  readonly names: readonly string[];
  readonly template: string;
  /** Names under the masks that were met last. */
  shown: { readonly masked: ReadonlyMap<string, unknown>; readonly names: readonly string[] } | null;
}

/** By definition and list: lookups by key repeat the same ones. */
const listed = new WeakMap<object, WeakMap<readonly string[], Listed>>();
const all: readonly string[] = [];

function columnsOf(snapshot: GovernedSnapshot, { type, columns }: KeyLookUp): Listed {
  const definition = snapshot.catalog.type(type);
  if (definition === undefined) throw new ServiceError('REL_UNKNOWN_TYPE', `type ${JSON.stringify(type)} is not registered`);
  let ofType = listed.get(definition);
  if (ofType === undefined) listed.set(definition, (ofType = new WeakMap()));
  const columnNames = columns ?? all;
  let listedColumns = ofType.get(columnNames);
  if (listedColumns === undefined) {
    const readable = readableColumns(definition);
    const types = new Map<string, ColumnType>(readable.map((each) => [each.name, each.type]));
    const names = columns ?? [...types.keys()];
    const output = names.map((name) => {
      const of = types.get(name);
      if (of === undefined) throw new ServiceError('REL_UNKNOWN_COLUMN', `${type} has no column ${JSON.stringify(name)}`);
      return { name, type: of };
    });
    listedColumns = {
      columns: output,
      names,
      template: `KEYS OF ${type}: ${columns === null ? '*' : names.join(', ')}`,
      shown: null,
    };
    ofType.set(columnNames, listedColumns);
  }
  return listedColumns;
}

function shownIn(listed: Listed, masked: ReadonlyMap<string, unknown>): readonly string[] {
  if (listed.shown?.masked !== masked)
    listed.shown = { masked, names: listed.names.map((name) => (masked.has(name) ? shownColumn(name) : name)) };
  return listed.shown.names;
}
