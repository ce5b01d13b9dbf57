/** Puts cases to the verifier, to the naive one and to Python, and lists where one of them is wrong or alone. */
import type { Case } from './cases.ts';
import { naiveSays, pythonSays, verifierSays } from './judges.ts';

export interface Tally {
  cases: number;
  good: number;
  /** How many of them Python judged. */
  python: number;
  readonly wrong: string[];
}

const batch = 1000;

export async function tally(cases: AsyncIterable<Case>, sum: Tally, askPython: boolean): Promise<Tally> {
  let waiting: Case[] = [];
  const judge = (): void => {
    const python = askPython ? pythonSays(waiting) : null;
    waiting.forEach((each, i) => {
      const { proven, why } = verifierSays(each);
      const said = { verifier: proven !== null, naive: naiveSays(each), python: python?.[i] ?? each.good };
      sum.cases++;
      if (each.good) sum.good++;
      if (python) sum.python++;
      if (Object.values(said).some((yes) => yes !== each.good)) {
        sum.wrong.push(
          `${each.name} is ${each.good ? 'good' : 'bad'}: ${JSON.stringify(said)} ${why}\n${each.proof.toString('utf8')}`,
        );
      }
    });
    waiting = [];
  };
  for await (const each of cases) {
    waiting.push(each);
    if (waiting.length === batch) judge();
  }
  if (waiting.length > 0) judge();
  return sum;
}

export const noTally = (): Tally => ({ cases: 0, good: 0, python: 0, wrong: [] });
