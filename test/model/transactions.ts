/**
 * Transactions as commands: what each statement leaves is read in it at once and by nobody else, a savepoint brings back what stood
 * there, and a commit is one write of what is left, or refused where others wrote a row of it meanwhile.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  apply,
  asRow,
  beliefsOf,
  type Believed,
  columns,
  type Command,
  compare,
  count,
  nameOf,
  placeStep,
  shown,
} from './believed.ts';
import type { Bitemporal } from './bitemporal.ts';
import { someBranch, someOwnSteps, somePath, someStep } from './commands.ts';
import { type RealStore, type RealTransaction, refusalOf, type Step, type as factType, type Write } from './store.ts';

type Act =
  | { readonly kind: 'write'; readonly step: Step }
  /** Is taken back, with all that was written in it. */
  | { readonly kind: 'undone'; readonly steps: readonly Step[] }
  | { readonly kind: 'kept'; readonly steps: readonly Step[] };

interface Asked {
  readonly branch: number;
  readonly path: string | null;
  readonly acts: readonly Act[];
  /** By somebody else, once the first act is done. */
  readonly meanwhile: Step | null;
  readonly commits: boolean;
}

export const someTransactions = (): fc.Arbitrary<Command>[] => {
  const acts = someOwnSteps.chain((steps) =>
    fc.tuple(
      ...steps.map((step) =>
        fc.tuple(fc.nat(2), fc.array(someStep, { minLength: 1, maxLength: 2 })).map(([kind, others]): Act[] => {
          if (kind === 0) return [{ kind: 'write', step }];
          if (kind === 1) return [{ kind: 'kept', steps: [step] }];
          return [
            { kind: 'undone', steps: others },
            { kind: 'write', step },
          ];
        }),
      ),
    ),
  );
  const some = fc
    .record({
      branch: someBranch,
      path: somePath,
      acts: acts.map((each) => each.flat()),
      meanwhile: fc.oneof(fc.constant(null), someStep),
      commits: fc.nat(4).map((each) => each > 0),
    })
    .map((asked) => new Transact(asked));
  return [some, some];
};

class Transact implements Command {
  constructor(readonly asked: Asked) {}
  check = (): boolean => true;
  toString = (): string => `transaction ${shown(this.asked)}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    const { branch: number, path, acts, meanwhile, commits } = this.asked;
    const branch = nameOf(believed, number);
    count(believed.ran, 'transaction');
    const within = new Within(real.begin(path, branch), believed.model.on(branch).copy(), path);
    const others = new Set<string>();
    for (const [i, act] of acts.entries()) {
      await within.act(act);
      if (i > 0 || meanwhile === null) continue;
      const write: Write = { ...meanwhile, branch: number, path };
      const outcome = await real.write(write, branch);
      apply(believed, write, outcome, real.clock.wallNs);
      const refused = outcome.errors.map(({ index }) => index);
      for (const key of keysWritten(meanwhile, refused)) others.add(key);
      count(believed.came, others.size > 0 ? 'written meanwhile' : 'refused meanwhile');
    }
    await compare(believed, real, branch, path, '', { system: 'all', valid: 'all' });
    if (!commits) {
      count(believed.came, 'transaction rolled back');
      within.transaction.end();
    } else if (within.keys().some((key) => others.has(key))) {
      count(believed.came, 'transaction in conflict');
      const refused = await refusalOf(within.transaction.commit());
      assert.deepEqual([refused.code, refused.facts.stale], ['REL_CONFLICT', true]);
    } else await this.#commit(believed, real, within);
    await compare(believed, real, branch, path, '', { system: 'all', valid: 'all' });
  }

  async #commit(believed: Believed, real: RealStore, within: Within): Promise<void> {
    const { branch, path } = this.asked;
    const outcome = await within.transaction.commit();
    if (outcome === null) {
      assert.deepEqual(within.written, [], 'what wrote something has a commit');
      return;
    }
    count(believed.came, 'transaction written');
    assert.ok(outcome.systemFrom > believed.last && outcome.systemFrom > real.readInstant, 'system time rises');
    assert.equal(outcome.steps!.length, within.written.length);
    const model = believed.model.on(nameOf(believed, branch));
    for (const [i, { step, refused }] of within.written.entries()) {
      assert.deepEqual(placeStep(model, path, step, outcome.steps![i]!.systemFrom), refused, 'refused rows');
      if (step.kind !== 'put') continue;
      const rows = step.rows.filter((_, index) => !refused.includes(index));
      for (const belief of beliefsOf(believed, path, rows)) belief.written = true;
    }
    believed.last = outcome.systemFromLast;
  }
}

interface Written {
  readonly step: Step;
  readonly refused: readonly number[];
}

/** One transaction, and what it has to read. */
class Within {
  readonly transaction: RealTransaction;
  readonly #path: string | null;
  #model: Bitemporal;
  /** When what is written next begins; null: nothing was written yet. */
  #next: bigint | null = null;
  written: Written[] = [];

  constructor(transaction: RealTransaction, model: Bitemporal, path: string | null) {
    this.transaction = transaction;
    this.#model = model;
    this.#path = path;
  }

  async act(act: Act): Promise<void> {
    if (act.kind === 'write') return this.#write(act.step);
    const [model, written, next] = [this.#model.copy(), [...this.written], this.#next];
    this.transaction.savepoint('s');
    for (const step of act.steps) await this.#write(step);
    if (act.kind === 'undone') {
      this.transaction.rollbackTo('s');
      this.#model = model;
      this.written = written;
      this.#next = next;
    }
    this.transaction.release('s');
    await this.#compare();
  }

  /** Keys that it wrote. */
  keys(): string[] {
    return this.written.flatMap(({ step, refused }) => [...keysWritten(step, refused)]);
  }

  async #write(step: Step): Promise<void> {
    const outcome = await this.transaction.write(step);
    const refused = outcome.errors.map(({ index }) => index);
    const time = outcome.changed ? outcome.systemFrom : (this.#next ?? this.transaction.now());
    assert.deepEqual(placeStep(this.#model, this.#path, step, time), refused, 'refused rows');
    if (outcome.changed) {
      this.written.push({ step, refused });
      this.#next = outcome.systemFromLast + 1n;
    }
    await this.#compare();
  }

  async #compare(): Promise<void> {
    const rows = await this.transaction.rows(`SELECT ${columns} FROM ${factType}`);
    assert.deepEqual(rows, this.#model.read(this.#path, { system: 'all', valid: 'all' }).map(asRow), 'in a transaction');
  }
}

function keysWritten(step: Step, refused: readonly number[]): ReadonlySet<string> {
  const keys = step.kind === 'put' ? step.rows.map(({ key }) => key) : step.keys;
  return new Set(keys.filter((_, index) => !refused.includes(index)));
}
