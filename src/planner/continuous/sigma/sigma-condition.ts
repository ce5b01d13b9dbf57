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

interface Lexeme {
  readonly text: string;
  readonly offset: number;
}

const path = 'detection.condition';

/** `detections` by search identifier. Throws a refusal. */
export function parseCondition(source: string, detections: ReadonlyMap<string, Condition>): Condition {
  if (source.length > bounds.conditionLength) {
    throw new Refusal(path, `a condition has at most ${bounds.conditionLength} characters`, 'REL_TOO_LARGE');
  }
  if (source.includes('|')) {
    throw new Refusal(
      path,
      'aggregations behind a pipe (| count() by …) are not part of Sigma 2: write a correlation (event_count, value_count, temporal)',
    );
  }
  return new Parser(source, detections).parse();
}

class Parser {
  readonly #lexemes: readonly Lexeme[];
  readonly #detections: ReadonlyMap<string, Condition>;
  readonly #sizes = new Map<Condition, number>();
  #next = 0;
  #parts = 0;

  constructor(source: string, detections: ReadonlyMap<string, Condition>) {
    this.#lexemes = [...source.matchAll(/[()]|[^\s()]+/g)].map((match) => ({ text: match[0], offset: match.index }));
    this.#detections = detections;
  }

  parse(): Condition {
    if (this.#lexemes.length === 0) throw new Refusal(path, 'the condition is empty');
    const condition = this.#or(0);
    const rest = this.#lexemes[this.#next];
    if (rest !== undefined) throw this.#unexpectedError(rest, 'and, or, or the end');
    return condition;
  }

  #or(depth: number): Condition {
    const of = [this.#and(depth)];
    while (this.#take('or')) of.push(this.#and(depth));
    return of.length === 1 ? of[0]! : { kind: 'or', of };
  }

  #and(depth: number): Condition {
    const of = [this.#not(depth)];
    while (this.#take('and')) of.push(this.#not(depth));
    return of.length === 1 ? of[0]! : { kind: 'and', of };
  }

  #not(depth: number): Condition {
    if (depth > bounds.conditionDepth) {
      throw new Refusal(path, `a condition nests at most ${bounds.conditionDepth} times`, 'REL_TOO_LARGE');
    }
    return this.#take('not') ? { kind: 'not', of: this.#not(depth + 1) } : this.#operand(depth);
  }

  #operand(depth: number): Condition {
    const lexeme = this.#lexemes[this.#next++];
    if (lexeme === undefined) throw new Refusal(path, 'the condition ends where a search identifier is expected');
    if (lexeme.text === '(') {
      const inner = this.#or(depth + 1);
      const closing = this.#lexemes[this.#next++];
      if (closing?.text !== ')') throw new Refusal(path, `the parenthesis at offset ${lexeme.offset} is not closed`);
      return inner;
    }
    if (lexeme.text === ')' || /^(?:and|or|of)$/i.test(lexeme.text)) throw this.#unexpectedError(lexeme, 'a search identifier');
    if (this.#lexemes[this.#next]?.text.toLowerCase() === 'of' && /^(?:all|any|\d+)$/i.test(lexeme.text)) {
      this.#next++;
      return this.#readQuantified(lexeme);
    }
    return this.#detection(lexeme.text);
  }

  #readQuantified(quantifier: Lexeme): Condition {
    const target = this.#lexemes[this.#next++];
    if (target === undefined || target.text === '(' || target.text === ')') {
      throw new Refusal(path, `${quantifier.text} of: "them" or a pattern of search identifiers is expected`);
    }
    const names = this.#namesOf(target.text);
    if (names.length === 0) throw new Refusal(path, `no search identifier fits ${target.text}`);
    const word = quantifier.text.toLowerCase();
    const count = word === 'all' ? names.length : word === 'any' ? 1 : Number(word);
    if (count === 0) throw new Refusal(path, '0 of … holds for every event');
    const of = names.map((name) => this.#detection(name));
    if (of.length === 1 && count === 1) return of[0]!;
    if (count === 1) return { kind: 'or', of };
    if (word === 'all' || count === of.length) return { kind: 'and', of };
    if (count > of.length) throw new Refusal(path, `${count} of ${target.text}: only ${of.length} search identifiers fit`);
    return { kind: 'some', count, of };
  }

  /** Identifiers that begin with an underscore are left out, unless the pattern asks for them. */
  #namesOf(target: string): readonly string[] {
    const names = [...this.#detections.keys()];
    if (target.toLowerCase() === 'them') return names.filter((name) => !name.startsWith('_'));
    const pieces = target.split('*').flatMap((part, i) => (i === 0 ? plainText(part) : beginOpen(plainText(part))));
    const matcher = new Matcher(pieces);
    return names.filter((name) => matcher.matches(name) && (target.startsWith('_') || !name.startsWith('_')));
  }

  #detection(name: string): Condition {
    const detection = this.#detections.get(name);
    if (detection === undefined) throw new Refusal(path, `the detection has no search identifier ${JSON.stringify(name)}`);
    let size = this.#sizes.get(detection);
    if (size === undefined) this.#sizes.set(detection, (size = countParts(detection)));
    this.#parts += size;
    if (this.#parts > bounds.conditionParts) {
      throw new Refusal(path, `a condition has at most ${bounds.conditionParts} parts`, 'REL_TOO_LARGE');
    }
    return detection;
  }

  #take(word: string): boolean {
    if (this.#lexemes[this.#next]?.text.toLowerCase() !== word) return false;
    this.#next++;
    return true;
  }

  #unexpectedError({ text, offset }: Lexeme, expected: string): Refusal {
    return new Refusal(path, `${JSON.stringify(text)} at offset ${offset} where ${expected} is expected`);
  }
}

export function countParts(condition: Condition): number {
  switch (condition.kind) {
    case 'test':
      return 1;
    case 'not':
      return 1 + countParts(condition.of);
    default:
      return condition.of.reduce((sum, each) => sum + countParts(each), 1);
  }
}
