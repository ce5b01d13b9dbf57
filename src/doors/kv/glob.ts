/** Patterns of KEYS, SCAN and PSUBSCRIBE: `*`, `?`, `[a-c]`, `[^a]`, and a backslash before a literal character. */

type GlobPart =
  | { readonly kind: 'star' }
  | { readonly kind: 'any' }
  | { readonly kind: 'one'; readonly code: number }
  | { readonly kind: 'set'; readonly negated: boolean; readonly ranges: readonly (readonly [number, number])[] };

/** In steps of at most the one length times the other: only the last star is ever gone back to. */
export function globOf(globPattern: string): (matchedText: string) => boolean {
  const globParts = globPartsOf(Array.from(globPattern, (patternCharacter) => patternCharacter.codePointAt(0)!));
  return (matchedText) =>
    matchesGlob(
      globParts,
      Array.from(matchedText, (patternCharacter) => patternCharacter.codePointAt(0)!),
    );
}

function matchesGlob(globParts: readonly GlobPart[], textCodes: readonly number[]): boolean {
  let partIndex = 0;
  let codeIndex = 0;
  let starPart = -1;
  let starFrom = 0;
  while (codeIndex < textCodes.length) {
    const nextPart = globParts[partIndex];
    if (nextPart?.kind === 'star') {
      starPart = partIndex++;
      starFrom = codeIndex;
    } else if (nextPart !== undefined && takesCharacter(nextPart, textCodes[codeIndex]!)) {
      partIndex++;
      codeIndex++;
    } else if (starPart >= 0) {
      partIndex = starPart + 1;
      codeIndex = ++starFrom;
    } else return false;
  }
  while (globParts[partIndex]?.kind === 'star') partIndex++;
  return partIndex === globParts.length;
}

function takesCharacter(globPart: GlobPart, characterCode: number): boolean {
  switch (globPart.kind) {
    case 'star':
    case 'any':
      return true;
    case 'one':
      return globPart.code === characterCode;
    case 'set':
      return (
        globPart.ranges.some(([lowCode, highCode]) => lowCode <= characterCode && characterCode <= highCode) !== globPart.negated
      );
  }
}

const globSign = (signCharacter: string): number => signCharacter.codePointAt(0)!;
const globSigns = {
  star: globSign('*'),
  any: globSign('?'),
  open: globSign('['),
  close: globSign(']'),
  not: globSign('^'),
  to: globSign('-'),
  escape: globSign('\\'),
};

function globPartsOf(patternCodes: readonly number[]): GlobPart[] {
  const globParts: GlobPart[] = [];
  for (let codeIndex = 0; codeIndex < patternCodes.length; codeIndex++) {
    const patternCode = patternCodes[codeIndex]!;
    if (patternCode === globSigns.star) {
      if (globParts.at(-1)?.kind !== 'star') globParts.push({ kind: 'star' });
    } else if (patternCode === globSigns.any) globParts.push({ kind: 'any' });
    else if (patternCode === globSigns.open) {
      const globSet = globSetOf(patternCodes, codeIndex + 1);
      globParts.push(globSet.part);
      codeIndex = globSet.end;
    } else if (patternCode === globSigns.escape && codeIndex + 1 < patternCodes.length)
      globParts.push({ kind: 'one', code: patternCodes[++codeIndex]! });
    else globParts.push({ kind: 'one', code: patternCode });
  }
  return globParts;
}

/** A set that nothing closes goes to the end of the pattern. */
function globSetOf(patternCodes: readonly number[], setStart: number): { readonly part: GlobPart; readonly end: number } {
  let codeIndex = setStart;
  const isNegated = patternCodes[codeIndex] === globSigns.not;
  if (isNegated) codeIndex++;
  const setRanges: [number, number][] = [];
  for (; codeIndex < patternCodes.length && patternCodes[codeIndex] !== globSigns.close; codeIndex++) {
    if (patternCodes[codeIndex] === globSigns.escape && codeIndex + 1 < patternCodes.length) codeIndex++;
    const lowCode = patternCodes[codeIndex]!;
    if (
      patternCodes[codeIndex + 1] === globSigns.to &&
      codeIndex + 2 < patternCodes.length &&
      patternCodes[codeIndex + 2] !== globSigns.close
    ) {
      codeIndex += 2;
      if (patternCodes[codeIndex] === globSigns.escape && codeIndex + 1 < patternCodes.length) codeIndex++;
      const highCode = patternCodes[codeIndex]!;
      setRanges.push(lowCode <= highCode ? [lowCode, highCode] : [highCode, lowCode]);
    } else setRanges.push([lowCode, lowCode]);
  }
  return { part: { kind: 'set', negated: isNegated, ranges: setRanges }, end: codeIndex };
}
