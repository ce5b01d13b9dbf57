/**
 * Judges rows by many rules at once, over columns and without an object per row: each text is read once, its literals are
 * sought in one pass, and only rules that these leave possible are evaluated.
 */
import type { NamedColumn } from '../../../log/values/columns.ts';
import { parseInstant } from '../../../log/values/timestamp.ts';
import { type Anchored, anyField, type CompiledTest, compileRules, type Node, type Program } from './compile-rules.ts';
import type { FieldTest } from './field-test.ts';
import { foldCase } from './wildcard-pattern.ts';
import { RowTextCache } from './row-text-cache.ts';
import { type AsciiColumn, ColumnTexts, type FieldReader, fieldReader } from './row-texts.ts';
import type { LogSource, SigmaRule } from './sigma-rule.ts';

/** Rows as a scan or an ingest has them: `selection[0..count)` are indexes into the columns; null means first .. first + count - 1. */
export interface JudgedRows {
  readonly columns: readonly NamedColumn[];
  readonly selection: Int32Array | null;
  readonly first: number;
  readonly count: number;
}

/** By ordinal of the rule: the indexes of the rows that match, in their order. Rules without a match are not in it. */
export type Matches = ReadonlyMap<number, readonly number[]>;

/** Characters read and rules evaluated until others have a turn, about 2 ms. */
const judgingWorkPerTurn = 100_000;
const workPerRule = 40;

interface TextScan {
  readonly read: FieldReader;
  /** Ordinal of the field, or `anyField` for keywords alone. */
  readonly field: number;
  readonly keywords: boolean;
  /** Set where the rows of the column are ASCII texts. */
  readonly ascii: AsciiColumn | null;
}

export class SigmaMatcher {
  readonly #sigmaProgram: Program;
  /** By test: the row in which it came up, was sure to hold, was evaluated, and held. */
  readonly #hitStamps: Float64Array;
  readonly #sureStamps: Float64Array;
  readonly #knownStamps: Float64Array;
  readonly #passed: Float64Array;
  readonly #ruleStamps: Float64Array;
  readonly #candidateRules: number[] = [];
  /** Number of the row that is judged; no two rows have one number. */
  #rowStamp = 0;
  #judgedRow = 0;
  #judgingWork = 0;
  readonly #fieldTexts: RowTextCache;
  /** Text and field that the literals are sought in. */
  #scannedLength = 0;
  #scannedField = anyField;
  #scansKeywords = false;

  private constructor(sigmaProgram: Program) {
    this.#sigmaProgram = sigmaProgram;
    const testCount = sigmaProgram.tests.length;
    this.#hitStamps = new Float64Array(testCount);
    this.#sureStamps = new Float64Array(testCount);
    this.#knownStamps = new Float64Array(testCount);
    this.#passed = new Float64Array(testCount);
    this.#ruleStamps = new Float64Array(sigmaProgram.rules.length);
    this.#fieldTexts = new RowTextCache(sigmaProgram.fields);
  }

  /** Yields between shares of the work. */
  static *compile(rules: readonly SigmaRule[]): Generator<undefined, SigmaMatcher, void> {
    return new SigmaMatcher(yield* compileRules(rules));
  }

  /** Fields that some rule names: columns of these names, and JSON columns that begin them, are read. */
  get fields(): readonly string[] {
    return this.#sigmaProgram.fields;
  }

  /** Whether every column is read, for keywords. */
  get readsAll(): boolean {
    return this.#sigmaProgram.hasKeywords;
  }

  /** Yields between shares of the work. One at a time: what is known of the row in hand is kept here. */
  *judge(rows: JudgedRows): Generator<undefined, Matches, void> {
    const columnTexts = new Map(rows.columns.map((column) => [column.name, new ColumnTexts(column)]));
    this.#fieldTexts.open(columnTexts);
    const textScans = yield* this.#textScans(columnTexts, judgedRowRange(rows));
    const logSourceReaders = (['product', 'category', 'service'] as const).flatMap((key) => {
      const readLogSource = fieldReader(columnTexts, key);
      return readLogSource === null ? [] : [{ key, read: readLogSource }];
    });
    const matchedRowsByRule = new Map<number, number[]>();
    for (let i = 0; i < rows.count; i++) {
      const judgedRow = rows.selection === null ? rows.first + i : rows.selection[i]!;
      this.#judgedRow = judgedRow;
      this.#rowStamp++;
      this.#candidateRules.length = 0;
      for (const scan of textScans) this.#scanTexts(scan);
      const rowLogSource = logSourceReaders.map(({ key, read: readLogSource }) => ({
        key,
        text: foldCase(readLogSource(judgedRow)[0] ?? ''),
      }));
      for (const rule of this.#sigmaProgram.always) this.#evaluateRule(rule, rowLogSource, matchedRowsByRule);
      for (const rule of this.#candidateRules) this.#evaluateRule(rule, rowLogSource, matchedRowsByRule);
      if (this.#judgingWork > judgingWorkPerTurn) {
        this.#judgingWork = 0;
        yield;
      }
    }
    return matchedRowsByRule;
  }

  *#textScans(
    columns: ReadonlyMap<string, ColumnTexts>,
    [first, last]: readonly [number, number],
  ): Generator<undefined, readonly TextScan[], void> {
    const { fields, wholes, hasLiterals, hasKeywords } = this.#sigmaProgram;
    const textScans: TextScan[] = [];
    const coveredColumns = new Set<string>();
    for (const [field, name] of fields.entries()) {
      const readField = this.#fieldTexts.readerOf(field);
      if (readField === null || (wholes[field] === null && !hasLiterals[field])) continue;
      const isPlainText = columns.get(name) !== undefined && columns.get(name)!.column.type !== 'json';
      if (isPlainText) coveredColumns.add(name);
      const asciiColumn = isPlainText ? columns.get(name)!.asciiBytes(first, last) : null;
      if (asciiColumn !== null) yield;
      textScans.push({ read: readField, field, keywords: isPlainText && hasKeywords, ascii: asciiColumn });
    }
    if (!hasKeywords) return textScans;
    for (const [name, column] of columns) {
      if (coveredColumns.has(name)) continue;
      yield;
      textScans.push({
        read: (row) => column.leaves(row),
        field: anyField,
        keywords: true,
        ascii: column.asciiBytes(first, last),
      });
    }
    return textScans;
  }

  #scanTexts({ read: readTexts, field, keywords, ascii: asciiColumn }: TextScan): void {
    if (asciiColumn !== null) return this.#scanAscii(asciiColumn, field, keywords);
    const { wholes, hasLiterals, literals } = this.#sigmaProgram;
    const scannedTexts =
      field === anyField ? readTexts(this.#judgedRow) : this.#fieldTexts.textsOf(field, this.#judgedRow, this.#rowStamp);
    for (const text of scannedTexts) {
      const foldedText = foldCase(text);
      const wholeTextTests = field === anyField ? undefined : wholes[field]?.get(foldedText);
      if (wholeTextTests !== undefined) for (const test of wholeTextTests) this.#hitTest(test);
      if (!keywords && (field === anyField || !hasLiterals[field])) continue;
      this.#judgingWork += foldedText.length + 16;
      this.#scannedLength = foldedText.length;
      this.#scannedField = field;
      this.#scansKeywords = keywords;
      literals.search(foldedText, this.#onLiteral);
    }
  }

  #scanAscii({ heap, offsets, nulls, lower, from }: AsciiColumn, field: number, keywords: boolean): void {
    const { wholes, hasLiterals, literals } = this.#sigmaProgram;
    const asciiRow = this.#judgedRow;
    if (nulls?.[asciiRow] === 1) return;
    const [textBegin, textEnd] = [offsets[asciiRow]!, offsets[asciiRow + 1]!];
    const testsByText = field === anyField ? null : wholes[field]!;
    const wholeTextTests = testsByText?.get(lower.slice(textBegin - from, textEnd - from));
    if (wholeTextTests !== undefined) for (const test of wholeTextTests) this.#hitTest(test);
    if (!keywords && !hasLiterals[field]) return;
    this.#judgingWork += textEnd - textBegin + 16;
    this.#scannedLength = textEnd - textBegin;
    this.#scannedField = field;
    this.#scansKeywords = keywords;
    literals.searchBytes(heap, textBegin, textEnd, this.#onLiteral);
  }

  readonly #onLiteral = (literal: number, end: number): void => {
    const anchored = this.#sigmaProgram.anchored[literal]!;
    if (this.#scannedField !== anyField) this.#hitAnchoredTests(anchored.get(this.#scannedField), literal, end);
    if (this.#scansKeywords) this.#hitAnchoredTests(anchored.get(anyField), literal, end);
  };

  #hitAnchoredTests(anchoredTests: Anchored | undefined, literal: number, literalEnd: number): void {
    if (anchoredTests === undefined) return;
    const { tests, anchors } = anchoredTests;
    for (let i = 0; i < tests.length; i++) {
      const anchor = anchors[i]!;
      if (anchor === 1 && literalEnd !== this.#sigmaProgram.literalLengths[literal]) continue;
      if (anchor === 2 && literalEnd !== this.#scannedLength) continue;
      this.#hitTest(tests[i]!);
    }
  }

  #hitTest(hitTest: number): void {
    if (this.#hitStamps[hitTest] === this.#rowStamp) return;
    this.#hitStamps[hitTest] = this.#rowStamp;
    if (this.#sigmaProgram.tests[hitTest]!.anchor!.sure) this.#sureStamps[hitTest] = this.#rowStamp;
    for (const triggeredRule of this.#sigmaProgram.triggers[hitTest]!) {
      if (this.#ruleStamps[triggeredRule] === this.#rowStamp) continue;
      this.#ruleStamps[triggeredRule] = this.#rowStamp;
      this.#candidateRules.push(triggeredRule);
    }
  }

  #evaluateRule(
    ruleOrdinal: number,
    rowLogSource: readonly { readonly key: keyof LogSource; readonly text: string }[],
    matches: Map<number, number[]>,
  ): void {
    const { root, logSource } = this.#sigmaProgram.rules[ruleOrdinal]!;
    this.#judgingWork += workPerRule;
    for (const { key, text } of rowLogSource) if (text !== '' && logSource[key] !== null && logSource[key] !== text) return;
    if (!this.#holdsNode(root)) return;
    const matchedRows = matches.get(ruleOrdinal);
    if (matchedRows === undefined) matches.set(ruleOrdinal, [this.#judgedRow]);
    else matchedRows.push(this.#judgedRow);
  }

  #holdsNode(conditionNode: Node): boolean {
    switch (conditionNode.kind) {
      case 'test':
        return this.#holdsTest(conditionNode.test);
      case 'not':
        return !this.#holdsNode(conditionNode.of);
      case 'and':
        for (const childNode of conditionNode.of) if (!this.#holdsNode(childNode)) return false;
        return true;
      case 'or':
        for (const each of conditionNode.of) if (this.#holdsNode(each)) return true;
        return false;
      case 'some': {
        let missingCount = conditionNode.count;
        for (const each of conditionNode.of) if (this.#holdsNode(each) && --missingCount === 0) return true;
        return false;
      }
    }
  }

  #holdsTest(testOrdinal: number): boolean {
    if (this.#sureStamps[testOrdinal] === this.#rowStamp) return true;
    if (this.#knownStamps[testOrdinal] === this.#rowStamp) return this.#passed[testOrdinal] === this.#rowStamp;
    const compiledTest = this.#sigmaProgram.tests[testOrdinal]!;
    if (compiledTest.anchor !== null && this.#hitStamps[testOrdinal] !== this.#rowStamp) return false;
    this.#knownStamps[testOrdinal] = this.#rowStamp;
    this.#judgingWork += workPerRule;
    const testHolds = this.#checkTest(compiledTest);
    if (testHolds) this.#passed[testOrdinal] = this.#rowStamp;
    return testHolds;
  }

  #checkTest({ field, test, matcher, other }: CompiledTest): boolean {
    const testedTexts =
      field === anyField
        ? this.#fieldTexts.allTexts(this.#judgedRow, this.#rowStamp)
        : this.#fieldTexts.textsOf(field, this.#judgedRow, this.#rowStamp);
    if (test.kind === 'null') return testedTexts.length === 0;
    if (test.kind === 'exists') return testedTexts.length > 0;
    if (test.kind === 'reference') {
      const referredTexts = this.#fieldTexts.textsOf(other, this.#judgedRow, this.#rowStamp);
      return testedTexts.some((text) => referredTexts.some((referredText) => fitsReference(test, text, referredText)));
    }
    for (const text of testedTexts) {
      this.#judgingWork += text.length;
      if (test.kind === 'pattern' ? matcher!.matches(test.cased ? text : foldCase(text)) : passesTest(test, text)) return true;
    }
    return false;
  }
}

/** Rows from the first that is judged to behind the last. */
function judgedRowRange({ selection, first, count }: JudgedRows): readonly [number, number] {
  if (selection === null) return [first, first + count];
  let [leastRow, greatestRow] = [Number.POSITIVE_INFINITY, -1];
  for (let i = 0; i < count; i++) {
    leastRow = Math.min(leastRow, selection[i]!);
    greatestRow = Math.max(greatestRow, selection[i]!);
  }
  return [leastRow, greatestRow + 1];
}

function passesTest(test: FieldTest, text: string): boolean {
  switch (test.kind) {
    case 'regex':
      return test.regex.matcher(text).find();
    case 'network':
      return test.network.contains(text);
    case 'compare':
      return comparesNumbers(test.comparison, comparedNumber(text), test.value);
    case 'time':
      return comparesNumbers(test.comparison, instantPart(text, test.part), test.value);
    default:
      return false;
  }
}

/** NaN where the text is no number: it compares with nothing. */
function comparedNumber(text: string): number {
  const trimmedNumber = text.trim();
  return trimmedNumber === '' ? Number.NaN : Number(trimmedNumber);
}

function comparesNumbers(comparison: 'lt' | 'lte' | 'gt' | 'gte' | 'eq', comparedLeft: number, comparedRight: number): boolean {
  switch (comparison) {
    case 'lt':
      return comparedLeft < comparedRight;
    case 'lte':
      return comparedLeft <= comparedRight;
    case 'gt':
      return comparedLeft > comparedRight;
    case 'gte':
      return comparedLeft >= comparedRight;
    case 'eq':
      return comparedLeft === comparedRight;
  }
}

function fitsReference(test: FieldTest & { readonly kind: 'reference' }, text: string, against: string): boolean {
  const fieldText = test.cased ? text : foldCase(text);
  const referredText = test.cased ? against : foldCase(against);
  switch (test.reference) {
    case 'equals':
      return fieldText === referredText;
    case 'startswith':
      return fieldText.startsWith(referredText);
    case 'endswith':
      return fieldText.endsWith(referredText);
    case 'contains':
      return fieldText.includes(referredText);
  }
}

/** Reads an instant in UTC; NaN where the text is none. Weeks are those of ISO 8601. */
function instantPart(text: string, part: (FieldTest & { readonly kind: 'time' })['part']): number {
  let instantMs: number;
  try {
    instantMs = Number(parseInstant(text) / 1_000_000n);
  } catch {
    return Number.NaN;
  }
  const utcDate = new Date(instantMs);
  switch (part) {
    case 'minute':
      return utcDate.getUTCMinutes();
    case 'hour':
      return utcDate.getUTCHours();
    case 'day':
      return utcDate.getUTCDate();
    case 'month':
      return utcDate.getUTCMonth() + 1;
    case 'year':
      return utcDate.getUTCFullYear();
    case 'week': {
      const dayMs = 86_400_000;
      // The Thursday of a week lies in the year to which the week belongs.
      const thursday = new Date(instantMs + (4 - (utcDate.getUTCDay() || 7)) * dayMs);
      return Math.floor((thursday.getTime() - Date.UTC(thursday.getUTCFullYear(), 0, 1)) / (7 * dayMs)) + 1;
    }
  }
}
