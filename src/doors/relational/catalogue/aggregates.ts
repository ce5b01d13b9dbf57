/** Functions over all rows of a group. */
import type { Expression, Frame } from './scope.ts';
import { compare, elementOf, familyOf, type Value } from '../../../planner/virtual/types.ts';

export interface Aggregate {
  readonly name: string;
  /** null: it takes no such argument. */
  yields(type: string | null): string | null;
  over(values: readonly Value[], between: Value): Value;
}

const present = (values: readonly Value[]): Exclude<Value, null>[] => values.filter((value) => value !== null);
const extreme =
  (sign: 1 | -1) =>
  (values: readonly Value[]): Value =>
    present(values).reduce<Value>((most, value) => (most === null || compare(value, most) * sign > 0 ? value : most), null);

const ordered = (type: string | null): string | null =>
  type === null || type === 'record' || elementOf(type) !== null ? null : type === 'unknown' ? 'text' : type;
const flags = (type: string | null): string | null => (type === 'bool' ? 'bool' : null);

const all: readonly Aggregate[] = [
  { name: 'count', yields: () => 'int8', over: (values) => present(values).length },
  { name: 'max', yields: ordered, over: extreme(1) },
  { name: 'min', yields: ordered, over: extreme(-1) },
  {
    name: 'sum',
    yields: (type) => (type !== null && familyOf(type) === 'number' ? (type.startsWith('float') ? 'float8' : 'int8') : null),
    over: (values) => (present(values).length === 0 ? null : (present(values) as number[]).reduce((a, b) => a + b, 0)),
  },
  { name: 'bool_or', yields: flags, over: (values) => (present(values).length === 0 ? null : values.includes(true)) },
  { name: 'bool_and', yields: flags, over: (values) => (present(values).length === 0 ? null : !values.includes(false)) },
  { name: 'every', yields: flags, over: (values) => (present(values).length === 0 ? null : !values.includes(false)) },
  {
    name: 'array_agg',
    yields: (type) =>
      type === null || type === 'record' || elementOf(type) !== null ? null : `_${type === 'unknown' ? 'text' : type}`,
    over: (values) => (values.length === 0 ? null : values),
  },
  {
    name: 'string_agg',
    yields: (type) => (type !== null && ['text', 'unknown'].includes(familyOf(type)) ? 'text' : null),
    over: (values, between) =>
      present(values).length === 0 ? null : (present(values) as string[]).join((between as string | null) ?? ''),
  },
];

const byName: ReadonlyMap<string, Aggregate> = new Map(all.map((each) => [each.name, each]));

export function aggregateOf(name: string): Aggregate | null {
  return byName.get(name) ?? null;
}

/** One call, as it is computed for each group. */
export interface AggregateCall {
  readonly aggregate: Aggregate;
  /** null: `count(*)`. */
  readonly argument: Expression | null;
  readonly between: Expression | null;
  readonly distinct: boolean;
  readonly filter: Expression | null;
  readonly sorted: (frames: readonly Frame[]) => readonly Frame[];
}

export function computed(
  { aggregate, argument, between, distinct, filter, sorted }: AggregateCall,
  members: readonly Frame[],
): Value {
  const frames = sorted(filter ? members.filter((frame) => filter.of(frame) === true) : members);
  let values: Value[] = argument ? frames.map((frame) => argument.of(frame)) : frames.map(() => true);
  if (distinct) values = [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
  return aggregate.over(values, between && frames.length > 0 ? between.of(frames[0]!) : null);
}
