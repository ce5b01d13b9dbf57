/** Random types, rows, callers and policies: what the differential test asks both deciders about. Repeatable by seed. */
import type { TypeDefinition } from '../../../src/log/entries/entry.ts';
import type { Dictionary, Vector } from '../../../src/log/values/columns.ts';
import type { ColumnType } from '../../../src/log/values/value.ts';
import type { Seeded } from '../../simulation/seeded.ts';
import type { Asker } from '../../../src/governance/authorization/cedar/entities.ts';

const property = (type: ColumnType): TypeDefinition['properties'][string] => ({
  type,
  required: false,
  masked: false,
  indexed: false,
  subject: false,
  dims: 0,
});

export const typeNames = ['Person', 'Payment', 'Case file'] as const;

export function typeOf(name: string): TypeDefinition {
  return {
    name,
    properties: {
      region: property('string'),
      status: property('string'),
      note: property('string'),
      n: property('integer'),
      m: property('integer'),
      flag: property('boolean'),
      at: property('timestamp'),
      until: property('timestamp'),
      score: property('number'),
      'odd name': property('string'),
    },
    open: false,
    primaryKey: null,
    graphTriggers: [],
    ontologyVersion: 1,
  };
}

const regions = ['EU', 'US', 'APAC', '', 'Ünï', 'eu', '\u{1F600}x'];
const statuses = ['open', 'closed', 'held'];
const notes = ['fraud: card', 'a*b', 'line\nbreak', 'EU', 'open', '', 'x'.repeat(40), 'quote " \\ end', 'fraud'];
const integers = [
  0,
  1,
  -1,
  2,
  3,
  7,
  100,
  -100,
  2 ** 31 - 1,
  -(2 ** 31),
  3_037_000_499,
  9_007_199_254_740_991,
  -9_007_199_254_740_991,
];
const instants = [
  0n,
  -1n,
  1n,
  999_999n,
  -86_400_000_000_001n,
  1_704_067_200_000_000_000n,
  1_704_067_200_000_999_999n,
  1_704_067_199_999_999_999n,
  1_704_153_600_000_000_000n,
  -62_135_596_800_000_000_000n / 8n,
  9_223_372_036_854_775_807n,
];
export const paths = [null, 'acme', 'acme/eu', 'acme/eu/berlin', 'acme-evil', 'globex'];
const roles = ['analyst', 'pci', 'auditor'];

/** A row by column; undefined is NULL. Timestamps are nanoseconds. */
export type Row = Readonly<Record<string, string | number | bigint | boolean | undefined>>;

export function rowsFor(dice: Seeded, count: number): readonly Row[] {
  // A column that a segment has never seen.
  const absent = dice.pick(['region', 'note', 'n', 'at', 'flag', '', '', '', '']);
  // Only a column of small integers can be one of four bytes.
  const small = dice.chance(0.25) ? 1 : 0.6;
  const rows = Array.from({ length: count }, (_, i) => {
    const maybe = <T>(make: () => T): T | undefined => (dice.chance(0.1) ? undefined : make());
    const path = dice.pick(paths);
    return {
      _pk: dice.chance(0.5) ? `r${dice.below(4)}` : `row ${i}`,
      namespace_path: path ?? undefined,
      tenant_id: path?.split('/')[0],
      region: maybe(() => dice.pick(regions)),
      status: maybe(() => dice.pick(statuses)),
      note: maybe(() => dice.pick(notes)),
      'odd name': maybe(() => dice.pick(statuses)),
      n: maybe(() => (dice.chance(small) ? dice.below(8) - 2 : dice.pick(integers))),
      m: maybe(() => (dice.chance(small) ? dice.below(8) - 2 : dice.pick(integers))),
      flag: maybe(() => dice.chance(0.5)),
      at: maybe(() => dice.pick(instants)),
      until: maybe(() => dice.pick(instants)),
      score: maybe(() => dice.below(1000) / 7),
    };
  });
  return absent === '' ? rows : rows.map((row) => ({ ...row, [absent]: undefined }));
}

export function askerFor(dice: Seeded): Asker {
  const maybe = <T>(p: number, make: () => T): T | null => (dice.chance(p) ? make() : null);
  return {
    principal: dice.pick(['ann', 'bob', 'r1']),
    roles: roles.filter(() => dice.chance(0.4)),
    path: dice.pick(paths),
    attributes: {
      ...(dice.chance(0.2) ? { agent: true } : {}),
      ...(dice.chance(0.5) ? { region: dice.pick(regions) } : {}),
      ...(dice.chance(0.5) ? { level: dice.below(5) } : {}),
      ...(dice.chance(0.3) ? { ratio: 0.5 } : {}),
      ...(dice.chance(0.5) ? { cleared: dice.chance(0.5) } : {}),
    },
    purpose: maybe(0.8, () => dice.pick(['fraud', 'fraud:aml', 'fraudulent', 'support'])),
    door: dice.pick(['http', 'sql']),
    branch: dice.pick(['main', 'trial']),
    breakGlass: maybe(0.3, () => 'a life at risk'),
    accessScopeRef: maybe(0.3, () => 'case-7'),
    clientIp: maybe(0.5, () => '10.0.0.1'),
  };
}

export const clocks = [1_704_067_200_000_500_000n, 1_735_689_600_000_000_000n];

const quoted = (text: string): string => {
  const escaped = Array.from(text, (c) => (/[\w :.,!-]/.test(c) ? c : `\\u{${c.codePointAt(0)!.toString(16)}}`));
  return `"${escaped.join('')}"`;
};

/**
 * One policy, as we are given it and as the engine is: a row has one type for it, and `Row` is not that; and it has no
 * fractions, which for us are there and can't be read.
 */
export interface PolicyText {
  readonly ours: string;
  readonly engines: string;
}

function forBoth(text: string): PolicyText {
  return {
    ours: text.replaceAll('@ROW', 'is Row'),
    engines: text.replaceAll('@ROW', 'in Kind::"row"').replaceAll('resource.score', 'resource.nosuch'),
  };
}

const durations = [
  'resource.at.durationSince(resource.until) < duration("36h")',
  'context.now.durationSince(resource.at) >= duration("0ms")',
  'resource.at.toTime() == duration("0s")',
  'resource.at.durationSince(datetime("2024-01-01")).toDays() == 1',
  'resource.at.durationSince(datetime("2024-01-01")).toHours() >= -1',
  'resource.at.durationSince(datetime("1970-01-01")).toMinutes() == 0',
  'resource.at.durationSince(datetime("1970-01-01")).toSeconds() == 0',
  'resource.at.durationSince(datetime("1970-01-01")).toMilliseconds() != -1',
  'datetime(resource.note) == context.now',
  'duration(resource.note) == duration("1s")',
];

const seldom = [
  ...durations,
  'context.now > resource.at',
  'resource.at.toDate() == resource.until.toDate()',
  'resource.at.offset(duration("1d2h")) < resource.until',
  '[resource.n].containsAny([resource.m, 2])',
  '[resource.n, 1, 2].containsAll([resource.m])',
  '["EU", "open", "r1"].contains(resource.region)',
  '[resource.region].isEmpty()',
  'action in [Action::"read", Action::"write"]',
  '(if resource.flag then resource.n else resource.m) >= 1',
  '-(resource.n) <= resource.m + 1',
  'resource.n - 1 > resource.m * 2',
];

export class PolicyWriter {
  readonly #dice: Seeded;
  constructor(dice: Seeded) {
    this.#dice = dice;
  }

  policy(about: 'permit' | 'rows' | 'cells'): PolicyText {
    const dice = this.#dice;
    const forCells = about === 'cells';
    const effect = forCells || (about === 'rows' && dice.chance(0.5)) ? 'forbid' : 'permit';
    const mask =
      forCells && dice.chance(0.8) ? `@mask("${dice.pick(['redact', 'null', 'hash', 'last4', 'year', 'bucket:10'])}") ` : '';
    const action = forCells
      ? 'action == Action::"readCell"'
      : dice.pick([
          'action',
          'action',
          'action == Action::"read"',
          'action in [Action::"read", Action::"export"]',
          'action == Action::"write"',
        ]);
    const resource = forCells ? this.#cellScope() : this.#rowScope();
    const conditions = Array.from({ length: dice.pick([0, 1, 1, 1, 2]) }, () => {
      return `${dice.pick(['when', 'when', 'unless'])} { ${this.bool(3)} }`;
    });
    const text = `${mask}${effect}(${this.#principalScope()}, ${action}, ${resource}) ${conditions.join(' ')};`;
    return forBoth(text);
  }

  /** A permit with the form whose turn it is, so that consecutive worlds go through all that chance alone would leave out. */
  inTurn(world: number): PolicyText {
    const text = `permit(${this.#principalScope()}, action, resource) when { ${this.bool(1)} || ${seldom[world % seldom.length]!} };`;
    return forBoth(text);
  }

  #principalScope(): string {
    return this.#dice.pick([
      ...Array.from({ length: 10 }, () => 'principal'),
      'principal == User::"ann"',
      'principal is User',
      'principal is Agent',
      'principal in Role::"analyst"',
      'principal in Org::"acme"',
      'principal is User in Org::"acme/eu"',
    ]);
  }

  #rowScope(): string {
    return this.#dice.pick([
      ...Array.from({ length: 6 }, () => 'resource'),
      'resource @ROW',
      'resource is Person',
      'resource in Type::"Payment"',
      'resource in Org::"acme"',
      'resource is Person in Org::"acme/eu"',
      'resource == Person::"r1"',
    ]);
  }

  #cellScope(): string {
    const column = this.#dice.pick(['region', 'n', 'at', 'note']);
    return this.#dice.pick([
      `resource in Column::"${this.#dice.pick(typeNames)}.${column}"`,
      `resource == Column::"Person.${column}"`,
      'resource in Type::"Payment"',
      'resource is Column',
      'resource in Org::"acme"',
      'resource',
    ]);
  }

  bool(depth: number): string {
    const dice = this.#dice;
    const roll = depth <= 0 ? 9 + dice.below(31) : dice.below(40);
    if (roll < 4) return `(${this.bool(depth - 1)} && ${this.bool(depth - 1)})`;
    if (roll < 7) return `(${this.bool(depth - 1)} || ${this.bool(depth - 1)})`;
    if (roll < 8) return `!(${this.bool(depth - 1)})`;
    if (roll < 9) return `(if ${this.bool(depth - 1)} then ${this.bool(depth - 1)} else ${this.bool(depth - 1)})`;
    if (roll < 14) return `${this.text()} ${dice.pick(['==', '==', '!='])} ${this.text()}`;
    if (roll < 18) return `${this.long(2)} ${dice.pick(['<', '<=', '>', '>=', '==', '!='])} ${this.long(1)}`;
    if (roll < 21) return `${this.instant()} ${dice.pick(['<', '<=', '>', '>=', '==', '!='])} ${this.instant()}`;
    if (roll < 23)
      return `resource has ${dice.pick(['region', 'n', 'flag', 'at', 'score', 'nosuch', '"odd name"', 'type', '_pk'])}`;
    if (roll < 25) return `${this.text()} like ${dice.pick(['"fraud*"', '"*"', '"*r*d"', '"EU"', '"a\\*b"', '"*a*"', '"E*U"'])}`;
    if (roll < 27) return this.#sets();
    if (roll < 30) return this.#entities();
    if (roll < 32)
      return dice.pick(['resource.flag', 'resource.flag', 'true', 'false', 'principal.cleared', 'context has break_glass']);
    if (roll < 34) return this.#durations();
    if (roll < 35) return `{"a": ${this.long(1)}, "b": ${this.text()}}.${dice.pick(['a == 1', 'b == "EU"', 'c == 1'])}`;
    if (roll < 36) return `{"a": ${this.text()}} has ${dice.pick(['a', 'b'])}`;
    // What is of the wrong type, or nowhere: an error wherever it is evaluated.
    return dice.pick([
      'resource.region < 3',
      'resource.n && true',
      '(true && resource.n)',
      'resource.nosuch == 1',
      'resource.score == 1',
      'principal.ratio == 1',
      'principal.level > 2',
      'resource.n',
      'resource.region.contains("a")',
      'resource.n like "1*"',
      '!resource.region',
      'resource.n == resource.region',
      'resource.flag == resource.n',
    ]);
  }

  text(): string {
    const dice = this.#dice;
    const constants = [...regions, ...statuses, ...notes];
    return dice.pick([
      () => quoted(dice.pick(regions)),
      () => quoted(dice.pick(statuses)),
      () => quoted(dice.pick(constants)),
      () => 'resource.region',
      () => 'resource.region',
      () => 'resource.status',
      () => 'resource.note',
      () => 'resource["odd name"]',
      () => 'resource._pk',
      () => 'resource.tenant_id',
      () => 'resource.type',
      () => 'principal.region',
      () => 'context.door',
      () => 'context.branch',
      () => 'context.break_glass',
      () => 'context.client_ip',
      () => 'context.access_scope_ref',
    ])();
  }

  long(depth: number): string {
    const dice = this.#dice;
    const roll = depth <= 0 ? dice.below(7) : dice.below(10);
    if (roll < 3) return 'resource.n';
    if (roll < 4) return 'resource.m';
    if (roll < 6) return String(dice.chance(0.7) ? dice.below(8) - 2 : dice.pick(integers));
    if (roll < 7) return dice.pick(['principal.level', '9007199254740991 * 1024', '-9007199254740991 * 1024 - 1024']);
    if (roll < 8) return `-(${this.long(depth - 1)})`;
    return `(${this.long(depth - 1)} ${dice.pick(['+', '-', '*'])} ${this.long(depth - 1)})`;
  }

  instant(): string {
    return this.#dice.pick([
      'resource.at',
      'resource.at',
      'resource.until',
      'resource.at.toDate()',
      'resource.at.offset(duration("1d2h"))',
      'resource.at.offset(duration("-9223372036854775808ms"))',
      'context.now',
      'datetime("2024-01-01")',
      'datetime("1969-12-31T23:59:59.999Z")',
      'datetime("2024-01-01T12:00:00+0100")',
      'datetime("1970-01-01T00:00:00.001Z")',
    ]);
  }

  #durations(): string {
    return this.#dice.pick(durations);
  }

  #sets(): string {
    const set = (make: () => string): string => `[${Array.from({ length: this.#dice.below(4) }, make).join(', ')}]`;
    return this.#dice.pick([
      () => `${set(() => this.text())}.contains(${this.text()})`,
      () => `["EU", "open", "r1"].contains(resource.region)`,
      () => `[1, 2, 9007199254740991].contains(resource.n)`,
      () => `${set(() => this.long(1))}.containsAny([resource.n, 2])`,
      () => `${set(() => this.long(0))}.containsAll([resource.n])`,
      () => `[resource.region].isEmpty()`,
      () => `[].isEmpty()`,
      () => `[resource.n, 1] == [1]`,
    ])();
  }

  #entities(): string {
    return this.#dice.pick([
      'context.purpose in Purpose::"fraud"',
      'context.purpose == Purpose::"fraud:aml"',
      'context.org in Org::"acme"',
      'principal in Role::"pci"',
      'principal in [Role::"pci", Org::"acme/eu"]',
      'principal == User::"ann"',
      'resource == Person::"r1"',
      'resource != Person::"r2"',
      'resource == principal',
      'resource @ROW',
      'resource is Person',
      'resource is Payment in Org::"acme"',
      'resource in Org::"acme/eu"',
      'resource in [Type::"Person", Org::"globex"]',
      'resource in Type::"Case file"',
      'action == Action::"read"',
      'action in [Action::"read", Action::"write"]',
      '(if context.now < datetime("2024-06-01") then principal else User::"bob") in Role::"analyst"',
    ]);
  }
}

/** Columns in a layout at random, rows at random places of it: what a block of a segment looks like. */
export interface Block {
  readonly vectors: ReadonlyMap<string, Vector>;
  readonly selection: Int32Array | null;
  readonly first: number;
}

class TestDictionary implements Dictionary {
  readonly #texts: string[] = [];

  get size(): number {
    return this.#texts.length;
  }

  text(code: number): string {
    return this.#texts[code]!;
  }

  codeOf(text: string): number {
    return this.#texts.indexOf(text);
  }

  add(text: string): number {
    const code = this.codeOf(text);
    return code >= 0 ? code : this.#texts.push(text) - 1;
  }
}

/** Dictionaries of a type's columns, which grow from block to block. */
export type Dictionaries = Map<string, TestDictionary>;

export function blockOf(
  dice: Seeded,
  rows: readonly Row[],
  types: ReadonlyMap<string, ColumnType>,
  kept: Dictionaries,
  seen: (kind: string) => void,
): Block {
  const first = dice.below(5);
  const gaps = dice.chance(0.5);
  const places = rows.map((_, i) => first + (gaps ? i * 2 : i));
  const length = places.at(-1)! + 1;
  const vectors = new Map<string, Vector>();
  for (const [name, type] of types) {
    const vector = vectorOf(dice, name, type, rows, places, length, kept);
    seen(vector.kind);
    vectors.set(name, vector);
  }
  return { vectors, selection: gaps ? Int32Array.from(places) : null, first };
}

function vectorOf(
  dice: Seeded,
  name: string,
  type: ColumnType,
  rows: readonly Row[],
  places: readonly number[],
  length: number,
  kept: Dictionaries,
): Vector {
  const cells = rows.map((row) => row[name]);
  if (cells.every((cell) => cell === undefined)) return { kind: 'null' };
  const nulls = cells.some((cell) => cell === undefined) ? new Uint8Array(length) : null;
  cells.forEach((cell, i) => {
    if (cell === undefined) nulls![places[i]!] = 1;
  });
  const fill = <T extends { [i: number]: unknown }>(target: T, of: (cell: never) => unknown): T => {
    cells.forEach((cell, i) => {
      if (cell !== undefined) target[places[i]!] = of(cell as never);
    });
    return target;
  };
  switch (type) {
    case 'string': {
      if (dice.chance(0.6)) {
        const dictionary = kept.get(name) ?? new TestDictionary();
        kept.set(name, dictionary);
        return { kind: 'dict', values: fill(new Int32Array(length), (cell: string) => dictionary.add(cell)), dictionary, nulls };
      }
      const texts = fill(
        Array.from({ length }, () => ''),
        (cell: string) => cell,
      );
      const offsets = new Uint32Array(length + 1);
      texts.forEach((text, i) => (offsets[i + 1] = offsets[i]! + Buffer.byteLength(text)));
      return { kind: 'text', heap: Buffer.from(texts.join('')), offsets, nulls };
    }
    case 'boolean':
      return { kind: 'bool', values: fill(new Uint8Array(length), (cell: boolean) => (cell ? 1 : 0)), nulls };
    case 'timestamp':
      return { kind: 'i64', values: fill(new BigInt64Array(length), (cell: bigint) => cell), nulls };
    case 'integer': {
      const narrow = cells.every((cell) => cell === undefined || Math.abs(Number(cell)) < 2 ** 31);
      const kind = dice.pick(narrow ? (['i32', 'f64', 'i64'] as const) : (['f64', 'i64'] as const));
      if (kind === 'i64') return { kind, values: fill(new BigInt64Array(length), (cell: number) => BigInt(cell)), nulls };
      const values = kind === 'i32' ? new Int32Array(length) : new Float64Array(length);
      return { kind, values: fill(values, (cell: number) => cell), nulls } as Vector;
    }
    default:
      return { kind: 'f64', values: fill(new Float64Array(length), (cell: number) => cell), nulls };
  }
}
