/**
 * The condition of a rule: `and`, `or`, `not`, parentheses, search identifiers, and `1 of`, `all of`, `any of`, `n of` them or of
 * those whose names fit a pattern. Source: Sigma specification, "Condition".
 */
import type { FieldTest } from './field-test.ts';
import { beginOpen, Matcher, plainText } from './wildcard-pattern.ts';
import { bounds, Refusal } from './rule-refusal.ts';

export type Condition =
  | { readonly kind: 'and' | 'or'; readonly of: readonly Condition[] }
  | { readonly kind: 'not'; readonly of: Condition }
  /** True where at least `count` of them are. */
  | { readonly kind: 'some'; readonly count: number; readonly of: readonly Condition[] }
  /** `field` null: any field of the row (keywords). */
  | { readonly kind: 'test'; readonly field: string | null; readonly test: FieldTest };

interface ConditionLexeme {
  readonly text: string;
  readonly offset: number;
}

const conditionPath = 'detection.condition';

/** `detections` by search identifier. Throws a refusal. */
export function parseCondition(conditionText: string, detections: ReadonlyMap<string, Condition>): Condition {
  if (conditionText.length > bounds.conditionLength) {
    throw new Refusal(conditionPath, `a condition has at most ${bounds.conditionLength} characters`, 'REL_TOO_LARGE');
  }
  if (conditionText.includes('|')) {
    throw new Refusal(
      conditionPath,
      'aggregations behind a pipe (| count() by …) are not part of Sigma 2: write a correlation (event_count, value_count, temporal)',
    );
  }
  return new SigmaConditionParser(conditionText, detections).parse();
}

class SigmaConditionParser {
  readonly #conditionLexemes: readonly ConditionLexeme[];
  readonly #searchIdentifiers: ReadonlyMap<string, Condition>;
  readonly #partCounts = new Map<Condition, number>();
  #nextLexeme = 0;
  #conditionPartCount = 0;

  constructor(conditionText: string, detections: ReadonlyMap<string, Condition>) {
    this.#conditionLexemes = [...conditionText.matchAll(/[()]|[^\s()]+/g)].map((lexemeMatch) => ({
      text: lexemeMatch[0],
      offset: lexemeMatch.index,
    }));
    this.#searchIdentifiers = detections;
  }

  parse(): Condition {
    if (this.#conditionLexemes.length === 0) throw new Refusal(conditionPath, 'the condition is empty');
    const parsedCondition = this.#parseOr(0);
    const lexemeAfter = this.#conditionLexemes[this.#nextLexeme];
    if (lexemeAfter !== undefined) throw this.#unexpectedError(lexemeAfter, 'and, or, or the end');
    return parsedCondition;
  }

  #parseOr(conditionDepth: number): Condition {
    const orConditions = [this.#parseAnd(conditionDepth)];
    while (this.#takeWord('or')) orConditions.push(this.#parseAnd(conditionDepth));
    return orConditions.length === 1 ? orConditions[0]! : { kind: 'or', of: orConditions };
  }

  #parseAnd(conditionDepth: number): Condition {
    const andConditions = [this.#parseNot(conditionDepth)];
    while (this.#takeWord('and')) andConditions.push(this.#parseNot(conditionDepth));
    return andConditions.length === 1 ? andConditions[0]! : { kind: 'and', of: andConditions };
  }

  #parseNot(conditionDepth: number): Condition {
    if (conditionDepth > bounds.conditionDepth) {
      throw new Refusal(conditionPath, `a condition nests at most ${bounds.conditionDepth} times`, 'REL_TOO_LARGE');
    }
    return this.#takeWord('not') ? { kind: 'not', of: this.#parseNot(conditionDepth + 1) } : this.#parseOperand(conditionDepth);
  }

  #parseOperand(conditionDepth: number): Condition {
    const lexeme = this.#conditionLexemes[this.#nextLexeme++];
    if (lexeme === undefined) throw new Refusal(conditionPath, 'the condition ends where a search identifier is expected');
    if (lexeme.text === '(') {
      const innerCondition = this.#parseOr(conditionDepth + 1);
      const closingParenthesis = this.#conditionLexemes[this.#nextLexeme++];
      if (closingParenthesis?.text !== ')')
        throw new Refusal(conditionPath, `the parenthesis at offset ${lexeme.offset} is not closed`);
      return innerCondition;
    }
    if (lexeme.text === ')' || /^(?:and|or|of)$/i.test(lexeme.text)) throw this.#unexpectedError(lexeme, 'a search identifier');
    if (this.#conditionLexemes[this.#nextLexeme]?.text.toLowerCase() === 'of' && /^(?:all|any|\d+)$/i.test(lexeme.text)) {
      this.#nextLexeme++;
      return this.#readQuantified(lexeme);
    }
    return this.#searchCondition(lexeme.text);
  }

  #readQuantified(quantifier: ConditionLexeme): Condition {
    const quantifiedTarget = this.#conditionLexemes[this.#nextLexeme++];
    if (quantifiedTarget === undefined || quantifiedTarget.text === '(' || quantifiedTarget.text === ')') {
      throw new Refusal(conditionPath, `${quantifier.text} of: "them" or a pattern of search identifiers is expected`);
    }
    const searchNames = this.#searchNamesOf(quantifiedTarget.text);
    if (searchNames.length === 0) throw new Refusal(conditionPath, `no search identifier fits ${quantifiedTarget.text}`);
    const quantifierWord = quantifier.text.toLowerCase();
    const quantifiedCount = quantifierWord === 'all' ? searchNames.length : quantifierWord === 'any' ? 1 : Number(quantifierWord);
    if (quantifiedCount === 0) throw new Refusal(conditionPath, '0 of … holds for every event');
    const quantifiedConditions = searchNames.map((name) => this.#searchCondition(name));
    if (quantifiedConditions.length === 1 && quantifiedCount === 1) return quantifiedConditions[0]!;
    if (quantifiedCount === 1) return { kind: 'or', of: quantifiedConditions };
    if (quantifierWord === 'all' || quantifiedCount === quantifiedConditions.length)
      return { kind: 'and', of: quantifiedConditions };
    if (quantifiedCount > quantifiedConditions.length)
      throw new Refusal(
        conditionPath,
        `${quantifiedCount} of ${quantifiedTarget.text}: only ${quantifiedConditions.length} search identifiers fit`,
      );
    return { kind: 'some', count: quantifiedCount, of: quantifiedConditions };
  }

  /** Identifiers that begin with an underscore are left out, unless the pattern asks for them. */
  #searchNamesOf(quantifiedTarget: string): readonly string[] {
    const searchNames = [...this.#searchIdentifiers.keys()];
    if (quantifiedTarget.toLowerCase() === 'them') return searchNames.filter((name) => !name.startsWith('_'));
    const searchPattern = quantifiedTarget
      .split('*')
      .flatMap((patternPart, i) => (i === 0 ? plainText(patternPart) : beginOpen(plainText(patternPart))));
    const searchNameMatcher = new Matcher(searchPattern);
    return searchNames.filter(
      (name) => searchNameMatcher.matches(name) && (quantifiedTarget.startsWith('_') || !name.startsWith('_')),
    );
  }

  #searchCondition(name: string): Condition {
    const detection = this.#searchIdentifiers.get(name);
    if (detection === undefined)
      throw new Refusal(conditionPath, `the detection has no search identifier ${JSON.stringify(name)}`);
    let conditionParts = this.#partCounts.get(detection);
    if (conditionParts === undefined) this.#partCounts.set(detection, (conditionParts = countParts(detection)));
    this.#conditionPartCount += conditionParts;
    if (this.#conditionPartCount > bounds.conditionParts) {
      throw new Refusal(conditionPath, `a condition has at most ${bounds.conditionParts} parts`, 'REL_TOO_LARGE');
    }
    return detection;
  }

  #takeWord(conditionWord: string): boolean {
    if (this.#conditionLexemes[this.#nextLexeme]?.text.toLowerCase() !== conditionWord) return false;
    this.#nextLexeme++;
    return true;
  }

  #unexpectedError({ text, offset }: ConditionLexeme, expected: string): Refusal {
    return new Refusal(conditionPath, `${JSON.stringify(text)} at offset ${offset} where ${expected} is expected`);
  }
}

export function countParts(condition: Condition): number {
  switch (condition.kind) {
    case 'test':
      return 1;
    case 'not':
      return 1 + countParts(condition.of);
    default:
      return condition.of.reduce((sum, partCondition) => sum + countParts(partCondition), 1);
  }
}
