/**
 * The kinds of derived files. The beginning of a file's name gives its kind, and each kind has an owner who knows which of its
 * files are in use: that decides what a start removes, what is collected, and what keeps an erasure from its certificate. A file
 * of no kind is unknown, and so is one that its owner does not know.
 */
import { assert } from '../errors.ts';

export interface DerivedKind {
  /** Names of its files begin so; no two kinds have prefixes that begin alike. */
  readonly prefix: string;
  /** Something rests on the file. */
  holds(name: string): boolean;
  /** Resolves when each file that is being written now is held or gone. */
  written(): Promise<void>;
}

export class DerivedKinds {
  readonly #kinds: readonly DerivedKind[];

  constructor(kinds: readonly DerivedKind[]) {
    const alike = kinds.some((a) => kinds.some((b) => a !== b && a.prefix.startsWith(b.prefix)));
    assert(!alike, 'kinds of derived files have names of their own');
    this.#kinds = kinds;
  }

  /** Those of these names in the directory of derived files that nothing rests on. */
  unknown(names: readonly string[]): readonly string[] {
    return names.filter((name) => !this.#kinds.some((kind) => name.startsWith(kind.prefix) && kind.holds(name)));
  }

  async written(): Promise<void> {
    for (const kind of this.#kinds) await kind.written();
  }
}
