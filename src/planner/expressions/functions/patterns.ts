/**
 * LIKE that ignores case, and regular expressions. The latter are matched in time linear in the text (RE2): no pattern makes a
 * match take long, which is why back references and look-around are refused. A match costs far more than a search for plain text,
 * so text that every match must contain is searched first.
 */
import { LRUCache } from 'lru-cache';
import { RE2JS } from 're2js';
import { likeMatches } from '../like.ts';
import { compileRegex } from '../regular-expression.ts';
import { type Cost, spend } from '../expression-cost.ts';
import type { Cell } from '../../../log/values/value.ts';
import { lengthOf, unitAfter } from '../code-points.ts';
import {
  checkLength,
  integer,
  invalid,
  linear,
  type ScalarFunction,
  type Signature,
  text,
  textMax,
  tooLong,
} from './scalar-function.ts';

interface Compiled {
  readonly pattern: RE2JS;
  /** Stands in every match; empty where nothing is known to. */
  readonly literal: string;
  /** Instructions: each character may take a look at all of them. */
  readonly size: number;
}

const compiled = new LRUCache<string, Compiled>({ max: 256 });
const patternMax = 1_000;
/** Nanoseconds: both are brought to one case. */
const perFolded: Cost = { call: 200, character: 15 };
/** Nanoseconds an instruction, by character. */
const matchCost = 6;
const replaceCost = 12;
/** Nanoseconds of each match; and how many of the places that it may be at are cleared in one, instruction by instruction. */
const foundCost = 1_500;
const offsetsAtOnce = 64;

function compile(pattern: string, flags: string): Compiled {
  const key = `${flags}\0${pattern}`;
  let known = compiled.get(key);
  if (!known) compiled.set(key, (known = compilePattern(pattern, flags)));
  return known;
}

function compilePattern(pattern: string, flags: string): Compiled {
  if (pattern.length > patternMax) throw invalid(`a regular expression has at most ${patternMax} characters`);
  let options = 0;
  for (const flag of flags) {
    if (flag === 'i') options |= RE2JS.CASE_INSENSITIVE;
    else if (flag === 's') options |= RE2JS.DOTALL;
    else if (flag === 'm' || flag === 'n') options |= RE2JS.MULTILINE;
    else if (flag !== 'g' && flag !== 'c') throw invalid('flags of a regular expression are i, c, m, n, s and g');
  }
  const regex = compileRegex(pattern, options);
  if (regex === undefined)
    throw invalid(
      'the regular expression is malformed, too large, or uses what linear time excludes: back references, look-around',
      'pattern',
    );
  return { pattern: regex, literal: flags.includes('i') ? '' : literalOf(pattern), size: regex.programSize() };
}

/** The longest run of plain characters outside of brackets and alternatives; none of them may be optional. */
function literalOf(pattern: string): string {
  if (/[|\\()[\]]/.test(pattern)) return '';
  const runs = pattern.replace(/.[*?{]/gsu, '\0').split(/[\0.^$+}]|\{[^{}]*\}/u);
  return runs.reduce((longest, run) => (run.length > longest.length ? run : longest), '');
}

function matches(of: string, pattern: string, flags: string): boolean {
  const { pattern: regex, literal, size } = compile(pattern, flags);
  if (literal !== '' && !of.includes(literal)) return false;
  spend(of.length * size * matchCost);
  return regex.test(of);
}

/** `\1` to `\9` and `\&` in the replacement stand for groups and for the match. */
function piecesOf(replacement: string): (string | number)[] {
  return replacement
    .split(/\\([1-9&\\])/)
    .map((piece, i) => (i % 2 === 0 || piece === '\\' ? piece : piece === '&' ? 0 : Number(piece)));
}

function replaceMatches(of: string, pattern: string, replacement: string, flags: string): string {
  const { pattern: regex, literal, size } = compile(pattern, flags);
  if (literal !== '' && !of.includes(literal)) return of;
  spend(of.length * size * replaceCost);
  const pieces = piecesOf(replacement);
  const groups = regex.groupCount();
  let end = 0;
  const matcher = regex.matcher(of);
  let replaced = '';
  for (let isNext = matcher.find(); isNext; isNext = flags.includes('g') && matcher.find()) {
    spend(foundCost + (of.length * size) / offsetsAtOnce);
    replaced += of.slice(end, matcher.start());
    for (const piece of pieces)
      replaced += typeof piece === 'string' ? piece : piece > groups ? '' : (matcher.group(piece) ?? '');
    end = matcher.end();
    checkLength(replaced);
  }
  return checkLength(replaced + of.slice(end));
}

/** A match: where it is in code units, and its groups, null where one takes no part. */
export interface Match {
  readonly from: number;
  readonly to: number;
  readonly text: string;
  groups(): (string | null)[];
  /** Where a group is; -1 where it takes no part. */
  group(n: number): { readonly from: number; readonly to: number };
}

/** All matches from a code unit on, one after the other, each as it is asked for. */
export function* findMatches(of: string, pattern: string, flags: string, start = 0): Generator<Match, void> {
  const { pattern: regex, literal, size } = compile(pattern, flags);
  if (literal !== '' && !of.includes(literal)) return;
  spend(of.length * size * replaceCost);
  const matcher = regex.matcher(of);
  const count = regex.groupCount();
  for (let isNext = start === 0 ? matcher.find() : matcher.find(start); isNext; isNext = matcher.find()) {
    spend(foundCost + (of.length * size) / offsetsAtOnce);
    yield {
      from: matcher.start(),
      to: matcher.end(),
      text: matcher.group() ?? '',
      groups: () => Array.from({ length: count }, (_, i) => matcher.group(i + 1)),
      group: (n) => (n > count ? { from: -1, to: -1 } : { from: matcher.start(n), to: matcher.end(n) }),
    };
  }
}

/** Refuses the flag g where a function takes one match, or says how many. */
export function checkNotGlobal(name: string, flags: string): string {
  if (flags.includes('g')) throw invalid(`${name} does not take the flag g`);
  return flags;
}

/** The pieces between matches; a match of nothing splits only within the text. */
export function splitText(of: string, pattern: string, flags: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  for (const match of findMatches(of, pattern, flags)) {
    if (match.to === match.from && (match.from === from || match.from >= of.length)) continue;
    pieces.push(of.slice(from, match.from));
    from = match.to;
  }
  pieces.push(of.slice(from));
  return pieces;
}

/** The code unit where the n-th character begins. */
function unitOfCharacter(of: string, n: bigint, name: string): number {
  if (n <= 0n) throw invalid(`${name} begins at a character from 1 on`);
  if (n > BigInt(of.length)) return n === BigInt(of.length) + 1n ? of.length : of.length + 1;
  return unitAfter(of, 0, Number(n) - 1);
}

function nthMatch(of: string, pattern: string, start: Cell, n: Cell, flags: string, name: string): Match | null {
  if (integer(n) <= 0n) throw invalid(`${name} counts matches from 1`);
  const from = unitOfCharacter(of, integer(start), name);
  if (from > of.length) return null;
  let left = integer(n);
  for (const match of findMatches(of, pattern, checkNotGlobal(name, flags), from)) if (--left === 0n) return match;
  return null;
}

function countMatches(of: string, pattern: string, start: Cell, flags: string): bigint {
  const from = unitOfCharacter(of, integer(start), 'REGEXP_COUNT');
  let count = 0n;
  if (from <= of.length) for (const _ of findMatches(of, pattern, checkNotGlobal('REGEXP_COUNT', flags), from)) count++;
  return count;
}

function groupNumber(cell: Cell, name: string): number {
  const group = integer(cell);
  if (group < 0n) throw invalid(`${name} counts groups from 0, which is the match`);
  return group > 100n ? 101 : Number(group);
}

/** Where the match, or one of its groups, begins (`end` 0) or what comes behind it begins (1), counted from 1; 0: nowhere. */
function offsetOfMatch(of: string, pattern: string, start: Cell, n: Cell, end: Cell, flags: string, group: Cell): bigint {
  const which = integer(end);
  if (which !== 0n && which !== 1n) throw invalid('REGEXP_INSTR says where a match begins, 0, or ends, 1');
  const number = groupNumber(group, 'REGEXP_INSTR');
  const match = nthMatch(of, pattern, start, n, flags, 'REGEXP_INSTR');
  const matchRange = match === null ? null : number === 0 ? match : match.group(number);
  if (matchRange === null || matchRange.from < 0) return 0n;
  return BigInt(lengthOf(of.slice(0, which === 0n ? matchRange.from : matchRange.to)) + 1);
}

function textOfMatch(of: string, pattern: string, start: Cell, n: Cell, flags: string, group: Cell): string | null {
  const number = groupNumber(group, 'REGEXP_SUBSTR');
  const match = nthMatch(of, pattern, start, n, flags, 'REGEXP_SUBSTR');
  if (match === null) return null;
  if (number === 0) return match.text;
  const { from, to } = match.group(number);
  return from < 0 ? null : of.slice(from, to);
}

/** SUBSTRING(x FROM 'pattern'): the first group of the first match, or the match where the pattern has none. */
export function firstMatch(of: string, pattern: string): string | null {
  for (const match of findMatches(of, pattern, '')) {
    const groups = match.groups();
    return groups.length === 0 ? match.text : groups[0]!;
  }
  return null;
}

/** From a character on the n-th match replaced, or all of them where n is 0. */
function replaceFrom(of: string, pattern: string, replacement: string, start: Cell, n: Cell, flags: string): string {
  const from = unitOfCharacter(of, integer(start), 'REGEXP_REPLACE');
  const wanted = integer(n);
  if (wanted < 0n) throw invalid('REGEXP_REPLACE counts matches from 1; 0 is all of them');
  if (from > of.length) return of;
  const pieces = piecesOf(replacement);
  let joined = '';
  let end = 0;
  let count = 0n;
  for (const match of findMatches(of, pattern, flags.replaceAll('g', ''), from)) {
    count++;
    if (wanted !== 0n && count < wanted) continue;
    const groups = match.groups();
    joined += of.slice(end, match.from);
    for (const piece of pieces)
      joined += typeof piece === 'string' ? piece : piece === 0 ? match.text : (groups[piece - 1] ?? '');
    end = match.to;
    checkLength(joined);
    if (wanted !== 0n) break;
  }
  return checkLength(joined + of.slice(end));
}

function checkEscape(escape: string): void {
  if (Array.from(escape).length > 1) throw invalid('ESCAPE takes one character, or none', 'escape-form');
}

/** The character that escapes becomes a backslash, and a backslash stands for itself. */
function likeEscaped(pattern: string, escape: string): string {
  checkEscape(escape);
  if (escape === '\\') return pattern;
  const units = new Units(pattern.length);
  for (let i = 0; i < pattern.length; i++) {
    const unit = pattern.charCodeAt(i);
    if (escape !== '' && unit === escape.charCodeAt(0) && pattern.startsWith(escape, i)) {
      units.push(backslash);
      i += escape.length;
      if (i < pattern.length) units.push(pattern.charCodeAt(i));
    } else {
      if (unit === backslash) units.push(unit);
      units.push(unit);
    }
  }
  return units.text();
}

const [backslash, doubleQuote, bracketOpens, bracketCloses] = [0x5c, 0x22, 0x5b, 0x5d];
const plainInSimilar: ReadonlyMap<number, string> = new Map(
  Object.entries({
    '%': '.*',
    _: '.',
    '(': '(?:',
    '.': '\\.',
    '^': '\\^',
    $: '\\$',
    '\\': '\\\\',
  }).map(([character, plain]) => [character.charCodeAt(0), plain]),
);

/** A text that grows by UTF-16 code units: a string that grows by characters leaves a node for each to the collector. */
class Units {
  #units: Uint16Array<ArrayBuffer>;
  #used = 0;

  constructor(expected: number) {
    this.#units = new Uint16Array(expected + 64);
  }

  push(unit: number): void {
    if (this.#used === this.#units.length) {
      if (this.#used > textMax) throw tooLong();
      const larger = new Uint16Array(2 * this.#used);
      larger.set(this.#units);
      this.#units = larger;
    }
    this.#units[this.#used++] = unit;
  }

  add(text: string): void {
    for (let i = 0; i < text.length; i++) this.push(text.charCodeAt(i));
  }

  /** Throws beyond the length that functions yield. */
  text(): string {
    if (this.#used > textMax) throw tooLong();
    return Buffer.from(this.#units.buffer, 0, 2 * this.#used).toString('utf16le');
  }
}

/** Source: PostgreSQL, `similar_escape_internal`. What is escaped may be a class of POSIX, such as `\d`. */
function similarRegex(pattern: string, escape: string): string {
  checkEscape(escape);
  const units = new Units(pattern.length);
  units.add('(?s)^(?:');
  let isInClass = false;
  for (let i = 0; i < pattern.length; i++) {
    const unit = pattern.charCodeAt(i);
    if (escape !== '' && unit === escape.charCodeAt(0) && pattern.startsWith(escape, i)) {
      i += escape.length;
      if (i === pattern.length) break;
      if (pattern.charCodeAt(i) === doubleQuote && !isInClass)
        throw invalid('an escaped double quote divides patterns of SUBSTRING only', 'pattern');
      units.push(backslash);
      units.push(pattern.charCodeAt(i));
    } else if (isInClass) {
      if (unit === backslash) units.push(unit);
      units.push(unit);
      isInClass = unit !== bracketCloses;
    } else {
      const plain = plainInSimilar.get(unit);
      if (plain === undefined) units.push(unit);
      else units.add(plain);
      isInClass = unit === bracketOpens;
    }
  }
  units.add(')$');
  return units.text();
}

/** Two patterns by one word: `~` heeds the case, `~*` does not; with `!` they say no. */
function operator(
  name: string,
  flags: string,
  negated: boolean,
  summary: string,
  example: readonly [string, string],
): ScalarFunction {
  const signature: Signature = {
    takes: ['string', 'string'],
    cost: linear,
    yields: 'boolean',
    evaluate: (of, pattern) => matches(text(of), text(pattern), flags) !== negated,
    raises: true,
  };
  return { name, group: 'patterns', usage: `x ${name} 'pattern'`, summary, examples: [example], signatures: [signature] };
}

export const patternFunctions: readonly ScalarFunction[] = [
  {
    name: 'ILIKE',
    group: 'patterns',
    usage: "x ILIKE 'pattern'",
    summary: 'LIKE, whatever the case.',
    examples: [["'Alfred' ILIKE 'AL%'", 'true']],
    signatures: [
      {
        takes: ['string', 'string', 'string'],
        optional: 1,
        cost: perFolded,
        yields: 'boolean',
        evaluate: (of, pattern, escape) => likeMatches(text(pattern).toLowerCase(), text(of).toLowerCase(), escape !== undefined),
        raises: true,
      },
    ],
  },
  {
    name: 'LIKE_ESCAPE',
    group: 'patterns',
    usage: "LIKE_ESCAPE('pattern', 'character')",
    summary:
      'The pattern of LIKE with a backslash in place of its escape character, as `LIKE … ESCAPE` reads it; none where it is empty.',
    examples: [["LIKE_ESCAPE('10!%', '!')", '10\\%']],
    signatures: [
      {
        takes: ['string', 'string'],
        cost: linear,
        yields: 'string',
        evaluate: (pattern, escape) => likeEscaped(text(pattern), text(escape)),
        raises: true,
      },
    ],
  },
  {
    name: 'SIMILAR_TO_ESCAPE',
    group: 'patterns',
    usage: "SIMILAR_TO_ESCAPE('pattern'[, 'character'])",
    summary: 'The regular expression that a pattern of `SIMILAR TO` stands for; its escape character is a backslash.',
    examples: [["SIMILAR_TO_ESCAPE('(a|b)%')", '(?s)^(?:(?:a|b).*)$']],
    signatures: [
      {
        takes: ['string', 'string'],
        optional: 1,
        cost: linear,
        yields: 'string',
        evaluate: (pattern, escape = '\\') => similarRegex(text(pattern), text(escape)),
        raises: true,
      },
    ],
  },
  operator('~', '', false, 'Whether a regular expression matches somewhere in the text.', ["'Alfred' ~ '^Al.*d$'", 'true']),
  operator('~*', 'i', false, 'The same, whatever the case.', ["'Alfred' ~* 'FRED'", 'true']),
  operator('!~', '', true, 'Whether it matches nowhere.', ["'Alfred' !~ 'x'", 'true']),
  operator('!~*', 'i', true, 'The same, whatever the case.', ["'Alfred' !~* 'FRED'", 'false']),
  {
    name: 'REGEXP_LIKE',
    group: 'patterns',
    usage: "REGEXP_LIKE(x, 'pattern'[, 'flags'])",
    summary:
      'Whether a regular expression matches somewhere in the text. Flags: i whatever the case, m (or n) lines, s a dot is any character.',
    examples: [["REGEXP_LIKE('Alfred', 'FRED', 'i')", 'true']],
    signatures: [
      {
        takes: ['string', 'string', 'string'],
        cost: linear,
        optional: 1,
        yields: 'boolean',
        evaluate: (of, pattern, flags = '') => matches(text(of), text(pattern), text(flags)),
        raises: true,
      },
    ],
  },
  {
    name: 'REGEXP_REPLACE',
    group: 'patterns',
    usage: "REGEXP_REPLACE(x, 'pattern', 'by'[, 'flags']) or REGEXP_REPLACE(x, 'pattern', 'by', start[, n[, 'flags']])",
    summary:
      'The first match replaced, or with the flag g all; the n-th from a character on, or with n 0 all. \\1 to \\9 stand for groups, \\& for the match.',
    examples: [
      ["REGEXP_REPLACE('a1b2', '[0-9]', '#')", 'a#b2'],
      ["REGEXP_REPLACE('a1b2', '([0-9])', '<\\1>', 'g')", 'a<1>b<2>'],
    ],
    signatures: [
      {
        takes: ['string', 'string', 'string', 'string'],
        cost: linear,
        optional: 1,
        yields: 'string',
        evaluate: (of, pattern, by, flags = '') => replaceMatches(text(of), text(pattern), text(by), text(flags)),
        raises: true,
      },
      {
        takes: ['string', 'string', 'string', 'integer', 'integer', 'string'],
        cost: linear,
        optional: 2,
        yields: 'string',
        evaluate: (of, pattern, by, start, n = 1n, flags = '') =>
          replaceFrom(text(of), text(pattern), text(by), start!, n, text(flags)),
        raises: true,
      },
    ],
  },
  {
    name: 'REGEXP_COUNT',
    group: 'patterns',
    usage: "REGEXP_COUNT(x, 'pattern'[, start[, 'flags']])",
    summary: 'How many matches there are from a character on.',
    examples: [["REGEXP_COUNT('ABCABCAXYaxy', 'A.', 1, 'i')", '4']],
    signatures: [
      {
        takes: ['string', 'string', 'integer', 'string'],
        cost: linear,
        optional: 2,
        yields: 'integer',
        evaluate: (of, pattern, start = 1n, flags = '') => countMatches(text(of), text(pattern), start, text(flags)),
        raises: true,
        small: true,
      },
    ],
  },
  {
    name: 'REGEXP_INSTR',
    group: 'patterns',
    usage: "REGEXP_INSTR(x, 'pattern'[, start[, n[, end[, 'flags'[, group]]]]])",
    summary: 'Where the n-th match from a character on begins, or with end 1 what comes behind it; 0 where there is none.',
    examples: [["REGEXP_INSTR('ABCDEFGHI', 'D..', 1, 1, 1)", '7']],
    signatures: [
      {
        takes: ['string', 'string', 'integer', 'integer', 'integer', 'string', 'integer'],
        cost: linear,
        optional: 5,
        yields: 'integer',
        evaluate: (of, pattern, start = 1n, n = 1n, end = 0n, flags = '', group = 0n) =>
          offsetOfMatch(text(of), text(pattern), start, n, end, text(flags), group),
        raises: true,
        small: true,
      },
    ],
  },
  {
    name: 'REGEXP_SUBSTR',
    group: 'patterns',
    usage: "REGEXP_SUBSTR(x, 'pattern'[, start[, n[, 'flags'[, group]]]])",
    summary: 'The n-th match from a character on, or a group of it; NULL where there is none.',
    examples: [["REGEXP_SUBSTR('ABCDEFGHI', '(c)(.*)', 1, 1, 'i', 2)", 'DEFGHI']],
    signatures: [
      {
        takes: ['string', 'string', 'integer', 'integer', 'string', 'integer'],
        cost: linear,
        optional: 4,
        yields: 'string',
        evaluate: (of, pattern, start = 1n, n = 1n, flags = '', group = 0n) =>
          textOfMatch(text(of), text(pattern), start, n, text(flags), group),
        raises: true,
      },
    ],
  },
];
