import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { noSeal, sealOf, textHash } from '../../../src/projections/exhibits/link-seal.ts';
import { Store } from '../store.ts';

const base = {
  exhibit: '0190b6f0-0000-7000-8000-000000000001',
  link: 1,
  previousSeal: noSeal,
  recipeHash: textHash('{"act":"note"}'),
  resultHash: textHash('"é"'),
};

test('a seal is SHA-256 over the drawn bytes', () => {
  const hex = (text: string): string => Buffer.from(text, 'utf8').toString('hex');
  const bytes = `020024${hex(base.exhibit)}0000000000000001${'00'.repeat(32)}${base.recipeHash}${base.resultHash}`;
  expect(sealOf(base)).toBe(createHash('sha256').update(Buffer.from(bytes, 'hex')).digest('hex'));
  // A text is hashed in UTF-8.
  expect(base.resultHash).toBe(createHash('sha256').update(Buffer.from('"\u00c3\u00a9"', 'latin1')).digest('hex'));
});

test('every part of a link is in its seal', () => {
  const others = [
    { ...base, exhibit: `${base.exhibit.slice(0, -1)}2` },
    { ...base, link: 2 },
    { ...base, link: 2 ** 40 + 1 },
    { ...base, previousSeal: sealOf(base) },
    { ...base, recipeHash: base.resultHash },
    { ...base, resultHash: base.recipeHash },
  ];
  expect(new Set([base, ...others].map(sealOf)).size).toBe(others.length + 1);
});

test('links of one turn follow each other, and an exhibit is opened once', () => {
  const store = new Store();
  const link = (open: boolean, recipe = '{}') =>
    store.run({ kind: 'link-exhibit', exhibit: 'e', open, act: 'note', recipe, resultHash: textHash('1') }, 'acme');
  expect(() => link(false)).toThrow('no such exhibit');
  link(true);
  link(false, '{"a":1}');
  link(false, '{"a":2}');
  expect(() => link(true)).toThrow('exists');
  const exhibit = store.projections.exhibits.exhibit('e', 'acme')!;
  expect(exhibit.path).toBe('acme');
  expect(exhibit.links.map(({ link: number }) => number)).toEqual([0, 1, 2]);
  expect(exhibit.links[0]!.previousSeal).toBe(noSeal);
  expect(exhibit.links.slice(1).map(({ previousSeal }) => previousSeal)).toEqual(
    exhibit.links.slice(0, 2).map(({ seal }) => seal),
  );
  expect(exhibit.links[2]!.seal).toBe(
    sealOf({
      exhibit: 'e',
      link: 2,
      previousSeal: exhibit.links[1]!.seal,
      recipeHash: textHash('{"a":2}'),
      resultHash: textHash('1'),
    }),
  );
});
