/** Section 5 of the functions as slowly as its formulas read: each figure worked out anew of all posts that are there. */
import { createRequire } from 'node:module';
import { instantOf, jaccard, wordsOf as nameWordsOf } from './money.ts';
import type { Expected, Question } from './question.ts';
import { functionWords } from './scorer-words.ts';
import type { Basis, World } from './world.ts';

interface Post {
  readonly id: string;
  readonly type: string;
  readonly account: string | null;
  readonly text: string;
  readonly at: bigint;
  readonly object: string | null;
  readonly replyTo: string | null;
}

interface Account {
  readonly id: string;
  readonly type: string;
  readonly platform: string | null;
  readonly handle: string | null;
  readonly name: string | null;
  readonly bio: string | null;
  readonly createdAt: bigint | null;
  readonly followers: number | null;
  readonly posts: readonly Post[];
}

export function* scorerQuestions(world: World, basis: Basis): Generator<Question> {
  const { dice } = world;
  const posts = postsAt(world, basis);
  const accounts = accountsAt(world, basis, posts);
  const [one, other] = [textAsked(world, posts, accounts), textAsked(world, posts, accounts)];
  const about = { nodeId: one.id, type: one.type };
  const texts = BigInt(one.texts.length);
  yield { call: `SENTIMENT_SCORE('${one.given}')`, rows: [{ ...about, texts, score: sentimentOf(one.texts) }] };
  const target = dice.of(['council', 'harbour', 'park', 'nobody']);
  const clauses = one.texts.flatMap(clausesOf).filter((clause) => wordsOf(clause).includes(target));
  yield { call: `STANCE_SCORE('${one.given}', '${target}')`, rows: [{ ...about, texts, score: sentimentOf(clauses) }] };
  yield { call: `BIAS_SCORE('${one.given}')`, rows: [{ ...about, texts, score: biasOf(one.texts) }] };
  const [style, otherStyle] = [styleOf(one.texts), styleOf(other.texts)];
  const digest =
    style.words < 50 ? null : style.thousandths.map((each) => Math.min(35, Math.round(each / 10)).toString(36)).join('');
  yield { call: `STYLE_FINGERPRINT('${one.given}')`, rows: [{ ...about, digest, delta: null, score: null }] };
  const likeness = styleLikeness(style, otherStyle);
  yield {
    call: `STYLE_FINGERPRINT('${one.given}', '${other.given}')`,
    rows: [
      {
        ...about,
        digest: likeness === null ? null : digest,
        delta: likeness === null ? null : deltaOf(style, otherStyle),
        score: likeness,
      },
    ],
  };
  yield* accountQuestions(world, basis, accounts);
  yield narrative(world, posts);
  yield coordinated(world, posts);
  yield personas(world, accounts);
  yield crossPlatform(world, accounts);
}

function postsAt(world: World, basis: Basis): Post[] {
  const posts = world.rows(basis, 'post').map(({ id, type, validFrom, cells }): Post => {
    const [account, object, replyTo] = [cells['account'], cells['object'], cells['reply_to']] as (string | null)[];
    const at = instantOf(cells['at']) ?? validFrom;
    return { id, type, account: account!, text: String(cells['text'] ?? ''), at, object: object!, replyTo: replyTo! };
  });
  return posts.sort((a, b) => (a.at === b.at ? (a.id < b.id ? -1 : 1) : a.at < b.at ? -1 : 1));
}

function accountsAt(world: World, basis: Basis, posts: readonly Post[]): Account[] {
  const accounts = world.rows(basis, 'account').map(({ id, type, cells }): Account => {
    const [platform, handle, name, bio] = ['platform', 'handle', 'name', 'bio'].map((each) => cells[each] as string | null);
    const followers = typeof cells['followers'] === 'number' && cells['followers'] >= 0 ? cells['followers'] : null;
    return {
      id,
      type,
      platform: platform!,
      handle: handle!,
      name: name!,
      bio: bio!,
      createdAt: instantOf(cells['created_at']),
      followers,
      posts: posts.filter((post) => post.account === id),
    };
  });
  return accounts.sort((a, b) => (a.id < b.id ? -1 : 1));
}

interface Asked {
  readonly given: string;
  readonly id: string | null;
  readonly type: string | null;
  readonly texts: readonly string[];
}

function textAsked({ dice }: World, posts: readonly Post[], accounts: readonly Account[]): Asked {
  const which = dice.below(4);
  if (which === 0 && posts.length > 0) {
    const { id, type, text } = dice.of(posts);
    return { given: id, id, type, texts: [text] };
  }
  if (which < 3 && accounts.length > 0) {
    const { id, type, posts: own } = dice.of(accounts);
    return { given: id, id, type, texts: own.map(({ text }) => text) };
  }
  const given = dice.of([
    'what a horrible mess, but the council is great',
    'the table of wood',
    'maybe maybe perhaps the corrupt regime',
  ]);
  return { given, id: null, type: null, texts: [given] };
}

interface Vader {
  readonly SentimentIntensityAnalyzer: {
    polarity_scores(text: string): { readonly pos: number; readonly neg: number; readonly compound: number };
  };
}
const vader = createRequire(import.meta.url)('vader-sentiment') as Vader;

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function sentimentOf(texts: readonly string[]): number | null {
  const scores = texts.map((text) => vader.SentimentIntensityAnalyzer.polarity_scores(text));
  const known = scores.filter(({ pos, neg }) => pos > 0 || neg > 0).map(({ compound }) => compound);
  return known.length === 0 ? null : mean(known);
}

function clausesOf(text: string): string[] {
  return text.split(/[.;!?]|, | but /).filter((clause) => clause.trim() !== '');
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[a-z0-9]+(?:'[a-z]+)*/g) ?? [];
}

/** Of the words that these worlds have. */
const loadedHedgingFactive = new Set(['corrupt', 'regime', 'maybe', 'could', 'perhaps', 'obviously', 'always', 'everyone']);

function biasOf(texts: readonly string[]): number | null {
  const words = texts.flatMap(wordsOf);
  return words.length < 5 ? null : words.filter((word) => loadedHedgingFactive.has(word)).length / words.length;
}

interface Style {
  readonly words: number;
  /** By function word: how many of a thousand words it is. */
  readonly thousandths: readonly number[];
  readonly trigrams: ReadonlyMap<string, number>;
}

function styleOf(texts: readonly string[]): Style {
  const words = texts.flatMap(wordsOf);
  const trigrams = new Map<string, number>();
  for (const text of texts) {
    const plain = ` ${text
      .toLowerCase()
      .replaceAll(/https?:\S+/g, '')
      .replaceAll(/\s+/g, ' ')} `;
    for (let i = 0; i + 3 <= plain.length; i++) {
      const trigram = plain.slice(i, i + 3);
      trigrams.set(trigram, (trigrams.get(trigram) ?? 0) + 1);
    }
  }
  const count = (wanted: string): number => words.filter((word) => word === wanted).length;
  return {
    words: words.length,
    thousandths: functionWords.map((word) => (1_000 * count(word)) / Math.max(1, words.length)),
    trigrams,
  };
}

/** The mean distance, in units of how far writers are apart in a word of that rank. */
function deltaOf(left: Style, right: Style): number {
  return mean(
    functionWords.map((_, rank) => {
      const expected = 60 / (1 + 0.6 * rank);
      return Math.abs(left.thousandths[rank]! - right.thousandths[rank]!) / (0.35 * expected + 1);
    }),
  );
}

function styleLikeness(left: Style, right: Style): number | null {
  if (left.words < 50 || right.words < 50) return null;
  const product = (one: Style, other: Style): number =>
    [...one.trigrams].reduce((sum, [trigram, count]) => sum + count * (other.trigrams.get(trigram) ?? 0), 0);
  const cosine = product(left, right) / Math.sqrt(product(left, left) * product(right, right));
  return 0.5 * Math.exp(-deltaOf(left, right)) + 0.5 * cosine;
}

function* accountQuestions(world: World, basis: Basis, accounts: readonly Account[]): Generator<Question> {
  const only = world.dice.chance(40) && accounts.length > 0 ? world.dice.of(accounts).id : null;
  const given = only === null ? '' : `'${only}'`;
  const asked = accounts.filter(({ id }) => only === null || id === only);
  const rows = (of: (account: Account) => Expected): Expected[] =>
    asked.map((each) => ({ nodeId: each.id, type: each.type, ...of(each) }));
  const tiers = ['nano', 'micro', 'mid', 'macro', 'mega'];
  yield {
    call: `INFLUENCE_TIER(${given})`,
    rows: rows(({ followers }) => {
      if (followers === null) return { tier: null, followers: null, score: null };
      const tier = [1_000, 10_000, 100_000, 1_000_000].filter((least) => followers >= least).length;
      return { tier: tiers[tier], followers: BigInt(followers), score: tier / 4 };
    }),
  };
  yield { call: `AUTHENTICITY_SCORE(${given})`, rows: rows((account) => ({ score: authenticityOf(account, basis.valid) })) };
  yield {
    call: `POSTING_PATTERN(${given})`,
    rows: rows(({ posts }) => {
      if (posts.length < 5) return { score: null, entropy: null, burstiness: null, median_gap_secs: null, period_secs: null };
      const { entropy, burstiness, median, period } = rhythmOf(posts);
      return { score: (1 - burstiness) / 2, entropy, burstiness, median_gap_secs: median, period_secs: period };
    }),
  };
  yield {
    call: `BOT_AMPLIFICATION_SCORE(${given})`,
    rows: rows(({ posts }) => {
      if (posts.length < 5) return { score: null, repost_share: null, sources: null };
      const { share, sources, score } = amplificationOf(posts);
      return { score, repost_share: share, sources: BigInt(sources) };
    }),
  };
  yield {
    call: `INAUTHENTIC_BEHAVIOUR_SCAN(${given})`,
    rows: rows((account) => {
      const { posts } = account;
      if (posts.length < 5) return { score: null, reasons: [] };
      const { score } = amplificationOf(posts);
      const rhythm = rhythmOf(posts);
      const reasons = Object.entries({
        amplifies: score >= 0.5,
        'posts by the clock': rhythm.period !== null,
        'posts faster than a person': rhythm.median < 30,
        'repeats itself': originalityOf(posts) < 0.5,
        'empty profile': profileOf(account) < 0.4,
      }).flatMap(([reason, isOne]) => (isOne ? [reason] : []));
      return { score: 0.5 * (1 - authenticityOf(account, basis.valid)!) + 0.5 * score, reasons };
    }),
  };
}

function authenticityOf(account: Account, now: bigint): number | null {
  const { posts, createdAt } = account;
  if (posts.length < 5) return null;
  const { burstiness, period } = rhythmOf(posts);
  const years = createdAt === null ? null : Number(now - createdAt) / 1e9 / 86_400 / 365;
  const human = Math.min(1, Math.max(0, (burstiness + 0.6) / 0.6)) * (period === null ? 1 : 0.3);
  const signals = [profileOf(account), originalityOf(posts), human];
  return mean(years === null ? signals : [...signals, Math.min(1, Math.max(0, years))]);
}

function profileOf({ handle, name, bio, followers }: Account): number {
  return mean([
    name === null ? 0 : 1,
    bio === null ? 0 : wordsOf(bio).length >= 3 ? 1 : 0.5,
    handle === null || /\d{5,}$/.test(handle) ? 0 : 1,
    followers === null ? 0.5 : Math.min(1, Math.log10(1 + followers) / 2),
  ]);
}

function originalityOf(posts: readonly Post[]): number {
  const words = posts.map(({ text }) => new Set(wordsOf(text)));
  const copies = words.filter((one, i) => words.some((other, j) => i !== j && jaccard(one, other) >= 0.8));
  return 1 - copies.length / posts.length;
}

function rhythmOf(posts: readonly Post[]): { entropy: number; burstiness: number; median: number; period: number | null } {
  const hourOf = ({ at }: Post): bigint => (at / 3_600_000_000_000n) % 168n;
  const shares = [...new Set(posts.map(hourOf))].map(
    (hour) => posts.filter((each) => hourOf(each) === hour).length / posts.length,
  );
  const gaps = posts.slice(1).map(({ at }, i) => Number(at - posts[i]!.at) / 1e9);
  const middle = mean(gaps);
  const deviation = Math.sqrt(mean(gaps.map((gap) => (gap - middle) ** 2)));
  const median = gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)]!;
  const fitting = gaps.filter((gap) => {
    const times = Math.round(gap / median);
    return times > 0 && Math.abs(gap - times * median) <= 0.02 * median;
  });
  return {
    entropy: -shares.reduce((sum, share) => sum + share * Math.log(share), 0) / Math.log(Math.min(168, posts.length)),
    burstiness: middle + deviation === 0 ? -1 : (deviation - middle) / (deviation + middle),
    median,
    period: median > 0 && fitting.length >= 0.8 * gaps.length ? median : null,
  };
}

function amplificationOf(posts: readonly Post[]): { share: number; sources: number; score: number } {
  const reposts = posts.filter(({ object, replyTo }) => object !== null && replyTo === null);
  const share = reposts.length / posts.length;
  const sources = new Set(reposts.map(({ object }) => object)).size;
  const gaps = reposts.slice(1).map(({ at }, i) => Number(at - reposts[i]!.at) / 1e9);
  const median = gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? Infinity;
  const speed = median <= 0 ? 1 : Math.min(1, 60 / median);
  const regularity = Math.min(1, Math.max(0, (0.2 - rhythmOf(posts).burstiness) / 0.8));
  const fewSources = reposts.length === 0 ? 0 : 1 - sources / reposts.length;
  const score = share * (0.1 + 0.3 * speed + 0.3 * regularity + 0.15 * fewSources + 0.15 * (1 - originalityOf(posts)));
  return { share, sources, score: Math.min(1, score) };
}

/** Of each pair of words, the least of 128 hashes. */
function signatureOf(text: string): number[] | null {
  const words = wordsOf(text.replaceAll(/https?:\S+/g, ' '));
  if (words.length < 2) return null;
  const hashes = words.slice(1).map((word, i) => {
    let hash = 0x811c9dc5;
    for (const letter of `${words[i]} ${word}`) hash = Math.imul(hash ^ letter.codePointAt(0)!, 0x01000193);
    return hash >>> 0;
  });
  const finished = (bits: number): number => {
    let mixed = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return (mixed ^ (mixed >>> 16)) >>> 0;
  };
  return Array.from({ length: 128 }, (_, i) => Math.min(...hashes.map((hash) => finished(hash ^ Math.imul(i + 1, 0x9e3779b1)))));
}

function similarityOf(left: readonly number[], right: readonly number[]): number {
  return left.filter((each, i) => each === right[i]).length / 128;
}

function narrative({ dice }: World, posts: readonly Post[]): Question {
  const asked = dice.chance(70) && posts.length > 0 ? dice.of(posts) : null;
  const given = asked?.id ?? 'what a wonderful day in the harbour';
  const least = dice.of([0.7, 0.4]);
  const signature = signatureOf(asked?.text ?? given);
  const found = posts.flatMap((post) => {
    const own = signatureOf(post.text);
    const similarity = own === null || signature === null ? -1 : similarityOf(signature, own);
    return similarity >= least ? [{ post, own: own!, similarity }] : [];
  });
  const hops = new Map<string, bigint>();
  const rows = found.map(({ post, own, similarity }, i): Expected => {
    const earlier = found.slice(0, i);
    const named = earlier.find((each) => each.post.id === post.replyTo || each.post.id === post.object);
    const most = Math.max(...earlier.map((each) => similarityOf(each.own, own)));
    const parent = (named ?? earlier.find((each) => similarityOf(each.own, own) === most))?.post.id ?? null;
    const hop = parent === null ? 0n : hops.get(parent)! + 1n;
    hops.set(post.id, hop);
    const { id, type, account, at } = post;
    return { nodeId: id, type, hop, post: id, account, at, similarity, parent, score: similarity };
  });
  return { call: `NARRATIVE_TRACE('${given}', SIMILARITY => ${least})`, rows, isOrdered: true };
}

function coordinated({ dice }: World, posts: readonly Post[]): Question {
  const [seconds, least, quantile] = [dice.of([10, 30, 3_600]), dice.of([1, 2, 4]), dice.of([0, 0.5, 0.9])];
  const pairs = posts.flatMap((one, i) =>
    posts.slice(i + 1).flatMap((other) => {
      const isTogether =
        other.at - one.at <= BigInt(seconds) * 1_000_000_000n && one.object !== null && one.object === other.object;
      const areTwo = one.account !== null && other.account !== null && one.account !== other.account;
      return isTogether && areTwo ? [[one, other] as const] : [];
    }),
  );
  const takesPart = (account: string): boolean =>
    new Set(pairs.flat().flatMap((post) => (post.account === account ? [post.id] : []))).size >= least;
  const edges = new Map<string, Set<string>>();
  for (const [one, other] of pairs) {
    if (!takesPart(one.account!) || !takesPart(other.account!)) continue;
    const key = [one.account!, other.account!].sort().join(' ');
    edges.set(key, (edges.get(key) ?? new Set()).add(one.object!));
  }
  const weights = [...edges.values()].map(({ size }) => size).sort((a, b) => a - b);
  const place = (weights.length - 1) * quantile;
  const [low, high] = [weights[Math.floor(place)] ?? 0, weights[Math.ceil(place)] ?? 0];
  const heavy = [...edges].filter(([, { size }]) => size >= low + (high - low) * (place - Math.floor(place)));
  const groups = groupsOf(heavy.map(([key]) => key.split(' ') as [string, string]));
  const rows = [...groups].map(([account, members]): Expected => {
    const own = heavy.filter(([key]) => key.split(' ').includes(account));
    const heaviest = Math.max(...own.map(([, { size }]) => size));
    const partners = own.map(([key, objects]) => ({
      account: key.split(' ').find((each) => each !== account),
      objects: objects.size,
    }));
    const objects = new Set(own.flatMap(([, each]) => [...each])).size;
    return {
      nodeId: account,
      type: null,
      group: members[0],
      size: BigInt(members.length),
      partners,
      objects: BigInt(objects),
      score: heaviest / (heaviest + 1),
    };
  });
  return {
    call: `COORDINATED_AMPLIFICATION(TIME_WINDOW => ${seconds}, MIN_PARTICIPATION => ${least}, EDGE_WEIGHT => ${quantile})`,
    rows,
  };
}

/** By each end of an edge, all that edges join it to, ascending. */
function groupsOf(edges: readonly (readonly [string, string])[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const start of new Set(edges.flat())) {
    const reached = new Set([start]);
    for (const each of reached) for (const edge of edges) if (edge.includes(each)) for (const end of edge) reached.add(end);
    groups.set(start, [...reached].sort());
  }
  return groups;
}

function personas({ dice }: World, accounts: readonly Account[]): Question {
  const threshold = dice.of([0.6, 0.7, 0.75]);
  const hoursOf = ({ posts }: Account): number[] =>
    Array.from(
      { length: 24 },
      (_, hour) => posts.filter(({ at }) => Number((at / 3_600_000_000_000n) % 24n) === hour).length / posts.length,
    );
  const many = accounts.filter(({ posts }) => posts.length >= 5);
  const edges = many.flatMap((one, i) =>
    many.slice(i + 1).flatMap((other) => {
      const style = styleLikeness(styleOf(one.posts.map(({ text }) => text)), styleOf(other.posts.map(({ text }) => text)));
      if (style === null) return [];
      const [hours, otherHours] = [hoursOf(one), hoursOf(other)];
      const common = hours.reduce((sum, share, hour) => sum + Math.min(share, otherHours[hour]!), 0);
      const bio = jaccard(new Set(wordsOf(one.bio ?? '')), new Set(wordsOf(other.bio ?? '')));
      const score = 0.6 * style + 0.25 * common + 0.15 * bio;
      return score >= threshold ? [{ ends: [one.id, other.id] as const, score }] : [];
    }),
  );
  const groups = groupsOf(edges.map(({ ends }) => ends));
  const rows = many.flatMap(({ id, type }): Expected[] => {
    const members = groups.get(id);
    if (members === undefined) return [];
    const like = edges.flatMap(({ ends, score }) =>
      ends.includes(id) ? [{ account: ends.find((end) => end !== id), score }] : [],
    );
    const score = Math.max(...like.map((each) => each.score));
    return [{ nodeId: id, type, cluster: members[0], size: BigInt(members.length), like, score }];
  });
  return { call: `PERSONA_CLUSTER_DETECT(THRESHOLD => ${threshold})`, rows };
}

function crossPlatform({ dice }: World, accounts: readonly Account[]): Question {
  const asked = accounts.length > 0 ? dice.of(accounts) : null;
  const threshold = dice.of([0.2, 0.5]);
  const rows = accounts.flatMap((other): Expected[] => {
    const isElsewhere = asked !== null && asked !== other && (other.platform === null || other.platform !== asked.platform);
    if (!isElsewhere) return [];
    const score = 1 - signalsOf(asked, other).reduce((doubt, each) => doubt * (1 - each), 1);
    if (score < threshold) return [];
    return [{ nodeId: other.id, type: other.type, platform: other.platform, handle: other.handle, score }];
  });
  return { call: `CROSS_PLATFORM_ACCOUNT('${asked?.id ?? 'nobody'}', THRESHOLD => ${threshold})`, rows };
}

/** Each as far as it goes alone. */
function signalsOf(one: Account, other: Account): number[] {
  const [left, right] = [one, other].map(({ handle }) => (handle ?? '').toLowerCase().replaceAll('_', '')) as [string, string];
  const bare = (handle: string): string => handle.replace(/\d+$/, '');
  const handles =
    left === right ? 1 : bare(left) === bare(right) ? 0.8 : left.startsWith(right) || right.startsWith(left) ? 0.5 : 0;
  const link = /my\.example\.org/;
  const bios = [one, other].map(({ bio }) => new Set(wordsOf((bio ?? '').replace(link, ' ')))) as [Set<string>, Set<string>];
  const style = styleLikeness(styleOf(one.posts.map(({ text }) => text)), styleOf(other.posts.map(({ text }) => text)));
  return [
    left.length >= 4 && right.length >= 4 ? 0.6 * handles : 0,
    one.name === null || other.name === null ? 0 : 0.35 * jaccard(nameWordsOf(one.name), nameWordsOf(other.name)),
    bios[0].size < 3 || bios[1].size < 3 ? 0 : 0.4 * jaccard(...bios),
    link.test(one.bio ?? '') && link.test(other.bio ?? '') ? 0.7 : 0,
    style === null ? 0 : 0.3 * Math.max(0, 2 * style - 1),
  ];
}
