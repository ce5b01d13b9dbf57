/**
 * Many rules made ready to be judged together. Equal tests of all rules are one test. Tests that a text can only pass where it
 * holds a literal stand behind that literal; a rule is looked at only where one of its *triggers* has come up: tests of which
 * at least one holds wherever the rule matches.
 */
import { LiteralIndex } from './aho-corasick.ts';
import type { Condition } from './sigma-condition.ts';
import { type FieldTest, testKey } from './field-test.ts';
import { foldCase, Matcher, type Piece } from './wildcard-pattern.ts';
import type { LogSource, SigmaRule } from './sigma-rule.ts';

/** Keywords: tests of any field. */
export const anyField = -1;

export type Node =
  | { readonly kind: 'and' | 'or'; readonly of: readonly Node[] }
  | { readonly kind: 'not'; readonly of: Node }
  | { readonly kind: 'some'; readonly count: number; readonly of: readonly Node[] }
  | { readonly kind: 'test'; readonly test: number };

/** Where its literal must stand in the text. `sure`: then the test holds, and nothing is left to compare. */
export interface Anchor {
  readonly literal: string;
  readonly at: 'anywhere' | 'begin' | 'end' | 'whole';
  readonly sure: boolean;
}

export interface CompiledTest {
  /** Ordinal of the field, or `anyField`. */
  readonly field: number;
  readonly test: FieldTest;
  /** null: nothing stands before the test, it is made where a rule asks for it. */
  readonly anchor: Anchor | null;
  /** Set for patterns. */
  readonly matcher: Matcher | null;
  /** Set for references: the ordinal of the other field. */
  readonly other: number;
}

/** Tests behind one literal in one field. */
export interface Anchored {
  readonly tests: Int32Array;
  /** By test: 0 anywhere, 1 at the beginning, 2 at the end. */
  readonly anchors: Uint8Array;
}

export interface Program {
  readonly fields: readonly string[];
  readonly tests: readonly CompiledTest[];
  readonly rules: readonly { readonly root: Node; readonly logSource: LogSource }[];
  /** By field: tests of whole texts, in lower case. */
  readonly wholes: readonly (ReadonlyMap<string, Int32Array> | null)[];
  /** By field: whether some of its tests stand behind literals of `literals`. */
  readonly hasLiterals: readonly boolean[];
  readonly literals: LiteralIndex;
  readonly literalLengths: Int32Array;
  /** By literal, then field. */
  readonly anchored: readonly ReadonlyMap<number, Anchored>[];
  /** By test: rules that it triggers. */
  readonly triggers: readonly Int32Array[];
  /** Rules that any event may match, whatever texts it has. */
  readonly always: Int32Array;
  readonly hasKeywords: boolean;
}

/** Longer literals are cut: what is left of them is compared afterwards. */
const literalMax = 24;
const noRules = new Int32Array(0);

/** Yields between shares of its work. */
export function* compileRules(rules: readonly SigmaRule[]): Generator<undefined, Program, void> {
  const collector = new Collector();
  const roots: Node[] = [];
  const triggers: number[][] = [];
  const always: number[] = [];
  for (const [ordinal, rule] of rules.entries()) {
    const root = yield* collector.node(rule.condition);
    roots.push(root);
    const trigger = triggerOf(root, collector.tests);
    if (trigger === null) always.push(ordinal);
    else for (const test of new Set(trigger.tests)) (triggers[test] ??= []).push(ordinal);
    yield;
  }
  const { tests } = collector;
  const wholes = new Map<number, Map<string, number[]>>();
  const literals = new Map<string, Map<number, number[]>>();
  for (const [ordinal, { anchor, field }] of tests.entries()) {
    if (anchor === null) continue;
    if (anchor.at === 'whole') {
      const byText = wholes.get(field) ?? new Map<string, number[]>();
      wholes.set(field, byText);
      pushTo(byText, anchor.literal, ordinal);
    } else {
      const byField = literals.get(anchor.literal) ?? new Map<number, number[]>();
      literals.set(anchor.literal, byField);
      pushTo(byField, field, ordinal);
    }
    if (ordinal % 4_096 === 4_095) yield;
  }
  const texts = [...literals.keys()];
  const fields = [...collector.fields.keys()];
  const hasLiterals = fields.map(() => false);
  for (const byField of literals.values()) for (const field of byField.keys()) if (field !== anyField) hasLiterals[field] = true;
  yield;
  return {
    fields,
    tests,
    rules: rules.map(({ logSource }, i) => ({ root: roots[i]!, logSource })),
    wholes: fields.map((_, field) => {
      const byText = wholes.get(field);
      return byText === undefined ? null : new Map([...byText].map(([text, of]) => [text, Int32Array.from(of)]));
    }),
    hasLiterals,
    literals: yield* LiteralIndex.build(texts),
    literalLengths: Int32Array.from(texts, (text) => text.length),
    anchored: [...literals.values()].map(
      (byField) => new Map([...byField].map(([field, of]) => [field, anchoredOf(of, tests)] as const)),
    ),
    triggers: tests.map((_, test) => (triggers[test] === undefined ? noRules : Int32Array.from(triggers[test]))),
    always: Int32Array.from(always),
    hasKeywords: tests.some(({ field }) => field === anyField),
  };
}

function pushTo<K>(map: Map<K, number[]>, key: K, value: number): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

function anchoredOf(ordinals: readonly number[], tests: readonly CompiledTest[]): Anchored {
  const anchors = ordinals.map((ordinal) => {
    const at = tests[ordinal]!.anchor!.at;
    return at === 'begin' ? 1 : at === 'end' ? 2 : 0;
  });
  return { tests: Int32Array.from(ordinals), anchors: Uint8Array.from(anchors) };
}

/** Numbers fields and tests, each once. */
class Collector {
  readonly fields = new Map<string, number>();
  readonly tests: CompiledTest[] = [];
  readonly #byKey = new Map<string, number>();
  /** Search identifiers that a condition names several times are one node. */
  readonly #nodes = new WeakMap<Condition, Node>();
  #sinceYield = 0;

  *node(condition: Condition): Generator<undefined, Node, void> {
    const known = this.#nodes.get(condition);
    if (known !== undefined) return known;
    let node: Node;
    if (condition.kind === 'test') {
      node = { kind: 'test', test: this.#test(condition.field, condition.test) };
      if (++this.#sinceYield % 512 === 0) yield;
    } else if (condition.kind === 'not') node = { kind: 'not', of: yield* this.node(condition.of) };
    else {
      const of: Node[] = [];
      for (const each of condition.of) of.push(yield* this.node(each));
      node = condition.kind === 'some' ? { kind: 'some', count: condition.count, of } : { kind: condition.kind, of };
    }
    this.#nodes.set(condition, node);
    return node;
  }

  #test(name: string | null, test: FieldTest): number {
    const field = name === null ? anyField : this.#field(name);
    const key = `${field} ${testKey(test)}`;
    let ordinal = this.#byKey.get(key);
    if (ordinal === undefined) {
      ordinal = this.tests.length;
      this.#byKey.set(key, ordinal);
      const anchor = test.kind === 'pattern' ? anchorOf(test.pieces, test.cased) : regexAnchor(test);
      this.tests.push({
        field,
        test,
        anchor: anchor?.at === 'whole' && field === anyField ? null : anchor,
        matcher: test.kind === 'pattern' ? new Matcher(test.pieces) : null,
        other: test.kind === 'reference' ? this.#field(test.field) : anyField,
      });
    }
    return ordinal;
  }

  #field(name: string): number {
    let ordinal = this.fields.get(name);
    if (ordinal === undefined) this.fields.set(name, (ordinal = this.fields.size));
    return ordinal;
  }
}

function regexAnchor(test: FieldTest): Anchor | null {
  if (test.kind !== 'regex' || test.literal === null) return null;
  return { literal: test.literal.slice(0, literalMax), at: 'anywhere', sure: false };
}

function anchorOf(pieces: readonly Piece[], cased: boolean): Anchor | null {
  if (pieces.length === 0) return { literal: '', at: 'whole', sure: true };
  const [only] = pieces;
  if (pieces.length === 1 && only!.kind === 'text') return { literal: foldCase(only.text), at: 'whole', sure: !cased };
  let longest: (Piece & { readonly kind: 'text' }) | null = null;
  for (const piece of pieces) if (piece.kind === 'text' && piece.text.length > (longest?.text.length ?? 0)) longest = piece;
  if (longest === null) return null;
  const literal = foldCase(longest.text);
  const isOpen = (index: number): boolean => pieces.at(index)!.kind === 'any';
  const isAlone = pieces.length - (isOpen(0) ? 1 : 0) - (isOpen(-1) ? 1 : 0) === 1;
  const at = !isAlone || (isOpen(0) && isOpen(-1)) ? 'anywhere' : isOpen(0) ? 'end' : 'begin';
  const isCut = literal.length > literalMax;
  const cut = !isCut ? literal : at === 'end' ? literal.slice(-literalMax) : literal.slice(0, literalMax);
  return { literal: cut, at, sure: isAlone && !cased && !isCut };
}

interface Trigger {
  readonly tests: readonly number[];
  /** How often they come up, roughly: the share of events. */
  readonly weight: number;
}

/** The rarest set of tests of which one holds wherever the node does; null where no such set is known. */
function triggerOf(node: Node, tests: readonly CompiledTest[]): Trigger | null {
  switch (node.kind) {
    case 'test': {
      const anchor = tests[node.test]!.anchor;
      return anchor === null ? null : { tests: [node.test], weight: weightOf(anchor) };
    }
    case 'not':
      return null;
    case 'and': {
      let best: Trigger | null = null;
      for (const each of node.of) {
        const trigger = triggerOf(each, tests);
        if (trigger !== null && (best === null || trigger.weight < best.weight)) best = trigger;
      }
      return best;
    }
    case 'or':
    case 'some': {
      const all: number[] = [];
      let weight = 0;
      for (const each of node.of) {
        const trigger = triggerOf(each, tests);
        if (trigger === null) return null;
        for (const test of trigger.tests) all.push(test);
        weight += trigger.weight;
      }
      return { tests: all, weight };
    }
  }
}

function weightOf({ literal, at }: Anchor): number {
  if (at === 'whole') return literal.length < 5 ? 0.05 : 0.02;
  return Math.max(0.0005, 0.6 ** literal.length) * (at === 'anywhere' ? 1 : 0.7);
}
