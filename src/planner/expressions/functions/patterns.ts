/**
 * LIKE that ignores case, and regular expressions. The latter are matched in time linear in the text (RE2): no pattern makes a
 * match take long, which is why back references and look-around are refused. A match costs far more than a search for plain text,
 * so text that every match must contain is searched first.
 */
import { LRUCache } from 'lru-cache';
import { RE2JS } from 're2js';
import { likeMatches } from '../like.ts';
import { compileRegex } from '../regular-expression.ts';
import { type Cost, spend } from '../work.ts';
import { checkLength, invalid, linear, type ScalarFunction, type Signature, text } from './scalar-function.ts';

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
const placesAtOnce = 64;

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
  const runs = pattern.replace(/.[*?{]/gsu, '\0').split(/[\0.^$+}]|\{[^}]*\}/u);
  return runs.reduce((longest, run) => (run.length > longest.length ? run : longest), '');
}

function matches(of: string, pattern: string, flags: string): boolean {
  const { pattern: regex, literal, size } = compile(pattern, flags);
  if (literal !== '' && !of.includes(literal)) return false;
  spend(of.length * size * matchCost);
  return regex.test(of);
}

/** `\1` to `\9` and `\&` in the replacement stand for groups and for the match. */
function piecesOf(by: string): (string | number)[] {
  return by.split(/\\([1-9&\\])/).map((piece, i) => (i % 2 === 0 || piece === '\\' ? piece : piece === '&' ? 0 : Number(piece)));
}

function replaceMatches(of: string, pattern: string, by: string, flags: string): string {
  const { pattern: regex, literal, size } = compile(pattern, flags);
  if (literal !== '' && !of.includes(literal)) return of;
  spend(of.length * size * replaceCost);
  const pieces = piecesOf(by);
  const groups = regex.groupCount();
  let end = 0;
  const matcher = regex.matcher(of);
  let made = '';
  for (let isNext = matcher.find(); isNext; isNext = flags.includes('g') && matcher.find()) {
    spend(foundCost + (of.length * size) / placesAtOnce);
    made += of.slice(end, matcher.start());
    for (const piece of pieces) made += typeof piece === 'string' ? piece : piece > groups ? '' : (matcher.group(piece) ?? '');
    end = matcher.end();
    checkLength(made);
  }
  return checkLength(made + of.slice(end));
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
        takes: ['string', 'string'],
        cost: perFolded,
        yields: 'boolean',
        evaluate: (of, pattern) => likeMatches(text(pattern).toLowerCase(), text(of).toLowerCase()),
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
    usage: "REGEXP_REPLACE(x, 'pattern', 'by'[, 'flags'])",
    summary: 'The first match replaced, or with the flag g all; \\1 to \\9 stand for groups, \\& for the match.',
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
    ],
  },
];
