/** Bytes of the relational door, without a socket: messages however they are cut, values of parameters, the exchange of a login. */
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';
import { expect, test } from 'vitest';
import { ReceivedBytes } from '../../../src/doors/shared/received-bytes.ts';
import { relationalCodec } from '../../../src/doors/relational/codec.ts';
import { commandOf, splitStatements } from '../../../src/doors/relational/parse-command.ts';
import { allAtOnce } from '../../../src/planner/expressions/resumable-steps.ts';
import { parameterValue } from '../../../src/doors/relational/parameters.ts';
import { formatZonedInstant } from '../../../src/log/values/timestamp.ts';
import { ScramExchange, scramSecret } from '../../../src/governance/authentication/scram.ts';
import { seeds } from '../../fuzz/targets/relational-codec.ts';

const command = (text: string) => allAtOnce(commandOf(text));

test('cut anywhere, a stream gives the same messages', () => {
  const bytes = Buffer.from(seeds().at(-1)!);
  const read = (pieces: readonly Buffer[]): unknown[] => {
    const received = new ReceivedBytes(relationalCodec);
    return pieces.flatMap((piece) => {
      received.push(piece);
      const messages: unknown[] = [];
      for (let message = received.next(); message; message = received.next()) messages.push(message);
      return messages;
    });
  };
  const whole = read([bytes]);
  expect(whole.map((message) => (message as { kind: string }).kind)).toEqual([
    'startup',
    'password',
    'password',
    'parse',
    'bind',
    'describe',
    'execute',
    'close',
    'flush',
    'sync',
  ]);
  for (let at = 1; at < bytes.length; at++) expect(read([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(whole);
});

test('a length is refused before its bytes are waited for', () => {
  const refusal = (head: Buffer, started = true): string => {
    const received = new ReceivedBytes(relationalCodec);
    if (started) {
      received.push(Buffer.from(seeds()[0]!));
      while (received.next());
    }
    received.push(head);
    try {
      return received.next() === null ? 'more is needed' : 'read';
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  expect(refusal(Buffer.from([0x51, 0x01, 0x00, 0x00, 0x01]))).toBe('REL_TOO_LARGE');
  expect(refusal(Buffer.from([0x51, 0x00, 0xff, 0xff, 0xff]))).toBe('more is needed');
  expect(refusal(Buffer.from([0x51, 0xff, 0xff, 0xff, 0xff]))).toBe('REL_INVALID');
  expect(refusal(Buffer.from('GET / HTTP/1.1\r\n\r\n'), false)).toBe('REL_INVALID');
});

test('statements are told apart where no text, name or comment holds the semicolon', () => {
  expect(allAtOnce(splitStatements(`SELECT ';', ";" -- ;\n; ; /* ; */ BEGIN;`))).toEqual([
    `SELECT ';', ";" -- ;\n`,
    ' /* ; */ BEGIN',
  ]);
  expect(command('/* a */ -- b\n begin')).toEqual({ kind: 'begin', tag: 'BEGIN', readOnly: null });
  expect(command(`SET LOCAL annals.purpose TO 'it''s'`)).toEqual({
    kind: 'set',
    name: 'annals.purpose',
    value: "it's",
    local: true,
  });
  expect(command('WITH a AS (SELECT 1) SELECT * FROM a')).toMatchObject({ mayWrite: false });
  expect(command('WITH a AS (SELECT 1) DELETE FROM a')).toMatchObject({ mayWrite: true });
  expect(command("PURPOSE 'x' UPDATE T SET a = 1")).toMatchObject({ mayWrite: true, verb: 'UPDATE' });
});

test.each<[unknown, string | Buffer, number, number]>([
  [7n, '7', 0, 20],
  [-2n, Buffer.from([0xff, 0xfe]), 1, 21],
  [1.5, '1.50', 0, 1700],
  [true, 'yes', 0, 16],
  ['x', 'x', 0, 25],
  [1_714_557_600_000_000_000n, '2024-05-01 12:00:00+02', 0, 1184],
  [1_714_557_600_123_456_789n, '2024-05-01T10:00:00.123456789Z', 0, 1184],
  [1_714_521_600_000_000_000n, '2024-05-01', 0, 1082],
  [946_684_800_000_001_000n, Buffer.from([0, 0, 0, 0, 0, 0, 0, 1]), 1, 1184],
  ['REL_TYPE_MISMATCH', 'seven', 0, 20],
  ['REL_TYPE_MISMATCH', '9223372036854775808', 0, 20],
  ['REL_TYPE_MISMATCH', '2024-02-31', 0, 1184],
  ['REL_TYPE_MISMATCH', Buffer.from([1]), 1, 20],
  ['REL_TYPE_MISMATCH', '0.12345678901234567890', 0, 1700],
  [12_345.678, Buffer.from([0, 3, 0, 1, 0, 0, 0, 3, 0, 1, 0x09, 0x29, 0x1a, 0x7c]), 1, 1700],
])('a parameter is %s', (expected, sent, format, oid) => {
  const value = (): unknown => parameterValue(Buffer.from(sent as string), format, oid, 'string', 1);
  let got: unknown;
  try {
    got = value();
  } catch (error) {
    got = (error as { code: string }).code;
  }
  expect(got).toEqual(expected);
});

test('instants have up to six digits, or nine, and no more than it takes', () => {
  expect(formatZonedInstant(1_714_557_600_123_456_789n, 9)).toBe('2024-05-01 10:00:00.123456789+00');
  expect(formatZonedInstant(1_714_557_600_123_456_789n, 6)).toBe('2024-05-01 10:00:00.123456+00');
  expect(formatZonedInstant(1_714_557_600_500_000_000n, 6)).toBe('2024-05-01 10:00:00.5+00');
  expect(formatZonedInstant(-1n, 9)).toBe('1969-12-31 23:59:59.999999999+00');
  expect(formatZonedInstant(-1n, 6)).toBe('1969-12-31 23:59:59.999999+00');
});

test('the exchange of RFC 7677', () => {
  const secret = scramSecret('pencil', Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64'));
  // The RFC's nonce is not ours to choose: its proof is worked out anew for the one that was given.
  const exchange = new ScramExchange(secret, { fill: (target) => target });
  const first = exchange.challenge('n,,n=user,r=rOprNGfwEbeRWgbNEkqO');
  expect(first).toBe(`r=rOprNGfwEbeRWgbNEkqO${'A'.repeat(24)},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096`);
  const withoutProof = `c=biws,r=rOprNGfwEbeRWgbNEkqO${'A'.repeat(24)}`;
  const said = `n=user,r=rOprNGfwEbeRWgbNEkqO,${first},${withoutProof}`;
  const salted = pbkdf2Sync('pencil', secret.salt, 4096, 32, 'sha256');
  const hmac = (key: Uint8Array, text: string): Buffer => createHmac('sha256', key).update(text).digest();
  const key = hmac(salted, 'Client Key');
  const proof = hmac(createHash('sha256').update(key).digest(), said).map((byte, i) => byte ^ key[i]!);
  const wrong = new ScramExchange(secret, { fill: (target) => target });
  wrong.challenge('n,,n=user,r=rOprNGfwEbeRWgbNEkqO');
  expect(() => wrong.verify(`${withoutProof},p=${Buffer.alloc(32).toString('base64')}`)).toThrow('credential');
  expect(wrong.proven).toBe(false);
  expect(exchange.verify(`${withoutProof},p=${Buffer.from(proof).toString('base64')}`)).toBe(
    `v=${hmac(hmac(salted, 'Server Key'), said).toString('base64')}`,
  );
  expect(exchange.proven).toBe(true);
  expect(() => exchange.verify(withoutProof)).toThrow('malformed');
});

test('quotes, escapes and comments of statements that the door parses itself are those of queries, and any word is a name', () => {
  const copied = `COPY "order" (desc, "a ""b""", null) FROM STDIN WITH (FORMAT csv, DELIMITER E'\\x7c', NULL U&'\\0021', HEADER 1)`;
  expect(command(copied)).toMatchObject({
    copy: { table: 'order', columns: ['desc', 'a "b"', 'null'], delimiter: '|', nullText: '!', header: true },
  });
  expect(command('CREATE TABLE t (a text NOT NULL /* , */, "b c" integer NULL -- )\n, end boolean, v vector(3))')).toMatchObject({
    command: { properties: { a: { required: true }, 'b c': { required: false }, end: { type: 'boolean' }, v: { dims: 3 } } },
  });
  expect(command('TRUNCATE public.a, "public"."B c", select')).toMatchObject({ tables: ['a', 'B c', 'select'] });
  for (const [text, refusal] of [
    ["COPY t FROM STDIN (DELIMITER 'a' 'b')", '1:34: expected ), found a string'],
    ['DROP TABLE a,\n  b c', "2:5: expected the end of the statement, found 'c'"],
    ['CREATE TABLE t (a text', '1:23: expected ), found the end of the statement'],
    ["CREATE TABLE t (a text CHECK (b = 'c)", '1:35: unterminated string'],
  ] as const)
    expect(() => command(text)).toThrow(refusal);
});
