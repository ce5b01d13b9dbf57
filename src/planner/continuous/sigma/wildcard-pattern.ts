/**
 * Texts with wildcards. `*` stands for any number of characters, `?` for one; a backslash before one of them or before another
 * backslash makes it plain, and is plain itself anywhere else. Source: Sigma specification, "String Wildcard" and "Escaping".
 */

/** `dash` is one of the five characters that Windows programs take for the beginning of a flag (modifier `windash`). */
export type Piece = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'any' | 'one' | 'dash' };

export const dashes = '-/\u2013\u2014\u2015';

const anyPiece: Piece = { kind: 'any' };

export function parsePattern(wildcardPattern: string): readonly Piece[] {
  const patternPieces: Piece[] = [];
  let pieceText = '';
  const endTextPiece = (): void => {
    if (pieceText !== '') patternPieces.push({ kind: 'text', text: pieceText });
    pieceText = '';
  };
  for (let i = 0; i < wildcardPattern.length; i++) {
    const character = wildcardPattern[i]!;
    const nextCharacter = wildcardPattern[i + 1];
    if (character === '\\' && (nextCharacter === '*' || nextCharacter === '?' || nextCharacter === '\\')) {
      pieceText += nextCharacter;
      i++;
    } else if (character === '*' || character === '?') {
      endTextPiece();
      if (character === '?') patternPieces.push({ kind: 'one' });
      else if (patternPieces.at(-1)?.kind !== 'any') patternPieces.push(anyPiece);
    } else pieceText += character;
  }
  endTextPiece();
  return patternPieces;
}

export const plainText = (text: string): readonly Piece[] => (text === '' ? [] : [{ kind: 'text', text }]);

export function endOpen(pieces: readonly Piece[]): readonly Piece[] {
  return pieces.at(-1)?.kind === 'any' ? pieces : [...pieces, anyPiece];
}

export function beginOpen(pieces: readonly Piece[]): readonly Piece[] {
  return pieces[0]?.kind === 'any' ? pieces : [anyPiece, ...pieces];
}

const isWordCharacter = (character: string | undefined): boolean => character !== undefined && /[\p{L}\p{N}_]/u.test(character);

/** Replaces dashes that can begin a flag: those before a word, and not inside one. */
export function openDashes(pieces: readonly Piece[]): readonly Piece[] {
  return pieces.flatMap((piece): readonly Piece[] => {
    if (piece.kind !== 'text') return [piece];
    const { text } = piece;
    const openedPieces: Piece[] = [];
    let pieceStart = 0;
    for (let i = 0; i < text.length; i++) {
      if (!dashes.includes(text[i]!) || isWordCharacter(text[i - 1]) || !isWordCharacter(text[i + 1])) continue;
      openedPieces.push(...plainText(text.slice(pieceStart, i)), { kind: 'dash' });
      pieceStart = i + 1;
    }
    return [...openedPieces, ...plainText(text.slice(pieceStart))];
  });
}

/**
 * Lower case without regard to where a letter stands: the Greek sigma at the end of a word is the one inside it, and the long s
 * is an s, as for a regular expression that ignores case.
 */
export function foldCase(text: string): string {
  const lowercaseText = text.toLowerCase();
  return lowercaseText.includes('ς') || lowercaseText.includes('ſ')
    ? lowercaseText.replaceAll('ς', 'σ').replaceAll('ſ', 's')
    : lowercaseText;
}

export function foldPieces(pieces: readonly Piece[]): readonly Piece[] {
  return pieces.map((piece) => (piece.kind === 'text' ? { kind: 'text', text: foldCase(piece.text) } : piece));
}

/** The pieces between two wildcards `*`: each part has a fixed number of characters, and is sought as a whole. */
interface PatternPart {
  readonly pieces: readonly Exclude<Piece, { kind: 'any' }>[];
  /** Set where the part is one text. */
  readonly text: string | null;
}

/** Pieces made ready to be compared with many texts, in time of at most length of the text times length of a part. */
export class Matcher {
  readonly #patternParts: readonly PatternPart[];

  constructor(pieces: readonly Piece[]) {
    const patternParts: Exclude<Piece, { kind: 'any' }>[][] = [[]];
    for (const piece of pieces) {
      if (piece.kind === 'any') patternParts.push([]);
      else patternParts.at(-1)!.push(piece);
    }
    this.#patternParts = patternParts.map((partPieces) => {
      const onlyPiece = partPieces.length === 1 ? partPieces[0]! : null;
      return { pieces: partPieces, text: partPieces.length === 0 ? '' : onlyPiece?.kind === 'text' ? onlyPiece.text : null };
    });
  }

  matches(text: string): boolean {
    const patternParts = this.#patternParts;
    let matchEnd = patternPartEnd(patternParts[0]!, text, 0);
    if (matchEnd === -1) return false;
    if (patternParts.length === 1) return matchEnd === text.length;
    for (let i = 1; i < patternParts.length - 1; i++) {
      matchEnd = findPatternEnd(patternParts[i]!, text, matchEnd);
      if (matchEnd === -1) return false;
    }
    return isPatternAtEnd(patternParts.at(-1)!, text, matchEnd);
  }
}

/** Index behind the part where it stands at `partStart`; -1 where something else stands there. */
function patternPartEnd(patternPart: PatternPart, text: string, partStart: number): number {
  if (patternPart.text !== null) return text.startsWith(patternPart.text, partStart) ? partStart + patternPart.text.length : -1;
  let pieceEnd = partStart;
  for (const piece of patternPart.pieces) {
    if (piece.kind === 'text') {
      if (!text.startsWith(piece.text, pieceEnd)) return -1;
      pieceEnd += piece.text.length;
      continue;
    }
    if (pieceEnd >= text.length) return -1;
    if (piece.kind === 'dash') {
      if (!dashes.includes(text[pieceEnd]!)) return -1;
      pieceEnd++;
    } else pieceEnd += characterWidthAt(text, pieceEnd);
  }
  return pieceEnd;
}

/** One character is one code point. */
const characterWidthAt = (text: string, characterOffset: number): number => (text.codePointAt(characterOffset)! > 0xffff ? 2 : 1);

function findPatternEnd(patternPart: PatternPart, text: string, searchStart: number): number {
  if (patternPart.text !== null) {
    const partStart = text.indexOf(patternPart.text, searchStart);
    return partStart === -1 ? -1 : partStart + patternPart.text.length;
  }
  for (let candidateStart = searchStart; candidateStart < text.length; candidateStart += characterWidthAt(text, candidateStart)) {
    const partEnd = patternPartEnd(patternPart, text, candidateStart);
    if (partEnd !== -1) return partEnd;
  }
  return -1;
}

function isPatternAtEnd(patternPart: PatternPart, text: string, searchStart: number): boolean {
  if (patternPart.text !== null) return text.length - patternPart.text.length >= searchStart && text.endsWith(patternPart.text);
  for (let candidateStart = text.length; candidateStart >= searchStart; candidateStart--) {
    if (patternPartEnd(patternPart, text, candidateStart) === text.length) return true;
    if (text.length - candidateStart > 2 * patternPartLength(patternPart)) return false;
  }
  return false;
}

const patternPartLength = (patternPart: PatternPart): number =>
  patternPart.pieces.reduce((sum, piece) => sum + (piece.kind === 'text' ? piece.text.length : 1), 0);
