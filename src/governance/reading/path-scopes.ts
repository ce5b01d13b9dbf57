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
  readonly #scopes = new Map<string | null, Scope>();
  readonly #lanes = new WeakMap<TypeGrant, Scope>();
  readonly #entriesMax: number;

  constructor(entriesMax = 1024) {
    this.#entriesMax = entriesMax;
  }

  scopeOf(callerPath: string | null, pathCodes: PathCodes): Scope {
    const known = this.#scopes.get(callerPath);
    if (known !== undefined && known.groups.length === pathCodes.size) return known;
    // Snapshots hold on to the scope they were given: a grown one is a new one, and looks at new codes only.
    const groups = new Uint8Array(pathCodes.size);
    const codes = known === undefined ? [] : known.codes.slice();
    if (known !== undefined) groups.set(known.groups);
    for (let code = known?.groups.length ?? 0; code < pathCodes.size; code++) {
      if (!sees(callerPath, pathCodes.path(code))) continue;
      groups[code] = 1;
      codes.push(code);
    }
    if (this.#scopes.size >= this.#entriesMax) this.#scopes.clear();
    const scope: Scope = { codes, groups, lanes: ownLanes, apart: true };
    this.#scopes.set(callerPath, scope);
    return scope;
  }

  /** `own` is the scope of the path that the grant is for: as far as it knows path codes, lanes do. */
  lanesOf(grant: TypeGrant, own: Scope, pathCodes: PathCodes): Scope {
    const { lanes } = grant;
    if (lanes.length === 1 && lanes[0]!.agreement === null) return own;
    const size = own.groups.length;
    const known = this.#lanes.get(grant);
    if (known !== undefined && known.groups.length === size) return known;
    const scope = laneScope(lanes, own, pathCodes);
    this.#lanes.set(grant, scope);
    return scope;
  }
}

const ownLanes: readonly (readonly number[])[] = [[0]];

function laneScope(lanes: readonly Lane[], { groups: allowed }: Scope, pathCodes: PathCodes): Scope {
  const size = allowed.length;
  const groups = new Uint16Array(size);
  const codes: number[] = [];
  const numbers = new Map<string, number>();
  const codesByScope: number[][] = [];
  for (let code = 0; code < size; code++) {
    const path = pathCodes.path(code);
    const own: number[] = [];
    lanes.forEach((lane, i) => {
      if (lane.agreement === null ? allowed[code] === 1 : lane.covers(path)) own.push(i);
    });
    if (own.length === 0) continue;
    const key = own.join();
    let number = numbers.get(key);
    if (number === undefined) numbers.set(key, (number = codesByScope.push(own)));
    groups[code] = number;
    codes.push(code);
  }
  return { codes, groups, lanes: codesByScope, apart: codesByScope.every((each) => each.length === 1) };
}
