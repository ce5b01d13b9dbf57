import type { CommittedEntry } from '../../src/log/entry.ts';
import { projectionContract } from './contract.ts';
import { histories, play } from './histories.ts';
import { freshProjections, Store } from './store.ts';

const committed = histories(12).map((history): readonly CommittedEntry[] => {
  const store = new Store();
  play(store, history);
  return store.entries;
});

for (const name of ['temporal', 'catalog', 'catalog-history', 'directory', 'exhibits', 'rows']) {
  projectionContract({ name, fresh: () => freshProjections().projector, histories: committed });
}
