/** Asks worlds at random at some bases, and says where an answer is not that of the reference. */
import { differenceOf, type Question } from './question.ts';
import { identityQuestions } from './identity.ts';
import { moneyQuestions } from './money.ts';
import { placeQuestions } from './places.ts';
import { scorerQuestions } from './scorers.ts';
import { type Basis, World } from './world.ts';

export interface Compared {
  readonly differences: readonly string[];
  readonly bases: number;
  /** By function: how often it was asked, and how many rows it had to have. */
  readonly questions: ReadonlyMap<string, { readonly asked: number; readonly rows: number }>;
}

const basesOfWorld = 25;
const sections: readonly ((world: World, basis: Basis) => Iterable<Question>)[] = [
  identityQuestions,
  moneyQuestions,
  placeQuestions,
  scorerQuestions,
];

export async function compareWorlds(firstSeed: number, bases: number): Promise<Compared> {
  const differences: string[] = [];
  const questions = new Map<string, { asked: number; rows: number }>();
  for (let done = 0, seed = firstSeed; done < bases; seed++) {
    const world = await World.open(seed);
    for (let i = 0; i < Math.min(basesOfWorld, bases - done); i++) {
      const basis = world.basis();
      for (const section of sections) {
        for (const question of section(world, basis)) {
          const difference = await differenceAt(world, basis, question);
          if (difference !== null)
            differences.push(`seed ${seed}, ${basis.branch} of ${basis.path} ${basis.clause}: ${difference}`);
          const name = question.call.slice(0, question.call.indexOf('('));
          const { asked, rows } = questions.get(name) ?? { asked: 0, rows: 0 };
          questions.set(name, { asked: asked + 1, rows: rows + question.rows.length });
        }
      }
    }
    done += basesOfWorld;
    differences.push(...world.differences);
    await world.close();
  }
  return { differences, bases, questions };
}

async function differenceAt(world: World, basis: Basis, question: Question): Promise<string | null> {
  try {
    return differenceOf(question, await world.ask(basis, question.call));
  } catch (error) {
    return `${question.call}: ${String(error)}`;
  }
}
