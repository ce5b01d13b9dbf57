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
  arrange: arrangeSimilarCall,
  types: (scope) => {
    const similarType = similarTypeOf(scope);
    return similarType === undefined ? [] : [similarType];
  },
  columns: () => [{ name: '_score', type: 'number' }],
  ranks: (scope) => {
    checkSimilarArguments(scope);
    const { words, catalog } = scope;
    const similarType = similarTypeOf(scope);
    if (similarType === undefined) {
      throw errorAt('REL_INVALID', 'SIMILAR needs the type: no type or several have the column', words.locationOf('COLUMN'));
    }
    const similarDefinition = catalog.type(similarType);
    const comparedColumn = words.word('COLUMN');
    if (similarDefinition === undefined) return { type: similarType, reads: [], named: [] };
    if (comparedColumn !== undefined) {
      if (similarDefinition.properties[comparedColumn]?.type !== 'vector') {
        const similarProblem = `type ${JSON.stringify(similarType)} has no column ${JSON.stringify(comparedColumn)} of vectors`;
        throw errorAt('REL_UNKNOWN_COLUMN', similarProblem, words.locationOf('COLUMN'));
      }
      return { type: similarType, reads: [comparedColumn], named: [comparedColumn] };
    }
    if (words.given.has('VECTOR')) {
      const [onlyVectorColumn, ...otherVectorColumns] = vectorColumns(similarDefinition);
      if (onlyVectorColumn === undefined || otherVectorColumns.length > 0) {
        const similarProblem = `SIMILAR needs the column to compare: type ${JSON.stringify(similarType)} has ${otherVectorColumns.length === 0 ? 'none' : 'several'}`;
        throw errorAt('REL_INVALID', `${similarProblem} of vectors`, words.locationOf('TYPE'));
      }
      return { type: similarType, reads: [onlyVectorColumn], named: [onlyVectorColumn] };
    }
    return { type: similarType, reads: [...vectorColumns(similarDefinition), ...textColumns(similarDefinition)], named: [] };
  },
  prepare: prepareSimilar,
  open: (opening) => new SimilarOperator(opening),
};

function checkSimilarArguments({ words }: BoundScope): void {
  const { given: givenArguments } = words;
  const seedWays = ['VECTOR', 'ID', 'PK'].filter((name) => givenArguments.has(name));
  if (seedWays.length === 1) return;
  const usage = "a vector, or a row by WHERE id = '…' or WHERE _pk = '…'";
  throw errorAt(
    'REL_INVALID',
    `SIMILAR is of ${usage}${seedWays.length === 0 ? '' : ', and of one of them'}`,
    words.locationOf(seedWays[1] ?? 'TYPE'),
  );
}

/** The named type; else the one that has a vector column of that name. */
function similarTypeOf({ words, catalog }: FunctionScope): string | undefined {
  const namedType = words.word('TYPE');
  const comparedColumn = words.word('COLUMN');
  if (namedType !== undefined || comparedColumn === undefined || catalog === null) return namedType;
  const typesWithColumn = catalog.types().filter(({ properties }) => properties[comparedColumn]?.type === 'vector');
  return typesWithColumn.length === 1 ? typesWithColumn[0]!.name : undefined;
}

/** `Type.column`, a column before its vector, and a seed or a call in the condition, each as an argument by name. */
function arrangeSimilarCall(similarCall: Call): Call {
  const namedArguments = similarArgumentsByName(similarCall.arguments);
  const hasSeedArgument = namedArguments.some(({ name }) => name === 'VECTOR' || name === 'ID' || name === 'PK');
  const soughtSeed = hasSeedArgument ? null : seedInCondition(similarCall.where);
  return soughtSeed === null
    ? { ...similarCall, arguments: namedArguments }
    : { ...similarCall, arguments: [...namedArguments, ...soughtSeed.arguments], where: soughtSeed.rest };
}

function similarArgumentsByName(writtenArguments: readonly FunctionArgument[]): readonly FunctionArgument[] {
  const [firstArgument, secondArgument] = writtenArguments;
  const comparedColumn = firstArgument?.name === null ? firstArgument.value : undefined;
  if (comparedColumn?.kind === 'column' && comparedColumn.table !== null) {
    const typeArgument: Expression = { ...comparedColumn, table: null, name: comparedColumn.table };
    return [
      { name: 'TYPE', value: typeArgument },
      { name: 'COLUMN', value: { ...comparedColumn, table: null } },
      ...vectorArgumentFirst(writtenArguments.slice(1)),
    ];
  }
  // SIMILAR(embedding, ARRAY[…]): no type stands before the column.
  if (firstArgument?.name === null && secondArgument?.name === null && isVectorLiteral(secondArgument.value)) {
    return [{ name: 'COLUMN', value: firstArgument.value }, ...vectorArgumentFirst(writtenArguments.slice(1))];
  }
  return writtenArguments;
}

/** Behind a column, the first unnamed argument is the vector. */
function vectorArgumentFirst(writtenArguments: readonly FunctionArgument[]): readonly FunctionArgument[] {
  const [firstArgument, ...otherArguments] = writtenArguments;
  return firstArgument?.name === null ? [{ name: 'VECTOR', value: firstArgument.value }, ...otherArguments] : writtenArguments;
}

function isVectorLiteral(vectorExpression: Expression): boolean {
  return vectorExpression.kind === 'call' && vectorExpression.name === 'ARRAY';
}

interface SimilarSeed {
  readonly arguments: readonly FunctionArgument[];
  readonly rest: Expression | null;
}

const seedArguments: ReadonlyMap<string, string> = new Map([
  ['id', 'ID'],
  ['_pk', 'PK'],
]);

/** The first part of a condition that says what rows are compared with; the others say which rows. */
function seedInCondition(seedCondition: Expression | null): SimilarSeed | null {
  if (seedCondition === null) return null;
  if (seedCondition.kind === 'binary' && seedCondition.op === 'and') {
    const leftSeed = seedInCondition(seedCondition.left);
    if (leftSeed)
      return { ...leftSeed, rest: leftSeed.rest === null ? seedCondition.right : { ...seedCondition, left: leftSeed.rest } };
    const rightSeed = seedInCondition(seedCondition.right);
    return (
      rightSeed && {
        ...rightSeed,
        rest: rightSeed.rest === null ? seedCondition.left : { ...seedCondition, right: rightSeed.rest },
      }
    );
  }
  if (seedCondition.kind === 'call' && seedCondition.name === 'SIMILAR') {
    return {
      arguments: similarArgumentsByName([...seedCondition.arguments]).filter(({ name: seedArgument }) => seedArgument !== 'TYPE'),
      rest: null,
    };
  }
  if (seedCondition.kind !== 'binary' || seedCondition.op !== '=') return null;
  const { left, right } = seedCondition;
  const [seedColumn, seedValue] = left.kind === 'column' ? [left, right] : [right, left];
  const name = seedColumn.kind === 'column' && seedValue.kind === 'literal' ? seedArguments.get(seedColumn.name) : undefined;
  return name === undefined ? null : { arguments: [{ name, value: seedValue }], rest: null };
}
