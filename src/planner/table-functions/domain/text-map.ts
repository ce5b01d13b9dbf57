/**
 * A map by texts for many of them. One large Map stops the event loop for a tenth of a second each time that it doubles: here
 * many small ones each do so by themselves. Pure.
 */
const parts = 256;

export class TextMap<T> {
  readonly #parts = Array.from({ length: parts }, () => new Map<string, T>());

  get(text: string): T | undefined {
    return this.#part(text).get(text);
  }

  set(text: string, value: T): void {
    this.#part(text).set(text, value);
  }

  /** By a few characters of the text, its last ones among them: keys of one sort begin alike. */
  #part(text: string): Map<string, T> {
    const { length } = text;
    let hash = length;
    for (let i = Math.max(0, length - 6); i < length; i++) hash = Math.imul(hash, 31) + text.charCodeAt(i);
    return this.#parts[(hash ^ (hash >>> 8) ^ (hash >>> 16)) & (parts - 1)]!;
  }
}
