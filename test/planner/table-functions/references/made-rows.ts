/** The types of a world at random, and how a row of each is made. Words are chosen so that no two are alike, but the same. */
import type { Cells } from '../../../model/bitemporal.ts';
import type { Dice, MadeType } from './world.ts';

export const nameWords = 'Quorvex Lindamir Bhotaru Yespinga Drocknal Fumizetta Ostravel Wagnurti'.split(' ');
const programs = ['vantage', 'kestrel'];
const countries = ['GB', 'FR', 'DE'];
const phones = ['+44 20 7946 0018', '0044 2079460018', '+442079460137', '+33 1 99 00 22 46', 'none'];
const emails = ['Ann@example.org', 'ann@example.org', 'mailto:zed@example.com', 'nobody'];
const plates = ['AB12 CDE', 'ab-12-cde', 'A8I2CDE', 'XY99ZZZ', 'XY992ZZ'];
const wallets = ['w0', 'w1', 'w2', 'w3', 'w4', 'w5'];
const platforms = ['murmur', 'plazaro', 'tiktak'];
const bioWords = 'gardens octopus brewing violins chess lunar'.split(' ');
const mo = ['window night', 'night, window, glass', 'letter', 'door Night', null];
const clauses = [
  'what a wonderful day in the harbour',
  'the council is terrible and corrupt',
  'Obviously the regime always lies to the people of this town',
  'maybe the harbour could be built again, perhaps',
  'I love the new park, but the council was awful about it',
  'share this now please everyone',
  'the table has four legs and they are of wood',
];

const day = (at: number): string => new Date(Date.UTC(2024, 1, 20) + at * 1_000).toISOString();
/** A person's or a company's; a list of other names sometimes. */
const name = (dice: Dice): string =>
  [dice.of(nameWords), dice.of(nameWords), ...(dice.chance(25) ? [dice.of(nameWords)] : [])].join(dice.of([' ', ' ', ', ']));
const dates = ['1970-01-31', '1970-01-13', '1970-06-02', '1951-11-12', '1992', '1970-01-81'];

function person(dice: Dice): Cells {
  return {
    name: dice.maybe(92, name(dice)),
    kind: dice.of(['person', 'company', null]),
    aliases: dice.maybe(25, JSON.stringify([name(dice)])),
    birth_date: dice.maybe(60, dice.of(dates)),
    country: dice.maybe(60, dice.of(countries)),
  };
}

function text(dice: Dice): string {
  const said = Array.from({ length: 1 + dice.below(3) }, () => dice.of(clauses)).join('. ');
  return dice.chance(15) ? `${said} see https://example.org/${dice.below(3)}` : said;
}

export const typesOfWorld: readonly MadeType[] = [
  {
    name: 'Party',
    role: 'party',
    columns: {
      name: 'string',
      kind: 'string',
      aliases: 'json',
      birth_date: 'string',
      country: 'string',
      phone: 'string',
      email: 'string',
    },
    letter: 'p',
    keys: 14,
    make: (dice) => ({ ...person(dice), phone: dice.maybe(50, dice.of(phones)), email: dice.maybe(40, dice.of(emails)) }),
  },
  {
    name: 'Listing',
    role: 'listing',
    columns: {
      name: 'string',
      kind: 'string',
      aliases: 'json',
      birth_date: 'string',
      country: 'string',
      program: 'string',
      list: 'string',
    },
    letter: 'l',
    keys: 10,
    make: (dice) => ({ ...person(dice), program: dice.of(programs), list: dice.of(['one', 'two', null]) }),
  },
  {
    name: 'Stake',
    role: 'ownership',
    columns: { owner: 'string', owned: 'string', pct: 'number' },
    renamed: { owner: 'holder', pct: 'share' },
    letter: 's',
    keys: 16,
    make: (dice) => ({
      owner: dice.maybe(95, `p${String(dice.below(6)).padStart(2, '0')}`),
      owned: `p${String(dice.below(6)).padStart(2, '0')}`,
      pct: dice.of([10, 25, 30, 50, 60, 100, null, -5]),
    }),
  },
  ...(['Transfer', 'Payment'] as const).map(
    (each): MadeType => ({
      name: each,
      role: 'transfer',
      columns: {
        from: 'string',
        to: 'string',
        amount: 'number',
        currency: 'string',
        at: 'timestamp',
        ...(each === 'Transfer' && { txid: 'string' }),
      },
      renamed: each === 'Transfer' ? {} : { from: 'payer', to: 'payee', at: 'booked' },
      letter: each === 'Transfer' ? 't' : 'y',
      keys: 22,
      make: (dice, key) => ({
        from: dice.maybe(97, dice.of(wallets)),
        to: dice.of(wallets),
        amount: dice.of([100, 100, 60, 40, 98, 95, 5, 30.5, 0]),
        currency: dice.of(['EUR', 'EUR', 'EUR', 'BTC', null]),
        at: dice.maybe(90, day(3_600 * dice.below(160))),
        ...(each === 'Transfer' && { txid: dice.maybe(80, `x${dice.below(4)}${key}`) }),
      }),
    }),
  ),
  {
    name: 'Sighting',
    role: 'sighting',
    columns: { subject: 'string', lat: 'number', lon: 'number', at: 'timestamp' },
    letter: 'g',
    keys: 14,
    make: (dice) => ({
      subject: dice.maybe(95, dice.of(plates)),
      ...place(dice),
      at: dice.maybe(85, day(600 * dice.below(300))),
    }),
  },
  {
    name: 'Incident',
    role: 'incident',
    columns: {
      kind: 'string',
      lat: 'number',
      lon: 'number',
      at: 'timestamp',
      severity: 'number',
      mo: 'string',
      status: 'string',
    },
    letter: 'i',
    keys: 24,
    make: (dice) => ({
      kind: dice.of(['theft', 'Theft', 'fraud']),
      ...place(dice),
      at: dice.maybe(92, day(3_600 * dice.below(1_200))),
      severity: dice.of([0, 0.2, 0.5, 1, 3, null]),
      mo: dice.of(mo),
      status: dice.of(['open', 'open', 'Closed', 'done', null]),
    }),
  },
  {
    name: 'Unit',
    role: 'unit',
    columns: { lat: 'number', lon: 'number', status: 'string' },
    letter: 'u',
    keys: 8,
    make: (dice) => ({ ...place(dice), status: dice.of(['free', 'Available', 'busy', null]) }),
  },
  {
    name: 'Account',
    role: 'account',
    columns: {
      platform: 'string',
      handle: 'string',
      name: 'string',
      bio: 'string',
      created_at: 'timestamp',
      followers: 'integer',
      phone: 'string',
    },
    letter: 'a',
    keys: 6,
    make: (dice) => ({
      platform: dice.maybe(90, dice.of(platforms)),
      handle: dice.of(['quorvex', 'Quorvex_77', 'bhotaru', 'bhotaru12345', 'lindamir99', null]),
      name: dice.maybe(80, name(dice)),
      bio: dice.maybe(
        70,
        Array.from({ length: 1 + dice.below(4) }, () => dice.of(bioWords)).join(' ') + dice.of(['', '', ' my.example.org']),
      ),
      created_at: dice.maybe(80, day(-86_400 * dice.below(900))),
      followers: dice.maybe(85, dice.of([-1, 0, 7, 999, 1_000, 54_321, 100_000, 2_000_000])),
      phone: dice.maybe(40, dice.of(phones)),
    }),
  },
  {
    name: 'Post',
    role: 'post',
    columns: { account: 'string', platform: 'string', text: 'string', at: 'timestamp', object: 'string', reply_to: 'string' },
    letter: 'o',
    keys: 48,
    make: (dice) => ({
      account: dice.maybe(95, `a0${dice.below(4)}`),
      platform: dice.of(platforms),
      text: dice.maybe(95, text(dice)),
      at: dice.maybe(90, day(dice.chance(50) ? 5 * dice.below(30) : 600 * dice.below(400))),
      object: dice.maybe(60, `u${dice.below(3)}`),
      reply_to: dice.maybe(20, `o${String(dice.below(48)).padStart(2, '0')}`),
    }),
  },
];

/** No two of them are as far from a third: around a town, on both sides of the antimeridian, near a pole. */
const spots: readonly (readonly [number, number])[] = [
  ...[0, 0.0011, 0.0027, 0.0046, 0.0071].flatMap((north, i) =>
    [0, 0.0013, 0.0031].map((east, j) => [51.5 + north + 0.000_03 * j, -0.1 + east + 0.000_07 * i] as const),
  ),
  [0.0007, 179.9991],
  [0.0013, -179.9983],
  [0.0046, 180],
  [0.0087, -180],
  [89.9991, 0],
  [89.9973, 121],
  [89.9982, -133],
];

/** Mostly one of the spots; what lies nowhere is nowhere near. */
function place(dice: Dice): { lat: number | null; lon: number | null } {
  const which = dice.below(20);
  if (which < 2) return { lat: [null, 95][which]!, lon: 8 };
  const [lat, lon] = dice.of(spots);
  return { lat, lon };
}
