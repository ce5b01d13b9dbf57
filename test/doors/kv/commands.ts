/** Random commands on strings, counters and the ends of keys: what a client of Redis sends, and what it should not. */
import { Dice } from '../../fuzz/mutate.ts';

const keys = ['a', 'b', 'c'];
const floats =
  '0.1 0.2 -99.9 100 1e5 1.5e-7 3.14159265358979 -0 0x10 .5 5. 1e400 1e-400 inf nan abc 0.30000000000000004 12345678901234567890 1e17'.split(
    ' ',
  );
const integers =
  '0 1 -1 7 -12 9223372036854775807 -9223372036854775808 9223372036854775808 1.5 abc 007 +5 4611686018427387904'.split(' ');
const values = ['', 'x', 'text', '10', '-5', '0.1', '3.0', '1e3', ' 1', '1 ', 'é', '9223372036854775807', '12345678901234567890'];
/** Far from now, past, or none that a client should send. */
const moments = '1 0 -1 4102444800 4102444800000 9223372036854775807 -9223372036854775808 abc 10000000'.split(' ');
const amounts = '1000 500000 0 -5 9223372036854775 9223372036854775807 abc'.split(' ');
/** Those that a condition compares are within what both can tell apart; no two that count from now are alike. */
const compared = '1000 500000 0 -5 4102444800 10000000'.split(' ');

export function commandOf(dice: Dice): string[] {
  const one = <T>(all: readonly T[]): T => dice.pick(all);
  const key = (): string => one(keys);
  const some = <T>(all: readonly T[], most: number): T[] => Array.from({ length: dice.roll(most + 1) }, () => one(all));
  const conditional = (free: readonly string[], names: readonly string[], most: number): string[] => {
    const said = some(names, most);
    const relative = String(1_000 + dice.roll(1_000_000));
    return [said.length === 0 ? one(free) : free === amounts ? one([relative, relative, '0', '-5']) : one(compared), ...said];
  };
  const expiry = (): string[] =>
    one([
      ['EX', one(amounts)],
      ['PX', one(amounts)],
      ['EXAT', one(moments)],
      ['PXAT', one(moments)],
    ]);
  const makers: readonly (() => string[])[] = [
    () => ['GET', key()],
    () => ['GET', key()],
    () => ['SET', key(), one(values)],
    () => ['SET', key(), one(values), ...some(['NX', 'XX', 'GET', 'KEEPTTL'], 2), ...(dice.roll(2) ? expiry() : [])],
    () => ['SETNX', key(), one(values)],
    () => ['SETEX', key(), one(amounts), one(values)],
    () => ['PSETEX', key(), one(amounts), one(values)],
    () => ['GETSET', key(), one(values)],
    () => ['GETDEL', key()],
    () => ['GETEX', key(), ...one([[], ['PERSIST'], expiry(), expiry(), [...expiry(), 'PERSIST'], ['BAD']])],
    () => ['MGET', key(), key()],
    () => ['MSET', key(), one(values), key(), one(values)],
    () => ['MSETNX', key(), one(values), key(), one(values)],
    () => ['STRLEN', key()],
    () => ['APPEND', key(), one(values)],
    () => ['INCR', key()],
    () => ['DECR', key()],
    () => ['INCRBY', key(), one(integers)],
    () => ['DECRBY', key(), one(integers)],
    () => ['INCRBYFLOAT', key(), one(floats)],
    () => ['INCRBYFLOAT', key(), String(dice.roll(2_000_000) / 1_000 - 1_000)],
    () => ['DEL', ...[key(), key()].slice(dice.roll(2))],
    () => ['EXISTS', key(), key()],
    () => ['EXPIRE', key(), ...conditional(amounts, ['NX', 'XX', 'GT', 'LT', 'xx', 'BAD'], 2)],
    () => ['PEXPIRE', key(), ...conditional(amounts, ['NX', 'XX', 'GT', 'LT'], 2)],
    () => ['EXPIREAT', key(), ...conditional(moments, ['NX', 'XX', 'GT', 'LT'], 2)],
    () => ['PEXPIREAT', key(), ...conditional([...moments, '1000000000000000'], ['NX', 'XX', 'GT', 'LT'], 1)],
    () => ['PERSIST', key()],
    () => ['TTL', key()],
    () => ['PTTL', key()],
    () => ['EXPIRETIME', key()],
    () => ['PEXPIRETIME', key()],
    () => ['TYPE', key()],
  ];
  return one(makers)();
}
