/** The subjects of scorers: posts of accounts, one post, or a text in quotes. */
import { compareText } from '../../../../log/values/value.ts';
import { forEachInSteps, sortItemsInSteps, type Steps } from '../../../graph/stepped-sort.ts';
import type { DomainArgument, DomainCall } from '../domain-function.ts';
import type { RoleUse } from '../roles.ts';

export interface Post {
  readonly id: string;
  readonly type: string;
  readonly account: string | null;
  readonly text: string;
  /** Nanoseconds. */
  readonly at: bigint | null;
  /** The thing that it shares or reposts. */
  readonly object: string | null;
  readonly replyTo: string | null;
  readonly systemFrom: bigint | null;
}

export interface Account {
  readonly id: string;
  readonly type: string;
  readonly platform: string | null;
  readonly handle: string | null;
  readonly name: string | null;
  readonly bio: string | null;
  readonly createdAt: bigint | null;
  readonly followers: number | null;
  readonly systemFrom: bigint | null;
}

/** The fewest posts from which an account is scored. */
export const postsMin = 5;

/** Roles of a scorer of texts: a text in quotes needs neither. */
export const textRoles: readonly RoleUse[] = [
  { role: 'post', optional: true },
  { role: 'account', optional: true },
];
export const textArgument: DomainArgument = {
  name: 'X',
  kind: 'key',
  required: true,
  summary: 'id of a post or an account, else the text itself',
};

export const accountRoles: readonly RoleUse[] = [{ role: 'account' }, { role: 'post', optional: true }];
export const accountArgument: DomainArgument = {
  name: 'ACCOUNT',
  kind: 'key',
  summary: 'id of the account; every account by default',
};

export interface TextSubject {
  readonly nodeId: string | null;
  readonly type: string | null;
  readonly texts: readonly string[];
  readonly systemFrom: bigint | null;
}

/** The post of that id, else the posts of the account of that id, else the text itself. Of two types the first by name has it. */
export function* textSubject(call: DomainCall, givenSubject: string): Steps<TextSubject> {
  const [subjectPost] = yield* postsOf(call, { column: '_pk', texts: [givenSubject] });
  if (subjectPost !== undefined)
    return { nodeId: subjectPost.id, type: subjectPost.type, texts: [subjectPost.text], systemFrom: subjectPost.systemFrom };
  const [subjectAccount] = yield* accountsOf(call, givenSubject);
  if (subjectAccount === undefined) return { nodeId: null, type: null, texts: [givenSubject], systemFrom: null };
  const accountPosts = yield* postsOf(call, { column: 'account', texts: [subjectAccount.id] });
  return {
    nodeId: subjectAccount.id,
    type: subjectAccount.type,
    texts: accountPosts.map(({ text }) => text),
    systemFrom: subjectAccount.systemFrom,
  };
}

/** In the order of time. */
export function* postsOf(
  call: DomainCall,
  wantedPosts?: { readonly column: string; readonly texts: readonly string[] },
): Steps<readonly Post[]> {
  const scoredPosts: Post[] = [];
  let postBytes = 0;
  yield* call.rows(
    'post',
    ['account', 'text', 'at', 'object', 'reply_to'],
    (postBatch) => {
      for (let postRow = 0; postRow < postBatch.count; postRow++) {
        const postId = postBatch.nodeId(postRow);
        if (postId === null) continue;
        const postText = postBatch.text('text', postRow) ?? '';
        postBytes += 400 + 2 * postText.length;
        scoredPosts.push({
          id: postId,
          type: postBatch.type,
          account: postBatch.text('account', postRow),
          text: postText,
          at: postBatch.instant('at', postRow) ?? postBatch.instant('valid_from', postRow),
          object: postBatch.text('object', postRow),
          replyTo: postBatch.text('reply_to', postRow),
          systemFrom: postBatch.systemFrom(postRow),
        });
      }
      call.hold(postBytes);
    },
    wantedPosts,
  );
  return yield* sortItemsInSteps(
    scoredPosts,
    (onePost, otherPost) =>
      comparePostInstants(onePost.at, otherPost.at) ||
      compareText(onePost.id, otherPost.id) ||
      compareText(onePost.type, otherPost.type),
  );
}

function comparePostInstants(oneInstant: bigint | null, otherInstant: bigint | null): number {
  if (oneInstant === otherInstant) return 0;
  if (oneInstant === null || otherInstant === null) return oneInstant === null ? 1 : -1;
  return oneInstant < otherInstant ? -1 : 1;
}

/** By id. */
export function* accountsOf(call: DomainCall, id?: string): Steps<readonly Account[]> {
  const scoredAccounts: Account[] = [];
  yield* call.rows(
    'account',
    ['platform', 'handle', 'name', 'bio', 'created_at', 'followers'],
    (accountBatch) => {
      for (let accountRow = 0; accountRow < accountBatch.count; accountRow++) {
        const accountKey = accountBatch.nodeId(accountRow);
        if (accountKey === null) continue;
        scoredAccounts.push({
          id: accountKey,
          type: accountBatch.type,
          platform: accountBatch.text('platform', accountRow),
          handle: accountBatch.text('handle', accountRow),
          name: accountBatch.text('name', accountRow),
          bio: accountBatch.text('bio', accountRow),
          createdAt: accountBatch.instant('created_at', accountRow),
          followers: followerCount(accountBatch.number('followers', accountRow)),
          systemFrom: accountBatch.systemFrom(accountRow),
        });
      }
      call.hold(scoredAccounts.length * 600);
    },
    id === undefined ? undefined : { column: '_pk', texts: [id] },
  );
  return yield* sortItemsInSteps(scoredAccounts, (a, b) => compareText(a.id, b.id) || compareText(a.type, b.type));
}

/** Less than none is no count. */
function followerCount(followersValue: number | null): number | null {
  return followersValue !== null && followersValue >= 0 ? followersValue : null;
}

export interface AccountWithPosts {
  readonly account: Account;
  readonly posts: readonly Post[];
}

/** One account or every one, each with its posts in the order of time. */
export function* accountsWithPosts(call: DomainCall, id?: string): Steps<readonly AccountWithPosts[]> {
  const scoredAccounts = yield* accountsOf(call, id);
  const scoredPosts = yield* postsOf(call, id === undefined ? undefined : { column: 'account', texts: [id] });
  const postsByAccount = new Map<string, Post[]>();
  yield* forEachInSteps(scoredPosts.length, (i) => {
    const { account } = scoredPosts[i]!;
    if (account === null) return;
    const accountPosts = postsByAccount.get(account);
    if (accountPosts === undefined) postsByAccount.set(account, [scoredPosts[i]!]);
    else accountPosts.push(scoredPosts[i]!);
  });
  return scoredAccounts.map((account) => ({ account, posts: postsByAccount.get(account.id) ?? [] }));
}

export function wordsOf(postText: string): string[] {
  return postText.toLowerCase().match(/[\p{L}\p{N}]+(?:['’][\p{L}]+)*/gu) ?? [];
}
