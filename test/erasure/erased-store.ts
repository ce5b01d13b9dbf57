/**
 * A whole store behind its HTTP door on a disk in memory, with canaries of many subjects planted wherever a text can go; some of
 * the subjects are erased, the others are the control.
 */
import { openHttpDoor } from '../../src/cli/serve.ts';
import { systemClock, systemRandom } from '../../src/clock.ts';
import { loadSettings } from '../../src/config.ts';
import { doorStatuses } from '../../src/doors/doors.ts';
import type { Caller } from '../../src/governance/caller.ts';
import type { HttpDoor } from '../../src/doors/http/server.ts';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { inlineWorker } from '../../src/log/threads/workers.ts';
import { verifyDirectory } from '../../src/log/proofs/verify.ts';
import type { Segment } from '../../src/projections/rows/segments/segment.ts';
import { Service } from '../../src/service.ts';
import { analyst } from '../harness.ts';
import { type Reply, send } from '../doors/http/door-world.ts';
import type { Needle } from './haystack.ts';

const writer: Caller = { ...analyst, path: 'acme' };
const adminSecret = 'admin-secret-for-tests';

/** What is planted of one subject. Those that end in `Only` stand in no row. */
export const plants = [
  'subject',
  'key',
  'name',
  'prose',
  'json',
  'branch',
  'second',
  'literal',
  'idempotency',
  'wrong',
  'word',
  'made',
] as const;
export type Plant = (typeof plants)[number];

/** What the scan forks, and main. */
export const branches = ['main', 'trial', 'half'] as const;

/** Of these a row holds each: readers that decode must find them while the subject is not erased. */
export const inRows: readonly Plant[] = ['subject', 'key', 'name', 'prose', 'json', 'branch', 'second', 'word', 'made'];

/** 18 signs, of which two are not ASCII, and no two alike. A word is 16 small letters: what indexes of texts take as one. */
export function canary(seed: number, subject: number, plant: Plant): string {
  let state = Math.imul(seed * 1_000_003 + subject * 101 + plants.indexOf(plant) + 1, 0x9e3779b1) >>> 0;
  let text = '';
  while (text.length < 16) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    text += 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789'[state % 55]!;
  }
  if (plant === 'word')
    return text.replace(/[^a-z]/g, (sign) => String.fromCharCode(97 + (sign.charCodeAt(0) % 26))).toLowerCase();
  // A header takes ASCII alone.
  return plant === 'idempotency' ? text : `${text.slice(0, 8)}é${text.slice(8)}Ö`;
}

const wordLength = 16;

/** Every kind of step that reads or writes a row of somebody's, and one that waits. */
const tellingSteps = [
  { query: { sql: 'SELECT who, name, prose FROM Person WHERE id = {{arguments.key}}' } },
  {
    insert: {
      type: 'Visit',
      row: { id: 'told-{{arguments.key}}', who: '{{steps.0.rows.0.who}}', place: '{{steps.0.rows.0.name}}' },
    },
  },
  {
    insert: {
      type: 'Answer',
      row: { id: 'told-{{arguments.key}}', content: '{{steps.0.rows.0.prose}}', derived_from: ['{{arguments.memory}}'] },
    },
  },
  { tool: { name: 'remember', arguments: { content: '{{steps.0.rows.0.name}}', fields: { who: '{{steps.0.rows.0.who}}' } } } },
  { tool: { name: 'query', arguments: { sql: 'SELECT name, prose FROM Person' } } },
  {
    for_each: {
      items: '{{steps.0.rows}}',
      steps: [
        {
          alert: {
            title: '{{item.name}}: {{item.prose}}',
            severity: 'low',
            matched_type: 'Person',
            matched_pk: '{{arguments.key}}',
          },
        },
      ],
    },
  },
  { approve: { principal: 'nobody' } },
];

/** A vector that is the bytes of a word once each component is brought into a byte. */
function vectorOf(word: string): readonly number[] {
  return [...Buffer.from(word), 127];
}

export class ErasedStore {
  readonly disk = new MemoryDisk();
  readonly subjects: number;
  readonly #seed: number;
  directory = '/data';
  readonly said: string[] = [];
  /** Every receipt and every text of a reply to an erasure. */
  readonly receipts: string[] = [];
  service!: Service;
  door!: HttpDoor;
  #token = '';
  #exhibit = '';
  readonly #memories: string[] = [];

  constructor(subjects: number, seed = 1) {
    this.subjects = subjects;
    this.#seed = seed;
  }

  async open(directory = '/data'): Promise<void> {
    this.directory = directory;
    const env = {
      SERVICE_DATA_DIR: directory,
      // The key-encryption key is not in a backup.
      SERVICE_KEK: 'ab'.repeat(32),
      SERVICE_PORT: '0',
      SERVICE_ADMIN_BIND: '127.0.0.1:0',
      SERVICE_ADMIN_TOKEN: adminSecret,
      SERVICE_QUERY_QUOTA: '1000000000',
      SERVICE_RATE_LIMIT_RPS: '1000000',
      SERVICE_READ_RATE_LIMIT_RPS: '1000000',
      SERVICE_BACKUP_DIR: '/backups',
    };
    const settings = loadSettings({ env, workingDirectory: '/nowhere', homeDirectory: '/nowhere' });
    this.service = await Service.open({
      settings,
      disk: this.disk,
      clock: systemClock,
      random: systemRandom,
      version: '2.4.1',
      say: (line) => this.said.push(line),
      derived: { machineBytes: 1 << 30, segmentRows: 32 },
      startKept: inlineWorker,
    });
    this.door = await openHttpDoor(this.service, settings, () => doorStatuses(settings));
    if (this.#token !== '') return;
    const authorization = `Bearer ${adminSecret}`;
    const minted = await send(this.door.adminPort, 'POST', '/admin/tokens', { principal: 'tester' }, { authorization });
    this.#token = String(minted.json['token']);
  }

  async close(): Promise<void> {
    const stopped = this.door.stop();
    await this.service.close();
    await stopped;
  }

  call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> {
    const asked = { authorization: `Bearer ${this.#token}`, 'x-organization-id': 'acme', ...headers };
    return send(this.door.port, method, path, body, asked);
  }

  admin(method: string, path: string, body?: unknown): Promise<Reply> {
    return send(this.door.adminPort, method, path, body, { authorization: `Bearer ${adminSecret}` });
  }

  planted(subject: number, plant: Plant): string {
    return canary(this.#seed, subject, plant);
  }

  *needles(subjects: Iterable<number>): Generator<Needle> {
    for (const subject of subjects) for (const plant of plants) yield { subject, canary: this.planted(subject, plant) };
  }

  async prepare(): Promise<void> {
    const text = { type: 'string' };
    const who = { type: 'string', subject: true };
    await this.good('POST', '/types', {
      name: 'Person',
      properties: {
        id: text,
        who,
        name: text,
        prose: text,
        extra: { type: 'json' },
        n: { type: 'integer' },
        v: { type: 'vector', dims: wordLength + 1 },
      },
      primary_key: 'id',
    });
    // Edges from whom rows are about: both ends of them are nodes of the graph.
    await this.good('POST', '/types', {
      name: 'Visit',
      properties: { id: text, who, place: text },
      primary_key: 'id',
      graph_triggers: [{ link_type: 'Seen', src_field: 'who', dst_field: 'place' }],
    });
    await this.good('POST', '/types', { name: 'Contact', properties: { id: text, who }, primary_key: 'id' });
    await this.good('POST', '/query', {
      sql: 'CREATE MATERIALIZED VIEW Names AS SELECT name, who FROM Person REFRESH INCREMENTAL EVERY 60',
    });
    const columns = { who, note: text };
    await this.good('POST', '/types/MemoryItem/schema', { properties: columns });
    // What is made of its rows stands in a type that says of nobody whose it is.
    await this.good('POST', '/types', {
      name: 'Answer',
      properties: {
        id: text,
        content: text,
        confidence: { type: 'number' },
        derived_from: { type: 'json' },
        extra: { type: 'json' },
        tool_call_id: text,
      },
      primary_key: 'id',
    });
    await this.good('POST', '/workflows', { name: 'tells of somebody', steps: tellingSteps });
    await this.fork('trial');
    this.#exhibit = String((await this.good('POST', '/exhibits', { title: 'a case' })).json['exhibit_id']);
  }

  /** From here on the branch reads what main holds by now, too. */
  async fork(name: (typeof branches)[number]): Promise<void> {
    await this.good('POST', `/v1/namespaces/${name}/branch`, { branch_from: 'main' });
  }

  /** All versions of all rows, on a branch. */
  async exported(branch: (typeof branches)[number]): Promise<string> {
    const texts: string[] = [];
    for (const sql of [
      'SELECT * FROM Person',
      'SELECT * FROM Visit',
      'SELECT * FROM Names',
      'SELECT * FROM MemoryItem',
      'SELECT * FROM Answer',
      'SELECT * FROM Alert',
    ]) {
      const asked = `/export?format=ndjson&sql=${encodeURIComponent(sql)}`;
      texts.push((await this.good('GET', asked, undefined, { 'x-service-branch': branch })).text);
    }
    return texts.join('\n');
  }

  /** Rows made from rows by every maker that there is, three deep; and of two subjects together. */
  async #chain(subject: number): Promise<void> {
    const words = (of: number): string => `They say of ${this.planted(of, 'made')} what only these four words say.`;
    const verb = async (name: string, given: object): Promise<Record<string, unknown>> => {
      const { json } = await this.good('POST', '/mcp/tools/call', { name, arguments: { purpose: 'test', ...given } });
      return (json['content'] as { json: Record<string, unknown> }[])[1]!.json;
    };
    const session = `session ${subject}`;
    const fields = { who: this.planted(subject, 'subject') };
    const first = await verb('remember', { content: words(subject), fields, session_id: session });
    this.#memories[subject] = String(first['id']);
    const summary = await verb('summarise', { session_id: session });
    const answer = await verb('rag_store_answer', {
      question: 'which words',
      answer: words(subject),
      source_ids: [summary['id']],
    });
    const why = { rationale: `Since ${words(subject)}` };
    const better = await verb('consolidate', { id: answer['id'], content: `Better: ${words(subject)}`, ...why });
    const other = { type: 'Answer', content: `As is known: ${words(subject)}`, derived_from: [better['new_id']] };
    const told = await verb('remember', other);
    await verb('remember', { type: 'Answer', content: `As is told: ${words(subject)}`, derived_from: [told['id']] });
    const about = { subject: this.planted(subject, 'subject'), title: `Of ${this.planted(subject, 'made')}` };
    const document = await verb('ingest_document', { ...about, content: `# Heard\n\n${words(subject)}` });
    const elements = await verb('rag_store_elements', {
      ...about,
      elements: [words(subject), { text: words(subject), page: 1 }],
    });
    // A shorter version of the same document: what the longer one had more of stands in the log.
    await verb('rag_store_elements', { ...about, source_id: elements['source_id'], elements: [words(subject)] });
    const chunks = [document, elements].map((made) => (made['chunk_ids'] as string[])[0]);
    const read = await verb('rag_store_answer', { question: 'what is read', answer: words(subject), source_ids: chunks });
    await verb('consolidate', { id: read['id'], content: `As is read: ${words(subject)}` });
    await verb('remember', { content: `Loosely: ${words(subject)}`, derived_from: [told['id']] });
    await verb('quarantine', { id: told['id'], reason: `Nobody is to read: ${words(subject)}` });
    await verb('lift_quarantine', { id: told['id'] });
    await this.#program(subject, words(subject), String(better['new_id']));
    const before = this.#memories[subject - 1];
    if (before === undefined) return;
    const both = { content: `${words(subject)} ${words(subject - 1)}`, derived_from: [before, this.#memories[subject]] };
    const joint = await verb('remember', both);
    await verb('remember', { ...both, type: 'Answer', derived_from: [joint['id']] });
  }

  /** Rules, jobs, views and runs of workflows that name a subject, and what they write of its rows. The run waits for good, with all it has read. */
  async automate(subject: number): Promise<void> {
    const [key, who] = [this.planted(subject, 'key'), this.planted(subject, 'subject')];
    const condition = `who = '${who}'`;
    const rule = await this.good('POST', '/rules', { name: `of ${key}`, object_type: 'Person', condition_sql: condition });
    const at = { interval_secs: 86_400, purpose: 'test' };
    for (const run of [{ rules: [rule.json['id']] }, { sql: `SELECT name FROM Person WHERE ${condition}` }])
      await this.good('POST', '/jobs', { ...at, name: `${Object.keys(run)[0]} of ${key}`, run });
    const view = `SELECT name FROM Person WHERE ${condition} AND n >= 0`;
    await this.good('POST', '/query', { sql: `CREATE MATERIALIZED VIEW Of${subject} AS ${view} REFRESH INCREMENTAL EVERY 60` });
    await this.good('POST', '/query', { sql: `SELECT * FROM Of${subject}` });
    const given = { key, memory: this.#memories[subject], word: who };
    const asked = { name: 'tells of somebody', arguments: given, purpose: 'test' };
    const { json } = await this.good('POST', '/workflows/runs', asked);
    if (json['waiting'] !== true) throw new Error(`the run does not wait: ${JSON.stringify(json)}`);
  }

  /** What is shown of them. */
  async automated(): Promise<string> {
    const replies = ['/rules', '/jobs', '/workflows'].map((path) => this.good('GET', path));
    const asked = { action: 'query', purpose: 'test', correlationId: 'c' } as const;
    const views = await this.service.gate.invoke(writer, asked, async (invocation) =>
      invocation.snapshot().views.map(({ sql }) => sql),
    );
    return [...(await Promise.all(replies)).map(({ text }) => text), ...views].join('\n');
  }

  /** The same by doors that know of no makers: rows that name what they were made from, changed and ended in every way. */
  async #program(subject: number, words: string, source: string): Promise<void> {
    const ids = ['first', 'second', 'third', 'fourth'].map((nth) => `${nth}-${subject}`);
    const row = (i: number): object => ({
      id: ids[i],
      content: `${i}: ${words}`,
      derived_from: [i === 0 ? source : ids[i - 1]],
      extra: { said: [{ by: words }] },
    });
    await this.good('POST', '/ingest?object_type=Answer', [row(0)]);
    await this.good('POST', '/ingest?object_type=Answer', [row(2), row(1)]);
    await this.#run([`INSERT INTO Answer (id, content, derived_from) VALUES ('${ids[3]}', '${words}', '["${ids[2]}"]')`]);
    await this.#run([`UPDATE Answer SET content = 'Changed: ${words}' WHERE id = '${ids[0]}'`]);
    await this.good('PATCH', `/types/Answer/${ids[1]}`, { content: `Patched: ${words}` });
    // What a transaction comes to is sealed as what is written at once.
    await this.#run([
      `UPDATE Answer SET derived_from = NULL WHERE id = '${ids[2]}'`,
      `UPDATE Answer SET content = 'Twice: ${words}' WHERE id = '${ids[2]}'`,
      `INSERT INTO Answer (id, content, derived_from) VALUES ('fifth-${subject}', '${words}', '["${ids[3]}"]')`,
    ]);
    await this.#run([`UPDATE Answer SET content = 'Again: ${words}' WHERE id = '${ids[2]}'`]);
    await this.#run([`DELETE FROM Answer WHERE id = '${ids[0]}'`]);
    await this.good('DELETE', `/types/Answer/${ids[1]}`);
    // What it was made from is named within one transaction alone.
    await this.#run([
      `INSERT INTO Answer (id, content, derived_from) VALUES ('brief-${subject}', '${words}', '["${ids[3]}"]')`,
      `UPDATE Answer SET derived_from = NULL WHERE id = 'brief-${subject}'`,
    ]);
    // What it was made from is removed for good before anybody is erased, and what that was made from as well.
    const of = { who: this.planted(subject, 'subject'), place: words };
    await this.good('POST', '/ingest?object_type=Visit', [{ id: `root-${subject}`, ...of }]);
    const made = (id: string, from: string): object => ({
      id: `${id}-${subject}`,
      content: words,
      derived_from: [`${from}-${subject}`],
    });
    await this.good('POST', '/ingest?object_type=Answer', [made('stem', 'root'), made('leaf', 'stem')]);
    await this.good('DELETE', `/types/Answer/stem-${subject}?hard=true`);
    await this.good('DELETE', `/types/Visit/root-${subject}?hard=true`);
  }

  /** Statements of the relational door; of several, in one transaction. */
  async #run(statements: readonly string[]): Promise<void> {
    const { gate, planner } = this.service;
    const asked = { action: 'query', purpose: 'test', correlationId: 'c' } as const;
    const transaction = statements.length > 1 ? gate.begin(writer) : null;
    const within = transaction === null ? asked : { ...asked, transaction };
    for (const sql of statements) await gate.invoke(writer, within, (invocation) => planner.execute(invocation, { sql }));
    if (transaction !== null) await gate.invoke(writer, within, (invocation) => invocation.commit({}));
  }

  /** Whatever a subject’s texts can be put into. */
  async plant(subject: number): Promise<void> {
    const of = (plant: Plant): string => this.planted(subject, plant);
    const prose = `It was ${of('prose')}, they say: ${of('word')}.`;
    const row = { id: of('key'), who: of('subject'), name: of('name'), prose, n: subject, v: vectorOf(of('word')) };
    const keyed = { 'idempotency-key': of('idempotency') };
    await this.good('POST', '/ingest?object_type=Person', [{ ...row, extra: { note: [of('json'), of('word')] } }], keyed);
    // A second version, and one that was removed before anybody was erased.
    await this.good('POST', '/ingest?object_type=Person', [{ ...row, name: `${of('name')} again` }]);
    await this.good('POST', '/ingest?object_type=Visit', [{ id: `v-${of('key')}`, who: of('subject'), place: of('second') }]);
    await this.good('POST', '/ingest?object_type=Visit', [{ id: `gone-${of('key')}`, who: of('subject'), place: of('second') }]);
    await this.good('DELETE', `/types/Visit/${encodeURIComponent(`gone-${of('key')}`)}?hard=true`);
    const nodes = [of('subject'), of('second')].map((id) => ({ id, who: of('subject') }));
    await this.good('POST', '/ingest?object_type=Contact', nodes);
    await this.#chain(subject);
    const onTrial = { 'x-service-branch': 'trial' };
    await this.good('POST', '/ingest?object_type=Person', [{ ...row, name: of('branch') }], onTrial);
    await this.good('POST', '/query', { sql: `SELECT * FROM Person WHERE name = '${of('literal')}'` });
    await this.good('POST', '/query', { sql: `SELECT * FROM Names WHERE who = '${of('subject')}'` });
    const sql = `SELECT name FROM Person WHERE who = '${of('subject')}'`;
    await this.good('POST', `/exhibits/${this.#exhibit}/links`, { act: 'query', sql, purpose: 'test' });
    const words = `seen by ${of('key')} today`;
    await this.good('POST', `/exhibits/${this.#exhibit}/links`, { act: 'note', text: words, purpose: 'test' });
    // What is refused: a value of another type, a statement that is none.
    await this.call('POST', '/ingest?object_type=Person', [{ ...row, id: 'w', n: of('wrong') }]);
    await this.call('POST', '/query', { sql: `SELECT * FROM Person WHERE name == '${of('wrong')}' ???` });
  }

  /** Beside each other. */
  async erase(subjects: readonly number[]): Promise<void> {
    await this.asGraph();
    await this.indexed();
    const { planner } = this.service;
    if (planner.graphBytes === 0) throw new Error('no graph is kept before an erasure');
    await Promise.all(
      subjects.map(async (subject) => {
        const of = (plant: Plant): string => this.planted(subject, plant);
        const reason = `${of('name')} (${of('subject')}, key ${of('key')}) has asked for it by letter`;
        const sql = `ERASE SUBJECT '${of('subject')}' REASON '${reason}' CERTIFY`;
        this.receipts.push((await this.good('POST', '/query', { sql })).text);
      }),
    );
    if (planner.graphBytes > 0) throw new Error('a graph is kept beyond an erasure');
  }

  /** Asks for words and for what is near, until all sealed segments have indexes of both, and graphs of vectors, on files. */
  async indexed(): Promise<void> {
    const { columns, projections } = this.service.store;
    const { rows } = projections;
    const vector = vectorOf('a'.repeat(wordLength));
    const near = `SIMILAR('Person', v, ARRAY[${vector.join(', ')}])`;
    for (const sql of ["SELECT id FROM Person WHERE MATCH(prose, extra, 'say')", `SELECT * FROM ${near} LIMIT 3`]) {
      await this.good('POST', '/query', { sql });
    }
    await columns!.whenIdle();
    const sealed = (rows.table('acme', 'Person')?.segments ?? []).filter((segment) => segment.sealed);
    const isMade = (): boolean =>
      sealed.every((segment) => {
        const ofTexts = ['prose', 'extra'].every((column) => rows.indexes.whole(segment, column) !== null);
        return ofTexts && rows.indexes.coarse(segment, 'v') !== null;
      });
    for (let looks = 0; !isMade(); looks++) {
      if (looks > 2_000) throw new Error('segments have no indexes');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    // A question asks graphs of segments that have many more rows than these.
    const paths = sealed.flatMap((segment) => pathsOf(segment).map((path) => ({ segment, path, visible: null })));
    await rows.indexes.graphs!.near({ column: 'v', vector: Float32Array.from(vector), count: 1 }, paths);
    await rows.indexes.graphs!.whenIdle();
    await this.service.settle();
    await rows.indexes.files!.whenWritten();
  }

  /** Every node and every edge that the graph has. */
  async asGraph(): Promise<string> {
    const patterns = ["GRAPH_PAGERANK('Contact', 'Seen')", 'MATCH (a:Contact)-[r:Seen]->(b) RETURN a.id, r.to_id, b'];
    const texts: string[] = [];
    for (const sql of patterns) texts.push((await this.good('POST', '/query', { sql })).text);
    // Each goes on from what the one before came to: a warm score that outlives its subject shows in it.
    for (const sql of [patterns[0], "CONNECTED_COMPONENTS('Contact', 'Seen')", "LABEL_PROPAGATION('Contact', 'Seen')"]) {
      for (let time = 0; time < 2; time++) texts.push((await this.good('POST', '/query', { sql, consistency: 'eventual' })).text);
    }
    return texts.join('\n');
  }

  /** What `annals verify` finds: that nothing was tampered with is told of a log with erased rows too. */
  async verified(): Promise<readonly string[]> {
    const { keyring } = this.service.store;
    const { findings } = await verifyDirectory({ disk: this.disk, directory: this.directory, keyring });
    return findings.map(({ place, what }) => `${place}: ${what}`);
  }

  async good(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> {
    const reply = await this.call(method, path, body, headers);
    if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${reply.text}`);
    return reply;
  }
}

function pathsOf({ length, paths }: Segment): readonly number[] {
  return [...new Set(Array.from({ length }, (_, row) => paths.codeAt(row)))];
}
