/**
 * Generated sets of rows of which some are one thing, with the slips and the ways of writing that such sets have: persons, papers,
 * restaurants, offers. Each has look-alikes that are not one: families, namesakes, journal versions, branches of a chain, models of a series.
 */
import { TestRandom } from '../harness.ts';

export interface LabelledSet {
  readonly name: string;
  readonly properties: Readonly<Record<string, 'string' | 'number' | 'integer'>>;
  /** `thing` says which rows are one; it is no column. */
  readonly rows: readonly { readonly thing: number; readonly row: Readonly<Record<string, string | number | null>> }[];
}

class Dice {
  readonly #bytes: Uint8Array;
  #next = 0;

  constructor(seed: number) {
    this.#bytes = new TestRandom(seed).fill(new Uint8Array(1 << 18));
  }

  below(sides: number): number {
    const two = this.#bytes[this.#next]! * 256 + this.#bytes[this.#next + 1]!;
    this.#next = (this.#next + 2) % (this.#bytes.length - 2);
    return two % sides;
  }

  is(percent: number): boolean {
    return this.below(100) < percent;
  }

  of<T>(all: readonly T[]): T {
    return all[this.below(all.length)]!;
  }

  /** The first ones more often than the last. */
  common<T>(all: readonly T[]): T {
    return all[Math.min(this.below(all.length), this.below(all.length))]!;
  }

  digits(count: number): string {
    return Array.from({ length: count }, () => this.below(10)).join('');
  }

  typo(word: string): string {
    if (word.length < 3) return word;
    const at = 1 + this.below(word.length - 1);
    const letter = /\d/.test(word[at]!) ? String(this.below(10)) : 'etaoinshrdlu'[this.below(12)]!;
    const kind = this.below(4);
    if (kind === 0) return word.slice(0, at) + letter + word.slice(at);
    if (kind === 1) return word.slice(0, at) + word.slice(at + 1);
    if (kind === 2) return word.slice(0, at) + letter + word.slice(at + 1);
    return at + 1 < word.length ? word.slice(0, at) + word[at + 1]! + word[at]! + word.slice(at + 2) : word;
  }
}

const wordsOf = (text: string): readonly string[] => text.split(' ');

const given = wordsOf(
  'emily jack joshua jessica thomas james sarah william chloe lachlan sophie isabella matthew samuel ella georgia daniel benjamin ruby ' +
    'mia hannah charlotte alexander nicholas lucy olivia harry max madison ryan jacob zachary liam noah grace amelia lily caitlin tahlia ' +
    'robert michael elizabeth katherine anthony patrick rebecca abigail christopher margaret natasha dominic gabriel xavier tobias imogen ' +
    'henrietta cornelius ludmila yusuf ahmed fatima mei hiroshi giulia mateo',
);
const nicknames: Readonly<Record<string, string>> = {
  robert: 'bob',
  michael: 'mike',
  elizabeth: 'liz',
  katherine: 'kate',
  william: 'bill',
  christopher: 'chris',
  margaret: 'maggie',
  anthony: 'tony',
  benjamin: 'ben',
};
const surnames = wordsOf(
  'smith jones white brown williams wilson taylor clarke campbell green ryan reid martin webb nguyen thompson johnson hall harris ' +
    'robinson mcdonald morrison matthews dixon bishop coleman ferguson hayward blackwell rosenthal kowalski fitzgerald petrov santos ' +
    'yamamoto oconnor lindqvist mahoney pemberton whitfield abernathy castellano dimitriou ellingworth featherstone goldsworthy hutchinson ' +
    'ivanovic jankowski kensington ludlow macfarlane nakamura osterberg quigley radcliffe stathopoulos treloar underwood vandermeer ' +
    'winterbourne yardley zielinski',
);
const streets = wordsOf(
  'station church main victoria park king queen high bridge mill george albert elizabeth railway river forest hillside orchard meadow ' +
    'cockatoo wattle banksia jarrah waratah telopea burramurra mackellar',
);
const kinds = wordsOf('street road avenue place crescent drive court close');
const suburbs = wordsOf(
  'northbridge ashfield kingswood riverton lakeside hillcrest brookfield glenwood fairview eastwood mandurah toowong carlton fitzroy ' +
    'newtown richmond subiaco bendigo ballarat wodonga tamworth',
);

export function persons(seed: number): LabelledSet {
  const dice = new Dice(seed * 31 + 1);
  const rows: { thing: number; row: Record<string, string | null> }[] = [];
  const households: Record<string, string>[] = [];
  for (let thing = 0; thing < 500; thing++) {
    const family = dice.is(15) && households.length > 0 ? dice.of(households) : null;
    const address = family ?? {
      surname: dice.common(surnames),
      street_number: String(1 + dice.below(180)),
      address_1: `${dice.of(streets)} ${dice.of(kinds)}`,
      suburb: dice.of(suburbs),
      postcode: `${2 + dice.below(5)}${dice.digits(3)}`,
      state: dice.common(['nsw', 'vic', 'qld', 'wa', 'sa']),
    };
    households.push(address);
    const person = {
      given_name: dice.common(given),
      ...address,
      date_of_birth: `${1920 + dice.below(90)}${String(1 + dice.below(12)).padStart(2, '0')}${String(1 + dice.below(28)).padStart(2, '0')}`,
      soc_sec_id: dice.digits(7),
    };
    rows.push({ thing, row: person });
    const copies = dice.is(50) ? 1 + dice.below(3) : 0;
    for (let copy = 0; copy < copies; copy++) rows.push({ thing, row: corrupt(person, dice) });
  }
  const properties = Object.fromEntries(Object.keys(rows[0]!.row).map((column) => [column, 'string' as const]));
  return { name: 'persons', properties, rows };
}

function corrupt(person: Readonly<Record<string, string>>, dice: Dice): Record<string, string | null> {
  const row: Record<string, string | null> = { ...person };
  for (let changes = 1 + dice.below(5); changes > 0; changes--) {
    const column = dice.of(Object.keys(person));
    const value = row[column];
    if (value === null || value === undefined) continue;
    const kind = dice.below(10);
    if (kind < 5) row[column] = dice.typo(value);
    else if (kind < 7) row[column] = null;
    else if (kind === 7) [row['given_name'], row['surname']] = [row['surname']!, row['given_name']!];
    else if (kind === 8) row['given_name'] = nicknames[person['given_name']!] ?? person['given_name']!.slice(0, 1);
    else if (column !== 'soc_sec_id' && column !== 'date_of_birth' && column !== 'given_name') row['suburb'] = dice.of(suburbs);
  }
  return row;
}

const topics = wordsOf(
  'query optimization distributed databases streams indexing spatial joins transaction recovery data mining association rules semistructured ' +
    'xml warehouse views materialized caching replication concurrency control workflow schema integration approximate answering histograms ' +
    'nearest neighbor search clustering high dimensional temporal active deductive object oriented parallel sampling selectivity estimation ' +
    'similarity wavelet decision trees privacy peer sensor networks keyword ranking',
);
const venues: readonly (readonly [string, string])[] = [
  ['SIGMOD Conference', 'International Conference on Management of Data'],
  ['VLDB', 'Very Large Data Bases'],
  ['SIGMOD Record', 'ACM SIGMOD Record'],
  ['VLDB J.', 'The VLDB Journal: The International Journal on Very Large Data Bases'],
  ['ACM Trans. Database Syst.', 'ACM Transactions on Database Systems (TODS)'],
];
const capital = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1);

export function papers(seed: number): LabelledSet {
  const dice = new Dice(seed * 37 + 2);
  const rows: { thing: number; row: Record<string, string | number | null> }[] = [];
  let thing = 0;
  const add = (title: string, authors: readonly string[], venue: number, year: number): void => {
    const own = thing++;
    rows.push({ thing: own, row: { title, authors: authors.join(', '), venue: venues[venue]![0], year } });
    if (!dice.is(60)) return;
    const words = title.split(' ').map((word) => (dice.is(4) ? dice.typo(word) : word));
    if (dice.is(8) && words.length > 5) words.splice(words.length - 2);
    const written = authors.map((author) => (dice.is(35) ? `${author[0]!}. ${author.split(' ').at(-1)!}` : author));
    if (dice.is(20)) written.reverse();
    if (dice.is(8) && written.length > 1) written.pop();
    const joined = written.map((author) => (dice.is(3) ? dice.typo(author) : author)).join(', ');
    rows.push({
      thing: own,
      row: { title: words.join(dice.is(5) ? '  ' : ' '), authors: joined, venue: venues[venue]![1], year },
    });
  };
  for (let i = 0; i < 420; i++) {
    const words = Array.from({ length: 4 + dice.below(5) }, () => capital(dice.of(topics)));
    const title = dice.is(30) ? `${words.slice(0, 2).join(' ')}: ${words.slice(2).join(' ')}` : words.join(' ');
    const authors = Array.from({ length: 1 + dice.below(4) }, () => `${capital(dice.of(given))} ${capital(dice.of(surnames))}`);
    const [venue, year] = [dice.below(2), 1994 + dice.below(10)];
    add(title, authors, venue, year);
    // The journal has it again, later; and the same people wrote something alike.
    if (dice.is(8)) add(title, authors, 3 + dice.below(2), year + 1 + dice.below(2));
    if (dice.is(10))
      add(
        [...words.slice(0, 3), ...Array.from({ length: 3 }, () => capital(dice.of(topics)))].join(' '),
        authors,
        dice.below(3),
        year,
      );
  }
  return { name: 'papers', properties: { title: 'string', authors: 'string', venue: 'string', year: 'integer' }, rows };
}

const dishes = wordsOf(
  'golden dragon olive blue parrot palace garden harbor bistro grill cafe tavern trattoria cantina brasserie oyster lotus saffron juniper ' +
    'magnolia copper lantern corner station market fig pepper rosemary cellar terrace',
);
const cuisines = wordsOf('american italian french chinese mexican steakhouses seafood delis continental thai');
const cities = ['new york', 'los angeles', 'san francisco', 'atlanta', 'las vegas', 'santa monica', 'brooklyn'];

export function restaurants(seed: number): LabelledSet {
  const dice = new Dice(seed * 41 + 3);
  const rows: { thing: number; row: Record<string, string | null> }[] = [];
  let thing = 0;
  const add = (row: Record<string, string>): void => {
    const own = thing++;
    rows.push({ thing: own, row });
    if (!dice.is(35)) return;
    const { name = '', addr = '', phone = '', city = '' } = row;
    rows.push({
      thing: own,
      row: {
        name: dice.is(25) ? `${name} restaurant` : dice.is(20) ? `the ${name}` : dice.is(15) ? dice.typo(name) : name,
        addr: addr
          .replace(' st.', dice.is(50) ? ' street' : ' st')
          .replace(' blvd.', ' boulevard')
          .replace(' ave.', dice.is(50) ? ' avenue' : ' ave'),
        city: dice.is(10) && city === 'los angeles' ? 'west hollywood' : city,
        phone: dice.is(12) ? `${phone.slice(0, -1)}${dice.below(10)}` : phone.replace('/', '-'),
        type: dice.is(60) ? dice.of(cuisines) : row['type']!,
      },
    });
  };
  for (let i = 0; i < 400; i++) {
    const row = {
      name: Array.from({ length: 1 + dice.below(3) }, () => dice.of(dishes)).join(' '),
      addr: `${1 + dice.below(900)} ${dice.of(['', 'e. ', 'w. ', 's. '])}${dice.of(streets)} ${dice.of(['st.', 'ave.', 'blvd.'])}`,
      city: dice.of(cities),
      phone: `${200 + dice.below(700)}/${200 + dice.below(700)}-${dice.digits(4)}`,
      type: dice.of(cuisines),
    };
    add(row);
    // Another house of the chain, and another room of the hotel.
    if (dice.is(6))
      add({
        ...row,
        addr: `${1 + dice.below(900)} ${dice.of(streets)} st.`,
        city: dice.of(cities),
        phone: `${200 + dice.below(700)}/555-${dice.digits(4)}`,
      });
    if (dice.is(5)) add({ ...row, name: `${dice.of(dishes)} ${dice.of(dishes)}`, type: dice.of(cuisines) });
  }
  const properties = Object.fromEntries(Object.keys(rows[0]!.row).map((column) => [column, 'string' as const]));
  return { name: 'restaurants', properties, rows };
}

const brands = wordsOf(
  'sony canon panasonic samsung bose garmin linksys netgear yamaha denon whirlpool frigidaire nikon olympus',
);
const goods = [
  'digital camera',
  'lcd hdtv',
  'home theater system',
  'wireless router',
  'dishwasher',
  'camcorder',
  'speaker',
  'gps navigator',
];
const colours = wordsOf('black silver white red blue stainless');
const praise = wordsOf('easy bright compact powerful stylish advanced reliable crisp quick quiet efficient premium smart');

export function offers(seed: number): LabelledSet {
  const dice = new Dice(seed * 43 + 4);
  const rows: { thing: number; row: Record<string, string | number | null> }[] = [];
  let thing = 0;
  const describe = (good: string): string =>
    `${Array.from({ length: 6 + dice.below(8) }, () => dice.of(praise)).join(' ')} ${good}`;
  const add = (brand: string, code: string, good: string, colour: string, price: number): void => {
    const own = thing++;
    const name = `${capital(brand)} ${dice.is(50) ? `${colour} ${good}` : `${good} ${colour}`} - ${code.replace('-', '')}`;
    rows.push({
      thing: own,
      row: { name, description: dice.is(60) ? describe(good) : null, manufacturer: dice.is(70) ? brand : null, price },
    });
    if (!dice.is(60)) return;
    const words = [
      dice.is(85) ? capital(brand) : null,
      dice.is(90) ? code : null,
      good,
      dice.is(60) ? colour : null,
      ...Array.from({ length: dice.below(4) }, () => dice.of(praise)),
    ];
    const other = words.filter((word) => word !== null).join(' ');
    const asked = dice.is(25) ? null : Math.round(price * (90 + dice.below(20))) / 100;
    rows.push({
      thing: own,
      row: {
        name: other,
        description: dice.is(40) ? describe(good) : null,
        manufacturer: dice.is(30) ? brand : null,
        price: asked,
      },
    });
  };
  for (let i = 0; i < 350; i++) {
    const [brand, good, colour] = [dice.of(brands), dice.of(goods), dice.of(colours)];
    const code = `${dice.of(['dsc', 'kdl', 'wrt', 'hts', 'rx', 'sc', 'tx', 'bdp'])}-${dice.of(['w', 'v', 's', ''])}${10 + dice.below(900)}`;
    const price = 40 + dice.below(1500);
    add(brand, code, good, colour, price);
    // The next model of the series.
    if (dice.is(40))
      add(
        brand,
        code.replace(/\d+$/, (digits) => String(Number(digits) + 10)),
        good,
        dice.of(colours),
        price + 50 + dice.below(100),
      );
  }
  return { name: 'offers', properties: { name: 'string', description: 'string', manufacturer: 'string', price: 'number' }, rows };
}
