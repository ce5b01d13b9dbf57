/** Which organisation paths' rows are whose, by the codes that storage has for paths. */
import type { PathCodes } from '../../projections/access-paths.ts';
import type { Lane, TypeGrant } from '../authorization/grant.ts';
import { sees } from '../caller.ts';

/** Path codes that the lanes of one grant cover: with one lane, those that the caller's path may see. */
export interface Scope {
  readonly codes: readonly number[];
  /**
   * By code: 0 = none, else a number into `lanes`, from 1 on. Codes beyond its length came later than the scope was made, and are
   * refused.
   */
  readonly groups: Uint16Array | Uint8Array;
  /** Numbers of the lanes that cover a path, in the order in which they are asked. */
  readonly lanes: readonly (readonly number[])[];
  /** No path is of two lanes. */
  readonly apart: boolean;
}

/** Scopes by caller path, remade when storage has met new paths. Path codes are append-only, so a size tells it all. */
export class ScopeCache {
  readonly #scopesByPath = new Map<string | null, Scope>();
  readonly #laneScopes = new WeakMap<TypeGrant, Scope>();
  readonly #scopesMax: number;

  constructor(entriesMax = 1024) {
    this.#scopesMax = entriesMax;
  }

  scopeOf(callerPath: string | null, pathCodes: PathCodes): Scope {
    const knownScope = this.#scopesByPath.get(callerPath);
    if (knownScope !== undefined && knownScope.groups.length === pathCodes.size) return knownScope;
    // Snapshots hold on to the scope they were given: a grown one is a new one, and looks at new codes only.
    const pathGroups = new Uint8Array(pathCodes.size);
    const visibleCodes = knownScope === undefined ? [] : knownScope.codes.slice();
    if (knownScope !== undefined) pathGroups.set(knownScope.groups);
    for (let code = knownScope?.groups.length ?? 0; code < pathCodes.size; code++) {
      if (!sees(callerPath, pathCodes.path(code))) continue;
      pathGroups[code] = 1;
      visibleCodes.push(code);
    }
    if (this.#scopesByPath.size >= this.#scopesMax) this.#scopesByPath.clear();
    const scope: Scope = { codes: visibleCodes, groups: pathGroups, lanes: callerLanes, apart: true };
    this.#scopesByPath.set(callerPath, scope);
    return scope;
  }

  /** `callerScope` is the scope of the path that the grant is for: as far as it knows path codes, lanes do. */
  lanesOf(grant: TypeGrant, callerScope: Scope, pathCodes: PathCodes): Scope {
    const { lanes } = grant;
    if (lanes.length === 1 && lanes[0]!.agreement === null) return callerScope;
    const pathCount = callerScope.groups.length;
    const knownScope = this.#laneScopes.get(grant);
    if (knownScope !== undefined && knownScope.groups.length === pathCount) return knownScope;
    const grantScope = laneScope(lanes, callerScope, pathCodes);
    this.#laneScopes.set(grant, grantScope);
    return grantScope;
  }
}

const callerLanes: readonly (readonly number[])[] = [[0]];

function laneScope(lanes: readonly Lane[], { groups: callerGroups }: Scope, pathCodes: PathCodes): Scope {
  const pathCount = callerGroups.length;
  const pathGroups = new Uint16Array(pathCount);
  const visibleCodes: number[] = [];
  const groupNumbers = new Map<string, number>();
  const codesByScope: number[][] = [];
  for (let code = 0; code < pathCount; code++) {
    const path = pathCodes.path(code);
    const pathLanes: number[] = [];
    lanes.forEach((lane, i) => {
      if (lane.agreement === null ? callerGroups[code] === 1 : lane.covers(path)) pathLanes.push(i);
    });
    if (pathLanes.length === 0) continue;
    const pathLanesKey = pathLanes.join();
    let groupNumber = groupNumbers.get(pathLanesKey);
    if (groupNumber === undefined) groupNumbers.set(pathLanesKey, (groupNumber = codesByScope.push(pathLanes)));
    pathGroups[code] = groupNumber;
    visibleCodes.push(code);
  }
  return {
    codes: visibleCodes,
    groups: pathGroups,
    lanes: codesByScope,
    apart: codesByScope.every((lanesOfGroup) => lanesOfGroup.length === 1),
  };
}
