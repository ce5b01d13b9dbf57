/** Policies as they stand, and why a statement shows what it shows. */
import { useState } from 'preact/hooks';
import { administer, data, json, post, session } from './api.ts';
import { Doom } from './branches.tsx';
import { Cell, Head, Plain, Problem, useLoad } from './parts.tsx';

interface Policies {
  readonly policies: readonly { readonly id: string; readonly policy: string; readonly installed_at: string }[];
  readonly digest: string;
  readonly epoch: number;
}

export function Governance() {
  const { value, error, reload } = useLoad('policies', (signal) => json<Policies>(administer('/admin/policies', { signal })));
  const [draft, setDraft] = useState({ id: '', policy: '' });
  const [failed, setFailed] = useState<unknown>(null);
  const [doomed, setDoomed] = useState<string | null>(null);
  const match = { 'if-match': `"${value?.digest || 'none'}"` };
  const put = (event: SubmitEvent): void => {
    event.preventDefault();
    administer(`/admin/policies/${encodeURIComponent(draft.id)}`, {
      method: 'PUT',
      body: JSON.stringify({ policy: draft.policy }),
      headers: match,
    }).then(
      () => {
        setFailed(null);
        reload();
      },
      (thrown: unknown) => setFailed(thrown),
    );
  };
  return (
    <>
      <Head title="Policies">
        {value && (
          <>
            {value.policies.length === 0
              ? 'None: everybody works inside their own tenant.'
              : 'What none of them permits is denied.'}{' '}
            Epoch {value.epoch}.
          </>
        )}
      </Head>
      <Problem error={error} />
      {value?.policies.map((each) => (
        <article class="card">
          <div class="bar">
            <h2>{each.id}</h2>
            <span class="small soft">since {each.installed_at.slice(0, 16).replace('T', ' ')}</span>
            <span class="spring" />
            <button type="button" onClick={() => setDraft({ id: each.id, policy: each.policy })}>
              Edit
            </button>
            <button type="button" class="bad" onClick={() => setDoomed(each.id)}>
              Delete
            </button>
          </div>
          <pre>{each.policy}</pre>
        </article>
      ))}
      <form class="card" onSubmit={put}>
        <h2>Install a policy</h2>
        <div class="bar">
          <label for="policy-id">Name</label>
          <input
            id="policy-id"
            required
            value={draft.id}
            onInput={(event) => setDraft({ ...draft, id: event.currentTarget.value })}
          />
        </div>
        <textarea
          class="mono"
          aria-label="policy"
          rows={5}
          style={{ width: '100%', margin: '8px 0' }}
          required
          value={draft.policy}
          onInput={(event) => setDraft({ ...draft, policy: event.currentTarget.value })}
        />
        <div class="bar">
          <button type="submit" class="primary">
            Install
          </button>
          <span class="small soft">Takes effect with the next question of everybody.</span>
        </div>
        <Problem error={failed} />
      </form>
      <Rehearsal id={draft.id} policy={draft.policy} />
      {session.value!.caller !== null && <Why />}
      {doomed !== null && (
        <Doom
          name={doomed}
          words="What this policy permits is denied from then on; without the last policy everybody is inside their own tenant again."
          close={() => setDoomed(null)}
          go={() =>
            administer(`/admin/policies/${encodeURIComponent(doomed)}`, { method: 'DELETE', headers: match })
              .then(reload, (thrown: unknown) => setFailed(thrown))
              .finally(() => setDoomed(null))
          }
        />
      )}
    </>
  );
}

interface Rehearsed {
  readonly principals: readonly string[];
  readonly touched: readonly {
    readonly principal: string;
    readonly object_type: string;
    readonly reads: number;
    readonly before: string;
    readonly after: string;
    readonly columns: readonly string[];
  }[];
  readonly differences: readonly {
    readonly principal: string;
    readonly statement: string;
    readonly before: number | string;
    readonly after: number | string;
    readonly appear: readonly string[];
    readonly vanish: readonly string[];
    readonly changed: readonly { readonly row: string; readonly columns: readonly string[] }[];
    readonly counts: { readonly appear: number; readonly vanish: number; readonly changed: number };
  }[];
}

const keptStatements = 'annals-rehearsed';

/** The draft above on statements, for the principals whose reads were recorded last; nothing is installed. */
function Rehearsal({ id, policy }: { id: string; policy: string }) {
  const [result, setResult] = useState<Rehearsed | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const rehearse = (event: SubmitEvent): void => {
    event.preventDefault();
    const field = (name: string): string =>
      ((event.currentTarget as HTMLFormElement).elements.namedItem(name) as HTMLTextAreaElement).value.trim();
    const text = field('statements');
    localStorage.setItem(keptStatements, text);
    const statements = text.split(/;\s*\n|;\s*$|\n\s*\n/).filter((each) => each.trim() !== '');
    setBusy(true);
    json<Rehearsed>(
      administer(`/admin/policies/${encodeURIComponent(id)}/rehearsal`, post({ policy, statements, reason: field('why') })),
    )
      .then(
        (value) => {
          setResult(value);
          setError(null);
        },
        (thrown: unknown) => setError(thrown),
      )
      .finally(() => setBusy(false));
  };
  return (
    <form class="card" onSubmit={rehearse} aria-label="rehearsal">
      <h2>Rehearse it first</h2>
      <p class="small soft">
        The text above is tried on these statements, for the principals whose reads are on record. Nothing is installed; each
        trial is on record as one.
      </p>
      <textarea
        class="mono"
        name="statements"
        aria-label="statements"
        rows={3}
        style={{ width: '100%', margin: '8px 0' }}
        placeholder="SELECT * FROM … ; one a line, ended by a semicolon"
        defaultValue={localStorage.getItem(keptStatements) ?? ''}
      />
      <div class="bar">
        <label for="why">Reason</label>
        <input id="why" name="why" required minLength={3} maxLength={500} size={36} />
        <button type="submit" disabled={id === '' || policy === '' || isBusy}>
          {isBusy ? 'Trying …' : 'Rehearse'}
        </button>
      </div>
      <Problem error={error} />
      {result && <Differences {...result} />}
    </form>
  );
}

function Differences({ principals, touched, differences }: Rehearsed) {
  return (
    <div aria-live="polite">
      <p>Tried for {principals.join(', ') || 'nobody: no read of a present token is on record'}.</p>
      {differences.length > 0 && (
        <Plain
          columns={['principal', 'statement', 'rows now', 'rows then', 'appear', 'vanish', 'masked otherwise']}
          rows={differences.map((each) => [
            each.principal,
            <code>{each.statement}</code>,
            String(each.before),
            String(each.after),
            <Rows count={each.counts.appear} rows={each.appear} />,
            <Rows count={each.counts.vanish} rows={each.vanish} />,
            <Rows count={each.counts.changed} rows={each.changed.map(({ row, columns }) => `${columns.join(', ')} of ${row}`)} />,
          ])}
        />
      )}
      <h3>Recorded reads that it would decide otherwise</h3>
      {touched.length === 0 ? (
        <p class="soft">None of the last 1,000.</p>
      ) : (
        <Plain
          columns={['principal', 'type', 'reads', 'now', 'then', 'columns masked otherwise']}
          rows={touched.map((each) => [
            each.principal,
            each.object_type,
            String(each.reads),
            each.before,
            each.after,
            each.columns.join(', ') || '–',
          ])}
        />
      )}
    </div>
  );
}

function Rows({ count, rows }: { count: number; rows: readonly string[] }) {
  if (count === 0) return <span class="faint">–</span>;
  return (
    <details>
      <summary>{count}</summary>
      <ul class="small">
        {rows.map((row) => (
          <li>{row.slice(0, 200)}</li>
        ))}
      </ul>
    </details>
  );
}

/** EXPLAIN POLICY of a statement, as the principal that the session reads as. */
function Why() {
  const [sql, setSql] = useState('');
  const [rows, setRows] = useState<readonly Record<string, unknown>[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const explain = (event: SubmitEvent): void => {
    event.preventDefault();
    json<{ rows: Record<string, unknown>[] }>(data('/query', post({ sql: `EXPLAIN POLICY ${sql}` }))).then(
      (reply) => {
        setRows(reply.rows);
        setError(null);
      },
      (thrown: unknown) => setError(thrown),
    );
  };
  const columns = Object.keys(rows?.[0] ?? {});
  return (
    <section class="card">
      <h2>Why does {session.value!.caller!.principal} see what it sees?</h2>
      <form class="bar" onSubmit={explain}>
        <input
          class="mono"
          aria-label="statement"
          size={60}
          required
          placeholder="SELECT * FROM …"
          value={sql}
          onInput={(event) => setSql(event.currentTarget.value)}
        />
        <button type="submit">EXPLAIN POLICY</button>
      </form>
      <Problem error={error} />
      {rows && (
        <Plain columns={columns} rows={rows.map((row) => columns.map((column) => <Cell value={row[column]} name={column} />))} />
      )}
    </section>
  );
}
