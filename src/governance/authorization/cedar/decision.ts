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
  readonly #policiesByAction: ReadonlyMap<CedarAction, readonly Policy[]>;
  readonly #cedarSituation: Situation;
  readonly #thingVerdicts = new Map<string, Verdict | readonly Residual[]>();
  readonly #rowDecisions = new WeakMap<TypeDefinition, Map<CedarAction, TimedDecision<RowDecision>>>();
  readonly #maskDecisions = new WeakMap<TypeDefinition, TimedDecision<MaskDecision>>();

  constructor(policies: ReadonlyMap<CedarAction, readonly Policy[]>, asker: Asker) {
    this.#policiesByAction = policies;
    this.#cedarSituation = situationOf(asker);
  }

  /** `now` in nanoseconds, like everywhere else. */
  decide(action: CedarAction, thing: Thing, now: bigint): Verdict {
    const thingKey = `${action}\u0000${thing.type}\u0000${thing.id}\u0000${thing.owner ?? ''}`;
    let knownVerdict = this.#thingVerdicts.get(thingKey);
    if (knownVerdict === undefined) {
      const residuals = residualsOf(this.#policiesFor(action), resourceOfThing(thing), this.#cedarRequestFor(action, null));
      knownVerdict = dependsOnNow(residuals) ? residuals : verdictOfResiduals(residuals);
      if (this.#thingVerdicts.size >= rememberedThings) this.#thingVerdicts.clear();
      this.#thingVerdicts.set(thingKey, knownVerdict);
    }
    if ('allowed' in knownVerdict) return knownVerdict;
    const timedResiduals = residualsOf(
      knownVerdict.map(({ policy }) => policy),
      resourceOfThing(thing),
      this.#cedarRequestFor(action, instantOf(now)),
    );
    return verdictOfResiduals(timedResiduals);
  }

  rows(action: CedarAction, type: TypeDefinition, now: bigint): RowDecision {
    let decisionsByAction = this.#rowDecisions.get(type);
    if (decisionsByAction === undefined) this.#rowDecisions.set(type, (decisionsByAction = new Map()));
    let timedRows = decisionsByAction.get(action);
    if (timedRows === undefined) {
      const rowResiduals = residualsOf(this.#policiesFor(action), { kind: 'row', type }, this.#cedarRequestFor(action, null));
      timedRows = new TimedDecision(rowResiduals, (policies, instant) =>
        decideRows(policies, type, { situation: this.#cedarSituation, action, now: instant }),
      );
      decisionsByAction.set(action, timedRows);
    }
    return timedRows.decisionAt(now, ({ rows, residuals }) =>
      rows === null || rows === 'none' ? `${rows}${residuals.map(({ policy }) => policy.id).join()}` : rows.key,
    );
  }

  /** Masks by installed policies and by the type's own declaration. */
  masks(type: TypeDefinition, now: bigint): MaskDecision {
    let timedMasks = this.#maskDecisions.get(type);
    if (timedMasks === undefined) {
      const cellForbids = [...declaredMasks(type), ...this.#policiesFor('readCell').filter(({ effect }) => effect === 'forbid')];
      const cellRequest = this.#cedarRequestFor('readCell', null);
      const maskResiduals = [...Object.keys(type.properties), '_pk', 'id'].flatMap((column) =>
        residualsOf(cellForbids, { kind: 'cell', type, column }, cellRequest),
      );
      timedMasks = new TimedDecision(maskResiduals, (policies, instant) =>
        decideMasks(policies, type, { situation: this.#cedarSituation, now: instant }),
      );
      this.#maskDecisions.set(type, timedMasks);
    }
    return timedMasks.decisionAt(now, ({ masks }) =>
      [...masks].map(([column, mask]) => `${column} ${cellMaskKey(mask)}`).join('\n'),
    );
  }

  /** Explains reading rows of a type. */
  explain(type: TypeDefinition, now: bigint): Explanation {
    return explain(this.rows('read', type, now), this.masks(type, now));
  }

  #policiesFor(action: CedarAction): readonly Policy[] {
    return this.#policiesByAction.get(action) ?? [];
  }

  #cedarRequestFor(action: CedarAction, now: Instant | null): { situation: Situation; action: CedarAction; now: Instant | null } {
    return { situation: this.#cedarSituation, action, now };
  }
}

/** A decision that is kept: for good where no policy in it asks for the time, else for as long as it comes out alike. */
class TimedDecision<T> {
  readonly #timedPolicies: readonly Policy[];
  readonly #dependsOnNow: boolean;
  readonly #decideAt: (policies: readonly Policy[], now: Instant) => T;
  #lastDecision: { readonly ms: bigint; readonly decision: T; readonly key: string } | undefined;

  constructor(relevant: readonly Residual[], decide: (policies: readonly Policy[], now: Instant) => T) {
    this.#timedPolicies = [...new Set(relevant.map(({ policy }) => policy))];
    this.#dependsOnNow = dependsOnNow(relevant);
    this.#decideAt = decide;
  }

  decisionAt(now: bigint, keyOf: (decision: T) => string): T {
    const policyInstant = instantOf(now);
    const lastDecision = this.#lastDecision;
    if (lastDecision !== undefined && (!this.#dependsOnNow || lastDecision.ms === policyInstant.ms)) return lastDecision.decision;
    const decision = this.#decideAt(this.#timedPolicies, policyInstant);
    const decisionKey = keyOf(decision);
    // The same predicate keeps its identity, and with it what it has learnt of dictionaries.
    const cachedDecision = lastDecision !== undefined && lastDecision.key === decisionKey ? lastDecision.decision : decision;
    this.#lastDecision = { ms: policyInstant.ms, decision: cachedDecision, key: decisionKey };
    return cachedDecision;
  }
}

function cellMaskKey({ kind, size, when, because }: CellMask): string {
  return `${kind} ${size ?? ''} ${when?.key ?? ''} ${because}`;
}

function dependsOnNow(residuals: readonly Residual[]): boolean {
  return residuals.some(({ left }) => mentions(left, ({ op }) => op === 'now'));
}

function resourceOfThing({ type, id, owner }: Thing): Resource {
  const ownerAncestors = owner === undefined || owner === null ? [] : selfAndAbove('Org', owner, '/');
  return { kind: 'entity', entity: new Entity(type, id), above: ownerAncestors };
}

function verdictOfResiduals(residuals: readonly Residual[]): Verdict {
  const forbidResiduals = residuals.filter(({ policy }) => policy.effect === 'forbid');
  const decidingResiduals = forbidResiduals.length > 0 ? forbidResiduals : residuals;
  return {
    allowed: forbidResiduals.length === 0 && residuals.length > 0,
    because: decidingResiduals.map(({ policy }) => policy.id),
  };
}
