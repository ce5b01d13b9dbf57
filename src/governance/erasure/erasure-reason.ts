/** Reasons are kept for as long as the log is: they must not name the subject, or repeat its rows. */

const erasedMark = '[erased]';
/** Shorter texts are in every sentence. */
const erasedCellLengthMin = 3;

/**
 * The reason without any of these texts, however they are capitalised and composed. The subject is removed at any length; cells
 * only if they are long enough to identify a subject.
 */
export class ErasureReason {
  #reasonText: string;
  #foldedReason: string;

  constructor(reason: string, subject: string) {
    this.#reasonText = reason.normalize('NFC');
    this.#foldedReason = foldCase(this.#reasonText);
    this.#blankOut(foldCase(subject.normalize('NFC')));
  }

  get text(): string {
    return this.#reasonText;
  }

  /** As texts are looked for in it. */
  get folded(): string {
    return this.#foldedReason;
  }

  free(erasedCell: string): void {
    if (this.#mayContain(erasedCell)) this.#blankOut(foldCase(erasedCell.normalize('NFC')));
  }

  has(erasedCell: string): boolean {
    return this.#mayContain(erasedCell) && this.#foldedReason.includes(foldCase(erasedCell.normalize('NFC')));
  }

  #mayContain({ length }: string): boolean {
    return length >= erasedCellLengthMin && length <= this.#reasonText.length * 2;
  }

  #blankOut(foldedCell: string): void {
    for (
      let erasedAt = this.#foldedReason.indexOf(foldedCell);
      foldedCell !== '' && erasedAt >= 0;
      erasedAt = this.#foldedReason.indexOf(foldedCell, erasedAt + erasedMark.length)
    ) {
      this.#reasonText = this.#reasonText.slice(0, erasedAt) + erasedMark + this.#reasonText.slice(erasedAt + foldedCell.length);
      this.#foldedReason =
        this.#foldedReason.slice(0, erasedAt) + erasedMark + this.#foldedReason.slice(erasedAt + foldedCell.length);
    }
  }
}

/** Lower case of as many UTF-16 units: places in it are places in the text. */
function foldCase(text: string): string {
  const lowerCase = text.toLowerCase();
  if (lowerCase.length === text.length) return lowerCase;
  return text.replaceAll(/./gsu, (codePoint) =>
    codePoint.toLowerCase().length === codePoint.length ? codePoint.toLowerCase() : codePoint,
  );
}
