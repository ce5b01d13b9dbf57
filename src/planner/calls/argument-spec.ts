/** The arguments that a table function takes. */
import type { Location } from '../syntax/statement.ts';

/**
 * `type`, `column` and `word` say which plan is made: they are known when it is bound, and a plan serves one value of each. The
 * others are values of the execution: a `key` is a text or an integer, a `vector` is `ARRAY[…]` of numbers, or the same as
 * text: `'[0.1, 2]'`.
 */
export type ArgumentKind = 'type' | 'column' | 'word' | 'text' | 'key' | 'number' | 'integer' | 'boolean' | 'vector';

export interface ArgumentSpec {
  /** The name, in upper case. Arguments without names follow the order of the list. */
  readonly name: string;
  readonly kind: ArgumentKind;
  readonly required?: true;
  /** The words that a `word` may be. */
  readonly choices?: readonly string[];
  /** For the documentation and EXPLAIN's readers: the meaning, the unit, the default. */
  readonly summary: string;
}

export interface Signature {
  /** The name, in upper case. */
  readonly name: string;
  readonly arguments: readonly ArgumentSpec[];
  /** Code of the error about an argument of another type; REL_TYPE_MISMATCH where absent. */
  readonly mistyped?: 'REL_INVALID';
}

/** The arguments that say which plan is made, by name. */
export interface Words {
  word(name: string): string | undefined;
  /** Location of an argument; for one that was not given, the start of the call. */
  locationOf(name: string): Location;
  /** The arguments that were given. */
  readonly given: ReadonlySet<string>;
}
