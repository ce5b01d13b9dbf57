/** What the columnar HTTP door says: rows and tables of others beside one's own, and rows that one inserts. */
import { assert } from '../../src/errors.ts';
import { type Conversation, talk } from './conversations.ts';

const questions: readonly string[] = [
  ...['Deal', 'Party', 'Dossier', 'Hidden', 'hidden_view', 'SourceTrueIdentity', 'Nowhere'].flatMap((type) => [
    `SELECT * FROM ${type} FORMAT JSON`,
    `DESCRIBE TABLE ${type}`,
  ]),
  ...['Deal', 'Hidden', 'hidden_view'].flatMap((type) => [
    `SELECT count() FROM ${type}`,
    `SELECT _pk FROM ${type} WHERE _pk = {key:String} FORMAT CSVWithNames`,
    `EXISTS TABLE ${type}`,
  ]),
  'SHOW TABLES',
  'SHOW DATABASES',
  'SELECT * FROM system.tables ORDER BY name FORMAT JSONEachRow',
  'SELECT name, type FROM system.columns WHERE "table" = \'Deal\' ORDER BY position',
  "SELECT note FROM Deal AS OF SYSTEM TIME '2024-01-01T00:00:01Z' FORMAT TSV",
  'SELECT amount FROM Deal FORMAT Native',
  "KILL QUERY WHERE query_id = 'q'",
];

const inserts: readonly string[] = [
  'INSERT INTO Deal (id, amount, note) FORMAT JSONEachRow\n{"id":"x1","amount":1,"note":"own"}\n',
  "INSERT INTO Deal (id, amount) VALUES ('x2', 2)",
  'INSERT INTO Auto FORMAT JSONEachRow\n{"id":"x1","note":"mine"}\n',
];

export const columnarConversations: readonly Conversation[] = [
  {
    name: 'the columnar HTTP door',
    hold: talk(async (_ask, stage, adversary, heard) => {
      if (adversary.opensDoors === true) return;
      const given = adversary.headers(stage);
      const { authorization, 'x-service-purpose': purpose, ...headers } = given;
      const key = /^Bearer (.*)$/.exec(String(authorization ?? ''))?.[1];
      const terms = new URLSearchParams({
        param_key: 'x1',
        ...(typeof purpose === 'string' && purpose !== '' && { annals_purpose: purpose }),
      });
      const before = heard.length;
      for (const [method, texts] of [
        ['POST', questions],
        ['POST', inserts],
        ['GET', ['SELECT 1']],
      ] as const)
        for (const text of texts) {
          const path = `/?${terms.toString()}${method === 'GET' ? `&query=${encodeURIComponent(text)}` : ''}`;
          const sent = {
            method,
            path,
            door: 'columnar-http',
            headers: { ...headers, ...(key !== undefined && { 'x-columnar-key': key }) },
          } as const;
          heard.push(await stage.lab.ask({ ...sent, ...(method === 'POST' && { body: text }) }));
        }
      assert(heard.length - before === questions.length + inserts.length + 1, 'all of it was asked');
    }),
  },
];
