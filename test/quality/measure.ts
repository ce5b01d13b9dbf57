/** The ways of searching that are measured, each asked as a caller would ask it. */
import { analyst, TestStore } from '../harness.ts';
import { type Collection, ndcg } from './collection.ts';

export interface Figure {
  readonly way: string;
  readonly ndcg: number;
}

/** What a tenant sets once: words of a title count three times those of a text. */
const weighed = { field_weights: { Doc: { title: 3, text: 1 } } };

export async function measured({ documents, queries, grades }: Collection): Promise<Figure[]> {
  const store = await TestStore.open('2024-01-01');
  const caller = { ...analyst, path: 'acme', tenant: 'acme' };
  const admin = { ...analyst, roles: ['platform-admin'] };
  try {
    await store.register('Doc', { id: 'string', title: 'string', author: 'string', text: 'string' }, 'id');
    await store.put('Doc', documents, caller);
    const mean = async (way: string, where: (text: string) => string): Promise<Figure> => {
      let sum = 0;
      for (const { id, text } of queries) {
        const sql = `SELECT id FROM Doc AS OF CURRENT WHERE ${where(text.replaceAll("'", "''"))} ORDER BY _score DESC LIMIT 10`;
        const found = await store.column(sql, caller);
        sum += ndcg(found.map(String), grades.get(id) ?? new Map());
      }
      return { way, ndcg: sum / queries.length };
    };
    const figures = [
      await mean('BM25 of the text', (text) => `MATCH(text, '${text}')`),
      await mean('with stems', (text) => `MATCH(text, '${text}', STEMMED)`),
      await mean('with stems, title and text', (text) => `MATCH(title, text, '${text}', STEMMED)`),
    ];
    const nobody = { name: '', tier: 'standard', quota: {}, members: [], tenantsMax: 0 };
    await store.service.gate.invoke(admin, { action: 'administer', purpose: null, correlationId: 'quality' }, (invocation) =>
      invocation.submit({ kind: 'create-tenant', id: 'acme', search: weighed, ...nobody }),
    );
    store.clock.set('2024-01-02');
    figures.push(
      await mean('with stems, the title at three times its weight', (text) => `MATCH(title, text, '${text}', STEMMED)`),
    );
    return figures;
  } finally {
    await store.close();
  }
}
