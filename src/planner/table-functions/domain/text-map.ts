/**
 * A map by texts for many of them. One large Map stops the event loop for a tenth of a second each time that it doubles: here
 * many small ones each do so by themselves. Pure.
 */
const textMapParts = 256;

export class TextMap<T> {
  readonly #textParts = Array.from({ length: textMapParts }, () => new Map<string, T>());

  get(text: string): T | undefined {
    return this.#textPart(text).get(text);
  }

  set(text: string, textValue: T): void {
    this.#textPart(text).set(text, textValue);
  }

  /** By a few characters of the text, its last ones among them: keys of one sort begin alike. */
  #textPart(text: string): Map<string, T> {
    const { length: textLength } = text;
    let textHash = textLength;
    for (let i = Math.max(0, textLength - 6); i < textLength; i++) textHash = Math.imul(textHash, 31) + text.charCodeAt(i);
    return this.#textParts[(textHash ^ (textHash >>> 8) ^ (textHash >>> 16)) & (textMapParts - 1)]!;
  }
}
