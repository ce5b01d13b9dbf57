/**
 * Recognises statements that equal an earlier one but for their literals: by the text between these, without lexing them again.
 * Invariants: a recognised statement has the template and the parameters that the lexer would give it; one that the lexer might
 * read differently is not recognised, and no statement is refused here.
 */
import type { Literal } from '../syntax/statement.ts';
import { LexedStatement } from './sql-lexer.ts';

/** A statement as a row of texts with a literal between any two. */
interface Shape {
  readonly template: string;
  readonly pieces: readonly string[];
  /** Type and parameter of the literal behind each piece but the last. */
  readonly cuts: readonly { readonly type: 's' | 'i'; readonly slot: number }[];
  /** TRUE, FALSE and NULL are words of the text; in the place of the others stands anything. */
  readonly parameters: readonly Literal[];
}

const shapesMax = 16;
const textMax = 2_048;
/** More digits are no safe integer. */
const digitsMax = 15;

export class KnownShapes {
  /** The ones in use drift to the front. */
  readonly #shapes: Shape[] = [];

  recognise(text: string): LexedStatement | null {
    const shapes = this.#shapes;
    for (let i = 0; i < shapes.length; i++) {
      const shape = shapes[i]!;
      const parameters = cutOut(text, shape);
      if (parameters === null) continue;
      if (i > 0) {
        shapes[i] = shapes[i - 1]!;
        shapes[i - 1] = shape;
      }
      return new LexedStatement(text, shape.template, parameters, null);
    }
    return null;
  }

  /** Shapes hold literals that are words of the text. */
  clear(): void {
    this.#shapes.length = 0;
  }

  /** Learns statements of a known template only: rare ones must not evict frequent ones. */
  learn(lexed: LexedStatement): void {
    const shape = lexed.text.length > textMax ? null : shapeOf(lexed);
    if (shape === null) return;
    if (this.#shapes.length === shapesMax) this.#shapes.pop();
    this.#shapes.push(shape);
  }
}

/** null where the text is not of the shape, or might not be. */
function cutOut(text: string, { pieces, cuts, parameters }: Shape): Literal[] | null {
  if (!text.startsWith(pieces[0]!)) return null;
  const literals = parameters.slice();
  let at = pieces[0]!.length;
  for (let k = 0; k < cuts.length; k++) {
    const { type, slot } = cuts[k]!;
    const end = type === 's' ? endOfString(text, at) : endOfDigits(text, at);
    if (end < 0) return null;
    const next = pieces[k + 1]!;
    if (!text.startsWith(next, end)) return null;
    literals[slot] = type === 's' ? text.slice(at + 1, end - 1) : BigInt(Number(text.slice(at, end)));
    at = end + next.length;
  }
  return at === text.length ? literals : null;
}

/** Behind the closing quote of a text that has no other quote and no escape in it; -1 where there is none such. */
function endOfString(text: string, start: number): number {
  if (text.charCodeAt(start) !== quote) return -1;
  const end = text.indexOf("'", start + 1);
  if (end < 0 || text.charCodeAt(end + 1) === quote) return -1;
  for (let at = start + 1; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code >= surrogatesFrom || code === backslash) return -1;
  }
  return end + 1;
}

/** The text behind the digits decides whether the number ends with them; it is the same as in the known statement. */
function endOfDigits(text: string, start: number): number {
  let end = start;
  while (isDigit(text.charCodeAt(end))) end++;
  return end === start || end - start > digitsMax ? -1 : end;
}

/** Null where a literal is written in a form that can't be cut out. */
function shapeOf({ text, template, tokens, parameters }: LexedStatement): Shape | null {
  const pieces: string[] = [];
  const cuts: { readonly type: 's' | 'i'; readonly slot: number }[] = [];
  let from = 0;
  for (const { kind, text: type, slot, start } of tokens) {
    if (kind !== 'literal' || type === 'b' || type === 'null') continue;
    const end = type === 's' ? endOfString(text, start) : type === 'i' ? endOfDigits(text, start) : -1;
    if (end < 0 || (type !== 's' && type !== 'i')) return null;
    // A string may go on behind its quote.
    if (type === 's' && text.slice(start + 1, end - 1) !== parameters[slot]) return null;
    pieces.push(text.slice(from, start));
    cuts.push({ type, slot });
    from = end;
  }
  if (cuts.length === 0) return null;
  return { template, pieces: [...pieces, text.slice(from)], cuts, parameters };
}

const quote = 0x27;
const backslash = 0x5c;
/** Half a character has no UTF-8 form: it is for the lexer to say so. */
const surrogatesFrom = 0xd800;

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
