/**
 * Rows of an answer as SPARQL 1.1 Query Results JSON. Triples are stored as texts that do not say what they are: a subject or
 * predicate is an IRI wherever one may be written so, an object where it is an absolute one; `_:x` is a blank node. NULL leaves a
 * variable unbound.
 */
import { cellAt } from '../../log/values/vector-builder.ts';
import type { Answer } from '../planner-contract.ts';

export const sparqlResultsType = 'application/sparql-results+json';

const bindingRowsAtOnce = 256;
const iriPattern = /^[^\s<>"{}|\\^`]+$/;
/** Source: SPARQL 1.1, BLANK_NODE_LABEL. */
const blankNodePattern = /^_:[\p{L}\p{N}_](?:[\p{L}\p{N}_\-.·]*[\p{L}\p{N}_\-·])?$/u;
const absoluteIriPattern = /^[a-z][a-z0-9+.-]*:[^\s<>"{}|\\^`]+$/i;

/** `resources` are the columns of subjects and predicates. */
export function* sparqlResults(
  { columns, batches }: Pick<Answer, 'columns' | 'batches'>,
  resources: ReadonlySet<string>,
): Generator<Uint8Array, void> {
  const sparqlVariables = columns.map(({ name, type }) => ({
    key: JSON.stringify(name),
    type,
    pattern: resources.has(name) ? iriPattern : absoluteIriPattern,
  }));
  let resultsText = `{"head":{"vars":[${sparqlVariables.map(({ key }) => key).join()}]},"results":{"bindings":[`;
  let bindingSeparator = '';
  let bindingRowCount = 0;
  for (const { columns: solutionVectors, selection, first, count } of batches) {
    for (let i = 0; i < count; i++) {
      const solutionRow = selection === null ? first + i : selection[i]!;
      const sparqlBindings = sparqlVariables.flatMap(({ key, type, pattern }, variableOrdinal) => {
        const sparqlCell = cellAt(solutionVectors[variableOrdinal]!, type, solutionRow);
        if (sparqlCell === null) return [];
        const sparqlTerm = String(sparqlCell);
        if (blankNodePattern.test(sparqlTerm)) return [`${key}:{"type":"bnode","value":${JSON.stringify(sparqlTerm.slice(2))}}`];
        return [`${key}:{"type":"${pattern.test(sparqlTerm) ? 'uri' : 'literal'}","value":${JSON.stringify(sparqlTerm)}}`];
      });
      resultsText += `${bindingSeparator}{${sparqlBindings.join()}}`;
      bindingSeparator = ',';
      if (++bindingRowCount % bindingRowsAtOnce !== 0) continue;
      yield Buffer.from(resultsText);
      resultsText = '';
    }
  }
  yield Buffer.from(`${resultsText}]}}`);
}
