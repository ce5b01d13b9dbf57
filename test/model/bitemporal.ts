/**
 * What a bi-temporal store must answer, written straight from the rules and as slowly as they read: one array of
 * versions in the order in which they were believed, every question a scan of all of it. No index, no layout, nothing
 * shared with the product. Time is given from outside: the model is told at which nanosecond a write was placed.
 */
export const FOREVER = 9_223_372_036_854_775_807n;

export type ModelCell = null | string | bigint | number;
export type Cells = Readonly<Record<string, ModelCell>>;

export interface Version {
  readonly path: string | null;
  readonly key: string;
  readonly validFrom: bigint;
  readonly validTo: bigint;
  readonly systemFrom: bigint;
  systemTo: bigint;
  readonly cells: Cells;
  /** It says that its key stopped being true: nothing is left in it to delete. */
  readonly deletion: boolean;
}

/** A row as a caller sends it. */
export interface Sent {
  readonly key: string;
  readonly validFrom: bigint | null;
  readonly validTo: bigint | null;
  readonly cells: Cells;
}

export interface Times {
  readonly system: 'all' | bigint;
  readonly valid: 'all' | bigint;
}

/** Rules that a canary gets wrong on purpose: a suite that does not notice one checks nothing. */
export const mistakes = [
  'closed-interval',
  'delete-is-forgotten',
  'fork-is-no-copy',
  'prefix-is-parent',
  'remainder-is-lost',
  'update-leaves-open',
] as const;
export type Mistake = (typeof mistakes)[number];

export class Bitemporal {
  readonly #versions: Version[] = [];
  readonly #mistake: Mistake | null;

  constructor(mistake: Mistake | null = null) {
    this.#mistake = mistake;
  }

  /** Upserts in order, from nanosecond `time` on. Indexes of rows that were refused because they are never true. */
  put(path: string | null, rows: readonly Sent[], time: bigint): number[] {
    const refused: number[] = [];
    let now = time;
    rows.forEach((row, index) => {
      const validFrom = row.validFrom ?? now;
      const validTo = row.validTo ?? FOREVER;
      if (validFrom >= validTo) {
        refused.push(index);
        return;
      }
      const bounded = row.validFrom !== null || row.validTo !== null;
      const live = this.#live(path, row.key);
      const superseded = live.filter((version) => !bounded || (version.validFrom < validTo && validFrom < version.validTo));
      if (this.#mistake !== 'update-leaves-open') for (const version of superseded) version.systemTo = now;
      const believe = (from: bigint, to: bigint, cells: Cells, deletion = false): void => {
        this.#versions.push({
          path,
          key: row.key,
          validFrom: from,
          validTo: to,
          systemFrom: now++,
          systemTo: FOREVER,
          cells,
          deletion,
        });
      };
      believe(validFrom, validTo, row.cells);
      if (!bounded || this.#mistake === 'remainder-is-lost') return;
      // What the newer statement does not cover is still believed, newest belief first.
      for (const { validFrom: from, validTo: to, cells } of superseded.toReversed()) {
        if (from < validFrom) believe(from, validFrom, cells);
        if (validTo < to) believe(validTo, to, cells);
      }
    });
    return refused;
  }

  /** Every live version of the keys stops being true now, and stays in the store. Indexes of keys that had none. */
  delete(path: string | null, keys: readonly string[], time: bigint): number[] {
    const missing: number[] = [];
    let now = time;
    keys.forEach((key, index) => {
      const live = this.#live(path, key).filter(({ deletion }) => !deletion);
      if (live.length === 0) missing.push(index);
      for (const version of live.toReversed()) {
        const { validFrom, validTo, cells } = version;
        const until = validTo < now ? validTo : now;
        if (this.#mistake !== 'delete-is-forgotten') version.systemTo = now;
        this.#versions.push({
          path,
          key,
          validFrom,
          validTo: until < validFrom ? validFrom : until,
          systemFrom: now++,
          systemTo: FOREVER,
          cells,
          deletion: true,
        });
      }
    });
    return missing;
  }

  /** Hard delete: as if the keys had never been written. Indexes of keys that were not there. */
  remove(path: string | null, keys: readonly string[]): number[] {
    const missing: number[] = [];
    keys.forEach((key, index) => {
      const before = this.#versions.length;
      for (let i = before - 1; i >= 0; i--) {
        const version = this.#versions[i]!;
        if (version.path === path && version.key === key) this.#versions.splice(i, 1);
      }
      if (this.#versions.length === before) missing.push(index);
    });
    return missing;
  }

  /** What a caller of this organisation path sees, in the order of system_from. */
  read(path: string | null, times: Times): Version[] {
    return this.#versions
      .filter((version) => this.#sees(path, version.path))
      .filter(({ systemFrom, systemTo }) => this.#covers(systemFrom, systemTo, times.system))
      .filter(({ validFrom, validTo }) => this.#covers(validFrom, validTo, times.valid))
      .toSorted((a, b) => (a.systemFrom < b.systemFrom ? -1 : 1));
  }

  /** Nanoseconds at which something was believed, rising. */
  instants(): bigint[] {
    return this.#versions.map(({ systemFrom }) => systemFrom).toSorted((a, b) => (a < b ? -1 : 1));
  }

  copy(): Bitemporal {
    const copy = new Bitemporal(this.#mistake);
    for (const version of this.#versions) copy.#versions.push(this.#mistake === 'fork-is-no-copy' ? version : { ...version });
    return copy;
  }

  /** As if what was believed from these nanoseconds on had never been written. */
  forget(instants: ReadonlySet<bigint>): void {
    for (let i = this.#versions.length - 1; i >= 0; i--) {
      if (instants.has(this.#versions[i]!.systemFrom)) this.#versions.splice(i, 1);
    }
  }

  #live(path: string | null, key: string): Version[] {
    return this.#versions
      .filter((version) => version.path === path && version.key === key && version.systemTo === FOREVER)
      .toSorted((a, b) => (a.systemFrom < b.systemFrom ? -1 : 1));
  }

  /** A path and what lies below it, segment by segment; without a path, what has none. */
  #sees(path: string | null, of: string | null): boolean {
    if (path === null || of === null) return path === of;
    if (this.#mistake === 'prefix-is-parent') return of.startsWith(path);
    const [mine, theirs] = [path.split('/'), of.split('/')];
    return mine.every((segment, i) => theirs[i] === segment);
  }

  /** from <= at < to. */
  #covers(from: bigint, to: bigint, at: 'all' | bigint): boolean {
    if (at === 'all') return true;
    return from <= at && (at < to || (this.#mistake === 'closed-interval' && at === to));
  }
}

interface Life {
  readonly model: Bitemporal;
  /** Whose versions it was made of; null for main, and where only types were forked. */
  readonly source: Life | null;
}

/** Branches as array copies: a fork is all that its source believed, and from then on they have nothing to do with each other. */
export class Branched {
  readonly #standing = new Map<string, Life>();
  readonly #lives: Life[] = [];
  readonly #mistake: Mistake | null;

  constructor(mistake: Mistake | null = null) {
    this.#mistake = mistake;
    this.#add('main', { model: new Bitemporal(mistake), source: null });
  }

  /** Main first, then in the order in which they were forked. */
  names(): string[] {
    return [...this.#standing.keys()];
  }

  on(branch: string): Bitemporal {
    return this.#standing.get(branch)!.model;
  }

  fork(name: string, source: string, shares: 'everything' | 'ontology'): void {
    const from = this.#standing.get(source)!;
    if (shares === 'everything') this.#add(name, { model: from.model.copy(), source: from });
    else this.#add(name, { model: new Bitemporal(this.#mistake), source: null });
  }

  drop(name: string): void {
    this.#standing.delete(name);
  }

  /** A hard delete reaches what was copied to every branch below this one, deleted ones in between or not. */
  remove(branch: string, path: string | null, keys: readonly string[]): number[] {
    const life = this.#standing.get(branch)!;
    const all = life.model.read(path, { system: 'all', valid: 'all' });
    const gone = new Set(all.filter((each) => each.path === path && keys.includes(each.key)).map((each) => each.systemFrom));
    const missing = life.model.remove(path, keys);
    const below = (each: Life | null): boolean => each !== null && (each === life || below(each.source));
    for (const each of this.#lives) if (below(each)) each.model.forget(gone);
    return missing;
  }

  #add(name: string, life: Life): void {
    this.#standing.set(name, life);
    this.#lives.push(life);
  }
}
