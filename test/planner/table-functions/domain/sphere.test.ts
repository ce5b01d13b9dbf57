/** GEOFENCE, ANPR_TRACE, DISPATCH_PRIORITY, CRIME_PATTERN_CLUSTER. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { finishSteps } from '../../../finish-steps.ts';
import { metresBetween, SphereIndex } from '../../../../src/planner/table-functions/domain/sphere.ts';
import { TestRandom, TestStore } from '../../../harness.ts';

test('the index finds what comparing with every point finds: poles, antimeridian and rim too', () => {
  const bytes = new Uint32Array(new TestRandom(3).fill(new Uint8Array(16_000)).buffer);
  const share = (i: number): number => bytes[i]! / 2 ** 32;
  const count = 1_500;
  const lats = Float64Array.from({ length: count }, (_, i) =>
    i % 5 === 0 ? 89.9 * (i % 2 === 0 ? 1 : -1) : 180 * share(2 * i) - 90,
  );
  const lons = Float64Array.from({ length: count }, (_, i) =>
    i % 7 === 0 ? 180 * (i % 2 === 0 ? 1 : -1) : 360 * share(2 * i + 1) - 180,
  );
  const index = finishSteps(SphereIndex.build(lats, lons));
  for (const [lat, lon] of [
    [90, 0],
    [-90, 77],
    [0, 180],
    [0, -180],
    [10, 179.9],
    [51.5, -0.1],
    [lats[3]!, lons[3]!],
  ] as const) {
    const distances = [...lats.keys()].map((i) => metresBetween(lat, lon, lats[i]!, lons[i]!));
    const rim = distances.toSorted((a, b) => a - b)[20]!;
    for (const metres of [0, rim, 50_000, 2_000_000, 9_000_000, 30_000_000]) {
      const found: number[] = [];
      finishSteps(index.pointsWithin(lat, lon, metres, (point) => found.push(point)));
      const expected = [...lats.keys()].filter((i) => distances[i]! <= metres);
      expect(
        found.sort((a, b) => a - b),
        `${lat} ${lon} ${metres}`,
      ).toEqual(expected);
    }
  }
});

let store: TestStore;

beforeAll(async () => {
  store = await TestStore.open('2024-03-02');
  await store.register('Sighting', { id: 'string', subject: 'string', lat: 'number', lon: 'number', at: 'timestamp' }, 'id');
  const incident = {
    kind: 'string',
    lat: 'number',
    lon: 'number',
    at: 'timestamp',
    severity: 'number',
    mo: 'string',
    status: 'string',
  } as const;
  await store.register('Incident', { id: 'string', ...incident }, 'id');
  await store.register('Unit', { id: 'string', lat: 'number', lon: 'number', status: 'string' }, 'id');
  await store.put('Sighting', [
    { id: 's1', subject: 'AB 12-cde', lat: 51.5, lon: -0.1, at: '2024-03-01T10:00:00Z' },
    { id: 's2', subject: 'AB12CDE', lat: 51.6, lon: -0.1, at: '2024-03-01T11:00:00Z' },
    { id: 's3', subject: 'AB12CDE', lat: 53.5, lon: -2.2, at: '2024-03-01T11:10:00Z' },
    { id: 's4', subject: 'A8IZCDE', lat: 53.5, lon: -2.2, at: '2024-03-01T12:00:00Z' },
    { id: 's5', subject: 'dateline', lat: 0, lon: 179.999, at: '2024-03-01T12:00:00Z' },
  ]);
  await store.put('Incident', [
    {
      id: 'i1',
      kind: 'theft',
      lat: 51.5,
      lon: -0.1,
      at: '2024-03-01T23:30:00Z',
      severity: 1,
      mo: 'window at night',
      status: 'open',
    },
    { id: 'i2', kind: 'theft', lat: 51.5, lon: -0.101, at: '2024-02-25', severity: 0.2, mo: 'window, night', status: 'open' },
    { id: 'i3', kind: 'theft', lat: 51.501, lon: -0.1, at: '2024-02-20', severity: 0.2, mo: 'night window', status: 'closed' },
    { id: 'i4', kind: 'fraud', lat: 51.501, lon: -0.1, at: '2024-02-20', severity: 0.2, mo: 'letter', status: 'closed' },
  ]);
  await store.put('Unit', [
    { id: 'u1', lat: 51.5, lon: -0.2, status: 'free' },
    { id: 'u2', lat: 51.5, lon: -0.11, status: 'busy' },
  ]);
});
afterAll(() => store.close());

const cells = async (sql: string, ...columns: readonly string[]): Promise<readonly unknown[]> =>
  (await store.rows(sql)).map((row) => columns.map((column) => row[column]));

test('a fence holds rows of every role with coordinates, nearest first', async () => {
  expect(await cells('SELECT * FROM GEOFENCE(51.5, -0.1, 200)', 'nodeId', 'type', 'score')).toEqual([
    ['i1', 'Incident', 1],
    ['s1', 'Sighting', 1],
    ['i2', 'Incident', expect.any(Number)],
    ['i3', 'Incident', expect.any(Number)],
    ['i4', 'Incident', expect.any(Number)],
  ]);
  expect(await cells("GEOFENCE(0, -179.999, 300, SOURCE => 'Sighting')", 'nodeId')).toEqual([['s5']]);
  expect(await store.refusal('GEOFENCE(91, 0, 5)')).toMatchObject({
    code: 'REL_INVALID',
    message: expect.stringContaining('LAT'),
  });
});

test('what is kept of places is asked again as rows come, go and begin or end to be true, by the second', async () => {
  const own = await TestStore.open('2024-03-02');
  await own.register('Sighting', { id: 'string', subject: 'string', lat: 'number', lon: 'number' }, 'id');
  const seen = (id: string, times: Readonly<Record<string, string>> = {}) => ({
    id,
    subject: id,
    lat: 51.5,
    lon: -0.1,
    ...times,
  });
  await own.put('Sighting', [
    seen('always'),
    seen('later', { valid_from: '2024-03-02T00:01:40Z' }),
    seen('gone', { valid_to: '2024-03-02T00:04:00Z' }),
  ]);
  const fenced = async (when: string): Promise<string> => {
    own.clock.set(`2024-03-02T00:${when}Z`);
    const rows = await own.rows('GEOFENCE(51.5, -0.1, 1)');
    return rows.map(({ nodeId }) => nodeId).join(' ');
  };
  for (const [when, expected] of [
    ['00:10', 'always gone'],
    // Nothing turns within a minute.
    ['00:11', 'always gone'],
    ['00:12', 'always gone'],
    // Within the next one something does.
    ['01:20', 'always gone'],
    ['01:39', 'always gone'],
    ['01:40', 'always gone later'],
    ['01:41', 'always gone later'],
    ['03:59', 'always gone later'],
    ['04:00', 'always later'],
    ['09:00', 'always later'],
  ] as const) {
    expect([when, await fenced(when)]).toEqual([when, expected]);
  }
  await own.put('Sighting', [seen('new')]);
  expect(await fenced('09:01')).toBe('always later new');
  await own.put('Sighting', [{ ...seen('new'), lat: 0 }]);
  expect(await fenced('09:02')).toBe('always later');
  // Another instant on one axis is none that was kept.
  expect((await own.rows("GEOFENCE(51.5, -0.1, 1) AS OF '2024-03-02T00:03:00Z'")).map(({ nodeId }) => nodeId)).toEqual([
    'always',
    'gone',
    'later',
  ]);
  expect(await fenced('09:03')).toBe('always later');
  await own.close();
});

test('a trace has legs; a car that is too fast was not one car', async () => {
  const columns = ['leg', 'nodeId', 'seconds', 'implausible'];
  const legs = await cells("ANPR_TRACE('ab12 CDE')", ...columns);
  expect(legs).toEqual([
    [0n, 's1', null, null],
    [1n, 's2', 3600, false],
    [2n, 's3', 600, true],
  ]);
  expect(await cells("ANPR_TRACE('AB12CDE', FUZZY => TRUE)", 'nodeId')).toHaveLength(4);
  expect(await cells("ANPR_TRACE('AB12CDE', FROM => '2024-03-01T11:00:00Z', TO => '2024-03-01T11:10:00Z')", ...columns)).toEqual([
    [0n, 's2', null, null],
  ]);
  expect((await store.refusal("ANPR_TRACE('x', FROM => 'May')")).code).toBe('REL_INVALID');
});

test('the incident that is severe comes before the one that has waited', async () => {
  const [first, second, ...others] = await store.rows('SELECT * FROM DISPATCH_PRIORITY()');
  expect([first!['nodeId'], first!['unit'], Math.round(Number(first!['wait_secs']))]).toEqual(['i1', 'u1', 1800]);
  const metres = metresBetween(51.5, -0.1, 51.5, -0.2);
  expect(first!['score']).toBeCloseTo(0.6 + 0.3 * 0.5 + (0.1 * 5_000) / (5_000 + metres), 9);
  expect(first!['eta_secs']).toBeCloseTo(metres / (40 / 3.6), 6);
  expect([second!['nodeId'], others]).toEqual(['i2', []]);
  expect(await cells("DISPATCH_PRIORITY('i2', WAIT_WEIGHT => 0, NEAR_WEIGHT => 0)", 'score')).toEqual([[0.6 * 0.2]]);
});

test('incidents of one pattern are a cluster; noise is left out', async () => {
  expect(await cells('SELECT * FROM CRIME_PATTERN_CLUSTER()', 'nodeId', 'cluster', 'core', 'size')).toEqual([
    ['i1', 'i1', true, 3n],
    ['i2', 'i1', true, 3n],
    ['i3', 'i1', true, 3n],
  ]);
  expect(await cells("CRIME_PATTERN_CLUSTER('fraud')", 'nodeId')).toEqual([]);
});
