/** Rules are asked only where a new row is within their bounds, and raise the same alerts as if all of them were asked. */
import { expect, test } from 'vitest';
import type { Cell } from '../../../../src/log/values/value.ts';
import type { ScanRequest } from '../../../../src/projections/access-paths.ts';
import { RuleBounds } from '../../../../src/planner/continuous/rules/rule-bounds.ts';
import { StoreWorld } from '../../../doors/http/store-world.ts';

type Asked = Pick<ScanRequest, 'zones' | 'keys'>;

function possible(rules: Readonly<Record<string, readonly Asked[]>>, rows: Readonly<Record<string, readonly Cell[]>>): string[] {
  const time = { system: 'all', valid: 'all' } as const;
  const given = Object.entries(rules).map(([rule, scans]) => ({
    rule,
    scans: scans.map((scan): ScanRequest => ({ type: 'T', columns: [], time, ...scan })),
  }));
  const steps = new RuleBounds(given).findPossible({ newCells: (column) => rows[column]! });
  for (;;) {
    const step = steps.next();
    if (step.done === true) return [...step.value];
  }
}

const is = (
  column: string,
  value: NonNullable<ScanRequest['zones']>[number]['value'],
  op: '=' | '<' | '<=' | '>' | '>=' = '=',
) => ({
  column,
  op,
  value,
});

test('a rule is possible where one row is within all of its bounds', () => {
  const rows = { _pk: ['a', 'b', 'c'], kind: ['x', 'y', null], n: [1n, 5n, 9n] };
  const rules = {
    'above all': [{ zones: [is('n', 9n, '>')] }],
    'up to the most': [{ zones: [is('n', 9n, '>=')] }],
    'both of one row': [{ zones: [is('kind', 'y'), is('n', 4n, '>')] }],
    'each of another row': [{ zones: [is('kind', 'y'), is('n', 5n, '>')] }],
    'of no row': [{ zones: [is('kind', 'z')] }],
    'by keys': [{ keys: ['z', 'c'] }],
    'by keys of no row': [{ keys: ['z'] }],
    'by keys of no key': [{ keys: [] }],
    'by text': [{ zones: [is('kind', 'xx', '<')] }],
    'by text, below all': [{ zones: [is('kind', 'x', '<')] }],
    'without bounds': [{}],
    'that asks nothing': [],
    'that asks twice': [{ zones: [is('n', 9n, '>')] }, {}],
  };
  expect(possible(rules, rows)).toEqual([
    'up to the most',
    'both of one row',
    'by keys',
    'by text',
    'without bounds',
    'that asks nothing',
    'that asks twice',
  ]);
});

test('what no comparison of cells decides is left to the rule', () => {
  const rules = {
    'another type': [{ zones: [is('x', 5n)] }],
    'another type, in order': [{ zones: [is('x', 5n, '>')] }],
    'an end that comes later': [{ zones: [is('system_to', 5n, '<')] }],
    'no number': [{ zones: [is('f', Number.NaN)] }],
    'more than no number': [{ zones: [is('f', 7, '>')] }],
    'less than a rounded number': [{ zones: [is('wide', 2 ** 60, '<')] }],
    'half of a character': [{ zones: [is('x', '\ud800')] }],
    'none of these': [{ zones: [is('f', 7)] }],
  };
  const rows = { x: ['a'], f: [Number.NaN], wide: [2 ** 60], system_to: [9n] };
  expect(possible(rules, rows)).toEqual(Object.keys(rules).slice(0, -1));
});

test('alerts are those of every rule asked by itself, whatever its condition', async () => {
  const world = await StoreWorld.open();
  try {
    const properties = { id: 'string', who: 'string', n: 'integer', f: 'number', ok: 'boolean', at: 'timestamp' };
    await world.call('POST', '/types', { name: 'T', properties, primary_key: 'id' });
    const conditions = [
      "who = 'ann'",
      "'ann' = who AND n > 2",
      "who = 'ann' AND n > 4",
      "who >= 'b' AND who < 'c'",
      "who IN ('ann', 'bob')",
      "who = 'ann' OR n = 9",
      'n BETWEEN 2 AND 4',
      '5 <= n',
      'n = f',
      'f > 2.5',
      'f >= 3 AND NOT ok',
      'f < -0.0',
      'ok = TRUE',
      'ok AND n > 1',
      'who IS NULL',
      'n <> 1',
      "at >= '2024-02-01T00:00:00Z'",
      "at = '2024-01-01T00:00:00Z'",
      "id = 'r3'",
      "_pk IN ('r1', 'r4', 'none')",
      "id > 'r5'",
      "who LIKE 'a%'",
      'n + 1 = 10',
      '10 / n > 4',
      "valid_from >= '2020-01-01T00:00:00Z'",
      "who = 'ann' AND who = 'bob'",
    ];
    for (const [i, condition] of conditions.entries()) {
      const made = await world.call('POST', '/rules', { name: String(i), condition_sql: condition, object_type: 'T' });
      expect([condition, made.status]).toEqual([condition, 201]);
    }
    const rows = [
      { id: 'r1', who: 'ann', n: 3, f: 3, ok: true, at: '2024-01-01T00:00:00Z' },
      { id: 'r2', who: 'bob', n: 9, f: 2.5, ok: false, at: '2024-03-01T00:00:00Z' },
      { id: 'r3', who: null, n: null, f: null, ok: null, at: null },
      { id: 'r4', who: 'änn', n: 1, f: -7.5, ok: true, at: '2024-02-01T00:00:00Z' },
      { id: 'r6', who: 'ann', n: 5, f: 5, ok: false, at: '2023-01-01T00:00:00Z' },
    ];
    for (const part of [rows.slice(0, 1), rows.slice(1)]) {
      await world.call('POST', '/ingest?object_type=T', part);
      await world.service.automation.rules.settle();
    }
    const alerts = await world.rows('SELECT title, matched_pk FROM Alert AS OF CURRENT');
    const expected: string[] = [];
    for (const [i, condition] of conditions.entries()) {
      for (const { id } of await world.rows(`SELECT _pk AS id FROM T WHERE ${condition}`)) expected.push(`${i} ${id as string}`);
    }
    expect(expected.length).toBeGreaterThan(conditions.length);
    expect(alerts.map(({ title, matched_pk: key }) => `${title as string} ${key as string}`).sort()).toEqual(expected.sort());
  } finally {
    await world.close();
  }
});
