import type { CommittedEntry } from '../../src/log/entry.ts';
import { projectionContract } from './contract.ts';
import { histories, play } from './histories.ts';
import { freshProjections, Store } from './store.ts';

const committed = histories(20).map((history): readonly CommittedEntry[] => {
  const store = new Store();
  // As in every log: a position below it can't be forked.
  store.append({ kind: 'genesis', logId: 'log-1', origin: 'test/log', engineVersion: 'test' });
  play(store, history);
  return store.entries;
});

for (const name of [
  'temporal',
  'branches',
  'catalog',
  'catalog-history',
  'directory',
  'exhibits',
  'policies',
  'receipts',
  'rows',
  'removed-keys',
  'tenants',
  'views',
]) {
  projectionContract({ name, fresh: (rows) => freshProjections(undefined, rows).projector, histories: committed });
}
