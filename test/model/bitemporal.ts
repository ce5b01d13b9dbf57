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
  /** What an update left uncovered, believed again: nothing new is said. */
  readonly remainder: boolean;
}

/** A row as a caller sends it. */
export interface Sent {
  readonly key: string;
  readonly validFrom: bigint | null;
  readonly validTo: bigint | null;
  readonly cells: Cells;
}

/** How rows are put, where not as they are. */
export interface How {
  /** Cells that are not sent stay. */
  readonly patch?: boolean;
  /** Nothing of the key comes after the row. */
  readonly replace?: boolean;
  readonly when?: 'absent' | 'present' | { readonly unchangedSince: bigint };
}

export interface Times {
  readonly system: 'all' | bigint;
  readonly valid: 'all' | bigint;
}

/** Rules that a canary gets wrong on purpose: a suite that does not notice one checks nothing. */
export const mistakes = [
  'closed-interval',
  'condition-is-ignored',
  'delete-is-forgotten',
  'erased-is-restored',
  'erasure-spares-branches',
  'fork-is-no-copy',
  'hold-is-ignored',
  'names-are-everybodys',
  'patch-forgets',
  'prefix-is-parent',
  'remainder-is-lost',
  'replace-is-bounded',
  'schedule-never-ends',
  'tenant-is-a-path',
  'update-leaves-open',
] as const;
export type Mistake = (typeof mistakes)[number];

export class Bitemporal {
  readonly #versions: Version[] = [];
  readonly #mistake: Mistake | null;

  constructor(mistake: Mistake | null = null) {
    this.#mistake = mistake;
  }

  /** Upserts in order, from nanosecond `time` on. Indexes of rows that were refused because they are never true, or not as asked. */
  put(path: string | null, rows: readonly Sent[], time: bigint, { patch = false, replace = false, when }: How = {}): number[] {
    const refused: number[] = [];
    let now = time;
    rows.forEach((row, index) => {
      const { key } = row;
      const validFrom = row.validFrom ?? now;
      const validTo = row.validTo ?? FOREVER;
      const live = this.#live(path, key);
      const holding = live.filter((version) => this.#holdsWithin(version, validFrom, validTo));
      if (validFrom >= validTo || !this.#isAsAsked(when, holding.length > 0, path, key)) {
        refused.push(index);
        return;
      }
      const bounded = row.validFrom !== null || row.validTo !== null;
      const believe = (from: bigint, to: bigint, cells: Cells, remainder = false): void => {
        const [systemFrom, systemTo, deletion] = [now++, FOREVER, false];
        this.#versions.push({ path, key, validFrom: from, validTo: to, systemFrom, systemTo, cells, deletion, remainder });
      };
      if (patch && holding.length > 0) {
        // Each stretch of what holds keeps its own cells; the earliest one first.
        const start = validFrom;
        for (const version of holding.toSorted((a, b) => (a.validFrom < b.validFrom ? -1 : 1))) {
          const { validFrom: from, validTo: to, cells } = version;
          version.systemTo = now;
          const begins = from > start ? from : bounded ? start : now;
          believe(
            begins,
            to < validTo ? to : validTo,
            this.#mistake === 'patch-forgets' ? row.cells : { ...cells, ...row.cells },
          );
          if (from < start) believe(from, start, cells, true);
          if (validTo < to) believe(validTo, to, cells, true);
        }
        return;
      }
      const ending = replace && this.#mistake !== 'replace-is-bounded';
      const whole = ending ? row.validFrom === null : !bounded;
      const end = ending ? FOREVER : validTo;
      const superseded = live.filter(
        (version) => whole || (version.validFrom < end && validFrom < version.validTo) || (ending && validFrom < version.validTo),
      );
      if (this.#mistake !== 'update-leaves-open') for (const version of superseded) version.systemTo = now;
      believe(validFrom, validTo, row.cells);
      if (whole || this.#mistake === 'remainder-is-lost') return;
      // What the newer statement does not cover is still believed, newest belief first.
      for (const { validFrom: from, validTo: to, cells } of superseded.toReversed()) {
        if (from < validFrom) believe(from, validFrom, cells, true);
        if (!ending && validTo < to) believe(validTo, to, cells, true);
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
          remainder: false,
        });
      }
    });
    return missing;
  }

  /** Of each version in turn: whose row it is of. */
  rows(): { readonly path: string | null; readonly key: string; readonly who: ModelCell }[] {
    return this.#versions.map(({ path, key, cells }) => ({ path, key, who: cells['who'] ?? null }));
  }

  /** Nanoseconds of all versions of a row, rising: what was written in this path itself. */
  row(path: string | null, key: string): bigint[] {
    return risingInstants(this.#versions.filter((version) => version.path === path && version.key === key));
  }

  /** Nanoseconds of all versions of a subject, rising: `who` says whose they are, in every path of the tenant. */
  ofSubject(tenant: string | null, subject: string): bigint[] {
    const isTheirs = (path: string | null): boolean =>
      this.#mistake === 'tenant-is-a-path' ? path === tenant : tenantOf(path) === tenant;
    return risingInstants(this.#versions.filter(({ path, cells }) => isTheirs(path) && cells['who'] === subject));
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
    return risingInstants(this.#versions);
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

  /** At some instant of from..to. */
  #holdsWithin({ validFrom, validTo }: Version, from: bigint, to: bigint): boolean {
    return validFrom < validTo && validFrom < to && from < validTo;
  }

  #isAsAsked(when: How['when'], holds: boolean, path: string | null, key: string): boolean {
    if (when === undefined || this.#mistake === 'condition-is-ignored') return true;
    if (when === 'absent') return !holds;
    if (when === 'present') return holds;
    const said = this.#versions.filter((each) => each.path === path && each.key === key && !each.remainder);
    return holds && said.every(({ systemFrom }) => systemFrom <= when.unchangedSince);
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

/** The first segment of a path. */
export function tenantOf(path: string | null): string | null {
  return path?.split('/')[0] ?? null;
}

function risingInstants(versions: readonly Version[]): bigint[] {
  return versions.map(({ systemFrom }) => systemFrom).toSorted((a, b) => (a < b ? -1 : 1));
}
