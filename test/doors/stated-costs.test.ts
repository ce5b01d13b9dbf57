/**
 * What a turn may hold is bounded by what each thing in it states of itself: aggregate and window functions by the row, decoders by the
 * part and the byte, operators of filters by the value, commands of the socket doors by what they name. Who adds one states its cost.
 */
import { describe, expect, test } from 'vitest';
import { nativeCodec } from '../../src/doors/columnar/native-codec.ts';
import { boltCodec } from '../../src/doors/graph/bolt-codec.ts';
import { mongoCodec } from '../../src/doors/document/codec.ts';
import { documentCommandRows as documentCommands } from '../../src/doors/document/session.ts';
import { type CommandCost, messageBytesMax } from '../../src/doors/shared/codec.ts';
import { pause, ReceivedBytes } from '../../src/doors/shared/received-bytes.ts';
import { respCodec } from '../../src/doors/kv/codec.ts';
import { kvCommandRows as kvCommands } from '../../src/doors/kv/session.ts';
import { relationalCodec } from '../../src/doors/relational/codec.ts';
import type { Vector } from '../../src/log/values/columns.ts';
import { VectorBuilder } from '../../src/log/values/vector-builder.ts';
import { compileFilter, operatorCosts } from '../../src/planner/expressions/documents/document-filter.ts';
import { readText } from '../../src/planner/expressions/documents/document-json.ts';
import { aggregateFunctions } from '../../src/planner/aggregate-functions.ts';
import { work } from '../../src/planner/expressions/expression-cost.ts';
import { overFunctions } from '../../src/planner/operators/window-functions.ts';
import type { Batch } from '../../src/planner/operators/operator.ts';
import { type ColumnWork, Turns } from '../../src/planner/operators/block-slicer.ts';

/** Nanoseconds of a turn that nobody notices. */
const unnoticed = 5_000_000;

test.each([
  ['aggregate functions', Object.entries(aggregateFunctions).map(([name, { cost }]) => [name, cost.call] as const)],
  ['window functions', Object.entries(overFunctions).map(([name, { call }]) => [name, call] as const)],
  ['operators of filters', Object.entries(operatorCosts)],
  ['commands of the key-value door', Object.entries(kvCommands).map(([name, { cost }]) => [name, cost.part] as const)],
  ['commands of the document door', Object.entries(documentCommands).map(([name, { cost }]) => [name, cost.part] as const)],
] as const)('%s state what they cost', (_name, stated) => {
  expect(stated.length).toBeGreaterThan(10);
  expect(stated.filter(([, cost]) => !(cost > 0 && cost < unnoticed)).map(([name]) => name)).toEqual([]);
});

test('functions of texts state what a character costs', () => {
  const ofTexts = ['min', 'max', 'string_agg', 'array_agg', 'collect'] as const;
  expect(ofTexts.filter((name) => aggregateFunctions[name].cost.character === 0)).toEqual([]);
  const framed = ['lag', 'lead', 'first_value', 'last_value', 'min', 'max'] as const;
  expect(framed.filter((name) => overFunctions[name].character === 0)).toEqual([]);
});

describe('a command that may take longer than a turn runs in steps', () => {
  const limits = { part: 65_536, byte: messageBytesMax };
  const most = ({ part, byte }: CommandCost): number => part * limits.part + byte * limits.byte;
  test.each([
    ['kv', kvCommands],
    ['document', documentCommands],
  ] as const)('%s', (_door, commands) => {
    const few = 10_000;
    const long = Object.entries(commands).filter(([, { cost }]) =>
      cost.inSteps ? false : cost.part * few > unnoticed || cost.byte * limits.byte > unnoticed,
    );
    expect(long.map(([name]) => name)).toEqual([]);
    expect(Object.values<{ readonly cost: CommandCost }>(commands).some(({ cost }) => most(cost) > unnoticed)).toBe(true);
  });
});

test.each([
  ['key-value', respCodec],
  ['document', mongoCodec],
  ['relational', relationalCodec],
  ['columnar native', nativeCodec],
  ['binary graph', boltCodec],
] as const)('the %s codec looks at no more in one turn than it states', (_name, { cost, partsInTurn }) => {
  expect(cost.part * partsInTurn + cost.byte * messageBytesMax).toBeLessThan(2 * unnoticed);
});

test('a command of many words is read in turns of so many', () => {
  const words = 100_000;
  const received = new ReceivedBytes(respCodec);
  received.push(Buffer.from(`*${words}\r\n${'$1\r\nk\r\n'.repeat(words)}`));
  let pauses = 0;
  let message = received.next();
  for (; message === pause; message = received.next()) pauses++;
  expect(message).toHaveLength(words);
  expect(pauses).toBeGreaterThanOrEqual(2 * Math.floor(words / respCodec.partsInTurn) - 1);
});

test('a command of more words than any takes is refused by its head, before a word of it is kept', () => {
  const received = new ReceivedBytes(respCodec);
  received.push(Buffer.from('*131073\r\n'));
  expect(() => received.next()).toThrow('invalid multibulk length');
});

test('an operator of a filter counts each value that it is asked of', () => {
  const filter = compileFilter(readText('{"a":{"$gt":1}}'));
  const few = readText('{"a":2}');
  filter(few);
  const once = work.done;
  expect(once).toBeGreaterThanOrEqual(operatorCosts['$gt']!);
  expect(() => compileFilter(readText('{"a":{"$toString":1}}'))).toThrow('unknown operator');
});

describe('rows are taken up in shares', () => {
  const texts = (sizes: readonly number[]): Batch => {
    const builder = new VectorBuilder('string', sizes.length);
    for (const size of sizes) builder.appendString('x'.repeat(size));
    return { columns: [builder.build()], selection: null, first: 0, count: sizes.length };
  };
  const shares = (batch: Batch, works: readonly ColumnWork[]): number[] => {
    const turns = new Turns(works);
    const given = [batch];
    const counts: number[] = [];
    for (let share = turns.next(() => given.pop() ?? null); share; share = turns.next(() => given.pop() ?? null))
      counts.push(share.count);
    return counts;
  };

  test('by how long their texts are, one at least', () => {
    const batch = texts([10, 10, 1_500_000, 10, 10]);
    expect(shares(batch, [{ column: 0, cost: { call: 60, character: 2 } }])).toEqual([2, 1, 2]);
    expect(shares(batch, [{ column: 0, cost: { call: 60, character: 0 } }])).toEqual([5]);
  });

  test('rows of a dictionary with few texts are not looked at one by one, and shares are as their texts ask', () => {
    const rows = 8_192;
    const codes = Int32Array.from({ length: rows }, (_, row) => row % 2);
    let codesRead = 0;
    const values = new Proxy(codes, {
      get: (target, index) => {
        if (typeof index === 'string' && /^\d+$/.test(index)) codesRead++;
        const value: unknown = Reflect.get(target, index, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const sharesOf = (lengths: readonly [number, number]): number[] => {
      const utf8 = {
        offsets: Uint32Array.of(0, lengths[0], lengths[0] + lengths[1]),
        heap: new Uint8Array(lengths[0] + lengths[1]),
      };
      const dictionary = { size: 2, text: () => '', codeOf: () => -1, utf8 };
      const column: Vector = { kind: 'dict', values, dictionary, nulls: null };
      return shares({ columns: [column], selection: null, first: 0, count: rows }, [
        { column: 0, cost: { call: 60, character: 2 } },
      ]);
    };
    expect(sharesOf([20, 100])).toEqual([rows]);
    expect(codesRead).toBe(0);
    // A million bytes a share, of 100 and 500 bytes in turn: the second begins with a long one.
    expect(sharesOf([100, 500])).toEqual([3_333, 3_332, 1_527]);
  });

  test('by what all functions together cost', () => {
    const distinct = Array.from({ length: 100 }, () => ({ column: 0, cost: { call: 200, character: 3 } }));
    expect(shares(texts(Array.from({ length: 250 }, () => 1)), distinct)).toEqual([100, 100, 50]);
  });
});
