/**
 * Rows of an answer as SPARQL 1.1 Query Results JSON. Triples are stored as texts that do not say what they are: a subject or
 * predicate is an IRI wherever one may be written so, an object where it is an absolute one; `_:x` is a blank node. NULL leaves a
 * variable unbound.
 */
import { cellAt } from '../../log/values/vector-builder.ts';
import type { Answer } from '../planner-contract.ts';

export const sparqlResultsType = 'application/sparql-results+json';

const rowsAtOnce = 256;
const iri = /^[^\s<>"{}|\\^`]+$/;
/** Source: SPARQL 1.1, BLANK_NODE_LABEL. */
const blankNode = /^_:[\p{L}\p{N}_](?:[\p{L}\p{N}_\-.·]*[\p{L}\p{N}_\-·])?$/u;
const absoluteIri = /^[a-z][a-z0-9+.-]*:[^\s<>"{}|\\^`]+$/i;

/** `resources` are the columns of subjects and predicates. */
export function* sparqlResults(
  { columns, batches }: Pick<Answer, 'columns' | 'batches'>,
  resources: ReadonlySet<string>,
): Generator<Uint8Array, void> {
  const shapes = columns.map(({ name, type }) => ({
    key: JSON.stringify(name),
    type,
    pattern: resources.has(name) ? iri : absoluteIri,
  }));
  let text = `{"head":{"vars":[${shapes.map(({ key }) => key).join()}]},"results":{"bindings":[`;
  let between = '';
  let rows = 0;
  for (const { columns: vectors, selection, first, count } of batches) {
    for (let i = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      const bindings = shapes.flatMap(({ key, type, pattern }, c) => {
        const cell = cellAt(vectors[c]!, type, row);
        if (cell === null) return [];
        const value = String(cell);
        if (blankNode.test(value)) return [`${key}:{"type":"bnode","value":${JSON.stringify(value.slice(2))}}`];
        return [`${key}:{"type":"${pattern.test(value) ? 'uri' : 'literal'}","value":${JSON.stringify(value)}}`];
      });
      text += `${between}{${bindings.join()}}`;
      between = ',';
      if (++rows % rowsAtOnce !== 0) continue;
      yield Buffer.from(text);
      text = '';
    }
  }
  yield Buffer.from(`${text}]}}`);
}
