/**
 * Identifiers within a text: which kinds of name it holds, where, and whether their check digits are right. Of spans that
 * overlap the longest wins, then the one that is valid, then the kind that comes first in `identifierKinds`.
 */
import { canonicalIdentifier, type DetectedKind, identifierKinds, isIssued, isRegion } from './identifiers.ts';

export interface Detected {
  readonly kind: DetectedKind;
  /** As it is written. */
  readonly value: string;
  /** null where it is not valid. */
  readonly canonical: string | null;
  /** Characters (code points) before it, and before what follows it. */
  readonly start: number;
  readonly end: number;
  readonly valid: boolean;
}

interface Candidate extends Omit<Detected, 'start' | 'end'> {
  /** In UTF-16 units. */
  readonly from: number;
  readonly to: number;
}

/** Characters of a text that is looked through. */
export const detectedLengthMax = 1 << 20;

interface Pattern {
  readonly kind: DetectedKind;
  /** Global; linear in the text. A first group is the value where it is not all of the match. */
  readonly pattern: RegExp;
  /** A value of this shape that is not valid is told, too. */
  readonly toldInvalid?: (value: string) => boolean;
  readonly isMeant?: (text: string, from: number, to: number) => boolean;
}

const letter = '\\p{L}\\p{N}_';
const before = `(?<![${letter}])`;
const behind = `(?![${letter}])`;

const patterns: readonly Pattern[] = [
  {
    kind: 'email',
    pattern:
      /(?<![a-z0-9!#$%&'*+/=?^_`{|}~-])[a-z0-9!#$%&'*+/=?^_`{|}~-][a-z0-9!#$%&'*+/=?^_`{|}~.-]{0,63}@[\p{L}\p{N}][\p{L}\p{N}.-]{1,252}[\p{L}\p{N}]/giu,
  },
  {
    kind: 'iban',
    pattern: new RegExp(`${before}[A-Z]{2}\\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,4})?${behind}`, 'gu'),
    toldInvalid: (value) => isRegion(value.slice(0, 2)) && /\d{4}/.test(value.slice(4)),
  },
  { kind: 'bic', pattern: new RegExp(`${before}[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?${behind}`, 'gu'), isMeant: isNoShoutedWord },
  {
    kind: 'imei',
    pattern: /(?<![\d+.-])\d{2}[ -]?\d{6}[ -]?\d{6}[ -]?\d(?![\d-])/gu,
    toldInvalid: (value) => /^\d{15}$/.test(value),
  },
  { kind: 'ip', pattern: /(?<![\d.\p{L}])\d{1,3}(?:\.\d{1,3}){3}(?![\d\p{L}]|\.\d)/gu },
  {
    kind: 'ip',
    pattern: /(?<![\p{L}\p{N}:.])(?:[\da-f]{1,4}:|::)[\da-f:]{1,37}(?:\.?\d{1,3}(?:\.\d{1,3}){3})?(?![\p{L}\p{N}:])/giu,
  },
  { kind: 'mac', pattern: new RegExp(`${before}[\\da-f]{2}([:-])(?:[\\da-f]{2}\\1){4}[\\da-f]{2}(?![:-]?[\\da-f])`, 'giu') },
  { kind: 'mac', pattern: new RegExp(`${before}[\\da-f]{4}\\.[\\da-f]{4}\\.[\\da-f]{4}${behind}`, 'giu') },
  { kind: 'wallet', pattern: new RegExp(`${before}0x[\\da-f]{40}${behind}`, 'giu'), toldInvalid: () => true },
  {
    kind: 'wallet',
    pattern: new RegExp(`${before}(?:bc|tb|ltc)1[a-z\\d]{11,87}${behind}`, 'giu'),
    toldInvalid: (value) => /\d.*\d/.test(value.slice(3)),
  },
  { kind: 'wallet', pattern: new RegExp(`${before}[1-9A-HJ-NP-Za-km-z]{26,35}${behind}`, 'gu') },
  {
    kind: 'card',
    pattern: /(?<![\d+.-])\d{4}(?:[ -]?\d){9,15}(?![\d-])/gu,
    toldInvalid: (value) => isIssued(value.replaceAll(/[ -]/g, '')),
  },
  {
    kind: 'vin',
    pattern: new RegExp(`${before}[A-HJ-NPR-Z\\d]{17}${behind}`, 'gu'),
    toldInvalid: (value) => /\d{4}$/.test(value) && /[A-Z]/.test(value),
  },
  { kind: 'imo', pattern: new RegExp(`${before}IMO[ :#-]{0,3}\\d{7}${behind}`, 'giu'), toldInvalid: () => true },
  { kind: 'mmsi', pattern: new RegExp(`${before}MMSI[ :#-]{0,3}(\\d{9})${behind}`, 'giu') },
  { kind: 'lei', pattern: new RegExp(`${before}[A-Z\\d]{18}\\d{2}${behind}`, 'gu'), toldInvalid: (value) => /[A-Z]/.test(value) },
  {
    kind: 'isin',
    pattern: new RegExp(`${before}[A-Z]{2}[A-Z\\d]{9}\\d${behind}`, 'gu'),
    toldInvalid: (value) => /\d{5}/.test(value) && isRegion(value.slice(0, 2)),
  },
  { kind: 'mrz', pattern: /(?<![A-Z<])P[A-Z<][A-Z<]{42}\s{1,4}[A-Z\d<]{44}(?![A-Z\d<])/gu, toldInvalid: () => true },
  {
    kind: 'domain',
    pattern:
      /(?<![\p{L}\p{N}@._-])(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.){1,10}\p{L}[\p{L}\p{N}-]{0,61}\p{L}(?![\p{L}\p{N}_@-])/gu,
  },
];

/** A phone number and what may be another one behind it. */
const digitsOfPhones = /(?<![\p{L}\p{N}])(?:\+|00)?\(?\d[\d ()./-]{4,40}\d(?![\p{L}\p{N}])/gu;

const matchesAtOnce = 64;

/** Finds the identifiers of a text, by where they begin; a step looks at a few candidates. `region`: of phone numbers without a country code. */
export function* detectIdentifiers(text: string, region?: string): Generator<undefined, readonly Detected[], void> {
  const candidates: Candidate[] = [];
  let looked = 0;
  for (const [from, value] of phonesIn(text)) {
    const canonical = canonicalIdentifier('phone', value, region);
    if (canonical !== null) candidates.push({ kind: 'phone', value, canonical, from, to: from + value.length, valid: true });
    if (++looked % matchesAtOnce === 0) yield;
  }
  for (const { kind, pattern, toldInvalid, isMeant } of patterns) {
    for (const match of text.matchAll(pattern)) {
      if (++looked % matchesAtOnce === 0) yield;
      const value = kind === 'mmsi' ? match[1]! : match[0];
      const from = match.index + match[0].length - value.length;
      const to = from + value.length;
      if (isMeant && !isMeant(text, from, to)) continue;
      const longestMatch =
        kind === 'iban' || kind === 'card' ? longestValid(kind, value) : { value, canonical: canonicalIdentifier(kind, value) };
      const valid = longestMatch.canonical !== null;
      if (!valid && !toldInvalid?.(value)) continue;
      candidates.push({ kind, ...longestMatch, from, to: from + longestMatch.value.length, valid });
    }
    yield;
  }
  return chooseCandidates(text, candidates);
}

/** Groups of digits that stand apart, each run of them that may be one number, longest first. */
function* phonesIn(text: string): Generator<readonly [number, string], void, void> {
  for (const { 0: all, index } of text.matchAll(digitsOfPhones)) {
    const groups = [...all.matchAll(/(?<![+(])[+(]*\d+\)?/g)];
    for (let first = 0; first < groups.length && first < 12; first++) {
      for (let last = Math.min(groups.length, first + 8); last > first; last--) {
        const [begin, end] = [groups[first]!, groups[last - 1]!];
        const to = end.index + end[0].length;
        if (to - begin.index >= 6) yield [index + begin.index, all.slice(begin.index, to)];
      }
    }
  }
}

/** A number in groups may be followed by a word that looks like one more group. */
function longestValid(kind: DetectedKind, value: string): { readonly value: string; readonly canonical: string | null } {
  for (let part = value; part !== ''; part = part.slice(0, Math.max(0, part.search(/[ -][^ -]*$/)))) {
    const canonical = canonicalIdentifier(kind, part);
    if (canonical !== null) return { value: part, canonical };
  }
  return { value, canonical: null };
}

/** Eight letters in a text that is written in capitals are a word. */
function isNoShoutedWord(text: string, from: number, to: number): boolean {
  if (/\d/.test(text.slice(from, to))) return true;
  const word = /(?:^|\P{L})(\p{Lu}{2,})\P{L}*$/u.exec(text.slice(Math.max(0, from - 32), from))?.[1];
  const next = /^\P{L}*(\p{Lu}{2,})(?!\p{L})/u.exec(text.slice(to, to + 32))?.[1];
  return [word, next].every((each) => each === undefined || /^(?:BIC|SWIFT|CODE|IBAN)$/.test(each));
}

function chooseCandidates(text: string, candidates: readonly Candidate[]): readonly Detected[] {
  const ranked = candidates.toSorted(
    (a, b) =>
      b.to - b.from - (a.to - a.from) ||
      Number(b.valid) - Number(a.valid) ||
      identifierKinds.indexOf(a.kind) - identifierKinds.indexOf(b.kind) ||
      a.from - b.from,
  );
  // A shorter span that overlaps a longer one has an end within it.
  const taken = new Uint8Array(text.length);
  const disjointCandidates: Candidate[] = [];
  for (const each of ranked) {
    if (taken[each.from] === 1 || taken[each.to - 1] === 1) continue;
    taken.fill(1, each.from, each.to);
    disjointCandidates.push(each);
  }
  disjointCandidates.sort((a, b) => a.from - b.from);
  let units = 0;
  let points = 0;
  const pointsAt = (at: number): number => {
    while (units < at) {
      units += text.codePointAt(units)! > 0xffff ? 2 : 1;
      points++;
    }
    return points;
  };
  return disjointCandidates.map(({ kind, value, canonical, valid, from, to }) => ({
    kind,
    value,
    canonical,
    valid,
    start: pointsAt(from),
    end: pointsAt(to),
  }));
}
