/** A small world for the functions of the domain: people, lists, shares, money and sightings, of which some change late in the history. */
import type { ColumnType } from '../../../src/log/values/value.ts';
import { domainFunctions } from '../../../src/planner/table-functions/domain/all.ts';

interface Rows {
  readonly type: string;
  readonly columns: Readonly<Record<string, ColumnType>>;
  readonly cells: readonly (readonly (string | number | null)[])[];
}

const count = 60;
const numbers = Array.from({ length: count }, (_, i) => i);
const given = ['Robert', 'Bob', 'Anna', 'Omar', 'Wei', 'Olga'];
const surnames = ['Tomb', 'Karova', 'Lindqvist', 'Garnekta'];
const nameOf = (i: number): string => `${given[i % given.length]!} ${surnames[(i * 7) % surnames.length]!}`;
const day = (i: number): string => `2023-0${1 + (i % 9)}-${String(10 + (i % 18))}T0${i % 10}:00:00.000000000Z`;

/** What is written before the history. */
export const early: readonly Rows[] = [
  {
    type: 'Party',
    columns: { id: 'string', name: 'string', birth_date: 'string', phone: 'string' },
    cells: numbers.map((i) => [
      `p${i}`,
      nameOf(i),
      `19${50 + (i % 12)}-01-3${i % 2}`,
      i % 3 === 0 ? null : `+4420794600${10 + (i % 40)}`,
    ]),
  },
  {
    type: 'Listing',
    columns: { id: 'string', name: 'string', list: 'string' },
    cells: numbers.slice(0, 20).map((i) => [`l${i}`, nameOf(i * 3), i % 2 === 0 ? 'one' : 'two']),
  },
  {
    type: 'Ownership',
    columns: { id: 'string', owner: 'string', owned: 'string', pct: 'number' },
    cells: numbers.map((i) => [`o${i}`, `p${(i * 11 + 3) % count}`, `p${i % 20}`, 100 / 3 + (i % 30)]),
  },
  {
    type: 'Transfer',
    columns: { id: 'string', from: 'string', to: 'string', amount: 'number', at: 'string' },
    cells: numbers.map((i) => [`t${i}`, `w${i % 12}`, `w${(i * 5 + 1) % 12}`, 1_000 / 7 + i, day(i)]),
  },
  {
    type: 'Sighting',
    columns: { id: 'string', subject: 'string', lat: 'number', lon: 'number', at: 'string' },
    cells: numbers.map((i) => [`s${i}`, `AB1${i % 4}CDE`, 51.5 + i / 7_000, -0.1 - i / 9_000, day(i)]),
  },
  {
    type: 'Incident',
    columns: {
      id: 'string',
      kind: 'string',
      lat: 'number',
      lon: 'number',
      severity: 'number',
      mo: 'string',
      status: 'string',
      at: 'string',
    },
    cells: numbers.map((i) => [
      `i${i}`,
      'theft',
      51.5 + (i % 5) / 1_000,
      -0.1,
      (i % 10) / 10,
      'back door forced',
      'open',
      day(i % 3),
    ]),
  },
  {
    type: 'Account',
    columns: {
      id: 'string',
      platform: 'string',
      handle: 'string',
      name: 'string',
      bio: 'string',
      created_at: 'string',
      followers: 'integer',
    },
    // Each of six people on two platforms, under one handle for every second of them. All of them are older than the year that counts.
    cells: numbers
      .slice(0, 12)
      .map((i) => [
        `a${i}`,
        i < 6 ? 'birdsite' : 'chatter',
        `handle${i % 2 === 0 ? i % 6 : i}`,
        nameOf(i % 6),
        `sailor ${i % 3} of the harbour`,
        `20${10 + i}-01-01T00:00:00.000000000Z`,
        900 * 10 ** (i % 4),
      ]),
  },
  {
    type: 'Post',
    columns: { id: 'string', account: 'string', text: 'string', at: 'string', object: 'string' },
    cells: numbers.map((i) => [
      `x${i}`,
      `a${i % 12}`,
      `what a terrible day number ${i % 6} it is in the harbour`,
      day(i),
      `u${i % 6}`,
    ]),
  },
];

/** What is written after it: others, and other versions of some. */
export const late: readonly Rows[] = early.map(({ type, columns, cells }) => ({
  type,
  columns,
  cells: cells.filter((_, i) => i % 4 === 1).map(([id, ...rest], i) => [i % 2 === 0 ? id! : `${id!}b`, ...rest]),
}));

/** Judgements, in this order. */
export const judged: readonly string[] = ["FUSE_IDENTITIES('p1', 'p2', 'one passport')", "SPLIT_IDENTITIES('p1', 'p25')"];

/** Each has an answer, also as of the middle of the history. */
export function domainQuestions(then: string): readonly string[] {
  const calls = [
    "DETECT_IDENTITIES('call +44 20 7946 0018 or write to ann@example.org')",
    "LOOKUP_IDENTITY('+442079460020')",
    "RESOLVE_IDENTITY('p1')",
    "TRAIN_IDENTITIES('Party')",
    "RESOLVE_IDENTITY('Omar Garnekta', MODE => 'canonical')",
    "BENEFICIAL_OWNERSHIP_CHAIN('p7')",
    "SANCTIONS_SCREEN('Bobby Tomb', THRESHOLD => 0.5)",
    "CRYPTO_TRACE('w1')",
    "CRYPTO_TRACE('w1', METHOD => 'fifo')",
    "WIRE_RECONSTRUCTION('w1', TOLERANCE_PCT => 50, WINDOW_HOURS => 9000)",
    "HAWALA_TRACE('w1')",
    'GEOFENCE(51.5, -0.1, 500)',
    "ANPR_TRACE('AB11CDE')",
    'DISPATCH_PRIORITY()',
    'CRIME_PATTERN_CLUSTER()',
    "SENTIMENT_SCORE('what a terrible day')",
    "INFLUENCE_TIER('a1')",
    "POSTING_PATTERN('a1')",
    "NARRATIVE_TRACE('x1')",
    "BOT_AMPLIFICATION_SCORE('a1')",
    'INAUTHENTIC_BEHAVIOUR_SCAN()',
    "STANCE_SCORE('x1', TARGET => 'harbour')",
    "BIAS_SCORE('a1')",
    "STYLE_FINGERPRINT('a1', COMPARE => 'a2')",
    "AUTHENTICITY_SCORE('a1')",
    // Posts of one object are weeks apart.
    'COORDINATED_AMPLIFICATION(TIME_WINDOW => 20000000)',
    'PERSONA_CLUSTER_DETECT()',
    "CROSS_PLATFORM_ACCOUNT('a0', THRESHOLD => 0.3)",
  ];
  const missing = domainFunctions.filter(({ name }) => !calls.some((call) => call.startsWith(`${name}(`)));
  if (missing.length > 0) throw new Error(`no question calls ${missing.map(({ name }) => name).join(', ')}`);
  const asked = calls.map((call) => `SELECT * FROM ${call}`);
  // How long an incident waits is told by the nanosecond at which it is asked about.
  return [...asked.filter((call) => !call.includes('DISPATCH')), ...asked.map((call) => `${call} ${then}`)];
}
