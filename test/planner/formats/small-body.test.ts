/** A small body that is read at once must give the batch that the general reader gives, whatever was read before it. */
import { expect, it } from 'vitest';
import type { TypeDefinition } from '../../../src/log/entries/entry.ts';
import type { IngestBatch } from '../../../src/planner/formats/ingest-batch.ts';
import { BodyReader } from '../../../src/planner/formats/ingest-reader.ts';
import { readSmallBody } from '../../../src/planner/formats/small-body.ts';
import { Dice } from '../../fuzz/mutate.ts';
import { definition, property } from './ingest-fixtures.ts';

const declared = {
  id: property('string'),
  text: property('string'),
  n: property('integer'),
  x: property('number'),
  ok: property('boolean'),
  at: property('timestamp'),
  any: property('json'),
  rows: property('json'),
};
const types: readonly (TypeDefinition | null)[] = [
  null,
  definition(declared),
  definition(declared, true),
  definition({ ...declared, vec: property('vector') }),
  definition({}, true),
];

/** What becomes of the body as a whole; null when it is not one batch of sound rows. */
function general(body: Uint8Array, type: TypeDefinition | null): IngestBatch | null {
  const reader = new BodyReader({ definition: type, batchRows: 2048, batchBytes: 1 << 19 });
  try {
    reader.push(body);
    const first = reader.read(false) ?? reader.read(true);
    const whole = first !== null && reader.read(true) === null && first.rejections.length === 0;
    // White space behind the last row counts for it or not.
    return whole ? { ...first, endOffset: body.length } : null;
  } catch {
    return null;
  }
}

const values: Readonly<Record<string, readonly string[]>> = {
  id: ['"a"', '17', '"row-0000017"', '"é"', '-3'],
  text: [
    '""',
    '"a text that is longer than any heap of a cell, and then some more of it"',
    '"esc\\"aped \\u00e9"',
    '"grüße 🙂"',
    '5',
  ],
  n: ['0', '-1', '2147483648', '9007199254740993', '9223372036854775807', '1.5', '"7"'],
  x: ['0.5', '1', '1e3', '-0', '1e999', '9007199254740993', 'true'],
  ok: ['true', 'false', '1'],
  at: ['1700000000000000000', '"2024-05-01"', '"no day"'],
  any: ['{"a":[1,2]}', '[]', '"t"', '1', '{"a":1,"a":2}'],
  vec: ['[1,2]', '[0.5]', '[1,2,3]', '[]'],
  rows: ['[{"id":"in"}]', '7'],
  _pk: ['"key"', '5'],
  valid_from: ['"2024-05-01"', '3'],
  _provenance: ['{"source":"s"}'],
  other: ['1', '2.5', '"x"'],
};

function bodyOf(dice: Dice): Buffer {
  const names = Object.keys(values).filter(() => dice.roll(3) > 0);
  if (dice.roll(4) === 0) names.reverse();
  const rows = Array.from({ length: 1 + (dice.roll(3) === 0 ? dice.roll(5) : 0) }, () => {
    const cells = names.map(
      (name) =>
        `"${name}":${dice.roll(9) === 0 ? 'null' : dice.pick(values[name]!.slice(0, 1 + dice.roll(values[name]!.length)))}`,
    );
    if (dice.roll(12) === 0) cells.pop();
    if (dice.roll(20) === 0) cells.push('"id":"again"');
    return `${dice.pick(['', '', ' '])}{${cells.join(dice.pick([',', ', ', ' ,\t']))}}${dice.pick(['', '', '', ' ', '\r', ' x'])}`;
  });
  const body = Buffer.from(rows.join(dice.pick(['\n', '\n', '\n\n', '\n \n'])) + dice.pick(['\n', '\n', '', '\n\n', ' \n ']));
  if (dice.roll(10) === 0) body[dice.roll(body.length)] = dice.roll(256);
  return body;
}

it('gives the batch of the general reader or none, whatever bodies came before', () => {
  const taken = types.map(() => 0);
  for (let seed = 1; seed <= 6000; seed++) {
    const dice = new Dice(seed);
    const place = dice.roll(types.length);
    const body = bodyOf(dice);
    const found = readSmallBody(body, types[place]!);
    if (found === null) continue;
    taken[place]!++;
    expect(found).toEqual(general(body, types[place]!));
    expect(found.rows.columns.map(({ name }) => name)).toEqual(
      general(body, types[place]!)!.rows.columns.map(({ name }) => name),
    );
  }
  for (const count of taken) expect(count).toBeGreaterThan(20);
});

const order = Buffer.from('{"id":"a","text":"t","n":1,"x":0.5,"ok":true}\n');

it('takes what a client sends that commits each row as it happens, again and again', () => {
  for (const type of types) {
    for (let times = 0; times < 3; times++) expect(readSmallBody(order, type)).toEqual(general(order, type));
  }
});

it('does not keep what an open type has seen', () => {
  const type = definition({}, true);
  const bodies = ['{"id":"a","n":1}\n', '{"id":"a","n":1.5}\n', '{"id":"a","n":"x"}\n', '{"id":"a","n":2}\n'];
  for (const body of bodies.map((text) => Buffer.from(text))) expect(readSmallBody(body, type)).toEqual(general(body, type));
});

it('does not keep the length of a vector whose length is not declared', () => {
  const type = definition({ id: property('string'), vec: property('vector') });
  for (const body of ['{"id":"a","vec":[1,2]}', '{"id":"a","vec":[1,2,3]}'].map((text) => Buffer.from(text))) {
    expect(readSmallBody(body, type)).toEqual(general(body, type));
  }
});

it('keeps columns in the order of the body, not in that of the body before', () => {
  const type = definition(declared);
  for (const text of [
    '{"id":"a","n":1,"x":2}',
    '{"x":2,"n":1,"id":"a"}',
    '{"id":"a","x":1}\n{"x":2,"id":"b"}',
    '{"id":"a","n":1,"x":2}',
  ]) {
    const body = Buffer.from(text);
    const found = readSmallBody(body, type);
    if (found !== null) expect(found.rows.columns).toEqual(general(body, type)!.rows.columns);
  }
});

it('leaves arrays, wrappers, CSV, large bodies and what would be refused to the general reader', () => {
  const type = definition(declared);
  const left = [
    '[{"id":"a"}]',
    '{"rows":[{"id":"a"}]}',
    'id\na',
    '',
    ' {"id":"a"}',
    '{"id":"a"} x',
    '{"id":"a"',
    '{"id":"a","new":1}',
    '7',
  ];
  for (const text of left) expect(readSmallBody(Buffer.from(text), type)).toBeNull();
  expect(readSmallBody(Buffer.from(`{"id":"${'x'.repeat(4096)}"}`), type)).toBeNull();
  // And what was left does not come with the next body.
  expect(readSmallBody(order, type)).toEqual(general(order, type));
});

it('columns of one row take the memory of their cells', () => {
  const body = new TextEncoder().encode('{"id":"a","text":"some text","n":1,"x":0.5,"ok":true}');
  const { rows } = readSmallBody(body, definition(declared))!;
  expect(rows.columns.map(({ name }) => name)).toEqual(['id', 'text', 'n', 'x', 'ok']);
  for (const { vector } of rows.columns) {
    if (vector.kind === 'null' || vector.kind === 'dict') throw new Error('every column has a cell');
    const array = vector.kind === 'text' ? vector.heap : vector.values;
    expect(array.buffer.byteLength).toBe(array.byteLength);
  }
});
