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

interface CompiledPattern {
  readonly pattern: RE2JS;
  /** Stands in every match; empty where nothing is known to. */
  readonly literal: string;
  /** Instructions: each character may take a look at all of them. */
  readonly size: number;
}

const compiledPatterns = new LRUCache<string, CompiledPattern>({ max: 256 });
const regexLengthMax = 1_000;
/** Nanoseconds: both are brought to one case. */
const foldedPatternCost: Cost = { call: 200, character: 15 };
/** Nanoseconds an instruction, by character. */
const regexMatchCost = 6;
const regexReplaceCost = 12;
/** Nanoseconds of each match; and how many of the places that it may be at are cleared in one, instruction by instruction. */
const perMatchCost = 1_500;
const offsetsAtOnce = 64;

function cachedPattern(pattern: string, regexFlags: string): CompiledPattern {
  const patternKey = `${regexFlags}\0${pattern}`;
  let cachedRegex = compiledPatterns.get(patternKey);
  if (!cachedRegex) compiledPatterns.set(patternKey, (cachedRegex = compilePattern(pattern, regexFlags)));
  return cachedRegex;
}

function compilePattern(pattern: string, flags: string): CompiledPattern {
  if (pattern.length > regexLengthMax) throw invalid(`a regular expression has at most ${regexLengthMax} characters`);
  let re2Options = 0;
  for (const regexFlag of flags) {
    if (regexFlag === 'i') re2Options |= RE2JS.CASE_INSENSITIVE;
    else if (regexFlag === 's') re2Options |= RE2JS.DOTALL;
    else if (regexFlag === 'm' || regexFlag === 'n') re2Options |= RE2JS.MULTILINE;
    else if (regexFlag !== 'g' && regexFlag !== 'c') throw invalid('flags of a regular expression are i, c, m, n, s and g');
  }
  const regex = compileRegex(pattern, re2Options);
  if (regex === undefined)
    throw invalid(
      'the regular expression is malformed, too large, or uses what linear time excludes: back references, look-around',
      'pattern',
    );
  return { pattern: regex, literal: flags.includes('i') ? '' : requiredLiteral(pattern), size: regex.programSize() };
}

/** The longest run of plain characters outside of brackets and alternatives; none of them may be optional. */
function requiredLiteral(pattern: string): string {
  if (/[|\\()[\]]/.test(pattern)) return '';
  const literalRuns = pattern.replace(/.[*?{]/gsu, '\0').split(/[\0.^$+}]|\{[^{}]*\}/u);
  return literalRuns.reduce((longestRun, literalRun) => (literalRun.length > longestRun.length ? literalRun : longestRun), '');
}

function regexMatches(searchedText: string, pattern: string, regexFlags: string): boolean {
  const { pattern: searchedRegex, literal, size: programSize } = cachedPattern(pattern, regexFlags);
  if (literal !== '' && !searchedText.includes(literal)) return false;
  spend(searchedText.length * programSize * regexMatchCost);
  return searchedRegex.test(searchedText);
}

/** `\1` to `\9` and `\&` in the replacement stand for groups and for the match. */
function replacementPieces(replacement: string): (string | number)[] {
  return replacement
    .split(/\\([1-9&\\])/)
    .map((replacementPiece, i) =>
      i % 2 === 0 || replacementPiece === '\\' ? replacementPiece : replacementPiece === '&' ? 0 : Number(replacementPiece),
    );
}

function replaceMatches(searchedText: string, pattern: string, replacement: string, flags: string): string {
  const { pattern: regex, literal, size: programSize } = cachedPattern(pattern, flags);
  if (literal !== '' && !searchedText.includes(literal)) return searchedText;
  spend(searchedText.length * programSize * regexReplaceCost);
  const replacements = replacementPieces(replacement);
  const groupCount = regex.groupCount();
  let copiedEnd = 0;
  const regexMatcher = regex.matcher(searchedText);
  let replaced = '';
  for (let isNext = regexMatcher.find(); isNext; isNext = flags.includes('g') && regexMatcher.find()) {
    spend(perMatchCost + (searchedText.length * programSize) / offsetsAtOnce);
    replaced += searchedText.slice(copiedEnd, regexMatcher.start());
    for (const piece of replacements)
      replaced += typeof piece === 'string' ? piece : piece > groupCount ? '' : (regexMatcher.group(piece) ?? '');
    copiedEnd = regexMatcher.end();
    checkLength(replaced);
  }
  return checkLength(replaced + searchedText.slice(copiedEnd));
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
export function* findMatches(searchedText: string, pattern: string, flags: string, searchStart = 0): Generator<Match, void> {
  const { pattern: regex, literal, size: programSize } = cachedPattern(pattern, flags);
  if (literal !== '' && !searchedText.includes(literal)) return;
  spend(searchedText.length * programSize * regexReplaceCost);
  const regexMatcher = regex.matcher(searchedText);
  const groupCount = regex.groupCount();
  for (
    let isNext = searchStart === 0 ? regexMatcher.find() : regexMatcher.find(searchStart);
    isNext;
    isNext = regexMatcher.find()
  ) {
    spend(perMatchCost + (searchedText.length * programSize) / offsetsAtOnce);
    yield {
      from: regexMatcher.start(),
      to: regexMatcher.end(),
      text: regexMatcher.group() ?? '',
      groups: () => Array.from({ length: groupCount }, (_, i) => regexMatcher.group(i + 1)),
      group: (n) => (n > groupCount ? { from: -1, to: -1 } : { from: regexMatcher.start(n), to: regexMatcher.end(n) }),
    };
  }
}

/** Refuses the flag g where a function takes one match, or says how many. */
export function checkNotGlobal(name: string, flags: string): string {
  if (flags.includes('g')) throw invalid(`${name} does not take the flag g`);
  return flags;
}

/** The pieces between matches; a match of nothing splits only within the text. */
export function splitText(splitSource: string, pattern: string, flags: string): string[] {
  const splitPieces: string[] = [];
  let pieceStart = 0;
  for (const separatorMatch of findMatches(splitSource, pattern, flags)) {
    if (
      separatorMatch.to === separatorMatch.from &&
      (separatorMatch.from === pieceStart || separatorMatch.from >= splitSource.length)
    )
      continue;
    splitPieces.push(splitSource.slice(pieceStart, separatorMatch.from));
    pieceStart = separatorMatch.to;
  }
  splitPieces.push(splitSource.slice(pieceStart));
  return splitPieces;
}

/** The code unit where the n-th character begins. */
function unitAtCharacter(searchedText: string, characterNumber: bigint, regexFunction: string): number {
  if (characterNumber <= 0n) throw invalid(`${regexFunction} begins at a character from 1 on`);
  if (characterNumber > BigInt(searchedText.length))
    return characterNumber === BigInt(searchedText.length) + 1n ? searchedText.length : searchedText.length + 1;
  return unitAfter(searchedText, 0, Number(characterNumber) - 1);
}

function nthMatch(
  searchedText: string,
  pattern: string,
  start: Cell,
  matchNumber: Cell,
  flags: string,
  regexFunction: string,
): Match | null {
  if (integer(matchNumber) <= 0n) throw invalid(`${regexFunction} counts matches from 1`);
  const searchStart = unitAtCharacter(searchedText, integer(start), regexFunction);
  if (searchStart > searchedText.length) return null;
  let matchesLeft = integer(matchNumber);
  for (const match of findMatches(searchedText, pattern, checkNotGlobal(regexFunction, flags), searchStart))
    if (--matchesLeft === 0n) return match;
  return null;
}

function countMatches(searchedText: string, pattern: string, start: Cell, flags: string): bigint {
  const searchStart = unitAtCharacter(searchedText, integer(start), 'REGEXP_COUNT');
  let matchCount = 0n;
  if (searchStart <= searchedText.length)
    for (const _ of findMatches(searchedText, pattern, checkNotGlobal('REGEXP_COUNT', flags), searchStart)) matchCount++;
  return matchCount;
}

function groupNumber(cell: Cell, regexFunction: string): number {
  const groupCell = integer(cell);
  if (groupCell < 0n) throw invalid(`${regexFunction} counts groups from 0, which is the match`);
  return groupCell > 100n ? 101 : Number(groupCell);
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

function matchedText(searchedText: string, pattern: string, start: Cell, n: Cell, flags: string, group: Cell): string | null {
  const regexGroup = groupNumber(group, 'REGEXP_SUBSTR');
  const foundMatch = nthMatch(searchedText, pattern, start, n, flags, 'REGEXP_SUBSTR');
  if (foundMatch === null) return null;
  if (regexGroup === 0) return foundMatch.text;
  const { from, to } = foundMatch.group(regexGroup);
  return from < 0 ? null : searchedText.slice(from, to);
}

/** SUBSTRING(x FROM 'pattern'): the first group of the first match, or the match where the pattern has none. */
export function firstMatch(searchedText: string, pattern: string): string | null {
  for (const match of findMatches(searchedText, pattern, '')) {
    const matchGroups = match.groups();
    return matchGroups.length === 0 ? match.text : matchGroups[0]!;
  }
  return null;
}

/** From a character on the n-th match replaced, or all of them where n is 0. */
function replaceFrom(searchedText: string, pattern: string, replacement: string, start: Cell, n: Cell, flags: string): string {
  const searchStart = unitAtCharacter(searchedText, integer(start), 'REGEXP_REPLACE');
  const wantedMatch = integer(n);
  if (wantedMatch < 0n) throw invalid('REGEXP_REPLACE counts matches from 1; 0 is all of them');
  if (searchStart > searchedText.length) return searchedText;
  const replacements = replacementPieces(replacement);
  let joined = '';
  let copiedEnd = 0;
  let matchCount = 0n;
  for (const match of findMatches(searchedText, pattern, flags.replaceAll('g', ''), searchStart)) {
    matchCount++;
    if (wantedMatch !== 0n && matchCount < wantedMatch) continue;
    const matchGroups = match.groups();
    joined += searchedText.slice(copiedEnd, match.from);
    for (const piece of replacements)
      joined += typeof piece === 'string' ? piece : piece === 0 ? match.text : (matchGroups[piece - 1] ?? '');
    copiedEnd = match.to;
    checkLength(joined);
    if (wantedMatch !== 0n) break;
  }
  return checkLength(joined + searchedText.slice(copiedEnd));
}

function checkEscape(escape: string): void {
  if (Array.from(escape).length > 1) throw invalid('ESCAPE takes one character, or none', 'escape-form');
}

/** The character that escapes becomes a backslash, and a backslash stands for itself. */
function likeEscaped(pattern: string, likeEscape: string): string {
  checkEscape(likeEscape);
  if (likeEscape === '\\') return pattern;
  const units = new TextUnits(pattern.length);
  for (let i = 0; i < pattern.length; i++) {
    const patternUnit = pattern.charCodeAt(i);
    if (likeEscape !== '' && patternUnit === likeEscape.charCodeAt(0) && pattern.startsWith(likeEscape, i)) {
      units.push(backslash);
      i += likeEscape.length;
      if (i < pattern.length) units.push(pattern.charCodeAt(i));
    } else {
      if (patternUnit === backslash) units.push(patternUnit);
      units.push(patternUnit);
    }
  }
  return units.text();
}

const [backslash, doubleQuote, bracketOpens, bracketCloses] = [0x5c, 0x22, 0x5b, 0x5d];
const similarToRegex: ReadonlyMap<number, string> = new Map(
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
class TextUnits {
  #textUnits: Uint16Array<ArrayBuffer>;
  #unitCount = 0;

  constructor(expectedUnits: number) {
    this.#textUnits = new Uint16Array(expectedUnits + 64);
  }

  push(unit: number): void {
    if (this.#unitCount === this.#textUnits.length) {
      if (this.#unitCount > textMax) throw tooLong();
      const largerUnits = new Uint16Array(2 * this.#unitCount);
      largerUnits.set(this.#textUnits);
      this.#textUnits = largerUnits;
    }
    this.#textUnits[this.#unitCount++] = unit;
  }

  add(text: string): void {
    for (let i = 0; i < text.length; i++) this.push(text.charCodeAt(i));
  }

  /** Throws beyond the length that functions yield. */
  text(): string {
    if (this.#unitCount > textMax) throw tooLong();
    return Buffer.from(this.#textUnits.buffer, 0, 2 * this.#unitCount).toString('utf16le');
  }
}

/** Source: PostgreSQL, `similar_escape_internal`. What is escaped may be a class of POSIX, such as `\d`. */
function similarRegex(pattern: string, similarEscape: string): string {
  checkEscape(similarEscape);
  const units = new TextUnits(pattern.length);
  units.add('(?s)^(?:');
  let isInClass = false;
  for (let i = 0; i < pattern.length; i++) {
    const patternUnit = pattern.charCodeAt(i);
    if (similarEscape !== '' && patternUnit === similarEscape.charCodeAt(0) && pattern.startsWith(similarEscape, i)) {
      i += similarEscape.length;
      if (i === pattern.length) break;
      if (pattern.charCodeAt(i) === doubleQuote && !isInClass)
        throw invalid('an escaped double quote divides patterns of SUBSTRING only', 'pattern');
      units.push(backslash);
      units.push(pattern.charCodeAt(i));
    } else if (isInClass) {
      if (patternUnit === backslash) units.push(patternUnit);
      units.push(patternUnit);
      isInClass = patternUnit !== bracketCloses;
    } else {
      const regexText = similarToRegex.get(patternUnit);
      if (regexText === undefined) units.push(patternUnit);
      else units.add(regexText);
      isInClass = patternUnit === bracketOpens;
    }
  }
  units.add(')$');
  return units.text();
}

/** Two patterns by one word: `~` heeds the case, `~*` does not; with `!` they say no. */
function regexOperator(
  name: string,
  flags: string,
  isNegated: boolean,
  summary: string,
  example: readonly [string, string],
): ScalarFunction {
  const signature: Signature = {
    takes: ['string', 'string'],
    cost: linear,
    yields: 'boolean',
    evaluate: (of, pattern) => regexMatches(text(of), text(pattern), flags) !== isNegated,
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
        cost: foldedPatternCost,
        yields: 'boolean',
        evaluate: (searchedText, pattern, escape) =>
          likeMatches(text(pattern).toLowerCase(), text(searchedText).toLowerCase(), escape !== undefined),
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
  regexOperator('~', '', false, 'Whether a regular expression matches somewhere in the text.', ["'Alfred' ~ '^Al.*d$'", 'true']),
  regexOperator('~*', 'i', false, 'The same, whatever the case.', ["'Alfred' ~* 'FRED'", 'true']),
  regexOperator('!~', '', true, 'Whether it matches nowhere.', ["'Alfred' !~ 'x'", 'true']),
  regexOperator('!~*', 'i', true, 'The same, whatever the case.', ["'Alfred' !~* 'FRED'", 'false']),
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
        evaluate: (searchedText, pattern, flags = '') => regexMatches(text(searchedText), text(pattern), text(flags)),
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
        evaluate: (searchedText, pattern, replacement, flags = '') =>
          replaceMatches(text(searchedText), text(pattern), text(replacement), text(flags)),
        raises: true,
      },
      {
        takes: ['string', 'string', 'string', 'integer', 'integer', 'string'],
        cost: linear,
        optional: 2,
        yields: 'string',
        evaluate: (searchedText, pattern, replacement, start, n = 1n, flags = '') =>
          replaceFrom(text(searchedText), text(pattern), text(replacement), start!, n, text(flags)),
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
        evaluate: (searchedText, pattern, start = 1n, flags = '') =>
          countMatches(text(searchedText), text(pattern), start, text(flags)),
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
        evaluate: (searchedText, pattern, start = 1n, n = 1n, end = 0n, flags = '', group = 0n) =>
          offsetOfMatch(text(searchedText), text(pattern), start, n, end, text(flags), group),
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
        evaluate: (searchedText, pattern, start = 1n, n = 1n, flags = '', group = 0n) =>
          matchedText(text(searchedText), text(pattern), start, n, text(flags), group),
        raises: true,
      },
    ],
  },
];
