/**
 * Every definition that a type ever had and from which position on: an answer of then is bound to the columns of then,
 * whatever was added or widened since. Knows on its own which branches there were and where each was forked, names that
 * were given again included.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { type CommittedEntry, type PropertyDefinition, scopeOfName, type TypeDefinition } from '../../log/entries/entry.ts';
import { compareText } from '../../log/values/value.ts';
import type { CatalogReader } from '../access-paths.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';
import { builtinTypes } from './builtin-types.ts';
import { ownDefinition } from './own-definition.ts';

interface Defined {
  readonly position: number;
  /** The tenant that owns the name; null: every tenant inherits it. */
  readonly tenant: string | null;
  readonly definition: TypeDefinition;
}

/** A branch from its fork to its deletion. `main` was forked from nothing. */
interface Life {
  readonly name: string;
  /** The tenant that owns the name; null: the store. */
  readonly tenant: string | null;
  readonly source: Life | null;
  readonly fork: number;
  end: number;
  /** By name, in the order of the log, of all tenants. */
  readonly types: Map<string, Defined[]>;
}

const mainName = 'main';

interface SavedLife {
  readonly name: string;
  /** Absent: the store's. */
  readonly tenant?: string;
  /** Index of the source among the saved lives; -1 for none. */
  readonly source: number;
  readonly fork: number;
  readonly end: number;
  readonly types: readonly (readonly [
    string,
    readonly {
      readonly position: number;
      /** Absent: everybody inherits it. */
      readonly tenant?: string;
      readonly definition: Omit<TypeDefinition, 'properties'>;
      readonly properties: readonly (readonly [string, PropertyDefinition])[];
    }[],
  ])[];
}

interface StandingLife extends Omit<Life, 'source' | 'types'> {
  readonly source: number;
  readonly types: readonly (readonly [string, readonly Defined[]])[];
}

export class CatalogHistory implements Projection {
  readonly name = 'catalog-history';
  readonly formatVersion = 2;
  #lives: Life[] = [bornMain()];

  /**
   * A tenant's catalog of the branch with this fork as it stood below a position; undefined when there was no such branch
   * there.
   */
  catalogAt(branch: number, position: number, tenant: string | null): CatalogReader | undefined {
    const life = this.#lives.find(({ fork }) => fork === branch);
    return life && life.fork <= position && position <= life.end ? new CatalogThen(life, position, tenant) : undefined;
  }

  apply(entry: CommittedEntry): void {
    const { body, position, context } = entry;
    if (body.kind === 'type') {
      const life = this.#life(context.branch, context.tenant, position);
      assert(life, 'a type is defined on a branch that exists');
      const { definition } = body;
      const own = ownDefinition(definition, Object.entries(definition.properties));
      const defined = { position, tenant: scopeOfName(entry, body), definition: own };
      const known = life.types.get(definition.name);
      if (known === undefined) life.types.set(definition.name, [defined]);
      else known.push(defined);
      return;
    }
    if (body.kind === 'tenant' && body.change === 'purged') return this.#forget(body.tenant.id);
    if (body.kind !== 'branch') return;
    if (body.change === 'deleted') {
      const life = this.#own(body.name, scopeOfName(entry, body), position);
      assert(life && life.source !== null, 'a branch that ends exists and is not main');
      life.end = position;
      return;
    }
    const source = this.#life(body.source, context.tenant, position);
    assert(source, 'a branch is forked from one that exists');
    const tenant = scopeOfName(entry, body);
    this.#lives.push({ name: body.name, tenant, source, fork: position, end: Infinity, types: new Map() });
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    const lives = this.#lives.map((life) => this.#lifeOf(life));
    target.section('lives', () => serialize(lives.map(savedLife)));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('lives');
    assert(bytes, 'a checkpoint of the catalog’s history has lives');
    this.#lives = [];
    for (const { name, tenant = null, source: from, fork, end, types } of deserialize(bytes) as SavedLife[]) {
      const defined = types.map(([type, steps]): [string, Defined[]] => [
        type,
        steps.map(({ position, tenant = null, definition, properties }) => ({
          position,
          tenant,
          definition: ownDefinition(definition, properties),
        })),
      ]);
      this.#lives.push({ name, tenant, source: from < 0 ? null : this.#lives[from]!, fork, end, types: new Map(defined) });
    }
  }

  reset(): void {
    this.#lives = [bornMain()];
  }

  digest(): string {
    const hash = new CanonicalHash();
    hash.value(this.#lives.map((life) => savedLife(this.#lifeOf(life))));
    return hash.hex();
  }

  /** A life as it is now, with lists of its own: definitions never change. */
  #lifeOf({ source, types, ...life }: Life): StandingLife {
    return {
      ...life,
      source: source === null ? -1 : this.#lives.indexOf(source),
      types: [...types].map(([type, steps]) => [type, [...steps]]),
    };
  }

  /** Drops the history of a purged tenant: none of its recipes can be replayed. */
  #forget(tenant: string): void {
    for (const { types } of this.#lives) {
      for (const [name, steps] of types) {
        const remainingSteps = steps.filter((step) => step.tenant !== tenant);
        if (remainingSteps.length === 0) types.delete(name);
        else types.set(name, remainingSteps);
      }
    }
  }

  /** The branch that a name meant to a tenant. */
  #life(name: string, tenant: string | null, position: number): Life | undefined {
    return (tenant === null ? undefined : this.#own(name, tenant, position)) ?? this.#own(name, null, position);
  }

  #own(name: string, tenant: string | null, position: number): Life | undefined {
    return this.#lives.findLast(
      (life) => life.name === name && life.tenant === tenant && life.fork <= position && position <= life.end,
    );
  }
}

/** A branch's own definitions below the position over those that its source had at the fork. */
class CatalogThen implements CatalogReader {
  readonly #life: Life;
  readonly #position: number;
  readonly #tenant: string | null;
  #all: TypesThen | undefined;

  constructor(life: Life, position: number, tenant: string | null) {
    this.#life = life;
    this.#position = position;
    this.#tenant = tenant;
  }

  get ontologyVersion(): number {
    const { own, store } = this.#types();
    const last = own.steps.reduce(
      (latest: Defined | null, step) => (latest && latest.position > step.position ? latest : step),
      null,
    );
    if (last === null) return store.steps.length;
    return last.definition.ontologyVersion + store.steps.filter(({ position }) => position > last.position).length;
  }

  type(name: string): TypeDefinition | undefined {
    const { own, store } = this.#types();
    return own.types.get(name) ?? store.types.get(name);
  }

  isOwn(name: string): boolean {
    const { own, store } = this.#types();
    return (this.#tenant === null ? store : own).types.has(name);
  }

  types(): readonly TypeDefinition[] {
    const { own, store } = this.#types();
    return [...new Map([...store.types, ...own.types]).values()].sort((a, b) => compareText(a.name, b.name));
  }

  #types(): TypesThen {
    if (this.#all === undefined) {
      this.#all = {
        store: { types: new Map(builtinTypes.map((type) => [type.name, type])), steps: [] },
        own: { types: new Map(), steps: [] },
      };
      collect(this.#life, this.#position, null, this.#all.store);
      if (this.#tenant !== null) collect(this.#life, this.#position, this.#tenant, this.#all.own);
    }
    return this.#all;
  }
}

/** The definitions of one scope at a position, and the steps to them, name after name. */
interface ScopeThen {
  readonly types: Map<string, TypeDefinition>;
  readonly steps: Defined[];
}

interface TypesThen {
  readonly store: ScopeThen;
  readonly own: ScopeThen;
}

function collect(life: Life, position: number, of: string | null, into: ScopeThen): void {
  if (life.source !== null) collect(life.source, Math.min(position, life.fork), of, into);
  for (const [name, steps] of life.types) {
    const earlierSteps = steps.filter((step) => step.position < position && step.tenant === of);
    into.steps.push(...earlierSteps);
    if (earlierSteps.length > 0) into.types.set(name, earlierSteps.at(-1)!.definition);
  }
}

function bornMain(): Life {
  return { name: mainName, tenant: null, source: null, fork: 0, end: Infinity, types: new Map() };
}

function savedLife({ name, tenant, source, fork, end, types }: StandingLife): SavedLife {
  return {
    name,
    ...(tenant !== null && { tenant }),
    source,
    fork,
    end,
    types: types.map(([type, steps]) => [
      type,
      steps.map(({ position, tenant, definition: { properties, ...definition } }) => ({
        position,
        ...(tenant !== null && { tenant }),
        definition,
        properties: Object.entries(properties),
      })),
    ]),
  };
}
