/**
 * Conversations as people have them: what each says of themselves over months, small talk in between that uses the same words, and
 * later corrections. Questions are asked in other words and other forms of words than the answers were given in, some of them about
 * an earlier time. The same for the same seed; those of one half share no person with the other.
 */

export interface Turn {
  readonly id: string;
  readonly session: string;
  /** When it was said, and from when on it holds. */
  readonly at: string;
  readonly text: string;
  /** Id of the turn that it corrects. */
  readonly corrects?: string;
}

export type QuestionKind = 'fact' | 'corrected' | 'time';

export interface Question {
  readonly kind: QuestionKind;
  readonly text: string;
  /** The turn that answers it. */
  readonly turn: string;
  /** About this instant; absent: about now. */
  readonly at?: string;
}

export interface Conversations {
  readonly turns: readonly Turn[];
  readonly questions: readonly Question[];
}

type Draw = (below: number) => number;

function random(seed: number): Draw {
  let state = (Math.imul(seed + 1, 0x9e3779b1) ^ 0x5bd1e995) | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** What somebody may say of themselves, in ways to say it; and how one asks for it. `$` is the value. */
interface Topic {
  readonly values: readonly string[];
  readonly said: readonly string[];
  readonly asked: readonly string[];
}

const topics: readonly Topic[] = [
  {
    values: ['Oslo', 'Lisbon', 'Kyoto', 'Bergen', 'Porto', 'Ghent', 'Leeds', 'Turin'],
    said: [
      '%: I moved to $ last weekend, boxes everywhere',
      '%: we are settled in $ now',
      '%: finally living in $, the flat is tiny',
    ],
    asked: ['Which town has % relocated to?', 'In what city does % live?', 'Where did % move?'],
  },
  {
    values: ['painting', 'rowing', 'pottery', 'climbing', 'baking', 'birdwatching', 'knitting', 'fencing'],
    said: ['%: I took up $ in the spring and love it', '%: $ keeps me sane these days', '%: signed up for $ classes again'],
    asked: ['What hobby has % started?', "What are %'s hobbies?", 'Which class did % sign up to?'],
  },
  {
    values: ['a beagle', 'two cats', 'a parrot', 'a tortoise', 'an old greyhound', 'goldfish'],
    said: ['%: we adopted $ from the shelter', '%: there is $ in the house since Friday', '%: $ chewed my slippers again'],
    asked: ['Which pets did % adopt?', 'What animal does % keep?', 'What pet has % got?'],
  },
  {
    values: ['nurse', 'carpenter', 'translator', 'pilot', 'archivist', 'brewer', 'surveyor'],
    said: ['%: they hired me as a $, I begin on Monday', '%: working as a $ now', '%: my new job as $ is harder than I thought'],
    asked: ['What is %’s profession?', 'What does % work as?', 'Which job was % hired for?'],
  },
  {
    values: ['penicillin', 'peanuts', 'shellfish', 'bee stings', 'latex', 'pollen'],
    said: ['%: the doctor says I am allergic to $', '%: no $ for me, my face swells', '%: turns out $ makes me ill'],
    asked: ['What allergies has %?', 'What must % avoid for health?', 'What is % allergic against?'],
  },
  {
    values: ['a blue Volvo', 'a cargo bike', 'a red van', 'an electric scooter', 'a used Fiat'],
    said: ['%: bought $ yesterday, it purrs', '%: I drive $ these days', '%: sold everything else, it is only $ now'],
    asked: ['Which vehicle is % driving?', 'What did % buy to get around?', 'What does % drive?'],
  },
  {
    values: ['her sister Ines', 'his cousin Ravi', 'an aunt from Malta', 'the twins', 'a friend called Odd'],
    said: ['%: $ is visiting us in the holidays', '%: picking up $ at the station', '%: $ stays in the spare room'],
    asked: ['Who visited %?', 'Which visitors does % expect?', 'Who is staying with %?'],
  },
  {
    values: ['the marathon', 'her thesis', 'the driving test', 'the choir audition', 'a sailing licence'],
    said: ['%: I passed $, nobody expected it', '%: done with $ at last', '%: finishing $ took all I had'],
    asked: ['What did % finish?', 'Which exam or goal did % complete?', 'What has % passed?'],
  },
];

/** Nothing is asked about these; they share words with what is. */
const talk: readonly string[] = [
  '%: did you see the weather in $ today',
  '%: somebody at work talks of $ all the time',
  '%: my neighbour wants $, can you believe it',
  '%: we should have coffee and talk about $ some day',
  '%: read an article on $ in the train',
  '%: what is it with $ and everybody',
  '%: I dreamt of $, no idea why',
  '%: who moved my cup, and where did the job list go',
  '%: what a day, the town is full of visitors',
  '%: the doctor was late, as ever',
  '%: which class of train do you take to work',
  '%: nobody expected that the car would start',
  '%: thanks, that was kind of you',
  '%: see you on Monday then',
];

const names: readonly string[] = (
  'Ada Bob Cleo Dan Eve Finn Gus Hal Ida Jon Kit Lea Max Nia Oda Pim Quin Rosa Sam Tess Uma Vic Wes Xan Yara Zoe Abe Bea Cal Dot ' +
  'Eli Fay Gil Hope Ivo Jill Ken Lou Mona Ned'
).split(' ');

const day = (n: number): string => new Date(Date.UTC(2023, 0, 1 + n)).toISOString().slice(0, 10);

/** `half` 1 is for working on what ranks, 2 is held out. */
export function conversations(half: 1 | 2, seed = 1): Conversations {
  const draw = random(seed * 2 + half);
  const pick = <T>(of: readonly T[]): T => of[draw(of.length)]!;
  const people = names.filter((_, i) => i % 2 === half - 1);
  const turns: Turn[] = [];
  const questions: Question[] = [];
  const say = (n: number, session: string, text: string, corrects?: string): string => {
    const id = `t${turns.length}`;
    turns.push({ id, session, at: day(n), text, ...(corrects !== undefined && { corrects }) });
    return id;
  };
  const filled = (text: string, who: string, value: string): string =>
    text.replaceAll('%', () => who).replaceAll('$', () => value);
  const standing = new Map<string, { id: string; topic: Topic; who: string; day: number }>();
  for (let n = 0; n < 360; n += 3) {
    const session = `s${n}`;
    for (let i = 0; i < 6; i++) {
      const who = pick(people);
      const topic = pick(topics);
      const value = pick(topic.values);
      if (draw(3) > 0) {
        say(n, session, filled(pick(talk), who, value));
        continue;
      }
      const key = `${who} ${topics.indexOf(topic)}`;
      const before = standing.get(key);
      if (before !== undefined && n - before.day < 30) continue;
      const id = say(n, session, filled(pick(topic.said), who, value), before?.id);
      standing.set(key, { id, topic, who, day: n });
      if (before !== undefined) {
        const middle = day(Math.floor((before.day + n) / 2));
        questions.push({ kind: 'time', text: filled(pick(topic.asked), who, ''), turn: before.id, at: middle });
      }
    }
  }
  const corrected = new Set(turns.flatMap(({ corrects, id }) => (corrects === undefined ? [] : [id])));
  for (const { id, topic, who } of standing.values()) {
    questions.push({ kind: corrected.has(id) ? 'corrected' : 'fact', text: filled(pick(topic.asked), who, ''), turn: id });
  }
  return { turns, questions };
}
