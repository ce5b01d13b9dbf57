/** Expressions of questions of the catalogue, compiled to closures over frames: types are known before the first row is read. */
import { ServiceError } from '../../../errors.ts';
import { aggregateOf, type AggregateCall } from './aggregates.ts';
import { type CatalogueFunction, formatted, functionOf, isFunction } from './functions.ts';
import { alike, operated } from './operators.ts';
import type { Row } from '../../../planner/virtual/maker.ts';
import { compareKeys, type SortKey } from './sorting.ts';
import { type Environment, type Expression, type Frame, type Pausing, type Plan, refusal, type Scope } from './scope.ts';
import type { Call, Order, Select, Tree, TypeName } from './trees.ts';
import { castOf, commonOf, compare, elementOf, type RecordValue, typeNamed, type Value } from '../../../planner/virtual/types.ts';

/** What a SELECT collects of its expressions: computed before them, in the slots of `Frame.extras`. */
export interface Extras {
  readonly aggregates: { readonly slot: number; readonly call: AggregateCall }[];
  readonly windows: { readonly slot: number; readonly partition: readonly Expression[]; readonly keys: readonly SortKey[] }[];
  /** Functions that yield several rows. */
  readonly sets: { readonly slot: number; readonly values: Expression }[];
}

const parameterTypes: Readonly<Record<string, string>> = {
  string: 'unknown',
  integer: 'int8',
  number: 'float8',
  boolean: 'bool',
  json: 'json',
};

export class Expressions {
  readonly #env: Environment;
  readonly #scope: Scope;
  /** null: within what they are computed of, or where none may stand. */
  #extras: Extras | null;

  constructor(env: Environment, scope: Scope, extras: Extras | null) {
    this.#env = env;
    this.#scope = scope;
    this.#extras = extras;
  }

  compile(tree: Tree): Expression {
    switch (tree.kind) {
      case 'literal':
        return literal(tree.value);
      case 'parameter':
        return this.#parameter(tree.number);
      case 'column':
        return this.#scope.column(tree.path, tree.at, this.#env.text);
      case 'star':
        throw this.#refused('* stands alone in a list of SELECT, or in count(*)', tree.at);
      case 'field':
        return this.#field(this.compile(tree.of), tree.name);
      case 'subscript':
        return this.#subscript(this.compile(tree.of), this.coerce(this.compile(tree.index), 'int4'));
      case 'call':
        return this.#call(tree);
      case 'cast':
        return this.coerce(this.compile(tree.of), this.#type(tree.type, tree.at), tree.at);
      case 'not': {
        const of = this.coerce(this.compile(tree.of), 'bool');
        return { type: 'bool', of: (frame) => negated(of.of(frame)) };
      }
      case 'negative': {
        const of = this.compile(tree.of);
        return { type: of.type, of: (frame) => negative(of.of(frame)) };
      }
      case 'logic': {
        const items = tree.items.map((each) => this.coerce(this.compile(each), 'bool'));
        return this.#logic(tree.and, items);
      }
      case 'operator':
        return this.#operator(tree.op, tree.left, tree.right, tree.at);
      case 'is': {
        const of = tree.what === null ? this.compile(tree.of) : this.coerce(this.compile(tree.of), 'bool');
        return { type: 'bool', of: (frame) => (of.of(frame) === tree.what) !== tree.negated };
      }
      case 'distinct': {
        const [left, right] = this.#alike('=', this.compile(tree.left), this.compile(tree.right), 0);
        return {
          type: 'bool',
          of: (frame) => {
            const [a, b] = [left.of(frame), right.of(frame)];
            const same = a === null || b === null ? a === b : compare(a, b) === 0;
            return same === tree.negated;
          },
        };
      }
      case 'between':
        return this.#between(tree);
      case 'in':
        return this.#in(tree);
      case 'quantified':
        return this.#quantified(tree);
      case 'case':
        return this.#case(tree);
      case 'array':
        return this.#array(tree.items.map((each) => this.compile(each)));
      case 'row':
        throw new ServiceError('REL_NOT_IMPLEMENTED', 'ROW(…) is not implemented in questions of the catalogue');
      case 'array-of': {
        const plan = this.#plan(tree.select, 1);
        const { type } = plan.columns[0]!;
        if (elementOf(type) !== null || type === 'record')
          throw new ServiceError('REL_NOT_IMPLEMENTED', `ARRAY(…) of ${type} is not implemented`);
        return this.#asked(`_${type === 'unknown' ? 'text' : type}`, plan, (rows) => rows.map(([value]) => value!));
      }
      case 'scalar': {
        const plan = this.#plan(tree.select, 1);
        return this.#asked(plan.columns[0]!.type, plan, (rows) => {
          if (rows.length > 1) throw new ServiceError('REL_INVALID', 'a question within an expression yields more than one row');
          return rows[0]?.[0] ?? null;
        });
      }
      case 'exists':
        return this.#asked('bool', this.#plan(tree.select, null), (rows) => rows.length > 0);
    }
  }

  /** As another type. REL_NOT_IMPLEMENTED where nothing turns the one into the other. */
  coerce(expression: Expression, type: string, at = 0): Expression {
    if (expression.type === type) return expression;
    const { names, parameters } = this.#env;
    const cast = castOf(expression.type, type, names);
    if (cast === null)
      throw refusal('REL_NOT_IMPLEMENTED', `${expression.type} as ${type} is not implemented`, at, this.#env.text);
    const { open } = expression;
    if (open && 'text' in open) {
      const value = cast(open.text);
      return { type, of: () => value };
    }
    if (open) parameters.found[open.parameter - 1] ??= type;
    return { type, of: (frame) => cast(expression.of(frame)) };
  }

  keys(orders: readonly Order[]): SortKey[] {
    return orders.map(({ by, descending, nullsFirst }) => ({ of: this.compile(by), descending, nullsFirst }));
  }

  #parameter(number: number): Expression {
    const { parameters } = this.#env;
    if (number < 1) throw new ServiceError('REL_PARSE', 'parameters are $1, $2 …');
    parameters.count = Math.max(parameters.count, number);
    const stated = parameters.stated[number - 1] ?? null;
    const type = stated === null ? 'unknown' : parameterTypes[stated];
    if (type === undefined)
      throw new ServiceError('REL_NOT_IMPLEMENTED', `a ${stated!} as parameter is not implemented in questions of the catalogue`);
    const of = (): Value => parameters.values[number - 1] ?? null;
    return type === 'unknown' ? { type, of, open: { parameter: number } } : { type, of };
  }

  #field(of: Expression, name: string): Expression {
    if (of.type !== 'record')
      throw new ServiceError('REL_NOT_IMPLEMENTED', `the field ${JSON.stringify(name)} of ${of.type} is not implemented`);
    if (name !== 'x' && name !== 'n')
      throw new ServiceError('REL_UNKNOWN_COLUMN', `there is no field ${JSON.stringify(name)}: x and n are`);
    return { type: 'int4', of: (frame) => (of.of(frame) as RecordValue | null)?.fields[name] ?? null };
  }

  #subscript(of: Expression, index: Expression): Expression {
    const element = elementOf(of.type);
    if (element === null) throw new ServiceError('REL_NOT_IMPLEMENTED', `[…] of ${of.type} is not implemented`);
    const first = of.type === 'int2vector' || of.type === 'oidvector' ? 0 : 1;
    return {
      type: element,
      of: (frame) => {
        const [values, at] = [of.of(frame) as Value[] | null, index.of(frame) as number | null];
        return values === null || at === null ? null : (values[at - first] ?? null);
      },
    };
  }

  #type({ path, isQuoted, isArray }: TypeName, at: number): string {
    const type = typeNamed(path.at(-1)!, isQuoted || path.length > 1);
    const found = type !== null && isArray ? typeNamed(`_${type}`) : type;
    if (found === null)
      throw refusal('REL_NOT_IMPLEMENTED', `the type ${JSON.stringify(path.join('.'))} is not there`, at, this.#env.text);
    return found;
  }

  #logic(and: boolean, items: readonly Expression[]): Expression {
    return {
      type: 'bool',
      of: (frame) => {
        let unsure = false;
        for (const each of items) {
          const verdict = each.of(frame);
          // One decides alone: false for AND, true for OR.
          if (verdict === !and) return verdict;
          if (verdict === null) unsure = true;
        }
        return unsure ? null : and;
      },
    };
  }

  #operator(op: string, left: Tree, right: Tree, at: number): Expression {
    if (left.kind === 'row' && right.kind === 'row' && op === '=' && left.items.length === right.items.length) {
      const pairs = left.items.map((item, i) => this.#operator('=', item, right.items[i]!, at));
      return this.#logic(true, pairs);
    }
    return operated(op, this.compile(left), this.compile(right), (of, type) => this.coerce(of, type, at), this.#place(at));
  }

  #place(at: number): { readonly at: number; readonly text: string } {
    return { at, text: this.#env.text };
  }

  #alike(op: string, left: Expression, right: Expression, at: number): [Expression, Expression, string] {
    return alike(op, left, right, (of, type) => this.coerce(of, type, at), this.#place(at));
  }

  #between({ of, low, high, negated: not, at }: Extract<Tree, { kind: 'between' }>): Expression {
    const left = held(this.compile(of));
    const against = (op: string, bound: Tree): Expression =>
      operated(op, left.expression, this.compile(bound), (each, type) => this.coerce(each, type, at), this.#place(at));
    const within = this.#logic(true, [against('>=', low), against('<=', high)]);
    return {
      type: 'bool',
      of: (frame) => {
        left.take(frame);
        const verdict = within.of(frame);
        return not ? negated(verdict) : verdict;
      },
    };
  }

  #in({ of, items, negated: not, at }: Extract<Tree, { kind: 'in' }>): Expression {
    const found = 'kind' in items ? this.#inRows(this.compile(of), items, at) : this.#inItems(this.compile(of), items, at);
    return not ? { type: 'bool', of: (frame) => negated(found.of(frame)) } : found;
  }

  #inItems(of: Expression, trees: readonly Tree[], at: number): Expression {
    const items = trees.map((tree) => this.compile(tree));
    const type = items.reduce((type, item) => this.#alike('IN', { ...of, type }, item, at)[2], of.type);
    const left = this.coerce(of, type, at);
    const rights = items.map((item) => this.coerce(item, type, at));
    return {
      type: 'bool',
      of: (frame) =>
        among(
          left.of(frame),
          rights.map((item) => item.of(frame)),
        ),
    };
  }

  #inRows(of: Expression, select: Select, at: number): Expression {
    const plan = this.#plan(select, 1);
    const [left, right] = this.#alike('IN', of, { type: plan.columns[0]!.type, of: () => null }, at);
    const cast = castOf(plan.columns[0]!.type, right.type, this.#env.names)!;
    const values = this.#asked('record', plan, (rows) => rows.map(([value]) => cast(value!)));
    return { type: 'bool', of: (frame) => among(left.of(frame), values.of(frame) as Value[]) };
  }

  #quantified({ op, all, left, right, at }: Extract<Tree, { kind: 'quantified' }>): Expression {
    const of = held(this.compile(left));
    let values: Expression;
    let element: string;
    if (right.kind === 'select') {
      const plan = this.#plan(right, 1);
      element = plan.columns[0]!.type;
      values = this.#asked('record', plan, (rows) => rows.map(([value]) => value!));
    } else {
      values = this.compile(right);
      if (values.type === 'unknown') {
        const { type } = of.expression;
        const listed = typeNamed(`_${type === 'unknown' ? 'text' : type}`);
        if (listed === null) throw this.#refused(`ANY of arrays of ${type} is not implemented`, at);
        values = this.coerce(values, listed, at);
      }
      const found = elementOf(values.type);
      if (found === null) throw this.#refused(`ANY of ${values.type} is not implemented`, at);
      element = found;
    }
    let current: Value = null;
    const judge = operated(
      op,
      of.expression,
      { type: element, of: () => current },
      (each, type) => this.coerce(each, type, at),
      this.#place(at),
    );
    return {
      type: 'bool',
      of: (frame) => {
        const list = values.of(frame) as Value[] | null;
        if (list === null) return null;
        of.take(frame);
        let unsure = false;
        for (const value of list) {
          current = value;
          const verdict = judge.of(frame);
          if (verdict === !all) return verdict;
          if (verdict === null) unsure = true;
        }
        return unsure ? null : all;
      },
    };
  }

  #case({ of, whens, otherwise }: Extract<Tree, { kind: 'case' }>): Expression {
    const left = of && held(this.compile(of));
    const coerce = (each: Expression, type: string): Expression => this.coerce(each, type, 0);
    const tests = whens.map(([when]) => {
      const test = this.compile(when);
      return left === null ? this.coerce(test, 'bool') : operated('=', left.expression, test, coerce, this.#place(0));
    });
    const results = [...whens.map(([, then]) => this.compile(then)), otherwise ? this.compile(otherwise) : literal(null)];
    const { type, expressions } = this.#together(results, 'CASE');
    return {
      type,
      of: (frame) => {
        left?.take(frame);
        return expressions[firstTrue(tests, frame)]!.of(frame);
      },
    };
  }

  /** All as the type that they have in common. */
  #together(given: readonly Expression[], what: string): { readonly type: string; readonly expressions: readonly Expression[] } {
    const common = given.reduce<string | null>((type, each) => (type === null ? null : commonOf(type, each.type)), 'unknown');
    if (common === null)
      throw new ServiceError('REL_NOT_IMPLEMENTED', `${what} of ${given.map(({ type }) => type).join(', ')} is not implemented`);
    const type = common === 'unknown' ? 'text' : common;
    return { type, expressions: given.map((each) => this.coerce(each, type)) };
  }

  #array(items: readonly Expression[]): Expression {
    const { type, expressions } = this.#together(items, 'ARRAY');
    const listed = typeNamed(`_${type}`);
    if (listed === null) throw new ServiceError('REL_NOT_IMPLEMENTED', `arrays of ${type} are not implemented`);
    return { type: listed, of: (frame) => expressions.map((each) => each.of(frame)) };
  }

  #plan(select: Select, columns: number | null): Plan {
    const plan = this.#env.select(select, this.#scope, this.#scope.named);
    if (columns !== null && plan.columns.length !== columns)
      throw new ServiceError('REL_PARSE', `a question within an expression has one column, not ${plan.columns.length}`);
    return plan;
  }

  /** Answered once where it reads nothing of the row at hand. */
  #asked(type: string, plan: Plan, of: (rows: readonly (readonly Value[])[]) => Value): Expression {
    const { work } = this.#env;
    let rows: readonly Row[] | null = null;
    let known: { readonly value: Value } | null = null;
    const answered = function* (frame: Frame): Pausing<readonly Row[]> {
      return (rows ??= yield* plan.rows(frame));
    };
    return {
      type,
      of: (frame) => {
        if (known) return known.value;
        if (plan.isCorrelated()) return of(work.drained(plan.rows(frame)));
        if (rows === null) work.needs(() => answered(frame));
        known = { value: of(rows ?? work.drained(answered(frame))) };
        return known.value;
      },
    };
  }

  #call(tree: Call): Expression {
    const name = tree.path.at(-1)!;
    const schema = tree.path.length > 1 ? tree.path[0]! : null;
    if (schema !== null && schema !== 'pg_catalog' && schema !== 'information_schema') throw this.#noFunction(tree);
    if (tree.over) return this.#window(tree, name);
    const aggregate = aggregateOf(name);
    if (aggregate) return this.#aggregate(tree, name);
    if (tree.star || tree.distinct || tree.filter || tree.orderBy.length > 0) throw this.#noFunction(tree);
    const given = tree.arguments.map((each) => this.compile(each));
    switch (name) {
      case 'coalesce': {
        const { type, expressions } = this.#together(given, 'COALESCE');
        return { type, of: (frame) => firstOf(expressions, frame) };
      }
      case 'nullif': {
        if (given.length !== 2) throw this.#noFunction(tree);
        const [a, b, type] = this.#alike('=', given[0]!, given[1]!, tree.at);
        return {
          type,
          of: (frame) => {
            const [x, y] = [a.of(frame), b.of(frame)];
            return x !== null && y !== null && compare(x, y) === 0 ? null : x;
          },
        };
      }
      case 'greatest':
      case 'least': {
        const { type, expressions } = this.#together(given, name);
        const extreme = aggregateOf(name === 'greatest' ? 'max' : 'min')!;
        return {
          type,
          of: (frame) =>
            extreme.over(
              expressions.map((each) => each.of(frame)),
              null,
            ),
        };
      }
      case 'format': {
        const [pattern, ...values] = given.map((each) => this.coerce(each, 'text'));
        if (!pattern) throw this.#noFunction(tree);
        return {
          type: 'text',
          of: (frame) => {
            const text = pattern.of(frame) as string | null;
            return text === null
              ? null
              : formatted(
                  text,
                  values.map((each) => each.of(frame) as string | null),
                );
          },
        };
      }
      case 'concat': {
        const texts = given.map((each) => this.coerce(each, 'text'));
        return { type: 'text', of: (frame) => texts.map((each) => (each.of(frame) as string | null) ?? '').join('') };
      }
    }
    const found = functionOf(name, given.length);
    if (found === null) throw this.#noFunction(tree);
    const called = this.called(found, given, tree.at);
    if (!found.isSet) return called;
    if (this.#extras === null) throw this.#refused(`${name}() yields several rows, and can't stand here`, tree.at);
    const slot = this.#scope.extras++;
    this.#extras.sets.push({ slot, values: called });
    return { type: called.type, of: ({ extras }) => extras[slot] ?? null };
  }

  /** A call with its arguments as it takes them; of a set, all rows at once. */
  called(of: CatalogueFunction, given: readonly Expression[], at: number): Expression {
    const expressions = given.map((each, i) => {
      const wanted = of.takes[i]!;
      if (wanted === 'any') return each.type === 'unknown' ? this.coerce(each, 'text', at) : each;
      if (wanted !== 'anyarray') return this.coerce(each, wanted, at);
      if (each.type === 'unknown') return this.coerce(each, '_text', at);
      if (elementOf(each.type) === null) throw this.#refused(`${of.name}() takes an array, not ${each.type}`, at);
      return each;
    });
    const types = expressions.map(({ type }) => type);
    const type = of.yields === 'element' ? elementOf(types[0]!)! : of.yields;
    const { facts, names } = this.#env;
    return {
      type,
      of: (frame) => {
        const values = expressions.map((each) => each.of(frame));
        if (!of.takesNull && values.includes(null)) return null;
        return of.run({ facts, names }, values, types);
      },
    };
  }

  #window(tree: Call, name: string): Expression {
    const extras = this.#extras;
    if (name !== 'row_number' || extras === null || tree.arguments.length > 0)
      throw this.#refused(`${name}() OVER (…) is not implemented`, tree.at);
    const slot = this.#scope.extras++;
    const { partition, orderBy } = tree.over!;
    extras.windows.push({ slot, partition: partition.map((each) => this.compile(each)), keys: this.keys(orderBy) });
    return { type: 'int8', of: (frame) => frame.extras[slot] ?? null };
  }

  #aggregate(tree: Call, name: string): Expression {
    const extras = this.#extras;
    if (extras === null) throw this.#refused(`${name}() can't stand here`, tree.at);
    // Nothing that is computed over groups stands within what they are computed of.
    this.#extras = null;
    const [argument = null, between = null, more] = tree.arguments.map((each) => this.compile(each));
    const filter = tree.filter ? this.coerce(this.compile(tree.filter), 'bool') : null;
    const keys = this.keys(tree.orderBy);
    this.#extras = extras;
    const aggregate = aggregateOf(name)!;
    const type = aggregate.yields(argument?.type ?? null);
    if (type === null || more || (argument === null) !== tree.star || (between !== null) !== (name === 'string_agg'))
      throw this.#noFunction(tree);
    const slot = this.#scope.extras++;
    const sorted: AggregateCall['sorted'] = (frames) =>
      keys.length === 0 ? frames : frames.toSorted((a, b) => compareKeys(keys, a, b));
    const call = {
      aggregate,
      argument,
      between: between && this.coerce(between, 'text'),
      distinct: tree.distinct,
      filter,
      sorted,
    };
    extras.aggregates.push({ slot, call });
    return { type, of: (frame) => frame.extras[slot] ?? null };
  }

  #noFunction({ path, arguments: given, at }: Call): Error {
    const name = path.at(-1)!;
    const why = isFunction(name) || aggregateOf(name) ? ' with such arguments' : '';
    return this.#refused(`the function ${path.join('.')}() of ${given.length} arguments is not implemented${why}`, at);
  }

  #refused(what: string, at: number): ServiceError {
    return refusal('REL_NOT_IMPLEMENTED', what, at, this.#env.text);
  }
}

function literal(value: string | number | boolean | null): Expression {
  if (value === null || typeof value === 'string') return { type: 'unknown', of: () => value, open: { text: value } };
  const type =
    typeof value === 'boolean'
      ? 'bool'
      : !Number.isInteger(value)
        ? 'numeric'
        : Math.abs(value) > 2_147_483_647
          ? 'int8'
          : 'int4';
  return { type, of: () => value };
}

const negated = (value: Value): Value => (value === null ? null : !value);
const negative = (value: Value): Value => (typeof value === 'number' ? -value : null);

function firstTrue(tests: readonly Expression[], frame: Frame): number {
  const found = tests.findIndex((test) => test.of(frame) === true);
  return found < 0 ? tests.length : found;
}

function firstOf(expressions: readonly Expression[], frame: Frame): Value {
  for (const each of expressions) {
    const value = each.of(frame);
    if (value !== null) return value;
  }
  return null;
}

function among(value: Value, values: readonly Value[]): Value {
  if (value === null) return values.length === 0 ? false : null;
  let unsure = false;
  for (const each of values) {
    if (each === null) unsure = true;
    else if (compare(value, each) === 0) return true;
  }
  return unsure ? null : false;
}

/**
 * An expression that is compared with several others: it is compiled once and worked out once a frame. Each of them would else double
 * with every level that a question nests.
 */
function held(of: Expression): { readonly expression: Expression; take(frame: Frame): void } {
  let value: Value = null;
  return {
    expression: { type: of.type, of: () => value },
    take(frame) {
      value = of.of(frame);
    },
  };
}
