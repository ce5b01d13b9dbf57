/** Whether policies let every version of a subject be erased: a subject goes as a whole, or not at all. */
import { type ErasedVersions, tenantOfErased, type TypeDefinition } from '../../log/entries/entry.ts';
import type { RowCheck } from '../../projections/decision.ts';
import { refusedKeys } from '../../projections/rows/checks/row-check.ts';
import { currentBranches, type BranchesRead } from './current-branches.ts';

/** `check` as the invocation has it; undefined: nothing is asked of rows. */
export function mayErase(check: RowCheck | undefined, state: BranchesRead, erased: readonly ErasedVersions[]): boolean {
  if (check === undefined) return true;
  const tenant = erased[0] === undefined ? null : tenantOfErased(erased[0]);
  return currentBranches(state, tenant).every(({ types, rows }) =>
    erased.every(({ type: name, positions }) => {
      const [type, versions] = [types.type(name), rows.versions(name)];
      if (type === undefined || versions === undefined) return true;
      const test = check.testFor(type);
      if (test === null) return true;
      const keys = new Map<number, Set<string>>();
      for (const position of positions) {
        const version = versions.versionAt(position);
        if (version < 0) continue;
        const path = versions.pathOf(version);
        const own = keys.get(path) ?? new Set();
        keys.set(path, own.add(versions.keyOf(version)));
      }
      return [...keys].every(([path, own]) => passes(test, type, [...own], rows.scopes.path(path), rows));
    }),
  );
}

function passes(
  test: NonNullable<ReturnType<RowCheck['testFor']>>,
  type: TypeDefinition,
  keys: readonly string[],
  path: string | null,
  rows: ReturnType<typeof currentBranches>[number]['rows'],
): boolean {
  const at = { position: Number.MAX_SAFE_INTEGER, time: 0n };
  return refusedKeys(test, type.name, keys, { path, rows, at }, 'all').size === 0;
}
