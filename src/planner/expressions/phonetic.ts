/**
 * How a word sounds, as a code: texts whose codes are equal sound alike. Only letters count, case and accents do not; a text
 * without letters has the empty code.
 *
 * Sources: Soundex as the National Archives of the United States publish it; Metaphone by L. Philips, Computer Language,
 * December 1990; Kölner Phonetik by H. J. Postel, IBM-Nachrichten 19, 1969.
 */
import { spend } from './expression-cost.ts';

export type PhoneticFunction = 'soundex' | 'metaphone' | 'cologne';

/** Nanoseconds. */
const characterCost = 250;

export function phoneticCode(name: PhoneticFunction, text: string): string {
  spend(text.length * characterCost);
  switch (name) {
    case 'soundex':
      return soundex(lettersOf(text));
    case 'metaphone':
      return metaphone(lettersOf(text));
    case 'cologne':
      return cologne(lettersOf(text));
  }
}

/** A to Z: accents fall away, ligatures and sharp s come apart. */
function lettersOf(text: string): string {
  const apart = text.replaceAll(/[ßẞæÆœŒøØ]/g, (letter) => ligatures[letter.toLowerCase()]!);
  return apart
    .normalize('NFD')
    .toUpperCase()
    .replaceAll(/[^A-Z]/g, '');
}

const ligatures: Readonly<Record<string, string>> = { ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o' };

/** Digits of A to Z; 0 parts equal digits on both sides of it, a dot does not. */
const soundexDigits = '0123012.02245501262301.202';

function soundex(word: string): string {
  if (word === '') return '';
  let code = word[0]!;
  let last = soundexDigit(word, 0);
  for (let i = 1; i < word.length && code.length < 4; i++) {
    const digit = soundexDigit(word, i);
    if (digit === '.') continue;
    if (digit !== '0' && digit !== last) code += digit;
    last = digit;
  }
  return code.padEnd(4, '0');
}

function soundexDigit(word: string, i: number): string {
  return soundexDigits[word.charCodeAt(i) - 65]!;
}

function metaphone(letters: string): string {
  const word = initial(letters);
  let code = '';
  for (let i = 0; i < word.length; i++) {
    const letter = word[i]!;
    const previous = word[i - 1] ?? '';
    // Doubled letters count once, but for C.
    if (letter === previous && letter !== 'C') continue;
    code += sound(word, i, letter, previous);
  }
  return code;
}

/** Letters that are silent, or stand for others, at the beginning. */
function initial(word: string): string {
  if (/^(KN|GN|PN|AE|WR)/.test(word)) return word.slice(1);
  if (word.startsWith('WH')) return `W${word.slice(2)}`;
  return word.startsWith('X') ? `S${word.slice(1)}` : word;
}

/** `0` is the th of thing, `X` the sh of ship. */
function sound(word: string, i: number, letter: string, previous: string): string {
  const rest = word.slice(i + 1);
  const next = rest[0] ?? '';
  switch (letter) {
    case 'A':
    case 'E':
    case 'I':
    case 'O':
    case 'U':
      return i === 0 ? letter : '';
    case 'B':
      return previous === 'M' && rest === '' ? '' : 'B';
    case 'C':
      if (rest.startsWith('IA')) return 'X';
      if (next === 'H') return previous === 'S' ? 'K' : 'X';
      if (isFront(next)) return previous === 'S' ? '' : 'S';
      return next === 'K' ? '' : 'K';
    case 'D':
      return next === 'G' && isFront(rest[1] ?? '') ? 'J' : 'T';
    case 'G':
      return soundOfG(rest, previous);
    case 'H':
      // The letter before H already accounts for it.
      if ('CSPTG'.includes(previous) && previous !== '') return '';
      return isVowel(previous) && !isVowel(next) ? '' : 'H';
    case 'K':
      return 'K';
    case 'P':
      return next === 'H' ? 'F' : 'P';
    case 'Q':
      return 'K';
    case 'S':
      return next === 'H' || rest.startsWith('IO') || rest.startsWith('IA') ? 'X' : 'S';
    case 'T':
      if (rest.startsWith('IA') || rest.startsWith('IO')) return 'X';
      if (next === 'H') return '0';
      return rest.startsWith('CH') ? '' : 'T';
    case 'V':
      return 'F';
    case 'W':
    case 'Y':
      return isVowel(next) ? letter : '';
    case 'X':
      return 'KS';
    case 'Z':
      return 'S';
    default:
      return letter;
  }
}

function soundOfG(rest: string, previous: string): string {
  const next = rest[0] ?? '';
  if (next === 'H') return rest.length === 1 || isVowel(rest[1]!) ? 'K' : '';
  if (rest === 'N' || rest === 'NED') return '';
  // The soft g of an edge is said with its d.
  if (previous === 'D' && isFront(next)) return '';
  return isFront(next) && previous !== 'G' ? 'J' : 'K';
}

function isVowel(letter: string): boolean {
  return letter !== '' && 'AEIOU'.includes(letter);
}

function isFront(letter: string): boolean {
  return letter === 'E' || letter === 'I' || letter === 'Y';
}

function cologne(word: string): string {
  let digits = '';
  for (let i = 0; i < word.length; i++) digits += cologneDigits(word, i);
  // Equal neighbours first, then zeros: a vowel between two of a kind keeps them apart.
  const single = digits.replaceAll(/(.)\1+/g, '$1');
  return single.slice(0, 1) + single.slice(1).replaceAll('0', '');
}

function cologneDigits(word: string, i: number): string {
  const letter = word[i]!;
  const previous = word[i - 1] ?? '-';
  const next = word[i + 1] ?? '-';
  switch (letter) {
    case 'H':
      return '';
    case 'B':
      return '1';
    case 'P':
      return next === 'H' ? '3' : '1';
    case 'D':
    case 'T':
      return 'CSZ'.includes(next) ? '8' : '2';
    case 'F':
    case 'V':
    case 'W':
      return '3';
    case 'G':
    case 'K':
    case 'Q':
      return '4';
    case 'C':
      if (i === 0) return 'AHKLOQRUX'.includes(next) ? '4' : '8';
      return 'AHKOQUX'.includes(next) && !'SZ'.includes(previous) ? '4' : '8';
    case 'X':
      return 'CKQ'.includes(previous) ? '8' : '48';
    case 'L':
      return '5';
    case 'M':
    case 'N':
      return '6';
    case 'R':
      return '7';
    case 'S':
    case 'Z':
      return '8';
    default:
      return '0';
  }
}
