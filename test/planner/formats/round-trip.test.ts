/** What is accepted can be read back, exactly; and how the bytes were cut never matters. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Exact, exactParse } from './exact-parse.ts';
import { cells, read, typesOf, written } from './ingest-fixtures.ts';

const name = fc.oneof(
  fc.constantFrom('a', 'b', 'id', 'long name', 'né', 'constructor', 'quo"te', 'x'.repeat(40)),
  fc
    .string({ unit: 'binary', minLength: 1, maxLength: 12 })
    .filter((text) => !/^_|\p{Cc}|^(tenant_id|namespace_path|system_\w+|valid_\w+)$/u.test(text)),
);
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.string({ maxLength: 8 }),
);
const integerToken = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String);
const numberToken = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => {
  const token = Object.is(value, -0) ? '-0' : String(value);
  return /[.e]/.test(token) || token === '-0' ? token : `${token}.0`;
});
const nested = fc.json({ maxDepth: 3 }).filter((json) => /^[[{]/.test(json));
/** Every character as itself or as an escape. */
const textToken = fc
  .tuple(text, fc.boolean())
  .map(([value, escape]) =>
    escape
      ? `"${Array.from({ length: value.length }, (_, i) => `\\u${value.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`
      : JSON.stringify(value),
  );
const token = fc.oneof(
  fc.constantFrom('null', 'true', 'false', '0', '-1', '1e5', '0.1'),
  integerToken,
  numberToken,
  textToken,
  nested,
);
const space = fc.constantFrom('', '', '', ' ', '\t', ' \r ');

/** A row as text: unique names, any values, any white space that keeps to the line. */
const rowText = fc
  .uniqueArray(fc.tuple(name, token, space, space), { selector: ([key]) => key, maxLength: 8 })
  .map(
    (pairs) =>
      `{${pairs.map(([key, value, before, after]) => `${before}${JSON.stringify(key)}${after}:${before}${value}${after}`).join(',')}}`,
  );

function withoutNulls(rows: Exact): Exact {
  return (rows as Map<string, Exact>[]).map((row) => new Map([...row].filter(([, value]) => value !== null)));
}

/** An integer that met decimals reads back as the same number, and a scalar that met text as its text. */
function asTexts(value: Exact): Exact {
  if (Array.isArray(value)) return value.map(asTexts);
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [key, asTexts(item)]));
  if (value === null) return value;
  const text = String(value);
  return text.trim() === '' || Number.isNaN(Number(text)) ? text : String(Number(text));
}

it('any rows come back as they were sent, in every body form', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(rowText, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 5 }),
      async (rows, batchRows) => {
        for (const body of [rows.join('\n'), `[${rows.join(',')}]`, `{"rows":[${rows.join(' , ')}]}`]) {
          const { batches, error } = await read(body, { batchRows });
          expect(error).toBeNull();
          expect(batches.flatMap(({ rejections }) => rejections)).toEqual([]);
          const back = batches.flatMap((batch) => withoutNulls(written(batch.rows)) as Exact[]);
          const sent = rows.flatMap((row) => withoutNulls(exactParse(`[${row}]`)) as Exact[]);
          expect(back.map((row) => asTexts(row))).toEqual(sent.map((row) => asTexts(row)));
          // Where no column mixed kinds, integers are compared exactly: one of numbers that met texts has 100000 for 1e5.
          const decimals = /\d[.eE]/.test(rows.join(''));
          const pure = batches.every(
            (batch) =>
              batch.mixed.length === 0 &&
              Object.values(typesOf(batch)).every((type) => type !== 'number' && !(type === 'json' && decimals)),
          );
          if (pure) expect(back).toEqual(sent);
        }
      },
    ),
    { numRuns: 300 },
  );
});

it('any cut of a body into chunks gives the same batches', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.oneof(
          { weight: 6, arbitrary: rowText },
          { weight: 1, arbitrary: fc.constantFrom('{"a":', 'x', '{"a":1,"a":2}', '[]', '{"v":"\\ud800"}') },
        ),
        { maxLength: 8 },
      ),
      fc.constantFrom('lines', 'array', 'wrapper'),
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 4 }),
      async (rows, form, chunkSize, batchRows) => {
        const body =
          form === 'lines'
            ? `${rows.join('\n')}\n`
            : form === 'array'
              ? `[${rows.join(',')}]`
              : `{"rows":[${rows.join(',')}],"x":1}`;
        const whole = await read(body, { batchRows });
        const cut = await read(body, { batchRows }, chunkSize);
        expect(cells(cut.batches)).toEqual(cells(whole.batches));
        expect(cut.batches.map(({ firstIndex, indexes }) => [firstIndex, indexes])).toEqual(
          whole.batches.map(({ firstIndex, indexes }) => [firstIndex, indexes]),
        );
        const facts = ({ batches }: typeof whole): unknown =>
          batches.flatMap(({ rejections }) => rejections.map(({ index, code }) => [index, code]));
        expect(facts(cut)).toEqual(facts(whole));
        expect(String(cut.error)).toBe(String(whole.error));
      },
    ),
    { numRuns: 300 },
  );
});

it('CSV of any texts comes back as sent, however it is cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 8 }),
      fc.integer({ min: 1, max: 30 }),
      fc.constantFrom('\n', '\r\n'),
      async (rows, chunkSize, lineEnd) => {
        const quote = (value: string): string => `"${value.replaceAll('"', '""')}"`;
        const body = `x,y${lineEnd}${rows.map(([x, y]) => `${quote(x)},${quote(y)}`).join(lineEnd)}`;
        const { batches, error } = await read(body, { batchRows: 3 }, chunkSize);
        expect(error).toBeNull();
        expect(cells(batches)).toEqual(rows.map(([x, y]) => ({ x, y })));
      },
    ),
    { numRuns: 300 },
  );
});

it('any bytes at all end in batches and refusals or in one typed error', async () => {
  const fragments = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    ':',
    ',',
    '\\',
    '\n',
    'null',
    '1',
    '-',
    '.',
    'e',
    'a',
    '\\u',
    '"rows"',
    '{"a":1}',
    '\u00e9',
    ' ',
  );
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.array(fragments, { maxLength: 30 }).map((parts) => Buffer.from(parts.join(''))),
        fc.uint8Array({ maxLength: 60 }),
      ),
      fc.integer({ min: 1, max: 20 }),
      async (body, chunkSize) => {
        const { batches, error } = await read(body, { batchRows: 2 }, chunkSize);
        if (error !== null) expect(error).toMatchObject({ name: 'ServiceError' });
        for (const batch of batches) expect(written(batch.rows)).toHaveLength(batch.rows.length);
        const whole = await read(body, { batchRows: 2 });
        expect(cells(batches)).toEqual(cells(whole.batches));
      },
    ),
    { numRuns: 1000 },
  );
});

it('a line is accepted exactly when JSON.parse takes it and no rule forbids it', async () => {
  const fragments = fc.constantFrom(
    '{"a":',
    '{"b":',
    '}',
    '[',
    ']',
    '"x"',
    '"\\u0041"',
    '1',
    '-0',
    '0.5',
    'e1',
    'E+2',
    ',',
    ' ',
    'true',
    'nul',
    'null',
    '{}',
    '"c":',
    '01',
    '-',
    '\\',
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fragments, { minLength: 1, maxLength: 7 }), async (parts) => {
      const line = `{"z":${parts.join('')}}`;
      let parsed: unknown;
      try {
        parsed = JSON.parse(line);
      } catch {
        parsed = undefined;
      }
      const { batches } = await read(`${line}\n`);
      const refusal = batches[0]!.rejections[0];
      if (parsed === undefined) expect(refusal?.code, line).toBe('REL_PARSE');
      else if (refusal)
        expect(refusal, line).toMatchObject({
          code: 'REL_INVALID',
          detail: expect.stringMatching(/given twice|beyond a 64-bit/) as string,
        });
      else expect(cells(batches)).toHaveLength(1);
    }),
    { numRuns: 2000 },
  );
});
