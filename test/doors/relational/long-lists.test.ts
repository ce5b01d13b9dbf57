import { describe, expect, test } from 'vitest';
import { commandOf, splitStatements } from '../../../src/doors/relational/parse-command.ts';
import { allAtOnce } from '../../../src/planner/expressions/resumable-steps.ts';
import { spreadBound, spreadsIn } from '../../../src/doors/relational/any-lists.ts';

const text = 'SELECT n FROM T WHERE n = ANY($1)';
const bound = (value: Buffer, format: number) => ({ values: [value], formats: [format], oids: [1016], types: null });

function binary(count: number, elements: number): Buffer {
  const bytes = Buffer.alloc(20 + elements * 12);
  bytes.writeInt32BE(1, 0);
  bytes.writeUInt32BE(20, 8);
  bytes.writeInt32BE(count, 12);
  for (let i = 0; i < elements; i++) {
    bytes.writeInt32BE(8, 20 + i * 12);
    bytes.writeBigInt64BE(BigInt(i), 24 + i * 12);
  }
  return bytes;
}

test('a list as long as one may be is spread', () => {
  const written = Buffer.from(`{${Array.from({ length: 16_384 }, (_, i) => i).join(',')}}`);
  expect(spreadBound(text, allAtOnce(spreadsIn(text)), bound(written, 0)).bound.values).toHaveLength(16_384);
  expect(spreadBound(text, allAtOnce(spreadsIn(text)), bound(binary(16_384, 16_384), 1)).bound.values).toHaveLength(16_384);
});

test('a list that is too long is refused by what is read of it until then', () => {
  const more = /\$1 has more elements than a list has at most: 16384/;
  // What stands behind the elements that are too many would be malformed.
  const written = Buffer.from(`{${'1,'.repeat(16_385)}{}}`);
  expect(() => spreadBound(text, allAtOnce(spreadsIn(text)), bound(written, 0))).toThrow(more);
  expect(() => spreadBound(text, allAtOnce(spreadsIn(text)), bound(binary(16_385, 1), 1))).toThrow(more);
});

test('an element is as long as a message may be, and ends where its quotes do', () => {
  for (const [written, value] of [
    ['x'.repeat(15_000_000), 'x'.repeat(15_000_000)],
    ['\\"'.repeat(7_000_000), '"'.repeat(7_000_000)],
  ] as const) {
    const { values } = spreadBound(text, allAtOnce(spreadsIn(text)), bound(Buffer.from(`{ "${written}" ,b}`), 0)).bound;
    expect(values.map(String).map((one, i) => one === [value, 'b'][i])).toEqual([true, true]);
  }
  for (const never of ['{"a}', '{"a\\"}', '{"a"b}', '{a,"}', '{a"b"}'])
    expect(() => spreadBound(text, allAtOnce(spreadsIn(text)), bound(Buffer.from(never), 0))).toThrow("written '{a,b}'");
});

describe('a statement of a million characters is read in steps, of some hundred characters to some thousand', () => {
  const most = 1_000_000;
  const repeated = (before: string, part: string, behind: string): string =>
    before + part.repeat(Math.floor((most - before.length - behind.length) / part.length)) + behind;
  test.each([
    ['values', repeated('SELECT * FROM public.a WHERE n IN (', '123456789,', '1)')],
    ['rows', repeated("INSERT INTO public.a VALUES ('x')", ",('some letters of a row')", '')],
    ['a written list', repeated("SELECT 1 WHERE a = ANY('{1}') AND n IN (", '123456789,', '1)')],
    ['a bound list', repeated('SELECT 1 WHERE a = ANY($1) AND n IN (', '123456789,', '1)')],
  ])('%s', (_, long) => {
    let steps = 0;
    for (const reading = commandOf(long); reading.next().done !== true; ) steps++;
    expect(steps).toBeGreaterThan(40);
  });

  test.each([
    ['COPY', repeated('COPY T (', '"a",', 'b) FROM STDIN')],
    ['DROP', repeated('DROP TABLE ', 'a,', 'b')],
    ['TRUNCATE', repeated('TRUNCATE ', 'a,', 'b')],
    ['CREATE INDEX', repeated('CREATE INDEX i ON T (', 'a,', 'b)')],
    ['schemas', repeated('SELECT * FROM ', 'public.a,', 'b')],
    ['operators behind a written list', repeated("SELECT a = ANY('{1}')", '+1', '')],
    ['written lists', repeated('SELECT 1 WHERE ', "a = ANY('{1}') OR ", 'true')],
    ['operators behind a bound list', repeated('SELECT a = ANY($1)', '+1', '')],
  ])('of %s no more is read than a statement may name', (_, long) => {
    let steps = 0;
    expect(() => {
      for (const reading = commandOf(long); reading.next().done !== true; ) steps++;
    }).toThrow('the statement has more than 16384');
    expect(steps).toBeGreaterThan(4);
    expect(steps).toBeLessThan(40);
  });

  test('texts in quotes, as they are split', () => {
    let steps = 0;
    for (const reading = splitStatements(repeated('SELECT ', "''", '')); reading.next().done !== true; ) steps++;
    expect(steps).toBeGreaterThan(40);
  });
});

test('a command is no longer than a statement may be', () => {
  expect(() => allAtOnce(commandOf(`COPY T (${'"a",'.repeat(300_000)}b) FROM STDIN`))).toThrow('longer than 1048576 characters');
});

test('schemas in front of names become blanks, and nothing else does', () => {
  const { text: bare } = allAtOnce(
    commandOf(`SELECT public.a, "public".b, 'public.c', public FROM public . "T" -- public.d`),
  ) as {
    text: string;
  };
  expect(bare).toBe(`SELECT        a,          b, 'public.c', public FROM          "T" -- public.d`);
});
