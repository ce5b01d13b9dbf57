/**
 * Every definition that a type ever had and from which position on: an answer of then is bound to the columns of then,
 * whatever was added or widened since. Knows on its own which branches there were and where each was forked, names that
 * were given again included.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import type { CommittedEntry, PropertyDefinition, TypeDefinition } from '../../log/entry.ts';
import { compareText } from '../../log/value.ts';
import type { CatalogReader } from '../access-paths.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';
import { builtinTypes } from './builtin-types.ts';

interface Defined {
  readonly position: number;
  readonly definition: TypeDefinition;
}

/** A branch from its fork to its deletion. `main` was forked from nothing. */
interface Life {
  readonly name: string;
  readonly source: Life | null;
  readonly fork: number;
  end: number;
  /** By type, in the order of the log. */
  readonly types: Map<string, Defined[]>;
}

const mainName = 'main';

interface SavedLife {
  readonly name: string;
  /** Index of the source among the saved lives; -1 for none. */
  readonly source: number;
  readonly fork: number;
  readonly end: number;
  readonly types: readonly (readonly [
    string,
    readonly {
      readonly position: number;
      readonly definition: Omit<TypeDefinition, 'properties'>;
      readonly properties: readonly (readonly [string, PropertyDefinition])[];
    }[],
  ])[];
}

export class CatalogHistory implements Projection {
  readonly name = 'catalog-history';
  readonly formatVersion = 1;
  #lives: Life[] = [bornMain()];

  /** The catalog of a branch as it stood below a position; undefined when no branch of that name existed there. */
  at(branch: string, position: number): CatalogReader | undefined {
    const life = this.#life(branch, position);
    return life && new CatalogThen(life, position);
  }

  apply(entry: CommittedEntry): void {
    const { body, position, context } = entry;
    if (body.kind === 'type') {
      const life = this.#life(context.branch, position);
      assert(life, 'a type is defined on a branch that exists');
      const { definition } = body;
      const own: TypeDefinition = { ...definition, properties: ownProperties(Object.entries(definition.properties)) };
      const known = life.types.get(definition.name);
      if (known === undefined) life.types.set(definition.name, [{ position, definition: own }]);
      else known.push({ position, definition: own });
      return;
    }
    if (body.kind !== 'branch') return;
    if (body.change === 'deleted') {
      const life = this.#life(body.name, position);
      assert(life && life.source !== null, 'a branch that ends exists and is not main');
      life.end = position;
      return;
    }
    const source = this.#life(body.source, position);
    assert(source, 'a branch is forked from one that exists');
    this.#lives.push({ name: body.name, source, fork: position, end: Infinity, types: new Map() });
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('lives', serialize(this.#saved()));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('lives');
    assert(bytes, 'a checkpoint of the catalog’s history has lives');
    this.#lives = [];
    for (const { name, source: from, fork, end, types } of deserialize(bytes) as SavedLife[]) {
      const defined = types.map(([type, steps]): [string, Defined[]] => [
        type,
        steps.map(({ position, definition, properties }) => ({
          position,
          definition: { ...definition, properties: ownProperties(properties) },
        })),
      ]);
      this.#lives.push({ name, source: from < 0 ? null : this.#lives[from]!, fork, end, types: new Map(defined) });
    }
  }

  reset(): void {
    this.#lives = [bornMain()];
  }

  digest(): string {
    const hash = new CanonicalHash();
    hash.value(this.#saved());
    return hash.hex();
  }

  #saved(): SavedLife[] {
    return this.#lives.map(({ name, source, fork, end, types }) => ({
      name,
      source: source === null ? -1 : this.#lives.indexOf(source),
      fork,
      end,
      types: [...types].map(([type, steps]) => [
        type,
        steps.map(({ position, definition: { properties, ...definition } }) => ({
          position,
          definition,
          properties: Object.entries(properties),
        })),
      ]),
    }));
  }

  #life(name: string, position: number): Life | undefined {
    return this.#lives.findLast((life) => life.name === name && life.fork <= position && position <= life.end);
  }
}

/** A branch's own definitions below the position over those that its source had at the fork. */
class CatalogThen implements CatalogReader {
  readonly #life: Life;
  readonly #position: number;
  #all: Map<string, TypeDefinition> | undefined;

  constructor(life: Life, position: number) {
    this.#life = life;
    this.#position = position;
  }

  get ontologyVersion(): number {
    let version = 0;
    for (const { ontologyVersion } of this.#types().values()) version = Math.max(version, ontologyVersion);
    return version;
  }

  type(name: string): TypeDefinition | undefined {
    return this.#types().get(name);
  }

  types(): readonly TypeDefinition[] {
    return [...this.#types().values()].sort((a, b) => compareText(a.name, b.name));
  }

  #types(): ReadonlyMap<string, TypeDefinition> {
    if (this.#all === undefined) {
      this.#all = new Map(builtinTypes.map((type) => [type.name, type]));
      collect(this.#life, this.#position, this.#all);
    }
    return this.#all;
  }
}

function collect(life: Life, position: number, into: Map<string, TypeDefinition>): void {
  if (life.source !== null) collect(life.source, Math.min(position, life.fork), into);
  for (const [name, steps] of life.types) {
    const last = steps.findLast((step) => step.position < position);
    if (last) into.set(name, last.definition);
  }
}

function bornMain(): Life {
  return { name: mainName, source: null, fork: 0, end: Infinity, types: new Map() };
}

/** A record without a prototype: a property called `constructor` is then absent unless it was declared. */
function ownProperties(properties: readonly (readonly [string, PropertyDefinition])[]): Record<string, PropertyDefinition> {
  const own: Record<string, PropertyDefinition> = Object.create(null);
  for (const [name, definition] of properties) own[name] = definition;
  return own;
}
