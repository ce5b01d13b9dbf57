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
    *run(scorerCall: DomainCall): Steps<readonly DomainRow[]> {
      const { valid } = scorerCall.execution.time;
      const scoringInstant = valid === 'all' ? scorerCall.execution.kernels.instant : valid;
      const accountScoreRows: DomainRow[] = [];
      for (const { account, posts: accountPosts } of yield* accountsWithPosts(scorerCall, scorerCall.text('ACCOUNT'))) {
        scorerCall.look(accountPosts.length * looksPerScoredPost);
        const scoredAccount = scoreOf(account, accountPosts, scoringInstant);
        const {
          score,
          cells: scoreCells = [],
          evidence: scoreEvidence,
        } = 'next' in scoredAccount ? yield* scoredAccount : scoredAccount;
        accountScoreRows.push({
          nodeId: account.id,
          type: account.type,
          cells: scoreCells,
          score,
          evidence: scoreEvidence,
          systemFrom: account.systemFrom,
        });
        yield;
      }
      return accountScoreRows;
    },
  });
}

const looksPerScoredPost = 100;
const tooFewPosts = (posts: readonly Post[]): Json => ({ why: `fewer than ${postsMin} posts`, posts: posts.length });

const accountYearNs = 365 * 86_400e9;

export const authenticityScore: TableFunction = accountScorer({
  name: 'AUTHENTICITY_SCORE',
  summary: 'How much an account looks like a person: its age, profile, originality and rhythm.',
  method: 'authenticity/1',
  columns: [],
  scoreOf: (account, posts, now) => accountAuthenticity(account, posts, now),
});

function* accountAuthenticity(account: Account, accountPosts: readonly Post[], scoringInstant: bigint): Steps<AccountScore> {
  const [postRhythm, postOriginality] = [rhythmOf(accountPosts), yield* originalityOf(accountPosts)];
  if (postRhythm === null || postOriginality === null) return { score: null, evidence: tooFewPosts(accountPosts) };
  const ageSignal =
    account.createdAt === null ? null : Math.min(1, Math.max(0, Number(scoringInstant - account.createdAt)) / accountYearNs);
  const authenticitySignals = {
    ...(ageSignal !== null && { age: ageSignal }),
    profile: profileOf(account),
    originality: postOriginality,
    // A clock is no person, and neither is who never sleeps.
    rhythm: Math.min(1, Math.max(0, (postRhythm.burstiness + 0.6) / 0.6)) * (postRhythm.periodSecs === null ? 1 : 0.3),
  };
  const signalValues = Object.values(authenticitySignals);
  return {
    score: signalValues.reduce((sum, signalValue) => sum + signalValue, 0) / signalValues.length,
    evidence: authenticitySignals,
  };
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
    const postRhythm = rhythmOf(posts);
    if (postRhythm === null) return { score: null, cells: [null, null, null, null], evidence: tooFewPosts(posts) };
    const { entropy, burstiness, medianGapSecs, periodSecs } = postRhythm;
    // Like a clock is 1, in bursts is 0.
    const postRegularity = (1 - burstiness) / 2;
    return { score: postRegularity, cells: [entropy, burstiness, medianGapSecs, periodSecs], evidence: { posts: posts.length } };
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
  scoreOf: (_account, posts) => accountAmplification(posts),
});

function* accountAmplification(accountPosts: readonly Post[]): Steps<AccountScore> {
  if (accountPosts.length < postsMin) return { score: null, cells: [null, null], evidence: tooFewPosts(accountPosts) };
  const repostedPosts = repostsOf(accountPosts);
  const repostShare = repostedPosts.length / accountPosts.length;
  const repostedObjects = new Map<string, number>();
  for (const { object } of repostedPosts) repostedObjects.set(object!, (repostedObjects.get(object!) ?? 0) + 1);
  const repostGapsSecs = repostedPosts
    .slice(1)
    .flatMap(({ at }, i) => (at === null || repostedPosts[i]!.at === null ? [] : [Number(at - repostedPosts[i]!.at!) / 1e9]));
  const medianGapSecs = repostGapsSecs.toSorted((a, b) => a - b)[repostGapsSecs.length >> 1] ?? Infinity;
  const postRhythm = rhythmOf(accountPosts);
  const amplificationSignals = {
    repost_share: repostShare,
    // A minute between two is fast, an hour is not.
    speed: medianGapSecs <= 0 ? 1 : Math.min(1, 60 / medianGapSecs),
    regularity: postRhythm === null ? 0 : Math.min(1, Math.max(0, (0.2 - postRhythm.burstiness) / 0.8)),
    few_sources: repostedPosts.length === 0 ? 0 : 1 - repostedObjects.size / repostedPosts.length,
    unoriginal: 1 - (yield* originalityOf(accountPosts))!,
  };
  // A fan reposts much, but at hours of his own; a desk is regular, but writes its own.
  const amplificationScore =
    repostShare *
    (0.1 +
      0.3 * amplificationSignals.speed +
      0.3 * amplificationSignals.regularity +
      0.15 * amplificationSignals.few_sources +
      0.15 * amplificationSignals.unoriginal);
  return {
    score: Math.min(1, amplificationScore),
    cells: [repostShare, BigInt(repostedObjects.size)],
    evidence: amplificationSignals,
  };
}

export const inauthenticBehaviour: TableFunction = accountScorer({
  name: 'INAUTHENTIC_BEHAVIOUR_SCAN',
  summary: 'Accounts by all signals of what is not a person, with the reasons.',
  method: 'inauthentic/1',
  columns: [{ name: 'reasons', type: 'json' }],
  *scoreOf(account, posts, now) {
    const authenticityResult = yield* accountAuthenticity(account, posts, now);
    const amplificationResult = yield* accountAmplification(posts);
    if (authenticityResult.score === null || amplificationResult.score === null)
      return { score: null, cells: ['[]'], evidence: tooFewPosts(posts) };
    const postRhythm = rhythmOf(posts)!;
    const inauthenticReasons = [
      ...(amplificationResult.score >= 0.5 ? ['amplifies'] : []),
      ...(postRhythm.periodSecs !== null ? ['posts by the clock'] : []),
      ...(postRhythm.medianGapSecs < 30 ? ['posts faster than a person'] : []),
      ...((yield* originalityOf(posts))! < 0.5 ? ['repeats itself'] : []),
      ...(profileOf(account) < 0.4 ? ['empty profile'] : []),
    ];
    const inauthenticScore = 0.5 * (1 - authenticityResult.score) + 0.5 * amplificationResult.score;
    return {
      score: inauthenticScore,
      cells: [JSON.stringify(inauthenticReasons)],
      evidence: { authenticity: authenticityResult.score, amplification: amplificationResult.score },
    };
  },
});
