/**
 * Regular expressions of rules: compiled by RE2, whose time is linear in the text. What RE2 cannot express is refused by its
 * name. A literal that every match must hold is read out of the expression, so that most texts never reach it.
 */
import { RE2JS } from 're2js';
import { compileRegex } from '../../expressions/regular-expression.ts';
import type { FieldTest } from './field-test.ts';
import { foldCase } from './wildcard-pattern.ts';
import { Refusal } from './rule-refusal.ts';

const excludedForms: readonly (readonly [RegExp, string])[] = [
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
  const re2Pattern = toRe2Pattern(source);
  let re2Options = 0;
  if (flags.includes('i')) re2Options |= RE2JS.CASE_INSENSITIVE;
  if (flags.includes('m')) re2Options |= RE2JS.MULTILINE;
  if (flags.includes('s')) re2Options |= RE2JS.DOTALL;
  const excludedForm = findExcludedForm(re2Pattern);
  if (excludedForm !== null) {
    throw new Refusal(path, `a regular expression uses ${excludedForm}, which has no linear-time form: ${shortenRegex(source)}`);
  }
  const re2Regex = compileRegex(re2Pattern, re2Options);
  if (re2Regex === undefined) throw new Refusal(path, `a regular expression is malformed or too large: ${shortenRegex(source)}`);
  return { kind: 'regex', source, flags, regex: re2Regex, literal: requiredLiteralOf(re2Pattern) };
}

const shortenRegex = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text);

/** The end of a text as PCRE and Python write it, and escaped characters that need no escape: RE2 refuses both. */
function toRe2Pattern(source: string): string {
  return source.replaceAll(/\\([\s\S])/g, (escape, character: string) => {
    if (character === 'Z') return '\\z';
    return character.charCodeAt(0) < 0x80 ? escape : character;
  });
}

const isRegexQuantifier = (text: string): boolean => /^(?:[*+?]|\{\d+(?:,\d*)?\})/.test(text);

function findExcludedForm(pattern: string): string | null {
  for (let i = 0; i < pattern.length; i++) {
    const patternRest = pattern.slice(i, i + 24);
    const literalForm =
      patternRest[0] === '\\' || patternRest[0] === '(' || isRegexQuantifier(patternRest)
        ? excludedForms.find(([formRegex]) => formRegex.test(patternRest))
        : undefined;
    if (literalForm !== undefined) return literalForm[1];
    if (patternRest[0] === '\\') i++;
    else if (patternRest[0] === '[') i = characterClassEnd(pattern, i);
  }
  return null;
}

/** Index of the bracket that ends the class. */
function characterClassEnd(pattern: string, classStart: number): number {
  let i = classStart + 1;
  if (pattern[i] === '^') i++;
  if (pattern[i] === ']') i++;
  for (; i < pattern.length && pattern[i] !== ']'; i++) {
    if (pattern[i] === '\\') i++;
    else if (pattern[i] === '[' && pattern[i + 1] === ':') {
      const posixClassEnd = pattern.indexOf(':]', i + 2);
      if (posixClassEnd !== -1) i = posixClassEnd + 1;
    }
  }
  return i;
}

/** Shorter ones are in almost every text. */
const regexLiteralMin = 3;

/**
 * The longest run of plain characters outside all groups, classes and repetitions; null where there is none, or where an
 * alternative at the outermost level makes every part optional. Lower case, since it stands before the case is looked at.
 */
function requiredLiteralOf(pattern: string): string | null {
  let longestLiteral = '';
  let literalRun = '';
  let groupDepth = 0;
  const endLiteralRun = (): void => {
    if (literalRun.length > longestLiteral.length) longestLiteral = literalRun;
    literalRun = '';
  };
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern[i]!;
    if (character === '|' && groupDepth === 0) return null;
    if (character === '(') {
      groupDepth++;
      endLiteralRun();
      continue;
    }
    if (character === ')') {
      groupDepth--;
      endLiteralRun();
      continue;
    }
    let literalCharacter: string | null = character;
    if (character === '[') {
      i = characterClassEnd(pattern, i);
      literalCharacter = null;
    } else if (character === '\\') {
      i++;
      const escapedCharacter = pattern[i] ?? '';
      if (escapedCharacter === 'Q') return null;
      literalCharacter = /[\w]/.test(escapedCharacter) ? null : escapedCharacter;
      if (escapedCharacter === 'x' || escapedCharacter === 'p' || escapedCharacter === 'P') {
        const bracedEscape = /^\{[^}]*\}/.exec(pattern.slice(i + 1));
        i += bracedEscape?.[0].length ?? (escapedCharacter === 'x' ? 2 : 1);
      } else if (/[0-7]/.test(escapedCharacter)) i += /^[0-7]{0,2}/.exec(pattern.slice(i + 1))![0].length;
    } else if ('.^$*+?'.includes(character)) literalCharacter = null;
    else if (character === '{' && isRegexQuantifier(pattern.slice(i, i + 24))) {
      i = pattern.indexOf('}', i);
      literalCharacter = null;
    }
    if (literalCharacter === null || groupDepth > 0) {
      endLiteralRun();
      continue;
    }
    // A repeated character may be missing, or stand more than once.
    if (isRegexQuantifier(pattern.slice(i + 1, i + 25))) endLiteralRun();
    else literalRun += literalCharacter;
  }
  endLiteralRun();
  return longestLiteral.length < regexLiteralMin || /[^\x20-\x7e]/.test(longestLiteral) ? null : foldCase(longestLiteral);
}
