/**
 * Strings and quoted names as ClickHouse writes them, in the form of the standard: there a backslash says nothing, so that `'\''`, by
 * which its drivers put a quote into a value, would end the string in the middle of somebody's text.
 */
import { ServiceError } from '../../errors.ts';
import { utf8 } from '../frame/utf8.ts';

const escapes: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  e: '\u001b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '0': '\0',
  // A pattern of LIKE has these escapes of its own.
  '%': '\\%',
  _: '\\_',
};

/** Patterns of graphs have backslashes themselves, and `--` is no comment there. */
const isPattern = /^\s*(?:(?:EXPLAIN|ANALYZE)\s+)*(?:OPTIONAL|MATCH|UNWIND|MERGE|CREATE\s*\()/i;
/** Whatever may hold a quote that begins no literal; a dollar may begin a string in which nothing is escaped. */
const marks = /['"`]|--|\/\*|\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/g;

/** The same statement. What is not closed stays as it is, for whoever parses it to refuse. */
export function withStandardLiterals(text: string): string {
  if (!text.includes('\\') || isPattern.test(text)) return text;
  let standard = '';
  let from = 0;
  for (let at = 0; ; ) {
    marks.lastIndex = at;
    const mark = marks.exec(text);
    if (mark === null) return standard + text.slice(from);
    const [sign] = mark;
    const start = mark.index;
    if (sign.length > 1) {
      const end = text.indexOf(sign === '--' ? '\n' : sign === '/*' ? '*/' : sign, start + sign.length);
      if (end < 0) return standard + text.slice(from);
      at = end + (sign === '--' ? 1 : sign.length);
      continue;
    }
    const end = literalEnd(text, start, sign);
    if (end < 0) return standard + text.slice(from);
    at = end + 1;
    const inner = text.slice(start + 1, end);
    // E'…' of the standard's heirs takes backslashes as it is.
    if (!inner.includes('\\') || (sign === "'" && /(?:^|[^\w$])[eE]$/.test(text.slice(Math.max(0, start - 2), start)))) continue;
    standard += text.slice(from, start) + sign + valueOf(inner, sign).replaceAll(sign, sign + sign) + sign;
    from = at;
  }
}

/** Where the last character of the literal stands that begins at `start`; -1: nowhere. */
function literalEnd(text: string, start: number, sign: string): number {
  for (let at = start + 1; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '\\') at++;
    else if (character === sign && text.charAt(++at) !== sign) return at - 1;
  }
  return -1;
}

function valueOf(inner: string, sign: string): string {
  const bytes = /((?:\\x[0-9a-fA-F]{2})+)|\\([^])|(['"`])\3/g;
  return inner.replaceAll(
    bytes,
    (whole: string, hex: string | undefined, escaped: string | undefined, twice: string | undefined) => {
      if (hex !== undefined) return utf8(Buffer.from(hex.replaceAll('\\x', ''), 'hex'));
      if (escaped === 'x') throw new ServiceError('REL_PARSE', 'a byte of a string is written \\xHH');
      if (escaped !== undefined) return Object.hasOwn(escapes, escaped) ? escapes[escaped]! : escaped;
      return twice === sign ? sign : whole;
    },
  );
}
