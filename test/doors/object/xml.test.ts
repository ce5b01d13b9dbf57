import { expect, test } from 'vitest';
import { xmlMembers } from '../../../src/doors/object/xml.ts';

const listed = { element: 'Object', most: 1_000, otherwise: 'too many' } as const;

test('tags that never end are read once, and refused', () => {
  for (const text of ['<Delete'.repeat(100_000), `<Delete><${'a'.repeat(500_000)}`, `<Delete>${'<a '.repeat(100_000)}></Delete>`])
    expect(() => xmlMembers(text, 'Delete', listed)).toThrow('well-formed');
});

test('elements are counted, whatever their attributes say', () => {
  const object = '<Object n="a &gt; b"><Key>k</Key></Object>';
  expect(xmlMembers(`<Delete xmlns="x">${object}</Delete>`, 'Delete', listed)).toEqual({ Object: [{ Key: 'k' }] });
  expect(() => xmlMembers(`<Delete>${object.repeat(1_001)}</Delete>`, 'Delete', listed)).toThrow('too many');
  expect(() => xmlMembers(`<Delete>${'<a x="<">'.repeat(20)}${'</a>'.repeat(20)}</Delete>`, 'Delete', listed)).toThrow(
    'well-formed',
  );
  expect(() => xmlMembers(`<Delete>${'<a>'.repeat(20)}${'</a>'.repeat(20)}</Delete>`, 'Delete', listed)).toThrow('too deeply');
});

test.each(['<D/', '<Delete', '<Delete/', '<', '<Delete></Delete', '<?xml'])('%s is not well-formed', (text) => {
  expect(() => xmlMembers(text, 'Delete', listed)).toThrow('well-formed');
});
