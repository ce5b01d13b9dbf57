/** Regular expressions in time linear in the text, and the cost of compiling one. */
import { RE2JS, RE2JSException } from 're2js';
import { work } from './expression-cost.ts';

/** Instructions, and as much again as ranges of characters stand for. */
const stepsMax = 10_000;
/** Nanoseconds of one of them. */
const stepCost = 1_000;

/** Undefined where it is malformed, too large, or uses what linear time excludes: back references, look-around. */
export function compileRegex(pattern: string, options: number): RE2JS | undefined {
  const steps = stepsOf(pattern, (options & RE2JS.CASE_INSENSITIVE) !== 0 || /\(\?[a-zA-Z]*i/.test(pattern));
  if (steps > stepsMax) return undefined;
  work.done += steps * stepCost;
  try {
    return RE2JS.compile(pattern, options);
  } catch (error) {
    if (error instanceof RE2JSException || error instanceof RangeError) return undefined;
    throw error;
  }
}

const token =
  /\\[pP](?:\{[^}]*\}|.)|\\x\{[^}]*\}|\\x..|\\Q[^]*?(?:\\E|$)|\\[^]|\[\^?\]?(?:\\[^]|\[:\^?\w+:\]|[^\]\\])*\]|\{\d+(?:,\d*)?\}|[^]/gu;
/** A class of Unicode has hundreds of ranges. */
const classSteps = 8;
/** Characters of a range without case that one step finds the other case of. */
const foldedPerStep = 8;

/** Estimates the size before the pattern is compiled: repeated parts count as often as they may repeat. */
function stepsOf(pattern: string, anyCase: boolean): number {
  const groups = [0];
  let last = 0;
  const add = (steps: number): void => {
    last = steps;
    groups[groups.length - 1]! += steps;
  };
  for (const [lexeme] of pattern.matchAll(token)) {
    if (lexeme === '(') groups.push(0);
    else if (lexeme === ')') {
      const inner = groups.length > 1 ? groups.pop()! : 0;
      add(inner + 2);
    } else if (lexeme.startsWith('{') && lexeme.length > 1) {
      const times = Math.max(...(lexeme.match(/\d+/g) ?? []).map(Number), 1);
      groups[groups.length - 1]! += last * (times - 1);
      last *= times;
    } else if (lexeme.startsWith('[') && lexeme.length > 1) add(stepsOfClass(lexeme, anyCase));
    else if (lexeme.startsWith('\\Q')) add(lexeme.length);
    else add(/^\\[pP]/.test(lexeme) ? classSteps : 1);
  }
  return groups.reduce((sum, each) => sum + each, 0);
}

function stepsOfClass(text: string, anyCase: boolean): number {
  let steps = 1 + classSteps * (text.match(/\\[pP]/g)?.length ?? 0);
  if (anyCase)
    for (const [, from, to] of text.matchAll(/(\\x\{[^{}]*\}|\\x..|\\?[^])-(\\x\{[^{}]*\}|\\x..|\\?[^])/gu))
      steps += Math.max(0, characterOf(to!) - characterOf(from!)) / foldedPerStep;
  return steps;
}

const characterOf = (text: string): number =>
  text.startsWith('\\x') && text.length > 2
    ? Number.parseInt(text.replaceAll(/[^\da-fA-F]/g, ''), 16)
    : text.codePointAt(text.startsWith('\\') && text.length > 1 ? 1 : 0)!;
