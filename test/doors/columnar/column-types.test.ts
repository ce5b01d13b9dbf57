/** Names of types by what the client knows. */
import { expect, test } from 'vitest';
import { columnarTypeOf, everyType, typesKnownTo } from '../../../src/doors/columnar/column-types.ts';
import { columnTypes } from '../../../src/log/values/value.ts';

const namesFor = (client: Parameters<typeof columnarTypeOf>[1]): Record<string, string> =>
  Object.fromEntries(columnTypes.map((type) => [type, columnarTypeOf({ name: 'c', type }, client)]));

test('A client of today reads instants and booleans as what they are', () => {
  expect(namesFor(everyType)).toEqual({
    string: 'Nullable(String)',
    integer: 'Nullable(Int64)',
    number: 'Nullable(Float64)',
    boolean: 'Nullable(Bool)',
    timestamp: "Nullable(DateTime64(9, 'UTC'))",
    json: 'Nullable(String)',
    vector: 'Array(Float32)',
  });
  expect(typesKnownTo(54_453)).toEqual(everyType);
});

test('One of 2018 knows neither', () => {
  const old = namesFor(typesKnownTo(54_412));
  expect(old['boolean']).toBe('Nullable(UInt8)');
  expect(old['timestamp']).toBe('Nullable(Int64)');
});

test('System instants are cursors, and stay Int64, under another name too', () => {
  const type = 'timestamp';
  expect(columnarTypeOf({ name: 'system_from', type }, everyType)).toBe('Nullable(Int64)');
  expect(columnarTypeOf({ name: 'at', type, origin: { type: 'T', column: 'valid_to' } }, everyType)).toBe('Nullable(Int64)');
});
