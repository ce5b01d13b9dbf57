/** Reasons are kept for as long as the log is: they must not name the subject, or repeat its rows. */

const instead = '[erased]';
/** Shorter texts are in every sentence. */
const lengthMin = 3;

/**
 * The reason without any of these texts, however they are capitalised and composed. The subject is removed at any length; cells
 * only if they are long enough to identify a subject.
 */
export class ErasureReason {
  #text: string;
  #folded: string;

  constructor(reason: string, subject: string) {
    this.#text = reason.normalize('NFC');
    this.#folded = fold(this.#text);
    this.#blank(fold(subject.normalize('NFC')));
  }

  get text(): string {
    return this.#text;
  }

  /** As texts are looked for in it. */
  get folded(): string {
    return this.#folded;
  }

  free(cell: string): void {
    if (this.#mayHave(cell)) this.#blank(fold(cell.normalize('NFC')));
  }

  has(cell: string): boolean {
    return this.#mayHave(cell) && this.#folded.includes(fold(cell.normalize('NFC')));
  }

  #mayHave({ length }: string): boolean {
    return length >= lengthMin && length <= this.#text.length * 2;
  }

  #blank(folded: string): void {
    for (
      let at = this.#folded.indexOf(folded);
      folded !== '' && at >= 0;
      at = this.#folded.indexOf(folded, at + instead.length)
    ) {
      this.#text = this.#text.slice(0, at) + instead + this.#text.slice(at + folded.length);
      this.#folded = this.#folded.slice(0, at) + instead + this.#folded.slice(at + folded.length);
    }
  }
}

/** Lower case of as many UTF-16 units: places in it are places in the text. */
function fold(text: string): string {
  const lower = text.toLowerCase();
  if (lower.length === text.length) return lower;
  return text.replaceAll(/./gsu, (sign) => (sign.toLowerCase().length === sign.length ? sign.toLowerCase() : sign));
}
