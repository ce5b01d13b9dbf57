/** Functions of angles and their inverses, in radians and, with a D behind their names, in degrees. */
import { finite, invalid, number, outOfRange, quick, type ScalarFunction } from './scalar-function.ts';

type ComputeAngle = (x: number, y: number) => number;

function limitInput(least: number, most: number, compute: (x: number) => number): (x: number) => number {
  return (x) => {
    if (x < least || x > most) throw outOfRange('the input is out of range');
    return compute(x);
  };
}

const toRadians = (angleDegrees: number): number => (angleDegrees * Math.PI) / 180;
const toDegrees = (angleRadians: number): number => (angleRadians * 180) / Math.PI;
const sine30 = Math.sin(toRadians(30));
const oneLessCosine60 = 1 - Math.cos(toRadians(60));

/** For 0 to 90 degrees, exact at multiples of 30, as PostgreSQL's are. */
const sineBelow = (x: number): number => (x <= 30 ? Math.sin(toRadians(x)) / sine30 / 2 : cosineUpTo60(90 - x));
const cosineBelow = (x: number): number => (x <= 60 ? cosineUpTo60(x) : Math.sin(toRadians(90 - x)) / sine30 / 2);
const cosineUpTo60 = (x: number): number => 1 - (1 - Math.cos(toRadians(x))) / oneLessCosine60 / 2;

/** The function of an angle by its value in the first quarter. */
function evaluateByQuarter(
  x: number,
  firstQuarter: (x: number) => number,
  quarterSigns: readonly [number, number, number, number],
  isOddFunction: boolean,
): number {
  const turnedDegrees = x % 360;
  const absoluteDegrees = Math.abs(turnedDegrees);
  const angleQuarter = Math.min(3, Math.floor(absoluteDegrees / 90)) as 0 | 1 | 2 | 3;
  const foldedAngle = [absoluteDegrees, 180 - absoluteDegrees, absoluteDegrees - 180, 360 - absoluteDegrees][angleQuarter]!;
  return firstQuarter(foldedAngle) * quarterSigns[angleQuarter] * (isOddFunction && turnedDegrees < 0 ? -1 : 1);
}

const sind = (x: number): number => evaluateByQuarter(x, sineBelow, [1, 1, -1, -1], true);
const cosd = (x: number): number => evaluateByQuarter(x, cosineBelow, [1, -1, -1, 1], false);
const tangentOf45 = sineBelow(45) / cosineBelow(45);

const asin = limitInput(-1, 1, Math.asin);
const acos = limitInput(-1, 1, Math.acos);

/** Name, how many arguments, what it computes, a summary, an example. */
const trigonometryRows: readonly (readonly [string, 0 | 1 | 2, ComputeAngle, string, readonly [string, string]])[] = [
  ['PI', 0, () => Math.PI, 'The number pi.', ['PI()', '3.141592653589793']],
  ['RADIANS', 1, toRadians, 'Degrees as radians.', ['RADIANS(180)', '3.141592653589793']],
  ['DEGREES', 1, toDegrees, 'Radians as degrees.', ['DEGREES(PI())', '180']],
  ['SIN', 1, Math.sin, 'The sine.', ['SIN(0)', '0']],
  ['COS', 1, Math.cos, 'The cosine.', ['COS(0)', '1']],
  ['TAN', 1, Math.tan, 'The tangent.', ['TAN(0)', '0']],
  ['COT', 1, (x) => 1 / Math.tan(x), 'The cotangent.', ['ROUND(COT(PI() / 4), 6)', '1']],
  ['ASIN', 1, asin, 'The angle of a sine; beyond -1 to 1 an error.', ['ASIN(0)', '0']],
  ['ACOS', 1, acos, 'The angle of a cosine; beyond -1 to 1 an error.', ['ACOS(1)', '0']],
  ['ATAN', 1, Math.atan, 'The angle of a tangent.', ['ATAN(0)', '0']],
  ['ATAN2', 2, Math.atan2, 'The angle of the point (x, y), which is given as y, x.', ['ATAN2(0, 1)', '0']],
  ['SINH', 1, Math.sinh, 'The hyperbolic sine.', ['SINH(0)', '0']],
  ['COSH', 1, Math.cosh, 'The hyperbolic cosine.', ['COSH(0)', '1']],
  ['TANH', 1, Math.tanh, 'The hyperbolic tangent.', ['TANH(0)', '0']],
  ['ASINH', 1, Math.asinh, 'The inverse of SINH.', ['ASINH(0)', '0']],
  ['ACOSH', 1, limitInput(1, Number.POSITIVE_INFINITY, Math.acosh), 'The inverse of COSH; below 1 an error.', ['ACOSH(1)', '0']],
  ['ATANH', 1, limitInput(-1, 1, Math.atanh), 'The inverse of TANH; beyond -1 to 1 an error.', ['ATANH(0)', '0']],
  ['SIND', 1, sind, 'The sine of degrees.', ['SIND(30)', '0.5']],
  ['COSD', 1, cosd, 'The cosine of degrees.', ['COSD(60)', '0.5']],
  ['TAND', 1, (x) => sind(x) / cosd(x) / tangentOf45, 'The tangent of degrees.', ['TAND(45)', '1']],
  ['ASIND', 1, (x) => roundedAngle(toDegrees(asin(x))), 'ASIN in degrees.', ['ASIND(0.5)', '30']],
  ['ACOSD', 1, (x) => roundedAngle(toDegrees(acos(x))), 'ACOS in degrees.', ['ACOSD(0.5)', '60']],
  ['ATAND', 1, (x) => roundedAngle(toDegrees(Math.atan(x))), 'ATAN in degrees.', ['ATAND(1)', '45']],
];

/** Angles that are whole degrees but for the last bits are whole. */
function roundedAngle(angle: number): number {
  const wholeAngle = Math.round(angle);
  return Math.abs(angle - wholeAngle) < 1e-13 * 90 ? wholeAngle : angle;
}

export const trigonometricFunctions: readonly ScalarFunction[] = trigonometryRows.map(
  ([name, count, compute, summary, example]) => ({
    name,
    group: 'numbers',
    usage: `${name}(${['', 'x', 'y, x'][count]!})`,
    summary,
    examples: [example],
    signatures: [
      {
        takes: Array.from({ length: count }, () => 'number' as const),
        cost: quick,
        yields: 'number',
        evaluate: (x, y) => {
          const angleArgument = number(x);
          if (count > 0 && !Number.isFinite(angleArgument)) throw invalid(`${name} takes a finite number`, 'out-of-range');
          return finite(compute(angleArgument, number(y)));
        },
        raises: true,
      },
    ],
  }),
);
