/** A deliberate mistake in the source, and the tests that must notice it. One list a room, in `lists/<room>.ts`. */
export interface Mutant {
  /** What the mistake is, in a few words; unique over all lists. */
  readonly name: string;
  readonly file: string;
  /** The function, method or class that it is in, as `name` or `Class.name`: where the pattern is short, or may move. */
  readonly in?: string;
  /** Must occur there exactly once; white space may differ. */
  readonly find: string;
  readonly replace: string;
  /** Test files, of which at least one must fail. */
  readonly killedBy: readonly string[];
  /** The tests wait for ever under it: that they had to be stopped is how it is noticed. Of any other, that proves nothing. */
  readonly hangs?: true;
}
