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
  const maskedByType: Record<string, readonly string[]> = {};
  for (const name of sources) {
    const maskedNames = catalog.type(name) === undefined ? [] : [...protection(name).masked];
    if (maskedNames.length > 0) maskedByType[name] = maskedNames.sort(compareText);
  }
  const askedFacts = { purpose, door, clientIp, breakGlass, accessScopeRef };
  return { branch, path, principal, roles, attributes, ...askedFacts, instant, policyDigest, masked: maskedByType };
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
  const recipeJson = JSON.parse(text) as Record<string, Json>;
  const { act, basis, branch, dialect: language, engine, organisation, principal, purpose, statement } = recipeJson;
  const basisInstant = recipeMember(basis, 'as_of_system');
  const principalId = recipeMember(principal, 'id');
  const askedJson = recipeJson['asked'];
  if (typeof basisInstant !== 'string' || typeof branch !== 'string' || typeof principalId !== 'string') {
    throw new ServiceError('REL_STORAGE', 'the recipe of the link is malformed');
  }
  return {
    act: act as Recipe['act'],
    statement: recipeTextOf(statement),
    text: recipeTextOf(recipeJson['text']),
    engine: recipeTextOf(engine) ?? '',
    dialect: recipeTextOf(language) ?? '',
    grant: {
      branch,
      path: recipeTextOf(organisation),
      principal: principalId,
      roles: (recipeMember(principal, 'roles') ?? []) as readonly string[],
      attributes: (recipeMember(principal, 'attributes') ?? {}) as Caller['attributes'],
      purpose: recipeTextOf(purpose),
      door: recipeTextOf(recipeMember(askedJson, 'door')) ?? '',
      clientIp: recipeTextOf(recipeMember(askedJson, 'client_ip')),
      breakGlass: recipeTextOf(recipeMember(askedJson, 'break_glass')),
      accessScopeRef: recipeTextOf(recipeMember(askedJson, 'access_scope_ref')),
      instant: BigInt(basisInstant),
      policyDigest: recipeTextOf(recipeJson['policy_digest']) ?? '',
      masked: (recipeJson['masked'] ?? {}) as PinnedGrant['masked'],
    },
  };
}

/** The result of words: the words themselves. */
export function wordsResult(text: string): string {
  return canonicalJson({ text });
}

function recipeMember(value: Json | undefined, name: string): Json | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as { readonly [name: string]: Json })[name]
    : undefined;
}

function recipeTextOf(value: Json | undefined): string | null {
  return typeof value === 'string' ? value : null;
}
