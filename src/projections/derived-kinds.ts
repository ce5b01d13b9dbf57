/**
 * The kinds of derived files. The beginning of a file's name gives its kind, and each kind has an owner who knows which of its
 * files are in use. A start removes the others, collection deletes them, and they keep an erasure from its certificate. A file of
 * no kind is unknown, and so is one that its owner does not know.
 */
import { assert } from '../errors.ts';

export interface DerivedKind {
  /** Names of its files begin so; no two kinds have prefixes that begin alike. */
  readonly prefix: string;
  /** True when a state or checkpoint needs the file. */
  holds(name: string): boolean;
  /** Resolves when each file that is being written now is held or gone. */
  whenWritten(): Promise<void>;
}

export class DerivedKinds {
  readonly #derivedKinds: readonly DerivedKind[];

  constructor(derivedKinds: readonly DerivedKind[]) {
    const areAlikeNamed = derivedKinds.some((a) => derivedKinds.some((b) => a !== b && a.prefix.startsWith(b.prefix)));
    assert(!areAlikeNamed, 'kinds of derived files have names of their own');
    this.#derivedKinds = derivedKinds;
  }

  /** The names among these, in the directory of derived files, that no state needs. */
  unknown(fileNames: readonly string[]): readonly string[] {
    return fileNames.filter(
      (fileName) =>
        !this.#derivedKinds.some((derivedKind) => fileName.startsWith(derivedKind.prefix) && derivedKind.holds(fileName)),
    );
  }

  async whenWritten(): Promise<void> {
    for (const derivedKind of this.#derivedKinds) await derivedKind.whenWritten();
  }
}
