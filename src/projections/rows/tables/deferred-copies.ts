/**
 * Copies of something that changes, each as it stood when the copy was asked for: one is made before the next change, or when
 * it is needed, whichever comes first. A checkpoint of thousands of small tables thereby takes none of them in its own turn.
 */
export class DeferredCopies<T> {
  readonly #makeCopy: () => T;
  #pendingCopies: (() => T)[] = [];

  constructor(makeCopy: () => T) {
    this.#makeCopy = makeCopy;
  }

  /** The result gives the copy, the same one each time. */
  defer(): () => T {
    let madeCopy: { readonly of: T } | null = null;
    const takeCopy = (): T => {
      madeCopy ??= { of: this.#makeCopy() };
      this.#pendingCopies = this.#pendingCopies.filter((pendingCopy) => pendingCopy !== takeCopy);
      return madeCopy.of;
    };
    this.#pendingCopies.push(takeCopy);
    return takeCopy;
  }

  /** To be called before anything changes. */
  settle(): void {
    while (this.#pendingCopies.length > 0) this.#pendingCopies[0]!();
  }
}
