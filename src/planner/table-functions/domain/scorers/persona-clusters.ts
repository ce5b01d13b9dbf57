/** PERSONA_CLUSTER_DETECT, CROSS_PLATFORM_ACCOUNT: accounts that one hand may hold. Source: specification, "SQL dialect", the table of operators. */
import { compareText } from '../../../../log/values/value.ts';
import { mapInSteps, sortItemsInSteps, type Steps } from '../../../graph/stepped-sort.ts';
import type { TableFunction } from '../../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from '../domain-function.ts';
import { featuresOf } from '../names/name-features.ts';
import { jaccard, matchNames } from '../names/name-score.ts';
import { groupsOf } from './coordinated-amplification.ts';
import { type Style, styleLikeness, styleOf } from './account-signals.ts';
import { type Account, accountsWithPosts, type AccountWithPosts, type Post, postsMin, wordsOf } from './scored-posts.ts';
import { withoutTrailing } from '../../../../log/values/trim-end.ts';

export const personaClusters: TableFunction = domainFunction({
  name: 'PERSONA_CLUSTER_DETECT',
  summary:
    'Accounts that seem to be one writer: alike in style, in the hours of their posts, and in what they say of themselves.',
  method: 'personas/2',
  arguments: [
    { name: 'THRESHOLD', kind: 'number', least: 0, most: 1, summary: 'the least likeness of two of a cluster; 0.7 by default' },
  ],
  roles: [{ role: 'account' }, { role: 'post', optional: true }],
  columns: [
    { name: 'cluster', type: 'string' },
    { name: 'size', type: 'integer' },
    { name: 'like', type: 'json' },
  ],
  run: personaClusterRows,
});

interface AccountPersona {
  readonly account: Account;
  readonly style: Style;
  /** Shares of posts by hour of the day. */
  readonly hours: Float64Array;
  readonly bio: ReadonlySet<string>;
}

function accountPersona(account: Account, personaPosts: readonly Post[]): AccountPersona {
  const postingHours = new Float64Array(24);
  for (const { at } of personaPosts)
    if (at !== null) postingHours[Number((((at / 3_600_000_000_000n) % 24n) + 24n) % 24n)]! += 1 / personaPosts.length;
  return {
    account,
    style: styleOf(personaPosts.map(({ text }) => text)),
    hours: postingHours,
    bio: new Set(wordsOf(account.bio ?? '')),
  };
}

/** Style counts most: a family may write at the same hours, and a trade has the same words for itself. */
function personaLikeness(
  onePersona: AccountPersona,
  otherPersona: AccountPersona,
): { readonly score: number; readonly style: number; readonly hours: number; readonly bio: number } | null {
  const styleScore = styleLikeness(onePersona.style, otherPersona.style);
  if (styleScore === null) return null;
  let sharedHours = 0;
  for (let hour = 0; hour < 24; hour++) sharedHours += Math.min(onePersona.hours[hour]!, otherPersona.hours[hour]!);
  const bioScore = onePersona.bio.size === 0 || otherPersona.bio.size === 0 ? 0 : jaccard(onePersona.bio, otherPersona.bio);
  return { score: 0.6 * styleScore + 0.25 * sharedHours + 0.15 * bioScore, style: styleScore, hours: sharedHours, bio: bioScore };
}

function* personaClusterRows(personaCall: DomainCall): Steps<readonly DomainRow[]> {
  const personaThreshold = personaCall.number('THRESHOLD', 0.7);
  const accountPersonas: AccountPersona[] = [];
  for (const { account, posts } of yield* accountsWithPosts(personaCall)) {
    if (posts.length >= postsMin) accountPersonas.push(accountPersona(account, posts));
    personaCall.look(posts.length * 100);
    yield;
  }
  const personaEdges: { readonly one: string; readonly other: string; readonly score: number }[] = [];
  const partnersByAccount = new Map<string, { readonly account: string; readonly score: number }[]>();
  let comparedPairs = 0;
  for (let i = 0; i < accountPersonas.length; i++) {
    for (let j = i + 1; j < accountPersonas.length; j++) {
      if (++comparedPairs % personaPairsAtOnce === 0) yield;
      personaCall.look(looksPerPersonaPair);
      const pairLikeness = personaLikeness(accountPersonas[i]!, accountPersonas[j]!);
      if (pairLikeness === null || pairLikeness.score < personaThreshold) continue;
      const { score } = pairLikeness;
      const [oneAccount, otherAccount] = [accountPersonas[i]!.account.id, accountPersonas[j]!.account.id];
      personaEdges.push({ one: oneAccount, other: otherAccount, score });
      personaPartners(partnersByAccount, oneAccount).push({ account: otherAccount, score });
      personaPartners(partnersByAccount, otherAccount).push({ account: oneAccount, score });
    }
  }
  const groupByAccount = yield* groupsOf(personaEdges);
  const groupSizes = new Map<string, number>();
  for (const personaGroup of groupByAccount.values()) groupSizes.set(personaGroup, (groupSizes.get(personaGroup) ?? 0) + 1);
  const clusterMembers = accountPersonas.filter(({ account }) => groupByAccount.has(account.id));
  const rowOf = ({ account }: AccountPersona): DomainRow => {
    const memberGroup = groupByAccount.get(account.id)!;
    const memberPartners = partnersByAccount.get(account.id)!;
    const bestPartnerScore = memberPartners.reduce((mostScore, memberPartner) => Math.max(mostScore, memberPartner.score), 0);
    const personaCells = [memberGroup, BigInt(groupSizes.get(memberGroup)!), JSON.stringify(memberPartners)];
    return {
      nodeId: account.id,
      type: account.type,
      cells: personaCells,
      score: bestPartnerScore,
      evidence: { threshold: personaThreshold },
      systemFrom: account.systemFrom,
    };
  };
  return yield* mapInSteps(clusterMembers, rowOf, personaMembersAtOnce);
}

const personaMembersAtOnce = 8;
const looksPerPersonaPair = 2_000;
/** Some 30 µs each. */
const personaPairsAtOnce = 32;

function personaPartners<T>(partnersByAccount: Map<string, T[]>, account: string): T[] {
  const knownPartners = partnersByAccount.get(account);
  if (knownPartners !== undefined) return knownPartners;
  const mentions: T[] = [];
  partnersByAccount.set(account, mentions);
  return mentions;
}

export const crossPlatform: TableFunction = domainFunction({
  name: 'CROSS_PLATFORM_ACCOUNT',
  summary: 'Accounts elsewhere that may be of the same holder, by handle, name, what they say of themselves, links and style.',
  method: 'cross-platform/1',
  arguments: [
    { name: 'ACCOUNT', kind: 'key', required: true, summary: 'id of the account' },
    { name: 'THRESHOLD', kind: 'number', least: 0, most: 1, summary: 'the least score of a candidate; 0.5 by default' },
  ],
  roles: [{ role: 'account' }, { role: 'post', optional: true }],
  columns: [
    { name: 'platform', type: 'string' },
    { name: 'handle', type: 'string' },
  ],
  run: crossPlatformAccounts,
});

function* crossPlatformAccounts(holderCall: DomainCall): Steps<readonly DomainRow[]> {
  const accountId = holderCall.text('ACCOUNT')!;
  const holderThreshold = holderCall.number('THRESHOLD', 0.5);
  const styledAccounts = yield* holderCall.reuse('accounts with posts', ['account', 'post'], () =>
    everyStyledAccount(holderCall),
  );
  const accountPosts = styledAccounts.find(({ account }) => account.id === accountId);
  if (accountPosts === undefined) return [];
  const candidateRows: DomainRow[] = [];
  for (const [i, candidateAccount] of styledAccounts.entries()) {
    if (i % personaPairsAtOnce === personaPairsAtOnce - 1) yield;
    const { account } = candidateAccount;
    const isOnOtherPlatform = account.platform === null || account.platform !== accountPosts.account.platform;
    if ((account.id === accountId && account.type === accountPosts.account.type) || !isOnOtherPlatform) continue;
    holderCall.look(looksPerPersonaPair);
    const candidateSignals = holderSignals(accountPosts, candidateAccount);
    const holderScore =
      1 -
      Object.entries(candidateSignals).reduce(
        (oddsAgainst, [signalName, signalValue]) =>
          oddsAgainst * (1 - holderSignalWeights[signalName as HolderSignal] * (signalValue ?? 0)),
        1,
      );
    if (holderScore < holderThreshold) continue;
    const candidateEvidence = candidateSignals as Record<string, number | null>;
    candidateRows.push({
      nodeId: account.id,
      type: account.type,
      cells: [account.platform, account.handle],
      score: holderScore,
      evidence: candidateEvidence,
      systemFrom: account.systemFrom,
    });
  }
  return candidateRows;
}

type HolderSignal = 'handle' | 'name' | 'bio' | 'links' | 'style';

/** How far one signal alone goes: each that is there leaves less doubt. */
const holderSignalWeights: Readonly<Record<HolderSignal, number>> = { handle: 0.6, name: 0.35, bio: 0.4, links: 0.7, style: 0.3 };

type AccountWithStyle = AccountWithPosts & { readonly style: Style };

function holderSignals(oneAccount: AccountWithStyle, otherAccount: AccountWithStyle): Record<HolderSignal, number | null> {
  const plainHandles = [oneAccount, otherAccount].map(
    ({ account }) => account.handle?.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '') ?? '',
  );
  const [leftHandle, rightHandle] = plainHandles as [string, string];
  const areHandlesLong = leftHandle.length >= 4 && rightHandle.length >= 4;
  const holderNames = [oneAccount, otherAccount].map(({ account }) => account.name);
  const bioWords = [oneAccount, otherAccount].map(
    ({ account }) => new Set(wordsOf((account.bio ?? '').replaceAll(profileLinks, ' '))),
  );
  const bioLinks = [oneAccount, otherAccount].map(
    ({ account }) => new Set((account.bio ?? '').toLowerCase().match(profileLinks) ?? []),
  );
  const styleScore = styleLikeness(oneAccount.style, otherAccount.style);
  return {
    handle: areHandlesLong ? likenessOfHandles(leftHandle, rightHandle) : null,
    name:
      holderNames[0] === null || holderNames[1] === null
        ? null
        : matchNames(featuresOf(holderNames[0]!), featuresOf(holderNames[1]!)).score,
    bio: bioWords[0]!.size < 3 || bioWords[1]!.size < 3 ? null : jaccard(bioWords[0]!, bioWords[1]!),
    links: bioLinks[0]!.size === 0 || bioLinks[1]!.size === 0 ? null : jaccard(bioLinks[0]!, bioLinks[1]!),
    // Two strangers in one language come to about a half.
    style: styleScore === null ? null : Math.max(0, 2 * styleScore - 1),
  };
}

const profileLinks =
  /(?:https?:\/\/)?(?<![\w.-])[\w.-]+\.(?:com|org|net|io|me|dev|co|info|[a-z]{2})(?:\/\S*)?|(?<![\w.+-])[\w.+-]+@[\w.-]+/gi;

const handleDigits = '0123456789';

/** The same, but for digits at the end, or one that the other begins with. */
function likenessOfHandles(leftHandle: string, rightHandle: string): number {
  if (leftHandle === rightHandle) return 1;
  const [bareHandle, otherBareHandle] = [withoutTrailing(leftHandle, handleDigits), withoutTrailing(rightHandle, handleDigits)];
  if (bareHandle.length >= 4 && bareHandle === otherBareHandle) return 0.8;
  return leftHandle.startsWith(rightHandle) || rightHandle.startsWith(leftHandle) ? 0.5 : 0;
}

function* everyStyledAccount(
  holderCall: DomainCall,
): Steps<{ readonly value: readonly AccountWithStyle[]; readonly bytes: number }> {
  const styledAccounts: AccountWithStyle[] = [];
  let accountBytes = 0;
  for (const { account, posts } of yield* accountsWithPosts(holderCall)) {
    const accountStyle = styleOf(posts.map(({ text }) => text));
    accountBytes += 1_000 + 60 * accountStyle.trigrams.size + 400 * posts.length;
    styledAccounts.push({ account, posts, style: accountStyle });
    yield;
  }
  return {
    value: yield* sortItemsInSteps(styledAccounts, (a, b) => compareText(a.account.id, b.account.id)),
    bytes: accountBytes,
  };
}
