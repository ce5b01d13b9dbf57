/**
 * Bolt and gRPC beside `/query` for a row by its key, by what each takes of the server's core; Arrow Flight beside `/query/arrow` and an
 * ingest of JSON lines, by the time that each takes.
 */
import { Agent, request } from 'node:http';
import { commandDescriptor, FlightClient, typeDescriptor } from '../../test/doors/grpc/flight-client.ts';
import type { GrpcClient } from '../../test/doors/grpc/grpc-client.ts';
import { AnnalsServer } from '../annals-server.ts';
import { boltLoad } from '../bolt-load.ts';
import { doGet, grpcLoad } from '../grpc-load.ts';
import type { BenchContext } from '../context.ts';
import { load, post } from '../http-load.ts';
import { cpuSeconds } from '../processes.ts';
import { quotient } from '../report.ts';
import { orderColumns, orderJson, orders, scramble } from '../workload.ts';

const secret = 'bearer-of-the-bench';
const askers = 16;
const calls = 100;
const keys = 100_000;
/** As many as the goal is about, however short the run: what an answer takes at its beginning counts for more in a smaller one. */
const tableRows = 1_000_000;
const windowBytes = 4 << 20;

export async function rpcDoors(context: BenchContext): Promise<void> {
  const { directory, port } = context;
  const [bolt, grpc, flight] = [port(), port(), port()];
  const settings = {
    SERVICE_BEARER_TOKEN: secret,
    SERVICE_GRAPH_BINARY_PORT: String(bolt),
    SERVICE_GRPC_PORT: String(grpc),
    SERVICE_FLIGHT_PORT: String(flight),
    SERVICE_FLIGHT_ENABLE: 'true',
    SERVICE_OBJECT_ENABLE: 'false',
    SERVICE_RELATIONAL_ENABLE: 'false',
  };
  const server = await AnnalsServer.start(directory, 'rpc', port(), { settings });
  try {
    await server.registerOrders();
    await server.ingest('Purchase', orders(0, tableRows, orderJson), tableRows);
    await byKey(context, server, bolt, grpc);
    await tables(context, server, flight);
  } finally {
    await server.stop();
  }
}

const world = (name: string, port: number) =>
  ({ others: [{ name, port }] }) as unknown as ConstructorParameters<typeof GrpcClient>[0];

async function byKey(
  { report, repeats, seconds }: BenchContext,
  server: AnnalsServer,
  bolt: number,
  grpc: number,
): Promise<void> {
  const ids = Array.from({ length: 4_096 }, (_, n) => (JSON.parse(orderJson(scramble(n) % keys)) as { id: string }).id);
  const headers = { ...server.headers, 'content-type': 'application/json' };
  const id = (n: number): string => ids[n % ids.length]!;
  const sql = (n: number): string => `SELECT customer, amount FROM Purchase AS OF CURRENT WHERE id = '${id(n)}'`;
  const match = 'MATCH (p:Purchase {id: $id}) RETURN p.customer AS customer, p.amount AS amount';
  const ways = {
    bolt: () => boltLoad({ port: bolt, secret, connections: askers, seconds, text: match, parameters: (n) => ({ id: id(n) }) }),
    grpc: () => grpcLoad({ port: grpc, secret, calls, seconds, sql }),
    query: async () => {
      const asked = (n: number): Buffer => post('/query', headers, JSON.stringify({ sql: sql(n) }));
      const { perSecond } = await load({ port: server.port, connections: askers, seconds, request: asked });
      return perSecond * seconds;
    },
  } as const;
  const samples = { bolt: [] as number[], grpc: [] as number[], query: [] as number[] };
  for (let repeat = 0; repeat <= repeats; repeat++)
    for (const name of ['bolt', 'grpc', 'query'] as const) {
      const began = cpuSeconds(server.pid);
      const asked = await ways[name]();
      // The first round is for warming up.
      if (repeat > 0) samples[name].push(asked / (cpuSeconds(server.pid) - began));
    }
  const shape = {
    measure: 'a row by its key',
    unit: 'requests/s',
    better: 'larger',
    note: 'a second of the server’s core',
  } as const;
  report.add({ ...shape, product: 'annals, Bolt', samples: samples.bolt });
  report.add({ ...shape, product: `annals, gRPC, ${calls} calls at once`, samples: samples.grpc });
  report.add({ ...shape, product: 'annals, /query', samples: samples.query });
  report.figure('doors.bolt-point', quotient(samples.bolt, samples.query));
  report.figure('doors.grpc-point', quotient(samples.grpc, samples.query));
}

async function tables({ report, repeats }: BenchContext, server: AnnalsServer, port: number): Promise<void> {
  const options = { 'grpc-node.flow_control_window': windowBytes };
  const client = new FlightClient(world('flight', port), {}, secret, { options });
  const agent = new Agent({ keepAlive: true });
  const sql = `SELECT ${orderColumns.join(', ')} FROM Purchase AS OF CURRENT`;
  const got = { get: [] as number[], arrow: [] as number[], put: [] as number[], lines: [] as number[] };
  const part = 100_000;
  try {
    const table = await client.table(`${sql} LIMIT ${part}`);
    for (let repeat = 0; repeat <= repeats; repeat++) {
      // The clock starts with the question for rows: a ticket is asked for beforehand, in a call of its own.
      const { ticket } = await client.info(commandDescriptor(Buffer.from(sql)));
      const timed = {
        get: await taken(tableRows, () => doGet(port, secret, ticket)),
        arrow: await taken(tableRows, () => arrow(server, agent, sql)),
        put: await taken(part, () => client.put(typeDescriptor(`Put${repeat}`), table)),
        lines: await taken(part, () => lines(server, `Lines${repeat}`, part)),
      };
      if (repeat > 0) for (const name of ['get', 'arrow', 'put', 'lines'] as const) got[name].push(timed[name]);
    }
  } finally {
    agent.destroy();
    client.close();
  }
  const shape = { unit: 'rows/s', better: 'larger', product: 'annals' } as const;
  const out = `${tableRows.toLocaleString('en')} rows out`;
  const into = `${part.toLocaleString('en')} rows of a new type in`;
  report.add({ ...shape, measure: `${out}, DoGet`, samples: got.get });
  report.add({ ...shape, measure: `${out}, /query/arrow`, samples: got.arrow });
  report.add({ ...shape, measure: `${into}, DoPut`, samples: got.put });
  report.add({ ...shape, measure: `${into}, JSON lines`, samples: got.lines });
  report.figure('doors.flight-get', quotient(got.get, got.arrow));
  report.figure('doors.flight-put', quotient(got.put, got.lines));
}

/** Rows a second. */
async function taken(count: number, run: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await run();
  return (count * 1_000) / (performance.now() - began);
}

function arrow(server: AnnalsServer, agent: Agent, sql: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { ...server.headers, 'content-type': 'application/json' };
    const sent = request({ host: '127.0.0.1', port: server.port, path: '/query/arrow', method: 'POST', headers, agent });
    sent.once('error', reject).once('response', (response) => response.resume().once('end', resolve));
    sent.end(JSON.stringify({ sql }));
  });
}

async function lines(server: AnnalsServer, type: string, count: number): Promise<void> {
  await server.registerOrders(type);
  await server.ingest(type, orders(0, count, orderJson), count);
}
