/** Mistakes in joins, set operations, windows, facets, groups and the codes of sounds. */
import type { Mutant } from '../mutant.ts';

const operator = (name: string): string => `src/planner/operators/${name}.ts`;
const by = (name: string): string[] => [`test/planner/executor/${name}.test.ts`];

export const mutants: readonly Mutant[] = [
  {
    name: 'operators: NULL meets NULL in a join',
    file: operator('numbered-rows'),
    find: 'firsts[0] = 0;',
    replace: '',
    killedBy: by('join'),
  },
  {
    name: 'operators: NULL meets NULL beside a key that tells rows apart',
    file: operator('checked-rows'),
    find: 'found[k] === 0 || ',
    replace: '',
    killedBy: by('join'),
  },
  {
    name: 'operators: keys of which none tells rows apart are taken for such',
    file: operator('checked-rows'),
    find: '!dense?.unique',
    replace: '!dense',
    killedBy: by('join'),
  },
  {
    name: 'operators: partners come in reverse order',
    file: operator('dense-integers'),
    find: 'for (let j = places.length - 1; j >= 0; j--) {',
    replace: 'for (let j = 0; j < places.length; j++) {',
    killedBy: by('join'),
  },
  {
    name: 'operators: an integer meets the double nearest to it',
    file: operator('numbered-rows'),
    find: 'valueNumbers(type, true)',
    replace: 'valueNumbers(type, false)',
    killedBy: by('join'),
  },
  {
    name: 'operators: what a row met is forgotten with its block',
    file: operator('join-matches'),
    find: 'this.#leftMet = met;',
    replace: '',
    killedBy: by('join'),
  },
  {
    name: 'operators: right rows without partner are left out',
    file: operator('join-matches'),
    find: 'if (met[row] === 0) selection[count++] = row;',
    replace: 'if (met[row] === 2) selection[count++] = row;',
    killedBy: by('join'),
  },
  {
    name: 'operators: pairs of keys of which one agrees are partners',
    file: operator('pair-numbers'),
    find: 'if (index < 0 || (this.#left[index] === left && this.#right[index] === right)) return index;',
    replace: 'if (index < 0 || this.#left[index] === left) return index;',
    killedBy: by('join'),
  },
  {
    name: 'operators: INTERSECT is EXCEPT',
    file: operator('set-operation'),
    find: "const wanted = this.#op === 'intersect' ? inRight : 0;",
    replace: "const wanted = this.#op === 'except' ? inRight : 0;",
    killedBy: by('set-operation'),
  },
  {
    name: 'operators: a value met before the table grew is a new one',
    file: operator('value-numbers'),
    find: 'if (met >= this.#small.length && met < length && Number.isInteger(met)) small[met] = index + 1;',
    replace: '',
    killedBy: by('set-operation'),
  },
  {
    name: 'operators: windows before the epoch floor upwards',
    file: operator('window'),
    find: 'if (rest < 0n) rest = BigInt.asIntN(64, rest + size);',
    replace: '',
    killedBy: by('window'),
  },
  {
    name: 'operators: a hop of a broken multiple is let through',
    file: operator('window'),
    find: '(size + slide - 1n) / slide > BigInt(windowsPerRowMax)',
    replace: 'size / slide > BigInt(windowsPerRowMax)',
    killedBy: by('window'),
  },
  {
    name: 'operators: a gap as long as given keeps a session together',
    file: operator('session'),
    find: 'instant - last >= gap',
    replace: 'instant - last > gap',
    killedBy: by('window'),
  },
  {
    name: 'operators: facets list the rarest value first',
    file: operator('facets'),
    find: 'occurrences[b + 1]! - occurrences[a + 1]!',
    replace: 'occurrences[a + 1]! - occurrences[b + 1]!',
    killedBy: by('facets'),
  },
  {
    name: 'operators: sums beyond 2^53 are rounded',
    file: operator('accumulators'),
    find: 'if (!(Math.abs(high) <= exactMax && Math.abs(sum) <= exactMax)) return null;',
    replace: '',
    killedBy: by('answers'),
  },
  {
    name: 'operators: H and W part equal sounds of Soundex',
    file: 'src/planner/expressions/phonetic.ts',
    find: "if (digit === '.') continue;",
    replace: '',
    killedBy: ['test/planner/expressions/phonetic.test.ts'],
  },
  {
    name: 'operators: a key that stays above points at the wrong table',
    file: 'src/planner/passes/associate-joins.ts',
    find: 'b.columns.length + key',
    replace: 'key',
    killedBy: ['test/planner/passes/associate-joins.test.ts'],
  },
];
