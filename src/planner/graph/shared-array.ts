/** Arrays that a worker reads where they lie. */
interface SharedArrayKind<A> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: SharedArrayBuffer): A;
}

export function sharedArray<A>(kind: SharedArrayKind<A>, length: number): A {
  return new kind(new SharedArrayBuffer(length * kind.BYTES_PER_ELEMENT));
}
