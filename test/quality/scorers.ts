/**
 * How well planted accounts are told from as many that look alike: bots from fans who repost much and desks on a timetable, groups that
 * act together from crowds that follow the same things, personas of one writer from families with one style.
 */
import { TestRandom, TestStore } from '../harness.ts';

export interface ScorerFigures {
  readonly planted: string;
  readonly call: string;
  /** The chance that a planted account scores above one that only looks alike. */
  readonly auc: number;
}

type Row = Record<string, string | number | null>;

interface World {
  readonly accounts: Row[];
  readonly posts: Row[];
  readonly planted: string[];
  readonly alike: string[];
}

const each = 30;

export async function scorerFigures(seed: number): Promise<ScorerFigures[]> {
  const figures: ScorerFigures[] = [];
  for (const [planted, make, calls] of [
    ['bots', bots, ['BOT_AMPLIFICATION_SCORE()', 'INAUTHENTIC_BEHAVIOUR_SCAN()']],
    ['coordination', coordination, ['COORDINATED_AMPLIFICATION()']],
    ['personas', personas, ['PERSONA_CLUSTER_DETECT()']],
  ] as const) {
    const world = make(new Chance(seed));
    const store = await opened(world);
    for (const call of calls) {
      const rows = await store.rows(`SELECT * FROM ${call}`);
      const scores = new Map(rows.map((row) => [String(row['nodeId']), Number(row['score'] ?? 0)]));
      const of = (id: string): number => scores.get(id) ?? 0;
      const wins = world.planted.flatMap((one) =>
        world.alike.map((other) => (of(one) > of(other) ? 1 : of(one) === of(other) ? 0.5 : 0)),
      );
      figures.push({ planted, call, auc: wins.reduce<number>((sum, win) => sum + win, 0) / wins.length });
    }
    await store.close();
  }
  return figures;
}

async function opened({ accounts, posts }: World): Promise<TestStore> {
  const store = await TestStore.open('2024-06-01');
  const text = 'string';
  const account = { platform: text, handle: text, name: text, bio: text, created_at: 'timestamp', followers: 'integer' } as const;
  await store.register('Account', { id: text, ...account }, 'id');
  await store.register('Post', { id: text, account: text, text, at: 'timestamp', object: text, reply_to: text }, 'id');
  await store.put('Account', accounts);
  await store.put('Post', posts);
  return store;
}

class Chance {
  readonly #bytes: Uint8Array;
  #next = 0;

  constructor(seed: number) {
    this.#bytes = new TestRandom(seed * 53 + 7).fill(new Uint8Array(1 << 17));
  }

  below(sides: number): number {
    const two = this.#bytes[this.#next]! * 256 + this.#bytes[this.#next + 1]!;
    this.#next = (this.#next + 2) % (this.#bytes.length - 2);
    return two % sides;
  }

  words(list: readonly string[], count: number): string {
    return Array.from({ length: count }, () => list[this.below(list.length)]!).join(' ');
  }
}

const topics =
  'river market council winter harvest bridge school hospital station garden music weather traffic football kitchen summer theatre museum election strike'.split(
    ' ',
  );
const little = 'the a of and to in it is that was for on with as but they we you he she'.split(' ');
const hour = 3_600;

function start(): { readonly world: World; say: (account: string, seconds: number, text: string, object?: string) => void } {
  const world: World = { accounts: [], posts: [], planted: [], alike: [] };
  const say = (account: string, seconds: number, text: string, object: string | null = null): void => {
    const at = new Date(Date.UTC(2024, 3, 1) + seconds * 1_000).toISOString();
    world.posts.push({ id: `${account}-${world.posts.length}`, account, text, at, object, reply_to: null });
  };
  return { world, say };
}

function account(world: World, id: string, isPlanted: boolean, more: Row = {}): void {
  (isPlanted ? world.planted : world.alike).push(id);
  const plain = { platform: 'x', handle: id, name: `Name ${id}`, bio: 'local news and music', created_at: '2019-01-01' };
  world.accounts.push({ id, ...plain, followers: 300, ...more });
}

/** Bots repost within seconds, from few sources, in bursts that jitter; some have a profile as anybody has. */
function bots(chance: Chance): World {
  const { world, say } = start();
  for (let i = 0; i < each; i++) {
    const id = `bot${i}`;
    account(
      world,
      id,
      true,
      i % 3 === 0 ? {} : { handle: `user${84_651_230 + i}`, bio: '', created_at: '2024-03-20', followers: 4 },
    );
    for (let k = 0, at = chance.below(hour); k < 25; k++, at += 400 + chance.below(500)) {
      const isOwn = chance.below(8) === 0;
      say(
        id,
        at,
        isOwn ? chance.words(topics, 7) : 'share this now please everyone',
        isOwn ? undefined : `story${chance.below(4)}`,
      );
    }
  }
  for (let i = 0; i < each; i++) {
    const isDesk = i % 2 === 0;
    const id = `${isDesk ? 'desk' : 'fan'}${i}`;
    account(world, id, false);
    for (let k = 0, at = chance.below(20 * hour); k < 25; k++) {
      at += isDesk ? hour : 200 + chance.below(300) * chance.below(300);
      say(id, at, chance.words(topics, 8), !isDesk && chance.below(4) > 0 ? `clip${chance.below(60)}` : undefined);
    }
  }
  return world;
}

/** Groups of five share the same things within seconds; a crowd shares what is popular over hours, now and then at the same moment. */
function coordination(chance: Chance): World {
  const { world, say } = start();
  for (let i = 0; i < each; i++) account(world, `puppet${i}`, true);
  for (let i = 0; i < each; i++) account(world, `crowd${i}`, false);
  for (let group = 0; group < each / 5; group++) {
    for (let k = 0; k < 12; k++) {
      const at = k * 5 * hour + chance.below(hour);
      for (let i = 0; i < 5; i++)
        if (chance.below(4) > 0) say(`puppet${group * 5 + i}`, at + chance.below(8), 'look', `push${group}-${k}`);
    }
  }
  for (let k = 0; k < 40; k++) {
    const at = chance.below(60 * hour);
    for (const id of [...world.planted, ...world.alike]) {
      if (chance.below(3) === 0) say(id, at + chance.below(4 * hour), chance.words(topics, 5), `hit${k}`);
    }
  }
  return world;
}

/** Two accounts of one writer: words, signs and hours are his; a family has one style, and hours and lives of its own. */
function personas(chance: Chance): World {
  const { world, say } = start();
  for (let pair = 0; pair < each / 2; pair++) {
    for (const isPlanted of [true, false]) {
      const own = Array.from({ length: 6 }, () => little[chance.below(little.length)]!);
      const likes = Array.from({ length: 5 }, () => topics[chance.below(topics.length)]!);
      const [end, wakes] = [['!', '...', '.', '!!', ' :)'][chance.below(5)]!, chance.below(24)];
      for (const one of [0, 1]) {
        const id = `${isPlanted ? 'persona' : 'family'}${pair}-${one}`;
        const subjects = isPlanted ? likes : Array.from({ length: 5 }, () => topics[chance.below(topics.length)]!);
        account(world, id, isPlanted, { bio: chance.words(isPlanted ? likes : subjects, 4) });
        const begins = isPlanted ? wakes : (wakes + one * (5 + chance.below(12))) % 24;
        for (let k = 0; k < 30; k++) {
          const at = k * 24 * hour + ((begins + chance.below(4)) % 24) * hour + chance.below(hour);
          const parts = [chance.words(own, 3), chance.words(subjects, 2), chance.words(own, 3), chance.words(subjects, 1)];
          say(id, at, `${parts.join(' ')}${end}`);
        }
      }
    }
  }
  return world;
}
