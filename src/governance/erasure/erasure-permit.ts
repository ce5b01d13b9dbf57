/** Whether policies let every version of a subject be erased: a subject goes as a whole, or not at all. */
import { type ErasedVersions, tenantOfErased, type TypeDefinition } from '../../log/entries/entry.ts';
import type { RowCheck } from '../../projections/decision.ts';
import { refusedKeys } from '../../projections/rows/checks/row-check.ts';
import { currentBranches, type BranchesRead } from './current-branches.ts';

/** `erasureCheck` as the invocation has it; undefined: nothing is asked of rows. */
export function mayErase(
  erasureCheck: RowCheck | undefined,
  state: BranchesRead,
  erasedVersions: readonly ErasedVersions[],
): boolean {
  if (erasureCheck === undefined) return true;
  const tenant = erasedVersions[0] === undefined ? null : tenantOfErased(erasedVersions[0]);
  return currentBranches(state, tenant).every(({ types, rows }) =>
    erasedVersions.every(({ type: name, positions }) => {
      const [type, versions] = [types.type(name), rows.versions(name)];
      if (type === undefined || versions === undefined) return true;
      const erasureTest = erasureCheck.testFor(type);
      if (erasureTest === null) return true;
      const erasedKeysByPath = new Map<number, Set<string>>();
      for (const position of positions) {
        const erasedVersion = versions.versionAt(position);
        if (erasedVersion < 0) continue;
        const path = versions.pathOf(erasedVersion);
        const keysOfPath = erasedKeysByPath.get(path) ?? new Set();
        erasedKeysByPath.set(path, keysOfPath.add(versions.keyOf(erasedVersion)));
      }
      return [...erasedKeysByPath].every(([path, keysOfPath]) =>
        mayEraseKeys(erasureTest, type, [...keysOfPath], rows.scopes.path(path), rows),
      );
    }),
  );
}

function mayEraseKeys(
  erasureTest: NonNullable<ReturnType<RowCheck['testFor']>>,
  type: TypeDefinition,
  keys: readonly string[],
  path: string | null,
  rows: ReturnType<typeof currentBranches>[number]['rows'],
): boolean {
  const currentPosition = { position: Number.MAX_SAFE_INTEGER, time: 0n };
  return refusedKeys(erasureTest, type.name, keys, { path, rows, at: currentPosition }, 'all').size === 0;
}
