/** A text that is made of identifiers, whose check digits are worked out here, so that all that stands in it is known. */
import type { Question } from './question.ts';
import type { Dice } from './world.ts';

interface Planted {
  readonly kind: string;
  readonly written: string;
  /** null: it has the shape alone. */
  readonly canonical: string | null;
}

const digitsOf = (dice: Dice, count: number): string => Array.from({ length: count }, () => dice.below(10)).join('');

/** The digit that makes the sum of digits, each second one doubled from the right, a multiple of ten. */
function luhn(digits: string): string {
  const sum = digits
    .split('')
    .toReversed()
    .reduce((total, digit, i) => {
      const value = Number(digit) * (i % 2 === 0 ? 2 : 1);
      return total + (value > 9 ? value - 9 : value);
    }, 0);
  return String((10 - (sum % 10)) % 10);
}

/** Letters count from ten. */
const counted = (text: string): string =>
  text
    .split('')
    .map((each) => Number.parseInt(each, 36))
    .join('');
const mod97 = (text: string): string => String(98n - (BigInt(`${counted(text)}00`) % 97n)).padStart(2, '0');
const other = (digit: string): string => String((Number(digit) + 1) % 10);

const makers: readonly ((dice: Dice) => Planted)[] = [
  (dice) => {
    const name = `${dice.of(['ann', 'Zed', 'O.Lee'])}${dice.below(90)}@Example.org`;
    return { kind: 'email', written: name, canonical: name.toLowerCase() };
  },
  (dice) => {
    const number = `207946${digitsOf(dice, 4)}`;
    const written = dice.of([`+44 20 7946 ${number.slice(6)}`, `+44${number}`]);
    return { kind: 'phone', written, canonical: `+44${number}` };
  },
  (dice) => {
    const account = `NWBK601613${digitsOf(dice, 8)}`;
    const check = mod97(`${account}GB`);
    const isRight = dice.chance(70);
    const iban = `GB${isRight ? check : check[0] + other(check[1]!)}${account}`;
    return { kind: 'iban', written: dice.of([iban, iban.replaceAll(/(.{4})(?=.)/g, '$1 ')]), canonical: isRight ? iban : null };
  },
  (dice) => {
    const digits = `4111${digitsOf(dice, 11)}`;
    const isRight = dice.chance(70);
    const card = digits + (isRight ? luhn(digits) : other(luhn(digits)));
    return { kind: 'card', written: card.replaceAll(/(.{4})(?=.)/g, '$1 '), canonical: isRight ? card : null };
  },
  (dice) => {
    const digits = `49015420${digitsOf(dice, 6)}`;
    return { kind: 'imei', written: digits + luhn(digits), canonical: digits + luhn(digits) };
  },
  (dice) => {
    const address = [192, 0, 2, dice.below(256)].join('.');
    return { kind: 'ip', written: address, canonical: address };
  },
  (dice) => {
    const pairs = ['00', ...Array.from({ length: 5 }, () => dice.below(256).toString(16).padStart(2, '0'))];
    return { kind: 'mac', written: pairs.join(dice.of([':', '-'])).toUpperCase(), canonical: pairs.join(':') };
  },
  (dice) => {
    const base = `529900T8BM49AU${digitsOf(dice, 4)}`;
    return { kind: 'lei', written: base + mod97(base), canonical: base + mod97(base) };
  },
  (dice) => {
    const base = `US${digitsOf(dice, 9)}`;
    const isin = base + luhn(counted(base));
    return { kind: 'isin', written: isin, canonical: isin };
  },
  (dice) => {
    const digits = `9${digitsOf(dice, 5)}`;
    const sum = digits.split('').reduce((total, digit, i) => total + Number(digit) * (7 - i), 0);
    return { kind: 'imo', written: `IMO ${digits}${sum % 10}`, canonical: `${digits}${sum % 10}` };
  },
];

export function detected(dice: Dice): Question {
  const planted = Array.from({ length: 1 + dice.below(4) }, () => dice.of(makers)(dice));
  let text = dice.of(['', 'write to ']);
  const rows = planted.map(({ kind, written, canonical }) => {
    const start = BigInt(text.length);
    text += written;
    const end = BigInt(text.length);
    text += dice.of([' and then ', ', then ', ' once more ']);
    const isValid = canonical !== null;
    return { nodeId: null, type: null, kind, value: written, canonical, start, end, valid: isValid, score: isValid ? 1 : 0 };
  });
  return { call: `DETECT_IDENTITIES('${text}')`, rows, isOrdered: true };
}
