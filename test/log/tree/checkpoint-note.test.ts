import { createHash } from 'node:crypto';
import nacl from 'tweetnacl';
import { expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { keyHash, noteSigner, openCheckpoint, signCheckpoint } from '../../../src/log/tree/checkpoint-note.ts';

const seed = Uint8Array.from({ length: 32 }, (_, i) => i);
const signer = noteSigner(seed);
const independent = nacl.sign.keyPair.fromSeed(seed);
const origin = 'annals.test/log/main';
const head = { size: 109_482, root: new Uint8Array(createHash('sha256').update('root').digest()) };
const note = signCheckpoint(origin, head, signer);
const text = `${origin}\n109482\n${Buffer.from(head.root).toString('base64')}\n`;

test('a checkpoint is a C2SP signed note, checked by an independent Ed25519', () => {
  expect(signer.publicKey).toEqual(independent.publicKey);
  const [body, signature] = note.split('\n\n') as [string, string];
  expect(`${body}\n`).toBe(text);
  const line = /^— (\S+) (\S+)\n$/.exec(signature)!;
  expect(line[1]).toBe(origin);
  const bytes = Buffer.from(line[2]!, 'base64');
  const id = createHash('sha256').update(`${origin}\n`).update(Uint8Array.of(1)).update(independent.publicKey).digest();
  expect(bytes.subarray(0, 4)).toEqual(id.subarray(0, 4));
  expect(nacl.sign.detached.verify(Buffer.from(text), bytes.subarray(4), independent.publicKey)).toBe(true);
});

test('a note signed by an independent Ed25519 opens', () => {
  const signature = nacl.sign.detached(Buffer.from(text), independent.secretKey);
  const line = Buffer.concat([keyHash(origin, independent.publicKey), signature]).toString('base64');
  expect(openCheckpoint(`${text}\n— ${origin} ${line}\n`, origin, [signer.publicKey])).toEqual(head);
});

test('lines of unknown keys are ignored, as a witness may add one', () => {
  const witness = `— witness.test ${Buffer.alloc(68, 5).toString('base64')}\n`;
  expect(openCheckpoint(note + witness, origin, [signer.publicKey])).toEqual(head);
  expect(openCheckpoint(note, origin, [new Uint8Array(32).fill(1), signer.publicKey])).toEqual(head);
});

test('every changed bit of a note is refused', () => {
  const bytes = Buffer.from(note);
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3]! ^= 1 << (bit & 7);
    expect(() => openCheckpoint(changed.toString('utf8'), origin, [signer.publicKey]), `bit ${bit}`).toThrow(ServiceError);
  }
});

const resigned = (body: string): string => {
  const line = Buffer.concat([keyHash(origin, signer.publicKey), signer.sign(Buffer.from(body))]).toString('base64');
  return `${body}\n— ${origin} ${line}\n`;
};
const root64 = Buffer.from(head.root).toString('base64');

test.each([
  [
    'a bad signature beside a good one',
    `${note}— ${origin} ${Buffer.concat([keyHash(origin, signer.publicKey), Buffer.alloc(64)]).toString('base64')}\n`,
  ],
  ['no signature of a known key', note.replace(/— .*\n$/, `— witness.test ${Buffer.alloc(68).toString('base64')}\n`)],
  ['no signature at all', text],
  ['another origin', resigned(`elsewhere\n1\n${root64}\n`)],
  ['a size with a leading zero', resigned(`${origin}\n01\n${root64}\n`)],
  ['a negative size', resigned(`${origin}\n-1\n${root64}\n`)],
  ['a root of another length', resigned(`${origin}\n1\nAAAA\n`)],
  ['a root that is not canonical base64', resigned(`${origin}\n1\n${root64.replace(/.=$/, 'B=')}\n`)],
  ['an extra line', resigned(`${origin}\n1\n${root64}\nextra\n`)],
])('%s spoils a note', (_, spoilt) => {
  expect(() => openCheckpoint(spoilt, origin, [signer.publicKey])).toThrow(ServiceError);
});
