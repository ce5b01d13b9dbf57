/**
 * Section 2 of the functions as slowly as its rules read: identifiers brought to one form by hand, every row weighed beside every other, and links
 * followed from the best down. Words of these worlds are the same or nothing alike, so that no likeness has to be worked out.
 */
import { formatInstant } from '../../../../src/log/values/timestamp.ts';
import { detected } from './detected.ts';
import { nameWords } from './made-rows.ts';
import { instantOf, wordsOf } from './money.ts';
import type { Expected, Question } from './question.ts';
import type { Basis, PlainRow, World } from './world.ts';

const phones = ['+44 20 7946 0018', '0044 (20) 7946-0137', '+33 1 99 00 22 46'];
const emails = ['ANN@example.org', 'zed@example.com'];
const identityTypes = ['Account', 'Listing', 'Party'] as const;

export function* identityQuestions(world: World, basis: Basis): Generator<Question> {
  const { dice } = world;
  yield detected(dice);
  const value = dice.of([...phones, ...emails]);
  yield { call: `LOOKUP_IDENTITY('${value}')`, rows: holders(world, basis, value) };
  const source = dice.chance(30) ? 'Party' : null;
  const people = source === null ? identityTypes.flatMap((type) => world.rowsOf(basis, type)) : world.rowsOf(basis, source);
  const by = dice.below(4);
  const asked =
    by === 0
      ? dice.of(phones)
      : by === 1
        ? `${dice.of(nameWords)} ${dice.of(nameWords)}`
        : people.length > 0
          ? dice.of(people).id
          : 'x';
  const resolved = new Resolved(world, basis, people);
  const given = `'${asked}'${source === null ? '' : `, SOURCE => '${source}'`}`;
  yield { call: `RESOLVE_IDENTITY(${given})`, rows: resolved.members(asked) };
  yield { call: `RESOLVE_IDENTITY(${given}, MODE => 'canonical')`, rows: resolved.canonical(asked) };
  // Rules are of the path that registered them.
  const isFused = basis.path === null && resolved.best(asked)?.some(({ type }) => type === 'Party');
  if (isFused) yield { call: `RESOLVE_IDENTITY(${given}, MODE => 'fuse')`, rows: resolved.fused(asked) };
}

/** `+` and digits, or null: none of the numbers has a country. */
function phoneOf(cell: unknown): string | null {
  const digits = typeof cell === 'string' ? cell.replace(/^00/, '+').replaceAll(/[^+\d]/g, '') : '';
  return digits.startsWith('+') ? digits : null;
}

function emailOf(cell: unknown): string | null {
  const email = typeof cell === 'string' ? cell.replace(/^mailto:/, '').toLowerCase() : '';
  return email.includes('@') ? email : null;
}

const formOf = { phone: phoneOf, email: emailOf };

function holders(world: World, basis: Basis, value: string): Expected[] {
  return (['Account', 'Party'] as const).flatMap((type) =>
    world.rowsOf(basis, type).flatMap(({ id, cells, validFrom, validTo }) =>
      (['phone', 'email'] as const).flatMap((column): Expected[] => {
        const form = formOf[column](value);
        if (form === null || formOf[column](cells[column]) !== form) return [];
        return [{ nodeId: id, type, kind: column, column, valid_from: validFrom, valid_to: validTo, score: 1 }];
      }),
    ),
  );
}

/** What a column says of two rows; `set` are its words, of which each may be rare. */
type Said =
  | { readonly kind: 'words'; readonly words: readonly string[]; readonly isName: boolean }
  | { readonly kind: 'date' | 'phone' | 'email'; readonly text: string }
  | { readonly kind: 'number'; readonly value: number };

class Resolved {
  readonly #world: World;
  readonly #basis: Basis;
  readonly #people: readonly PlainRow[];
  readonly #links: readonly { readonly a: string; readonly b: string; readonly score: number }[];
  readonly #groupOf: (id: string) => ReadonlySet<string>;
  readonly #isThere: (id: string) => boolean;

  constructor(world: World, basis: Basis, people: readonly PlainRow[]) {
    this.#world = world;
    this.#basis = basis;
    this.#people = people;
    const there = new Set(identityTypes.flatMap((type) => world.rowsOf(basis, type)).map(idOf));
    this.#isThere = (id) => there.has(id);
    const inOrder = people.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
    this.#links = inOrder
      .flatMap((a, i) => inOrder.slice(i + 1).map((b) => ({ a: idOf(a), b: idOf(b), score: this.#likelihood(a, b) })))
      .filter(({ score }) => score >= 0.5)
      .sort((x, y) => y.score - x.score || (`${x.a} ${x.b}` < `${y.a} ${y.b}` ? -1 : 1));
    const links = this.#links.map(({ a, b }) => [a, b] as const);
    this.#groupOf = world.judged(basis).groups(this.#isThere, links);
  }

  members(asked: string): Expected[] {
    return this.#clusters(asked).flatMap((cluster) =>
      cluster.map(({ type, id }) => ({ nodeId: id, type, canonical: cluster[0]!.id, score: this.#score(`${type} ${id}`) })),
    );
  }

  canonical(asked: string): Expected[] {
    const best = this.best(asked);
    if (best === null) return [];
    const [{ id, type }] = best as [{ id: string; type: string }];
    const score = Math.min(...best.map((each) => this.#score(`${each.type} ${each.id}`)));
    return [{ nodeId: id, type, canonical: id, members: best.map((each) => ({ id: each.id, type: each.type })), score }];
  }

  /** Name by the newest, country by the longest, email by what most say; other fields where all say the same. */
  fused(asked: string): Expected[] {
    const best = this.best(asked)!;
    const all = identityTypes.flatMap((type) => this.#world.rowsOf(this.#basis, type));
    const rows = best.map(({ id, type }) => all.find((row) => row.id === id && row.type === type)!);
    const parties = rows.filter(({ type }) => type === 'Party').sort((a, b) => (a.id < b.id ? -1 : 1));
    const fields: Record<string, unknown> = {};
    const choose = (field: string, rule: string, worth: (row: PlainRow, having: readonly PlainRow[]) => number): void => {
      const having = parties.filter(({ cells }) => cells[field] !== null);
      const most = Math.max(...having.map((row) => worth(row, having)));
      const chosen = having.find((row) => worth(row, having) === most);
      if (chosen !== undefined) fields[field] = { value: chosen.cells[field], source: { id: chosen.id, type: 'Party' }, rule };
    };
    choose('name', 'r0', (row) => Number(row.systemFrom - parties[0]!.systemFrom));
    choose('country', 'r1', ({ cells }) => String(cells['country']).length);
    choose('email', 'r2', ({ cells }, having) => having.filter((each) => each.cells['email'] === cells['email']).length);
    const cells = rows.map(({ id, type, cells: own }) => ({
      id,
      type,
      own: { id, ...own } as Readonly<Record<string, unknown>>,
    }));
    for (const field of new Set(cells.flatMap(({ own }) => Object.keys(own)))) {
      if (['name', 'country', 'email'].includes(field)) continue;
      const having = cells.filter(({ own }) => (own[field] ?? null) !== null);
      const [first] = having.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      if (first === undefined || having.some(({ own }) => own[field] !== first.own[field])) continue;
      fields[field] = { value: jsonOf(field, first.own[field]), source: { id: first.id, type: first.type }, rule: null };
    }
    return [{ nodeId: best[0]!.id, fields }];
  }

  /** Its rows by id; the cluster that is found best, of several the one of the smallest id. */
  best(asked: string): readonly { readonly id: string; readonly type: string }[] | null {
    const worth = (cluster: readonly { readonly id: string; readonly type: string }[]): number =>
      Math.max(...cluster.map(({ id, type }) => this.#seeds(asked).get(`${type} ${id}`) ?? 0));
    const [best] = this.#clusters(asked).toSorted((a, b) => worth(b) - worth(a) || (a[0]!.id < b[0]!.id ? -1 : 1));
    return best ?? null;
  }

  #clusters(asked: string): { id: string; type: string }[][] {
    const groups = new Set([...this.#seeds(asked).keys()].map((id) => [...this.#groupOf(id)].sort().join('\n')));
    return [...groups].map((group) =>
      group
        .split('\n')
        .map((each) => ({ type: each.split(' ')[0]!, id: each.split(' ')[1]! }))
        .sort((a, b) => (a.id < b.id ? -1 : 1)),
    );
  }

  /** Rows of the id, else of the number, else of a name that is alike; with how alike. */
  #seeds(asked: string): ReadonlyMap<string, number> {
    const byId = this.#people.filter(({ id }) => id === asked);
    if (byId.length > 0) return new Map(byId.map((row) => [idOf(row), 1]));
    const phone = phoneOf(asked);
    const byPhone = this.#people.filter(({ cells }) => phone !== null && phoneOf(cells['phone']) === phone);
    if (byPhone.length > 0) return new Map(byPhone.map((row) => [idOf(row), 1]));
    const words = [...wordsOf(asked)];
    return new Map(
      this.#people.flatMap((row): [string, number][] => {
        const name = saidOf(row).get('name');
        if (name?.kind !== 'words') return [];
        const { likeness } = compared(words, name.words, (word) => this.#rarity(row.type, 'name', word));
        return Math.round(likeness * 1e6) / 1e6 >= 0.75 ? [[idOf(row), Math.round(likeness * 1e6) / 1e6]] : [];
      }),
    );
  }

  /** Of its best link within its cluster. */
  #score(id: string): number {
    const within = (a: string, b: string): boolean =>
      (a === id || b === id) && this.#groupOf(id).has(a) && this.#groupOf(id).has(b);
    const judged = this.#world.judged(this.#basis).standing(this.#isThere);
    if (judged.some(({ a, b, isOne }) => isOne && within(a, b))) return 1;
    return this.#links.find(({ a, b }) => within(a, b))?.score ?? 1;
  }

  #size(type: string): number {
    return this.#people.filter((row) => row.type === type).length;
  }

  /** In bits; a hundred more rows are assumed, of which a tenth of one has it. */
  #rarity(type: string, column: string, text: string): number {
    const having = this.#people.filter((row) => row.type === type && textsOf(saidOf(row).get(column)).includes(text)).length;
    return Math.log2((this.#size(type) + 100) / (Math.max(0, having - 1) + 0.1));
  }

  #likelihood(a: PlainRow, b: PlainRow): number {
    let [sum, context] = [-Math.log2(Math.max(this.#size(a.type), this.#size(b.type)) + 100) - 5, 0];
    const others = saidOf(b);
    for (const [column, left] of saidOf(a)) {
      const right = others.get(column);
      if (right === undefined) continue;
      const bits = bitsOf(left, right, (text) =>
        Math.min(this.#rarity(a.type, column, text), this.#rarity(b.type, column, text)),
      );
      const isContext = left.kind === 'number' || (left.kind === 'words' && !left.isName);
      if (isContext && bits > 0) context += bits;
      else sum += bits;
    }
    return 1 / (1 + 2 ** -(sum + Math.min(12, context)));
  }
}

function idOf({ type, id }: PlainRow): string {
  return `${type} ${id}`;
}

function jsonOf(field: string, cell: unknown): unknown {
  if (field === 'aliases') return JSON.parse(String(cell));
  return field === 'created_at' ? formatInstant(instantOf(cell)!) : cell;
}

/** By column, names and other names together; what is NULL says nothing. */
function saidOf({ cells }: PlainRow): ReadonlyMap<string, Said> {
  const said = new Map<string, Said>();
  const aliases = cells['aliases'] ? (JSON.parse(String(cells['aliases'])) as string[]) : [];
  const names = [...(cells['name'] ? [String(cells['name'])] : []), ...aliases].join(' ');
  if (names !== '') said.set('name', { kind: 'words', words: [...wordsOf(names)], isName: true });
  for (const column of ['kind', 'country', 'program', 'list', 'platform', 'handle', 'bio']) {
    const cell = cells[column];
    const words = [
      ...new Set(
        String(cell ?? '')
          .toLowerCase()
          .match(/[a-z\d]+/g) ?? [],
      ),
    ];
    if (words.length > 0) said.set(column, { kind: 'words', words, isName: false });
  }
  if (cells['birth_date']) said.set('birth', { kind: 'date', text: String(cells['birth_date']) });
  if (typeof cells['followers'] === 'number') said.set('followers', { kind: 'number', value: cells['followers'] });
  for (const column of ['phone', 'email'] as const) {
    const cell = cells[column];
    // What is none of the kind is the same as another such cell, where their letters are.
    if (typeof cell === 'string') said.set(column, { kind: column, text: formOf[column](cell) ?? `- ${cell}` });
  }
  return said;
}

function textsOf(said: Said | undefined): readonly string[] {
  if (said === undefined) return [];
  return said.kind === 'words' ? said.words : [said.kind === 'number' ? String(said.value) : said.text];
}

function bitsOf(left: Said, right: Said, rarity: (text: string) => number): number {
  if (left.kind === 'words' && right.kind === 'words') {
    const { likeness, shared } = compared(left.words, right.words, rarity);
    const [most, against, unlike, alike] = left.isName ? [17, 10, 0.3, 0.85] : [8, 2.5, 0.25, 0.85];
    const share = Math.min(1, Math.max(0, (likeness - unlike) / (alike - unlike)));
    return share * Math.min(most, shared) - (1 - share) * against;
  }
  if (left.kind === 'number' && right.kind === 'number') {
    const [a, b] = [left.value, right.value];
    const far = Math.abs(a - b) / Math.max(Math.abs(a), Math.abs(b));
    return a === b ? Math.min(5, rarity(String(a))) : far < 0.05 ? 1.5 : far < 0.25 ? 0 : far < 0.5 ? -1 : -2.5;
  }
  const [a, b] = [left, right].map((each) => ('text' in each ? each.text : '')) as [string, string];
  if (left.kind === 'date') return datesSay(a, b, rarity);
  const isKind = !a.startsWith('- ');
  const isEmail = left.kind === 'email' && isKind;
  if (a === b) return Math.min(isEmail ? 20 : 13, rarity(a) + (isEmail ? 6 : 0));
  if (isKind === b.startsWith('- ')) return 0;
  const changed = a.length === b.length ? a.split('').filter((letter, i) => letter !== b[i]).length : Infinity;
  return changed === 1 || (changed === 2 && sorted(a) === sorted(b)) ? 2 : -1.5;
}

function datesSay(a: string, b: string, rarity: (text: string) => number): number {
  if (a === b) return Math.min(12, rarity(a));
  const isSameYear = a.slice(0, 4) === b.slice(0, 4);
  if (a.length < 10 || b.length < 10) return isSameYear ? 0 : -8;
  if (isSameYear && a.slice(5, 7) === b.slice(8) && a.slice(8) === b.slice(5, 7)) return 5;
  const same = a.split('').filter((letter, i) => letter === b[i]).length;
  if (same >= 9 || (same === 8 && sorted(a) === sorted(b))) return 4;
  return isSameYear ? -8 / 3 : -8;
}

function sorted(text: string): string {
  return text.split('').sort().join('');
}

/** How alike two lists of words are by the bits of their words: what one has more than the other counts half where the other has nothing more. */
function compared(
  left: readonly string[],
  right: readonly string[],
  rarity: (text: string) => number,
): { likeness: number; shared: number } {
  let [shared, leftOnly, rightOnly] = [0, 0, 0];
  const open = new Set(right.filter((word) => !left.includes(word)));
  for (const word of left) {
    const like = [...open].find((other) => isLonger(word, other));
    if (right.includes(word)) shared += rarity(word);
    else if (like === undefined) leftOnly += rarity(word) * (right.some((other) => isLonger(word, other)) ? 0.15 : 1);
    else {
      open.delete(like);
      const worth = Math.min(rarity(word), rarity(like));
      shared += 0.85 * worth;
      leftOnly += 0.15 * worth;
    }
  }
  for (const word of open) rightOnly += rarity(word) * (left.some((other) => isLonger(word, other)) ? 0.15 : 1);
  const apart = leftOnly === 0 || rightOnly === 0 ? (leftOnly + rightOnly) / 2 : leftOnly + rightOnly;
  return { likeness: shared === 0 ? 0 : shared / (shared + apart), shared };
}

/** A handle with digits behind it. */
function isLonger(one: string, other: string): boolean {
  return one !== other && Math.min(one.length, other.length) >= 5 && (one.startsWith(other) || other.startsWith(one));
}
