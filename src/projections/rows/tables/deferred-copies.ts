/**
 * Copies of something that changes, each as it stood when the copy was asked for: one is made before the next change, or when
 * it is needed, whichever comes first. A checkpoint of thousands of small tables thereby takes none of them in its own turn.
 */
export class DeferredCopies<T> {
  readonly #make: () => T;
  #pending: (() => T)[] = [];

  constructor(make: () => T) {
    this.#make = make;
  }

  /** The result gives the copy, the same one each time. */
  defer(): () => T {
    let copy: { readonly of: T } | null = null;
    const take = (): T => {
      copy ??= { of: this.#make() };
      this.#pending = this.#pending.filter((other) => other !== take);
      return copy.of;
    };
    this.#pending.push(take);
    return take;
  }

  /** To be called before anything changes. */
  settle(): void {
    while (this.#pending.length > 0) this.#pending[0]!();
  }
}
