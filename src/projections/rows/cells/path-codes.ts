/** Numbers organisation paths with small codes, dense from 0 in order of first appearance. Code 0 is the null path. */
import type { Dictionary } from '../../../log/values/columns.ts';
import type { PathCodes } from '../../access-paths.ts';

export class OrganisationCodes implements PathCodes {
  readonly #paths: (string | null)[] = [null];
  readonly #codes = new Map<string, number>();
  readonly #tenants: string[] = [];
  readonly #tenantCodes = new Map<string, number>();
  /** Tenant code of each path code; -1 for the null path. */
  readonly #tenantOf: number[] = [-1];

  get size(): number {
    return this.#paths.length;
  }

  path(code: number): string | null {
    return this.#paths[code] ?? null;
  }

  codeOf(path: string | null): number {
    return path === null ? 0 : (this.#codes.get(path) ?? -1);
  }

  /** Code of a path, added when new. */
  encode(path: string | null): number {
    const known = this.codeOf(path);
    if (known >= 0 || path === null) return known;
    const code = this.#paths.length;
    this.#paths.push(path);
    this.#codes.set(path, code);
    const tenant = path.split('/', 1)[0]!;
    let tenantCode = this.#tenantCodes.get(tenant);
    if (tenantCode === undefined) {
      tenantCode = this.#tenants.length;
      this.#tenants.push(tenant);
      this.#tenantCodes.set(tenant, tenantCode);
    }
    this.#tenantOf.push(tenantCode);
    return code;
  }

  tenantCodeOf(code: number): number {
    return this.#tenantOf[code]!;
  }

  paths(): readonly (string | null)[] {
    return this.#paths;
  }

  /** The dictionary of `namespace_path`: codes are path codes. Code 0 never occurs in a cell that is not null. */
  readonly pathDictionary: Dictionary = dictionaryOf(
    () => this.#paths.length,
    (code) => this.#paths[code] ?? '',
    (text) => this.#codes.get(text) ?? -1,
  );

  /** The dictionary of `tenant_id`: first segments of paths. */
  readonly tenantDictionary: Dictionary = dictionaryOf(
    () => this.#tenants.length,
    (code) => this.#tenants[code]!,
    (text) => this.#tenantCodes.get(text) ?? -1,
  );
}

function dictionaryOf(size: () => number, text: (code: number) => string, codeOf: (text: string) => number): Dictionary {
  return {
    get size() {
      return size();
    },
    text,
    codeOf,
  };
}
