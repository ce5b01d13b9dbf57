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
export function* textSubject(call: DomainCall, given: string): Steps<TextSubject> {
  const [post] = yield* postsOf(call, { column: '_pk', texts: [given] });
  if (post !== undefined) return { nodeId: post.id, type: post.type, texts: [post.text], systemFrom: post.systemFrom };
  const [account] = yield* accountsOf(call, given);
  if (account === undefined) return { nodeId: null, type: null, texts: [given], systemFrom: null };
  const posts = yield* postsOf(call, { column: 'account', texts: [account.id] });
  return { nodeId: account.id, type: account.type, texts: posts.map(({ text }) => text), systemFrom: account.systemFrom };
}

/** In the order of time. */
export function* postsOf(
  call: DomainCall,
  wanted?: { readonly column: string; readonly texts: readonly string[] },
): Steps<readonly Post[]> {
  const posts: Post[] = [];
  let bytes = 0;
  yield* call.rows(
    'post',
    ['account', 'text', 'at', 'object', 'reply_to'],
    (batch) => {
      for (let row = 0; row < batch.count; row++) {
        const id = batch.nodeId(row);
        if (id === null) continue;
        const text = batch.text('text', row) ?? '';
        bytes += 400 + 2 * text.length;
        posts.push({
          id,
          type: batch.type,
          account: batch.text('account', row),
          text,
          at: batch.instant('at', row) ?? batch.instant('valid_from', row),
          object: batch.text('object', row),
          replyTo: batch.text('reply_to', row),
          systemFrom: batch.systemFrom(row),
        });
      }
      call.hold(bytes);
    },
    wanted,
  );
  return yield* sortItemsInSteps(
    posts,
    (a, b) => compareInstants(a.at, b.at) || compareText(a.id, b.id) || compareText(a.type, b.type),
  );
}

function compareInstants(a: bigint | null, b: bigint | null): number {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? 1 : -1;
  return a < b ? -1 : 1;
}

/** By id. */
export function* accountsOf(call: DomainCall, id?: string): Steps<readonly Account[]> {
  const accounts: Account[] = [];
  yield* call.rows(
    'account',
    ['platform', 'handle', 'name', 'bio', 'created_at', 'followers'],
    (batch) => {
      for (let row = 0; row < batch.count; row++) {
        const account = batch.nodeId(row);
        if (account === null) continue;
        accounts.push({
          id: account,
          type: batch.type,
          platform: batch.text('platform', row),
          handle: batch.text('handle', row),
          name: batch.text('name', row),
          bio: batch.text('bio', row),
          createdAt: batch.instant('created_at', row),
          followers: countOf(batch.number('followers', row)),
          systemFrom: batch.systemFrom(row),
        });
      }
      call.hold(accounts.length * 600);
    },
    id === undefined ? undefined : { column: '_pk', texts: [id] },
  );
  return yield* sortItemsInSteps(accounts, (a, b) => compareText(a.id, b.id) || compareText(a.type, b.type));
}

/** Less than none is no count. */
function countOf(value: number | null): number | null {
  return value !== null && value >= 0 ? value : null;
}

export interface AccountWithPosts {
  readonly account: Account;
  readonly posts: readonly Post[];
}

/** One account or every one, each with its posts in the order of time. */
export function* accountsWithPosts(call: DomainCall, id?: string): Steps<readonly AccountWithPosts[]> {
  const accounts = yield* accountsOf(call, id);
  const posts = yield* postsOf(call, id === undefined ? undefined : { column: 'account', texts: [id] });
  const byAccount = new Map<string, Post[]>();
  yield* forEachInSteps(posts.length, (i) => {
    const { account } = posts[i]!;
    if (account === null) return;
    const all = byAccount.get(account);
    if (all === undefined) byAccount.set(account, [posts[i]!]);
    else all.push(posts[i]!);
  });
  return accounts.map((account) => ({ account, posts: byAccount.get(account.id) ?? [] }));
}

export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+(?:['’][\p{L}]+)*/gu) ?? [];
}
