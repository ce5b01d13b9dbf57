/**
 * Rows that hard deletes and erasures took away, as far as a read of the past needs them: for each type and organisation path,
 * which removal took versions from below which position. Distinguishes an answer that lost its rows from one that was tampered
 * with.
 */
import { compareText } from '../../log/values/value.ts';

export interface Removal {
  /** Position of the removal's own entry. */
  readonly position: number;
  /** Least position of a version that it removed. */
  readonly least: number;
}

export interface RemovedFrom {
  readonly type: string;
  readonly path: string | null;
  readonly removals: readonly Removal[];
}

export class Removals {
  readonly #types = new Map<string, Map<string | null, Removal[]>>();

  add(type: string, path: string | null, removal: Removal): void {
    let paths = this.#types.get(type);
    if (paths === undefined) this.#types.set(type, (paths = new Map()));
    const known = paths.get(path);
    if (known === undefined) paths.set(path, [removal]);
    else known.push(removal);
  }

  /** True when a version of one of these types below `position`, in a path that `sees` admits, was removed since. */
  since(position: number, types: ReadonlySet<string>, sees: (path: string | null) => boolean): boolean {
    for (const type of types) {
      for (const [path, removals] of this.#types.get(type) ?? []) {
        if (sees(path) && removals.some((removal) => removal.position >= position && removal.least < position)) return true;
      }
    }
    return false;
  }

  /** By type, then path, in codepoint order. */
  list(): RemovedFrom[] {
    const all = [...this.#types].flatMap(([type, paths]) => [...paths].map(([path, removals]) => ({ type, path, removals })));
    return all.sort((a, b) => compareText(a.type, b.type) || compareText(a.path ?? '', b.path ?? ''));
  }

  clear(): void {
    this.#types.clear();
  }
}
