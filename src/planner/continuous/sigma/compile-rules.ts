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
const anchorLiteralMax = 24;
const noSigmaRules = new Int32Array(0);

/** Yields between shares of its work. */
export function* compileRules(rules: readonly SigmaRule[]): Generator<undefined, Program, void> {
  const collector = new SigmaTestCollector();
  const conditionRoots: Node[] = [];
  const triggersByTest: number[][] = [];
  const alwaysJudged: number[] = [];
  for (const [ordinal, rule] of rules.entries()) {
    const conditionRoot = yield* collector.node(rule.condition);
    conditionRoots.push(conditionRoot);
    const ruleTests = ruleTrigger(conditionRoot, collector.tests);
    if (ruleTests === null) alwaysJudged.push(ordinal);
    else for (const test of new Set(ruleTests.tests)) (triggersByTest[test] ??= []).push(ordinal);
    yield;
  }
  const { tests } = collector;
  const testsByWholeText = new Map<number, Map<string, number[]>>();
  const testsByLiteral = new Map<string, Map<number, number[]>>();
  for (const [ordinal, { anchor, field }] of tests.entries()) {
    if (anchor === null) continue;
    if (anchor.at === 'whole') {
      const wholeTextTests = testsByWholeText.get(field) ?? new Map<string, number[]>();
      testsByWholeText.set(field, wholeTextTests);
      pushOrdinal(wholeTextTests, anchor.literal, ordinal);
    } else {
      const literalTests = testsByLiteral.get(anchor.literal) ?? new Map<number, number[]>();
      testsByLiteral.set(anchor.literal, literalTests);
      pushOrdinal(literalTests, field, ordinal);
    }
    if (ordinal % 4_096 === 4_095) yield;
  }
  const anchorLiterals = [...testsByLiteral.keys()];
  const fields = [...collector.fields.keys()];
  const hasLiterals = fields.map(() => false);
  for (const byField of testsByLiteral.values())
    for (const field of byField.keys()) if (field !== anyField) hasLiterals[field] = true;
  yield;
  return {
    fields,
    tests,
    rules: rules.map(({ logSource }, i) => ({ root: conditionRoots[i]!, logSource })),
    wholes: fields.map((_, field) => {
      const wholeTextTests = testsByWholeText.get(field);
      return wholeTextTests === undefined
        ? null
        : new Map([...wholeTextTests].map(([text, testOrdinals]) => [text, Int32Array.from(testOrdinals)]));
    }),
    hasLiterals,
    literals: yield* LiteralIndex.build(anchorLiterals),
    literalLengths: Int32Array.from(anchorLiterals, (text) => text.length),
    anchored: [...testsByLiteral.values()].map(
      (literalTests) =>
        new Map([...literalTests].map(([field, testOrdinals]) => [field, anchoredTests(testOrdinals, tests)] as const)),
    ),
    triggers: tests.map((_, test) => (triggersByTest[test] === undefined ? noSigmaRules : Int32Array.from(triggersByTest[test]))),
    always: Int32Array.from(alwaysJudged),
    hasKeywords: tests.some(({ field }) => field === anyField),
  };
}

function pushOrdinal<K>(map: Map<K, number[]>, key: K, testOrdinal: number): void {
  const ordinalList = map.get(key);
  if (ordinalList === undefined) map.set(key, [testOrdinal]);
  else ordinalList.push(testOrdinal);
}

function anchoredTests(ordinals: readonly number[], tests: readonly CompiledTest[]): Anchored {
  const anchors = ordinals.map((ordinal) => {
    const anchorPlace = tests[ordinal]!.anchor!.at;
    return anchorPlace === 'begin' ? 1 : anchorPlace === 'end' ? 2 : 0;
  });
  return { tests: Int32Array.from(ordinals), anchors: Uint8Array.from(anchors) };
}

/** Numbers fields and tests, each once. */
class SigmaTestCollector {
  readonly fields = new Map<string, number>();
  readonly tests: CompiledTest[] = [];
  readonly #testsByKey = new Map<string, number>();
  /** Search identifiers that a condition names several times are one node. */
  readonly #conditionNodes = new WeakMap<Condition, Node>();
  #testsSinceYield = 0;

  *node(condition: Condition): Generator<undefined, Node, void> {
    const knownNode = this.#conditionNodes.get(condition);
    if (knownNode !== undefined) return knownNode;
    let conditionNode: Node;
    if (condition.kind === 'test') {
      conditionNode = { kind: 'test', test: this.#sigmaTestOrdinal(condition.field, condition.test) };
      if (++this.#testsSinceYield % 512 === 0) yield;
    } else if (condition.kind === 'not') conditionNode = { kind: 'not', of: yield* this.node(condition.of) };
    else {
      const childNodes: Node[] = [];
      for (const each of condition.of) childNodes.push(yield* this.node(each));
      conditionNode =
        condition.kind === 'some'
          ? { kind: 'some', count: condition.count, of: childNodes }
          : { kind: condition.kind, of: childNodes };
    }
    this.#conditionNodes.set(condition, conditionNode);
    return conditionNode;
  }

  #sigmaTestOrdinal(name: string | null, test: FieldTest): number {
    const field = name === null ? anyField : this.#sigmaFieldOrdinal(name);
    const sigmaTestKey = `${field} ${testKey(test)}`;
    let testOrdinal = this.#testsByKey.get(sigmaTestKey);
    if (testOrdinal === undefined) {
      testOrdinal = this.tests.length;
      this.#testsByKey.set(sigmaTestKey, testOrdinal);
      const testAnchor = test.kind === 'pattern' ? patternAnchor(test.pieces, test.cased) : regexAnchor(test);
      this.tests.push({
        field,
        test,
        anchor: testAnchor?.at === 'whole' && field === anyField ? null : testAnchor,
        matcher: test.kind === 'pattern' ? new Matcher(test.pieces) : null,
        other: test.kind === 'reference' ? this.#sigmaFieldOrdinal(test.field) : anyField,
      });
    }
    return testOrdinal;
  }

  #sigmaFieldOrdinal(name: string): number {
    let fieldOrdinal = this.fields.get(name);
    if (fieldOrdinal === undefined) this.fields.set(name, (fieldOrdinal = this.fields.size));
    return fieldOrdinal;
  }
}

function regexAnchor(test: FieldTest): Anchor | null {
  if (test.kind !== 'regex' || test.literal === null) return null;
  return { literal: test.literal.slice(0, anchorLiteralMax), at: 'anywhere', sure: false };
}

function patternAnchor(pieces: readonly Piece[], cased: boolean): Anchor | null {
  if (pieces.length === 0) return { literal: '', at: 'whole', sure: true };
  const [onlyPiece] = pieces;
  if (pieces.length === 1 && onlyPiece!.kind === 'text') return { literal: foldCase(onlyPiece.text), at: 'whole', sure: !cased };
  let longestText: (Piece & { readonly kind: 'text' }) | null = null;
  for (const patternPiece of pieces)
    if (patternPiece.kind === 'text' && patternPiece.text.length > (longestText?.text.length ?? 0)) longestText = patternPiece;
  if (longestText === null) return null;
  const anchorLiteral = foldCase(longestText.text);
  const isWildcardPiece = (index: number): boolean => pieces.at(index)!.kind === 'any';
  const isTextAlone = pieces.length - (isWildcardPiece(0) ? 1 : 0) - (isWildcardPiece(-1) ? 1 : 0) === 1;
  const anchorEnd =
    !isTextAlone || (isWildcardPiece(0) && isWildcardPiece(-1)) ? 'anywhere' : isWildcardPiece(0) ? 'end' : 'begin';
  const isLiteralCut = anchorLiteral.length > anchorLiteralMax;
  const cutLiteral = !isLiteralCut
    ? anchorLiteral
    : anchorEnd === 'end'
      ? anchorLiteral.slice(-anchorLiteralMax)
      : anchorLiteral.slice(0, anchorLiteralMax);
  return { literal: cutLiteral, at: anchorEnd, sure: isTextAlone && !cased && !isLiteralCut };
}

interface RuleTrigger {
  readonly tests: readonly number[];
  /** How often they come up, roughly: the share of events. */
  readonly weight: number;
}

/** The rarest set of tests of which one holds wherever the node does; null where no such set is known. */
function ruleTrigger(node: Node, tests: readonly CompiledTest[]): RuleTrigger | null {
  switch (node.kind) {
    case 'test': {
      const testAnchor = tests[node.test]!.anchor;
      return testAnchor === null ? null : { tests: [node.test], weight: anchorWeight(testAnchor) };
    }
    case 'not':
      return null;
    case 'and': {
      let bestTrigger: RuleTrigger | null = null;
      for (const childNode of node.of) {
        const childTrigger = ruleTrigger(childNode, tests);
        if (childTrigger !== null && (bestTrigger === null || childTrigger.weight < bestTrigger.weight))
          bestTrigger = childTrigger;
      }
      return bestTrigger;
    }
    case 'or':
    case 'some': {
      const triggerTests: number[] = [];
      let triggerWeight = 0;
      for (const childNode of node.of) {
        const childTrigger = ruleTrigger(childNode, tests);
        if (childTrigger === null) return null;
        for (const test of childTrigger.tests) triggerTests.push(test);
        triggerWeight += childTrigger.weight;
      }
      return { tests: triggerTests, weight: triggerWeight };
    }
  }
}

function anchorWeight({ literal, at }: Anchor): number {
  if (at === 'whole') return literal.length < 5 ? 0.05 : 0.02;
  return Math.max(0.0005, 0.6 ** literal.length) * (at === 'anywhere' ? 1 : 0.7);
}
