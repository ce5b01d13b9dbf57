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
  readonly #removalsByType = new Map<string, Map<string | null, Removal[]>>();

  add(type: string, path: string | null, removal: Removal): void {
    let removalsByPath = this.#removalsByType.get(type);
    if (removalsByPath === undefined) this.#removalsByType.set(type, (removalsByPath = new Map()));
    const removalsOfPath = removalsByPath.get(path);
    if (removalsOfPath === undefined) removalsByPath.set(path, [removal]);
    else removalsOfPath.push(removal);
  }

  /** True when a version of one of these types below `position`, in a path that `seesPath` admits, was removed since. */
  since(position: number, types: ReadonlySet<string>, seesPath: (path: string | null) => boolean): boolean {
    for (const type of types) {
      for (const [path, removals] of this.#removalsByType.get(type) ?? []) {
        if (seesPath(path) && removals.some((removal) => removal.position >= position && removal.least < position)) return true;
      }
    }
    return false;
  }

  /** By type, then path, in codepoint order. */
  list(): RemovedFrom[] {
    const removedFrom = [...this.#removalsByType].flatMap(([type, paths]) =>
      [...paths].map(([path, removals]) => ({ type, path, removals })),
    );
    return removedFrom.sort((a, b) => compareText(a.type, b.type) || compareText(a.path ?? '', b.path ?? ''));
  }

  clear(): void {
    this.#removalsByType.clear();
  }
}
