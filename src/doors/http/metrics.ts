/** Counters and histograms of the HTTP door, and gauges of the store. Names are the specification's `service_…`. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { GateContract, Transaction } from '../../governance/gate-contract.ts';
import type { SystemContract } from './system-contract.ts';

export class HttpMetrics {
  readonly registry = new Registry();
  readonly #requests: Counter<'route' | 'method' | 'status'>;
  readonly #latency: Histogram<'route'>;
  readonly #rows: Counter;
  // Looking a labelled child up costs more than bumping it.
  readonly #requestChildren = new Map<string, Counter.Internal>();
  readonly #latencyChildren = new Map<string, Histogram.Internal<'route'>>();

  constructor(system: SystemContract, gate: Pick<GateContract, 'transactions'>) {
    const registers = [this.registry];
    this.#requests = new Counter({
      name: 'service_http_requests_total',
      help: 'requests answered',
      labelNames: ['route', 'method', 'status'],
      registers,
    });
    this.#latency = new Histogram({
      name: 'service_http_request_seconds',
      help: 'time from the last header byte read to the answer handed over',
      labelNames: ['route'],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    });
    this.#rows = new Counter({ name: 'service_ingested_rows_total', help: 'rows accepted over HTTP', registers });
    const gauge = (name: string, help: string, read: () => number): void => {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    };
    gauge('service_store_total_stored_bytes', 'bytes of the log on disk', () => system.storage().storedBytes);
    gauge('service_store_disk_segment_bytes', 'bytes of columnar segments on disk', () => system.storage().segmentBytes);
    gauge('service_store_disk_segment_count', 'columnar segments on disk', () => system.storage().segmentCount);
    gauge('service_store_row_memory_bytes', 'memory of indexes, columns and growing segments', () => system.storage().rowBytes);
    gauge('service_store_column_memory_bytes', 'memory of columns that rest on files too', () => system.storage().columnBytes);
    gauge('service_store_columns_hydrated', 'columns read from files since the start', () => system.storage().columnsHydrated);
    gauge('service_store_columns_evicted', 'columns that left memory since the start', () => system.storage().columnsEvicted);
    gauge('service_store_segments_pruned', 'segments that scans left out since the start', () => system.storage().segmentsPruned);
    gauge('service_store_segments_pruned_by_bloom', 'of these, by a bloom filter', () => system.storage().segmentsPrunedByBloom);
    const sum = (of: (transaction: Transaction) => number): number =>
      gate.transactions().reduce((total, transaction) => total + of(transaction), 0);
    gauge('service_transactions_open', 'transactions between their BEGIN and their end', () => sum(() => 1));
    gauge('service_transactions_rows', 'rows that wait for their commits', () => sum(({ rows }) => rows));
    gauge('service_transactions_pinned_bytes', 'memory that goes when open transactions end', () =>
      sum(({ pinnedBytes }) => pinnedBytes),
    );
    gauge('service_up', '1 while the store takes work', () => (system.state() === 'ready' ? 1 : 0));
  }

  countRequest(route: string, method: string, status: number, seconds: number): void {
    const key = `${method} ${route} ${status}`;
    let child = this.#requestChildren.get(key);
    if (child === undefined) {
      child = this.#requests.labels(route, method, String(status));
      this.#requestChildren.set(key, child);
    }
    child.inc();
    let latency = this.#latencyChildren.get(route);
    if (latency === undefined) {
      latency = this.#latency.labels(route);
      this.#latencyChildren.set(route, latency);
    }
    latency.observe(seconds);
  }

  countRows(rows: number): void {
    if (rows > 0) this.#rows.inc(rows);
  }
}
