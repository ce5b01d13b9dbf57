/** The forms of texts in quotes: their escapes, their tags, and how one continues on another line. */
import { classOf, classSpace, minus, newline, quote } from './sql-alphabet.ts';

/** Where the next part of a text opens, behind a line break with spaces and comments of a line around it; -1 where none does. */
export function continuedAt(text: string, from: number): number {
  let broken = false;
  for (let at = from; ; at++) {
    const code = text.charCodeAt(at);
    if (code === minus && text.charCodeAt(at + 1) === minus) {
      at = text.indexOf('\n', at);
      if (at < 0) return -1;
      broken = true;
    } else if (code === newline) broken = true;
    else if (!(code < 128) || classOf[code] !== classSpace) return broken && code === quote ? at : -1;
  }
}

export const escaped = /'((?:[^'\\]|\\[^]|'')*)'/y;
export const escapes = /''|\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[^])/g;
export const letterEscapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
export const unicodeEscape = /\s+UESCAPE\s+'([^'"+\s0-9A-Fa-f])'/iy;
export const tagged = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y;

export const patternEscapes: ReadonlyMap<string, string> = new Map([
  ['\\', '\\'],
  ["'", "'"],
  ['"', '"'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);
