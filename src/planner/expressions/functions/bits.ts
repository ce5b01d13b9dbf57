/** Operators on the 64 bits of integers. */
import { integer, quick, type ScalarFunction, type Signature } from './scalar-function.ts';

const wrap64 = (value: bigint): bigint => BigInt.asIntN(64, value);

function bitOperator(
  name: string,
  usage: string,
  summary: string,
  example: readonly [string, string],
  computeBits: (x: bigint, y: bigint) => bigint,
): ScalarFunction {
  const operatorTakes: Signature['takes'] = name === '#~' ? ['integer'] : ['integer', 'integer'];
  const evaluate: Signature['evaluate'] = (x, y) => wrap64(computeBits(integer(x), y === undefined ? 0n : integer(y)));
  return {
    name,
    group: 'numbers',
    usage,
    summary,
    examples: [example],
    signatures: [{ takes: operatorTakes, cost: quick, yields: 'integer', evaluate }],
  };
}

export const bitFunctions: readonly ScalarFunction[] = [
  bitOperator('&', 'x & y', 'The bits that both integers have.', ['91 & 15', '11'], (x, y) => x & y),
  bitOperator('|', 'x | y', 'The bits that either integer has.', ['32 | 3', '35'], (x, y) => x | y),
  bitOperator('#', 'x # y', 'The bits that one of the integers has and the other has not.', ['17 # 5', '20'], (x, y) => x ^ y),
  bitOperator('#~', '~x', 'The other bits.', ['~1', '-2'], (x) => ~x),
  bitOperator('<<', 'x << n', 'The bits so many places up; n is taken by 64.', ['1 << 4', '16'], (x, n) => x << (n & 63n)),
  bitOperator('>>', 'x >> n', 'The bits so many places down; the sign stays.', ['-8 >> 2', '-2'], (x, n) => x >> (n & 63n)),
];
