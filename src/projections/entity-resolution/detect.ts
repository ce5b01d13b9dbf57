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

interface IdentifierCandidate extends Omit<Detected, 'start' | 'end'> {
  /** In UTF-16 units. */
  readonly from: number;
  readonly to: number;
}

/** Characters of a text that is looked through. */
export const detectedLengthMax = 1 << 20;

interface IdentifierPattern {
  readonly kind: DetectedKind;
  /** Global; linear in the text. A first group is the value where it is not all of the match. */
  readonly pattern: RegExp;
  /** A value of this shape that is not valid is told, too. */
  readonly toldInvalid?: (value: string) => boolean;
  readonly isMeant?: (text: string, from: number, to: number) => boolean;
}

const wordLetter = '\\p{L}\\p{N}_';
const noLetterBefore = `(?<![${wordLetter}])`;
const noLetterBehind = `(?![${wordLetter}])`;

const identifierPatterns: readonly IdentifierPattern[] = [
  {
    kind: 'email',
    pattern:
      /(?<![a-z0-9!#$%&'*+/=?^_`{|}~-])[a-z0-9!#$%&'*+/=?^_`{|}~-][a-z0-9!#$%&'*+/=?^_`{|}~.-]{0,63}@[\p{L}\p{N}][\p{L}\p{N}.-]{1,252}[\p{L}\p{N}]/giu,
  },
  {
    kind: 'iban',
    pattern: new RegExp(`${noLetterBefore}[A-Z]{2}\\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,4})?${noLetterBehind}`, 'gu'),
    toldInvalid: (value) => isRegion(value.slice(0, 2)) && /\d{4}/.test(value.slice(4)),
  },
  {
    kind: 'bic',
    pattern: new RegExp(`${noLetterBefore}[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?${noLetterBehind}`, 'gu'),
    isMeant: isNoShoutedWord,
  },
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
  {
    kind: 'mac',
    pattern: new RegExp(`${noLetterBefore}[\\da-f]{2}([:-])(?:[\\da-f]{2}\\1){4}[\\da-f]{2}(?![:-]?[\\da-f])`, 'giu'),
  },
  { kind: 'mac', pattern: new RegExp(`${noLetterBefore}[\\da-f]{4}\\.[\\da-f]{4}\\.[\\da-f]{4}${noLetterBehind}`, 'giu') },
  { kind: 'wallet', pattern: new RegExp(`${noLetterBefore}0x[\\da-f]{40}${noLetterBehind}`, 'giu'), toldInvalid: () => true },
  {
    kind: 'wallet',
    pattern: new RegExp(`${noLetterBefore}(?:bc|tb|ltc)1[a-z\\d]{11,87}${noLetterBehind}`, 'giu'),
    toldInvalid: (value) => /\d.*\d/.test(value.slice(3)),
  },
  { kind: 'wallet', pattern: new RegExp(`${noLetterBefore}[1-9A-HJ-NP-Za-km-z]{26,35}${noLetterBehind}`, 'gu') },
  {
    kind: 'card',
    pattern: /(?<![\d+.-])\d{4}(?:[ -]?\d){9,15}(?![\d-])/gu,
    toldInvalid: (value) => isIssued(value.replaceAll(/[ -]/g, '')),
  },
  {
    kind: 'vin',
    pattern: new RegExp(`${noLetterBefore}[A-HJ-NPR-Z\\d]{17}${noLetterBehind}`, 'gu'),
    toldInvalid: (value) => /\d{4}$/.test(value) && /[A-Z]/.test(value),
  },
  { kind: 'imo', pattern: new RegExp(`${noLetterBefore}IMO[ :#-]{0,3}\\d{7}${noLetterBehind}`, 'giu'), toldInvalid: () => true },
  { kind: 'mmsi', pattern: new RegExp(`${noLetterBefore}MMSI[ :#-]{0,3}(\\d{9})${noLetterBehind}`, 'giu') },
  {
    kind: 'lei',
    pattern: new RegExp(`${noLetterBefore}[A-Z\\d]{18}\\d{2}${noLetterBehind}`, 'gu'),
    toldInvalid: (value) => /[A-Z]/.test(value),
  },
  {
    kind: 'isin',
    pattern: new RegExp(`${noLetterBefore}[A-Z]{2}[A-Z\\d]{9}\\d${noLetterBehind}`, 'gu'),
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
const phoneDigitsPattern = /(?<![\p{L}\p{N}])(?:\+|00)?\(?\d[\d ()./-]{4,40}\d(?![\p{L}\p{N}])/gu;

const identifierMatchesMax = 64;

/** Finds the identifiers of a text, by where they begin; a step looks at a few candidates. `region`: of phone numbers without a country code. */
export function* detectIdentifiers(text: string, region?: string): Generator<undefined, readonly Detected[], void> {
  const identifierCandidates: IdentifierCandidate[] = [];
  let matchesLookedAt = 0;
  for (const [identifierStart, identifierText] of phoneCandidatesIn(text)) {
    const canonicalPhone = canonicalIdentifier('phone', identifierText, region);
    if (canonicalPhone !== null)
      identifierCandidates.push({
        kind: 'phone',
        value: identifierText,
        canonical: canonicalPhone,
        from: identifierStart,
        to: identifierStart + identifierText.length,
        valid: true,
      });
    if (++matchesLookedAt % identifierMatchesMax === 0) yield;
  }
  for (const { kind, pattern, toldInvalid, isMeant } of identifierPatterns) {
    for (const identifierMatch of text.matchAll(pattern)) {
      if (++matchesLookedAt % identifierMatchesMax === 0) yield;
      const value = kind === 'mmsi' ? identifierMatch[1]! : identifierMatch[0];
      const from = identifierMatch.index + identifierMatch[0].length - value.length;
      const identifierEnd = from + value.length;
      if (isMeant && !isMeant(text, from, identifierEnd)) continue;
      const longestMatch =
        kind === 'iban' || kind === 'card'
          ? longestValidIdentifier(kind, value)
          : { value, canonical: canonicalIdentifier(kind, value) };
      const isIdentifierValid = longestMatch.canonical !== null;
      if (!isIdentifierValid && !toldInvalid?.(value)) continue;
      identifierCandidates.push({ kind, ...longestMatch, from, to: from + longestMatch.value.length, valid: isIdentifierValid });
    }
    yield;
  }
  return chooseIdentifiers(text, identifierCandidates);
}

/** Groups of digits that stand apart, each run of them that may be one number, longest first. */
function* phoneCandidatesIn(text: string): Generator<readonly [number, string], void, void> {
  for (const { 0: phoneDigits, index } of text.matchAll(phoneDigitsPattern)) {
    const digitGroups = [...phoneDigits.matchAll(/(?<![+(])[+(]*\d+\)?/g)];
    for (let firstGroup = 0; firstGroup < digitGroups.length && firstGroup < 12; firstGroup++) {
      for (let lastGroup = Math.min(digitGroups.length, firstGroup + 8); lastGroup > firstGroup; lastGroup--) {
        const [phoneBegin, phoneLast] = [digitGroups[firstGroup]!, digitGroups[lastGroup - 1]!];
        const phoneEnd = phoneLast.index + phoneLast[0].length;
        if (phoneEnd - phoneBegin.index >= 6) yield [index + phoneBegin.index, phoneDigits.slice(phoneBegin.index, phoneEnd)];
      }
    }
  }
}

/** A number in groups may be followed by a word that looks like one more group. */
function longestValidIdentifier(
  kind: DetectedKind,
  identifierText: string,
): { readonly value: string; readonly canonical: string | null } {
  for (
    let identifierPart = identifierText;
    identifierPart !== '';
    identifierPart = identifierPart.slice(0, Math.max(0, identifierPart.search(/[ -][^ -]*$/)))
  ) {
    const canonicalPart = canonicalIdentifier(kind, identifierPart);
    if (canonicalPart !== null) return { value: identifierPart, canonical: canonicalPart };
  }
  return { value: identifierText, canonical: null };
}

/** Eight letters in a text that is written in capitals are a word. */
function isNoShoutedWord(text: string, bicStart: number, bicEnd: number): boolean {
  if (/\d/.test(text.slice(bicStart, bicEnd))) return true;
  const shoutedBefore = /(?:^|\P{L})(\p{Lu}{2,})\P{L}*$/u.exec(text.slice(Math.max(0, bicStart - 32), bicStart))?.[1];
  const shoutedAfter = /^\P{L}*(\p{Lu}{2,})(?!\p{L})/u.exec(text.slice(bicEnd, bicEnd + 32))?.[1];
  return [shoutedBefore, shoutedAfter].every(
    (shoutedWord) => shoutedWord === undefined || /^(?:BIC|SWIFT|CODE|IBAN)$/.test(shoutedWord),
  );
}

function chooseIdentifiers(text: string, candidates: readonly IdentifierCandidate[]): readonly Detected[] {
  const rankedCandidates = candidates.toSorted(
    (a, b) =>
      b.to - b.from - (a.to - a.from) ||
      Number(b.valid) - Number(a.valid) ||
      identifierKinds.indexOf(a.kind) - identifierKinds.indexOf(b.kind) ||
      a.from - b.from,
  );
  // A shorter span that overlaps a longer one has an end within it.
  const takenUnits = new Uint8Array(text.length);
  const disjointCandidates: IdentifierCandidate[] = [];
  for (const candidate of rankedCandidates) {
    if (takenUnits[candidate.from] === 1 || takenUnits[candidate.to - 1] === 1) continue;
    takenUnits.fill(1, candidate.from, candidate.to);
    disjointCandidates.push(candidate);
  }
  disjointCandidates.sort((a, b) => a.from - b.from);
  let textUnits = 0;
  let codePoints = 0;
  const codePointsAt = (unitOffset: number): number => {
    while (textUnits < unitOffset) {
      textUnits += text.codePointAt(textUnits)! > 0xffff ? 2 : 1;
      codePoints++;
    }
    return codePoints;
  };
  return disjointCandidates.map(({ kind, value, canonical, valid, from, to }) => ({
    kind,
    value,
    canonical,
    valid,
    start: codePointsAt(from),
    end: codePointsAt(to),
  }));
}
