import { describe, expect, it } from 'vitest';
import { cells, definition, property, read, typesOf } from './ingest-fixtures.ts';

describe('CSV fields', () => {
  it('quotes, doubled quotes, commas and line feeds inside them, whatever the chunks', async () => {
    const body = 'a,b\r\n"x ""y"", z","line\nfeed"\r\n"","plain"\r\nin"side, spaced \r\n';
    for (const size of [1, 2, 5, 1000]) {
      const { batches, error } = await read(body, {}, size);
      expect(error).toBeNull();
      expect(cells(batches)).toEqual([
        { a: 'x "y", z', b: 'line\nfeed' },
        { a: '', b: 'plain' },
        { a: 'in"side', b: ' spaced ' },
      ]);
    }
  });

  it('an empty unquoted field is NULL, and so is the given null text, unquoted only', async () => {
    const { batches } = await read('a,b,c\n,"",\\N\n"\\N",x,\n', { nullText: '\\N' });
    expect(cells(batches)).toEqual([{ b: '' }, { a: '\\N', b: 'x' }]);
  });

  it('a ragged record is refused alone', async () => {
    const { batches } = await read('a,b\n1,2\n3\n4,5,6\n7,8\n');
    expect(cells(batches)).toEqual([
      { a: 1n, b: 2n },
      { a: 7n, b: 8n },
    ]);
    expect(batches[0]!.rejections).toMatchObject([
      { index: 1, code: 'REL_INVALID', detail: '1 fields where the header has 2' },
      { index: 2, code: 'REL_INVALID' },
    ]);
  });

  it('a record of far more fields than a type has columns is not read to its end', async () => {
    const wide = 'x,'.repeat(200_000);
    const { batches, error } = await read(`a,b\n1,2\n${wide}\n3,4\n`);
    expect(error).toBeNull();
    expect(batches[0]!.rejections).toMatchObject([
      { index: 1, code: 'REL_PARSE', detail: expect.stringMatching(/^more than 4096/) },
    ]);
    expect((await read(wide, {}, 65_536)).error).toMatchObject({ code: 'REL_PARSE' });
  });

  it('a header without an end is refused after a MiB', async () => {
    const { error } = await read('x'.repeat(3 << 20), {}, 65_536);
    expect(error).toMatchObject({ code: 'REL_TOO_LARGE', message: expect.stringMatching(/^the CSV header is over/) });
  });

  it('text after a closing quote and a quote that never closes are refused', async () => {
    const { batches, error } = await read('a,b\n"x"y,1\n2,3\n"open,4\n');
    expect(error).toBeNull();
    expect(cells(batches)).toEqual([{ a: '2', b: 3n }].map((row) => ({ ...row, a: 2n })));
    expect(batches[0]!.rejections.map(({ index, code }) => [index, code])).toEqual([
      [0, 'REL_PARSE'],
      [2, 'REL_PARSE'],
    ]);
  });

  it('a header with a name twice, an empty name or a column that the type lacks ends the stream', async () => {
    for (const header of ['a,a', 'a,', '"a,b']) {
      expect((await read(`${header}\n1,2\n`)).error, header).not.toBeNull();
    }
    const closed = definition({ a: property('integer') });
    expect((await read('a,b\n1,2\n', { definition: closed })).error).toMatchObject({ code: 'REL_UNKNOWN_COLUMN' });
  });

  it('a file without a header is read with the names given', async () => {
    const { batches } = await read('1,"Private flight",\\N\n', { columns: ['id', 'name', 'alias'], nullText: '\\N' });
    expect(cells(batches)).toEqual([{ id: 1n, name: 'Private flight' }]);
  });

  it('bytes that are not UTF-8 are refused', async () => {
    const body = Buffer.concat([Buffer.from('a\nx\n'), Buffer.from([0xff, 0x0a]), Buffer.from('é\n')]);
    const { batches } = await read(body);
    expect(cells(batches)).toEqual([{ a: 'x' }, { a: 'é' }]);
    expect(batches[0]!.rejections).toMatchObject([{ index: 1, code: 'REL_INVALID' }]);
  });
});

describe('an open type infers CSV columns from all cells of the batch', () => {
  const columns: [string, string[], string][] = [
    ['integers', ['1', '-20', '9223372036854775807'], 'integer'],
    ['integers and decimals', ['1', '2.5'], 'number'],
    ['decimals of seventeen digits', ['-0.23499999940395355', '5e-324'], 'number'],
    ['booleans', ['true', 'false'], 'boolean'],
    ['leading zeros', ['00501', '10001'], 'string'],
    ['more digits than i64', ['1', '9223372036854775808'], 'string'],
    ['more digits than a double gives back', ['1.5', '0.12345678901234567890'], 'string'],
    ['an integer that a double would change, beside a decimal', ['9007199254740993', '0.5'], 'string'],
    ['text among integers', ['1', 'x'], 'string'],
    ['a plus sign', ['+1'], 'string'],
    ['a bare point', ['.5'], 'string'],
    ['NaN', ['NaN', '1'], 'string'],
    ['dates', ['2024-01-01'], 'string'],
    ['JSON literals of other kinds', ['null', '[1]', '{}'], 'string'],
    ['quoted digits', ['"1"', '2'], 'string'],
  ];
  for (const [name, values, type] of columns) {
    it(`${name}: ${type}`, async () => {
      const { batches } = await read(`v,w\n${values.map((value) => `${value},1`).join('\n')}\n,2\n`);
      expect(typesOf(batches[0]!)['v']).toBe(type);
      const texts = cells(batches).map((row) => row['v']);
      const expected = values.map((value) => value.replaceAll('"', ''));
      expect(texts.slice(0, -1).map(String)).toEqual(expected);
      expect(texts.at(-1)).toBeUndefined();
    });
  }

  it('a later batch that does not fit widens to text, and stays', async () => {
    const { batches } = await read('v\n1\nx"y\n2.50\ntrue\n', { batchRows: 1 });
    expect(batches.map(typesOf).map(({ v }) => v)).toEqual(['integer', 'string', 'string', 'string']);
    expect(cells(batches)).toEqual([{ v: 1n }, { v: 'x"y' }, { v: '2.50' }, { v: 'true' }]);
  });
});

describe('a declared CSV column takes the spelling of its type', () => {
  const all = definition({
    s: property('string'),
    i: property('integer'),
    n: property('number'),
    b: property('boolean'),
    t: property('timestamp'),
    j: property('json'),
    v: property('vector'),
  });
  it('accepts', async () => {
    const { batches } = await read(
      's,i,n,b,t,j,v,_pk\n007,7,7,true,2024-01-01,"{""a"":1}","[1,2]",5\ntrue,"8",1e2,false,5,1.0,"[3,4]",x\n',
      {
        definition: all,
      },
    );
    expect(batches[0]!.rejections).toEqual([]);
    expect(cells(batches)).toEqual([
      { s: '007', i: 7n, n: 7, b: true, t: 1704067200000000000n, j: '{"a":1}', v: Float32Array.of(1, 2), _pk: '5' },
      { s: 'true', i: 8n, n: 100, b: false, t: 5n, j: '1.0', v: Float32Array.of(3, 4), _pk: 'x' },
    ]);
  });
  for (const [name, value] of [
    ['i', '7.0'],
    ['i', '07'],
    ['i', 'x'],
    ['n', '1,5'],
    ['n', 'abc'],
    ['b', 'TRUE'],
    ['t', '2024-13-01'],
    ['j', 'abc'],
    ['j', '{"a"'],
    ['v', '1 2'],
  ] as const) {
    it(`${name} refuses ${value}`, async () => {
      const { batches } = await read(`${name}\n"${value.replaceAll('"', '""')}"\n`, { definition: all });
      expect(batches[0]!.rejections).toMatchObject([{ index: 0, code: 'REL_TYPE_MISMATCH' }]);
    });
  }
});
