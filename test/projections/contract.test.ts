import type { CommittedEntry } from '../../src/log/entries/entry.ts';
import { projectionContract } from './contract.ts';
import { histories, play, registerPatients, type Step, subjectHistories } from './histories.ts';
import { freshProjections, Store } from './store.ts';

const committed = histories(20).map(played);
const erased = subjectHistories(25).map(played);

function played(history: readonly Step[]): readonly CommittedEntry[] {
  const store = new Store();
  // As in every log: a position below it can't be forked.
  store.append({ kind: 'genesis', logId: 'log-1', origin: 'test/log', engineVersion: 'test' });
  store.run(registerPatients);
  play(store, history);
  return store.entries;
}

projectionContract({ fresh: (rows) => freshProjections(undefined, rows).projector, histories: committed, erased });
