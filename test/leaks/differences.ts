/**
 * What differs between the two worlds: each runs in a slot of its own, and neither side of it is anybody's to see but the
 * owner's. `hides` names whose knowledge it is: an adversary who may know that much is not asked about it.
 */
import { assert } from '../../src/errors.ts';
import { exactJson } from '../harness.ts';
import type { Secret } from './canaries.ts';
import { changes } from './changes.ts';
import { hiddenDomainRows } from './domain.ts';
import { policies } from './governed.ts';
import { settled } from './lab.ts';
import { jsonOf, residents, type Side, type Stage, victimPath } from './stage.ts';

export interface Difference {
  readonly name: string;
  readonly hides: Secret;
  readonly run: (stage: Stage, side: Side) => Promise<void>;
  /** Where it means something: under policies, tenants and agreements; and before these came. */
  readonly governed?: true;
  readonly early?: true;
  /** Commitments to everything there is that move with it by design: compared with these blanked, in worlds of its own. */
  readonly moves?: RegExp;
}

const victim = 'rows of the victim' as const;
const inFirst =
  (run: (stage: Stage) => Promise<void>) =>
  async (stage: Stage, side: Side): Promise<void> => {
    if (side === 'first') await run(stage);
  };

/** A row of nothing but canaries, but for its key. */
function secretDeal(stage: Stage, id: string, where: string, secret: Secret = victim): Record<string, unknown> {
  const { canaries } = stage;
  return {
    id,
    who: canaries.text(secret, `${where}.who`),
    amount: canaries.number(secret, `${where}.amount`),
    rate: 1e9,
    at: '2024-03-02',
    note: canaries.text(secret, `${where}.note`),
    ok: false,
    secret: canaries.text('masked cells', `${where}.secret`),
    emb: [1, 0.001],
    shape: [1, 0.001],
  };
}

const put = (stage: Stage, rows: readonly Readonly<Record<string, unknown>>[], type = 'Deal', path = victimPath): Promise<void> =>
  stage.put(type, path === 'initech' ? 'initech' : 'acme', path, rows);

export const differences: readonly Difference[] = [
  {
    name: 'a row is there or not',
    hides: victim,
    run: inFirst(async (stage) => {
      await put(stage, [secretDeal(stage, 'x1', 'a row')]);
      await put(stage, [{ id: 'p1', name: stage.canaries.text(victim, 'a party'), boss: 'p2', score: 9 }], 'Party');
      const said = { subject: 'p1', predicate: 'knows', object: stage.canaries.text(victim, 'a triple') };
      await put(stage, [{ id: 'k1', ...said }], 'KnowledgeTriple');
      const object = { bucket: 'box', size: 9, content_type: 'secret/x', metadata: {}, body_as: 'text' };
      const body = stage.canaries.text(victim, 'an object');
      await put(stage, [{ id: 'box/x1', key: 'x1', ...object, body }], 'ObjectStoreObject');
      await put(stage, [{ id: 'box', name: 'box' }], 'ObjectStoreBucket');
      await put(stage, [{ id: 'x1', value: stage.canaries.text(victim, 'a value of a key') }], 'KvEntry');
      await put(stage, [{ id: 'm1', channel: 'news', message: stage.canaries.text(victim, 'a message') }], 'PubSubMessage');
      const document = { _id: 'x1', note: stage.canaries.text(victim, 'a document') };
      await put(stage, [{ id: 'shop.deals/x1', database: 'shop', collection: 'deals', document }], 'DocumentEntry');
      const paper = { note: stage.canaries.text(victim, 'a paper') };
      await put(stage, [{ id: 'x1', kind: 'plain', body: paper, aside: paper, hidden: paper }], 'Paper');
      for (const [type, row] of hiddenDomainRows(stage.canaries)) await put(stage, [row], type);
      // Paths that start as those of adversaries do.
      for (const [path, holder] of [
        ['globex-two', 'root'],
        ['acme/us-east', 'acme'],
        ['wayne2', 'root'],
      ] as const) {
        await stage.put('Deal', holder, path, [secretDeal(stage, 'x1', `a row of ${path}`)]);
      }
    }),
  },
  {
    name: 'a value is one or another',
    hides: victim,
    run: async (stage, side) => {
      const row = secretDeal(stage, 'x2', 'a value');
      const longer = secretDeal(stage, 'x2', 'another value');
      await put(stage, [
        side === 'first' ? row : { ...longer, note: `${longer['note'] as string} and more`, rate: -1, ok: true },
      ]);
    },
  },
  {
    name: 'there are no hidden rows or a thousand',
    hides: victim,
    run: async (stage, side) => {
      if (side === 'second') return;
      const rows = Array.from({ length: 1000 }, (_, i) => ({
        id: `y${i}`,
        who: `w${i % 7}`,
        amount: 7_000_000_000_000 + i,
        note: 'open',
      }));
      await put(stage, rows, 'Deal', 'initech');
      await put(
        stage,
        rows.slice(0, 200).map(({ id }) => ({ id, name: 'Robert', size: 1 })),
        'Dossier',
        'initech',
      );
    },
  },
  {
    name: 'memories, calls and recalls of others',
    hides: victim,
    run: inFirst(async (stage) => {
      const ask = async (path: string, body: object): Promise<Record<string, string>> => {
        const heard = await stage.must(
          'POST',
          `/memory/${path}`,
          stage.headers('acme', victimPath),
          JSON.stringify({ purpose: 'test', ...body }),
        );
        return JSON.parse((jsonOf(heard)['content'] as { text: string }[])[0]!.text) as Record<string, string>;
      };
      const content = `shared words, secret of the victim ${stage.canaries.text(victim, 'a memory')}`;
      const { id } = await ask('remember', { content, session_id: 'hidden session', memory_class: 'hidden class' });
      const { id: other } = await ask('remember', {
        content: 'shared words again',
        derived_from: [id],
        session_id: 'hidden session',
      });
      stage.ids.set('hidden memory', id!);
      const { call_id: call } = await ask('recall', { query: 'shared words', stability_days: 3 });
      stage.ids.set('hidden recall', call!);
      await ask('consolidate', { id: other, content: 'shared words once more' });
      await ask(`quarantine/${id}`, { reason: stage.canaries.text(victim, 'a reason') });
      const elements = [
        `shared words, secret of the victim ${stage.canaries.text(victim, 'a chunk')}`,
        'shared words of a document',
      ];
      const given = { purpose: 'test', source_id: 'hidden-document', title: 'hidden title', elements };
      const stored = JSON.stringify({ name: 'rag_store_elements', arguments: given });
      await stage.must('POST', '/mcp/tools/call', stage.headers('acme', victimPath), stored);
    }),
  },
  {
    name: 'a type holds hidden rows only, or none',
    hides: victim,
    run: inFirst((stage) => put(stage, [{ id: 'o1', name: stage.canaries.text(victim, 'a dossier'), size: 3 }], 'Dossier')),
  },
  {
    name: 'a row has one version or five and an end',
    hides: victim,
    run: async (stage, side) => {
      await put(stage, [secretDeal(stage, 'x3', 'a version')]);
      if (side === 'second') return;
      for (const day of ['05', '06', '07', '08']) {
        await put(stage, [{ ...secretDeal(stage, 'x3', 'a version'), valid_from: `2024-02-${day}` }]);
      }
      await stage.remove('Deal', 'acme', victimPath, 'x3', false);
    },
  },
  {
    name: 'a row was removed for good or never was',
    hides: victim,
    run: inFirst(async (stage) => {
      await put(stage, [secretDeal(stage, 'x4', 'a removed row')]);
      await stage.remove('Deal', 'acme', victimPath, 'x4', true);
    }),
  },
  {
    name: 'rows have the keys of everybody’s own rows or others',
    hides: victim,
    run: async (stage, side) => {
      const row = secretDeal(stage, side === 'first' ? 'd2' : 'z2', 'a row of a common key');
      await put(stage, [row], 'Deal', 'initech');
    },
  },
  {
    name: 'a row was written on a branch or not',
    hides: victim,
    run: inFirst(async (stage) => {
      await stage.put('Deal', 'acme', victimPath, [secretDeal(stage, 'x1', 'a row on a branch')], 'trial');
      await stage.put('Deal', 'initech', 'initech', [secretDeal(stage, 'b1', 'another on a branch')], 'trial');
    }),
  },
  {
    name: 'views, lookups, exhibits, standing queries, tasks, keys and tokens stand or not',
    hides: victim,
    run: async (stage, side) => {
      const { canaries } = stage;
      // One act of those who run the store either way, at the same moment: it is on record for whoever reads what has no path.
      if (side === 'second') {
        await stage.admin('POST', '/admin/tokens', { tenant_id: 'initech', principal: 'ends at once', expires_in_secs: 1 });
        return;
      }
      await stage.admin('POST', '/admin/tokens', { tenant_id: 'initech', principal: canaries.text(victim, 'a principal') });
      const headers = stage.headers('initech');
      const text = canaries.text(victim, 'a view');
      await stage.ask(
        `CREATE MATERIALIZED VIEW hidden_view AS SELECT id FROM Deal WHERE note != '${text}' REFRESH INCREMENTAL EVERY 86400`,
        'initech',
      );
      const lookup = { name: 'hidden_names', path: 'hidden.csv', key: 'id', fields: ['name'] };
      await stage.must('POST', '/lookup/register', headers, JSON.stringify(lookup));
      const rule = {
        name: canaries.text(victim, 'a rule'),
        condition_sql: `note = '${canaries.text(victim, 'a condition')}'`,
        object_type: 'Deal',
      };
      stage.ids.set('hidden rule', jsonOf(await stage.must('POST', '/rules', headers, JSON.stringify(rule)))['id'] as string);
      const job = {
        name: canaries.text(victim, 'a job'),
        run: { sql: 'SELECT id FROM Deal' },
        cron: '0 0 1 1 *',
        run_now: false,
      };
      stage.ids.set('hidden job', jsonOf(await stage.must('POST', '/jobs', headers, JSON.stringify(job)))['job_id'] as string);
      await stage.must('PUT', '/types/Deal/retention', headers, JSON.stringify({ days: 9_999, by: 'valid_to', action: 'purge' }));
      const steps = [{ approve: { principal: canaries.text(victim, 'who approves') } }];
      const workflow = JSON.stringify({ name: 'hidden workflow', steps });
      stage.ids.set('hidden workflow', jsonOf(await stage.must('POST', '/workflows', headers, workflow))['id'] as string);
      const asked = JSON.stringify({ name: 'hidden workflow', arguments: { x: canaries.text(victim, 'an argument') } });
      stage.ids.set('hidden run', jsonOf(await stage.must('POST', '/workflows/runs', headers, asked))['run_id'] as string);
      const title = JSON.stringify({ title: canaries.text(victim, 'an exhibit') });
      stage.ids.set('hidden exhibit', jsonOf(await stage.must('POST', '/exhibits', headers, title))['exhibit_id'] as string);
      await stage.ask(`WATCH PURPOSE 'test' SELECT id FROM Deal WHERE note = '${canaries.text(victim, 'a watch')}'`, 'initech');
      const row = exactJson(secretDeal(stage, 'x5', 'a row of a task'));
      const task = jsonOf(await stage.must('POST', '/ingest?object_type=Deal&async=true', headers, row));
      stage.ids.set('hidden task', task['task_id'] as string);
      const begun = jsonOf(await stage.must('POST', '/tx', headers))['id'] as string;
      stage.ids.set('hidden transaction', begun);
      const waiting = exactJson(secretDeal(stage, 'x7', 'a row of a transaction'));
      await stage.must('POST', '/ingest?object_type=Deal', { ...headers, 'x-service-transaction': begun }, waiting);
      const once = exactJson(secretDeal(stage, 'x6', 'a row of an idempotent request'));
      await stage.must('POST', '/ingest?object_type=Deal', { ...headers, 'idempotency-key': 'once' }, once);
      // The run is due a step after it was asked for, and waits for its approval before others ask anything: else the next look at what is
      // due would begin it, whoever causes that.
      await stage.lab.service.automation.scheduler.tick();
      await settled(200);
    },
  },
  {
    // At a path of its own, where other paths of the tenant have the same principal.
    name: 'rules have raised alerts, jobs have run and workflows have ended, or not',
    hides: victim,
    run: inFirst(async (stage) => {
      const { canaries } = stage;
      const headers = stage.headers('acme', victimPath);
      const make = async (name: string, path: string, member: string, body: object): Promise<string> => {
        const made = jsonOf(await stage.must('POST', path, headers, JSON.stringify(body)))[member] as string;
        stage.ids.set(name, made);
        return made;
      };
      const rule = await make('rule of the victim', '/rules', 'id', {
        name: canaries.text(victim, 'a rule that has raised alerts'),
        condition_sql: `amount > 0 AND note != '${canaries.text(victim, 'a condition that was judged')}'`,
        object_type: 'Deal',
      });
      const run = { run_now: false, purpose: 'test' };
      const judges = await make('job of the victim', '/jobs', 'job_id', { ...run, name: 'hidden', run: { rules: [rule] } });
      const sql = `SELECT amount * 1e300 * 1e300 FROM Deal WHERE note != '${canaries.text(victim, 'a question of a job')}'`;
      const fails = await make('failed job', '/jobs', 'job_id', { ...run, name: 'hidden too', run: { sql } });
      for (const job of [judges, fails]) await stage.must('POST', `/jobs/${job}/run`, headers);
      const note = canaries.text(victim, 'a row of a step');
      await make('workflow of the victim', '/workflows', 'id', {
        name: 'workflow of the victim',
        steps: [
          { query: { sql: 'SELECT id, note FROM Deal' } },
          { insert: { type: 'Deal', row: { id: 'w9', note, who: '{{arguments.x}}' } } },
          { alert: { title: `${canaries.text(victim, 'a title')} {{steps.0.rows.0.note}}`, severity: 'high', matched_pk: 'w9' } },
        ],
      });
      await make('run of the victim', '/workflows/runs', 'run_id', {
        name: 'workflow of the victim',
        arguments: { x: canaries.text(victim, 'an argument of a run that has ended') },
        purpose: 'test',
      });
      await stage.lab.tick();
      await stage.lab.service.automation.scheduler.settle();
      const states = jsonOf(await stage.must('GET', '/jobs', headers))['jobs'] as { name: string; state: string }[];
      const ended = Object.fromEntries(states.map(({ name, state }) => [name, state]));
      assert(ended['hidden'] === 'done' && ended['hidden too'] === 'failed', `jobs are ${JSON.stringify(ended)}`);
      const { rows } = jsonOf(await stage.ask('SELECT title FROM Alert', 'acme', victimPath)) as { rows: unknown[] };
      assert(rows.length > 1, 'alerts were raised');
    }),
  },
  {
    name: 'questions were asked, answered and refused, or not',
    hides: victim,
    run: inFirst(async (stage) => {
      const { canaries } = stage;
      for (let i = 0; i < 5; i++) {
        await stage.ask(
          `SELECT * FROM Deal WHERE note = '${canaries.text(victim, 'a literal')}' AND amount > ${i}`,
          'initech',
          'initech',
        );
      }
      for (const sql of [
        `SELECT ${canaries.text(victim, 'a wrong column')} FROM Deal`,
        'SELECT * FROM Vault',
        'SELECT amount * 1e300 * 1e300 FROM Deal',
      ])
        await stage.lab.ask({ method: 'POST', path: '/query', headers: stage.headers('initech'), body: JSON.stringify({ sql }) });
      const wrong = `{"id":"x7","amount":"${canaries.text(victim, 'a refused row')}"}`;
      await stage.lab.ask({ method: 'POST', path: '/ingest?object_type=Deal', headers: stage.headers('initech'), body: wrong });
    }),
  },
  {
    name: 'a masked cell is one or another',
    hides: 'masked cells',
    run: async (stage, side) => {
      const [one, other] = [
        stage.canaries.text('masked cells', 'a masked cell'),
        stage.canaries.text('masked cells', 'another masked cell'),
      ];
      const own = { who: 'p1', amount: 7, rate: 1, at: '2024-03-01', note: 'open', ok: true };
      for (const [path, holder] of [
        ['wayne', 'wayne'],
        ['globex', 'globex'],
        ['acme/us', 'acme'],
      ] as const) {
        const masked = side === 'first' ? { secret: one, shape: [1, 0] } : { secret: other, shape: [0, 1] };
        await stage.put('Deal', holder, path, [{ id: 'm1', ...own, ...masked }]);
        const hidden = { note: `open ${masked.secret}`, of: masked.shape };
        await stage.put('Paper', holder, path, [{ id: 'm1', kind: 'plain', body: { note: 'open note' }, hidden }]);
      }
    },
  },
  {
    // As many requests either way: that somebody wrote them is on record for those whose path it is.
    name: 'guarded rows are these or others',
    hides: 'guarded rows',
    run: async (stage, side) => {
      for (const path of [null, 'globex', 'acme/us']) {
        const [one, other] = ['a guarded row', 'another guarded row'].map((where) => stage.canaries.text('guarded rows', where));
        const [id, name] = side === 'first' ? ['x1', one] : ['x9', other];
        await stage.put('Vault', 'breaker', path, [{ id, name }]);
        await stage.put('Cleared', 'breaker', path, [{ id, name }]);
        // Its key may be read: only the column is guarded.
        await stage.put('Clue', 'breaker', path, [{ id: 'x1', vault: name }]);
      }
    },
  },
  {
    name: 'policies keep a row under one key or another, two keys or one',
    hides: 'rows behind a condition',
    governed: true,
    run: async (stage, side) => {
      const secret = 'rows behind a condition';
      for (const path of [null, 'globex', 'wayne', 'acme/us', 'umbrella']) {
        const row = (id: string): object => {
          const deal = secretDeal(stage, id, `a sealed row of ${path}`, secret);
          return { ...deal, note: `sealed ${deal['note'] as string}` };
        };
        const keys = side === 'first' ? ['closed1', 'closed2'] : ['closed3', 'closed3'];
        for (const id of keys) await stage.put('Deal', 'auditor', path, [row(id) as Record<string, unknown>]);
        const body = { note: `open note ${stage.canaries.text(secret, `a sealed paper of ${path}`)}`, of: keys };
        await stage.put('Paper', 'auditor', path, [{ id: keys[0]!, kind: 'sealed', body, aside: body, hidden: body }]);
      }
    },
  },
  {
    name: 'a cell that policies mask is one or another of one look',
    hides: 'masked cells',
    governed: true,
    run: async (stage, side) => {
      const [a, b] = [stage.canaries.text('masked cells', 'a pan'), stage.canaries.text('masked cells', 'another pan')];
      const card =
        side === 'first'
          ? { pan: `${a}9999`, born: '1980-01-01', ceiling: 7001 }
          : { pan: `${b}9999`, born: '1980-12-31', ceiling: 7999 };
      for (const [path, holder] of residents.filter(([path]) => path !== 'stark'))
        await stage.put('Card', holder, path, [{ id: 'k3', name: 'Cy', ...card }]);
      for (const [path, holder] of [
        ['globex', 'globex'],
        ['acme/us', 'acme'],
      ] as const) {
        const aside = { note: `open ${side === 'first' ? a : b}`, ...card };
        await stage.put('Paper', holder, path, [{ id: 'k3', kind: 'plain', body: { note: 'open note' }, aside }]);
      }
    },
  },
  {
    name: 'cells that an agreement keeps back are these or others',
    hides: victim,
    governed: true,
    run: async (stage, side) => {
      const { canaries } = stage;
      const row = { id: 's1', amount: 77, note: 'shared' };
      const [one, other] = ['cells kept back', 'other cells kept back'].map((where) => ({
        who: canaries.text(victim, where),
        secret: canaries.text('masked cells', where),
        rate: where.length,
        ok: where.length > 16,
      }));
      await put(stage, [{ ...row, ...(side === 'first' ? one : other) }]);
    },
  },
  {
    name: 'a shared row has a history or none',
    hides: victim,
    governed: true,
    run: async (stage, side) => {
      for (let i = 0; i < 3; i++) {
        if (side === 'second') await stage.lab.tick();
        else
          await put(stage, [
            { id: 's2', amount: i, note: i === 1 ? 'shared' : stage.canaries.text(victim, 'an earlier version') },
          ]);
      }
      await put(stage, [{ id: 's2', amount: 9, note: 'shared' }]);
    },
  },
  {
    name: 'what came before an agreement is this or that',
    hides: victim,
    governed: true,
    early: true,
    run: async (stage, side) => {
      const [one, other] = ['an early version', 'another early version'].map((where) => stage.canaries.text(victim, where));
      await put(stage, [{ id: 'p7', name: side === 'first' ? one : other, boss: 'shared', score: 1 }], 'Party');
      await put(stage, [{ id: 'p7', name: 'Seven', boss: 'shared', score: 1 }], 'Party');
    },
  },
  {
    // As many rows and requests of those who run the store either way: these are on record for whoever reads rows without a path.
    name: 'a tenant that was made anew had this or that before',
    hides: victim,
    governed: true,
    early: true,
    run: async (stage, side) => {
      const { canaries } = stage;
      const rows = [
        secretDeal(stage, 'x1', 'a row of an earlier tenant'),
        secretDeal(stage, 'x9', 'another row of an earlier tenant'),
      ];
      await stage.put('Deal', 'hooli', 'hooli', [rows[side === 'first' ? 0 : 1]!]);
      const text = canaries.text(victim, 'a view of an earlier tenant');
      const title = JSON.stringify({ title: canaries.text(victim, 'an exhibit of an earlier tenant') });
      if (side === 'second') return;
      await stage.ask(
        `CREATE MATERIALIZED VIEW hidden_view AS SELECT id FROM Deal WHERE note != '${text}' REFRESH INCREMENTAL EVERY 86400`,
        'hooli',
      );
      const opened = await stage.must('POST', '/exhibits', stage.headers('hooli'), title);
      stage.ids.set('exhibit of an earlier tenant', jsonOf(opened)['exhibit_id'] as string);
    },
  },
  {
    name: 'tenants and agreements of others are these or those',
    hides: victim,
    governed: true,
    run: async (stage, side) => {
      // At a path of their own: what they name would show, if only as a digest, to whoever reads what has no path.
      const platform = stage.headers('platform', 'operations');
      const [here, there] = side === 'first' ? ['zorg', 'tyrell'] : ['yorg', 'rosen'];
      const names = ['a tenant', 'another tenant'].map((where) => stage.canaries.text(victim, where));
      const members = ['a member', 'another member'].map((where) => stage.canaries.text(victim, where));
      const one = side === 'first' ? 0 : 1;
      await stage.must('POST', '/tenants', platform, JSON.stringify({ id: here, name: names[one] }));
      await stage.must(
        'POST',
        `/tenants/${there}/members`,
        platform,
        JSON.stringify({ principal: members[one], role: 'reader' }),
      );
      const terms = JSON.stringify({ assigner: victimPath, assignee: there, target: { types: ['Deal'] } });
      const made = await stage.must('POST', '/tenants/acme/sharing', stage.headers('acme admin'), terms);
      stage.ids.set('hidden agreement', jsonOf(made)['id'] as string);
      await stage.must('POST', `/tenants/${there}/suspend`, platform, '{}');
    },
  },
  ...changes,
  {
    name: 'a policy about others stands or not',
    hides: victim,
    governed: true,
    // The digest of all policies, and the seals of what was answered under it, tell that one changed, and never which.
    // A tool's answer is JSON within JSON, in which quotes are escaped.
    moves:
      /(\\*"(?:policy_digest|policyDigest|seal|prev_seal|opening_seal|stored_seal|derived_seal)\\*":\\*")[^"\\]*|(policies )[0-9a-f]{64}/g,
    run: async (stage, side) => {
      // The same one is replaced either way, as that shows: by another, or by what it said before in other bytes.
      const principal = stage.canaries.text(victim, 'a policy');
      const hidden = `forbid(principal == User::"${principal}", action, resource) when { resource has amount && resource.amount > 3 };`;
      const policy = side === 'first' ? hidden : `${policies.nobody} // as before`;
      await stage.admin('PUT', '/admin/policies/nobody', { policy });
    },
  },
];

/** Those that may be asked about at once, and each of the others by itself. */
export function together(asked: readonly Difference[]): readonly (readonly Difference[])[] {
  const alone = asked.filter(({ moves }) => moves !== undefined).map((each) => [each]);
  const rest = asked.filter(({ moves }) => moves === undefined);
  return rest.length === 0 ? alone : [rest, ...alone];
}
