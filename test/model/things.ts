/**
 * One name of a type, `Thing`, on one branch: what each tenant means by it, what the store means, and the rows of all. A tenant
 * that defined the name itself means its own definition, and any other the store's.
 */
import { Bitemporal, type Mistake, tenantOf } from './bitemporal.ts';

export type Columns = Readonly<Record<string, 'string' | 'integer'>>;

interface Defined {
  readonly columns: Columns;
  readonly changes: number;
}

export class Things {
  readonly rows: Bitemporal;
  readonly #defined: Map<string | null, Defined>;
  readonly #mistake: Mistake | null;

  constructor(mistake: Mistake | null, rows = new Bitemporal(mistake), defined: ReadonlyMap<string | null, Defined> = new Map()) {
    this.#mistake = mistake;
    this.rows = rows;
    this.#defined = new Map(defined);
  }

  /** Undefined where the path's tenant means nothing by the name. */
  columns(path: string | null): Columns | undefined {
    return (this.#defined.get(this.#scope(path)) ?? this.#defined.get(null))?.columns;
  }

  /** Changes that the path's tenant sees. */
  changes(path: string | null): number {
    const scope = this.#scope(path);
    const own = scope === null ? 0 : (this.#defined.get(scope)?.changes ?? 0);
    return own + (this.#defined.get(null)?.changes ?? 0);
  }

  /** Undefined where it is refused; whether it changed anything. */
  register(path: string | null, columns: Columns): boolean | undefined {
    const known = this.columns(path);
    if (known !== undefined) {
      if (isSame(known, columns)) return false;
      if (this.#defined.has(this.#scope(path)) || this.#wasWritten(path)) return undefined;
    }
    this.#define(path, columns);
    return true;
  }

  /** A column more; of the tenant's own definition from then on. */
  evolve(path: string | null, column: string, type: Columns[string]): boolean | undefined {
    const known = this.columns(path);
    if (known === undefined || (known[column] !== undefined && known[column] !== type)) return undefined;
    if (known[column] === type) return false;
    this.#define(path, { ...known, [column]: type });
    return true;
  }

  /** What a fork starts with: all of it, or the types alone. */
  copy(shares: 'everything' | 'ontology' = 'everything'): Things {
    const rows = shares === 'everything' ? this.rows.copy() : new Bitemporal(this.#mistake);
    return new Things(this.#mistake, rows, this.#defined);
  }

  #define(path: string | null, columns: Columns): void {
    const scope = this.#scope(path);
    this.#defined.set(scope, { columns, changes: (this.#defined.get(scope)?.changes ?? 0) + 1 });
  }

  #wasWritten(path: string | null): boolean {
    return this.rows.rows().some((row) => tenantOf(row.path) === tenantOf(path));
  }

  #scope(path: string | null): string | null {
    return this.#mistake === 'names-are-everybodys' ? null : tenantOf(path);
  }
}

function isSame(a: Columns, b: Columns): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}
