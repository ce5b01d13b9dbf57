/** Regular expressions in time linear in the text, and the cost of compiling one. */
import { RE2JS, RE2JSException } from 're2js';
import { work } from './expression-cost.ts';

/** Instructions, and as much again as ranges of characters stand for. */
const regexStepsMax = 10_000;
/** Nanoseconds of one of them. */
const regexStepCost = 1_000;

/** Undefined where it is malformed, too large, or uses what linear time excludes: back references, look-around. */
export function compileRegex(pattern: string, re2Options: number): RE2JS | undefined {
  const compiledSteps = regexSteps(pattern, (re2Options & RE2JS.CASE_INSENSITIVE) !== 0 || /\(\?[a-zA-Z]*i/.test(pattern));
  if (compiledSteps > regexStepsMax) return undefined;
  work.done += compiledSteps * regexStepCost;
  try {
    return RE2JS.compile(pattern, re2Options);
  } catch (error) {
    if (error instanceof RE2JSException || error instanceof RangeError) return undefined;
    throw error;
  }
}

const regexToken =
  /\\[pP](?:\{[^}]*\}|.)|\\x\{[^}]*\}|\\x..|\\Q[^]*?(?:\\E|$)|\\[^]|\[\^?\]?(?:\\[^]|\[:\^?\w+:\]|[^\]\\])*\]|\{\d+(?:,\d*)?\}|[^]/gu;
/** A class of Unicode has hundreds of ranges. */
const unicodeClassSteps = 8;
/** Characters of a range without case that one step finds the other case of. */
const foldedPerStep = 8;

/** Estimates the size before the pattern is compiled: repeated parts count as often as they may repeat. */
function regexSteps(pattern: string, ignoresCase: boolean): number {
  const groupSteps = [0];
  let lastStepCount = 0;
  const addSteps = (addedSteps: number): void => {
    lastStepCount = addedSteps;
    groupSteps[groupSteps.length - 1]! += addedSteps;
  };
  for (const [lexeme] of pattern.matchAll(regexToken)) {
    if (lexeme === '(') groupSteps.push(0);
    else if (lexeme === ')') {
      const innerSteps = groupSteps.length > 1 ? groupSteps.pop()! : 0;
      addSteps(innerSteps + 2);
    } else if (lexeme.startsWith('{') && lexeme.length > 1) {
      const repetitions = Math.max(...(lexeme.match(/\d+/g) ?? []).map(Number), 1);
      groupSteps[groupSteps.length - 1]! += lastStepCount * (repetitions - 1);
      lastStepCount *= repetitions;
    } else if (lexeme.startsWith('[') && lexeme.length > 1) addSteps(characterClassSteps(lexeme, ignoresCase));
    else if (lexeme.startsWith('\\Q')) addSteps(lexeme.length);
    else addSteps(/^\\[pP]/.test(lexeme) ? unicodeClassSteps : 1);
  }
  return groupSteps.reduce((stepSum, openGroupSteps) => stepSum + openGroupSteps, 0);
}

function characterClassSteps(classText: string, ignoresCase: boolean): number {
  let classStepCount = 1 + unicodeClassSteps * (classText.match(/\\[pP]/g)?.length ?? 0);
  if (ignoresCase)
    for (const [, rangeFrom, rangeTo] of classText.matchAll(/(\\x\{[^{}]*\}|\\x..|\\?[^])-(\\x\{[^{}]*\}|\\x..|\\?[^])/gu))
      classStepCount += Math.max(0, classCharacter(rangeTo!) - classCharacter(rangeFrom!)) / foldedPerStep;
  return classStepCount;
}

const classCharacter = (escapedText: string): number =>
  escapedText.startsWith('\\x') && escapedText.length > 2
    ? Number.parseInt(escapedText.replaceAll(/[^\da-fA-F]/g, ''), 16)
    : escapedText.codePointAt(escapedText.startsWith('\\') && escapedText.length > 1 ? 1 : 0)!;
