/** Scorers of texts and accounts: worked examples, references, and planted accounts among as many that look alike. */
import { createRequire } from 'node:module';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { finishSteps } from '../../../finish-steps.ts';
import { coordinationOf } from '../../../../src/planner/table-functions/domain/scorers/coordinated-amplification.ts';
import { rhythmOf } from '../../../../src/planner/table-functions/domain/scorers/account-signals.ts';
import { piecesOf, type Sentiment, sentimentOf } from '../../../../src/planner/table-functions/domain/scorers/sentiment.ts';
import type { Post } from '../../../../src/planner/table-functions/domain/scorers/scored-posts.ts';
import { TestRandom, TestStore } from '../../../harness.ts';

const sentiment = (text: string, wordsMax = 0): Sentiment => finishSteps(sentimentOf(text, wordsMax));
const compound = (text: string): number | null => sentiment(text).compound;

test('sentiment is that of VADER, in steps and whatever a text is made of', () => {
  expect(compound('the table has four legs')).toBeNull();
  // The examples of VADER's own description.
  expect(compound('VADER is smart, handsome, and funny.')).toBe(0.8316);
  expect(compound('VADER is VERY SMART, handsome, and FUNNY!!!')).toBe(0.9342);
  expect(compound('VADER is not smart, handsome, nor funny.')).toBe(-0.7424);
  expect(compound('At least it isn’t a horrible book.')).toBe(0.431);
  expect(compound('😍')).toBe(compound(':)'));
  expect(sentiment('Good, GOOD food; sadly a rude waiter :(', 3).words).toEqual(['good', 'sadly', 'rude']);
  const long = `${'a very good day. '.repeat(100)}${'the table has four legs. '.repeat(100)}`;
  expect([...piecesOf(long)].join('')).toBe(long);
  expect(compound(long)!).toBeCloseTo(compound('a very good day. '.repeat(35))!, 1);
  // Nothing that VADER takes by the third power of its length is given to it whole.
  let steps = 0;
  for (const step of sentimentOf('A'.repeat(20_000))) steps += step === undefined ? 1 : 0;
  expect(steps).toBeGreaterThan(30);
});

const secondNs = 1_000_000_000n;
const post = (id: string, account: string, seconds: number, object: string | null = null): Post => {
  const at = BigInt(seconds) * secondNs;
  return { id, type: 'Post', account, text: '', at, object, replyTo: null, systemFrom: null };
};

test('a rhythm is that of the gaps', () => {
  const clock = rhythmOf([0, 1, 2, 3, 4, 5].map((i) => post(`p${i}`, 'a', i * 3_600)))!;
  expect(clock).toMatchObject({ burstiness: -1, medianGapSecs: 3_600, periodSecs: 3_600 });
  expect(clock.entropy).toBeCloseTo(1, 12);
  expect(rhythmOf([0, 1, 2, 3].map((i) => post(`p${i}`, 'a', i)))).toBeNull();
});

test('coordination is that of every pair of posts', () => {
  const bytes = new TestRandom(9).fill(new Uint8Array(3_000));
  for (let round = 0; round < 20; round++) {
    const posts = Array.from({ length: 40 }, (_, i) => {
      const [account, object, at] = bytes.subarray(120 * round + 3 * i);
      return post(`p${i}`, `a${account! % 6}`, at!, `o${object! % 8}`);
    }).sort((a, b) => Number(a.at! - b.at!));
    const options = { windowNs: 10n * secondNs, participationMin: 2, edgeQuantile: 0.5 };
    const edges = finishSteps(coordinationOf(posts, options, () => undefined));
    const pairs = posts.flatMap((a) =>
      posts
        .filter((b) => a.account! < b.account! && a.object === b.object && Math.abs(Number(a.at! - b.at!)) <= 10e9)
        .map((b) => [a, b] as const),
    );
    const posted = (account: string): number =>
      new Set(pairs.flat().flatMap((each) => (each.account === account ? [each.id] : []))).size;
    const weights = new Map<string, Set<string>>();
    for (const [a, b] of pairs) {
      if (posted(a.account!) < 2 || posted(b.account!) < 2) continue;
      const key = `${a.account!} ${b.account!}`;
      weights.set(key, (weights.get(key) ?? new Set()).add(a.object!));
    }
    const sizes = [...weights.values()].map(({ size }) => size).sort((a, b) => a - b);
    const middle = (sizes.length - 1) / 2;
    const median = sizes.length === 0 ? 0 : (sizes[Math.floor(middle)]! + sizes[Math.ceil(middle)]!) / 2;
    const expected = [...weights].filter(([, { size }]) => size >= median).map(([key, { size }]) => `${key} ${size}`);
    expect(edges.map(({ one, other, objects }) => `${one} ${other} ${objects.size}`)).toEqual(expected.sort());
  }
});

test('hundreds of accounts that share one thing are one group, however many pairs they are', async () => {
  const crowd = await TestStore.open('2024-03-02');
  await crowd.register('Post', { id: 'string', account: 'string', text: 'string', at: 'timestamp', object: 'string' }, 'id');
  // Their pairs are more than a call can have arguments.
  const accounts = 520;
  const name = (i: number): string => `a${String(i).padStart(3, '0')}`;
  const posts = Array.from({ length: accounts }, (_, i) => ({ account: name(i), text: 'look', at: '2024-03-01', object: 'o' }));
  await crowd.put(
    'Post',
    posts.map((each, i) => ({ id: `p${i}`, ...each })),
  );
  const rows = await crowd.rows('COORDINATED_AMPLIFICATION(MIN_PARTICIPATION => 1)');
  expect(rows.map(({ nodeId, group, size }) => [nodeId, group, size])).toEqual(
    posts.map(({ account }) => [account, name(0), BigInt(accounts)]),
  );
  await crowd.close();
});

let store: TestStore;
const bots = Array.from({ length: 8 }, (_, i) => `bot${i}`);
const lookalikes = [...Array.from({ length: 4 }, (_, i) => `fan${i}`), ...Array.from({ length: 4 }, (_, i) => `desk${i}`)];
const topics = 'river market council winter harvest bridge school hospital station garden music weather'.split(' ');

beforeAll(async () => {
  store = await TestStore.open('2024-06-01');
  const text = 'string';
  const account = { platform: text, handle: text, name: text, bio: text, created_at: 'timestamp', followers: 'integer' } as const;
  await store.register('Account', { id: 'string', ...account }, 'id');
  await store.register('Post', { id: 'string', account: text, text, at: 'timestamp', object: text, reply_to: text }, 'id');
  const bytes = new TestRandom(4).fill(new Uint8Array(8_000));
  let next = 0;
  const chance = (sides: number): number => bytes[next++ % bytes.length]! % sides;
  const at = (seconds: number): string => new Date(Date.UTC(2024, 3, 1) + seconds * 1_000).toISOString();
  const posts: Record<string, unknown>[] = [];
  const say = (who: string, seconds: number, words: string, object: string | null = null): void =>
    void posts.push({ id: `${who}-${posts.length}`, account: who, text: words, at: at(seconds), object, reply_to: null });
  const sentence = (): string => Array.from({ length: 8 }, () => topics[chance(topics.length)]).join(' ');
  bots.forEach((bot, b) => {
    for (let i = 0; i < 20; i++) say(bot, i * 600 + b, 'share this now please everyone', `story${i % 3}`);
  });
  for (const who of lookalikes) {
    let seconds = chance(200) * 60;
    for (let i = 0; i < 20; i++) {
      const isDesk = who.startsWith('desk');
      seconds += isDesk ? 3_600 : 300 + chance(250) * chance(250);
      // A fan reposts three of four; a desk writes its own by the hour.
      say(who, seconds, sentence(), !isDesk && chance(4) > 0 ? `clip${chance(60)}` : null);
    }
  }
  say('few', 0, 'a good day');
  say('few', 9, 'but the council is terrible');
  await store.put('Post', posts);
  await store.put('Account', [
    ...bots.map((id, i) => ({
      id,
      platform: 'x',
      handle: `user${84_651_230 + i}`,
      name: '',
      bio: '',
      created_at: '2024-03-25',
      followers: 2,
    })),
    ...lookalikes.map((id) => ({
      id,
      platform: 'x',
      handle: id,
      name: `The ${id}`,
      bio: 'local news and music',
      created_at: '2019-01-01',
      followers: 900,
    })),
    {
      id: 'few',
      platform: 'x',
      handle: 'few_words',
      name: 'Ann Few',
      bio: 'writes at few.example.org',
      created_at: '2020-01-01',
      followers: 5,
    },
    {
      id: 'few2',
      platform: 'y',
      handle: 'fewwords',
      name: 'Few, Ann',
      bio: 'see few.example.org',
      created_at: '2020-01-01',
      followers: 5,
    },
  ]);
});
afterAll(() => store.close());

/** The chance that a planted account scores above one that only looks alike. */
async function auc(call: string): Promise<number> {
  const scores = new Map((await store.rows(`SELECT * FROM ${call}`)).map((row) => [String(row['nodeId']), Number(row['score'])]));
  const score = (id: string): number => scores.get(id) ?? 0;
  const wins = bots.flatMap((bot) =>
    lookalikes.map((other) => (score(bot) > score(other) ? 1 : score(bot) === score(other) ? 0.5 : 0)),
  );
  return wins.reduce((sum: number, win) => sum + win, 0) / wins.length;
}

test('planted bots stand out of fans who repost and desks on a timetable', async () => {
  expect(await auc('BOT_AMPLIFICATION_SCORE()')).toBeGreaterThan(0.9);
  expect(await auc('INAUTHENTIC_BEHAVIOUR_SCAN()')).toBeGreaterThan(0.9);
  expect(await auc('COORDINATED_AMPLIFICATION()')).toBeGreaterThan(0.9);
  expect(1 - (await auc('AUTHENTICITY_SCORE()'))).toBeGreaterThan(0.9);
});

const one = async (call: string): Promise<Readonly<Record<string, unknown>>> => (await store.rows(`SELECT * FROM ${call}`))[0]!;

test('too little to go by is said, not guessed', async () => {
  for (const call of ["AUTHENTICITY_SCORE('few')", "POSTING_PATTERN('few')", "BOT_AMPLIFICATION_SCORE('few')"]) {
    const { score, evidence } = await one(call);
    expect([score, JSON.parse(String(evidence))]).toEqual([null, { why: 'fewer than 5 posts', posts: 2 }]);
  }
  expect(await one("STYLE_FINGERPRINT('few')")).toMatchObject({ score: null, digest: null });
  expect(await one("SENTIMENT_SCORE('the table')")).toMatchObject({ nodeId: null, score: null });
  expect(await one("BIAS_SCORE('too short')")).toMatchObject({ score: null });
});

test('a text, a post and an account are scored', async () => {
  expect(Number((await one("SENTIMENT_SCORE('what a wonderful day')"))['score'])).toBeGreaterThan(0.5);
  expect(await one("SENTIMENT_SCORE('few')")).toMatchObject({ nodeId: 'few', type: 'Account', texts: 2n });
  expect(Number((await one("STANCE_SCORE('few', 'council')"))['score'])).toBeLessThan(0);
  expect(await one("STANCE_SCORE('few', 'harbour')")).toMatchObject({ score: null });
  expect(await one("BIAS_SCORE('Obviously the corrupt regime always lies')")).toMatchObject({ score: 4 / 6 });
  expect(Number((await one("STYLE_FINGERPRINT('bot1', 'bot2')"))['score'])).toBeGreaterThan(0.99);
});

test('a narrative begins with who said it first', async () => {
  const rows = await store.rows("NARRATIVE_TRACE('Share this NOW, please, everyone!')");
  expect(rows).toHaveLength(160);
  expect(rows[0]).toMatchObject({ hop: 0n, account: 'bot0', similarity: 1, parent: null });
  expect(rows[1]).toMatchObject({ hop: 1n, parent: rows[0]!['post'] });
});

test('accounts of one writer are a cluster, and candidates elsewhere have reasons', async () => {
  const clusters = await store.rows('SELECT * FROM PERSONA_CLUSTER_DETECT(THRESHOLD => 0.8)');
  expect(clusters.filter(({ cluster }) => cluster === 'bot0').map(({ nodeId }) => nodeId)).toEqual(expect.arrayContaining(bots));
  const [found, ...others] = await store.rows("SELECT * FROM CROSS_PLATFORM_ACCOUNT('few')");
  expect([found!['nodeId'], found!['handle'], others]).toEqual(['few2', 'fewwords', []]);
});

test("a text of one piece has VADER's own score", () => {
  const { SentimentIntensityAnalyzer: vader } = createRequire(import.meta.url)('vader-sentiment') as {
    readonly SentimentIntensityAnalyzer: { polarity_scores(text: string): { readonly compound: number } };
  };
  const words = (
    'the GOOD, bad!! never so this great least at kind of sort of not very VERY but BUT hardly "nice" (sad) :) :( ?? horrible?!? ' +
    "isn't love hate. a I the bomb yeah right fucking !!!glad without terrible, dreadful.,"
  ).split(' ');
  const random = new TestRandom(5);
  for (let round = 0; round < 300; round++) {
    const text = [...random.fill(new Uint8Array(1 + (round % 12)))].map((at) => words[at % words.length]).join(' ');
    expect(finishSteps(sentimentOf(text)).compound ?? 0, text).toBe(vader.polarity_scores(text).compound);
  }
});
