/** Random filters, updates, sorts and projections over random documents, by the document door's evaluator and by `rules.ts`. */
import { Decimal128, Double, Int32, Long, serialize } from 'bson';
import { readDocument, writeDocument } from '../../../src/doors/document/bson.ts';
import { numberOfError } from '../../../src/doors/document/errors.ts';
import { projectionOf, sortOf } from '../../../src/doors/document/pipeline-stages.ts';
import { updateOf } from '../../../src/doors/document/update-operators.ts';
import { ServiceError } from '../../../src/errors.ts';
import { compileFilter, filterOf } from '../../../src/planner/expressions/documents/document-filter.ts';
import { allAtOnce } from '../../../src/planner/expressions/resumable-steps.ts';
import { textOf } from '../../../src/planner/expressions/documents/document-json.ts';
import type { Stored, StoredObject } from '../../../src/planner/expressions/documents/document-values.ts';
import { Dice } from '../../fuzz/mutate.ts';
import { type Doc, matches, projected, sorted, updated, type Value } from './rules.ts';

const names = ['a', 'b', 'c', '1', '0'];
const paths = ['a', 'b', 'c', 'a.b', 'a.0', 'b.c', 'a.b.c', 'b.1', 'c.0.a', '1', '1.0'];
const numbers: readonly Value[] = [
  ...[0, 1, -1, 2, 7, 2_147_483_647].map((each) => new Int32(each)),
  ...['1', '2', '9007199254740993', '9007199254740992', '9223372036854775807'].map((each) => Long.fromString(each)),
  ...[0.1, 1, 2.5, -1, 9_007_199_254_740_992].map((each) => new Double(each)),
  ...['0.1', '1.00', '1.0', '2.5', '9007199254740993', '1E+3', '-7'].map((each) => Decimal128.fromString(each)),
];
const scalars: readonly Value[] = [...numbers, null, true, false, '', 'a', 'b', 'ab', '1'];

class Makers {
  readonly #dice: Dice;

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  #pick<T>(all: readonly T[]): T {
    return this.#dice.pick(all);
  }

  #several<T>(most: number, make: () => T): T[] {
    return Array.from({ length: this.#dice.roll(most + 1) }, make);
  }

  value(depth = 2): Value {
    const which = this.#dice.roll(10);
    if (depth > 0 && which === 0) return this.#several(3, () => this.value(depth - 1));
    if (depth > 0 && which < 3) return this.members(depth - 1);
    return this.#pick(scalars);
  }

  members(depth: number): Doc {
    return new Map(this.#several(3, () => [this.#pick(names), this.value(depth)] as const));
  }

  document(id: number): Doc {
    return new Map<string, Value>([['_id', new Int32(id)], ...this.members(3)]);
  }

  #operators(depth: number): Doc {
    const one = (): readonly [string, Value] => {
      switch (this.#dice.roll(depth > 0 ? 14 : 12)) {
        case 0:
        case 1:
          return ['$in', this.#several(3, () => this.value(1))];
        case 2:
          return ['$nin', this.#several(3, () => this.value(1))];
        case 3:
          return ['$exists', this.#dice.roll(2) === 0];
        case 4:
          return ['$size', new Int32(this.#dice.roll(3))];
        case 5:
          return ['$all', this.#several(2, () => this.value(1))];
        case 6:
          return ['$mod', [new Int32(this.#pick([2, 3, -2])), new Int32(this.#pick([0, 1, -1]))]];
        case 7:
          return [
            '$type',
            this.#pick(['int', 'long', 'double', 'decimal', 'number', 'string', 'object', 'array', 'bool', 'null']),
          ];
        case 8:
          return ['$ne', this.value(1)];
        case 12:
          return ['$not', this.#operators(depth - 1)];
        case 13:
          return ['$elemMatch', this.#dice.roll(2) === 0 ? this.#operators(depth - 1) : this.filter(0)];
        default:
          return [this.#pick(['$eq', '$gt', '$gte', '$lt', '$lte']), this.value(1)];
      }
    };
    return new Map([one(), ...this.#several(1, one)]);
  }

  filter(depth = 2): Doc {
    const one = (): readonly [string, Value] => {
      if (depth > 0 && this.#dice.roll(5) === 0) {
        const all: readonly Value[] = [this.filter(depth - 1), ...this.#several(2, () => this.filter(depth - 1))];
        return [this.#pick(['$and', '$or', '$nor']), all];
      }
      return [this.#pick(paths), this.#dice.roll(3) === 0 ? this.value(1) : this.#operators(depth)];
    };
    return new Map([one(), ...this.#several(1, one)]);
  }

  update(): Doc {
    const fields = new Map<string, Map<string, Value>>();
    const seen: string[] = [];
    for (const path of [this.#pick(paths), ...this.#several(2, () => this.#pick(paths))]) {
      if (seen.some((each) => each === path || each.startsWith(`${path}.`) || path.startsWith(`${each}.`))) continue;
      seen.push(path);
      const operator = this.#pick(['$set', '$set', '$inc', '$mul']);
      const value = operator === '$set' ? this.value(2) : this.#pick(numbers);
      if (!fields.has(operator)) fields.set(operator, new Map());
      fields.get(operator)!.set(path, value);
    }
    return fields;
  }

  sort(): [string, 1 | -1][] {
    const keys = new Map([0, 1].slice(this.#dice.roll(2)).map(() => [this.#pick(paths), this.#pick([1, -1] as const)]));
    return [...keys];
  }

  projection(): { readonly paths: string[]; readonly keeps: boolean } {
    const chosen: string[] = [];
    for (const path of [this.#pick(paths), this.#pick(paths)])
      if (!chosen.some((each) => each === path || each.startsWith(`${path}.`) || path.startsWith(`${each}.`))) chosen.push(path);
    return { paths: chosen, keeps: this.#dice.roll(2) === 0 };
  }
}

const stored = (document: Doc): StoredObject =>
  readDocument(Buffer.from(serialize(document as unknown as Map<string, unknown>))).document;
const bytes = (document: Doc): Buffer => Buffer.from(serialize(document as unknown as Map<string, unknown>));

function attempt<T>(run: () => T): T | number {
  try {
    return run();
  } catch (error) {
    if (error instanceof ServiceError) return numberOfError(error);
    throw error;
  }
}

/** Sums and products of doubles and decimals are rounded in a way that the manual does not tell. */
function mixes(update: Doc, document: Doc): boolean {
  const types = new Set<string>();
  const look = (value: Value): void => {
    if (value instanceof Double) types.add('double');
    else if (value instanceof Decimal128) types.add('decimal');
    else if (value instanceof Map || Array.isArray(value)) for (const each of value.values()) look(each as Value);
  };
  if (!update.has('$inc') && !update.has('$mul')) return false;
  look(update);
  look(document);
  return types.size > 1;
}

/** What differs in a case, in words; null: nothing. */
export async function difference(seed: number): Promise<string | null> {
  const make = new Makers(new Dice(seed));
  const documents = Array.from({ length: 6 }, (_, i) => make.document(i));
  const told = (what: string, of: StoredObject, on: Doc | null, here: unknown, there: unknown): string =>
    `seed ${seed}: ${what} ${textOf(of)}${on === null ? '' : ` on ${textOf(stored(on))}`}: ${String(here)} here, ${String(there)} by the rules`;
  const filter = make.filter();
  const asked = stored(filter);
  const [test, again] = [compileFilter(asked), filterOf(textOf(asked))];
  for (const document of documents) {
    const wanted = matches(filter, document);
    if (test(stored(document)) !== wanted || again(stored(document)) !== wanted)
      return told('filter', asked, document, test(stored(document)), wanted);
  }
  const update = make.update();
  for (const document of documents) {
    if (mixes(update, document)) continue;
    const wanted = updated(update, document);
    const made = attempt(() => allAtOnce(allAtOnce(updateOf(stored(update)))(stored(document), false)));
    const isSame =
      typeof wanted === 'number' || typeof made === 'number' ? wanted === made : writeDocument(made).equals(bytes(wanted));
    if (!isSame) {
      const here = typeof made === 'number' ? made : textOf(made);
      return told('update', stored(update), document, here, typeof wanted === 'number' ? wanted : textOf(stored(wanted)));
    }
  }
  const keys = make.sort();
  const ids = (all: readonly StoredObject[]): string => all.map((each) => textOf(each.get('_id')!)).join(' ');
  const inOrder = ids(await sortOf(new Map(keys))(documents.map(stored), () => Promise.resolve()));
  const wantedOrder = ids(sorted(keys, documents).map(stored));
  if (inOrder !== wantedOrder)
    return told(
      'sort',
      new Map<string, Stored>([
        ['keys', new Map(keys)],
        ['of', documents.map(stored)],
      ]),
      null,
      inOrder,
      wantedOrder,
    );
  const projection = make.projection();
  const project = allAtOnce(projectionOf(new Map(projection.paths.map((path) => [path, projection.keeps ? 1 : 0]))));
  for (const document of documents) {
    const wanted = projected(projection.paths, projection.keeps, document);
    const made = allAtOnce(project(stored(document)));
    if (!writeDocument(made).equals(bytes(wanted)))
      return told(`projection ${JSON.stringify(projection)}`, new Map(), document, textOf(made), textOf(stored(wanted)));
  }
  return null;
}
