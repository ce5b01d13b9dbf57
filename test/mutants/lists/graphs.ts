/** Patterns and the languages beside SQL. */
import type { Mutant } from '../mutant.ts';

const byPatterns = ['test/planner/graph/patterns.test.ts'];
const bySparql = ['test/doors/http/sparql.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'a node without a label has edges',
    file: 'src/planner/languages/pattern-chains.ts',
    find: 'if (needsEdge && isAnyNode && labels.length === 0',
    replace: 'if (isAnyNode && labels.length === 0',
    killedBy: byPatterns,
  },
  {
    name: 'collect of nothing is NULL',
    file: 'src/planner/operators/cell-accumulators.ts',
    find: '(this.#cellFolding.ofNothing ?? null)',
    replace: 'null',
    killedBy: byPatterns,
  },
  {
    name: 'a backslash in a pattern is a character',
    file: 'src/planner/languages/sql-lexer.ts',
    find: "const hasEscapes = tokenKind === 'string' && this.#isPattern();",
    replace: 'const hasEscapes = false;',
    killedBy: byPatterns,
  },
  {
    name: 'a statement of a known shape has no escapes',
    file: 'src/planner/languages/sql-shapes.ts',
    find: 'if (stringCharCode >= surrogatesFrom || stringCharCode === backslashCode) return -1;',
    replace: 'if (stringCharCode >= surrogatesFrom) return -1;',
    killedBy: ['test/planner/languages/sql-shapes.test.ts', ...byPatterns],
  },
  {
    name: 'a walk of no edges begins at nodes that have some',
    file: 'src/planner/languages/pattern-chains.ts',
    find: '(adjacentEdge.hops === null || adjacentEdge.hops.least === null)',
    replace: 'true',
    killedBy: byPatterns,
  },
  {
    name: 'a condition on what a walk begins at is asked of its ends',
    file: 'src/planner/passes/push-down-filters.ts',
    find: 'const inputWidth = input === null ? node.columns.length : input.columns.length;',
    replace: 'const inputWidth = 0;',
    killedBy: byPatterns,
  },
  {
    name: 'a local name keeps its backslash',
    file: 'src/planner/languages/sparql.ts',
    find: ".replaceAll(/\\\\(.)/g, '$1')",
    replace: '',
    killedBy: bySparql,
  },
  {
    name: 'a blank node is told as an IRI',
    file: 'src/planner/formats/sparql-results.ts',
    find: 'if (blankNodePattern.test(sparqlTerm))',
    replace: 'if (blankNodePattern.test(sparqlTerm) && sparqlTerm.length > 1_000)',
    killedBy: bySparql,
  },
];
