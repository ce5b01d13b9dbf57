import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BodyDigest } from '../../../src/doors/http/body-digest.ts';

const bytes = fc.uint8Array({ maxLength: 60 });

test('the digest up to an offset is that of the bytes before it, however they came', () =>
  fc.assert(
    fc.asyncProperty(bytes, fc.array(fc.nat(60)), fc.array(fc.nat(80)), async (body, cuts, offsets) => {
      const ends = [...cuts, body.length].filter((cut) => cut <= body.length).sort((a, b) => a - b);
      async function* chunks(): AsyncGenerator<Uint8Array> {
        let at = 0;
        for (const end of ends) yield body.subarray(at, (at = end));
      }
      const digest = new BodyDigest('preface');
      const passed: number[] = [];
      for await (const chunk of digest.pass(chunks())) passed.push(...chunk);
      expect(passed).toEqual([...body]);
      for (const offset of offsets.sort((a, b) => a - b)) {
        const expected = createHash('sha256').update('preface\n').update(body.subarray(0, offset)).digest('hex');
        expect(digest.upTo(offset)).toBe(expected);
      }
      expect(digest.upTo(Infinity)).toBe(createHash('sha256').update('preface\n').update(body).digest('hex'));
      expect(new BodyDigest('other').upTo(0)).not.toBe(new BodyDigest('preface').upTo(0));
    }),
  ));
