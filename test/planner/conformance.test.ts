/** Every rule of the dialect has cases: files of `queries/` by their names, tests of `sql-rules.test.ts` by theirs. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

/** What each rule is about, and how many cases it has at least. Source: specification, "SQL dialect" rules 1 to 13. */
const rules: Readonly<Record<number, readonly [about: string, least: number]>> = {
  1: ['PURPOSE', 4],
  2: ['AS OF on both axes', 5],
  3: ['every stored version', 3],
  4: ['LIMIT AFTER', 3],
  5: ['COLLATE UNICODE', 2],
  6: ['conditions and numbers', 20],
  7: ['MATCH', 2],
  8: ['projections', 8],
  9: ['joins, subqueries, set operations, common tables, groups, order, windows, facets', 40],
  10: ['what is refused', 8],
  11: ['RANK BY and COMPUTE', 2],
  12: ['EXPLAIN', 3],
  13: ['table functions', 3],
};

/** Words of rule 9 that must each stand in a case that is answered. */
const answered = [
  / JOIN /,
  / LEFT JOIN /,
  / RIGHT JOIN /,
  / FULL JOIN /,
  /FROM \(SELECT/,
  / IN \(SELECT/,
  / UNION SELECT/,
  / UNION ALL SELECT/,
  / INTERSECT SELECT/,
  / EXCEPT SELECT/,
  /^WITH /,
  /^WITH RECURSIVE /,
  / HAVING /,
  /TUMBLE\(/,
  /HOP\(/,
  /SESSION\(/,
  / FACETS /,
];

const directory = join(import.meta.dirname, 'queries');
const files = readdirSync(directory).filter((name) => name.startsWith('rule-'));

/** `rule-09-joins.test` is about rule 9, `rule-11-13-later.test` about 11 to 13. */
function rulesOf(file: string): number[] {
  const [, first, last] = /^rule-(\d\d)(?:-(\d\d))?-/.exec(file) ?? [];
  const from = Number(first);
  return Array.from({ length: Number(last ?? first) - from + 1 }, (_, i) => from + i);
}

function casesOf(file: string): string[] {
  const blocks = readFileSync(join(directory, file), 'utf8').trimEnd().split(/\n\n+/);
  return blocks.filter((block) => block.split('\n').some((line) => line.endsWith(';')));
}

const cases = new Map<number, number>();
const count = (rule: number, more: number) => cases.set(rule, (cases.get(rule) ?? 0) + more);
for (const file of files) for (const rule of rulesOf(file)) count(rule, casesOf(file).length);
const tests = readFileSync(join(import.meta.dirname, 'sql-rules.test.ts'), 'utf8');
for (const [, rule, body] of tests.matchAll(/^describe\('rule (\d+):([\s\S]*?)^\}\);/gm)) {
  count(Number(rule), body!.split(/^ {2}test(?:\.each\([^)]*\))?\(/m).length - 1);
}

describe('the dialect', () => {
  test.each(Object.entries(rules))('rule %s has its cases', (rule, [about, least]) => {
    expect(cases.get(Number(rule)) ?? 0, about).toBeGreaterThanOrEqual(least);
  });

  test('no case is about a rule that there is not', () => {
    expect([...cases.keys()].filter((rule) => rules[rule] === undefined)).toEqual([]);
  });

  test.each(answered)('a case with %s is answered', (words) => {
    const statements = files.flatMap(casesOf).map((block) => {
      const lines = block.split('\n').filter((line) => !line.startsWith('#'));
      const end = lines.findIndex((line) => line.endsWith(';'));
      return { sql: lines.slice(0, end + 1).join(' '), refused: lines[end + 1]?.startsWith('! ') ?? true };
    });
    expect(statements.filter(({ sql, refused }) => words.test(sql) && !refused).length).toBeGreaterThan(0);
  });
});
