/** What the gRPC door says: its methods, called as the server calls them, about rows, types and branches of others. */
import { UnsentMessages } from '../../src/doors/grpc/unsent-messages.ts';
import { RpcConnections } from '../../src/doors/grpc/connections.ts';
import { Metadata } from '@grpc/grpc-js';
import { EventEmitter } from 'node:events';
import { ServiceError } from '../../src/errors.ts';
import { recordRefusal } from '../../src/doors/shared/door-dependencies.ts';
import { annalsService, doorName } from '../../src/doors/grpc/annals-service.ts';
import { addressOf, admitCaller } from '../../src/doors/grpc/call.ts';
import { statusOf } from '../../src/doors/grpc/errors.ts';
import { outputForms } from '../../src/planner/formats/output-format.ts';
import { type Conversation, talk } from './conversations.ts';
import { settled } from './lab.ts';
import { comesAs, heardOf, partsOf } from './narrow-doors.ts';

const types = ['Deal', 'Party', 'Dossier', 'Hidden', 'hidden_view', 'SourceTrueIdentity', 'Nowhere'];
const query = (sql: string, format = 'ROWS'): [string, object] => ['Query', { sql, named: {}, positional: [], format }];
const lookUp = (type: string): [string, object] => ['Lookup', { type, keys: ['x1', 'y7'], columns: [], format: 'ROWS' }];
const put = (type: string, rows: string): object => ({ put: { type, rows: Buffer.from(rows), create_type: false } });

const calls: readonly (readonly [method: string, request: object])[] = [
  ...types.flatMap((type) => [
    query(`SELECT * FROM ${type} ORDER BY _pk`),
    query(`SELECT COUNT(*) AS n FROM ${type}`),
    lookUp(type),
  ]),
  query('SELECT amount FROM Deal AS OF CURRENT', 'ARROW'),
  query('EXPLAIN SELECT * FROM Deal'),
  ['ListTypes', {}],
  ['ListBranches', {}],
  ['Fork', { name: 'rpc', source: 'nowhere', types_only: false }],
  ['RegisterType', { definition: '{"name":"Mine2","properties":{"id":"string"}}' }],
  ['Write', { steps: [put('Deal', '{"id":"x1","amount":1,"note":"own"}')] }],
  ['Write', { steps: [put('Deal', '{"id":"x2","amount":2}'), put('Hidden', '{"id":"x1"}')] }],
  ['Delete', { type: 'Deal', keys: ['x1', 'x3'] }],
  ['Watch', { sql: 'SELECT id FROM Hidden', resume_after: '0' }],
];

const turnsMax = 100_000;

/** What a method takes for the call that the library would give it. */
export class Call extends EventEmitter {
  readonly metadata = new Metadata();
  readonly request: object;
  readonly told: unknown[] = [];
  #isOver = false;

  constructor(request: object, metadata: Readonly<Record<string, string>>) {
    super();
    this.request = request;
    for (const [name, value] of Object.entries(metadata)) this.metadata.set(name, value);
    this.on('error', (error) => this.refuse(error as object));
  }

  getPeer(): string {
    return '127.0.0.1:1';
  }

  write(message: object): boolean {
    this.told.push(message);
    // A standing query never ends: once it beats, it has told what is true.
    if ((message as { event?: string }).event === 'heartbeat') this.end();
    return true;
  }

  end(): void {
    this.#isOver = true;
  }

  /** Resolves once all is told, however many turns that takes; the bound is for a call that hangs. */
  async answered(): Promise<void> {
    for (let turns = 0; !this.#isOver && turns < turnsMax; turns++) await settled(1);
  }

  refuse(error: object): void {
    const { code, details, metadata } = error as { code: number; details: string; metadata: Metadata };
    this.told.push({ code, details, more: metadata.get('grpc-status-details-bin').map(String) });
    this.end();
  }

  readonly reply = (error: object | null, message?: object): void => {
    if (error !== null) return this.refuse(error);
    this.told.push(message);
    this.end();
  };
}

/** Lets a call in as the door does before it is answered. False: its credential was refused, and it is told so. */
export async function letIn(call: Call, parts: ReturnType<typeof partsOf>, door: string): Promise<boolean> {
  const peer = call.getPeer();
  try {
    admitCaller(call.metadata, new RpcConnections(parts.clock).callerOf(parts, door, peer, call.metadata));
    return true;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const id = parts.ids.next();
    call.refuse(statusOf(await recordRefusal(parts, { door, clientIp: addressOf(peer) }, 'query', error, id), id));
    return false;
  }
}

export const grpcConversations: readonly Conversation[] = [
  {
    name: 'the gRPC door',
    hold: talk(async (_ask, stage, adversary, heard) => {
      const comes = comesAs(stage, adversary);
      if (comes === null) return;
      const { token, organization, purpose } = comes;
      // The package of Arrow is read from the disk, which takes no number of turns.
      await outputForms.arrow.writer();
      const parts = {
        ...partsOf(stage),
        isDraining: () => false,
        outboxes: new UnsentMessages(),
        endings: new RpcConnections(partsOf(stage).clock).endings,
        sending: new RpcConnections(partsOf(stage).clock).sending,
        watch: stage.lab.service.standing.watch,
        bodyLimitBytes: 1 << 20,
      };
      const methods = annalsService(parts) as unknown as Readonly<Record<string, (call: Call, reply: Call['reply']) => void>>;
      const metadata = {
        authorization: `Bearer ${token}`,
        ...(organization !== null && { 'x-organization-id': organization }),
        ...(purpose !== null && { 'x-service-purpose': purpose }),
      };
      for (const [method, request] of calls) {
        await stage.lab.tick();
        const call = new Call(request, metadata);
        if (await letIn(call, parts, doorName)) methods[method]!(call, call.reply);
        await call.answered();
        call.emit('cancelled');
        await settled(8);
        const body = JSON.stringify(call.told, (_, value: unknown) =>
          value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
        );
        heard.push(heardOf('GRPC', `${method} ${JSON.stringify(request)}`, Buffer.from(body, 'latin1')));
      }
    }),
  },
];
