/**
 * Texts with wildcards. `*` stands for any number of characters, `?` for one; a backslash before one of them or before another
 * backslash makes it plain, and is plain itself anywhere else. Source: Sigma specification, "String Wildcard" and "Escaping".
 */

/** `dash` is one of the five characters that Windows programs take for the beginning of a flag (modifier `windash`). */
export type Piece = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'any' | 'one' | 'dash' };

export const dashes = '-/\u2013\u2014\u2015';

const any: Piece = { kind: 'any' };

export function parsePattern(source: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let text = '';
  const endText = (): void => {
    if (text !== '') pieces.push({ kind: 'text', text });
    text = '';
  };
  for (let i = 0; i < source.length; i++) {
    const character = source[i]!;
    const next = source[i + 1];
    if (character === '\\' && (next === '*' || next === '?' || next === '\\')) {
      text += next;
      i++;
    } else if (character === '*' || character === '?') {
      endText();
      if (character === '?') pieces.push({ kind: 'one' });
      else if (pieces.at(-1)?.kind !== 'any') pieces.push(any);
    } else text += character;
  }
  endText();
  return pieces;
}

export const plainText = (text: string): readonly Piece[] => (text === '' ? [] : [{ kind: 'text', text }]);

export function endOpen(pieces: readonly Piece[]): readonly Piece[] {
  return pieces.at(-1)?.kind === 'any' ? pieces : [...pieces, any];
}

export function beginOpen(pieces: readonly Piece[]): readonly Piece[] {
  return pieces[0]?.kind === 'any' ? pieces : [any, ...pieces];
}

const isWord = (character: string | undefined): boolean => character !== undefined && /[\p{L}\p{N}_]/u.test(character);

/** Replaces dashes that can begin a flag: those before a word, and not inside one. */
export function openDashes(pieces: readonly Piece[]): readonly Piece[] {
  return pieces.flatMap((piece): readonly Piece[] => {
    if (piece.kind !== 'text') return [piece];
    const { text } = piece;
    const parts: Piece[] = [];
    let from = 0;
    for (let i = 0; i < text.length; i++) {
      if (!dashes.includes(text[i]!) || isWord(text[i - 1]) || !isWord(text[i + 1])) continue;
      parts.push(...plainText(text.slice(from, i)), { kind: 'dash' });
      from = i + 1;
    }
    return [...parts, ...plainText(text.slice(from))];
  });
}

/**
 * Lower case without regard to where a letter stands: the Greek sigma at the end of a word is the one inside it, and the long s
 * is an s, as for a regular expression that ignores case.
 */
export function foldCase(text: string): string {
  const lower = text.toLowerCase();
  return lower.includes('ς') || lower.includes('ſ') ? lower.replaceAll('ς', 'σ').replaceAll('ſ', 's') : lower;
}

export function foldPieces(pieces: readonly Piece[]): readonly Piece[] {
  return pieces.map((piece) => (piece.kind === 'text' ? { kind: 'text', text: foldCase(piece.text) } : piece));
}

/** The pieces between two wildcards `*`: each part has a fixed number of characters, and is sought as a whole. */
interface Part {
  readonly pieces: readonly Exclude<Piece, { kind: 'any' }>[];
  /** Set where the part is one text. */
  readonly text: string | null;
}

/** Pieces made ready to be compared with many texts, in time of at most length of the text times length of a part. */
export class Matcher {
  readonly #parts: readonly Part[];

  constructor(pieces: readonly Piece[]) {
    const parts: Exclude<Piece, { kind: 'any' }>[][] = [[]];
    for (const piece of pieces) {
      if (piece.kind === 'any') parts.push([]);
      else parts.at(-1)!.push(piece);
    }
    this.#parts = parts.map((part) => {
      const only = part.length === 1 ? part[0]! : null;
      return { pieces: part, text: part.length === 0 ? '' : only?.kind === 'text' ? only.text : null };
    });
  }

  matches(text: string): boolean {
    const parts = this.#parts;
    let at = endOf(parts[0]!, text, 0);
    if (at === -1) return false;
    if (parts.length === 1) return at === text.length;
    for (let i = 1; i < parts.length - 1; i++) {
      at = findEnd(parts[i]!, text, at);
      if (at === -1) return false;
    }
    return isAtEnd(parts.at(-1)!, text, at);
  }
}

/** Index behind the part where it stands at `from`; -1 where something else stands there. */
function endOf(part: Part, text: string, from: number): number {
  if (part.text !== null) return text.startsWith(part.text, from) ? from + part.text.length : -1;
  let at = from;
  for (const piece of part.pieces) {
    if (piece.kind === 'text') {
      if (!text.startsWith(piece.text, at)) return -1;
      at += piece.text.length;
      continue;
    }
    if (at >= text.length) return -1;
    if (piece.kind === 'dash') {
      if (!dashes.includes(text[at]!)) return -1;
      at++;
    } else at += widthAt(text, at);
  }
  return at;
}

/** One character is one code point. */
const widthAt = (text: string, at: number): number => (text.codePointAt(at)! > 0xffff ? 2 : 1);

function findEnd(part: Part, text: string, from: number): number {
  if (part.text !== null) {
    const partStart = text.indexOf(part.text, from);
    return partStart === -1 ? -1 : partStart + part.text.length;
  }
  for (let start = from; start < text.length; start += widthAt(text, start)) {
    const end = endOf(part, text, start);
    if (end !== -1) return end;
  }
  return -1;
}

function isAtEnd(part: Part, text: string, from: number): boolean {
  if (part.text !== null) return text.length - part.text.length >= from && text.endsWith(part.text);
  for (let start = text.length; start >= from; start--) {
    if (endOf(part, text, start) === text.length) return true;
    if (text.length - start > 2 * lengthOf(part)) return false;
  }
  return false;
}

const lengthOf = (part: Part): number =>
  part.pieces.reduce((sum, piece) => sum + (piece.kind === 'text' ? piece.text.length : 1), 0);
