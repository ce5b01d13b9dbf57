/** COORDINATED_AMPLIFICATION: accounts that share the same things at the same time. Source: specification, "SQL dialect", the table of operators. */
import { compareText } from '../../../../log/values/value.ts';
import { mapInSteps, type Steps } from '../../../graph/stepped-sort.ts';
import type { TableFunction } from '../../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from '../domain-function.ts';
import { type Post, postsOf } from './scored-posts.ts';

export const coordinatedAmplification: TableFunction = domainFunction({
  name: 'COORDINATED_AMPLIFICATION',
  summary: 'Accounts that shared the same objects within seconds of each other, again and again, by groups.',
  method: 'coortweet/1',
  arguments: [
    { name: 'TIME_WINDOW', kind: 'number', least: 0, summary: 'seconds within which two posts are together; 10 by default' },
    {
      name: 'MIN_PARTICIPATION',
      kind: 'integer',
      least: 1,
      summary: 'posts of an account that were together with others at least; 2 by default',
    },
    {
      name: 'EDGE_WEIGHT',
      kind: 'number',
      least: 0,
      most: 1,
      summary: 'quantile of the weights of edges that an edge must reach; 0.5 by default',
    },
  ],
  roles: [{ role: 'post' }],
  columns: [
    { name: 'group', type: 'string' },
    { name: 'size', type: 'integer' },
    { name: 'partners', type: 'json' },
    { name: 'objects', type: 'integer' },
  ],
  run: groups,
});

export interface CoordinationOptions {
  readonly windowNs: bigint;
  readonly participationMin: number;
  readonly edgeQuantile: number;
}

/** Two accounts, the smaller first, and the objects that they shared together. */
export interface CoordinationEdge {
  readonly one: string;
  readonly other: string;
  readonly objects: ReadonlySet<string>;
}

function* groups(call: DomainCall): Steps<readonly DomainRow[]> {
  const options: CoordinationOptions = {
    windowNs: BigInt(Math.round(call.number('TIME_WINDOW', 10) * 1e3)) * 1_000_000n,
    participationMin: call.number('MIN_PARTICIPATION', 2),
    edgeQuantile: call.number('EDGE_WEIGHT', 0.5),
  };
  const posts = yield* postsOf(call);
  const edges = yield* coordinationOf(posts, options, (count) => call.look(count));
  const partners = new Map<string, CoordinationEdge[]>();
  for (const edge of edges) {
    for (const account of [edge.one, edge.other]) {
      const all = partners.get(account);
      if (all === undefined) partners.set(account, [edge]);
      else all.push(edge);
    }
  }
  const groupOf = yield* groupsOf(edges);
  const sizes = new Map<string, number>();
  for (const group of groupOf.values()) sizes.set(group, (sizes.get(group) ?? 0) + 1);
  const most = edges.reduce((largest, { objects }) => Math.max(largest, objects.size), 1);
  const each = ([account, own]: [string, CoordinationEdge[]]): DomainRow => {
    const group = groupOf.get(account)!;
    const objects = new Set(own.flatMap((edge) => [...edge.objects]));
    const others = own.map(({ one, other, objects: shared }) => ({
      account: one === account ? other : one,
      objects: shared.size,
    }));
    const heaviest = own.reduce((largest, { objects: shared }) => Math.max(largest, shared.size), 0);
    return {
      nodeId: account,
      type: null,
      cells: [group, BigInt(sizes.get(group)!), JSON.stringify(others), BigInt(objects.size)],
      score: heaviest / (heaviest + 1),
      evidence: { heaviest_edge: heaviest, of: most, window_secs: Number(options.windowNs) / 1e9 },
    };
  };
  return yield* mapInSteps([...partners], each, accountsAtOnce);
}

const accountsAtOnce = 8;

/**
 * CooRTweet's two steps: posts of two accounts with one object within the window are together, and an account with fewer such posts
 * than it takes is left out; then edges weigh as many objects as two accounts shared together, and light ones go.
 */
export function* coordinationOf(
  posts: readonly Post[],
  { windowNs, participationMin, edgeQuantile }: CoordinationOptions,
  look: (count: number) => void,
): Steps<readonly CoordinationEdge[]> {
  const byObject = new Map<string, Post[]>();
  for (const post of posts) {
    if (post.object === null || post.account === null || post.at === null) continue;
    const all = byObject.get(post.object);
    if (all === undefined) byObject.set(post.object, [post]);
    else all.push(post);
  }
  const together: { readonly first: Post; readonly second: Post; readonly object: string }[] = [];
  const participation = new Map<string, Set<string>>();
  let looked = 0;
  for (const [object, shared] of byObject) {
    // In the order of time, as they were given.
    for (let i = 0; i < shared.length; i++) {
      for (let j = i + 1; j < shared.length && shared[j]!.at! - shared[i]!.at! <= windowNs; j++) {
        look(5);
        if (++looked % stepsAtOnce === 0) yield;
        const [first, second] = [shared[i]!, shared[j]!];
        if (first.account === second.account) continue;
        together.push({ first, second, object });
        for (const post of [first, second]) participationOf(participation, post.account!).add(post.id);
      }
    }
    yield;
  }
  const takesPart = (account: string): boolean => participation.get(account)!.size >= participationMin;
  const edges = new Map<string, { readonly one: string; readonly other: string; readonly objects: Set<string> }>();
  for (const [i, { first, second, object }] of together.entries()) {
    if (i % stepsAtOnce === stepsAtOnce - 1) yield;
    if (!takesPart(first.account!) || !takesPart(second.account!)) continue;
    const [one, other] = [first.account!, second.account!].sort(compareText) as [string, string];
    const key = JSON.stringify([one, other]);
    const edge = edges.get(key) ?? { one, other, objects: new Set<string>() };
    edge.objects.add(object);
    edges.set(key, edge);
  }
  const weights = [...edges.values()].map(({ objects }) => objects.size).sort((a, b) => a - b);
  const least = quantile(weights, edgeQuantile);
  return [...edges.values()]
    .filter(({ objects }) => objects.size >= least)
    .sort((a, b) => compareText(a.one, b.one) || compareText(a.other, b.other));
}

function participationOf(all: Map<string, Set<string>>, account: string): Set<string> {
  const known = all.get(account);
  if (known !== undefined) return known;
  const pairKeys = new Set<string>();
  all.set(account, pairKeys);
  return pairKeys;
}

const stepsAtOnce = 1 << 11;

/** Between the two nearest, as R and most others have it. */
function quantile(ascending: readonly number[], share: number): number {
  if (ascending.length === 0) return 0;
  const at = (ascending.length - 1) * share;
  const below = Math.floor(at);
  const [low, high] = [ascending[below]!, ascending[Math.min(below + 1, ascending.length - 1)]!];
  return low + (high - low) * (at - below);
}

/** By account, the smallest account that edges join it to. */
export function* groupsOf(
  edges: readonly { readonly one: string; readonly other: string }[],
): Steps<ReadonlyMap<string, string>> {
  const parents = new Map<string, string>();
  const rootOf = (account: string): string => {
    let root = account;
    for (let next = parents.get(root); next !== undefined && next !== root; next = parents.get(root)) {
      // Ways that are gone become shorter.
      parents.set(root, parents.get(next)!);
      root = next;
    }
    return root;
  };
  for (const [i, { one, other }] of edges.entries()) {
    if (i % stepsAtOnce === stepsAtOnce - 1) yield;
    const [left, right] = [rootOf(one), rootOf(other)];
    const [smaller, larger] = compareText(left, right) <= 0 ? [left, right] : [right, left];
    parents.set(smaller, smaller);
    parents.set(larger, smaller);
    for (const account of [one, other]) if (!parents.has(account)) parents.set(account, smaller);
  }
  return new Map([...parents.keys()].map((account) => [account, rootOf(account)]));
}
