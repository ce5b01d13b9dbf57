/** What must hold of every table function in the list. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { tableFunctions } from '../../../src/planner/table-functions/all.ts';
import { shapes } from '../../leaks/shapes.ts';

const documented = ['search', 'graph', 'languages', 'domain']
  .map((page) => readFileSync(new URL(`../../../docs/${page}.md`, import.meta.url), 'utf8'))
  .join('');

describe.each(tableFunctions.map((each) => [each.name, each] as const))('%s', (name, { arguments: specs, summary }) => {
  test('is asked in the leak matrix', () => {
    expect(shapes.filter(({ sql, refused }) => sql.includes(name) && refused === undefined)).not.toEqual([]);
  });

  test('names its arguments in upper case, each once, and says what they are', () => {
    expect(specs.map((spec) => spec.name)).toEqual([...new Set(specs.map((spec) => spec.name.toUpperCase()))]);
    for (const text of [summary, ...specs.map((spec) => spec.summary)]) expect(text.length).toBeGreaterThan(7);
  });

  test('is documented, with every argument', () => {
    expect(documented).toContain(`### ${name}`);
    for (const { name: argument, summary: what } of specs) expect(documented).toContain(`| \`${argument}\` | ${what} |`);
  });
});
