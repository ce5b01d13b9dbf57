/** Sentences of what was erased, wherever a row of somebody else repeats them: no certificate until they are gone. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ErasedWords, WordSearch } from '../../../src/governance/erasure/erased-words.ts';
import { hasWord, spellingsOf } from '../../../src/projections/subject-names.ts';
import { seedBase } from '../../runner/seed.ts';
import { Seeded } from '../../simulation/seeded.ts';
import type { InputRow } from '../../harness.ts';
import { acme, ErasureWorld, person } from './erasure-world.ts';

const sentence = 'She keeps é letters in a "blue" tin under the stairs.';
const notText = Buffer.concat([Buffer.of(0xff, 0x20), Buffer.from(sentence)]);
const other = 'He waters the orchids in the hall every second friday.';

let world: ErasureWorld;
beforeEach(async () => {
  world = await new ErasureWorld().open();
  await world.store.register('Person', { ...person, more: 'json' }, 'id');
});
afterEach(() => world.store.close());

const put = async (type: string, rows: readonly InputRow[]): Promise<void> => {
  world.tick();
  await world.store.put(type, rows, acme);
};
const alice = (more: InputRow = { name: sentence }): Promise<void> => put('Person', [{ id: 'p1', who: 'alice', ...more }]);
const residuals = async (): Promise<unknown> => {
  const { code, facts } = await world.store.refusal("ERASE SUBJECT 'alice' REASON 'r' CERTIFY", acme);
  expect(code).toBe('REL_UNPROCESSABLE');
  return facts.extras!['residuals'];
};
const word = (what: string, count = 1): unknown => ({ where: 'words', what, count });

describe('a copy is found', () => {
  test.each<[string, string, InputRow]>([
    ['a value of a key', 'KvEntry.value', { _pk: 'k', value: `seen: ${sentence}` }],
    ['a value that is no text', 'KvEntry.value_base64', { _pk: 'k', value_base64: notText.toString('base64') }],
    ['a document', 'DocumentEntry.document', { _pk: 'd', document: { a: [{ b: `once. ${sentence} twice.` }] } }],
    ['metadata of an object', 'ObjectStoreObject.metadata', { _pk: 'o', metadata: { note: sentence } }],
    [
      'bytes of an object',
      'ObjectStoreObject.body',
      { _pk: 'o', body_as: 'base64', body: Buffer.from(sentence).toString('base64') },
    ],
    [
      'bytes of an object in UTF-16',
      'ObjectStoreObject.body',
      { _pk: 'o', body_as: 'base64', body: Buffer.from(`x${sentence}`, 'utf16le').subarray(1).toString('base64') },
    ],
    ['a memory', 'MemoryItem.content', { _pk: 'm', content: sentence }],
    ['the key of a row', 'KvEntry._pk', { _pk: sentence, value: 'x' }],
  ])('in %s', async (_, what, row) => {
    await alice();
    await put(what.split('.')[0]!, [row, { ...row, _pk: 'other', [what.split('.')[1]!]: null }]);
    expect(await residuals()).toEqual([word(what)]);
    await world.store.invoke(acme, 'remove', (invocation) =>
      invocation.submit({ kind: 'remove-rows', type: what.split('.')[0]!, keys: [String(row['_pk'])] }),
    );
    expect((await world.erase()).certified).toBe(true);
  });

  test('in JSON that spells letters by numbers', async () => {
    await alice();
    await world.store.register('Note', { id: 'string', extra: 'string' }, 'id');
    await put('Note', [{ id: 'n', extra: 'x' }]);
    await world.store.execute(
      `INSERT INTO MemoryItem (_pk, derived_from) VALUES ('m', '["She keeps \\u00e9 letters in a \\"blue\\" tin under the stairs."]')`,
      [],
      acme,
    );
    expect(await residuals()).toEqual([word('MemoryItem.derived_from')]);
  });

  test('of a text that stood in JSON of the erased row', async () => {
    await alice({ more: { said: [{ words: sentence }] } });
    await put('KvEntry', [{ _pk: 'k', value: sentence }]);
    expect(await residuals()).toEqual([word('KvEntry.value')]);
  });
});

test('what stood before the erased row is a form that many fill in; where rows are made from others it is a copy all the same', async () => {
  await put('KvEntry', [{ _pk: 'form', value: sentence }]);
  await alice();
  expect((await world.erase()).certified).toBe(true);
  await put('MemoryItem', [{ _pk: 'm', content: other, tool_call_id: 'c' }]);
  await alice({ name: other });
  expect(await residuals()).toEqual([word('MemoryItem.content')]);
});

test('rows of other subjects may say the same', async () => {
  await alice();
  await put('Person', [{ id: 'p2', who: 'bob', name: sentence }]);
  expect((await world.erase()).certified).toBe(true);
});

test('who is named inside JSON of another row is named: no certificate', async () => {
  await alice();
  await put('DocumentEntry', [{ _pk: 'd', document: { people: [{ id: 'alice' }] } }]);
  expect(await residuals()).toEqual([{ where: 'cells', what: 'DocumentEntry.document', count: 1 }]);
});

test('a run that was cut off looks for the words all the same, and nothing can read them once it has ended', async () => {
  await alice();
  await put('KvEntry', [{ _pk: 'k', value: sentence }]);
  world.store.service.upkeep.erasures.close();
  expect((await world.store.refusal("ERASE SUBJECT 'alice' REASON 'r' CERTIFY", acme)).code).toBe('REL_UNAVAILABLE');
  await world.restart();
  const { erasures } = world.store.service.upkeep;
  const { projections, log, keyring } = world.store.service.store;
  await erasures.resume();
  expect(world.said.filter((line) => line.includes('KvEntry.value: 1'))).toHaveLength(1);
  await world.store.invoke(acme, 'remove', (invocation) =>
    invocation.submit({ kind: 'remove-rows', type: 'KvEntry', keys: ['k'] }),
  );
  const { certified, receipt } = await world.erase();
  const said = JSON.parse(Buffer.from(receipt!.payload, 'base64').toString('utf8'));
  expect([certified, said.verification.looked_at.words > 0]).toEqual([true, true]);
  const [erasure] = projections.erasures.all();
  const { body } = (await log.proofs.entry({ leaf: erasure!.intended.leaf }))!.open().entry;
  const { words } = JSON.parse((body as { statement: string }).statement);
  expect(keyring.subjects.opening(JSON.parse(words).key)).toBe(null);
  expect(words).not.toContain('letters');
});

test('sentences are kept with the first position that said each, and as many as an entry may hold', () => {
  const words = new ErasedWords();
  words.add(`${sentence} ${other}`, 9);
  words.add(other, 4);
  words.add('too short', 1);
  const search = ErasedWords.fromSaved(words.savedState()).search()!;
  const since = [sentence, `x ${other} y`, `${sentence}${other}`, 'nothing'].map((text) => search.sinceInText(text));
  expect(since).toEqual([9, 4, 4, Infinity]);
  const many = new ErasedWords();
  for (let i = 0; i < 20_000; i++) many.add(`this is the sentence number ${i}`, i);
  expect((JSON.parse(many.savedState()) as unknown[]).length).toBe(16_384);
});

test('sentences that begin alike, some with another, are found as by trying each', () => {
  const random = new Seeded(seedBase + 7);
  const pick = (texts: readonly string[]): string => texts[random.below(texts.length)]!;
  const words = ['seen', 'for', 'the', 'time', 'seen for', 'the 12th', 'ä', "o'clock", 'x'];
  const sentence = (): string => `seen for the ${Array.from({ length: 1 + random.below(6) }, () => pick(words)).join(' ')}`;
  for (let round = 0; round < 200; round++) {
    const sentences = new Map(Array.from({ length: 1 + random.below(40) }, (_, i) => [sentence(), i] as const));
    const search = new WordSearch(sentences);
    for (let n = 0; n < 20; n++) {
      const text = `${pick(['', 'un', 'has '])}${sentence()}${pick(['', 's', ' x'])}`;
      const tried = [...sentences].filter(([each]) => spellingsOf(each).some((spelling) => hasWord(text, spelling)));
      expect([text, search.sinceInText(text)]).toEqual([text, Math.min(Infinity, ...tried.map(([, since]) => since))]);
    }
  }
});

test('a text is compared with few of ten thousand sentences that begin alike', () => {
  const search = new WordSearch(Array.from({ length: 10_000 }, (_, i) => [`seen for the ${i}th time by somebody`, i] as const));
  const text = Buffer.from('seen for the 123456th time by somebody');
  let bytesRead = 0;
  const counted = new Proxy(text, {
    get: (bytes, index) => {
      if (typeof index === 'string' && /^\d+$/.test(index)) bytesRead++;
      const value: unknown = Reflect.get(bytes, index, bytes);
      return typeof value === 'function' ? value.bind(bytes) : value;
    },
  });
  expect(search.sinceIn(counted, 0, text.length)).toBe(Infinity);
  expect(bytesRead).toBeLessThan(2_000);
});
