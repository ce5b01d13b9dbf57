/**
 * The recipe of a link: enough to derive the link again, and none of its results. Stored as RFC 8785 JSON, in which i64 are
 * decimal strings. Seals cover the names of the members.
 */
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { GovernedSnapshot, PinnedGrant } from '../../governance/gate-contract.ts';
import { canonicalJson, type Json } from '../../log/values/canonical-json.ts';
import { compareText, tenantOf } from '../../log/values/value.ts';

/** Raised when the same statement may mean something else. */
export const dialect = 'annals-sql/1';

/** Acts that add a link to an exhibit: an answer, or words. */
export type Act = 'query' | 'note' | 'decision';

export const acts: readonly Act[] = ['query', 'note', 'decision'];

export interface Recipe {
  readonly act: Act | 'open';
  /** SQL of a query; null of words. */
  readonly statement: string | null;
  /** The words of a note or decision, the title of an exhibit. */
  readonly text: string | null;
  readonly engine: string;
  readonly dialect: string;
  readonly grant: PinnedGrant;
}

export interface RecipeInput {
  readonly act: Recipe['act'];
  readonly statement?: string;
  readonly text?: string;
  readonly grant: PinnedGrant;
  readonly engine: string;
}

/** The grant under which the caller sees these types, at an instant of one of the caller's own snapshots. */
export function grantOf(
  { caller, purpose, breakGlass, accessScopeRef, instant, catalog, protection }: GovernedSnapshot,
  policyDigest: string,
  sources: Iterable<string> = [],
): PinnedGrant {
  const { branch, path, principal, roles, attributes, door, clientIp } = caller;
  const masked: Record<string, readonly string[]> = {};
  for (const name of sources) {
    const names = catalog.type(name) === undefined ? [] : [...protection(name).masked];
    if (names.length > 0) masked[name] = names.sort(compareText);
  }
  const asked = { purpose, door, clientIp, breakGlass, accessScopeRef };
  return { branch, path, principal, roles, attributes, ...asked, instant, policyDigest, masked };
}

export function recipeText(facts: RecipeInput): string {
  const { act, statement = null, text = null, grant, engine } = facts;
  const { branch, path, principal, roles, attributes, purpose, instant, policyDigest, masked } = grant;
  return canonicalJson({
    act,
    ...statedTermsOf(grant),
    basis: { as_of_system: instant.toString() },
    branch,
    clock: instant.toString(),
    dialect,
    engine,
    ...(Object.keys(masked).length > 0 && { masked }),
    organisation: path,
    parameters: [],
    policy_digest: policyDigest,
    principal: { id: principal, roles, attributes },
    purpose,
    statement,
    tenant: tenantOf(path),
    text,
  });
}

/** Members that no policy reads are left out. */
function statedTermsOf({ policyDigest, door, clientIp, breakGlass, accessScopeRef }: PinnedGrant): { readonly asked?: Json } {
  if (policyDigest === '' && breakGlass === null && accessScopeRef === null) return {};
  return { asked: { access_scope_ref: accessScopeRef, break_glass: breakGlass, client_ip: clientIp, door } };
}

/** Throws REL_STORAGE for what no version of this program wrote. */
export function readRecipe(text: string): Recipe {
  const recipe = JSON.parse(text) as Record<string, Json>;
  const { act, basis, branch, dialect: language, engine, organisation, principal, purpose, statement } = recipe;
  const instant = member(basis, 'as_of_system');
  const id = member(principal, 'id');
  const asked = recipe['asked'];
  if (typeof instant !== 'string' || typeof branch !== 'string' || typeof id !== 'string') {
    throw new ServiceError('REL_STORAGE', 'the recipe of the link is malformed');
  }
  return {
    act: act as Recipe['act'],
    statement: textOf(statement),
    text: textOf(recipe['text']),
    engine: textOf(engine) ?? '',
    dialect: textOf(language) ?? '',
    grant: {
      branch,
      path: textOf(organisation),
      principal: id,
      roles: (member(principal, 'roles') ?? []) as readonly string[],
      attributes: (member(principal, 'attributes') ?? {}) as Caller['attributes'],
      purpose: textOf(purpose),
      door: textOf(member(asked, 'door')) ?? '',
      clientIp: textOf(member(asked, 'client_ip')),
      breakGlass: textOf(member(asked, 'break_glass')),
      accessScopeRef: textOf(member(asked, 'access_scope_ref')),
      instant: BigInt(instant),
      policyDigest: textOf(recipe['policy_digest']) ?? '',
      masked: (recipe['masked'] ?? {}) as PinnedGrant['masked'],
    },
  };
}

/** The result of words: the words themselves. */
export function wordsResult(text: string): string {
  return canonicalJson({ text });
}

function member(value: Json | undefined, name: string): Json | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as { readonly [name: string]: Json })[name]
    : undefined;
}

function textOf(value: Json | undefined): string | null {
  return typeof value === 'string' ? value : null;
}
