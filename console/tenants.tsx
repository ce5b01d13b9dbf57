/** Tenants: what each used, what it may use, and the store's place in a cluster. */
import { useState } from 'preact/hooks';
import { administer, data, json, session } from './api.ts';
import { bytes, count } from './format.ts';
import { Dialog, Head, Plain, Problem, useLoad } from './parts.tsx';
import { AgreementsOf } from './sharing.tsx';

interface Tenant {
  readonly id: string;
  readonly name: string;
  readonly tier: string;
  readonly state: string;
}
interface Usage {
  readonly tenant_id: string;
  readonly queries: number;
  readonly cost_units: number;
  readonly rows_stored: number;
  readonly stored_bytes: number;
}
const quotas = ['query_units', 'in_flight', 'storage_bytes', 'subscriptions', 'requests_per_second'] as const;
type Quota = Readonly<Record<(typeof quotas)[number], number | null>>;

export function Tenants() {
  const { value, error } = useLoad('tenants', (signal) =>
    json<{ tenants: Tenant[] }>(administer('/platform/tenants', { signal })),
  );
  const usage = useLoad('usage of tenants', (signal) =>
    json<{ since: string; tenants: Usage[] }>(administer('/platform/usage', { signal })),
  );
  const hasCaller = session.value!.caller !== null;
  const licence = useLoad('licence', (signal) =>
    json<{ cluster_license_consistency: { status: string } }>(administer('/platform/license', { signal })),
  );
  const [chosen, setChosen] = useState<string | null>(null);
  const used = new Map(usage.value?.tenants.map((each) => [each.tenant_id, each]));
  const rows = value?.tenants ?? [];
  const unregistered = [...used.keys()].filter((id) => !rows.some((tenant) => tenant.id === id));
  return (
    <>
      <Head title="Tenants and usage">
        {usage.value && <>Used since {usage.value.since.slice(0, 16).replace('T', ' ')} UTC.</>}
      </Head>
      <Problem error={error ?? usage.error} />
      {value && usage.value && rows.length + unregistered.length === 0 && <p class="soft">No tenant is registered.</p>}
      {value && usage.value && rows.length + unregistered.length > 0 && (
        <Plain
          columns={['tenant', 'tier', 'state', 'questions', 'cost units', 'rows', 'stored', '']}
          rows={[...rows, ...unregistered.map((id) => ({ id, name: id, tier: '–', state: 'not registered' }))].map((tenant) => {
            const own = used.get(tenant.id);
            return [
              tenant.name === tenant.id ? tenant.id : `${tenant.name} (${tenant.id})`,
              tenant.tier,
              <span class={`tag ${tenant.state === 'suspended' ? 'bad' : ''}`}>{tenant.state}</span>,
              count(own?.queries ?? 0),
              count(Math.round(own?.cost_units ?? 0)),
              count(own?.rows_stored ?? 0),
              bytes(own?.stored_bytes ?? 0),
              hasCaller && tenant.state === 'active' ? (
                <button type="button" onClick={() => setChosen(tenant.id)}>
                  Quota and sharing
                </button>
              ) : (
                ''
              ),
            ];
          })}
        />
      )}
      {!hasCaller && <p class="soft">Quotas are set with a registry token of the role platform-admin.</p>}
      <h2>Cluster</h2>
      <p class="soft">
        {licence.value?.cluster_license_consistency.status === 'single_node'
          ? 'This store is one node: nodes, topology, rebalancing and draining are absent, as this version answers them with 501.'
          : licence.value?.cluster_license_consistency.status}
      </p>
      {chosen !== null && <QuotaOf tenant={chosen} close={() => setChosen(null)} />}
    </>
  );
}

function QuotaOf({ tenant, close }: { tenant: string; close: () => void }) {
  const path = `/tenants/${encodeURIComponent(tenant)}/quota`;
  const { value, error } = useLoad(path, (signal) => json<{ quota: Quota }>(data(path, { signal })));
  const [failed, setFailed] = useState<unknown>(null);
  const put = (event: SubmitEvent): void => {
    event.preventDefault();
    const { elements } = event.currentTarget as HTMLFormElement;
    const stated = quotas.flatMap((name) => {
      const text = (elements.namedItem(name) as HTMLInputElement).value.trim();
      return text === '' ? [] : [[name, Number(text)] as const];
    });
    data(path, { method: 'PUT', body: JSON.stringify(Object.fromEntries(stated)) }).then(close, (thrown: unknown) =>
      setFailed(thrown),
    );
  };
  return (
    <Dialog title={`Quota of ${tenant}`} close={close}>
      <Problem error={error ?? failed} />
      {value && (
        <form onSubmit={put}>
          {quotas.map((name) => (
            <p>
              <label for={name}>{name.replaceAll('_', ' ')}</label>{' '}
              <input
                id={name}
                name={name}
                inputMode="numeric"
                pattern="\d*"
                defaultValue={value.quota[name] === null ? '' : String(value.quota[name])}
                placeholder="as the settings say"
              />
            </p>
          ))}
          <button type="submit" class="primary">
            Set
          </button>
        </form>
      )}
      <h3>Shared with others, and by them</h3>
      <AgreementsOf tenant={tenant} />
    </Dialog>
  );
}
