/** Statements whose text comes in pieces, and rows behind them as ClickHouse's forms write them. */
import { describe, expect, test } from 'vitest';
import { inputColumns, inputForm, readRows } from '../../../src/doors/columnar/insert-formats.ts';
import { beginsInsert, type ColumnarStatement, statementOf } from '../../../src/doors/columnar/statement.ts';
import type { ColumnType } from '../../../src/log/values/value.ts';

const facts = { database: 'default', user: 'me', parameters: new Map<string, string>() };

describe('an INSERT that comes in pieces is the same statement', () => {
  test.each([
    "/* by 'a tool' */ -- and a line\nINSERT INTO TABLE default.`T x` (a, `b c`) SETTINGS async_insert = 1 FORMAT TSV \n\n1\n",
    "INSERT INTO T (a) VALUES ('x'), (1)",
    'insert into T format JSONEachRow\n{"a":1}\n',
  ])('%j', (text) => {
    const whole = statementOf(text, facts)!;
    expect(whole.kind).toBe('insert');
    const insert = whole as Extract<ColumnarStatement, { kind: 'insert' }>;
    for (let at = 0; at < text.length; at++) {
      const begun = text.slice(0, at);
      expect(beginsInsert(begun)).not.toBe(false);
      const early = statementOf(begun, facts, false);
      if (early !== null) expect(early).toEqual(whole);
      else expect(at).toBeLessThanOrEqual(insert.dataAt + 1);
    }
  });

  test('rows begin on the line below, or behind the blanks of its own', () => {
    const rowsOf = (text: string): string => {
      const statement = statementOf(text, facts) as Extract<ColumnarStatement, { kind: 'insert' }>;
      return text.slice(statement.dataAt);
    };
    expect(rowsOf('INSERT INTO T FORMAT TSV\n\n\tx\n')).toBe('\n\tx\n');
    expect(rowsOf('INSERT INTO T FORMAT TSV \t a\n')).toBe('a\n');
  });
});

/** Bytes one by one, so that every row is in pieces. */
async function* oneByOne(text: string): AsyncGenerator<Uint8Array, void> {
  for (const byte of Buffer.from(text)) yield Uint8Array.of(byte);
}

async function converted(format: string, types: Readonly<Record<string, ColumnType | null>>, text: string): Promise<string> {
  const form = inputForm(format);
  inputColumns(Object.keys(types), null, form.needsColumns);
  const columns = Object.entries(types).map(([name, type]) => ({ name, type }));
  let out = '';
  for await (const piece of readRows(form, oneByOne(text), columns)) out += Buffer.from(piece).toString();
  return out;
}

describe('rows', () => {
  test('of one column that are empty are empty texts, and blank lines between others are none', async () => {
    expect(await converted('TSV', { a: 'string' }, 'x\n\ny\n')).toBe('"x"\n""\n"y"\n');
    expect(await converted('CSV', { a: 'string' }, '"x"\n""\n\n"y"')).toBe('"x"\n""\n\\N\n"y"\n');
    expect(await converted('TSVWithNames', { a: 'string' }, 'a\n\n')).toBe('"a"\n""\n');
    expect(await converted('CSV', { a: 'string', b: 'string' }, '"x","y"\n\n"z",""\n')).toBe('"x","y"\n"z",""\n');
  });

  test('keep texts in quotes that look like numbers, and NULL in none apart from the text', async () => {
    expect(await converted('CSV', { a: null, b: null }, '"00123",7\n')).toBe('"00123",7\n');
    expect(await converted('CSV', { a: 'string', b: 'string' }, '"\\N",\\N\n')).toBe('"\\N",\\N\n');
    expect(await converted('TSV', { a: 'string', b: 'string' }, '\\\\N\t\\N\n')).toBe('"\\N",\\N\n');
  });

  test('of JSON are as long as a row may be', () => {
    const columns = [{ name: 'a', type: 'integer' as const }];
    for (const letters of ['x'.repeat(15_000_000), '\\"'.repeat(7_000_000)]) {
      const [convert, compact] = ['JSONEachRow', 'JSONCompactEachRow'].map((name) => inputForm(name).converter(columns)!);
      expect(convert!(`{"b":"${letters}","a":"1"}`) === `{"b":"${letters}","a":1}`).toBe(true);
      expect(compact!(`["${letters}"]`) === `{"a":"${letters}"}\n`).toBe(true);
    }
  });

  test('of JSON in which a text never ends are read once', async () => {
    const escapes = '\\"'.repeat(500_000);
    const columns = [{ name: 'a', type: 'integer' as const }];
    const convert = inputForm('JSONEachRow').converter(columns)!;
    expect(convert(`{"a":"1","b":"${escapes}`)).toBe(`{"a":1,"b":"${escapes}`);
    expect(() => inputForm('JSONCompactEachRow').converter(columns)!(`["${escapes}`)).toThrow('does not end');
  });
});
