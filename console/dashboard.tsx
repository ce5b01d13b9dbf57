/** How the store is: rates and latencies as they come, storage against its cap, the log's head, the licence. */
import type { ComponentChildren } from 'preact';
import type UPlot from 'uplot';
import { useEffect, useRef, useState } from 'preact/hooks';
import { administer, data, json, session } from './api.ts';
import { bytes, count } from './format.ts';
import { Head, Problem, useLoad } from './parts.tsx';

interface Licence {
  readonly tier: string;
  readonly storage_max_gb: number;
  readonly current_tenants: number;
  readonly expires_unix_secs: number | null;
}
interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly {
    readonly value: number;
    readonly metricName?: string;
    readonly labels: Readonly<Record<string, string | number>>;
  }[];
}

const everyMs = 2_000;
const pointsMax = 120;

export function Dashboard() {
  const { value: licence, error } = useLoad('licence', (signal) => json<Licence>(administer('/platform/license', { signal })));
  const { value: usage } = useLoad('usage', (signal) => json<{ store_bytes: number }>(administer('/platform/usage', { signal })));
  const hasCaller = session.value!.caller !== null;
  const { value: head } = useLoad(hasCaller ? 'head' : null, (signal) =>
    json<{ tree_size: number; origin: string; root_hash: string }>(data('/audit/log', { signal })),
  );
  const { value: status } = useLoad(hasCaller ? 'status' : null, (signal) =>
    json<Record<string, unknown>>(data('/status', { signal })),
  );
  const cap = (licence?.storage_max_gb ?? 0) * 1024 ** 3;
  return (
    <>
      <Head title="Dashboard">
        {status && (
          <>
            {String(status['state'])}, up {count(Math.floor(Number(status['uptime_secs']) / 60))} minutes, version{' '}
            {String(status['version'])}
          </>
        )}
      </Head>
      <Problem error={error} />
      <div class="cards">
        {usage && (
          <Figure title="Stored" text={bytes(usage.store_bytes)}>
            {cap > 0 && (
              <>
                <span class="meter" style={{ width: `${Math.min(100, (usage.store_bytes / cap) * 100)}%` }} /> of {bytes(cap)}
              </>
            )}
          </Figure>
        )}
        {head && (
          <Figure title="Log" text={`${count(head.tree_size)} entries`}>
            <code title={head.root_hash}>{head.root_hash.slice(0, 22)}…</code>
          </Figure>
        )}
        {licence && (
          <Figure title="Licence" text={licence.tier}>
            {licence.current_tenants} tenants
            {licence.expires_unix_secs ? `, until ${new Date(licence.expires_unix_secs * 1000).toISOString().slice(0, 10)}` : ''}
          </Figure>
        )}
        {Array.isArray(status?.['doors']) && (
          <Figure
            title="Doors"
            text={String((status['doors'] as { state: string }[]).filter(({ state }) => state === 'listening').length)}
          >
            {(status['doors'] as { name: string; state: string }[])
              .filter(({ state }) => state === 'listening')
              .map(({ name }) => name)
              .join(', ')}
          </Figure>
        )}
      </div>
      {hasCaller ? <Live /> : <p class="soft">Rates and latencies are read with a registry token that has no tenant.</p>}
    </>
  );
}

function Figure({ title, text, children }: { title: string; text: string; children?: ComponentChildren }) {
  return (
    <section class="card">
      <h2>{title}</h2>
      <div class="figure">{text}</div>
      <div class="small soft">{children}</div>
    </section>
  );
}

/** Rates from two readings of the counters. */
function Live() {
  const frame = useRef<HTMLDivElement>(null);
  const [error, setError] = useState<unknown>(null);
  const [gauges, setGauges] = useState<readonly Metric[]>([]);
  useEffect(() => {
    let plot: UPlot | null = null;
    let isGone = false;
    let last: { at: number; requests: number; seconds: number } | null = null;
    const series: [number[], number[], number[]] = [[], [], []];
    const read = async (): Promise<void> => {
      const metrics = await json<Metric[]>(data('/metrics.json'));
      const sum = (name: string, part?: string): number =>
        metrics
          .find((each) => each.name === name)
          ?.values.filter(({ metricName }) => part === undefined || metricName === part)
          .reduce((all, { value }) => all + value, 0) ?? 0;
      const now = {
        at: performance.now(),
        requests: sum('service_http_requests_total'),
        seconds: sum('service_http_request_seconds', 'service_http_request_seconds_sum'),
      };
      setGauges(metrics.filter(({ type, name }) => type === 'gauge' && name.startsWith('service_')));
      if (last) {
        const requests = now.requests - last.requests;
        series[0].push(Date.now() / 1000);
        series[1].push(requests / ((now.at - last.at) / 1000));
        series[2].push(requests === 0 ? 0 : ((now.seconds - last.seconds) / requests) * 1000);
        for (const each of series) each.splice(0, each.length - pointsMax);
        plot?.setData(series);
      }
      last = now;
    };
    let timer: ReturnType<typeof setTimeout>;
    const step = (): void => {
      read()
        .then(
          () => setError(null),
          (thrown: unknown) => setError(thrown),
        )
        .finally(() => {
          if (!isGone) timer = setTimeout(step, everyMs);
        });
    };
    void import('./chart.ts').then(({ openChart }) => {
      if (!isGone) plot = openChart(frame.current!, ['requests a second', 'mean ms'], series);
    });
    step();
    return () => {
      isGone = true;
      clearTimeout(timer);
      plot?.destroy();
    };
  }, []);
  return (
    <>
      <Problem error={error} />
      <div class="card" ref={frame} />
      <div class="cards">
        {gauges.map(({ name, help, values }) => (
          <section class="card" key={name}>
            <h2 title={name}>{help}</h2>
            <div class="figure">{count(Math.round(values.reduce((all, { value }) => all + value, 0)))}</div>
          </section>
        ))}
      </div>
    </>
  );
}
