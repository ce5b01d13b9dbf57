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

interface DefinedType {
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
  readonly types: Map<string, DefinedType[]>;
}

const mainBranchName = 'main';

interface SavedBranchLife {
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

interface BranchLife extends Omit<Life, 'source' | 'types'> {
  readonly source: number;
  readonly types: readonly (readonly [string, readonly DefinedType[]])[];
}

export class CatalogHistory implements Projection {
  readonly name = 'catalog-history';
  readonly formatVersion = 2;
  #branchLives: Life[] = [mainBranchLife()];

  /**
   * A tenant's catalog of the branch with this fork as it stood below a position; undefined when there was no such branch
   * there.
   */
  catalogAt(branch: number, position: number, tenant: string | null): CatalogReader | undefined {
    const branchLife = this.#branchLives.find(({ fork }) => fork === branch);
    return branchLife && branchLife.fork <= position && position <= branchLife.end
      ? new CatalogThen(branchLife, position, tenant)
      : undefined;
  }

  apply(catalogEntry: CommittedEntry): void {
    const { body: catalogBody, position, context } = catalogEntry;
    if (catalogBody.kind === 'type') {
      const branchLife = this.#branchLifeAt(context.branch, context.tenant, position);
      assert(branchLife, 'a type is defined on a branch that exists');
      const { definition } = catalogBody;
      const typeDefinition = ownDefinition(definition, Object.entries(definition.properties));
      const definedStep = { position, tenant: scopeOfName(catalogEntry, catalogBody), definition: typeDefinition };
      const typeSteps = branchLife.types.get(definition.name);
      if (typeSteps === undefined) branchLife.types.set(definition.name, [definedStep]);
      else typeSteps.push(definedStep);
      return;
    }
    if (catalogBody.kind === 'tenant' && catalogBody.change === 'purged') return this.#forgetTenantTypes(catalogBody.tenant.id);
    if (catalogBody.kind !== 'branch') return;
    if (catalogBody.change === 'deleted') {
      const branchLife = this.#scopedLifeAt(catalogBody.name, scopeOfName(catalogEntry, catalogBody), position);
      assert(branchLife && branchLife.source !== null, 'a branch that ends exists and is not main');
      branchLife.end = position;
      return;
    }
    const sourceLife = this.#branchLifeAt(catalogBody.source, context.tenant, position);
    assert(sourceLife, 'a branch is forked from one that exists');
    const tenant = scopeOfName(catalogEntry, catalogBody);
    this.#branchLives.push({
      name: catalogBody.name,
      tenant,
      source: sourceLife,
      fork: position,
      end: Infinity,
      types: new Map(),
    });
  }

  async checkpoint(historyCheckpoint: CheckpointWriter): Promise<void> {
    const standingLives = this.#branchLives.map((life) => this.#lifeOf(life));
    historyCheckpoint.section('lives', () => serialize(standingLives.map(savedLife)));
  }

  async restore(historyCheckpoint: CheckpointReader): Promise<void> {
    const livesBytes = historyCheckpoint.section('lives');
    assert(livesBytes, 'a checkpoint of the catalog’s history has lives');
    this.#branchLives = [];
    for (const { name, tenant = null, source: sourceLifeIndex, fork, end, types } of deserialize(
      livesBytes,
    ) as SavedBranchLife[]) {
      const typeSteps = types.map(([type, steps]): [string, DefinedType[]] => [
        type,
        steps.map(({ position, tenant = null, definition, properties }) => ({
          position,
          tenant,
          definition: ownDefinition(definition, properties),
        })),
      ]);
      this.#branchLives.push({
        name,
        tenant,
        source: sourceLifeIndex < 0 ? null : this.#branchLives[sourceLifeIndex]!,
        fork,
        end,
        types: new Map(typeSteps),
      });
    }
  }

  reset(): void {
    this.#branchLives = [mainBranchLife()];
  }

  digest(): string {
    const historyHash = new CanonicalHash();
    historyHash.value(this.#branchLives.map((life) => savedLife(this.#lifeOf(life))));
    return historyHash.hex();
  }

  /** A life as it is now, with lists of its own: definitions never change. */
  #lifeOf({ source, types, ...life }: Life): BranchLife {
    return {
      ...life,
      source: source === null ? -1 : this.#branchLives.indexOf(source),
      types: [...types].map(([type, steps]) => [type, [...steps]]),
    };
  }

  /** Drops the history of a purged tenant: none of its recipes can be replayed. */
  #forgetTenantTypes(tenant: string): void {
    for (const { types } of this.#branchLives) {
      for (const [name, typeSteps] of types) {
        const remainingSteps = typeSteps.filter((typeStep) => typeStep.tenant !== tenant);
        if (remainingSteps.length === 0) types.delete(name);
        else types.set(name, remainingSteps);
      }
    }
  }

  /** The branch that a name meant to a tenant. */
  #branchLifeAt(branchName: string, tenant: string | null, position: number): Life | undefined {
    return (
      (tenant === null ? undefined : this.#scopedLifeAt(branchName, tenant, position)) ??
      this.#scopedLifeAt(branchName, null, position)
    );
  }

  #scopedLifeAt(branchName: string, tenant: string | null, position: number): Life | undefined {
    return this.#branchLives.findLast(
      (branchLife) =>
        branchLife.name === branchName &&
        branchLife.tenant === tenant &&
        branchLife.fork <= position &&
        position <= branchLife.end,
    );
  }
}

/** A branch's own definitions below the position over those that its source had at the fork. */
class CatalogThen implements CatalogReader {
  readonly #branchLife: Life;
  readonly #catalogPosition: number;
  readonly #tenant: string | null;
  #typesThen: TypesThen | undefined;

  constructor(branchLife: Life, position: number, tenant: string | null) {
    this.#branchLife = branchLife;
    this.#catalogPosition = position;
    this.#tenant = tenant;
  }

  get ontologyVersion(): number {
    const { own: ownTypes, store: storeTypes } = this.#collectTypesThen();
    const lastTypeStep = ownTypes.steps.reduce(
      (latestTypeStep: DefinedType | null, typeStep) =>
        latestTypeStep && latestTypeStep.position > typeStep.position ? latestTypeStep : typeStep,
      null,
    );
    if (lastTypeStep === null) return storeTypes.steps.length;
    return (
      lastTypeStep.definition.ontologyVersion + storeTypes.steps.filter(({ position }) => position > lastTypeStep.position).length
    );
  }

  type(name: string): TypeDefinition | undefined {
    const { own: ownTypes, store: storeTypes } = this.#collectTypesThen();
    return ownTypes.types.get(name) ?? storeTypes.types.get(name);
  }

  isOwn(name: string): boolean {
    const { own: ownTypes, store: storeTypes } = this.#collectTypesThen();
    return (this.#tenant === null ? storeTypes : ownTypes).types.has(name);
  }

  types(): readonly TypeDefinition[] {
    const { own: ownTypes, store: storeTypes } = this.#collectTypesThen();
    return [...new Map([...storeTypes.types, ...ownTypes.types]).values()].sort((a, b) => compareText(a.name, b.name));
  }

  #collectTypesThen(): TypesThen {
    if (this.#typesThen === undefined) {
      this.#typesThen = {
        store: { types: new Map(builtinTypes.map((type) => [type.name, type])), steps: [] },
        own: { types: new Map(), steps: [] },
      };
      collectTypesThen(this.#branchLife, this.#catalogPosition, null, this.#typesThen.store);
      if (this.#tenant !== null) collectTypesThen(this.#branchLife, this.#catalogPosition, this.#tenant, this.#typesThen.own);
    }
    return this.#typesThen;
  }
}

/** The definitions of one scope at a position, and the steps to them, name after name. */
interface ScopeThen {
  readonly types: Map<string, TypeDefinition>;
  readonly steps: DefinedType[];
}

interface TypesThen {
  readonly store: ScopeThen;
  readonly own: ScopeThen;
}

function collectTypesThen(branchLife: Life, position: number, scopeTenant: string | null, typesThen: ScopeThen): void {
  if (branchLife.source !== null)
    collectTypesThen(branchLife.source, Math.min(position, branchLife.fork), scopeTenant, typesThen);
  for (const [name, steps] of branchLife.types) {
    const earlierSteps = steps.filter((typeStep) => typeStep.position < position && typeStep.tenant === scopeTenant);
    typesThen.steps.push(...earlierSteps);
    if (earlierSteps.length > 0) typesThen.types.set(name, earlierSteps.at(-1)!.definition);
  }
}

function mainBranchLife(): Life {
  return { name: mainBranchName, tenant: null, source: null, fork: 0, end: Infinity, types: new Map() };
}

function savedLife({ name, tenant, source, fork, end, types }: BranchLife): SavedBranchLife {
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
