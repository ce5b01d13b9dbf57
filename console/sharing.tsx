/** Agreements by which tenants share rows: their terms, every move they made, and the moves that are open to this side. */
import { useState } from 'preact/hooks';
import { data, json } from './api.ts';
import { type Agreement, loadAgreements, tenantShown } from './catalog.ts';
import { Dialog, Fields, Head, Plain, Problem, useLoad } from './parts.tsx';
import { place } from './place.ts';

/** By state: the moves that a side may make, besides revoking. */
const moves: Readonly<Record<string, readonly (readonly [side: string, to: string, title: string])[]>> = {
  proposed: [['assignee', 'accepted', 'Accept']],
  accepted: [['assigner', 'active', 'Activate']],
  active: [['assigner', 'suspended', 'Suspend']],
  suspended: [['assigner', 'active', 'Resume']],
};

export function Sharing() {
  const tenant = tenantShown();
  return (
    <>
      <Head title="Sharing">
        What tenants let each other see: one side proposes, the other accepts, and each may end it at any time.
      </Head>
      {tenant === null ? (
        <p class="soft">Name a path above: agreements are those of its tenant.</p>
      ) : (
        <AgreementsOf tenant={tenant} chosen={place.value.params['id'] ?? null} />
      )}
    </>
  );
}

export function AgreementsOf({ tenant, chosen = null }: { tenant: string; chosen?: string | null }) {
  const [turn, setTurn] = useState(0);
  const [failed, setFailed] = useState<unknown>(null);
  const [doomed, setDoomed] = useState<Agreement | null>(null);
  const path = `/tenants/${encodeURIComponent(tenant)}/sharing`;
  const { value, error } = useLoad(`${path} ${turn}`, (signal) => json<{ agreements: Agreement[] }>(data(path, { signal })));
  const move = ({ id }: Agreement, state: string): void => {
    data(`${path}/${encodeURIComponent(id)}`, { method: 'PATCH', body: JSON.stringify({ state }) })
      .then(() => {
        setFailed(null);
        setTurn((before) => before + 1);
        void loadAgreements();
      }, setFailed)
      .finally(() => setDoomed(null));
  };
  if (!value) return <Problem error={error} />;
  if (value.agreements.length === 0) return <p class="soft">Nothing is shared with {tenant}, or by it.</p>;
  const shown = value.agreements.find(({ id }) => id === chosen);
  return (
    <>
      <Problem error={error ?? failed} />
      <Plain
        columns={['from', 'to', 'types', 'state', 'for purposes', 'until', '']}
        rows={value.agreements.map((each) => [
          each.assigner,
          each.assignee,
          each.target.types.join(', '),
          each.state,
          each.purposes.length === 0 ? 'any' : each.purposes.join(', '),
          each.valid_to ?? 'revoked',
          <>
            {(moves[each.state] ?? [])
              .filter(([side]) => each.sides.includes(side))
              .map(([, to, title]) => (
                <button type="button" onClick={() => move(each, to)}>
                  {title}
                </button>
              ))}
            {each.state !== 'revoked' && each.state !== 'expired' && (
              <button type="button" class="bad" onClick={() => setDoomed(each)}>
                Revoke
              </button>
            )}
          </>,
        ])}
      />
      {shown && (
        <>
          <h3>
            Between {shown.assigner} and {shown.assignee}
          </h3>
          <Fields
            of={[
              ['rows', shown.target.where ?? 'every row'],
              ['columns', shown.target.columns?.join(', ') ?? 'every column'],
              ['permission', shown.permission.join(', ')],
              ['history', shown.history.replaceAll('_', ' ')],
            ]}
          />
          <Plain
            columns={['when', 'who', 'what']}
            rows={shown.events.map(({ time, principal, change }) => [time, principal, change])}
          />
        </>
      )}
      {doomed && (
        <Dialog title="Revoke this agreement" close={() => setDoomed(null)}>
          <p>
            {doomed.assignee} will no longer see {doomed.target.types.join(', ')} of {doomed.assigner}. An agreement that is
            revoked stays so: sharing again takes a new one.
          </p>
          <button type="button" class="bad" onClick={() => move(doomed, 'revoked')}>
            Revoke
          </button>
        </Dialog>
      )}
    </>
  );
}
