/** Mistakes about which texts a search finds. */
import type { Mutant } from '../mutant.ts';

const sizes = ['test/planner/equal-at-size.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'search: of rows that were gathered, those of the first chunk alone are found',
    file: 'src/projections/rows/scan/scan.ts',
    in: 'withAddresses',
    find: 'const gathered = rowBlock.first !== first || rowBlock.selection !== rows;',
    replace: 'const gathered = false;',
    killedBy: sizes,
  },
  {
    name: 'search: texts that no segment stores are absent',
    file: 'src/projections/rows/scan/scan.ts',
    find: "if (madeTexts.has(name) || (name === 'id' && idIsKey)) return false;",
    replace: '',
    killedBy: sizes,
  },
  {
    name: 'search: a word that capitals part is there by its parts alone',
    file: 'src/projections/rows/indexes/text/text-builder.ts',
    in: 'Terms.#whole',
    find: 'if (width < 2 || to - from > TERM_MAX) return;',
    replace: 'return;',
    killedBy: ['test/planner/search/words.test.ts'],
  },
  {
    name: 'search: parentheses are passed over',
    file: 'src/governance/text-search/text-query.ts',
    find: "piece === '(' ? (at++, group(depth + 1, isInside)) :",
    replace: "piece === '(' ? (at++, null) :",
    killedBy: ['test/planner/search/words.test.ts'],
  },
];
