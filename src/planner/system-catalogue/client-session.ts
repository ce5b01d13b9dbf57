/** The session that the catalogue describes, where its door knows more than the caller. */
import type { Draws } from './random-draws.ts';

/** How instants are shown: those of properties as timestamptz, or all of them as nanoseconds. */
export type InstantStyle = 'timestamptz' | 'int8';

export interface ClientSession {
  readonly user: string;
  readonly database: string;
  readonly process: number;
  readonly variables: SessionVariables;
  /** Its random numbers, where it outlives a statement. */
  readonly draws?: Draws;
}

export interface SessionVariables {
  all(): readonly { readonly name: string; readonly value: string; readonly about: string }[];
  readonly instants: InstantStyle;
  /** Sets a variable, as SET does; null: to its initial value. */
  set(name: string, value: string | null, local: boolean): void;
}
