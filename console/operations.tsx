/** Backups, jobs, and what an operator does to a running store. */
import { useState } from 'preact/hooks';
import { administer, json, post } from './api.ts';
import { bytes } from './format.ts';
import { Dialog, Fields, Head, Instant, Plain, Problem, useLoad } from './parts.tsx';

interface Backup {
  readonly backup: string;
  readonly created_at?: string;
  readonly size_bytes?: number;
  readonly tree_size?: number;
}
interface Job {
  readonly id: string;
  readonly kind: string;
  readonly about: string | null;
  readonly state: string;
  readonly unit: string;
  readonly done: number;
  readonly total: number | null;
  readonly principal: string;
  readonly queued_at: string;
}

export function Operations() {
  const jobs = useLoad('jobs', (signal) => json<{ jobs: Job[] }>(administer('/admin/jobs', { signal })));
  const backups = useLoad('backups', (signal) => json<{ backups: Backup[] }>(administer('/admin/backups', { signal })));
  const transactions = useLoad('transactions', (signal) => json<Record<string, unknown>>(administer('/admin/tx', { signal })));
  const [error, setError] = useState<unknown>(null);
  const [done, setDone] = useState<readonly [title: string, reply: Record<string, unknown>] | null>(null);
  const [restoring, setRestoring] = useState<string | null>(null);
  const act = (title: string, path: string, body: object): void => {
    setError(null);
    json<Record<string, unknown>>(administer(path, post(body))).then(
      (reply) => {
        setDone([title, reply]);
        backups.reload();
        jobs.reload();
      },
      (thrown: unknown) => setError(thrown),
    );
  };
  return (
    <>
      <Head title="Operations">Each of these acts leaves an access record.</Head>
      <div class="bar">
        <button type="button" class="primary" onClick={() => act('Backup', '/admin/backup', {})}>
          Back up now
        </button>
        <button type="button" onClick={() => act('Compaction', '/admin/compact', {})}>
          Compact
        </button>
        <button type="button" onClick={() => act('Indexes', '/admin/reindex', {})}>
          Make indexes anew
        </button>
        <button type="button" onClick={() => act('Data key', '/admin/rotate-dek', {})}>
          Rotate the data key
        </button>
        <button
          type="button"
          onClick={() => {
            jobs.reload();
            backups.reload();
            transactions.reload();
          }}
        >
          Look again
        </button>
      </div>
      <Problem error={error} />
      {done && (
        <section class="card" role="status">
          <h2>{done[0]}: done</h2>
          <Fields of={Object.entries(done[1])} />
        </section>
      )}
      <h2>Jobs</h2>
      <Problem error={jobs.error} />
      {jobs.value &&
        (jobs.value.jobs.length === 0 ? (
          <p class="soft">None since the start.</p>
        ) : (
          <Plain
            columns={['kind', 'about', 'state', 'progress', 'by', 'queued']}
            rows={jobs.value.jobs.map((job) => [
              job.kind,
              job.about ?? '–',
              <span class={`tag ${job.state === 'done' ? 'good' : job.state === 'failed' ? 'bad' : ''}`}>{job.state}</span>,
              `${job.done}${job.total === null ? '' : ` of ${job.total}`} ${job.unit}`,
              job.principal,
              <Instant ns={job.queued_at} />,
            ])}
          />
        ))}
      <h2>Backups</h2>
      <Problem error={backups.error} />
      {backups.value &&
        (backups.value.backups.length === 0 ? (
          <p class="soft">None yet.</p>
        ) : (
          <Plain
            columns={['backup', 'made', 'size', 'entries', '']}
            rows={backups.value.backups.map((each) => [
              <code>{each.backup}</code>,
              each.created_at?.slice(0, 19).replace('T', ' ') ?? <span class="tag bad">damaged</span>,
              each.size_bytes === undefined ? '' : bytes(each.size_bytes),
              String(each.tree_size ?? ''),
              <button type="button" onClick={() => setRestoring(each.backup)}>
                Restore
              </button>,
            ])}
          />
        ))}
      <h2>Open transactions</h2>
      <Problem error={transactions.error} />
      {transactions.value && <pre class="card small">{JSON.stringify(transactions.value, null, 1)}</pre>}
      {restoring !== null && (
        <Dialog title={`Restore ${restoring}`} close={() => setRestoring(null)}>
          <p>Into an empty directory beside the running store, which goes on as it is. Nothing is overwritten.</p>
          <form
            class="bar"
            onSubmit={(event) => {
              event.preventDefault();
              act('Restore', '/admin/restore', {
                backup: restoring,
                target_dir: (
                  (event.currentTarget as HTMLFormElement).elements.namedItem('target') as HTMLInputElement
                ).value.trim(),
              });
              setRestoring(null);
            }}
          >
            <label for="target">Directory</label>
            <input id="target" name="target" required size={40} placeholder="/absolute/path" />
            <button type="submit" class="primary">
              Restore
            </button>
          </form>
        </Dialog>
      )}
    </>
  );
}
