/** A whole store in the bench's own process: log in memory, gate and planner as in production, no door. */
import { systemClock, systemRandom } from '../src/clock.ts';
import { loadSettings } from '../src/config.ts';
import type { Caller } from '../src/governance/caller.ts';
import type { Invocation } from '../src/governance/gate-contract.ts';
import { MemoryDisk } from '../src/log/disk/memory-disk.ts';
import type { ColumnType } from '../src/log/values/value.ts';
import { readIngest } from '../src/planner/formats/ingest-reader.ts';
import type { Answer } from '../src/planner/planner-contract.ts';
import { Service } from '../src/service.ts';
import { raisedLimits } from './annals-server.ts';

const analyst: Caller = {
  principal: 'bench',
  credential: 'token',
  tokenId: null,
  tenant: null,
  path: null,
  roles: [],
  attributes: {},
  purposes: [],
  door: 'http',
  branch: 'main',
  clientIp: null,
  sharedFrom: null,
};

interface Asked {
  readonly branch?: string;
  readonly consistency?: 'strong' | 'eventual';
}

export class AnnalsStore {
  readonly #service: Service;

  private constructor(service: Service) {
    this.#service = service;
  }

  static async open(): Promise<AnnalsStore> {
    const env = { SERVICE_IN_MEMORY: 'true', ...raisedLimits };
    const service = await Service.open({
      settings: loadSettings({ env, workingDirectory: '/nowhere', homeDirectory: '/nowhere' }),
      disk: new MemoryDisk(),
      clock: systemClock,
      random: systemRandom,
      version: 'bench',
      say: () => undefined,
    });
    return new AnnalsStore(service);
  }

  async register(name: string, columns: Readonly<Record<string, ColumnType>>, primaryKey: string | null): Promise<void> {
    const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 };
    const properties = Object.fromEntries(Object.entries(columns).map(([column, type]) => [column, { ...plain, type }]));
    await this.#invoke('schema', (invocation) =>
      invocation.submit({ kind: 'register-type', name, properties, primaryKey, graphTriggers: [] }),
    );
  }

  /** Rows accepted of NDJSON. */
  async ingest(type: string, lines: Iterable<Buffer>): Promise<number> {
    const chunks = async function* (): AsyncGenerator<Uint8Array> {
      yield* lines;
    };
    return this.#invoke('ingest', async (invocation) => {
      const definition = invocation.snapshot().catalog.type(type) ?? null;
      let accepted = 0;
      for await (const batch of readIngest(chunks(), { definition, batchRows: 5_000, batchBytes: 1 << 22 })) {
        const outcome = await invocation.submit({
          kind: 'put-rows',
          type,
          rows: batch.rows,
          atomic: true,
          createType: false,
          provenance: { source: 'bench', method: 'ingest', confidence: 1, derivedFrom: null },
        });
        accepted += outcome.accepted;
      }
      return accepted;
    });
  }

  /** Bytes of all indexes of texts and vectors. */
  get indexBytes(): number {
    return this.#service.store.projections.rows.indexes.bytes;
  }

  /** Resolves once all graphs of vectors that were begun are made. */
  async nearGraphs(): Promise<void> {
    await this.#service.store.projections.rows.indexes.graphs?.whenIdle();
  }

  /** A policy from now on, or none of that id any more; the analyst's own rows are judged by it. */
  async rule(id: string, text: string | null): Promise<void> {
    const admin: Caller = { ...analyst, credential: 'admin' };
    const request = { action: 'administer', purpose: null, correlationId: 'bench' } as const;
    await this.#service.gate.invoke(admin, request, (invocation) =>
      invocation.submit(text === null ? { kind: 'delete-policy', id } : { kind: 'put-policy', id, text }),
    );
  }

  async delete(type: string, keys: readonly string[]): Promise<void> {
    await this.#invoke('delete', (invocation) => invocation.submit({ kind: 'delete-rows', type, keys }));
  }

  /** What was kept of earlier questions is gone. */
  forget(): void {
    this.#service.planner.forget();
  }

  /** Of graphs that are kept, without their dictionaries of nodes. */
  get graphBytes(): number {
    return this.#service.planner.graphBytes;
  }

  query(sql: string, time: 'all' | 'current' = 'all', more: Asked = {}): Promise<Answer> {
    const { branch = 'main', consistency = 'strong' } = more;
    return this.#invoke('query', (invocation) => this.#service.planner.query(invocation, { sql, time, consistency }), branch);
  }

  async close(): Promise<void> {
    await this.#service.close();
  }

  #invoke<T>(
    action: 'query' | 'ingest' | 'schema' | 'delete',
    run: (invocation: Invocation) => Promise<T>,
    branch = 'main',
  ): Promise<T> {
    return this.#service.gate.invoke({ ...analyst, branch }, { action, purpose: null, correlationId: 'bench' }, run);
  }
}
