/** Counters and histograms of the HTTP door, and gauges of the store. Names are the specification's `service_…`. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { GateContract, Transaction } from '../../governance/gate-contract.ts';
import type { SystemContract } from './system-contract.ts';

export class HttpMetrics {
  readonly registry = new Registry();
  readonly #requestCounter: Counter<'route' | 'method' | 'status'>;
  readonly #requestLatency: Histogram<'route'>;
  readonly #ingestedRows: Counter;
  // Looking a labelled child up costs more than bumping it.
  readonly #requestChildren = new Map<string, Counter.Internal>();
  readonly #latencyChildren = new Map<string, Histogram.Internal<'route'>>();

  constructor(systemDesk: SystemContract, gate: Pick<GateContract, 'transactions'>) {
    const metricRegistries = [this.registry];
    this.#requestCounter = new Counter({
      name: 'service_http_requests_total',
      help: 'requests answered',
      labelNames: ['route', 'method', 'status'],
      registers: metricRegistries,
    });
    this.#requestLatency = new Histogram({
      name: 'service_http_request_seconds',
      help: 'time from the last header byte read to the answer handed over',
      labelNames: ['route'],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers: metricRegistries,
    });
    this.#ingestedRows = new Counter({
      name: 'service_ingested_rows_total',
      help: 'rows accepted over HTTP',
      registers: metricRegistries,
    });
    const addGauge = (gaugeName: string, gaugeHelp: string, readGauge: () => number): void => {
      new Gauge({
        name: gaugeName,
        help: gaugeHelp,
        registers: metricRegistries,
        collect() {
          this.set(readGauge());
        },
      });
    };
    addGauge('service_store_total_stored_bytes', 'bytes of the log on disk', () => systemDesk.storage().storedBytes);
    addGauge('service_store_disk_segment_bytes', 'bytes of columnar segments on disk', () => systemDesk.storage().segmentBytes);
    addGauge('service_store_disk_segment_count', 'columnar segments on disk', () => systemDesk.storage().segmentCount);
    addGauge(
      'service_store_row_memory_bytes',
      'memory of indexes, columns and growing segments',
      () => systemDesk.storage().rowBytes,
    );
    addGauge(
      'service_store_column_memory_bytes',
      'memory of columns that rest on files too',
      () => systemDesk.storage().columnBytes,
    );
    addGauge(
      'service_store_columns_hydrated',
      'columns read from files since the start',
      () => systemDesk.storage().columnsHydrated,
    );
    addGauge(
      'service_store_columns_evicted',
      'columns that left memory since the start',
      () => systemDesk.storage().columnsEvicted,
    );
    addGauge(
      'service_store_segments_pruned',
      'segments that scans left out since the start',
      () => systemDesk.storage().segmentsPruned,
    );
    addGauge(
      'service_store_segments_pruned_by_bloom',
      'of these, by a bloom filter',
      () => systemDesk.storage().segmentsPrunedByBloom,
    );
    const sumOfTransactions = (figureOf: (transaction: Transaction) => number): number =>
      gate.transactions().reduce((gaugeSum, transaction) => gaugeSum + figureOf(transaction), 0);
    addGauge('service_transactions_open', 'transactions between their BEGIN and their end', () => sumOfTransactions(() => 1));
    addGauge('service_transactions_rows', 'rows that wait for their commits', () => sumOfTransactions(({ rows }) => rows));
    addGauge('service_transactions_pinned_bytes', 'memory that goes when open transactions end', () =>
      sumOfTransactions(({ pinnedBytes }) => pinnedBytes),
    );
    addGauge('service_up', '1 while the store takes work', () => (systemDesk.state() === 'ready' ? 1 : 0));
  }

  countRequest(routeUrl: string, httpMethod: string, replyStatus: number, requestSecs: number): void {
    const requestLabels = `${httpMethod} ${routeUrl} ${replyStatus}`;
    let requestChild = this.#requestChildren.get(requestLabels);
    if (requestChild === undefined) {
      requestChild = this.#requestCounter.labels(routeUrl, httpMethod, String(replyStatus));
      this.#requestChildren.set(requestLabels, requestChild);
    }
    requestChild.inc();
    let routeLatency = this.#latencyChildren.get(routeUrl);
    if (routeLatency === undefined) {
      routeLatency = this.#requestLatency.labels(routeUrl);
      this.#latencyChildren.set(routeUrl, routeLatency);
    }
    routeLatency.observe(requestSecs);
  }

  countRows(ingestedRowCount: number): void {
    if (ingestedRowCount > 0) this.#ingestedRows.inc(ingestedRowCount);
  }
}
