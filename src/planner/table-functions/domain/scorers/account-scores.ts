/** AUTHENTICITY_SCORE, POSTING_PATTERN, BOT_AMPLIFICATION_SCORE, INAUTHENTIC_BEHAVIOUR_SCAN. Source: specification, "SQL dialect", the table of operators. */
import type { Json } from '../../../../log/values/canonical-json.ts';
import type { Steps } from '../../../graph/stepped-sort.ts';
import type { PlanColumn } from '../../../logical-plan.ts';
import type { TableFunction } from '../../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from '../domain-function.ts';
import { originalityOf, profileOf, repostsOf, rhythmOf } from './account-signals.ts';
import { type Account, accountArgument, accountRoles, accountsWithPosts, type Post, postsMin } from './scored-posts.ts';

interface AccountScore {
  readonly score: number | null;
  readonly cells?: DomainRow['cells'];
  readonly evidence: Json;
}

interface AccountScorer {
  readonly name: string;
  readonly summary: string;
  readonly method: string;
  readonly columns: readonly PlanColumn[];
  /** `now` is the instant that the question is about. */
  readonly scoreOf: (account: Account, posts: readonly Post[], now: bigint) => Steps<AccountScore> | AccountScore;
}

function accountScorer({ name, summary, method, columns, scoreOf }: AccountScorer): TableFunction {
  return domainFunction({
    name,
    summary,
    method,
    arguments: [accountArgument],
    roles: accountRoles,
    columns,
    *run(call: DomainCall): Steps<readonly DomainRow[]> {
      const { valid } = call.execution.time;
      const now = valid === 'all' ? call.execution.kernels.instant : valid;
      const rows: DomainRow[] = [];
      for (const { account, posts } of yield* accountsWithPosts(call, call.text('ACCOUNT'))) {
        call.look(posts.length * looksPerPost);
        const scored = scoreOf(account, posts, now);
        const { score, cells = [], evidence } = 'next' in scored ? yield* scored : scored;
        rows.push({ nodeId: account.id, type: account.type, cells, score, evidence, systemFrom: account.systemFrom });
        yield;
      }
      return rows;
    },
  });
}

const looksPerPost = 100;
const tooFew = (posts: readonly Post[]): Json => ({ why: `fewer than ${postsMin} posts`, posts: posts.length });

const yearNs = 365 * 86_400e9;

export const authenticityScore: TableFunction = accountScorer({
  name: 'AUTHENTICITY_SCORE',
  summary: 'How much an account looks like a person: its age, profile, originality and rhythm.',
  method: 'authenticity/1',
  columns: [],
  scoreOf: (account, posts, now) => authenticityOf(account, posts, now),
});

function* authenticityOf(account: Account, posts: readonly Post[], now: bigint): Steps<AccountScore> {
  const [rhythm, originality] = [rhythmOf(posts), yield* originalityOf(posts)];
  if (rhythm === null || originality === null) return { score: null, evidence: tooFew(posts) };
  const age = account.createdAt === null ? null : Math.min(1, Math.max(0, Number(now - account.createdAt)) / yearNs);
  const signals = {
    ...(age !== null && { age }),
    profile: profileOf(account),
    originality,
    // A clock is no person, and neither is who never sleeps.
    rhythm: Math.min(1, Math.max(0, (rhythm.burstiness + 0.6) / 0.6)) * (rhythm.periodSecs === null ? 1 : 0.3),
  };
  const values = Object.values(signals);
  return { score: values.reduce((sum, value) => sum + value, 0) / values.length, evidence: signals };
}

export const postingPattern: TableFunction = accountScorer({
  name: 'POSTING_PATTERN',
  summary: 'When an account posts: how spread over the week, how bursty, how regular.',
  method: 'rhythm/1',
  columns: [
    { name: 'entropy', type: 'number' },
    { name: 'burstiness', type: 'number' },
    { name: 'median_gap_secs', type: 'number' },
    { name: 'period_secs', type: 'number' },
  ],
  scoreOf: (_account, posts) => {
    const rhythm = rhythmOf(posts);
    if (rhythm === null) return { score: null, cells: [null, null, null, null], evidence: tooFew(posts) };
    const { entropy, burstiness, medianGapSecs, periodSecs } = rhythm;
    // Like a clock is 1, in bursts is 0.
    const regularity = (1 - burstiness) / 2;
    return { score: regularity, cells: [entropy, burstiness, medianGapSecs, periodSecs], evidence: { posts: posts.length } };
  },
});

export const botAmplification: TableFunction = accountScorer({
  name: 'BOT_AMPLIFICATION_SCORE',
  summary: 'How much an account does nothing but repost, fast or by the clock, and from few sources.',
  method: 'amplification/1',
  columns: [
    { name: 'repost_share', type: 'number' },
    { name: 'sources', type: 'integer' },
  ],
  scoreOf: (_account, posts) => amplificationOf(posts),
});

function* amplificationOf(posts: readonly Post[]): Steps<AccountScore> {
  if (posts.length < postsMin) return { score: null, cells: [null, null], evidence: tooFew(posts) };
  const reposts = repostsOf(posts);
  const share = reposts.length / posts.length;
  const objects = new Map<string, number>();
  for (const { object } of reposts) objects.set(object!, (objects.get(object!) ?? 0) + 1);
  const gaps = reposts
    .slice(1)
    .flatMap(({ at }, i) => (at === null || reposts[i]!.at === null ? [] : [Number(at - reposts[i]!.at!) / 1e9]));
  const median = gaps.toSorted((a, b) => a - b)[gaps.length >> 1] ?? Infinity;
  const rhythm = rhythmOf(posts);
  const signals = {
    repost_share: share,
    // A minute between two is fast, an hour is not.
    speed: median <= 0 ? 1 : Math.min(1, 60 / median),
    regularity: rhythm === null ? 0 : Math.min(1, Math.max(0, (0.2 - rhythm.burstiness) / 0.8)),
    few_sources: reposts.length === 0 ? 0 : 1 - objects.size / reposts.length,
    unoriginal: 1 - (yield* originalityOf(posts))!,
  };
  // A fan reposts much, but at hours of his own; a desk is regular, but writes its own.
  const score =
    share * (0.1 + 0.3 * signals.speed + 0.3 * signals.regularity + 0.15 * signals.few_sources + 0.15 * signals.unoriginal);
  return { score: Math.min(1, score), cells: [share, BigInt(objects.size)], evidence: signals };
}

export const inauthenticBehaviour: TableFunction = accountScorer({
  name: 'INAUTHENTIC_BEHAVIOUR_SCAN',
  summary: 'Accounts by all signals of what is not a person, with the reasons.',
  method: 'inauthentic/1',
  columns: [{ name: 'reasons', type: 'json' }],
  *scoreOf(account, posts, now) {
    const authenticity = yield* authenticityOf(account, posts, now);
    const amplification = yield* amplificationOf(posts);
    if (authenticity.score === null || amplification.score === null)
      return { score: null, cells: ['[]'], evidence: tooFew(posts) };
    const rhythm = rhythmOf(posts)!;
    const reasons = [
      ...(amplification.score >= 0.5 ? ['amplifies'] : []),
      ...(rhythm.periodSecs !== null ? ['posts by the clock'] : []),
      ...(rhythm.medianGapSecs < 30 ? ['posts faster than a person'] : []),
      ...((yield* originalityOf(posts))! < 0.5 ? ['repeats itself'] : []),
      ...(profileOf(account) < 0.4 ? ['empty profile'] : []),
    ];
    const score = 0.5 * (1 - authenticity.score) + 0.5 * amplification.score;
    return {
      score,
      cells: [JSON.stringify(reasons)],
      evidence: { authenticity: authenticity.score, amplification: amplification.score },
    };
  },
});
