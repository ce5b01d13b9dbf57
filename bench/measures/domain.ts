/**
 * Domain functions at size, in the bench's own process: a name against a list of 20,000, one person among 100,000 and all of them
 * clustered, money over a million transfers, places within a distance among a million. Rows are made from one seed.
 */
import { cellAt } from '../../src/log/values/vector-builder.ts';
import { AnnalsStore } from '../annals-store.ts';
import type { BenchContext } from '../context.ts';
import { mustRun, pinned, serverCore } from '../processes.ts';
import { quantile, quotient, summary } from '../report.ts';

const asked = 400;
const warmUp = 50;

export async function screening({ report }: BenchContext): Promise<void> {
  const names = 20_000;
  const made = new Made(11);
  const all = Array.from({ length: names }, () => made.name());
  await inStore(async (store) => {
    await store.register('Listing', { id: 'string', name: 'string', list: 'string' }, 'id');
    await store.ingest(
      'Listing',
      linesOf(names, (i) => ({ id: `l${i}`, name: all[i]!, list: 'one' })),
    );
    const first = await msOf(store, "SELECT * FROM SANCTIONS_SCREEN('nobody')");
    const times = await timesOf(asked, async () => {
      const name = made.damaged(all[made.below(names)]!);
      return msOf(store, `SELECT * FROM SANCTIONS_SCREEN('${name}')`);
    });
    const note = `of ${names.toLocaleString('en')} names; the first one, which reads the list, ${first.toFixed(0)} ms`;
    report.add({ measure: 'a name screened', product: 'annals', unit: 'ms', better: 'smaller', samples: times, note });
    report.figure('screening.p95', p95Of(times));
  });
}

export async function resolve({ report, repeats }: BenchContext): Promise<void> {
  const people = repeats === 1 ? 20_000 : 100_000;
  // Before there is much to collect.
  await ingestWithIdentifiers(report, people);
  const made = new Made(12);
  const rows: object[] = [];
  for (let i = 0; rows.length < people; i++) {
    const person = made.person();
    rows.push({ id: `p${i}`, ...person });
    if (made.below(3) === 0 && rows.length < people) rows.push({ id: `q${i}`, ...made.copyOf(person) });
  }
  await inStore(async (store) => {
    await store.register('Person', Object.fromEntries(Object.keys(rows[0]!).map((name) => [name, 'string'])), 'id');
    await store.ingest(
      'Person',
      linesOf(people, (i) => rows[i]!),
    );
    const begun = performance.now();
    await store.query("SELECT * FROM RESOLVE_IDENTITY('p0', SOURCE => 'Person')");
    const read = (performance.now() - begun) / 1000;
    const ids = rows.map((row) => (row as { id: string }).id);
    const times = await timesOf(asked, () => {
      const id = ids[made.below(people)]!;
      return msOf(store, `SELECT * FROM RESOLVE_IDENTITY('${id}', SOURCE => 'Person')`);
    });
    const resumed = performance.now();
    const known = new Set<string>();
    let clusters = 0;
    for (const id of ids) {
      if (known.has(id)) continue;
      clusters++;
      const { batches } = await store.query(`SELECT * FROM RESOLVE_IDENTITY('${id}', SOURCE => 'Person')`);
      for (const { columns, selection, first, count } of batches) {
        for (let i = 0; i < count; i++) known.add(String(cellAt(columns[0]!, 'string', selection?.[i] ?? first + i)));
      }
    }
    const seconds = read + (performance.now() - resumed) / 1000;
    const note = `of ${people.toLocaleString('en')} persons; the first one, which reads them, ${read.toFixed(1)} s`;
    report.add({ measure: 'a person resolved', product: 'annals', unit: 'ms', better: 'smaller', samples: times, note });
    const measure = `${people.toLocaleString('en')} persons clustered`;
    const said = `${clusters.toLocaleString('en')} clusters, one question each`;
    report.add({ measure, product: 'annals', unit: 's', better: 'smaller', samples: [seconds], note: said });
    report.figure('resolve.p95', p95Of(times));
    report.figure('resolve.all', summary([seconds]));
  });
}

const ingestPairs = 12;

/** The same cells in columns that are identifiers by their names, and in columns that are none, by the time of all threads. */
async function ingestWithIdentifiers(report: BenchContext['report'], people: number): Promise<void> {
  const cells = (i: number): readonly string[] => [`+4420${String(i).padStart(8, '0')}`, `person${i}@example.org`, `AB${i}`];
  const load = async (columns: readonly [string, string, string]): Promise<number> => {
    let took = 0;
    await inStore(async (store) => {
      await store.register('Person', Object.fromEntries(['id', ...columns].map((name) => [name, 'string'])), 'id');
      const [first, second, third] = columns;
      const lines = [
        ...linesOf(people, (i) => {
          const [one, two, three] = cells(i);
          return { id: `p${i}`, [first]: one, [second]: two, [third]: three };
        }),
      ];
      const begun = process.cpuUsage();
      await store.ingest('Person', lines);
      const { user, system } = process.cpuUsage(begun);
      took = (user + system) / 1_000;
    });
    return took;
  };
  const [having, lacking]: [number[], number[]] = [[], []];
  const without = async (): Promise<number> => load(['first', 'other', 'third']);
  const within = async (): Promise<number> => load(['phone', 'email', 'plate']);
  // The first pair compiles what the others run. Whoever comes second finds what the first left to collect: they take turns.
  for (let round = 0; round <= ingestPairs; round++) {
    const isSwapped = round % 2 === 0;
    const [one, other] = isSwapped ? [await within(), await without()] : [await without(), await within()];
    if (round === 0) continue;
    lacking.push(isSwapped ? other : one);
    having.push(isSwapped ? one : other);
  }
  const shape = { measure: `${people.toLocaleString('en')} rows taken in`, unit: 'ms', better: 'smaller' } as const;
  report.add({ ...shape, product: 'annals', samples: having, note: 'CPU; three columns of identifiers' });
  report.add({
    ...shape,
    product: 'annals, without identifiers',
    samples: lacking,
    note: 'CPU; the same cells in plain columns',
  });
  report.figure('resolve.ingest', quotient(having, lacking));
}

export async function trace({ report, rows: transfers }: BenchContext): Promise<void> {
  const made = new Made(13);
  const accounts = transfers / 5;
  await inStore(async (store) => {
    const columns = { id: 'string', from: 'string', to: 'string', amount: 'number', at: 'timestamp' } as const;
    await store.register('Transfer', columns, 'id');
    const started = Date.UTC(2024, 0, 1);
    const lines = linesOf(transfers, (i) => ({
      id: `t${i}`,
      from: `w${made.below(accounts)}`,
      to: `w${made.below(accounts)}`,
      amount: 1 + made.below(10_000) / 7,
      at: new Date(started + i * 1_000).toISOString(),
    }));
    await store.ingest('Transfer', lines);
    const ask = (): Promise<number> => msOf(store, `SELECT * FROM CRYPTO_TRACE('w${made.below(accounts)}', MAX_HOPS => 5)`);
    const first = await ask();
    const times = await timesOf(asked, ask);
    const note = `of ${transfers.toLocaleString('en')} transfers; the first one, which reads them, ${(first / 1000).toFixed(1)} s`;
    report.add({ measure: 'money over 5 hops', product: 'annals', unit: 'ms', better: 'smaller', samples: times, note });
    report.figure('trace.p95', p95Of(times));
  });
}

export async function geofence({ report, rows: points, repeats, sqlite, directory }: BenchContext): Promise<void> {
  const made = new Made(14);
  const places = Array.from({ length: points }, () => [47 + made.below(1e6) / 1e6, 8 + made.below(1e6) / 1e6] as const);
  // A hundred of them, on average: a degree of latitude is 111.2 km, one of longitude here 75.4 km.
  const metres = Math.round(Math.sqrt((100 * 111_195 * 75_430) / (points * Math.PI)));
  const middles = Array.from({ length: 1_000 }, () => [47.1 + made.below(8e5) / 1e6, 8.1 + made.below(8e5) / 1e6] as const);
  const ours: number[] = [];
  let hits = 0;
  let first = 0;
  await inStore(async (store) => {
    await store.register('Sighting', { id: 'string', subject: 'string', lat: 'number', lon: 'number' }, 'id');
    const lines = linesOf(points, (i) => ({ id: `s${i}`, subject: `x${i}`, lat: places[i]![0], lon: places[i]![1] }));
    await store.ingest('Sighting', lines);
    const ask = (middle: readonly [number, number]): ReturnType<AnnalsStore['query']> =>
      store.query(`SELECT * FROM GEOFENCE(${middle[0]}, ${middle[1]}, ${metres})`);
    const began = performance.now();
    await ask(middles[0]!);
    first = performance.now() - began;
    for (let round = -warmRounds; round < repeats; round++) {
      const begun = performance.now();
      hits = 0;
      for (const middle of middles) hits += (await ask(middle)).rowCount;
      if (round >= 0) ours.push((performance.now() - begun) / middles.length);
    }
  });
  const measure = 'places within a distance';
  const note = `${(hits / middles.length).toFixed(1)} of ${points.toLocaleString('en')}; the first one, which reads them, ${(first / 1000).toFixed(1)} s`;
  report.add({ measure, product: 'annals', unit: 'ms', better: 'smaller', samples: ours, note });
  if (sqlite === null) return;
  const peer = await rtreeTimes(`${directory}/places.sqlite`, places, middles, metres, repeats);
  if (peer.hits !== hits) throw new Error(`${hits} places within the distance, ${peer.hits} by SQLite`);
  const said = 'R*Tree, then haversine; parsing and printing included';
  report.add({ measure, product: 'SQLite', unit: 'ms', better: 'smaller', samples: peer.samples, note: said });
  report.figure('geofence.sqlite', quotient(peer.samples, ours));
}

/** Rounds of a thousand questions until all of the path is compiled, which SQLite's is from the first. */
const warmRounds = 5;

/** Milliseconds of a question in SQLite, which has an R*Tree of the points, and how many places all questions found. */
async function rtreeTimes(
  file: string,
  places: readonly (readonly [number, number])[],
  middles: readonly (readonly [number, number])[],
  metres: number,
  repeats: number,
): Promise<{ readonly samples: readonly number[]; readonly hits: number }> {
  const inserts = places.map(([lat, lon], i) => `(${i + 1},${lat},${lat},${lon},${lon})`);
  let script =
    'PRAGMA synchronous=OFF;\nCREATE TABLE places (id INTEGER PRIMARY KEY, node TEXT, lat REAL, lon REAL);\n' +
    'CREATE VIRTUAL TABLE tree USING rtree(id, south, north, west, east);\nBEGIN;\n';
  for (let i = 0; i < inserts.length; i += 5_000) script += `INSERT INTO tree VALUES ${inserts.slice(i, i + 5_000).join()};\n`;
  // Boxes of the tree are of 32 bits: places are kept whole beside it.
  const whole = places.map(([lat, lon], i) => `(${i + 1},'s${i}',${lat},${lon})`);
  for (let i = 0; i < whole.length; i += 5_000) script += `INSERT INTO places VALUES ${whole.slice(i, i + 5_000).join()};\n`;
  await mustRun(['sqlite3', file], { input: Buffer.from(`${script}COMMIT;\n`) });
  const byLat = metres / 111_195 + 1e-5;
  const questions = middles.map(([lat, lon]) => {
    const byLon = byLat / Math.cos(((lat + byLat) * Math.PI) / 180);
    const distance = `2*6371008.8*asin(sqrt(pow(sin(radians(lat-${lat})/2),2)+cos(radians(lat))*cos(radians(${lat}))*pow(sin(radians(lon-${lon})/2),2)))`;
    return (
      `SELECT node, ${distance} AS d FROM tree JOIN places USING (id) WHERE south<=${lat + byLat} AND north>=${lat - byLat} ` +
      `AND west<=${lon + byLon} AND east>=${lon - byLon} AND d<=${metres} ORDER BY d;\n`
    );
  });
  const seconds = async (text: string): Promise<{ seconds: number; stdout: string }> =>
    mustRun(pinned(serverCore, ['sqlite3', file]), { input: Buffer.from(`PRAGMA cache_size=-1000000;\n${text}`) });
  // Everything is read once before it counts.
  const warm = `.output /dev/null\nSELECT sum(lat) FROM places;\nSELECT count(*) FROM tree;\n${questions.join('')}`;
  const samples: number[] = [];
  for (let round = 0; round < repeats; round++) {
    const empty = (await seconds(warm)).seconds;
    samples.push((1_000 * ((await seconds(warm + questions.join(''))).seconds - empty)) / questions.length);
  }
  const { stdout } = await seconds(questions.join(''));
  return { samples, hits: stdout.trim().split('\n').length };
}

async function inStore(run: (store: AnnalsStore) => Promise<void>): Promise<void> {
  const store = await AnnalsStore.open();
  try {
    await run(store);
  } finally {
    await store.close();
  }
}

async function msOf(store: AnnalsStore, sql: string): Promise<number> {
  const begun = performance.now();
  await store.query(sql);
  return performance.now() - begun;
}

async function timesOf(count: number, ask: () => Promise<number>): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < count + warmUp; i++) {
    const took = await ask();
    if (i >= warmUp) times.push(took);
  }
  return times;
}

function p95Of(times: readonly number[]): ReturnType<typeof summary> {
  return summary([
    quantile(
      times.toSorted((a, b) => a - b),
      0.95,
    ),
  ]);
}

function* linesOf(count: number, row: (i: number) => object): Generator<Buffer> {
  for (let first = 0; first < count; first += 2_000) {
    const length = Math.min(2_000, count - first);
    yield Buffer.from(Array.from({ length }, (_, i) => `${JSON.stringify(row(first + i))}\n`).join(''));
  }
}

const given =
  'james john robert michael william david richard joseph thomas charles maria anna elena olga natalia ivan sergei mohammed ahmed ali hassan omar yusuf wei ming juan carlos jose luis pedro pierre jean michel hans peter klaus giovanni marco luca emily jack sarah chloe sophie'.split(
    ' ',
  );
const syllables = 'ka ro mi ta len vor ber gin son ski dov mar pel quin zar hol fen bra tul dor nek vin sha lom gar eth'.split(
  ' ',
);
const streets = 'station church main victoria park king queen high bridge mill george albert railway river forest hillside'.split(
  ' ',
);

type Person = Readonly<Record<'given_name' | 'surname' | 'birth_date' | 'street' | 'city' | 'phone', string>>;

/** Names and persons of a seed. */
class Made {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  below(bound: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 4_294_967_296) * bound);
  }

  name(): string {
    const middle = this.below(3) === 0 ? `${this.#pick(given)} ` : '';
    return `${this.#pick(given)} ${middle}${this.#surname()}`;
  }

  person(): Person {
    const two = (below: number): string => String(1 + this.below(below)).padStart(2, '0');
    return {
      given_name: this.#pick(given),
      surname: this.#surname(),
      birth_date: `${1930 + this.below(75)}-${two(12)}-${two(28)}`,
      street: `${1 + this.below(200)} ${this.#pick(streets)} street`,
      city: this.#surname(),
      phone: `+44207946${String(this.below(10_000)).padStart(4, '0')}`,
    };
  }

  /** One of the cells as a hand slips. */
  copyOf(person: Person): Person {
    const column = this.#pick(['given_name', 'surname', 'street', 'city'] as const);
    return { ...person, [column]: this.damaged(person[column]) };
  }

  /** A letter is missing, or two are in each other's place. */
  damaged(text: string): string {
    const at = 1 + this.below(text.length - 2);
    return this.below(2) === 0
      ? text.slice(0, at) + text.slice(at + 1)
      : text.slice(0, at) + text[at + 1]! + text[at]! + text.slice(at + 2);
  }

  #surname(): string {
    return Array.from({ length: 2 + this.below(2) }, () => this.#pick(syllables)).join('');
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }
}
