/**
 * Values of a rule and the modifiers behind a field's name, applied in the order in which they stand. Source: Sigma specification,
 * appendix "Modifiers".
 */
import type { Condition } from './sigma-condition.ts';
import { encodeBase64, encodeBase64Offsets, encodeWide, type WideEncoding } from './value-encodings.ts';
import type { Comparison, FieldTest, TimePart } from './field-test.ts';
import { parseNetwork } from './cidr-ranges.ts';
import { beginOpen, dashes, endOpen, foldPieces, openDashes, parsePattern, type Piece, plainText } from './wildcard-pattern.ts';
import { bounds, Refusal } from './rule-refusal.ts';
import { compileSigmaRegex } from './re2-expression.ts';

export type Scalar = string | bigint | number | boolean | null;

/** Values that stand for a placeholder `%name%`; null: there is no such table. */
export type Placeholders = (name: string) => readonly string[] | null;

/** One value while modifiers are applied; `variants` are linked by OR, whatever links the values. */
type Value =
  | { readonly kind: 'scalar'; readonly scalar: Scalar }
  | { readonly kind: 'texts'; readonly variants: readonly (readonly Piece[])[]; readonly isBytes: boolean }
  | { readonly kind: 'tests'; readonly tests: readonly FieldTest[] };

const comparisons: readonly string[] = ['lt', 'lte', 'gt', 'gte'] satisfies readonly Comparison[];
const timeParts: readonly string[] = ['minute', 'hour', 'day', 'week', 'month', 'year'] satisfies readonly TimePart[];
const wideEncodings: Readonly<Record<string, WideEncoding>> = {
  utf16le: 'utf16le',
  wide: 'utf16le',
  utf16be: 'utf16be',
  utf16: 'utf16',
};
const regexFlags: Readonly<Record<string, string>> = { i: 'i', ignorecase: 'i', m: 'm', multiline: 'm', s: 's', dotall: 's' };
const placings: readonly string[] = ['contains', 'startswith', 'endswith'];

const known = new Set([
  ...placings,
  ...comparisons,
  ...timeParts,
  ...Object.keys(wideEncodings),
  ...Object.keys(regexFlags),
  'all',
  'exists',
  'cased',
  'neq',
  'windash',
  're',
  'cidr',
  'base64',
  'base64offset',
  'fieldref',
  'expand',
]);

/** Counts the values of one rule, which modifiers may multiply. */
export class ValueBudget {
  #left: number = bounds.values;
  #regexLeft: number = bounds.regexLength;
  #encodedLeft: number = bounds.encodedLength;

  spendRegex(path: string, characters: number): void {
    this.#regexLeft -= characters;
    if (this.#regexLeft >= 0) return;
    throw new Refusal(path, `regular expressions of a rule have at most ${bounds.regexLength} characters`, 'REL_TOO_LARGE');
  }

  spendEncoded(path: string, characters: number): void {
    this.#encodedLeft -= characters;
    if (this.#encodedLeft >= 0) return;
    throw new Refusal(path, `at most ${bounds.encodedLength} characters of a rule are encoded`, 'REL_TOO_LARGE');
  }

  spend(path: string, values: number): void {
    this.#left -= values;
    if (this.#left < 0) throw new Refusal(path, `a rule has at most ${bounds.values} values`, 'REL_TOO_LARGE');
  }
}

export interface ItemContext {
  /** `detection.selection.Image|re`. */
  readonly path: string;
  readonly placeholders: Placeholders;
  readonly budget: ValueBudget;
}

/** The condition that `key: values` stands for. An empty `field` means keywords. */
export function readItem(key: string, scalars: readonly Scalar[], context: ItemContext): Condition {
  const [name = '', ...modifiers] = key.split('|');
  const { path } = context;
  const unknown = modifiers.find((modifier) => !known.has(modifier));
  if (unknown !== undefined) throw new Refusal(path, `there is no modifier ${JSON.stringify(unknown)}`);
  const field = name === '' ? null : name;
  context.budget.spend(path, Math.max(1, scalars.length));
  if (scalars.length === 0) {
    if (modifiers.length > 0) throw new Refusal(path, 'a list with modifiers has no values');
    scalars = [null];
  }
  const item = new Item(field, modifiers, context);
  const of = scalars.map((scalar) => item.read(scalar));
  const linked: Condition = of.length === 1 ? of[0]! : { kind: modifiers.includes('all') ? 'and' : 'or', of };
  return modifiers.includes('neq') ? { kind: 'not', of: linked } : linked;
}

class Item {
  readonly #field: string | null;
  readonly #modifiers: readonly string[];
  readonly #context: ItemContext;
  readonly #cased: boolean;

  constructor(field: string | null, modifiers: readonly string[], context: ItemContext) {
    this.#field = field;
    this.#modifiers = modifiers;
    this.#context = context;
    this.#cased = modifiers.includes('cased');
    const conflict = modifiers.includes('cased') && Object.keys(regexFlags).some((flag) => modifiers.includes(flag));
    if (conflict) throw this.#refuse('cased and the flags of re exclude each other');
    if (Object.keys(regexFlags).some((flag) => modifiers.includes(flag)) && !modifiers.includes('re')) {
      throw this.#refuse('the modifiers i, m and s stand behind re only');
    }
  }

  read(scalar: Scalar): Condition {
    if (typeof scalar === 'string' && scalar.length > bounds.valueLength) {
      throw new Refusal(this.#context.path, `a value has at most ${bounds.valueLength} characters`, 'REL_TOO_LARGE');
    }
    if (scalar === null) {
      if (this.#field === null) throw this.#refuse('null is the value of a field, and keywords have none');
      return { kind: 'test', field: this.#field, test: { kind: 'null' } };
    }
    let value: Value = { kind: 'scalar', scalar };
    this.#modifiers.forEach((modifier, i) => {
      value = this.#apply(modifier, value, i);
    });
    const tests = this.#testsOf(value);
    this.#context.budget.spend(this.#context.path, tests.length - 1);
    const of = tests.map((test): Condition => ({ kind: 'test', field: this.#field, test }));
    return of.length === 1 ? of[0]! : { kind: 'or', of };
  }

  #apply(modifier: string, value: Value, ordinal: number): Value {
    if (modifier === 'all' || modifier === 'cased' || modifier === 'neq' || regexFlags[modifier] !== undefined) return value;
    if (placings.includes(modifier)) return this.#wildcardValue(modifier, value);
    const wide = wideEncodings[modifier];
    if (wide !== undefined) return this.#encodeWide(value, wide);
    if (comparisons.includes(modifier)) return this.#compare(modifier as Comparison, value);
    if (timeParts.includes(modifier)) return this.#timePart(modifier as TimePart, value);
    const alone = this.#modifiers.slice(0, ordinal).every((before) => ['all', 'cased', 'neq', 'expand'].includes(before));
    switch (modifier) {
      case 'expand':
        return this.#expand(value);
      case 'windash':
        return this.#texts(modifier, value, (pieces) => [openDashes(pieces)]);
      case 'base64':
      case 'base64offset':
        return this.#encodeBase64(modifier, value);
      case 're':
        if (!alone) throw this.#refuse('re stands before all other modifiers of the value');
        return { kind: 'tests', tests: this.#plainTexts('re', value).map((text) => this.#regex(text)) };
      case 'cidr':
        if (!alone) throw this.#refuse('cidr stands before all other modifiers of the value');
        return { kind: 'tests', tests: this.#plainTexts('cidr', value).map((text) => this.#network(text)) };
      case 'fieldref': {
        const [field] = this.#plainTexts('fieldref', value);
        if (this.#field === null || field === undefined || field === '') throw this.#refuse('fieldref compares two fields');
        const cased = this.#cased;
        return { kind: 'tests', tests: [{ kind: 'reference', field, reference: 'equals', cased }] };
      }
      case 'exists': {
        const scalar = value.kind === 'scalar' ? value.scalar : null;
        if (this.#field === null) throw this.#refuse('exists is asked of a field');
        const wanted = typeof scalar === 'string' ? { true: true, false: false }[scalar.toLowerCase()] : scalar;
        if (typeof wanted !== 'boolean') throw this.#refuse('exists is true or false');
        return { kind: 'tests', tests: [{ kind: wanted ? 'exists' : 'null' }] };
      }
      default:
        throw this.#refuse(`there is no modifier ${JSON.stringify(modifier)}`);
    }
  }

  #testsOf(value: Value): readonly FieldTest[] {
    if (value.kind === 'tests') return value.tests;
    const cased = this.#cased;
    const { variants } = value.kind === 'texts' ? value : this.#toTexts(value);
    return variants.map((pieces) => {
      const whole = this.#field === null ? beginOpen(endOpen(pieces)) : pieces;
      return { kind: 'pattern', pieces: cased ? whole : foldPieces(whole), cased };
    });
  }

  #toTexts(value: Value): Value & { readonly kind: 'texts' } {
    if (value.kind === 'texts') return value;
    assertScalar(value);
    const { scalar } = value;
    const pieces = typeof scalar === 'string' ? parsePattern(scalar) : plainText(String(scalar));
    return { kind: 'texts', variants: [pieces], isBytes: false };
  }

  #texts(modifier: string, value: Value, change: (pieces: readonly Piece[]) => readonly (readonly Piece[])[]): Value {
    if (value.kind === 'tests') throw this.#refuse(`${modifier} changes texts, and stands before the modifiers that compare`);
    const { variants, isBytes } = this.#toTexts(value);
    return { kind: 'texts', variants: variants.flatMap(change), isBytes };
  }

  #wildcardValue(modifier: string, value: Value): Value {
    if (value.kind !== 'tests') {
      return this.#texts(modifier, value, (pieces) => [
        modifier === 'startswith' ? endOpen(pieces) : modifier === 'endswith' ? beginOpen(pieces) : beginOpen(endOpen(pieces)),
      ]);
    }
    const tests = value.tests.map((test): FieldTest => {
      if (test.kind === 'reference') {
        const reference = modifier as 'startswith' | 'endswith' | 'contains';
        return { kind: 'reference', field: test.field, reference, cased: test.cased };
      }
      if (test.kind !== 'regex') throw this.#refuse(`${modifier} changes texts, and stands before the modifiers that compare`);
      if (modifier === 'contains') return test;
      return this.#regex(modifier === 'startswith' ? `^(?:${test.source})` : `(?:${test.source})$`);
    });
    return { kind: 'tests', tests };
  }

  #encodeWide(value: Value, encoding: WideEncoding): Value {
    if (value.kind === 'texts' && value.isBytes) throw this.#refuse('the value is encoded twice');
    const encoded = this.#texts(encoding, value, (pieces) => expandDashes(pieces).map((each) => encodePieces(each, encoding)));
    return encoded.kind === 'texts' ? { kind: 'texts', variants: encoded.variants, isBytes: true } : encoded;
  }

  #encodeBase64(modifier: 'base64' | 'base64offset', value: Value): Value {
    if (value.kind === 'tests') throw this.#refuse(`${modifier} changes texts, and stands before the modifiers that compare`);
    const { variants, isBytes } = this.#toTexts(value);
    const texts = variants.flatMap(expandDashes).map((pieces) => {
      if (pieces.some(({ kind }) => kind !== 'text')) throw this.#refuse(`${modifier} has no form for wildcards`);
      return pieces.map((piece) => (piece.kind === 'text' ? piece.text : '')).join('');
    });
    const { path, budget } = this.#context;
    // One encoding behind another multiplies the values, and lengthens each of them.
    const copies = modifier === 'base64offset' ? 3 : 1;
    budget.spend(path, (copies - 1) * texts.length);
    budget.spendEncoded(path, copies * texts.reduce((sum, { length }) => sum + length, 0));
    const encoded = texts.flatMap((text) =>
      modifier === 'base64' ? [encodeBase64(text, isBytes)] : encodeBase64Offsets(text, isBytes),
    );
    return { kind: 'texts', variants: encoded.map(plainText), isBytes: false };
  }

  /** The values as they are written: regular expressions, networks and names of fields have no wildcards. */
  #plainTexts(modifier: string, value: Value): readonly string[] {
    if (value.kind === 'scalar') return [String(value.scalar)];
    if (value.kind === 'tests') throw this.#refuse(`${modifier} stands behind a modifier that compares already`);
    return value.variants.map((pieces) =>
      pieces.map((piece) => (piece.kind === 'text' ? piece.text : piece.kind === 'any' ? '*' : '?')).join(''),
    );
  }

  #regex(source: string): FieldTest {
    const set = new Set(this.#modifiers.map((modifier) => regexFlags[modifier] ?? ''));
    const flags = ['i', 'm', 's'].filter((flag) => set.has(flag)).join('');
    this.#context.budget.spendRegex(this.#context.path, source.length);
    return compileSigmaRegex(this.#context.path, source, flags);
  }

  #network(text: string): FieldTest {
    const network = parseNetwork(text.trim());
    if (network === undefined) throw this.#refuse(`${JSON.stringify(text)} is no range of addresses`);
    return { kind: 'network', source: text.trim(), network };
  }

  #compare(comparison: Comparison, value: Value): Value {
    if (value.kind === 'tests' && value.tests.every(({ kind }) => kind === 'time')) {
      const tests = value.tests.map((test) => ({ ...test, comparison }) as FieldTest);
      return { kind: 'tests', tests };
    }
    return { kind: 'tests', tests: [{ kind: 'compare', comparison, value: this.#number(comparison, value) }] };
  }

  #timePart(part: TimePart, value: Value): Value {
    return { kind: 'tests', tests: [{ kind: 'time', part, comparison: 'eq', value: this.#number(part, value) }] };
  }

  #number(modifier: string, value: Value): number {
    const scalar = value.kind === 'scalar' ? value.scalar : null;
    const number = typeof scalar === 'string' && scalar.trim() !== '' ? Number(scalar) : scalar;
    if (typeof number === 'bigint') return Number(number);
    if (typeof number !== 'number' || !Number.isFinite(number)) throw this.#refuse(`${modifier} compares with a number`);
    return number;
  }

  /** Replaces `%name%` by the values of its table; `\%` is a percent sign. */
  #expand(value: Value): Value {
    if (value.kind !== 'scalar' || typeof value.scalar !== 'string') throw this.#refuse('expand stands first, at a text');
    const { path, placeholders, budget } = this.#context;
    let texts = [''];
    for (const [part] of value.scalar.matchAll(/\\%|%[^%\\]+%|[^%\\]+|[\s\S]/g)) {
      const name = part.length > 2 && part.startsWith('%') ? part.slice(1, -1) : null;
      const replacements = name === null ? [part === '\\%' ? '%' : part] : placeholders(name);
      if (replacements === null)
        throw this.#refuse(`there is no lookup table ${JSON.stringify(name)} for the placeholder %${name}%`);
      if (name !== null) budget.spend(path, texts.length * replacements.length);
      texts = texts.flatMap((before) => replacements.map((after) => before + after));
    }
    if (this.#modifiers.includes('re') || this.#modifiers.includes('cidr')) {
      return { kind: 'texts', variants: texts.map(plainText), isBytes: false };
    }
    return { kind: 'texts', variants: texts.map(parsePattern), isBytes: false };
  }

  #refuse(detail: string): Refusal {
    return new Refusal(this.#context.path, detail);
  }
}

function assertScalar(value: Value): asserts value is Value & { readonly kind: 'scalar' } {
  if (value.kind !== 'scalar') throw new Error('texts and tests were told apart before');
}

const encodePieces = (pieces: readonly Piece[], encoding: WideEncoding): readonly Piece[] =>
  pieces.map((piece, i) => {
    if (piece.kind !== 'text') return piece;
    // The byte order mark stands once, before the value.
    return { kind: 'text', text: encodeWide(piece.text, encoding === 'utf16' && i > 0 ? 'utf16le' : encoding) };
  });

/** Dashes of one value that an encoding may multiply: five forms each. */
const encodedDashesMax = 4;

/** The texts that dashes stand for, where an encoding needs each of them. */
function expandDashes(pieces: readonly Piece[]): readonly (readonly Piece[])[] {
  const count = pieces.filter(({ kind }) => kind === 'dash').length;
  if (count === 0) return [pieces];
  if (count > encodedDashesMax) throw new Refusal('', `an encoded value has at most ${encodedDashesMax} dashes`, 'REL_TOO_LARGE');
  let variants: readonly (readonly Piece[])[] = [[]];
  for (const piece of pieces) {
    const forms: readonly Piece[] = piece.kind === 'dash' ? dashes.split('').map((text) => ({ kind: 'text', text })) : [piece];
    variants = variants.flatMap((before) => forms.map((form) => [...before, form]));
  }
  return variants.map(joinTexts);
}

function joinTexts(pieces: readonly Piece[]): readonly Piece[] {
  const joined: Piece[] = [];
  for (const piece of pieces) {
    const before = joined.at(-1);
    if (piece.kind === 'text' && before?.kind === 'text')
      joined[joined.length - 1] = { kind: 'text', text: before.text + piece.text };
    else joined.push(piece);
  }
  return joined;
}
