/** Codes that the methods' own publications and common reference tables give. */
import { beforeEach, describe, expect, test } from 'vitest';
import { phoneticCode } from '../../../src/planner/expressions/phonetic.ts';
import { work } from '../../../src/planner/expressions/expression-cost.ts';

beforeEach(() => {
  work.done = 0;
});

describe('Soundex of the National Archives', () => {
  test.each([
    ['Washington', 'W252'],
    ['Lee', 'L000'],
    ['Gutierrez', 'G362'],
    ['Pfister', 'P236'],
    ['Jackson', 'J250'],
    ['Tymczak', 'T522'],
    ['VanDeusen', 'V532'],
    ['Ashcraft', 'A261'],
    ['Robert', 'R163'],
    ['Rupert', 'R163'],
    ['Rubin', 'R150'],
    ['Honeyman', 'H555'],
    ["O'Hara", 'O600'],
    ['Müller', 'M460'],
    ['', ''],
    ['42', ''],
  ])('%s is %s', (word, code) => expect(phoneticCode('soundex', word)).toBe(code));
});

describe('Metaphone', () => {
  test.each([
    ['Klumpz', 'KLMPS'],
    ['Clumps', 'KLMPS'],
    ['Knimon', 'NMN'],
    ['aeomon', 'EMN'],
    ['whallhack', 'WLHK'],
    ['Xena', 'SN'],
    ['laciac', 'LXK'],
    ['Thumb', '0M'],
    ['The', '0'],
    ['quick', 'KK'],
    ['brown', 'BRN'],
    ['fox', 'FKS'],
    ['jumped', 'JMPT'],
    ['over', 'OFR'],
    ['lazy', 'LS'],
    ['dogs', 'TKS'],
    ['howl', 'HL'],
    ['Knight', 'NT'],
    ['night', 'NT'],
    ['edge', 'EJ'],
    ['sign', 'SN'],
    ['signed', 'SNT'],
    ['school', 'SKL'],
    ['nation', 'NXN'],
    ['match', 'MX'],
    ['phone', 'FN'],
    ['Wright', 'RT'],
    ['science', 'SNS'],
    ['', ''],
  ])('%s is %s', (word, code) => expect(phoneticCode('metaphone', word)).toBe(code));
});

describe('Kölner Phonetik', () => {
  test.each([
    ['Müller-Lüdenscheidt', '65752682'],
    ['Wikipedia', '3412'],
    ['Breschnew', '17863'],
    ['Meier', '67'],
    ['Mayr', '67'],
    ['Heinz Classen', '068586'],
    ['Aachen', '046'],
    ['Philipp', '351'],
    ['Xaver', '4837'],
    ['Straße', '8278'],
    ['', ''],
  ])('%s is %s', (word, code) => expect(phoneticCode('cologne', word)).toBe(code));
});
