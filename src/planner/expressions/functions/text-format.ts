/** FORMAT, as PostgreSQL has it: `%[position$][-][width]type`, where the type is s (text), I (name) or L (literal). */
import { quotedName, quotedText } from '../quoted-name.ts';
import { spend } from '../expression-cost.ts';
import { checkLength, invalid, textMax, tooLong } from './scalar-function.ts';

const directive = /(?:(\d+)\$)?(-*)(?:\*(?:(\d+)\$)?|(\d+))?([^])?/y;
/** Nanoseconds of a place. */
const directiveCost = 500;

export function formatText(pattern: string, values: readonly (string | null)[]): string {
  let text = '';
  let next = 0;
  const valueAt = (position: string | undefined): string | null => {
    if (position !== undefined && Number(position) === 0) throw invalid('FORMAT counts its values from 1');
    const at = position === undefined ? next : Number(position) - 1;
    if (at >= values.length) throw invalid('FORMAT is given fewer values than its text has places');
    next = at + 1;
    return values[at]!;
  };
  let from = 0;
  for (let at = pattern.indexOf('%'); at >= 0; at = pattern.indexOf('%', from)) {
    spend(directiveCost);
    text += pattern.slice(from, at);
    if (pattern[at + 1] === '%') {
      text += '%';
      from = at + 2;
      continue;
    }
    directive.lastIndex = at + 1;
    const [, position, minus, widthPosition, digits, type] = directive.exec(pattern)!;
    from = directive.lastIndex;
    if (type === undefined) throw invalid('FORMAT ends within a place: a percent sign is written %%');
    if (!'sIL'.includes(type)) throw invalid(`FORMAT has places %s, %I and %L, not %${type}`);
    const isGiven = pattern.slice(at + 1, from).includes('*');
    const width = isGiven ? widthOf(valueAt(widthPosition)) : Number(digits ?? 0);
    const value = formatValue(valueAt(position), type);
    const missing = Math.abs(width) - Array.from(value).length;
    if (missing > textMax) throw tooLong();
    const padding = ' '.repeat(Math.max(0, missing));
    text = checkLength(text + (minus !== '' || width < 0 ? value + padding : padding + value));
  }
  return checkLength(text + pattern.slice(from));
}

function widthOf(value: string | null): number {
  if (value === null) return 0;
  if (!/^\s*[+-]?\d{1,9}\s*$/.test(value)) throw invalid('a width of FORMAT is a whole number', 'text-form');
  return Number(value);
}

function formatValue(value: string | null, type: string): string {
  if (type === 's') return value ?? '';
  if (type === 'L') return value === null ? 'NULL' : quotedText(value);
  if (value === null) throw invalid('FORMAT is given NULL for a name', 'null-value');
  return quotedName(value);
}
