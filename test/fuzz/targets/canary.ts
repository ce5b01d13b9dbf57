/** A parser with a planted fault: it trusts a length byte. If the runner does not find it, the runner is blind. */
export const name = 'canary';

export function seeds(): Uint8Array[] {
  return [Uint8Array.of(3, 1, 2, 3), Uint8Array.of(0), Uint8Array.of(8, 1, 2, 3, 4, 5, 6, 7, 8)];
}

export function run(bytes: Uint8Array): void {
  const length = bytes[0] ?? 0;
  for (let i = 1; i <= length; i++) {
    if (bytes[i] === undefined) throw new RangeError(`read past the end at ${i}`);
  }
}
