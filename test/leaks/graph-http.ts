/** What the graph HTTP door says: rows of others beside one's own, by statements and patterns, in transactions and without. */
import { assert } from '../../src/errors.ts';
import { type Conversation, talk } from './conversations.ts';

const statements: readonly string[] = [
  ...['Deal', 'Party', 'Dossier', 'Hidden', 'hidden_view', 'SourceTrueIdentity', 'Nowhere'].flatMap((type) => [
    `SELECT * FROM ${type} ORDER BY _pk`,
    `MATCH (n:${type}) RETURN n._pk AS k ORDER BY k`,
    `MATCH (n:${type}) WHERE n._pk = $key RETURN COUNT(*) AS c`,
  ]),
  'MATCH (a)-[r]->(b:Party) RETURN b._pk AS k',
  "MERGE (n:Deal {id: 'x1', amount: 1})",
  "CREATE (n:Deal {id: 'x2', amount: 2})",
  "MATCH (n:Hidden) SET n.id = 'x'",
];

export const graphHttpConversations: readonly Conversation[] = [
  {
    name: 'the graph HTTP door',
    hold: talk(async (_ask, stage, adversary, heard) => {
      if (adversary.opensDoors === true) return;
      const { authorization, ...headers } = adversary.headers(stage);
      const key = /^Bearer (.*)$/.exec(String(authorization ?? ''))?.[1];
      const basic = key !== undefined && { authorization: `Basic ${Buffer.from(`me:${key}`).toString('base64')}` };
      const ask = async (path: string, body: object): Promise<void> => {
        const sent = { method: 'POST', path, door: 'graph-http', headers: { ...headers, ...basic } } as const;
        heard.push(await stage.lab.ask({ ...sent, body: JSON.stringify(body) }));
      };
      const before = heard.length;
      for (const statement of statements) await ask('/db/neo4j/query/v2', { statement, parameters: { key: 'x1' } });
      await ask('/db/neo4j/tx/commit', {
        statements: statements.slice(0, 4).map((statement) => ({ statement, parameters: { key: 'x1' } })),
      });
      await ask('/db/neo4j/tx/01a22119-830d-78ae-8e93-008d1e165248', { statements: [] });
      assert(heard.length - before === statements.length + 2, 'all of it was asked');
    }),
  },
];
