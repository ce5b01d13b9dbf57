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
const turnWork = 100_000;
const ruleWork = 40;

interface Scan {
  readonly read: FieldReader;
  /** Ordinal of the field, or `anyField` for keywords alone. */
  readonly field: number;
  readonly keywords: boolean;
  /** Set where the rows of the column are ASCII texts. */
  readonly ascii: AsciiColumn | null;
}

export class SigmaMatcher {
  readonly #program: Program;
  /** By test: the row in which it came up, was sure to hold, was evaluated, and held. */
  readonly #hits: Float64Array;
  readonly #sure: Float64Array;
  readonly #known: Float64Array;
  readonly #passed: Float64Array;
  readonly #ruleSeen: Float64Array;
  readonly #candidates: number[] = [];
  /** Number of the row that is judged; no two rows have one number. */
  #stamp = 0;
  #row = 0;
  #work = 0;
  readonly #texts: RowTextCache;
  /** Text and field that the literals are sought in. */
  #length = 0;
  #field = anyField;
  #keywords = false;

  private constructor(program: Program) {
    this.#program = program;
    const tests = program.tests.length;
    this.#hits = new Float64Array(tests);
    this.#sure = new Float64Array(tests);
    this.#known = new Float64Array(tests);
    this.#passed = new Float64Array(tests);
    this.#ruleSeen = new Float64Array(program.rules.length);
    this.#texts = new RowTextCache(program.fields);
  }

  /** Yields between shares of the work. */
  static *compile(rules: readonly SigmaRule[]): Generator<undefined, SigmaMatcher, void> {
    return new SigmaMatcher(yield* compileRules(rules));
  }

  /** Fields that some rule names: columns of these names, and JSON columns that begin them, are read. */
  get fields(): readonly string[] {
    return this.#program.fields;
  }

  /** Whether every column is read, for keywords. */
  get readsAll(): boolean {
    return this.#program.hasKeywords;
  }

  /** Yields between shares of the work. One at a time: what is known of the row in hand is kept here. */
  *judge(rows: JudgedRows): Generator<undefined, Matches, void> {
    const columns = new Map(rows.columns.map((column) => [column.name, new ColumnTexts(column)]));
    this.#texts.open(columns);
    const scans = yield* this.#scans(columns, rowRange(rows));
    const logSource = (['product', 'category', 'service'] as const).flatMap((key) => {
      const read = fieldReader(columns, key);
      return read === null ? [] : [{ key, read }];
    });
    const matches = new Map<number, number[]>();
    for (let i = 0; i < rows.count; i++) {
      const row = rows.selection === null ? rows.first + i : rows.selection[i]!;
      this.#row = row;
      this.#stamp++;
      this.#candidates.length = 0;
      for (const scan of scans) this.#scan(scan);
      const source = logSource.map(({ key, read }) => ({ key, text: foldCase(read(row)[0] ?? '') }));
      for (const rule of this.#program.always) this.#evaluate(rule, source, matches);
      for (const rule of this.#candidates) this.#evaluate(rule, source, matches);
      if (this.#work > turnWork) {
        this.#work = 0;
        yield;
      }
    }
    return matches;
  }

  *#scans(
    columns: ReadonlyMap<string, ColumnTexts>,
    [first, last]: readonly [number, number],
  ): Generator<undefined, readonly Scan[], void> {
    const { fields, wholes, hasLiterals, hasKeywords } = this.#program;
    const scans: Scan[] = [];
    const covered = new Set<string>();
    for (const [field, name] of fields.entries()) {
      const read = this.#texts.readerOf(field);
      if (read === null || (wholes[field] === null && !hasLiterals[field])) continue;
      const isPlain = columns.get(name) !== undefined && columns.get(name)!.column.type !== 'json';
      if (isPlain) covered.add(name);
      const ascii = isPlain ? columns.get(name)!.asciiBytes(first, last) : null;
      if (ascii !== null) yield;
      scans.push({ read, field, keywords: isPlain && hasKeywords, ascii });
    }
    if (!hasKeywords) return scans;
    for (const [name, column] of columns) {
      if (covered.has(name)) continue;
      yield;
      scans.push({ read: (row) => column.leaves(row), field: anyField, keywords: true, ascii: column.asciiBytes(first, last) });
    }
    return scans;
  }

  #scan({ read, field, keywords, ascii }: Scan): void {
    if (ascii !== null) return this.#scanAscii(ascii, field, keywords);
    const { wholes, hasLiterals, literals } = this.#program;
    const texts = field === anyField ? read(this.#row) : this.#texts.textsOf(field, this.#row, this.#stamp);
    for (const text of texts) {
      const folded = foldCase(text);
      const whole = field === anyField ? undefined : wholes[field]?.get(folded);
      if (whole !== undefined) for (const test of whole) this.#hit(test);
      if (!keywords && (field === anyField || !hasLiterals[field])) continue;
      this.#work += folded.length + 16;
      this.#length = folded.length;
      this.#field = field;
      this.#keywords = keywords;
      literals.search(folded, this.#onLiteral);
    }
  }

  #scanAscii({ heap, offsets, nulls, lower, from }: AsciiColumn, field: number, keywords: boolean): void {
    const { wholes, hasLiterals, literals } = this.#program;
    const row = this.#row;
    if (nulls?.[row] === 1) return;
    const [begin, end] = [offsets[row]!, offsets[row + 1]!];
    const byText = field === anyField ? null : wholes[field]!;
    const whole = byText?.get(lower.slice(begin - from, end - from));
    if (whole !== undefined) for (const test of whole) this.#hit(test);
    if (!keywords && !hasLiterals[field]) return;
    this.#work += end - begin + 16;
    this.#length = end - begin;
    this.#field = field;
    this.#keywords = keywords;
    literals.searchBytes(heap, begin, end, this.#onLiteral);
  }

  readonly #onLiteral = (literal: number, end: number): void => {
    const anchored = this.#program.anchored[literal]!;
    if (this.#field !== anyField) this.#hitAll(anchored.get(this.#field), literal, end);
    if (this.#keywords) this.#hitAll(anchored.get(anyField), literal, end);
  };

  #hitAll(anchored: Anchored | undefined, literal: number, end: number): void {
    if (anchored === undefined) return;
    const { tests, anchors } = anchored;
    for (let i = 0; i < tests.length; i++) {
      const anchor = anchors[i]!;
      if (anchor === 1 && end !== this.#program.literalLengths[literal]) continue;
      if (anchor === 2 && end !== this.#length) continue;
      this.#hit(tests[i]!);
    }
  }

  #hit(test: number): void {
    if (this.#hits[test] === this.#stamp) return;
    this.#hits[test] = this.#stamp;
    if (this.#program.tests[test]!.anchor!.sure) this.#sure[test] = this.#stamp;
    for (const rule of this.#program.triggers[test]!) {
      if (this.#ruleSeen[rule] === this.#stamp) continue;
      this.#ruleSeen[rule] = this.#stamp;
      this.#candidates.push(rule);
    }
  }

  #evaluate(
    ordinal: number,
    source: readonly { readonly key: keyof LogSource; readonly text: string }[],
    matches: Map<number, number[]>,
  ): void {
    const { root, logSource } = this.#program.rules[ordinal]!;
    this.#work += ruleWork;
    for (const { key, text } of source) if (text !== '' && logSource[key] !== null && logSource[key] !== text) return;
    if (!this.#holds(root)) return;
    const rows = matches.get(ordinal);
    if (rows === undefined) matches.set(ordinal, [this.#row]);
    else rows.push(this.#row);
  }

  #holds(node: Node): boolean {
    switch (node.kind) {
      case 'test':
        return this.#testHolds(node.test);
      case 'not':
        return !this.#holds(node.of);
      case 'and':
        for (const each of node.of) if (!this.#holds(each)) return false;
        return true;
      case 'or':
        for (const each of node.of) if (this.#holds(each)) return true;
        return false;
      case 'some': {
        let missing = node.count;
        for (const each of node.of) if (this.#holds(each) && --missing === 0) return true;
        return false;
      }
    }
  }

  #testHolds(ordinal: number): boolean {
    if (this.#sure[ordinal] === this.#stamp) return true;
    if (this.#known[ordinal] === this.#stamp) return this.#passed[ordinal] === this.#stamp;
    const compiled = this.#program.tests[ordinal]!;
    if (compiled.anchor !== null && this.#hits[ordinal] !== this.#stamp) return false;
    this.#known[ordinal] = this.#stamp;
    this.#work += ruleWork;
    const holds = this.#check(compiled);
    if (holds) this.#passed[ordinal] = this.#stamp;
    return holds;
  }

  #check({ field, test, matcher, other }: CompiledTest): boolean {
    const texts =
      field === anyField ? this.#texts.allTexts(this.#row, this.#stamp) : this.#texts.textsOf(field, this.#row, this.#stamp);
    if (test.kind === 'null') return texts.length === 0;
    if (test.kind === 'exists') return texts.length > 0;
    if (test.kind === 'reference') {
      const others = this.#texts.textsOf(other, this.#row, this.#stamp);
      return texts.some((text) => others.some((against) => fitsReference(test, text, against)));
    }
    for (const text of texts) {
      this.#work += text.length;
      if (test.kind === 'pattern' ? matcher!.matches(test.cased ? text : foldCase(text)) : passes(test, text)) return true;
    }
    return false;
  }
}

/** Rows from the first that is judged to behind the last. */
function rowRange({ selection, first, count }: JudgedRows): readonly [number, number] {
  if (selection === null) return [first, first + count];
  let [least, most] = [Number.POSITIVE_INFINITY, -1];
  for (let i = 0; i < count; i++) {
    least = Math.min(least, selection[i]!);
    most = Math.max(most, selection[i]!);
  }
  return [least, most + 1];
}

function passes(test: FieldTest, text: string): boolean {
  switch (test.kind) {
    case 'regex':
      return test.regex.matcher(text).find();
    case 'network':
      return test.network.contains(text);
    case 'compare':
      return compares(test.comparison, numberOf(text), test.value);
    case 'time':
      return compares(test.comparison, timePart(text, test.part), test.value);
    default:
      return false;
  }
}

/** NaN where the text is no number: it compares with nothing. */
function numberOf(text: string): number {
  const trimmed = text.trim();
  return trimmed === '' ? Number.NaN : Number(trimmed);
}

function compares(comparison: 'lt' | 'lte' | 'gt' | 'gte' | 'eq', left: number, right: number): boolean {
  switch (comparison) {
    case 'lt':
      return left < right;
    case 'lte':
      return left <= right;
    case 'gt':
      return left > right;
    case 'gte':
      return left >= right;
    case 'eq':
      return left === right;
  }
}

function fitsReference(test: FieldTest & { readonly kind: 'reference' }, text: string, against: string): boolean {
  const left = test.cased ? text : foldCase(text);
  const right = test.cased ? against : foldCase(against);
  switch (test.reference) {
    case 'equals':
      return left === right;
    case 'startswith':
      return left.startsWith(right);
    case 'endswith':
      return left.endsWith(right);
    case 'contains':
      return left.includes(right);
  }
}

/** Reads an instant in UTC; NaN where the text is none. Weeks are those of ISO 8601. */
function timePart(text: string, part: (FieldTest & { readonly kind: 'time' })['part']): number {
  let ms: number;
  try {
    ms = Number(parseInstant(text) / 1_000_000n);
  } catch {
    return Number.NaN;
  }
  const date = new Date(ms);
  switch (part) {
    case 'minute':
      return date.getUTCMinutes();
    case 'hour':
      return date.getUTCHours();
    case 'day':
      return date.getUTCDate();
    case 'month':
      return date.getUTCMonth() + 1;
    case 'year':
      return date.getUTCFullYear();
    case 'week': {
      const dayMs = 86_400_000;
      // The Thursday of a week lies in the year to which the week belongs.
      const thursday = new Date(ms + (4 - (date.getUTCDay() || 7)) * dayMs);
      return Math.floor((thursday.getTime() - Date.UTC(thursday.getUTCFullYear(), 0, 1)) / (7 * dayMs)) + 1;
    }
  }
}
