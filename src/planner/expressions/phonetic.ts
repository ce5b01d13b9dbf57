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
const phoneticCharacterCost = 250;

export function phoneticCode(name: PhoneticFunction, text: string): string {
  spend(text.length * phoneticCharacterCost);
  switch (name) {
    case 'soundex':
      return soundex(phoneticLetters(text));
    case 'metaphone':
      return metaphone(phoneticLetters(text));
    case 'cologne':
      return cologne(phoneticLetters(text));
  }
}

/** A to Z: accents fall away, ligatures and sharp s come apart. */
function phoneticLetters(text: string): string {
  const ligaturesApart = text.replaceAll(/[ßẞæÆœŒøØ]/g, (ligature) => ligatures[ligature.toLowerCase()]!);
  return ligaturesApart
    .normalize('NFD')
    .toUpperCase()
    .replaceAll(/[^A-Z]/g, '');
}

const ligatures: Readonly<Record<string, string>> = { ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o' };

/** Digits of A to Z; 0 parts equal digits on both sides of it, a dot does not. */
const soundexDigits = '0123012.02245501262301.202';

function soundex(soundexWord: string): string {
  if (soundexWord === '') return '';
  let soundexCode = soundexWord[0]!;
  let lastSoundexDigit = soundexDigit(soundexWord, 0);
  for (let i = 1; i < soundexWord.length && soundexCode.length < 4; i++) {
    const currentDigit = soundexDigit(soundexWord, i);
    if (currentDigit === '.') continue;
    if (currentDigit !== '0' && currentDigit !== lastSoundexDigit) soundexCode += currentDigit;
    lastSoundexDigit = currentDigit;
  }
  return soundexCode.padEnd(4, '0');
}

function soundexDigit(word: string, i: number): string {
  return soundexDigits[word.charCodeAt(i) - 65]!;
}

function metaphone(letters: string): string {
  const metaphoneWord = metaphoneInitial(letters);
  let metaphoneCode = '';
  for (let i = 0; i < metaphoneWord.length; i++) {
    const metaphoneLetter = metaphoneWord[i]!;
    const previousLetter = metaphoneWord[i - 1] ?? '';
    // Doubled letters count once, but for C.
    if (metaphoneLetter === previousLetter && metaphoneLetter !== 'C') continue;
    metaphoneCode += metaphoneSound(metaphoneWord, i, metaphoneLetter, previousLetter);
  }
  return metaphoneCode;
}

/** Letters that are silent, or stand for others, at the beginning. */
function metaphoneInitial(metaphoneWord: string): string {
  if (/^(KN|GN|PN|AE|WR)/.test(metaphoneWord)) return metaphoneWord.slice(1);
  if (metaphoneWord.startsWith('WH')) return `W${metaphoneWord.slice(2)}`;
  return metaphoneWord.startsWith('X') ? `S${metaphoneWord.slice(1)}` : metaphoneWord;
}

/** `0` is the th of thing, `X` the sh of ship. */
function metaphoneSound(metaphoneWord: string, i: number, letter: string, previousLetter: string): string {
  const restOfWord = metaphoneWord.slice(i + 1);
  const nextLetter = restOfWord[0] ?? '';
  switch (letter) {
    case 'A':
    case 'E':
    case 'I':
    case 'O':
    case 'U':
      return i === 0 ? letter : '';
    case 'B':
      return previousLetter === 'M' && restOfWord === '' ? '' : 'B';
    case 'C':
      if (restOfWord.startsWith('IA')) return 'X';
      if (nextLetter === 'H') return previousLetter === 'S' ? 'K' : 'X';
      if (isFrontVowel(nextLetter)) return previousLetter === 'S' ? '' : 'S';
      return nextLetter === 'K' ? '' : 'K';
    case 'D':
      return nextLetter === 'G' && isFrontVowel(restOfWord[1] ?? '') ? 'J' : 'T';
    case 'G':
      return soundOfG(restOfWord, previousLetter);
    case 'H':
      // The letter before H already accounts for it.
      if ('CSPTG'.includes(previousLetter) && previousLetter !== '') return '';
      return isVowel(previousLetter) && !isVowel(nextLetter) ? '' : 'H';
    case 'K':
      return 'K';
    case 'P':
      return nextLetter === 'H' ? 'F' : 'P';
    case 'Q':
      return 'K';
    case 'S':
      return nextLetter === 'H' || restOfWord.startsWith('IO') || restOfWord.startsWith('IA') ? 'X' : 'S';
    case 'T':
      if (restOfWord.startsWith('IA') || restOfWord.startsWith('IO')) return 'X';
      if (nextLetter === 'H') return '0';
      return restOfWord.startsWith('CH') ? '' : 'T';
    case 'V':
      return 'F';
    case 'W':
    case 'Y':
      return isVowel(nextLetter) ? letter : '';
    case 'X':
      return 'KS';
    case 'Z':
      return 'S';
    default:
      return letter;
  }
}

function soundOfG(lettersAfterG: string, letterBeforeG: string): string {
  const letterAfterG = lettersAfterG[0] ?? '';
  if (letterAfterG === 'H') return lettersAfterG.length === 1 || isVowel(lettersAfterG[1]!) ? 'K' : '';
  if (lettersAfterG === 'N' || lettersAfterG === 'NED') return '';
  // The soft g of an edge is said with its d.
  if (letterBeforeG === 'D' && isFrontVowel(letterAfterG)) return '';
  return isFrontVowel(letterAfterG) && letterBeforeG !== 'G' ? 'J' : 'K';
}

function isVowel(letter: string): boolean {
  return letter !== '' && 'AEIOU'.includes(letter);
}

function isFrontVowel(letter: string): boolean {
  return letter === 'E' || letter === 'I' || letter === 'Y';
}

function cologne(cologneWord: string): string {
  let colognePhonetics = '';
  for (let i = 0; i < cologneWord.length; i++) colognePhonetics += cologneDigits(cologneWord, i);
  // Equal neighbours first, then zeros: a vowel between two of a kind keeps them apart.
  const singleDigits = colognePhonetics.replaceAll(/(.)\1+/g, '$1');
  return singleDigits.slice(0, 1) + singleDigits.slice(1).replaceAll('0', '');
}

function cologneDigits(cologneWord: string, i: number): string {
  const cologneLetter = cologneWord[i]!;
  const previousLetter = cologneWord[i - 1] ?? '-';
  const nextLetter = cologneWord[i + 1] ?? '-';
  switch (cologneLetter) {
    case 'H':
      return '';
    case 'B':
      return '1';
    case 'P':
      return nextLetter === 'H' ? '3' : '1';
    case 'D':
    case 'T':
      return 'CSZ'.includes(nextLetter) ? '8' : '2';
    case 'F':
    case 'V':
    case 'W':
      return '3';
    case 'G':
    case 'K':
    case 'Q':
      return '4';
    case 'C':
      if (i === 0) return 'AHKLOQRUX'.includes(nextLetter) ? '4' : '8';
      return 'AHKOQUX'.includes(nextLetter) && !'SZ'.includes(previousLetter) ? '4' : '8';
    case 'X':
      return 'CKQ'.includes(previousLetter) ? '8' : '48';
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
