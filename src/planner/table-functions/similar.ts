/**
 * SIMILAR: rows of a type in the order of how alike they are to a vector, or to a row of the type, the seed.
 *
 *   SIMILAR TO Doc WHERE id = 'd1' LIMIT 5             SELECT * FROM SIMILAR('Doc', ID => 'd1') LIMIT 5
 *   SELECT * FROM SIMILAR('Doc', embedding, ARRAY[0.1, 0.9], THRESHOLD => 0.5) LIMIT 5
 *   SIMILAR TO Doc WHERE SIMILAR(embedding, ARRAY[0.1, 0.9], threshold=0.5) LIMIT 5
 *
 * `_score` is the cosine. With a seed it is the highest over the columns in which both have a vector: the `_emb_` ones, where
 * the type has any, else every column of vectors; the seed itself is left out. A seed without a vector is compared by the
 * one that the model of SERVICE_EMBED_URL gave for it, where it has, else by the words of the text columns: how many they share, of all that either has.
 */
import { textColumns, vectorColumns } from '../../governance/embedding/embedded-columns.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression, FunctionArgument } from '../syntax/statement.ts';
import { prepareSimilar } from '../vectors/nearest-rows.ts';
import { SimilarOperator } from '../vectors/similar-operator.ts';
import type { BoundScope, Call, FunctionScope, TableFunction } from '../calls/table-function.ts';

export const similar: TableFunction = {
  name: 'SIMILAR',
  summary: 'Rows of a type by how alike they are to a vector or to another row, most alike first.',
  arguments: [
    { name: 'TYPE', kind: 'type', summary: 'the type; may be left out where one type alone has the column' },
    { name: 'COLUMN', kind: 'column', summary: 'the column of vectors to compare; with a seed every one' },
    { name: 'VECTOR', kind: 'vector', summary: 'what rows are compared with, as many numbers as the column has dimensions' },
    { name: 'ID', kind: 'key', summary: 'id of the seed' },
    { name: 'PK', kind: 'key', summary: '_pk of the seed' },
    { name: 'THRESHOLD', kind: 'number', summary: 'the least score that a row must have, from -1 to 1; every score by default' },
  ],
  action: 'search',
  units: 1,
  deterministic: true,
  arrange: arrangeSimilar,
  types: (scope) => {
    const type = typeOf(scope);
    return type === undefined ? [] : [type];
  },
  columns: () => [{ name: '_score', type: 'number' }],
  ranks: (scope) => {
    checkCombination(scope);
    const { words, catalog } = scope;
    const type = typeOf(scope);
    if (type === undefined) {
      throw errorAt('REL_INVALID', 'SIMILAR needs the type: no type or several have the column', words.locationOf('COLUMN'));
    }
    const definition = catalog.type(type);
    const column = words.word('COLUMN');
    if (definition === undefined) return { type, reads: [], named: [] };
    if (column !== undefined) {
      if (definition.properties[column]?.type !== 'vector') {
        const text = `type ${JSON.stringify(type)} has no column ${JSON.stringify(column)} of vectors`;
        throw errorAt('REL_UNKNOWN_COLUMN', text, words.locationOf('COLUMN'));
      }
      return { type, reads: [column], named: [column] };
    }
    if (words.given.has('VECTOR')) {
      const [only, ...others] = vectorColumns(definition);
      if (only === undefined || others.length > 0) {
        const text = `SIMILAR needs the column to compare: type ${JSON.stringify(type)} has ${others.length === 0 ? 'none' : 'several'}`;
        throw errorAt('REL_INVALID', `${text} of vectors`, words.locationOf('TYPE'));
      }
      return { type, reads: [only], named: [only] };
    }
    return { type, reads: [...vectorColumns(definition), ...textColumns(definition)], named: [] };
  },
  prepare: prepareSimilar,
  open: (opening) => new SimilarOperator(opening),
};

function checkCombination({ words }: BoundScope): void {
  const { given } = words;
  const ways = ['VECTOR', 'ID', 'PK'].filter((name) => given.has(name));
  if (ways.length === 1) return;
  const usage = "a vector, or a row by WHERE id = '…' or WHERE _pk = '…'";
  throw errorAt(
    'REL_INVALID',
    `SIMILAR is of ${usage}${ways.length === 0 ? '' : ', and of one of them'}`,
    words.locationOf(ways[1] ?? 'TYPE'),
  );
}

/** The named type; else the one that has a vector column of that name. */
function typeOf({ words, catalog }: FunctionScope): string | undefined {
  const named = words.word('TYPE');
  const column = words.word('COLUMN');
  if (named !== undefined || column === undefined || catalog === null) return named;
  const having = catalog.types().filter(({ properties }) => properties[column]?.type === 'vector');
  return having.length === 1 ? having[0]!.name : undefined;
}

/** `Type.column`, a column before its vector, and a seed or a call in the condition, each as an argument by name. */
function arrangeSimilar(call: Call): Call {
  const given = byName(call.arguments);
  const isSought = given.some(({ name }) => name === 'VECTOR' || name === 'ID' || name === 'PK');
  const sought = isSought ? null : seedIn(call.where);
  return sought === null
    ? { ...call, arguments: given }
    : { ...call, arguments: [...given, ...sought.arguments], where: sought.rest };
}

function byName(writtenArguments: readonly FunctionArgument[]): readonly FunctionArgument[] {
  const [first, second] = writtenArguments;
  const column = first?.name === null ? first.value : undefined;
  if (column?.kind === 'column' && column.table !== null) {
    const type: Expression = { ...column, table: null, name: column.table };
    return [
      { name: 'TYPE', value: type },
      { name: 'COLUMN', value: { ...column, table: null } },
      ...following(writtenArguments.slice(1)),
    ];
  }
  // SIMILAR(embedding, ARRAY[…]): no type stands before the column.
  if (first?.name === null && second?.name === null && isVector(second.value)) {
    return [{ name: 'COLUMN', value: first.value }, ...following(writtenArguments.slice(1))];
  }
  return writtenArguments;
}

/** Behind a column, the first unnamed argument is the vector. */
function following(writtenArguments: readonly FunctionArgument[]): readonly FunctionArgument[] {
  const [first, ...rest] = writtenArguments;
  return first?.name === null ? [{ name: 'VECTOR', value: first.value }, ...rest] : writtenArguments;
}

function isVector(value: Expression): boolean {
  return value.kind === 'call' && value.name === 'ARRAY';
}

interface Seed {
  readonly arguments: readonly FunctionArgument[];
  readonly rest: Expression | null;
}

const seeds: ReadonlyMap<string, string> = new Map([
  ['id', 'ID'],
  ['_pk', 'PK'],
]);

/** The first part of a condition that says what rows are compared with; the others say which rows. */
function seedIn(where: Expression | null): Seed | null {
  if (where === null) return null;
  if (where.kind === 'binary' && where.op === 'and') {
    const left = seedIn(where.left);
    if (left) return { ...left, rest: left.rest === null ? where.right : { ...where, left: left.rest } };
    const right = seedIn(where.right);
    return right && { ...right, rest: right.rest === null ? where.left : { ...where, right: right.rest } };
  }
  if (where.kind === 'call' && where.name === 'SIMILAR') {
    return { arguments: byName([...where.arguments]).filter(({ name }) => name !== 'TYPE'), rest: null };
  }
  if (where.kind !== 'binary' || where.op !== '=') return null;
  const { left, right } = where;
  const [column, value] = left.kind === 'column' ? [left, right] : [right, left];
  const name = column.kind === 'column' && value.kind === 'literal' ? seeds.get(column.name) : undefined;
  return name === undefined ? null : { arguments: [{ name, value }], rest: null };
}
