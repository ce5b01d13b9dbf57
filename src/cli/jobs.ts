/** `annals jobs`: long work of a running server, as a list, as a bar until it ends, or cancelled. */
import { type Clock, systemClock } from '../clock.ts';
import { ConfigError } from '../errors.ts';
import { formatInstant } from '../log/values/timestamp.ts';
import { exactJson } from '../doors/shared/write-exact-json.ts';
import { exitCode } from './exit-codes.ts';
import { Progress, type ProgressTarget } from './progress.ts';
import { type Remote, remoteOf, type RemoteOptions, request } from './remote-server.ts';
import { renderTable } from './text-table.ts';

export interface JobsOptions extends RemoteOptions {
  readonly cancel?: boolean;
  readonly admin?: boolean;
  readonly json?: boolean;
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
  readonly queued_at: bigint | number;
  readonly finished_at: bigint | number | null;
  readonly error: string | null;
}

/** Between two looks at a job. */
const lookMs = 250;

export async function jobsCommand(
  id: string | undefined,
  options: JobsOptions,
  clock: Clock = systemClock,
  target: ProgressTarget = process.stderr,
): Promise<number> {
  const { remote, base } = serverOf(options);
  if (id === undefined) {
    if (options.cancel) throw new ConfigError('jobs: name the job to cancel');
    const { jobs } = (await request(remote, 'GET', base, ['jobs'])) as { jobs: readonly Job[] };
    process.stdout.write(options.json ? `${exactJson({ jobs })}\n` : renderTable(columns, jobs.map(row)));
    return exitCode.ok;
  }
  const path = `${base}/${encodeURIComponent(id)}`;
  if (options.cancel) return print((await request(remote, 'DELETE', path, ['state'])) as Job, options, exitCode.ok);
  const job = await followJob(remote, path, clock, target);
  return print(job, options, job.state === 'done' ? exitCode.ok : exitCode.findings);
}

function serverOf(options: JobsOptions): { readonly remote: Remote; readonly base: string } {
  const remote = remoteOf(options.admin ? { ...options, token: process.env['SERVICE_ADMIN_TOKEN'] } : options, process.env);
  if (remote === null) throw new ConfigError('jobs: give --url of a running server; a stopped one has none');
  if (options.admin && !process.env['SERVICE_ADMIN_TOKEN'])
    throw new ConfigError('--admin needs the admin credential in SERVICE_ADMIN_TOKEN');
  return { remote, base: options.admin ? '/admin/jobs' : '/jobs' };
}

async function followJob(remote: Remote, path: string, clock: Clock, target: ProgressTarget): Promise<Job> {
  let progress: Progress | null = null;
  for (;;) {
    const job = (await request(remote, 'GET', path, ['state', 'kind'])) as Job;
    progress ??= new Progress(job.kind, clock, target);
    if (job.finished_at !== null) {
      progress.finish(job.done, job.unit);
      return job;
    }
    progress.update(job.done, job.total ?? 0, job.unit);
    await clock.sleep(lookMs);
  }
}

function print(job: Job, { json }: JobsOptions, code: number): number {
  process.stdout.write(json ? `${exactJson(job)}\n` : renderTable(columns, [row(job)]));
  return code;
}

const columns = ['id', 'kind', 'about', 'state', 'progress', 'principal', 'queued'];

function row({
  id,
  kind,
  about,
  state,
  unit,
  done,
  total,
  principal,
  queued_at: queued,
  error,
}: Job): Record<string, string | null> {
  const progress =
    total === null || total === 0 ? `${done} ${unit}` : `${Math.floor((done / total) * 100)} % of ${total} ${unit}`;
  const said = error === null ? state : `${state}: ${error}`;
  return { id, kind, about, state: said, progress, principal, queued: formatInstant(BigInt(queued)) };
}
