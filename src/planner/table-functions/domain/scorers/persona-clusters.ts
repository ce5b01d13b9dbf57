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
  run: clusters,
});

interface Persona {
  readonly account: Account;
  readonly style: Style;
  /** Shares of posts by hour of the day. */
  readonly hours: Float64Array;
  readonly bio: ReadonlySet<string>;
}

function personaOf(account: Account, posts: readonly Post[]): Persona {
  const hours = new Float64Array(24);
  for (const { at } of posts)
    if (at !== null) hours[Number((((at / 3_600_000_000_000n) % 24n) + 24n) % 24n)]! += 1 / posts.length;
  return { account, style: styleOf(posts.map(({ text }) => text)), hours, bio: new Set(wordsOf(account.bio ?? '')) };
}

/** Style counts most: a family may write at the same hours, and a trade has the same words for itself. */
function likenessOf(
  one: Persona,
  other: Persona,
): { readonly score: number; readonly style: number; readonly hours: number; readonly bio: number } | null {
  const style = styleLikeness(one.style, other.style);
  if (style === null) return null;
  let hours = 0;
  for (let hour = 0; hour < 24; hour++) hours += Math.min(one.hours[hour]!, other.hours[hour]!);
  const bio = one.bio.size === 0 || other.bio.size === 0 ? 0 : jaccard(one.bio, other.bio);
  return { score: 0.6 * style + 0.25 * hours + 0.15 * bio, style, hours, bio };
}

function* clusters(call: DomainCall): Steps<readonly DomainRow[]> {
  const threshold = call.number('THRESHOLD', 0.7);
  const personas: Persona[] = [];
  for (const { account, posts } of yield* accountsWithPosts(call)) {
    if (posts.length >= postsMin) personas.push(personaOf(account, posts));
    call.look(posts.length * 100);
    yield;
  }
  const edges: { readonly one: string; readonly other: string; readonly score: number }[] = [];
  const partners = new Map<string, { readonly account: string; readonly score: number }[]>();
  let compared = 0;
  for (let i = 0; i < personas.length; i++) {
    for (let j = i + 1; j < personas.length; j++) {
      if (++compared % pairsAtOnce === 0) yield;
      call.look(looksPerPair);
      const likeness = likenessOf(personas[i]!, personas[j]!);
      if (likeness === null || likeness.score < threshold) continue;
      const { score } = likeness;
      const [one, other] = [personas[i]!.account.id, personas[j]!.account.id];
      edges.push({ one, other, score });
      partnersOf(partners, one).push({ account: other, score });
      partnersOf(partners, other).push({ account: one, score });
    }
  }
  const groupOf = yield* groupsOf(edges);
  const sizes = new Map<string, number>();
  for (const group of groupOf.values()) sizes.set(group, (sizes.get(group) ?? 0) + 1);
  const members = personas.filter(({ account }) => groupOf.has(account.id));
  const rowOf = ({ account }: Persona): DomainRow => {
    const group = groupOf.get(account.id)!;
    const own = partners.get(account.id)!;
    const score = own.reduce((most, each) => Math.max(most, each.score), 0);
    const cells = [group, BigInt(sizes.get(group)!), JSON.stringify(own)];
    return { nodeId: account.id, type: account.type, cells, score, evidence: { threshold }, systemFrom: account.systemFrom };
  };
  return yield* mapInSteps(members, rowOf, membersAtOnce);
}

const membersAtOnce = 8;
const looksPerPair = 2_000;
/** Some 30 µs each. */
const pairsAtOnce = 32;

function partnersOf<T>(partners: Map<string, T[]>, account: string): T[] {
  const known = partners.get(account);
  if (known !== undefined) return known;
  const mentions: T[] = [];
  partners.set(account, mentions);
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
  run: candidates,
});

function* candidates(call: DomainCall): Steps<readonly DomainRow[]> {
  const id = call.text('ACCOUNT')!;
  const threshold = call.number('THRESHOLD', 0.5);
  const all = yield* call.reuse('accounts with posts', ['account', 'post'], () => everyAccount(call));
  const accountPosts = all.find(({ account }) => account.id === id);
  if (accountPosts === undefined) return [];
  const rows: DomainRow[] = [];
  for (const [i, other] of all.entries()) {
    if (i % pairsAtOnce === pairsAtOnce - 1) yield;
    const { account } = other;
    const isElsewhere = account.platform === null || account.platform !== accountPosts.account.platform;
    if ((account.id === id && account.type === accountPosts.account.type) || !isElsewhere) continue;
    call.look(looksPerPair);
    const signals = signalsOf(accountPosts, other);
    const score =
      1 - Object.entries(signals).reduce((left, [name, value]) => left * (1 - weights[name as Signal] * (value ?? 0)), 1);
    if (score < threshold) continue;
    const evidence = signals as Record<string, number | null>;
    rows.push({
      nodeId: account.id,
      type: account.type,
      cells: [account.platform, account.handle],
      score,
      evidence,
      systemFrom: account.systemFrom,
    });
  }
  return rows;
}

type Signal = 'handle' | 'name' | 'bio' | 'links' | 'style';

/** How far one signal alone goes: each that is there leaves less doubt. */
const weights: Readonly<Record<Signal, number>> = { handle: 0.6, name: 0.35, bio: 0.4, links: 0.7, style: 0.3 };

type WithPosts = AccountWithPosts & { readonly style: Style };

function signalsOf(one: WithPosts, other: WithPosts): Record<Signal, number | null> {
  const handles = [one, other].map(({ account }) => account.handle?.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '') ?? '');
  const [left, right] = handles as [string, string];
  const isHandle = left.length >= 4 && right.length >= 4;
  const names = [one, other].map(({ account }) => account.name);
  const bios = [one, other].map(({ account }) => new Set(wordsOf((account.bio ?? '').replaceAll(links, ' '))));
  const linked = [one, other].map(({ account }) => new Set((account.bio ?? '').toLowerCase().match(links) ?? []));
  const style = styleLikeness(one.style, other.style);
  return {
    handle: isHandle ? handleLikeness(left, right) : null,
    name: names[0] === null || names[1] === null ? null : matchNames(featuresOf(names[0]!), featuresOf(names[1]!)).score,
    bio: bios[0]!.size < 3 || bios[1]!.size < 3 ? null : jaccard(bios[0]!, bios[1]!),
    links: linked[0]!.size === 0 || linked[1]!.size === 0 ? null : jaccard(linked[0]!, linked[1]!),
    // Two strangers in one language come to about a half.
    style: style === null ? null : Math.max(0, 2 * style - 1),
  };
}

const links =
  /(?:https?:\/\/)?(?<![\w.-])[\w.-]+\.(?:com|org|net|io|me|dev|co|info|[a-z]{2})(?:\/\S*)?|(?<![\w.+-])[\w.+-]+@[\w.-]+/gi;

const digits = '0123456789';

/** The same, but for digits at the end, or one that the other begins with. */
function handleLikeness(left: string, right: string): number {
  if (left === right) return 1;
  const [bare, otherBare] = [withoutTrailing(left, digits), withoutTrailing(right, digits)];
  if (bare.length >= 4 && bare === otherBare) return 0.8;
  return left.startsWith(right) || right.startsWith(left) ? 0.5 : 0;
}

function* everyAccount(call: DomainCall): Steps<{ readonly value: readonly WithPosts[]; readonly bytes: number }> {
  const all: WithPosts[] = [];
  let bytes = 0;
  for (const { account, posts } of yield* accountsWithPosts(call)) {
    const style = styleOf(posts.map(({ text }) => text));
    bytes += 1_000 + 60 * style.trigrams.size + 400 * posts.length;
    all.push({ account, posts, style });
    yield;
  }
  return { value: yield* sortItemsInSteps(all, (a, b) => compareText(a.account.id, b.account.id)), bytes };
}
