/** The one place where text becomes code. What comes in is built from fixed words and numbers: never from a caller's text. */

export function generated<F>(parameters: readonly string[], body: string): F {
  // oxlint-disable-next-line typescript/no-implied-eval -- loops specialised to a column layout are what makes scans fast
  return new Function(...parameters, body) as F;
}
