/** Numbers organisation paths with small codes, dense from 0 in order of first appearance. Code 0 is the null path. */
import type { Dictionary } from '../../../log/values/columns.ts';
import type { PathCodes } from '../../access-paths.ts';

export class OrganisationCodes implements PathCodes {
  readonly #pathsByCode: (string | null)[] = [null];
  readonly #codesByPath = new Map<string, number>();
  readonly #tenantsByCode: string[] = [];
  readonly #tenantCodes = new Map<string, number>();
  /** Tenant code of each path code; -1 for the null path. */
  readonly #tenantCodeOfPath: number[] = [-1];

  get size(): number {
    return this.#pathsByCode.length;
  }

  path(pathCode: number): string | null {
    return this.#pathsByCode[pathCode] ?? null;
  }

  codeOf(path: string | null): number {
    return path === null ? 0 : (this.#codesByPath.get(path) ?? -1);
  }

  /** Code of a path, added when new. */
  encode(path: string | null): number {
    const knownPathCode = this.codeOf(path);
    if (knownPathCode >= 0 || path === null) return knownPathCode;
    const newPathCode = this.#pathsByCode.length;
    this.#pathsByCode.push(path);
    this.#codesByPath.set(path, newPathCode);
    const tenant = path.split('/', 1)[0]!;
    let tenantCode = this.#tenantCodes.get(tenant);
    if (tenantCode === undefined) {
      tenantCode = this.#tenantsByCode.length;
      this.#tenantsByCode.push(tenant);
      this.#tenantCodes.set(tenant, tenantCode);
    }
    this.#tenantCodeOfPath.push(tenantCode);
    return newPathCode;
  }

  tenantCodeOf(pathCode: number): number {
    return this.#tenantCodeOfPath[pathCode]!;
  }

  paths(): readonly (string | null)[] {
    return this.#pathsByCode;
  }

  /** The dictionary of `namespace_path`: codes are path codes. Code 0 never occurs in a cell that is not null. */
  readonly pathDictionary: Dictionary = pathDictionaryOf(
    () => this.#pathsByCode.length,
    (code) => this.#pathsByCode[code] ?? '',
    (text) => this.#codesByPath.get(text) ?? -1,
  );

  /** The dictionary of `tenant_id`: first segments of paths. */
  readonly tenantDictionary: Dictionary = pathDictionaryOf(
    () => this.#tenantsByCode.length,
    (code) => this.#tenantsByCode[code]!,
    (text) => this.#tenantCodes.get(text) ?? -1,
  );
}

function pathDictionaryOf(codeCount: () => number, text: (code: number) => string, codeOf: (text: string) => number): Dictionary {
  return {
    get size() {
      return codeCount();
    },
    text,
    codeOf,
  };
}
