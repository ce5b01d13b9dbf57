/** The columnar HTTP door beside ClickHouse's server: INSERT of JSON lines, and a question that filters, groups and sums ten times as many. */
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { askColumnar, ClickHouse } from '../peers/clickhouse.ts';
import { quotient } from '../report.ts';
import { orderJson, orders } from '../workload.ts';

const secret = 'bearer-of-the-bench';
const batchRows = 100_000;
const insert = 'INSERT INTO Purchase FORMAT JSONEachRow';
const question =
  'SELECT region, count() AS n, sum(amount) AS total FROM Purchase WHERE quantity < 25 GROUP BY region ORDER BY region FORMAT TSV';
const table =
  'CREATE TABLE Purchase (id String, customer String, region String, category String, amount Float64, quantity Int64, placed Int64, ' +
  'paid UInt8, note String) ENGINE = MergeTree ORDER BY id';

/** Asks one of the two; with a body, the statement stands in the URL. */
type Ask = (sql: string, body?: Buffer) => Promise<string>;

interface Found {
  /** Rows a second of each batch. */
  readonly inserts: readonly number[];
  /** ms of each asking. */
  readonly asked: readonly number[];
  readonly answer: string;
}

export async function columnarDoor(context: BenchContext): Promise<void> {
  const { report, directory, port, rows, largeRows } = context;
  const doorPort = port();
  const settings = {
    SERVICE_BEARER_TOKEN: secret,
    SERVICE_COLUMNAR_HTTP_PORT: String(doorPort),
    SERVICE_OBJECT_ENABLE: 'false',
    SERVICE_RELATIONAL_ENABLE: 'false',
  };
  const server = await AnnalsServer.start(directory, 'columnar', port(), { settings });
  let ours: Found;
  try {
    await server.registerOrders();
    const headers = { 'x-columnar-key': secret };
    ours = await measure(context, (sql, body) => askColumnar(doorPort, headers, sql, body ?? null));
  } finally {
    await server.stop();
  }
  const peer = await ClickHouse.start(directory, port());
  if (peer === null) report.skip('ClickHouse', 'no clickhouse-server program here (Debian: apt-get install clickhouse-server)');
  let theirs: Found | null = null;
  try {
    await peer?.ask(table);
    theirs = peer && (await measure(context, (sql, body) => peer.ask(sql, body)));
  } finally {
    await peer?.stop();
  }
  const found = [['annals', ours] as const, ...(theirs === null ? [] : [[`ClickHouse ${peer!.version}`, theirs] as const])];
  for (const [product, { inserts, asked }] of found) {
    const of = `${rows.toLocaleString('en')} rows in batches of ${batchRows.toLocaleString('en')}`;
    report.add({ unit: 'rows/s', better: 'larger', measure: `INSERT of JSON lines, ${of}`, product, samples: inserts });
    const over = `filter, group, sum over ${largeRows.toLocaleString('en')} rows`;
    report.add({ unit: 'ms', better: 'smaller', measure: `${over}, columnar HTTP`, product, samples: asked });
  }
  if (theirs === null) return;
  if (rounded(ours.answer) !== rounded(theirs.answer)) throw new Error(`other answers: ${ours.answer}\n${theirs.answer}`);
  report.figure('doors.columnar-insert', quotient(ours.inserts, theirs.inserts));
  report.figure('doors.columnar-group', quotient(theirs.asked, ours.asked));
}

async function measure({ rows, largeRows, repeats }: BenchContext, ask: Ask): Promise<Found> {
  const inserts: number[] = [];
  for (let from = 0; from < largeRows; from += batchRows) {
    const count = Math.min(batchRows, largeRows - from);
    const body = orders(from, count, orderJson);
    const began = performance.now();
    await ask(insert, body);
    if (from < rows) inserts.push((count * 1_000) / (performance.now() - began));
  }
  const asked: number[] = [];
  let answer = '';
  for (let repeat = 0; repeat <= repeats * 2; repeat++) {
    const began = performance.now();
    answer = await ask(question);
    if (repeat > 0) asked.push(performance.now() - began);
  }
  return { inserts, asked, answer };
}

/** Sums of floats differ in their last digits by the order in which they are added. */
const rounded = (answer: string): string =>
  answer.replaceAll(/\d+\.\d+(?:e\+?\d+)?/g, (number) => Number(number).toPrecision(10));
