/** Reasons, texts that are sought, recipes under seal, and the envelope of a receipt, each by itself. */
import { createPublicKey, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ErasureReason } from '../../../src/governance/erasure/erasure-reason.ts';
import {
  commitmentOf,
  commitmentTest,
  keyIdOf,
  receiptOf,
  receiptType,
  saltOf,
} from '../../../src/governance/erasure/erasure-receipt.ts';
import { SubjectNames } from '../../../src/projections/subject-names.ts';
import { mentionsOf } from '../../../src/governance/erasure/subject-mentions.ts';
import { KeyedTextSeals } from '../../../src/governance/erasure/text-seals.ts';
import { sealedKeyOf } from '../../../src/log/keys/sealed-text.ts';
import { CommitmentTarget, TextTarget } from '../../../src/governance/erasure/scan-target.ts';
import { noteSigner } from '../../../src/log/tree/checkpoint-note.ts';
import type { Vector } from '../../../src/log/values/columns.ts';
import { VectorBuilder } from '../../../src/log/values/vector-builder.ts';
import { MemorySubjectKeys } from '../../log/memory-subject-keys.ts';
import { TestRandom } from '../../harness.ts';

describe('a reason', () => {
  test.each([
    ['alice wrote', 'alice', [], '[erased] wrote'],
    ['ALICE and Alice', 'alice', [], '[erased] and [erased]'],
    ['on behalf of Zoe\u0308', 'Zoë', [], 'on behalf of [erased]'],
    ['lives in Oslo, 12 Street', 'x9', ['oslo', '12', ''], 'lives in [erased], 12 Street'],
    ['aaaa', 'aa', [], '[erased][erased]'],
    ['İstanbul alice', 'alice', [], 'İstanbul [erased]'],
  ])('%s', (text, subject, cells, kept) => {
    const reason = new ErasureReason(text, subject);
    for (const cell of cells) reason.free(cell);
    expect(reason.text).toBe(kept);
  });
});

describe('what is sought', () => {
  const hmacKey = new Uint8Array(32).fill(3);
  const commitment = commitmentOf(saltOf(hmacKey, 'acme', 'alice'), 'alice');
  const both = [new TextTarget('alice'), new CommitmentTarget(hmacKey, 'acme', commitment)];

  test.each(both)('is found as a whole text, and as a word of another: $method', (sought) => {
    expect(['alice', 'Alice', 'alice ', 'bob'].map((text) => sought.is(text))).toEqual([true, false, false, false]);
    const texts = ["WHERE who = 'alice'", 'seen alice, and bob', 'malice', '{"a":"alice"}'];
    expect(texts.map((text) => sought.isIn(text))).toEqual([true, true, false, true]);
  });

  test.each(both)('in columns of either layout, and never in a NULL: $method', (sought) => {
    const builder = new VectorBuilder('string', 4);
    for (const cell of ['alice', null, 'bob', 'alice']) builder.append(cell);
    const text = builder.build() as Extract<Vector, { kind: 'text' }>;
    const words = ['bob', 'alice'];
    const dictionary = { size: 2, text: (code: number) => words[code]!, codeOf: (word: string) => words.indexOf(word) };
    const dict = { kind: 'dict', values: Int32Array.of(1, 1, 0, 1), nulls: Uint8Array.of(0, 1, 0, 0), dictionary } as const;
    for (const vector of [text, dict]) {
      const says = sought.column('string')(vector);
      expect([0, 1, 2, 3].map((row) => says(row))).toEqual([true, false, false, true]);
    }
  });

  test.each(both)('in JSON wherever a text is that, however it is spelled: $method', (sought) => {
    const cells = ['{"by":["alice"]}', '[{"a":{"b":"\\u0061lice"}}]', '{"alice":1}', '"alice b"', '[7]', '"\\"alice\\""'];
    const builder = new VectorBuilder('json', cells.length);
    for (const cell of cells) builder.append(cell);
    const says = sought.column('json')(builder.build() as Extract<Vector, { kind: 'text' }>);
    expect(cells.map((_, row) => says(row))).toEqual([true, true, true, false, false, false]);
  });

  test.each(both)('in JSON as long as a row may be: $method', (sought) => {
    const builder = new VectorBuilder('json', 2);
    for (const letters of ['x'.repeat(15_000_000), '\\"'.repeat(7_000_000)]) builder.append(`{"a":"${letters}","by":"alice"}`);
    const says = sought.column('json')(builder.build() as Extract<Vector, { kind: 'text' }>);
    expect([says(0), says(1)]).toEqual([true, true]);
  });

  test('a text is told by a commitment as the commitment was made, whatever is in it and however long it is', () => {
    for (const text of ['', 'alice', 'Grüße, 日本 😀', '\ud800', 'x'.repeat(5_000), 'a\0b']) {
      for (const tenant of ['acme', null]) {
        const says = commitmentTest(hmacKey, tenant, commitmentOf(saltOf(hmacKey, tenant, text), text));
        expect([text, 'alice2', `${text} `, text].map(says)).toEqual([true, false, false, true]);
      }
    }
  });

  test('another tenant’s subject of the same text has another commitment, and no tenant is none of them', () => {
    const commitments = ['acme', 'globex', '', null].map((tenant) => commitmentOf(saltOf(hmacKey, tenant, 'alice'), 'alice'));
    expect(new Set(commitments).size).toBe(4);
  });
});

describe('a sealed text', () => {
  const keys = new MemorySubjectKeys(new TestRandom(5));
  let made = 0;
  const seals = new KeyedTextSeals({ keys, ids: { next: () => `id ${++made}` }, random: new TestRandom(9) });

  test('opens until its key is destroyed, and each has one of its own', async () => {
    const [first, second] = [seals.seal('{"a":"alice"}'), seals.seal('{"a":"alice"}')];
    expect([seals.open(first), seals.open(second), first.includes('alice')]).toEqual(['{"a":"alice"}', '{"a":"alice"}', false]);
    expect(sealedKeyOf(first)).not.toEqual(sealedKeyOf(second));
    await keys.destroy(sealedKeyOf(first), 'ers_1');
    expect([seals.open(first), seals.open(second)]).toEqual([null, '{"a":"alice"}']);
  });

  test('of an earlier version is itself; one that left the log is none; one that was changed is an error', () => {
    expect([seals.open('{"act":"note"}'), sealedKeyOf('{"act":"note"}'), seals.open('')]).toEqual(['{"act":"note"}', [], null]);
    const sealed = JSON.parse(seals.seal('text')) as { text: string };
    const changed = JSON.stringify({ ...sealed, text: Buffer.alloc(20).toString('base64') });
    expect(() => seals.open(changed)).toThrow('does not open');
  });
});

test('an entry that is not on disk yet is left to the scan, which skips what the search for mentions has read', async () => {
  const [read, placed] = [
    { kind: 'rule', leaf: 7, position: 7, path: 'acme' } as const,
    { kind: 'job', leaf: 8, position: 8, path: 'acme' } as const,
  ];
  const none = { all: () => [], mentioning: () => [], keysOf: () => [] };
  const { positions, links } = await mentionsOf('acme', new SubjectNames(['alice']), {
    log: {
      async *read(leaf) {
        const context = { branch: 'main', tenant: 'acme', path: 'acme', principal: 'ann', door: 'http', purpose: null } as const;
        const body = { kind: 'rule', content: '{"of":"alice"}' } as const;
        const rest = { context: { ...context, correlationId: 'c', policyDigest: '' }, position: leaf, positions: 1, time: 1n };
        if (leaf === read.leaf) yield { body, leaf, ...rest };
      },
    },
    exhibits: none,
    openEntries: { searchable: () => [read, placed] },
    views: none,
    removedKeys: none,
    seals: { open: (stored) => stored },
    yieldTurn: async () => undefined,
  });
  expect([positions, [...links]]).toEqual([[7], [7]]);
});

test('an envelope is DSSE: Ed25519 over the pre-authenticated encoding of the canonical receipt', () => {
  const signer = noteSigner(new Uint8Array(32).fill(1));
  const place = { position: 7, issuedAt: '2024-01-01T00:00:00Z', proof: 'a proof' };
  const { payload, payloadType, signatures } = receiptOf('{"b":1,"a":[]}', place, signer);
  const body = Buffer.from(payload, 'base64');
  expect(body.toString()).toBe('{"a":[],"b":1,"complete_seq":7,"issued_at":"2024-01-01T00:00:00Z","proof":"a proof"}');
  expect([payloadType, signatures[0]!.keyid]).toEqual([receiptType, keyIdOf(signer.publicKey)]);
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), signer.publicKey]);
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
  const encoded = Buffer.concat([Buffer.from(`DSSEv1 ${receiptType.length} ${receiptType} ${body.length} `), body]);
  expect(verify(null, encoded, key, Buffer.from(signatures[0]!.sig, 'base64'))).toBe(true);
});
