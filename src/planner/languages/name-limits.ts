/**
 * Bounds on the names, operators and values of one statement. Values in lists of IN and rows of VALUES are not counted: a list of
 * them is bound and tested as one set, and rows are rows.
 */
export const namesMax = 16_384;

export class NameLimits {
  #words = 0;
  /** Values outside of lists. */
  #lone = 0;
  /** Brackets that are open here, and that were where VALUES began; -1 outside of VALUES. */
  #depth = 0;
  #rowsDepth = -1;
  /** Values behind `IN (` that nothing but commas parts; -1 elsewhere. */
  listed = -1;

  /** False where it is one value too many. */
  addValue(): boolean {
    return this.listed >= 0 || (this.#rowsDepth >= 0 && this.#depth === this.#rowsDepth + 1) || ++this.#lone <= namesMax;
  }

  /** False where it is one name or operator too many. */
  addWord(): boolean {
    if (this.#depth <= this.#rowsDepth) this.#rowsDepth = -1;
    return ++this.#words <= namesMax;
  }

  beginRows(): void {
    this.#rowsDepth = this.#depth;
  }

  openBracket(isListOfIn: boolean): void {
    this.#depth++;
    this.listed = isListOfIn ? 0 : -1;
  }

  closeBracket(): void {
    this.#depth--;
  }
}
