/** Mistakes that only wrong rows show: the oracles over random statements must notice them. */
import type { Mutant } from '../mutant.ts';

const matches = 'src/planner/operators/join-matches.ts';
const dense = 'src/planner/operators/dense-integers.ts';
const scan = 'src/planner/operators/scan.ts';
const like = 'src/planner/expressions/like.ts';

const bySqlite = ['test/planner/sqlite-differential.test.ts'];
const byEachOther = ['test/planner/sql-metamorphic.test.ts'];
const byLongTexts = ['test/planner/executor/long-texts.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'oracles: right rows that came out come out again without a partner',
    file: matches,
    find: 'met[rights[n]!] = 1',
    replace: 'met[rights[n]!] = 0',
    killedBy: bySqlite,
  },
  {
    name: 'oracles: a left row without a partner gets the first right one',
    file: matches,
    find: 'this.#rights[count++] = -1;',
    replace: 'this.#rights[count++] = 0;',
    killedBy: bySqlite,
  },
  {
    name: 'oracles: what ON says of the kept side of an outer join removes its rows',
    file: 'src/planner/passes/push-down-filters.ts',
    find: "if (side === 'left' && !keepsLeft) toLeft.push(each);",
    replace: "if (side === 'left') toLeft.push(each);",
    killedBy: byEachOther,
  },
  {
    name: 'oracles: INTERSECT answers what EXCEPT should',
    file: 'src/planner/operators/set-operation.ts',
    find: "this.#op === 'intersect' ? inRight : 0",
    replace: "this.#op === 'except' ? inRight : 0",
    killedBy: bySqlite,
  },
  {
    name: 'oracles: a union under WITH RECURSIVE is ordered by the names of its list',
    file: 'src/planner/binding/query-binder.ts',
    find: 'combined(body.op, start, step, body.place)',
    replace: 'combined(body.op, base, step, body.place)',
    killedBy: bySqlite,
  },
  {
    name: 'oracles: a recursion by UNION keeps rows that were there before',
    file: 'src/planner/operators/recursive.ts',
    find: "node.op === 'union'\n",
    replace: 'false\n',
    killedBy: bySqlite,
  },
  {
    name: 'oracles: SUM(DISTINCT) adds a value as often as it comes',
    file: 'src/planner/operators/pair-numbers.ts',
    find: 'if (places[place] !== 0) continue;',
    replace: '',
    killedBy: bySqlite,
  },
  {
    name: 'oracles: keys that are all NULL make a table of no size',
    file: dense,
    find: 'range.least > range.most || ',
    replace: '',
    killedBy: bySqlite,
  },
  {
    name: 'oracles: a page shows what was written behind its basis',
    file: scan,
    find: 'this.#execution.pinned === null || block.count === 0',
    replace: 'block.count >= 0',
    killedBy: byEachOther,
  },
  {
    name: 'oracles: the rest of a block of long texts begins anew',
    file: scan,
    find: 'selection: selection.subarray(step)',
    replace: 'selection',
    killedBy: byLongTexts,
  },
  {
    name: 'like: the upper half of a long segment with _ is forgotten',
    file: like,
    find: 'high = (high << 1) | (low >>> 31);',
    replace: 'high <<= 1;',
    killedBy: ['test/planner/expressions/like.test.ts'],
  },
  {
    name: 'formats: few rows of much text hold up everybody',
    file: 'src/planner/formats/json-rows.ts',
    find: 'if (written < batch.count || writer.length > most) {',
    replace: 'if (written < batch.count) {',
    killedBy: ['test/planner/formats/json-rows.test.ts'],
  },
];
