import { ServiceError } from '../../../src/errors.ts';
import { describe, expect, it } from 'vitest';
import { cells, definition, property, read, typesOf } from './ingest-fixtures.ts';

const three = [{ id: 'a', n: 1n }, { id: 'b', n: 2n }, { id: 'c' }];

describe('the form of a body is told by its first byte', () => {
  const bodies: Record<string, string> = {
    NDJSON: '{"id":"a","n":1}\n{"id":"b","n":2}\n{"id":"c","n":null}\n',
    'NDJSON without a last line feed, with CRLF and blank lines': '{"id":"a","n":1}\r\n\r\n{"id":"b","n":2}\n \n{"id":"c"}',
    'a JSON array': ' [ {"id":"a","n":1} ,\n{"id":"b","n":2},{"id":"c"}]\n ',
    'a wrapper': '{"rows":[{"id":"a","n":1},{"id":"b","n":2},{"id":"c"}]}',
    'a wrapper over several lines, with more properties':
      '{\n "rows" : [\n{"id":"a","n":1},{"id":"b","n":2},{"id":"c"}\n],\n "source":{"x":[1]}, "y":1 }\n',
    CSV: 'id,n\na,1\nb,2\nc,\n',
    'CSV with CRLF and no last line feed': 'id,n\r\n"a",1\r\nb,2\r\nc,',
    'CSV after a byte-order mark': '\ufeffid,n\na,1\nb,2\nc,\n',
  };
  for (const [name, body] of Object.entries(bodies)) {
    it(`${name}, whatever the chunks`, async () => {
      for (const size of [1, 2, 3, 7, 1000]) {
        const { batches, error } = await read(body, {}, size);
        expect(error).toBeNull();
        expect(cells(batches)).toEqual(three);
        expect(batches.flatMap((batch) => batch.rejections)).toEqual([]);
      }
    });
  }

  it('an empty body is no rows', async () => {
    for (const body of ['', ' \n', '[]', '{"rows":[]}', 'id,n\n']) {
      expect(await read(body)).toEqual({ batches: [], error: null });
    }
  });

  it('Arrow is told by name, however little of it comes at once', async () => {
    for (const [beginning, what] of [
      [Buffer.from('ARROW1\0\0'), /is an Arrow file/],
      [Buffer.from([0xff, 0xff, 0xff, 0xff, 0x10, 0, 0, 0]), /Arrow IPC is malformed/],
    ] as const) {
      for (const size of [1, 100]) {
        const { error } = await read(Buffer.concat([beginning, Buffer.alloc(50)]), {}, size);
        expect(error).toMatchObject({ code: 'REL_PARSE', message: expect.stringMatching(what) });
      }
    }
    expect(cells((await read('ARROW1,b\n1,2\n')).batches)).toEqual([{ ARROW1: 1n, b: 2n }]);
    expect(cells((await read('A')).batches)).toEqual([]);
  });

  it('a header of one column with semicolons says that commas separate', async () => {
    const { error } = await read('id;amt\na;1\n');
    expect(error).toMatchObject({
      code: 'REL_INVALID',
      message: expect.stringContaining('"id;amt": fields are separated by commas'),
    });
    expect(cells((await read('"id;amt"\n1\n')).batches)).toEqual([{ 'id;amt': 1n }]);
  });
});

describe('batches', () => {
  const body = Array.from({ length: 10 }, (_, i) => (i === 4 ? '{"i":' : `{"i":${i}}`)).join('\n');

  it('end at batchRows, refused rows included, and know each row by its index in the stream', async () => {
    const { batches } = await read(body, { batchRows: 3 });
    expect(batches.map(({ firstIndex, rows }) => [firstIndex, rows.length])).toEqual([
      [0, 3],
      [3, 2],
      [6, 3],
      [9, 1],
    ]);
    expect(batches.map(({ indexes }) => indexes && [...indexes])).toEqual([null, [3, 5], null, null]);
    expect(batches[1]!.rejections).toMatchObject([{ index: 4, code: 'REL_PARSE' }]);
  });

  it('end at the same bytes and rows, whatever the chunks and whatever the type says of the rows', async () => {
    const rows = Array.from({ length: 40 }, (_, i) => `{"i":${i % 7 === 0 ? '"x"' : i},"text":"${'é'.repeat(i)}"}`);
    const bodies = [
      `${rows.join('\n')}\n{"broken\n${rows.join('\r\n\n')}`,
      `[${rows.join(' ,\n')}]`,
      `{"rows":[${rows.join(',')}],"more":[1]}\n`,
      `i,text\n${rows.map((_, i) => `${i % 7 === 0 ? 'x' : i},"é\n${i}"`).join('\n')}\n1,"broken"x\n2,y`,
    ];
    const types = [null, definition({ i: property('integer'), text: property('string') }), definition({}, true)];
    for (const text of bodies) {
      const ends = new Set<string>();
      for (const type of types) {
        for (const size of [1, 3, 64, 1000, 1 << 20]) {
          const { batches } = await read(text, { batchRows: 6, batchBytes: 300, definition: type }, size);
          const places = batches.map(({ firstIndex, endOffset }) => [firstIndex, endOffset]);
          // The reader may add the line feed that the last line lacks.
          ends.add(JSON.stringify(places.slice(0, -1)));
          expect(batches.at(-1)!.endOffset).toBeGreaterThan(batches.at(-2)!.endOffset);
        }
      }
      expect(ends.size).toBe(1);
    }
  });

  it('are of the size that the reader is told meanwhile, also below what it has read', async () => {
    const lines = Array.from({ length: 20 }, (_, a) => JSON.stringify({ a, text: `row number ${a}` })).join('\n');
    for (const predictBytesMin of [0, Infinity]) {
      const sizes = [8, 8, 2, 3];
      let asked = 0;
      const { batches } = await read(lines, { predictBytesMin, batchRows: () => sizes[Math.min(asked++ >> 2, 3)]! });
      expect(batches.reduce((sum, { rows }) => sum + rows.length, 0)).toBe(20);
      expect(batches.map(({ firstIndex }) => firstIndex)).toEqual(
        batches.map((_, n) => batches.slice(0, n).reduce((sum, { rows }) => sum + rows.length, 0)),
      );
      expect(Math.max(...batches.map(({ rows }) => rows.length))).toBeLessThanOrEqual(8);
      expect(Math.min(...batches.slice(0, -1).map(({ rows }) => rows.length))).toBeLessThan(8);
    }
  });

  it('end at batchBytes', async () => {
    const { batches } = await read(body, { batchBytes: 20 });
    expect(batches.length).toBeGreaterThan(3);
    expect(cells(batches)).toHaveLength(9);
  });

  it('a missing property is NULL in every batch, and a column of NULLs only is left out', async () => {
    const { batches } = await read('{"a":1}\n{"b":2,"c":null}\n{"a":3}\n', { batchRows: 3 });
    expect(typesOf(batches[0]!)).toEqual({ a: 'integer', b: 'integer' });
    expect(cells(batches)).toEqual([{ a: 1n }, { b: 2n }, { a: 3n }]);
  });
});

describe('broken syntax', () => {
  it('costs NDJSON the one line', async () => {
    const bad = [
      '{',
      '{"a"}',
      '{"a":}',
      '{"a":1,}',
      '{"a":1 "b":2}',
      '{"a":01}',
      '{"a":1.}',
      '{"a":.5}',
      '{"a":+1}',
      '{"a":1e}',
      '{"a":NaN}',
      '{"a":Infinity}',
      '{"a":-Infinity}',
      '{"a":nul}',
      "{'a':1}",
      '{"a":"\\x"}',
      '{"a":"\\u12g4"}',
      '{"a":"\t"}',
      '{"a":1}}',
      '{"a":1} x',
      '{"a":1}{"a":2}',
      '{"a":[1,]}',
      '{"a":[1 2]}',
      '{"a":{"b":1,}}',
      '}',
      '{"a":"',
      '{"a":"x',
      '\u0000',
      '{"a":undefined}',
      '{"a":1//c\n}',
    ];
    for (const line of bad) {
      const { batches, error } = await read(`{"ok":1}\n${line}\n{"ok":2}\n`);
      expect(error, line).toBeNull();
      expect(cells(batches), line).toEqual([{ ok: 1n }, { ok: 2n }]);
      const codes = batches.flatMap((batch) => batch.rejections.map(({ index, code }) => `${index} ${code}`));
      expect(codes[0], line).toBe('1 REL_PARSE');
    }
  });

  it('ends an array with an error that says how far it got, after the rows before it', async () => {
    for (const rest of ['{"a":}]', '', '{"a":1}', '{"a":1} {"a":2}]', '],', '{"a":1},]', '{"a":1}] []']) {
      const { batches, error } = await read(`[{"ok":1},${rest}`);
      expect(error, rest).toBeInstanceOf(ServiceError);
      expect((error as ServiceError).code).toBe('REL_PARSE');
      expect((error as ServiceError).message).toMatch(/at byte \d+ of the body, after [12] rows/);
      expect(cells(batches)[0]).toEqual({ ok: 1n });
    }
  });

  it('ends a wrapper likewise', async () => {
    for (const rest of [']', ']]', '],}', '],"x":}', '],"x" 1}', ']} {', '],x}']) {
      const { batches, error } = await read(`{"rows":[{"ok":1}${rest}`);
      expect(error, rest).toMatchObject({ code: 'REL_PARSE' });
      expect(cells(batches), rest).toEqual([{ ok: 1n }]);
    }
  });
});

describe('a sound row that breaks a rule is refused alone', () => {
  const deep = (levels: number): string => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
  const rules: Record<string, [string, string]> = {
    'not an object': ['[1]', 'REL_INVALID'],
    'a scalar': ['7', 'REL_INVALID'],
    'an integer above i64': ['{"a":9223372036854775808}', 'REL_INVALID'],
    'an integer below i64': ['{"a":-9223372036854775809}', 'REL_INVALID'],
    'an integer of twenty digits': ['{"a":10000000000000000000}', 'REL_INVALID'],
    'a number beyond a double': ['{"a":1e309}', 'REL_INVALID'],
    'a lone high surrogate': ['{"a":"\\ud800"}', 'REL_INVALID'],
    'a lone low surrogate': ['{"a":"x\\udc00y"}', 'REL_INVALID'],
    'a high surrogate before another escape': ['{"a":"\\ud800\\u0041"}', 'REL_INVALID'],
    'a lone surrogate in a name': ['{"\\ud800":1}', 'REL_INVALID'],
    'a lone surrogate inside a nested value': ['{"a":{"b":["\\udfff"]}}', 'REL_INVALID'],
    'a name given twice': ['{"a":1,"b":2,"a":3}', 'REL_INVALID'],
    'a name given twice by an escape': ['{"a":1,"\\u0061":3}', 'REL_INVALID'],
    'a nested name given twice': ['{"a":{"x":1,"x":2}}', 'REL_INVALID'],
    'an empty name': ['{"":1}', 'REL_INVALID'],
    'a name with NUL': ['{"a\\u0000":1}', 'REL_INVALID'],
    'a name of 129 characters': [`{"${'n'.repeat(129)}":1}`, 'REL_INVALID'],
    'a system column': ['{"system_from":1}', 'REL_INVALID'],
    'the tenant': ['{"tenant_id":"x"}', 'REL_INVALID'],
    'a name that starts with an underscore': ['{"_score":1}', 'REL_INVALID'],
    'an instant that does not exist': ['{"valid_from":"2024-02-30"}', 'REL_TYPE_MISMATCH'],
    'an instant with an offset': ['{"valid_from":"2024-02-20T00:00:00+01:00"}', 'REL_TYPE_MISMATCH'],
    'a key that is an object': ['{"_pk":{}}', 'REL_TYPE_MISMATCH'],
    'a vector of texts': ['{"_emb_text":["x"]}', 'REL_TYPE_MISMATCH'],
    'a vector beyond 32-bit floats': ['{"_emb_text":[1e39]}', 'REL_TYPE_MISMATCH'],
    'an empty vector': ['{"_emb_text":[]}', 'REL_TYPE_MISMATCH'],
  };
  for (const [name, [row, code]] of Object.entries(rules)) {
    it(name, async () => {
      for (const body of [`{"ok":1}\n${row}\n{"ok":2}`, `[{"ok":1},${row},{"ok":2}]`, `{"rows":[{"ok":1},${row},{"ok":2}]}`]) {
        for (const size of [1, 5, 1000]) {
          const { batches, error } = await read(body, {}, size);
          expect(error).toBeNull();
          expect(cells(batches)).toEqual([{ ok: 1n }, { ok: 2n }]);
          expect(batches.flatMap((batch) => batch.rejections)).toMatchObject([{ index: 1, code }]);
          expect(typesOf(batches[0]!)).toEqual({ ok: 'integer' });
        }
      }
    });
  }

  it('text that is not UTF-8', async () => {
    for (const bytes of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]]) {
      const body = Buffer.concat([Buffer.from('{"ok":"é"}\n{"a":"'), Buffer.from(bytes), Buffer.from('"}\n{"ok":"ü"}\n')]);
      for (const size of [1, 4, 1000]) {
        const { batches } = await read(body, {}, size);
        expect(cells(batches)).toEqual([{ ok: 'é' }, { ok: 'ü' }]);
        expect(batches.flatMap((batch) => batch.rejections)).toMatchObject([{ index: 1, code: 'REL_INVALID' }]);
      }
    }
  });

  it('nesting of 64 levels is kept, of 65 refused', async () => {
    expect(cells((await read(deep(64))).batches)).toEqual([{ a: deep(64).slice(5, -1) }]);
    const { batches } = await read(`${deep(65)}\n${'{"a":'.repeat(100_000)}\n{"ok":1}`);
    expect(batches[0]!.rejections.map(({ index }) => index)).toEqual([0, 1]);
    expect(cells(batches)).toEqual([{ ok: 1n }]);
  });
});

describe('sizes', () => {
  it('a body over the limit ends the stream after the rows that came in time', async () => {
    const { batches, error } = await read('{"a":1}\n{"a":2}\n{"a":3}\n', { limitBytes: 20 }, 8);
    expect(error).toMatchObject({ code: 'REL_TOO_LARGE' });
    expect(cells(batches)).toEqual([{ a: 1n }, { a: 2n }]);
  });

  it('an oversized NDJSON line is refused in flat memory, and reading goes on', async () => {
    const { batches, error } = await read(`{"ok":1}\n{"a":"${'x'.repeat(5000)}"}\n{"ok":2}\n`, { rowBytesMax: 1000 }, 64);
    expect(error).toBeNull();
    expect(cells(batches)).toEqual([{ ok: 1n }, { ok: 2n }]);
    expect(batches[0]!.rejections).toMatchObject([{ index: 1, code: 'REL_TOO_LARGE' }]);
  });

  it('an oversized row of an array or an endless CSV quote ends the stream', async () => {
    for (const body of [`[{"ok":1},{"a":"${'x'.repeat(5000)}"}]`, `ok\n1\n"${'x'.repeat(5000)}`]) {
      const { batches, error } = await read(body, { rowBytesMax: 1000 }, 64);
      expect(error).toMatchObject({ code: 'REL_TOO_LARGE' });
      expect(cells(batches)).toEqual([{ ok: 1n }]);
    }
  });

  it('long rows in small chunks take time linear in their bytes: quadratic work would not end', async () => {
    const text = 'x'.repeat(8_000_000);
    for (const body of [`[{"a":"${text}"}]`, `{"a":"${text}"}`, `a\n"${text}"`, `{"rows":[{"a":1}],"x":"${text}"}`]) {
      const { batches, error } = await read(body, {}, 32);
      expect(error).toBeNull();
      expect(batches[0]!.rows.length).toBe(1);
    }
  });
});

describe('an open type infers its columns', () => {
  it('from the first value, and never a timestamp from text', async () => {
    const { batches } = await read(
      '{"s":"2024-01-01","i":1,"w":9223372036854775807,"n":1.0,"b":true,"j":{"x":1},"l":[1],"_emb_x":[1,2.5]}',
    );
    expect(typesOf(batches[0]!)).toEqual({
      s: 'string',
      i: 'integer',
      w: 'integer',
      n: 'number',
      b: 'boolean',
      j: 'json',
      l: 'json',
      _emb_x: 'vector',
    });
    expect(cells(batches)).toEqual([
      {
        s: '2024-01-01',
        i: 1n,
        w: 9223372036854775807n,
        n: 1,
        b: true,
        j: '{"x":1}',
        l: '[1]',
        _emb_x: Float32Array.of(1, 2.5),
      },
    ]);
  });

  it('integers and numbers meet as numbers when every integer is exact in a double', async () => {
    for (const body of ['{"v":1}\n{"v":2.5}\n{"v":-3}', '{"v":2.5}\n{"v":1}\n{"v":-3}']) {
      const { batches } = await read(body);
      expect(typesOf(batches[0]!)).toEqual({ v: 'number' });
      expect(
        cells(batches)
          .map((row) => row['v'])
          .toSorted((a, b) => Number(a) - Number(b)),
      ).toEqual([-3, 1, 2.5]);
    }
  });

  it('scalars of other kinds become text, and the batch names the column', async () => {
    const { batches } = await read('{"v":9007199254740993,"n":1}\n{"v":2.5,"n":2}\n{"v":"a\\"\\u00e9"}\n{"v":true}\n{"v":null}');
    expect(typesOf(batches[0]!)).toEqual({ v: 'string', n: 'integer' });
    expect(cells(batches)).toEqual([{ v: '9007199254740993', n: 1n }, { v: '2.5', n: 2n }, { v: 'a"é' }, { v: 'true' }, {}]);
    expect(batches[0]!.mixed).toEqual(['v']);
    expect((await read('{"v":1}\n{"v":2.5}')).batches[0]!.mixed).toEqual([]);
  });

  it('a column with an object or array becomes JSON text', async () => {
    const { batches } = await read(
      '{"v":9007199254740993}\n{"v":9007199254740994}\n{"v":null}\n{"v":[ 1 ]}\n{"v":9007199254740993}\n{"v":"a\\"\\u00e9"}\n{"v":true}',
    );
    expect(typesOf(batches[0]!)).toEqual({ v: 'json' });
    expect(cells(batches)).toEqual([
      { v: '9007199254740993' },
      { v: '9007199254740994' },
      {},
      { v: '[ 1 ]' },
      { v: '9007199254740993' },
      { v: '"a\\"\\u00e9"' },
      { v: 'true' },
    ]);
    const texts = await read('{"v":"a\\"é\\n"}\n{"v":{}}\n{"v":1.5}');
    expect(cells(texts.batches)).toEqual([{ v: '"a\\"é\\n"' }, { v: '{}' }, { v: '1.5' }]);
  });

  it('a column stays widened in later batches', async () => {
    const { batches } = await read('{"v":1}\n{"v":1.5}\n{"v":2}\n{"v":"x"}\n{"v":3}', { batchRows: 1 });
    expect(batches.map(typesOf).map(({ v }) => v)).toEqual(['integer', 'number', 'number', 'string', 'string']);
  });

  it('starts from the types that the store has', async () => {
    const known = definition({ v: property('number'), t: property('timestamp') }, true);
    const { batches } = await read('{"v":1,"t":"2024-01-01"}\n{"v":2,"t":"soon"}\n{"new":1}', { definition: known });
    expect(typesOf(batches[0]!)).toEqual({ v: 'number', t: 'timestamp', new: 'integer' });
    expect(batches[0]!.rejections).toMatchObject([{ index: 1, code: 'REL_TYPE_MISMATCH' }]);
  });

  it('minus zero is a number, not an integer', async () => {
    expect(cells((await read('{"v":-0}')).batches)).toEqual([{ v: -0 }]);
  });

  it('__proto__ and constructor are ordinary names', async () => {
    const { batches } = await read('{"constructor":1,"__proto":2,"toString":"x"}\n');
    expect(batches[0]!.rejections).toMatchObject([{ code: 'REL_INVALID' }]);
    const plain = await read('{"constructor":1,"toString":"x"}\n{"hasOwnProperty":true}');
    expect(plain.batches[0]!.rows.columns.map(({ name }) => name)).toEqual(['constructor', 'toString', 'hasOwnProperty']);
    const nested = await read('{"j":{"__proto__":{"x":1}}}');
    expect(nested.batches[0]!.rejections).toEqual([]);
    expect({}).not.toHaveProperty('x');
  });

  it('names with quotes and backslashes are told from what only looks like them', async () => {
    const { batches } = await read(
      '{"a\\"b":1,"a\\\\b":2}\n{"a"b":1,"a\\\\b":2}\n{"a\\"b":3,"a\\b":4}\n{"a\\"b":5,"a\\\\b":6}\n',
    );
    expect(batches[0]!.rejections).toMatchObject([
      { index: 1, code: 'REL_PARSE' },
      { index: 2, code: 'REL_INVALID' },
    ]);
    expect(cells(batches)).toEqual([
      { 'a"b': 1n, 'a\\b': 2n },
      { 'a"b': 5n, 'a\\b': 6n },
    ]);
  });

  it('an id may be text or an integer, a key is always text', async () => {
    const { batches } = await read('{"id":7,"_pk":9223372036854775807}\n{"id":8,"_pk":"x"}');
    expect(cells(batches)).toEqual([
      { id: 7n, _pk: '9223372036854775807' },
      { id: 8n, _pk: 'x' },
    ]);
  });
});

describe('a closed type takes what its contract says', () => {
  const all = definition({
    s: property('string'),
    i: property('integer'),
    n: property('number'),
    b: property('boolean'),
    t: property('timestamp'),
    j: property('json'),
    v: property('vector', 2),
  });
  const accepted: [string, string, unknown][] = [
    ['s', '"x"', 'x'],
    ['s', '"\\ud83d\\ude00\\n\\u00e9\\u20ac"', '😀\né€'],
    ['i', '9223372036854775807', 9223372036854775807n],
    ['i', '-9223372036854775808', -9223372036854775808n],
    ['i', '-0', 0n],
    ['n', '1', 1],
    ['n', '1.5e3', 1500],
    ['n', '9007199254740994', 9007199254740994],
    ['n', '0.1', 0.1],
    ['n', '5e-324', 5e-324],
    ['n', '1.7976931348623157e308', Number.MAX_VALUE],
    ['n', '123456789.123456789', 123456789.12345679],
    ['b', 'false', false],
    ['t', '"2024-02-29T12:34:56.123456789Z"', 1709210096123456789n],
    ['t', '"1969-12-31"', -86400000000000n],
    ['t', '"2024-02-29T12:34:56"', 1709210096000000000n],
    ['t', '9223372036854775807', 9223372036854775807n],
    ['t', '5', 5n],
    ['j', '"x"', '"x"'],
    ['j', '12345678901234567890.5', '12345678901234567890.5'],
    ['j', '12345678901234567890', '12345678901234567890'],
    ['j', '[1e999]', '[1e999]'],
    ['j', '{"a" : [1, 2]}', '{"a" : [1, 2]}'],
    ['v', '[0.5, -2]', Float32Array.of(0.5, -2)],
    ['id', '7', '7'],
    ['id', '"x"', 'x'],
    ['valid_to', '"2024-01-01"', 1704067200000000000n],
  ];
  for (const [name, token, value] of accepted) {
    it(`${name} ← ${token}`, async () => {
      const { batches } = await read(`{"${name}":${token}}`, { definition: all });
      expect(batches[0]!.rejections).toEqual([]);
      expect(cells(batches)).toEqual([{ [name]: value }]);
    });
  }
  const refused: [string, string][] = [
    ['s', '1'],
    ['s', 'true'],
    ['s', '{}'],
    ['i', '1.0'],
    ['i', '1e2'],
    ['i', '"1"'],
    ['i', 'true'],
    ['n', '"1"'],
    ['n', '9007199254740993'],
    ['b', '1'],
    ['b', '"true"'],
    ['t', '"yesterday"'],
    ['t', '1.5'],
    ['t', 'true'],
    ['v', '[1]'],
    ['v', '[1,2,3]'],
    ['v', '"x"'],
    ['v', '[1,"2"]'],
    ['v', '[1,null]'],
    ['valid_from', '"2024"'],
  ];
  for (const [name, token] of refused) {
    it(`${name} refuses ${token}`, async () => {
      const { batches } = await read(`{"${name}":${token}}\n{"s":"ok"}`, { definition: all });
      expect(batches[0]!.rejections).toMatchObject([{ index: 0, code: 'REL_TYPE_MISMATCH' }]);
      expect(cells(batches)).toEqual([{ s: 'ok' }]);
    });
  }

  it('refuses a property that it does not have', async () => {
    const { batches } = await read('{"s":"x","extra":1}', { definition: all });
    expect(batches[0]!.rejections).toMatchObject([{ index: 0, code: 'REL_UNKNOWN_COLUMN' }]);
  });

  it('refuses more properties than a type can have', async () => {
    const many = Array.from({ length: 1030 }, (_, i) => `{"c${i}":1,"_pk":"x"}`).join('\n');
    const { batches: grown } = await read(many, { batchRows: 2000, definition: definition({ old: property('string') }, true) });
    expect(grown[0]!.rows.length).toBe(1023);
    expect(grown[0]!.rejections.map(({ index, code }) => [index, code])[0]).toEqual([1023, 'REL_INVALID']);
    const names = Array.from({ length: 1200 }, (_, i) => `"c${i}":1`).join(',');
    const { batches } = await read(`{${names}}\n{"a":1}`);
    expect(batches[0]!.rejections).toMatchObject([{ index: 0, code: 'REL_INVALID' }]);
    expect(cells(batches)).toEqual([{ a: 1n }]);
  });
});
