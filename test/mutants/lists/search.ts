/** Mistakes about which texts a search finds. */
import type { Mutant } from '../mutant.ts';

const sizes = ['test/planner/equal-at-size.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'search: of rows that were gathered, those of the first chunk alone are found',
    file: 'src/projections/rows/scan/scan.ts',
    in: 'withAddresses',
    find: 'const isGathered = rowBlock.first !== first || rowBlock.selection !== rows;',
    replace: 'const isGathered = false;',
    killedBy: sizes,
  },
  {
    name: 'search: texts that no segment stores are absent',
    file: 'src/projections/rows/scan/scan.ts',
    find: "if (computedTexts.has(name) || (name === 'id' && idIsKey)) return false;",
    replace: '',
    killedBy: sizes,
  },
  {
    name: 'search: a word that capitals part is there by its parts alone',
    file: 'src/projections/rows/indexes/text/text-builder.ts',
    in: 'IndexTerms.#addWholeWord',
    find: 'if (wholeWidth < 2 || wholeEnd - wholeStart > TERM_MAX) return;',
    replace: 'return;',
    killedBy: ['test/planner/search/words.test.ts'],
  },
  {
    name: 'search: parentheses are passed over',
    file: 'src/governance/text-search/text-query.ts',
    find: "booleanPiece === '(' ? (pieceAt++, parseGroup(depth + 1, isInside)) :",
    replace: "booleanPiece === '(' ? (pieceAt++, null) :",
    killedBy: ['test/planner/search/words.test.ts'],
  },
];
