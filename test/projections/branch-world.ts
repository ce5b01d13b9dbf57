/** A store with branches beside lists of versions that are copied at a fork. */
import { ServiceError } from '../../src/errors.ts';
import type { TimeBounds } from '../../src/projections/access-paths.ts';
import { property } from './histories.ts';
import { Model } from './model.ts';
import { Store } from './store.ts';

export const everything: TimeBounds = { system: 'all', valid: 'all' };
const columns = { _pk: 'string', value: 'integer', valid_from: 'timestamp', valid_to: 'timestamp' } as const;

/** A branch as a list of its own: copied from its source's when it was forked. */
export interface Life {
  readonly model: Model;
  readonly source: Life | null;
  readonly fork: number;
}

export class World {
  readonly store = withGenesis(new Store());
  readonly standing = new Map<string, Life>([['main', { model: new Model(), source: null, fork: 0 }]]);
  readonly #lives: Life[] = [this.standing.get('main')!];
  #value = 0n;

  constructor() {
    const properties = { value: property('integer') };
    this.store.run({ kind: 'register-type', name: 'T', properties, primaryKey: null, graphTriggers: [] });
  }

  put(branch: string, path: string | null, rows: readonly { key: string; from: bigint | null; to: bigint | null }[]): void {
    const { position, time } = this.store;
    const valued = rows.map((row) => ({ ...row, value: this.#value++ }));
    const sent = valued.map(({ key, value, from, to }) => ({ _pk: key, value, valid_from: from, valid_to: to }));
    this.store.put('T', columns, sent, { path, branch });
    this.standing.get(branch)!.model.put(path, valued, position, time);
  }

  /** Rows without bounds, in no organisation. */
  plainly(branch: string, ...wanted: readonly string[]): void {
    this.put(
      branch,
      null,
      wanted.map((key) => ({ key, from: null, to: null })),
    );
  }

  /** `_pk` and value of what a branch reads. */
  values(branch: string, time: TimeBounds = everything): string[] {
    const rows = this.store.read('T', ['_pk', 'value'], { time }, this.store.position, branch);
    return rows.map((each) => `${String(each['_pk'])}${String(each['value'])}`);
  }

  live(branch: string): string[] {
    return this.values(branch, { system: this.store.time, valid: 'all' });
  }

  end(branch: string, path: string | null, ended: readonly string[]): void {
    const { position, time } = this.store;
    this.store.run({ kind: 'delete-rows', type: 'T', keys: ended }, path, branch);
    this.standing.get(branch)!.model.end(path, ended, position, time);
  }

  /** Reaches every branch that was ever forked from this one, by whatever they inherited of it. */
  remove(branch: string, path: string | null, removed: readonly string[]): void {
    this.store.run({ kind: 'remove-rows', type: 'T', keys: removed }, path, branch);
    const life = this.standing.get(branch)!;
    const gone = new Set(
      life.model.versions
        .filter((version) => version.path === path && removed.includes(version.key))
        .map((each) => each.position),
    );
    for (const other of this.#lives) {
      if (!descends(other, life)) continue;
      const kept = other.model.versions.filter(({ position }) => !gone.has(position));
      other.model.versions.splice(0, other.model.versions.length, ...kept);
    }
  }

  fork(name: string, source: string, shares: 'everything' | 'ontology'): void {
    const { position } = this.store;
    this.store.run({ kind: 'fork-branch', name, source, shares });
    const model = new Model();
    const from = this.standing.get(source)!;
    if (shares === 'everything') model.versions.push(...from.model.versions.map((version) => ({ ...version })));
    const life = { model, source: shares === 'everything' ? from : null, fork: position };
    this.standing.set(name, life);
    this.#lives.push(life);
  }

  drop(name: string): void {
    this.store.run({ kind: 'delete-branch', name });
    this.standing.delete(name);
  }
}

function withGenesis(store: Store): Store {
  store.append({ kind: 'genesis', logId: 'log-1', origin: 'test/log', engineVersion: 'test' });
  return store;
}

function descends(life: Life | null, from: Life): boolean {
  return life !== null && (life === from || descends(life.source, from));
}

/** Code of the refusal. */
export function code(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
  return 'nothing was refused';
}
