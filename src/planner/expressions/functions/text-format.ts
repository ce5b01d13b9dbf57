/** FORMAT, as PostgreSQL has it: `%[position$][-][width]type`, where the type is s (text), I (name) or L (literal). */
import { quotedName, quotedText } from '../quoted-name.ts';
import { spend } from '../expression-cost.ts';
import { checkLength, invalid, textMax, tooLong } from './scalar-function.ts';

const directive = /(?:(\d+)\$)?(-*)(?:\*(?:(\d+)\$)?|(\d+))?([^])?/y;
/** Nanoseconds of a place. */
const directiveCost = 500;

export function formatText(formatPattern: string, values: readonly (string | null)[]): string {
  let formattedText = '';
  let nextValueIndex = 0;
  const valueAtPosition = (position: string | undefined): string | null => {
    if (position !== undefined && Number(position) === 0) throw invalid('FORMAT counts its values from 1');
    const valueIndex = position === undefined ? nextValueIndex : Number(position) - 1;
    if (valueIndex >= values.length) throw invalid('FORMAT is given fewer values than its text has places');
    nextValueIndex = valueIndex + 1;
    return values[valueIndex]!;
  };
  let literalStart = 0;
  for (
    let percentOffset = formatPattern.indexOf('%');
    percentOffset >= 0;
    percentOffset = formatPattern.indexOf('%', literalStart)
  ) {
    spend(directiveCost);
    formattedText += formatPattern.slice(literalStart, percentOffset);
    if (formatPattern[percentOffset + 1] === '%') {
      formattedText += '%';
      literalStart = percentOffset + 2;
      continue;
    }
    directive.lastIndex = percentOffset + 1;
    const [, position, minusFlag, widthPosition, widthDigits, placeType] = directive.exec(formatPattern)!;
    literalStart = directive.lastIndex;
    if (placeType === undefined) throw invalid('FORMAT ends within a place: a percent sign is written %%');
    if (!'sIL'.includes(placeType)) throw invalid(`FORMAT has places %s, %I and %L, not %${placeType}`);
    const hasWidthValue = formatPattern.slice(percentOffset + 1, literalStart).includes('*');
    const placeWidth = hasWidthValue ? formatWidth(valueAtPosition(widthPosition)) : Number(widthDigits ?? 0);
    const formattedValue = formatValue(valueAtPosition(position), placeType);
    const missingWidth = Math.abs(placeWidth) - Array.from(formattedValue).length;
    if (missingWidth > textMax) throw tooLong();
    const padding = ' '.repeat(Math.max(0, missingWidth));
    formattedText = checkLength(
      formattedText + (minusFlag !== '' || placeWidth < 0 ? formattedValue + padding : padding + formattedValue),
    );
  }
  return checkLength(formattedText + formatPattern.slice(literalStart));
}

function formatWidth(widthText: string | null): number {
  if (widthText === null) return 0;
  if (!/^\s*[+-]?\d{1,9}\s*$/.test(widthText)) throw invalid('a width of FORMAT is a whole number', 'text-form');
  return Number(widthText);
}

function formatValue(formatArgument: string | null, placeType: string): string {
  if (placeType === 's') return formatArgument ?? '';
  if (placeType === 'L') return formatArgument === null ? 'NULL' : quotedText(formatArgument);
  if (formatArgument === null) throw invalid('FORMAT is given NULL for a name', 'null-value');
  return quotedName(formatArgument);
}
