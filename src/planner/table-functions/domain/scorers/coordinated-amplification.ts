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
  run: coordinatedGroups,
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

function* coordinatedGroups(coordinationCall: DomainCall): Steps<readonly DomainRow[]> {
  const coordinationOptions: CoordinationOptions = {
    windowNs: BigInt(Math.round(coordinationCall.number('TIME_WINDOW', 10) * 1e3)) * 1_000_000n,
    participationMin: coordinationCall.number('MIN_PARTICIPATION', 2),
    edgeQuantile: coordinationCall.number('EDGE_WEIGHT', 0.5),
  };
  const sharedPosts = yield* postsOf(coordinationCall);
  const coordinationEdges = yield* coordinationOf(sharedPosts, coordinationOptions, (count) => coordinationCall.look(count));
  const partnerEdges = new Map<string, CoordinationEdge[]>();
  for (const coordinationEdge of coordinationEdges) {
    for (const account of [coordinationEdge.one, coordinationEdge.other]) {
      const accountEdges = partnerEdges.get(account);
      if (accountEdges === undefined) partnerEdges.set(account, [coordinationEdge]);
      else accountEdges.push(coordinationEdge);
    }
  }
  const groupByAccount = yield* groupsOf(coordinationEdges);
  const groupSizes = new Map<string, number>();
  for (const group of groupByAccount.values()) groupSizes.set(group, (groupSizes.get(group) ?? 0) + 1);
  const heaviestWeight = coordinationEdges.reduce((largest, { objects }) => Math.max(largest, objects.size), 1);
  const accountRow = ([account, ownEdges]: [string, CoordinationEdge[]]): DomainRow => {
    const accountGroup = groupByAccount.get(account)!;
    const sharedObjects = new Set(ownEdges.flatMap((edge) => [...edge.objects]));
    const partnerAccounts = ownEdges.map(({ one, other, objects: shared }) => ({
      account: one === account ? other : one,
      objects: shared.size,
    }));
    const heaviestEdge = ownEdges.reduce((largestWeight, { objects: shared }) => Math.max(largestWeight, shared.size), 0);
    return {
      nodeId: account,
      type: null,
      cells: [accountGroup, BigInt(groupSizes.get(accountGroup)!), JSON.stringify(partnerAccounts), BigInt(sharedObjects.size)],
      score: heaviestEdge / (heaviestEdge + 1),
      evidence: { heaviest_edge: heaviestEdge, of: heaviestWeight, window_secs: Number(coordinationOptions.windowNs) / 1e9 },
    };
  };
  return yield* mapInSteps([...partnerEdges], accountRow, groupAccountsAtOnce);
}

const groupAccountsAtOnce = 8;

/**
 * CooRTweet's two steps: posts of two accounts with one object within the window are together, and an account with fewer such posts
 * than it takes is left out; then edges weigh as many objects as two accounts shared together, and light ones go.
 */
export function* coordinationOf(
  posts: readonly Post[],
  { windowNs, participationMin, edgeQuantile }: CoordinationOptions,
  countLooks: (count: number) => void,
): Steps<readonly CoordinationEdge[]> {
  const postsByObject = new Map<string, Post[]>();
  for (const sharedPost of posts) {
    if (sharedPost.object === null || sharedPost.account === null || sharedPost.at === null) continue;
    const objectPosts = postsByObject.get(sharedPost.object);
    if (objectPosts === undefined) postsByObject.set(sharedPost.object, [sharedPost]);
    else objectPosts.push(sharedPost);
  }
  const postPairs: { readonly first: Post; readonly second: Post; readonly object: string }[] = [];
  const postsByAccount = new Map<string, Set<string>>();
  let comparedPairs = 0;
  for (const [object, sharingPosts] of postsByObject) {
    // In the order of time, as they were given.
    for (let i = 0; i < sharingPosts.length; i++) {
      for (let j = i + 1; j < sharingPosts.length && sharingPosts[j]!.at! - sharingPosts[i]!.at! <= windowNs; j++) {
        countLooks(5);
        if (++comparedPairs % pairsPerStep === 0) yield;
        const [firstPost, secondPost] = [sharingPosts[i]!, sharingPosts[j]!];
        if (firstPost.account === secondPost.account) continue;
        postPairs.push({ first: firstPost, second: secondPost, object });
        for (const post of [firstPost, secondPost]) accountParticipation(postsByAccount, post.account!).add(post.id);
      }
    }
    yield;
  }
  const doesParticipate = (account: string): boolean => postsByAccount.get(account)!.size >= participationMin;
  const edgesByAccounts = new Map<string, { readonly one: string; readonly other: string; readonly objects: Set<string> }>();
  for (const [i, { first, second, object }] of postPairs.entries()) {
    if (i % pairsPerStep === pairsPerStep - 1) yield;
    if (!doesParticipate(first.account!) || !doesParticipate(second.account!)) continue;
    const [oneAccount, otherAccount] = [first.account!, second.account!].sort(compareText) as [string, string];
    const accountsKey = JSON.stringify([oneAccount, otherAccount]);
    const accountsEdge = edgesByAccounts.get(accountsKey) ?? { one: oneAccount, other: otherAccount, objects: new Set<string>() };
    accountsEdge.objects.add(object);
    edgesByAccounts.set(accountsKey, accountsEdge);
  }
  const edgeWeights = [...edgesByAccounts.values()].map(({ objects }) => objects.size).sort((a, b) => a - b);
  const leastWeight = weightQuantile(edgeWeights, edgeQuantile);
  return [...edgesByAccounts.values()]
    .filter(({ objects }) => objects.size >= leastWeight)
    .sort((a, b) => compareText(a.one, b.one) || compareText(a.other, b.other));
}

function accountParticipation(postsByAccount: Map<string, Set<string>>, account: string): Set<string> {
  const knownPosts = postsByAccount.get(account);
  if (knownPosts !== undefined) return knownPosts;
  const pairKeys = new Set<string>();
  postsByAccount.set(account, pairKeys);
  return pairKeys;
}

const pairsPerStep = 1 << 11;

/** Between the two nearest, as R and most others have it. */
function weightQuantile(ascendingWeights: readonly number[], quantileShare: number): number {
  if (ascendingWeights.length === 0) return 0;
  const quantileAt = (ascendingWeights.length - 1) * quantileShare;
  const quantileBelow = Math.floor(quantileAt);
  const [lowWeight, highWeight] = [
    ascendingWeights[quantileBelow]!,
    ascendingWeights[Math.min(quantileBelow + 1, ascendingWeights.length - 1)]!,
  ];
  return lowWeight + (highWeight - lowWeight) * (quantileAt - quantileBelow);
}

/** By account, the smallest account that edges join it to. */
export function* groupsOf(
  groupEdges: readonly { readonly one: string; readonly other: string }[],
): Steps<ReadonlyMap<string, string>> {
  const parentAccounts = new Map<string, string>();
  const rootOf = (account: string): string => {
    let rootAccount = account;
    for (
      let nextParent = parentAccounts.get(rootAccount);
      nextParent !== undefined && nextParent !== rootAccount;
      nextParent = parentAccounts.get(rootAccount)
    ) {
      // Ways that are gone become shorter.
      parentAccounts.set(rootAccount, parentAccounts.get(nextParent)!);
      rootAccount = nextParent;
    }
    return rootAccount;
  };
  for (const [i, { one, other }] of groupEdges.entries()) {
    if (i % pairsPerStep === pairsPerStep - 1) yield;
    const [leftRoot, rightRoot] = [rootOf(one), rootOf(other)];
    const [smallerRoot, largerRoot] = compareText(leftRoot, rightRoot) <= 0 ? [leftRoot, rightRoot] : [rightRoot, leftRoot];
    parentAccounts.set(smallerRoot, smallerRoot);
    parentAccounts.set(largerRoot, smallerRoot);
    for (const account of [one, other]) if (!parentAccounts.has(account)) parentAccounts.set(account, smallerRoot);
  }
  return new Map([...parentAccounts.keys()].map((account) => [account, rootOf(account)]));
}
