/**
 * Branches as array copies: a fork is all that its source believed, and from then on they have nothing to do with each other
 * but what is forgotten. A version is the same one wherever it was copied to, and goes by its nanosecond. Beside them: what
 * is kept, and until when.
 */
import { Bitemporal, type Mistake, tenantOf } from './bitemporal.ts';
import { Things } from './things.ts';

/** The name that tenants give to a branch of their own. */
export const ownBranch = 'own';

interface Life {
  readonly name: string;
  readonly model: Bitemporal;
  readonly things: Things;
  /** Whose versions it was made of; null for main, and where only types were forked. */
  readonly source: Life | null;
}

/** A schedule or a hold on a row of one branch. */
interface Kept {
  readonly id: string;
  /** Nanosecond from which on the row may go; null: a hold. */
  readonly until: bigint | null;
  readonly life: Life;
  readonly path: string | null;
  readonly key: string;
  /** The row's newest version when it was asked for: with this one it ends. */
  readonly version: bigint;
}

/** Why a key of a command was refused. */
export interface Refusal {
  readonly index: number;
  /** Ids of the holds on the row; empty where there is none. */
  readonly holds: readonly string[];
}

export class Branched {
  readonly #standing = new Map<string, Life>();
  /** By tenant. */
  readonly #owned = new Map<string | null, Life>();
  readonly #lives: Life[] = [];
  readonly #kept = new Map<string, Kept>();
  readonly #mistake: Mistake | null;
  readonly hasSubjects: boolean;
  /** Whether a branch was ever dropped: what it wrote may lie in the store unread. */
  hasDropped = false;

  /** Without subjects `who` is a cell like others. */
  constructor(mistake: Mistake | null = null, hasSubjects = true, main = new Bitemporal(mistake), things = new Things(mistake)) {
    this.#mistake = mistake;
    this.hasSubjects = hasSubjects;
    this.#add('main', main, things, null);
  }

  /** Main first, then in the order in which they were forked. */
  names(): string[] {
    return [...this.#standing.keys()];
  }

  /** Tenants that have a branch of their own. */
  owners(): (string | null)[] {
    return [...this.#owned.keys()];
  }

  visibleTo(path: string | null): string[] {
    return [...this.names(), ...(this.#owned.has(tenantOf(path)) ? [ownBranch] : [])];
  }

  on(branch: string, path: string | null = null): Bitemporal {
    return this.#lifeOf(branch, path).model;
  }

  things(branch: string, path: string | null): Things {
    return this.#lifeOf(branch, path).things;
  }

  /** Of a tenant, or of the store. */
  fork(name: string, source: string, shares: 'everything' | 'ontology', tenant: string | null = null): void {
    const from = this.#standing.get(source)!;
    const isCopy = shares === 'everything';
    const model = isCopy ? from.model.copy() : new Bitemporal(this.#mistake);
    this.#add(name, model, from.things.copy(shares), isCopy ? from : null, tenant);
  }

  dropOwn(tenant: string): void {
    this.#owned.delete(tenant);
    this.hasDropped = true;
  }

  /** Ids of the holds of the branch, which stays for their sake; nothing else of it is kept any longer. */
  drop(name: string): string[] {
    const life = this.#standing.get(name)!;
    const own = [...this.#kept.values()].filter((kept) => kept.life === life);
    const holds = own.filter(({ until }) => until === null).map(({ id }) => id);
    if (holds.length > 0 && this.#mistake !== 'hold-is-ignored') return holds;
    for (const { id } of own) this.#kept.delete(id);
    this.#standing.delete(name);
    this.hasDropped = true;
    return [];
  }

  /** Hard delete: as if the keys had never been written, on the branch and on every one below it. */
  remove(branch: string, path: string | null, keys: readonly string[]): Refusal[] {
    const life = this.#standing.get(branch)!;
    const refusals: Refusal[] = [];
    const going: bigint[] = [];
    keys.forEach((key, index) => {
      const versions = life.model.row(path, key);
      const holds = this.holdsOn(versions);
      if (versions.length === 0 || holds.length > 0) refusals.push({ index, holds });
      else going.push(...versions);
    });
    this.#take(life, going);
    return refusals;
  }

  /** False where there is no such row. */
  keep(id: string, branch: string, path: string | null, key: string, until: bigint | null): boolean {
    const life = this.#standing.get(branch)!;
    const version = life.model.row(path, key).at(-1);
    if (version === undefined) return false;
    this.#kept.set(id, { id, until, life, path, key, version });
    return true;
  }

  /** False where no schedule or hold of the id is in force on a row of this path of the branch. */
  release(id: string, branch: string, path: string | null): boolean {
    const kept = this.#kept.get(id);
    if (kept === undefined || kept.path !== path || kept.life !== this.#standing.get(branch)) return false;
    return this.#kept.delete(id);
  }

  /** Where what is kept under an id lies; undefined where it is not in force. */
  placeOf(id: string): { readonly branch: string; readonly path: string | null } | undefined {
    const kept = this.#kept.get(id);
    return kept && { branch: kept.life.name, path: kept.path };
  }

  /** Ids of the holds on rows that have one of these versions, on whichever branch. */
  holdsOn(versions: readonly bigint[]): string[] {
    if (this.#mistake === 'hold-is-ignored') return [];
    const asked = new Set(versions);
    const held = [...this.#kept.values()].filter(({ until }) => until === null);
    return held.filter((kept) => this.#rowOf(kept).some((version) => asked.has(version))).map(({ id }) => id);
  }

  /** What is over goes, the longest over first, but what is held. How many rows that were. */
  expire(now: bigint): number {
    if (this.#mistake === 'schedule-never-ends') return 0;
    const due = [...this.#kept.values()].filter(({ until }) => until !== null && until <= now);
    due.sort((a, b) => (a.until === b.until ? (a.id < b.id ? -1 : 1) : a.until! < b.until! ? -1 : 1));
    let gone = 0;
    for (const kept of due) {
      const versions = this.#rowOf(kept);
      if (!this.#kept.has(kept.id) || versions.length === 0 || this.holdsOn(versions).length > 0) continue;
      this.#take(kept.life, versions);
      gone++;
    }
    return gone;
  }

  /** Nanoseconds of all versions of a subject that some branch reads. */
  ofSubject(tenant: string | null, subject: string): bigint[] {
    const lives = this.hasSubjects ? [...this.#standing.values(), ...this.#owned.values()] : [];
    return [...new Set(lives.flatMap(({ model }) => model.ofSubject(tenant, subject)))];
  }

  /** As if the subject had never been written, on any branch; what was kept of it is not any longer. */
  erase(tenant: string | null, subject: string): void {
    const lives = this.#mistake === 'erasure-spares-branches' ? this.#lives.slice(0, 1) : this.#lives;
    for (const { model } of lives) {
      const going = new Set(model.ofSubject(tenant, subject));
      model.forget(going);
      for (const { id, version } of this.#kept.values()) if (going.has(version)) this.#kept.delete(id);
    }
  }

  /** A copy of before, opened with the keys of now: rows of who was erased since can't be read, and nothing else changed. */
  withoutKeysOf(erased: readonly { readonly tenant: string | null; readonly subject: string }[]): Branched {
    const copy = this.copy();
    if (this.#mistake === 'erased-is-restored') return copy;
    for (const { model } of copy.#lives) {
      for (const { tenant, subject } of erased) model.forget(new Set(model.ofSubject(tenant, subject)));
    }
    return copy;
  }

  copy(): Branched {
    const [main, ...others] = this.#lives;
    const copy = new Branched(this.#mistake, this.hasSubjects, main!.model.copy(), main!.things.copy());
    const copies = new Map<Life | null, Life | null>([
      [null, null],
      [main!, copy.#lives[0]!],
    ]);
    for (const life of others)
      copies.set(life, copy.#add(life.name, life.model.copy(), life.things.copy(), copies.get(life.source)!));
    copy.#standing.clear();
    for (const [name, life] of this.#standing) copy.#standing.set(name, copies.get(life)!);
    for (const [tenant, life] of this.#owned) copy.#owned.set(tenant, copies.get(life)!);
    for (const [id, kept] of this.#kept) copy.#kept.set(id, { ...kept, life: copies.get(kept.life)! });
    copy.hasDropped = this.hasDropped;
    return copy;
  }

  /** None where the version that it was asked for at can't be read. */
  #rowOf({ life, path, key, version }: Kept): bigint[] {
    const versions = life.model.row(path, key);
    return versions.includes(version) ? versions : [];
  }

  /** From a branch and from all that was copied of it below, branches that were dropped in between or not. */
  #take(life: Life, versions: readonly bigint[]): void {
    const gone = new Set(versions);
    const below = (each: Life | null): boolean => each !== null && (each === life || below(each.source));
    for (const each of this.#lives) if (below(each)) each.model.forget(gone);
    for (const kept of this.#kept.values()) if (below(kept.life) && gone.has(kept.version)) this.#kept.delete(kept.id);
  }

  #lifeOf(branch: string, path: string | null): Life {
    return branch === ownBranch ? this.#owned.get(tenantOf(path))! : this.#standing.get(branch)!;
  }

  #add(name: string, model: Bitemporal, things: Things, source: Life | null, tenant: string | null = null): Life {
    const life = { name, model, things, source };
    if (tenant === null) this.#standing.set(name, life);
    else this.#owned.set(tenant, life);
    this.#lives.push(life);
    return life;
  }
}
