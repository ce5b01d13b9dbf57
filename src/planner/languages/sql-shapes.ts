/**
 * Recognises statements that equal an earlier one but for their literals: by the text between these, without lexing them again.
 * Invariants: a recognised statement has the template and the parameters that the lexer would give it; one that the lexer might
 * read differently is not recognised, and no statement is refused here.
 */
import type { Literal } from '../syntax/statement.ts';
import { LexedStatement } from './sql-lexer.ts';

/** A statement as a row of texts with a literal between any two. */
interface StatementShape {
  readonly template: string;
  readonly pieces: readonly string[];
  /** Type and parameter of the literal behind each piece but the last. */
  readonly cuts: readonly { readonly type: 's' | 'i'; readonly slot: number }[];
  /** TRUE, FALSE and NULL are words of the text; in the place of the others stands anything. */
  readonly parameters: readonly Literal[];
}

const knownShapesMax = 16;
const shapeTextMax = 2_048;
/** More digits are no safe integer. */
const shapeDigitsMax = 15;

export class KnownShapes {
  /** The ones in use drift to the front. */
  readonly #knownShapes: StatementShape[] = [];

  recognise(statementText: string): LexedStatement | null {
    const knownShapes = this.#knownShapes;
    for (let i = 0; i < knownShapes.length; i++) {
      const knownShape = knownShapes[i]!;
      const cutParameters = cutLiterals(statementText, knownShape);
      if (cutParameters === null) continue;
      if (i > 0) {
        knownShapes[i] = knownShapes[i - 1]!;
        knownShapes[i - 1] = knownShape;
      }
      return new LexedStatement(statementText, knownShape.template, cutParameters, null);
    }
    return null;
  }

  /** Shapes hold literals that are words of the text. */
  clear(): void {
    this.#knownShapes.length = 0;
  }

  /** Learns statements of a known template only: rare ones must not evict frequent ones. */
  learn(lexed: LexedStatement): void {
    const learnedShape = lexed.text.length > shapeTextMax ? null : statementShape(lexed);
    if (learnedShape === null) return;
    if (this.#knownShapes.length === knownShapesMax) this.#knownShapes.pop();
    this.#knownShapes.push(learnedShape);
  }
}

/** null where the text is not of the shape, or might not be. */
function cutLiterals(text: string, { pieces: shapePieces, cuts: shapeCuts, parameters }: StatementShape): Literal[] | null {
  if (!text.startsWith(shapePieces[0]!)) return null;
  const cutLiteralValues = parameters.slice();
  let shapeOffset = shapePieces[0]!.length;
  for (let k = 0; k < shapeCuts.length; k++) {
    const { type, slot } = shapeCuts[k]!;
    const literalEnd = type === 's' ? stringLiteralEnd(text, shapeOffset) : integerLiteralEnd(text, shapeOffset);
    if (literalEnd < 0) return null;
    const nextPiece = shapePieces[k + 1]!;
    if (!text.startsWith(nextPiece, literalEnd)) return null;
    cutLiteralValues[slot] =
      type === 's' ? text.slice(shapeOffset + 1, literalEnd - 1) : BigInt(Number(text.slice(shapeOffset, literalEnd)));
    shapeOffset = literalEnd + nextPiece.length;
  }
  return shapeOffset === text.length ? cutLiteralValues : null;
}

/** Behind the closing quote of a text that has no other quote and no escape in it; -1 where there is none such. */
function stringLiteralEnd(text: string, start: number): number {
  if (text.charCodeAt(start) !== quoteCode) return -1;
  const closingQuote = text.indexOf("'", start + 1);
  if (closingQuote < 0 || text.charCodeAt(closingQuote + 1) === quoteCode) return -1;
  for (let stringOffset = start + 1; stringOffset < closingQuote; stringOffset++) {
    const stringCharCode = text.charCodeAt(stringOffset);
    if (stringCharCode >= surrogatesFrom || stringCharCode === backslashCode) return -1;
  }
  return closingQuote + 1;
}

/** The text behind the digits decides whether the number ends with them; it is the same as in the known statement. */
function integerLiteralEnd(text: string, start: number): number {
  let digitsEnd = start;
  while (isDigitCode(text.charCodeAt(digitsEnd))) digitsEnd++;
  return digitsEnd === start || digitsEnd - start > shapeDigitsMax ? -1 : digitsEnd;
}

/** Null where a literal is written in a form that can't be cut out. */
function statementShape({ text, template, tokens, parameters }: LexedStatement): StatementShape | null {
  const shapePieces: string[] = [];
  const shapeCuts: { readonly type: 's' | 'i'; readonly slot: number }[] = [];
  let pieceStart = 0;
  for (const { kind, text: type, slot, start } of tokens) {
    if (kind !== 'literal' || type === 'b' || type === 'null') continue;
    const literalEnd = type === 's' ? stringLiteralEnd(text, start) : type === 'i' ? integerLiteralEnd(text, start) : -1;
    if (literalEnd < 0 || (type !== 's' && type !== 'i')) return null;
    // A string may go on behind its quote.
    if (type === 's' && text.slice(start + 1, literalEnd - 1) !== parameters[slot]) return null;
    shapePieces.push(text.slice(pieceStart, start));
    shapeCuts.push({ type, slot });
    pieceStart = literalEnd;
  }
  if (shapeCuts.length === 0) return null;
  return { template, pieces: [...shapePieces, text.slice(pieceStart)], cuts: shapeCuts, parameters };
}

const quoteCode = 0x27;
const backslashCode = 0x5c;
/** Half a character has no UTF-8 form: it is for the lexer to say so. */
const surrogatesFrom = 0xd800;

function isDigitCode(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
