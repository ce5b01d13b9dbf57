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
type ModifiedValue =
  | { readonly kind: 'scalar'; readonly scalar: Scalar }
  | { readonly kind: 'texts'; readonly variants: readonly (readonly Piece[])[]; readonly isBytes: boolean }
  | { readonly kind: 'tests'; readonly tests: readonly FieldTest[] };

const comparisonModifiers: readonly string[] = ['lt', 'lte', 'gt', 'gte'] satisfies readonly Comparison[];
const timePartModifiers: readonly string[] = ['minute', 'hour', 'day', 'week', 'month', 'year'] satisfies readonly TimePart[];
const wideModifiers: Readonly<Record<string, WideEncoding>> = {
  utf16le: 'utf16le',
  wide: 'utf16le',
  utf16be: 'utf16be',
  utf16: 'utf16',
};
const regexFlagModifiers: Readonly<Record<string, string>> = {
  i: 'i',
  ignorecase: 'i',
  m: 'm',
  multiline: 'm',
  s: 's',
  dotall: 's',
};
const placingModifiers: readonly string[] = ['contains', 'startswith', 'endswith'];

const knownModifiers = new Set([
  ...placingModifiers,
  ...comparisonModifiers,
  ...timePartModifiers,
  ...Object.keys(wideModifiers),
  ...Object.keys(regexFlagModifiers),
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
  #valuesLeft: number = bounds.values;
  #regexLengthLeft: number = bounds.regexLength;
  #encodedLengthLeft: number = bounds.encodedLength;

  spendRegex(path: string, characters: number): void {
    this.#regexLengthLeft -= characters;
    if (this.#regexLengthLeft >= 0) return;
    throw new Refusal(path, `regular expressions of a rule have at most ${bounds.regexLength} characters`, 'REL_TOO_LARGE');
  }

  spendEncoded(path: string, characters: number): void {
    this.#encodedLengthLeft -= characters;
    if (this.#encodedLengthLeft >= 0) return;
    throw new Refusal(path, `at most ${bounds.encodedLength} characters of a rule are encoded`, 'REL_TOO_LARGE');
  }

  spend(path: string, values: number): void {
    this.#valuesLeft -= values;
    if (this.#valuesLeft < 0) throw new Refusal(path, `a rule has at most ${bounds.values} values`, 'REL_TOO_LARGE');
  }
}

export interface ItemContext {
  /** `detection.selection.Image|re`. */
  readonly path: string;
  readonly placeholders: Placeholders;
  readonly budget: ValueBudget;
}

/** The condition that `key: values` stands for. An empty `field` means keywords. */
export function readItem(key: string, scalars: readonly Scalar[], itemContext: ItemContext): Condition {
  const [name = '', ...modifiers] = key.split('|');
  const { path } = itemContext;
  const unknownModifier = modifiers.find((modifier) => !knownModifiers.has(modifier));
  if (unknownModifier !== undefined) throw new Refusal(path, `there is no modifier ${JSON.stringify(unknownModifier)}`);
  const field = name === '' ? null : name;
  itemContext.budget.spend(path, Math.max(1, scalars.length));
  if (scalars.length === 0) {
    if (modifiers.length > 0) throw new Refusal(path, 'a list with modifiers has no values');
    scalars = [null];
  }
  const detectionItem = new DetectionItem(field, modifiers, itemContext);
  const scalarConditions = scalars.map((scalar) => detectionItem.read(scalar));
  const linkedCondition: Condition =
    scalarConditions.length === 1
      ? scalarConditions[0]!
      : { kind: modifiers.includes('all') ? 'and' : 'or', of: scalarConditions };
  return modifiers.includes('neq') ? { kind: 'not', of: linkedCondition } : linkedCondition;
}

class DetectionItem {
  readonly #itemField: string | null;
  readonly #itemModifiers: readonly string[];
  readonly #itemContext: ItemContext;
  readonly #isCased: boolean;

  constructor(field: string | null, modifiers: readonly string[], itemContext: ItemContext) {
    this.#itemField = field;
    this.#itemModifiers = modifiers;
    this.#itemContext = itemContext;
    this.#isCased = modifiers.includes('cased');
    const hasFlagConflict =
      modifiers.includes('cased') && Object.keys(regexFlagModifiers).some((regexFlag) => modifiers.includes(regexFlag));
    if (hasFlagConflict) throw this.#refuseItem('cased and the flags of re exclude each other');
    if (Object.keys(regexFlagModifiers).some((regexFlag) => modifiers.includes(regexFlag)) && !modifiers.includes('re')) {
      throw this.#refuseItem('the modifiers i, m and s stand behind re only');
    }
  }

  read(scalar: Scalar): Condition {
    if (typeof scalar === 'string' && scalar.length > bounds.valueLength) {
      throw new Refusal(this.#itemContext.path, `a value has at most ${bounds.valueLength} characters`, 'REL_TOO_LARGE');
    }
    if (scalar === null) {
      if (this.#itemField === null) throw this.#refuseItem('null is the value of a field, and keywords have none');
      return { kind: 'test', field: this.#itemField, test: { kind: 'null' } };
    }
    let modifiedValue: ModifiedValue = { kind: 'scalar', scalar };
    this.#itemModifiers.forEach((modifier, i) => {
      modifiedValue = this.#applyModifier(modifier, modifiedValue, i);
    });
    const fieldTests = this.#fieldTestsOf(modifiedValue);
    this.#itemContext.budget.spend(this.#itemContext.path, fieldTests.length - 1);
    const testConditions = fieldTests.map((test): Condition => ({ kind: 'test', field: this.#itemField, test }));
    return testConditions.length === 1 ? testConditions[0]! : { kind: 'or', of: testConditions };
  }

  #applyModifier(modifier: string, modifiedValue: ModifiedValue, ordinal: number): ModifiedValue {
    if (modifier === 'all' || modifier === 'cased' || modifier === 'neq' || regexFlagModifiers[modifier] !== undefined)
      return modifiedValue;
    if (placingModifiers.includes(modifier)) return this.#wildcardValue(modifier, modifiedValue);
    const wideEncoding = wideModifiers[modifier];
    if (wideEncoding !== undefined) return this.#encodeWideTexts(modifiedValue, wideEncoding);
    if (comparisonModifiers.includes(modifier)) return this.#comparisonTest(modifier as Comparison, modifiedValue);
    if (timePartModifiers.includes(modifier)) return this.#timePartTest(modifier as TimePart, modifiedValue);
    const isFirstModifier = this.#itemModifiers
      .slice(0, ordinal)
      .every((earlierModifier) => ['all', 'cased', 'neq', 'expand'].includes(earlierModifier));
    switch (modifier) {
      case 'expand':
        return this.#expandPlaceholders(modifiedValue);
      case 'windash':
        return this.#changeTexts(modifier, modifiedValue, (pieces) => [openDashes(pieces)]);
      case 'base64':
      case 'base64offset':
        return this.#encodeBase64Texts(modifier, modifiedValue);
      case 're':
        if (!isFirstModifier) throw this.#refuseItem('re stands before all other modifiers of the value');
        return { kind: 'tests', tests: this.#plainModifierTexts('re', modifiedValue).map((text) => this.#regexTest(text)) };
      case 'cidr':
        if (!isFirstModifier) throw this.#refuseItem('cidr stands before all other modifiers of the value');
        return { kind: 'tests', tests: this.#plainModifierTexts('cidr', modifiedValue).map((text) => this.#networkTest(text)) };
      case 'fieldref': {
        const [field] = this.#plainModifierTexts('fieldref', modifiedValue);
        if (this.#itemField === null || field === undefined || field === '')
          throw this.#refuseItem('fieldref compares two fields');
        const cased = this.#isCased;
        return { kind: 'tests', tests: [{ kind: 'reference', field, reference: 'equals', cased }] };
      }
      case 'exists': {
        const existsScalar = modifiedValue.kind === 'scalar' ? modifiedValue.scalar : null;
        if (this.#itemField === null) throw this.#refuseItem('exists is asked of a field');
        const wantedExistence =
          typeof existsScalar === 'string' ? { true: true, false: false }[existsScalar.toLowerCase()] : existsScalar;
        if (typeof wantedExistence !== 'boolean') throw this.#refuseItem('exists is true or false');
        return { kind: 'tests', tests: [{ kind: wantedExistence ? 'exists' : 'null' }] };
      }
      default:
        throw this.#refuseItem(`there is no modifier ${JSON.stringify(modifier)}`);
    }
  }

  #fieldTestsOf(modifiedValue: ModifiedValue): readonly FieldTest[] {
    if (modifiedValue.kind === 'tests') return modifiedValue.tests;
    const cased = this.#isCased;
    const { variants: patternVariants } = modifiedValue.kind === 'texts' ? modifiedValue : this.#toPatternTexts(modifiedValue);
    return patternVariants.map((pieces) => {
      const wholePieces = this.#itemField === null ? beginOpen(endOpen(pieces)) : pieces;
      return { kind: 'pattern', pieces: cased ? wholePieces : foldPieces(wholePieces), cased };
    });
  }

  #toPatternTexts(modifiedValue: ModifiedValue): ModifiedValue & { readonly kind: 'texts' } {
    if (modifiedValue.kind === 'texts') return modifiedValue;
    assertScalarValue(modifiedValue);
    const { scalar } = modifiedValue;
    const patternPieces = typeof scalar === 'string' ? parsePattern(scalar) : plainText(String(scalar));
    return { kind: 'texts', variants: [patternPieces], isBytes: false };
  }

  #changeTexts(
    modifier: string,
    modifiedValue: ModifiedValue,
    changePieces: (pieces: readonly Piece[]) => readonly (readonly Piece[])[],
  ): ModifiedValue {
    if (modifiedValue.kind === 'tests')
      throw this.#refuseItem(`${modifier} changes texts, and stands before the modifiers that compare`);
    const { variants, isBytes } = this.#toPatternTexts(modifiedValue);
    return { kind: 'texts', variants: variants.flatMap(changePieces), isBytes };
  }

  #wildcardValue(modifier: string, value: ModifiedValue): ModifiedValue {
    if (value.kind !== 'tests') {
      return this.#changeTexts(modifier, value, (pieces) => [
        modifier === 'startswith' ? endOpen(pieces) : modifier === 'endswith' ? beginOpen(pieces) : beginOpen(endOpen(pieces)),
      ]);
    }
    const tests = value.tests.map((test): FieldTest => {
      if (test.kind === 'reference') {
        const reference = modifier as 'startswith' | 'endswith' | 'contains';
        return { kind: 'reference', field: test.field, reference, cased: test.cased };
      }
      if (test.kind !== 'regex')
        throw this.#refuseItem(`${modifier} changes texts, and stands before the modifiers that compare`);
      if (modifier === 'contains') return test;
      return this.#regexTest(modifier === 'startswith' ? `^(?:${test.source})` : `(?:${test.source})$`);
    });
    return { kind: 'tests', tests };
  }

  #encodeWideTexts(modifiedValue: ModifiedValue, encoding: WideEncoding): ModifiedValue {
    if (modifiedValue.kind === 'texts' && modifiedValue.isBytes) throw this.#refuseItem('the value is encoded twice');
    const wideTexts = this.#changeTexts(encoding, modifiedValue, (pieces) =>
      expandDashPieces(pieces).map((dashlessPieces) => encodeWidePieces(dashlessPieces, encoding)),
    );
    return wideTexts.kind === 'texts' ? { kind: 'texts', variants: wideTexts.variants, isBytes: true } : wideTexts;
  }

  #encodeBase64Texts(modifier: 'base64' | 'base64offset', modifiedValue: ModifiedValue): ModifiedValue {
    if (modifiedValue.kind === 'tests')
      throw this.#refuseItem(`${modifier} changes texts, and stands before the modifiers that compare`);
    const { variants, isBytes } = this.#toPatternTexts(modifiedValue);
    const base64Texts = variants.flatMap(expandDashPieces).map((pieces) => {
      if (pieces.some(({ kind }) => kind !== 'text')) throw this.#refuseItem(`${modifier} has no form for wildcards`);
      return pieces.map((piece) => (piece.kind === 'text' ? piece.text : '')).join('');
    });
    const { path, budget } = this.#itemContext;
    // One encoding behind another multiplies the values, and lengthens each of them.
    const offsetCopies = modifier === 'base64offset' ? 3 : 1;
    budget.spend(path, (offsetCopies - 1) * base64Texts.length);
    budget.spendEncoded(path, offsetCopies * base64Texts.reduce((sum, { length }) => sum + length, 0));
    const encodedTexts = base64Texts.flatMap((text) =>
      modifier === 'base64' ? [encodeBase64(text, isBytes)] : encodeBase64Offsets(text, isBytes),
    );
    return { kind: 'texts', variants: encodedTexts.map(plainText), isBytes: false };
  }

  /** The values as they are written: regular expressions, networks and names of fields have no wildcards. */
  #plainModifierTexts(modifier: string, modifiedValue: ModifiedValue): readonly string[] {
    if (modifiedValue.kind === 'scalar') return [String(modifiedValue.scalar)];
    if (modifiedValue.kind === 'tests') throw this.#refuseItem(`${modifier} stands behind a modifier that compares already`);
    return modifiedValue.variants.map((patternPieces) =>
      patternPieces.map((piece) => (piece.kind === 'text' ? piece.text : piece.kind === 'any' ? '*' : '?')).join(''),
    );
  }

  #regexTest(regexSource: string): FieldTest {
    const flagSet = new Set(this.#itemModifiers.map((modifier) => regexFlagModifiers[modifier] ?? ''));
    const regexFlagText = ['i', 'm', 's'].filter((flag) => flagSet.has(flag)).join('');
    this.#itemContext.budget.spendRegex(this.#itemContext.path, regexSource.length);
    return compileSigmaRegex(this.#itemContext.path, regexSource, regexFlagText);
  }

  #networkTest(networkText: string): FieldTest {
    const network = parseNetwork(networkText.trim());
    if (network === undefined) throw this.#refuseItem(`${JSON.stringify(networkText)} is no range of addresses`);
    return { kind: 'network', source: networkText.trim(), network };
  }

  #comparisonTest(comparison: Comparison, modifiedValue: ModifiedValue): ModifiedValue {
    if (modifiedValue.kind === 'tests' && modifiedValue.tests.every(({ kind }) => kind === 'time')) {
      const timeTests = modifiedValue.tests.map((test) => ({ ...test, comparison }) as FieldTest);
      return { kind: 'tests', tests: timeTests };
    }
    return { kind: 'tests', tests: [{ kind: 'compare', comparison, value: this.#modifierNumber(comparison, modifiedValue) }] };
  }

  #timePartTest(part: TimePart, modifiedValue: ModifiedValue): ModifiedValue {
    return { kind: 'tests', tests: [{ kind: 'time', part, comparison: 'eq', value: this.#modifierNumber(part, modifiedValue) }] };
  }

  #modifierNumber(modifier: string, modifiedValue: ModifiedValue): number {
    const numberScalar = modifiedValue.kind === 'scalar' ? modifiedValue.scalar : null;
    const comparedNumber = typeof numberScalar === 'string' && numberScalar.trim() !== '' ? Number(numberScalar) : numberScalar;
    if (typeof comparedNumber === 'bigint') return Number(comparedNumber);
    if (typeof comparedNumber !== 'number' || !Number.isFinite(comparedNumber))
      throw this.#refuseItem(`${modifier} compares with a number`);
    return comparedNumber;
  }

  /** Replaces `%name%` by the values of its table; `\%` is a percent sign. */
  #expandPlaceholders(modifiedValue: ModifiedValue): ModifiedValue {
    if (modifiedValue.kind !== 'scalar' || typeof modifiedValue.scalar !== 'string')
      throw this.#refuseItem('expand stands first, at a text');
    const { path, placeholders, budget } = this.#itemContext;
    let expandedTexts = [''];
    for (const [placeholderPart] of modifiedValue.scalar.matchAll(/\\%|%[^%\\]+%|[^%\\]+|[\s\S]/g)) {
      const placeholderName = placeholderPart.length > 2 && placeholderPart.startsWith('%') ? placeholderPart.slice(1, -1) : null;
      const lookupKeys =
        placeholderName === null ? [placeholderPart === '\\%' ? '%' : placeholderPart] : placeholders(placeholderName);
      if (lookupKeys === null)
        throw this.#refuseItem(
          `there is no lookup table ${JSON.stringify(placeholderName)} for the placeholder %${placeholderName}%`,
        );
      if (placeholderName !== null) budget.spend(path, expandedTexts.length * lookupKeys.length);
      expandedTexts = expandedTexts.flatMap((expandedBefore) => lookupKeys.map((lookupKey) => expandedBefore + lookupKey));
    }
    if (this.#itemModifiers.includes('re') || this.#itemModifiers.includes('cidr')) {
      return { kind: 'texts', variants: expandedTexts.map(plainText), isBytes: false };
    }
    return { kind: 'texts', variants: expandedTexts.map(parsePattern), isBytes: false };
  }

  #refuseItem(detail: string): Refusal {
    return new Refusal(this.#itemContext.path, detail);
  }
}

function assertScalarValue(value: ModifiedValue): asserts value is ModifiedValue & { readonly kind: 'scalar' } {
  if (value.kind !== 'scalar') throw new Error('texts and tests were told apart before');
}

const encodeWidePieces = (pieces: readonly Piece[], encoding: WideEncoding): readonly Piece[] =>
  pieces.map((piece, i) => {
    if (piece.kind !== 'text') return piece;
    // The byte order mark stands once, before the value.
    return { kind: 'text', text: encodeWide(piece.text, encoding === 'utf16' && i > 0 ? 'utf16le' : encoding) };
  });

/** Dashes of one value that an encoding may multiply: five forms each. */
const encodedDashesMax = 4;

/** The texts that dashes stand for, where an encoding needs each of them. */
function expandDashPieces(pieces: readonly Piece[]): readonly (readonly Piece[])[] {
  const dashCount = pieces.filter(({ kind }) => kind === 'dash').length;
  if (dashCount === 0) return [pieces];
  if (dashCount > encodedDashesMax)
    throw new Refusal('', `an encoded value has at most ${encodedDashesMax} dashes`, 'REL_TOO_LARGE');
  let dashVariants: readonly (readonly Piece[])[] = [[]];
  for (const piece of pieces) {
    const dashForms: readonly Piece[] =
      piece.kind === 'dash' ? dashes.split('').map((text) => ({ kind: 'text', text })) : [piece];
    dashVariants = dashVariants.flatMap((variantBefore) => dashForms.map((dashForm) => [...variantBefore, dashForm]));
  }
  return dashVariants.map(joinTextPieces);
}

function joinTextPieces(pieces: readonly Piece[]): readonly Piece[] {
  const joinedPieces: Piece[] = [];
  for (const piece of pieces) {
    const textBefore = joinedPieces.at(-1);
    if (piece.kind === 'text' && textBefore?.kind === 'text')
      joinedPieces[joinedPieces.length - 1] = { kind: 'text', text: textBefore.text + piece.text };
    else joinedPieces.push(piece);
  }
  return joinedPieces;
}
