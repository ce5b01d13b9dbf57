/**
 * GraphQL documents of any bytes, with variables of any kind, and questions about the schema. What must hold: nothing but a ServiceError
 * is thrown, a place is one of the text, no value of the document is in the template or in the tree, and what is told of the
 * schema is JSON.
 */
import { assert, ServiceError } from '../../../src/errors.ts';
import { readGraphql } from '../../../src/planner/languages/graphql.ts';
import { introspect } from '../../../src/planner/languages/graphql-introspection.ts';
import { schemaOf } from '../../../src/planner/languages/graphql-schema.ts';

export const name = 'graphql';

const canary = 'c4n4ry';
const variables = {
  s: canary,
  i: 7n,
  n: 1.5,
  b: true,
  z: null,
  f: { city: canary, n: 2 },
  bad: { 'a b': 1 },
  list: [1],
  big: 2n ** 63n,
  lone: '\ud800',
};
const schema = schemaOf([
  {
    name: 'Person',
    properties: {},
    open: true,
    primaryKey: null,
    graphTriggers: [],
    ontologyVersion: 0,
  },
]);

export function seeds(): Uint8Array[] {
  const encoder = new TextEncoder();
  return documents.map((text) => encoder.encode(text));
}

export function run(bytes: Uint8Array): void {
  const query = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  try {
    const read = readGraphql({ query, operationName: null, variables }, 1_000);
    if (read.kind === 'schema') {
      const told = [...introspect({ ...read, variables: { n: 'Person' } })(schema)].join('');
      assert(typeof JSON.parse(told) === 'object', 'an answer about the schema is an object');
      return;
    }
    const { template, statement, parameters } = read.question;
    assert(!template.includes('"') && !template.includes(canary), 'the template holds no value');
    assert(!JSON.stringify(statement).includes(canary), 'the tree holds no value');
    parameters.forEach((_, slot) => checkPlace(query, read.question.locationOf(slot)));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { line, column } = error.facts;
    if (line !== undefined) checkPlace(query, { line, column: column! });
    throw error;
  }
}

function checkPlace(text: string, { line, column }: { readonly line: number; readonly column: number }): void {
  const lines = text.split(/\r\n|\n|\r/);
  assert(line >= 1 && line <= lines.length, 'the line is one of the text');
  assert(column >= 1 && column <= lines[line - 1]!.length + 1, 'the column is in its line');
}

const documents = [
  '{ Person { id name } }',
  'query Q($i: Int = 5, $s: String!) { Person(limit: $i, where: { city: $s }) { id __typename } }',
  '{ Person(where: $f, limit: 3) { id } } # end',
  '{ Person(where: { a: """c4n4ry "q" """ }) { id } }',
  '{ Person(where: { a: "\\u00e9\\n", b: 1.5e3 }) { id } }',
  '{ Person(where: $bad) { id } }\n{ A }',
  '{ Person(where: { a: $z, b: $list, c: $big, d: $lone, e: $n, f: $b }) { id } }',
  'mutation { a } subscription { b } fragment F on T { c } union U = A | B interface I { d: E }',
  '{ ...F ... on Query { __schema { types { name } } } } fragment F on Query { __type(name: $n) { name } }',
  'query ($n: String!) { __type(name: $n) { name kind fields(includeDeprecated: true) { name args { defaultValue } type { ofType { name } } } } }',
  '{ __schema { queryType { ...T } directives { name locations } } __typename } fragment T on __Type { name inputFields { name } ofType { ...T } }',
  '{ a: __typename @skip(if: false) @include(if: true) b: __typename }',
  `{${'a{'.repeat(2_000)}`,
  `{ P(where: ${'['.repeat(2_000)}`,
  `{ P(limit: ${'9'.repeat(2_000)}) { id } }`,
  '{ P(where: { x: "\\uD800" }) { id } }',
];
