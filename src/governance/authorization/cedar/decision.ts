/**
 * Decisions for one caller: the facts about the caller are folded into the policies once, and kept for as long as the caller
 * makes the same kind of request. Only conditions on the clock are folded again.
 */
import type { TypeDefinition } from '../../../log/entries/entry.ts';
import type { CellMask } from '../grant.ts';
import { decideMasks, decideRows, residualsOf, type MaskDecision, type Residual, type RowDecision } from './compile.ts';
import { declaredMasks } from './declared-masks.ts';
import { instantOf, selfAndAbove, situationOf, type Asker, type Resource, type Situation } from './entities.ts';
import type { CedarAction, Policy } from './policies.ts';
import { explain, type Explanation } from './explain.ts';
import { mentions } from './syntax.ts';
import { Entity, type Instant } from './values.ts';

/** A resource that is not a row: a type as a whole, a branch, a part of the store. */
export interface Thing {
  readonly type: 'Type' | 'Branch' | 'Store';
  readonly id: string;
  /** Organisation that it belongs to, and `resource in Org::"…"` goes by. */
  readonly owner?: string | null;
}

export interface Verdict {
  readonly allowed: boolean;
  /** Ids of the policies that determine it; empty where nothing permits it. */
  readonly because: readonly string[];
}

/** Decisions about things that are remembered of one caller. */
const rememberedThings = 1024;

export class CallerPolicies {
  readonly #policies: ReadonlyMap<CedarAction, readonly Policy[]>;
  readonly #situation: Situation;
  readonly #things = new Map<string, Verdict | readonly Residual[]>();
  readonly #rows = new WeakMap<TypeDefinition, Map<CedarAction, Timed<RowDecision>>>();
  readonly #masks = new WeakMap<TypeDefinition, Timed<MaskDecision>>();

  constructor(policies: ReadonlyMap<CedarAction, readonly Policy[]>, asker: Asker) {
    this.#policies = policies;
    this.#situation = situationOf(asker);
  }

  /** `now` in nanoseconds, like everywhere else. */
  decide(action: CedarAction, thing: Thing, now: bigint): Verdict {
    const key = `${action}\u0000${thing.type}\u0000${thing.id}\u0000${thing.owner ?? ''}`;
    let known = this.#things.get(key);
    if (known === undefined) {
      const residuals = residualsOf(this.#policiesFor(action), resourceOf(thing), this.#requestFor(action, null));
      known = dependsOnNow(residuals) ? residuals : verdictOf(residuals);
      if (this.#things.size >= rememberedThings) this.#things.clear();
      this.#things.set(key, known);
    }
    if ('allowed' in known) return known;
    const left = residualsOf(
      known.map(({ policy }) => policy),
      resourceOf(thing),
      this.#requestFor(action, instantOf(now)),
    );
    return verdictOf(left);
  }

  rows(action: CedarAction, type: TypeDefinition, now: bigint): RowDecision {
    let byAction = this.#rows.get(type);
    if (byAction === undefined) this.#rows.set(type, (byAction = new Map()));
    let known = byAction.get(action);
    if (known === undefined) {
      const relevant = residualsOf(this.#policiesFor(action), { kind: 'row', type }, this.#requestFor(action, null));
      known = new Timed(relevant, (policies, instant) =>
        decideRows(policies, type, { situation: this.#situation, action, now: instant }),
      );
      byAction.set(action, known);
    }
    return known.decisionAt(now, ({ rows, residuals }) =>
      rows === null || rows === 'none' ? `${rows}${residuals.map(({ policy }) => policy.id).join()}` : rows.key,
    );
  }

  /** Masks by installed policies and by the type's own declaration. */
  masks(type: TypeDefinition, now: bigint): MaskDecision {
    let known = this.#masks.get(type);
    if (known === undefined) {
      const forbids = [...declaredMasks(type), ...this.#policiesFor('readCell').filter(({ effect }) => effect === 'forbid')];
      const asked = this.#requestFor('readCell', null);
      const relevant = [...Object.keys(type.properties), '_pk', 'id'].flatMap((column) =>
        residualsOf(forbids, { kind: 'cell', type, column }, asked),
      );
      known = new Timed(relevant, (policies, instant) =>
        decideMasks(policies, type, { situation: this.#situation, now: instant }),
      );
      this.#masks.set(type, known);
    }
    return known.decisionAt(now, ({ masks }) => [...masks].map(([column, mask]) => `${column} ${maskKey(mask)}`).join('\n'));
  }

  /** Explains reading rows of a type. */
  explain(type: TypeDefinition, now: bigint): Explanation {
    return explain(this.rows('read', type, now), this.masks(type, now));
  }

  #policiesFor(action: CedarAction): readonly Policy[] {
    return this.#policies.get(action) ?? [];
  }

  #requestFor(action: CedarAction, now: Instant | null): { situation: Situation; action: CedarAction; now: Instant | null } {
    return { situation: this.#situation, action, now };
  }
}

/** A decision that is kept: for good where no policy in it asks for the time, else for as long as it comes out alike. */
class Timed<T> {
  readonly #policies: readonly Policy[];
  readonly #timed: boolean;
  readonly #decide: (policies: readonly Policy[], now: Instant) => T;
  #last: { readonly ms: bigint; readonly decision: T; readonly key: string } | undefined;

  constructor(relevant: readonly Residual[], decide: (policies: readonly Policy[], now: Instant) => T) {
    this.#policies = [...new Set(relevant.map(({ policy }) => policy))];
    this.#timed = dependsOnNow(relevant);
    this.#decide = decide;
  }

  decisionAt(now: bigint, keyOf: (decision: T) => string): T {
    const instant = instantOf(now);
    const last = this.#last;
    if (last !== undefined && (!this.#timed || last.ms === instant.ms)) return last.decision;
    const decision = this.#decide(this.#policies, instant);
    const key = keyOf(decision);
    // The same predicate keeps its identity, and with it what it has learnt of dictionaries.
    const cachedDecision = last !== undefined && last.key === key ? last.decision : decision;
    this.#last = { ms: instant.ms, decision: cachedDecision, key };
    return cachedDecision;
  }
}

function maskKey({ kind, size, when, because }: CellMask): string {
  return `${kind} ${size ?? ''} ${when?.key ?? ''} ${because}`;
}

function dependsOnNow(residuals: readonly Residual[]): boolean {
  return residuals.some(({ left }) => mentions(left, ({ op }) => op === 'now'));
}

function resourceOf({ type, id, owner }: Thing): Resource {
  const above = owner === undefined || owner === null ? [] : selfAndAbove('Org', owner, '/');
  return { kind: 'entity', entity: new Entity(type, id), above };
}

function verdictOf(residuals: readonly Residual[]): Verdict {
  const forbids = residuals.filter(({ policy }) => policy.effect === 'forbid');
  const deciding = forbids.length > 0 ? forbids : residuals;
  return { allowed: forbids.length === 0 && residuals.length > 0, because: deciding.map(({ policy }) => policy.id) };
}
