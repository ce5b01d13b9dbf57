/**
 * Regular expressions of rules: compiled by RE2, whose time is linear in the text. What RE2 cannot express is refused by its
 * name. A literal that every match must hold is read out of the expression, so that most texts never reach it.
 */
import { RE2JS } from 're2js';
import { compileRegex } from '../../expressions/regular-expression.ts';
import type { FieldTest } from './field-test.ts';
import { foldCase } from './wildcard-pattern.ts';
import { Refusal } from './rule-refusal.ts';

const excluded: readonly (readonly [RegExp, string])[] = [
  [/^\(\?=/, 'look-ahead (?=…)'],
  [/^\(\?!/, 'negative look-ahead (?!…)'],
  [/^\(\?<=/, 'look-behind (?<=…)'],
  [/^\(\?<!/, 'negative look-behind (?<!…)'],
  [/^\(\?>/, 'an atomic group (?>…)'],
  [/^\(\?\(/, 'a conditional group (?(…)…)'],
  [/^\(\?[R&\d+-]/, 'recursion (?R)'],
  [/^\(\?#/, 'a comment (?#…)'],
  [/^\(\?[a-wyzA-Z]*x/, 'the flag x'],
  [/^\(\*/, 'a verb (*…)'],
  [/^\\[1-9]/, 'a back reference \\1'],
  [/^\\[kg]/, 'a back reference \\k'],
  [/^\\[GKRXHVNhe]/, 'an escape that only PCRE has'],
  [/^(?:[*+?]|\{\d+(?:,\d*)?\})\+/, 'a possessive quantifier'],
];

/** `flags` are of i, m, s, in this order. Throws a refusal that names what is wrong. */
export function compileSigmaRegex(path: string, source: string, flags: string): FieldTest & { readonly kind: 'regex' } {
  const pattern = toRe2(source);
  let options = 0;
  if (flags.includes('i')) options |= RE2JS.CASE_INSENSITIVE;
  if (flags.includes('m')) options |= RE2JS.MULTILINE;
  if (flags.includes('s')) options |= RE2JS.DOTALL;
  const named = findExcluded(pattern);
  if (named !== null) {
    throw new Refusal(path, `a regular expression uses ${named}, which has no linear-time form: ${shorten(source)}`);
  }
  const regex = compileRegex(pattern, options);
  if (regex === undefined) throw new Refusal(path, `a regular expression is malformed or too large: ${shorten(source)}`);
  return { kind: 'regex', source, flags, regex, literal: literalOf(pattern) };
}

const shorten = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text);

/** The end of a text as PCRE and Python write it, and escaped characters that need no escape: RE2 refuses both. */
function toRe2(source: string): string {
  return source.replaceAll(/\\([\s\S])/g, (escape, character: string) => {
    if (character === 'Z') return '\\z';
    return character.charCodeAt(0) < 0x80 ? escape : character;
  });
}

const isQuantifier = (text: string): boolean => /^(?:[*+?]|\{\d+(?:,\d*)?\})/.test(text);

function findExcluded(pattern: string): string | null {
  for (let i = 0; i < pattern.length; i++) {
    const rest = pattern.slice(i, i + 24);
    const literalForm =
      rest[0] === '\\' || rest[0] === '(' || isQuantifier(rest) ? excluded.find(([form]) => form.test(rest)) : undefined;
    if (literalForm !== undefined) return literalForm[1];
    if (rest[0] === '\\') i++;
    else if (rest[0] === '[') i = endOfClass(pattern, i);
  }
  return null;
}

/** Index of the bracket that ends the class. */
function endOfClass(pattern: string, from: number): number {
  let i = from + 1;
  if (pattern[i] === '^') i++;
  if (pattern[i] === ']') i++;
  for (; i < pattern.length && pattern[i] !== ']'; i++) {
    if (pattern[i] === '\\') i++;
    else if (pattern[i] === '[' && pattern[i + 1] === ':') {
      const end = pattern.indexOf(':]', i + 2);
      if (end !== -1) i = end + 1;
    }
  }
  return i;
}

/** Shorter ones are in almost every text. */
const literalMin = 3;

/**
 * The longest run of plain characters outside all groups, classes and repetitions; null where there is none, or where an
 * alternative at the outermost level makes every part optional. Lower case, since it stands before the case is looked at.
 */
function literalOf(pattern: string): string | null {
  let best = '';
  let run = '';
  let depth = 0;
  const endRun = (): void => {
    if (run.length > best.length) best = run;
    run = '';
  };
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern[i]!;
    if (character === '|' && depth === 0) return null;
    if (character === '(') {
      depth++;
      endRun();
      continue;
    }
    if (character === ')') {
      depth--;
      endRun();
      continue;
    }
    let literal: string | null = character;
    if (character === '[') {
      i = endOfClass(pattern, i);
      literal = null;
    } else if (character === '\\') {
      i++;
      const escaped = pattern[i] ?? '';
      if (escaped === 'Q') return null;
      literal = /[\w]/.test(escaped) ? null : escaped;
      if (escaped === 'x' || escaped === 'p' || escaped === 'P') {
        const braced = /^\{[^}]*\}/.exec(pattern.slice(i + 1));
        i += braced?.[0].length ?? (escaped === 'x' ? 2 : 1);
      } else if (/[0-7]/.test(escaped)) i += /^[0-7]{0,2}/.exec(pattern.slice(i + 1))![0].length;
    } else if ('.^$*+?'.includes(character)) literal = null;
    else if (character === '{' && isQuantifier(pattern.slice(i, i + 24))) {
      i = pattern.indexOf('}', i);
      literal = null;
    }
    if (literal === null || depth > 0) {
      endRun();
      continue;
    }
    // A repeated character may be missing, or stand more than once.
    if (isQuantifier(pattern.slice(i + 1, i + 25))) endRun();
    else run += literal;
  }
  endRun();
  return best.length < literalMin || /[^\x20-\x7e]/.test(best) ? null : foldCase(best);
}
