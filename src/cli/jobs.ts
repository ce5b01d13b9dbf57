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

interface ListedJob {
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
const jobLookMs = 250;

export async function jobsCommand(
  jobId: string | undefined,
  jobsOptions: JobsOptions,
  clock: Clock = systemClock,
  progressTarget: ProgressTarget = process.stderr,
): Promise<number> {
  const { remote: jobServer, base: jobsRoute } = jobServerOf(jobsOptions);
  if (jobId === undefined) {
    if (jobsOptions.cancel) throw new ConfigError('jobs: name the job to cancel');
    const { jobs } = (await request(jobServer, 'GET', jobsRoute, ['jobs'])) as { jobs: readonly ListedJob[] };
    process.stdout.write(jobsOptions.json ? `${exactJson({ jobs })}\n` : renderTable(jobColumns, jobs.map(jobRow)));
    return exitCode.ok;
  }
  const jobRoute = `${jobsRoute}/${encodeURIComponent(jobId)}`;
  if (jobsOptions.cancel)
    return printJob((await request(jobServer, 'DELETE', jobRoute, ['state'])) as ListedJob, jobsOptions, exitCode.ok);
  const followedJob = await followJob(jobServer, jobRoute, clock, progressTarget);
  return printJob(followedJob, jobsOptions, followedJob.state === 'done' ? exitCode.ok : exitCode.findings);
}

function jobServerOf(jobsOptions: JobsOptions): { readonly remote: Remote; readonly base: string } {
  const jobServer = remoteOf(
    jobsOptions.admin ? { ...jobsOptions, token: process.env['SERVICE_ADMIN_TOKEN'] } : jobsOptions,
    process.env,
  );
  if (jobServer === null) throw new ConfigError('jobs: give --url of a running server; a stopped one has none');
  if (jobsOptions.admin && !process.env['SERVICE_ADMIN_TOKEN'])
    throw new ConfigError('--admin needs the admin credential in SERVICE_ADMIN_TOKEN');
  return { remote: jobServer, base: jobsOptions.admin ? '/admin/jobs' : '/jobs' };
}

async function followJob(jobServer: Remote, jobRoute: string, clock: Clock, progressTarget: ProgressTarget): Promise<ListedJob> {
  let jobProgress: Progress | null = null;
  for (;;) {
    const jobState = (await request(jobServer, 'GET', jobRoute, ['state', 'kind'])) as ListedJob;
    jobProgress ??= new Progress(jobState.kind, clock, progressTarget);
    if (jobState.finished_at !== null) {
      jobProgress.finish(jobState.done, jobState.unit);
      return jobState;
    }
    jobProgress.update(jobState.done, jobState.total ?? 0, jobState.unit);
    await clock.sleep(jobLookMs);
  }
}

function printJob(printedJob: ListedJob, { json: asJson }: JobsOptions, jobExitCode: number): number {
  process.stdout.write(asJson ? `${exactJson(printedJob)}\n` : renderTable(jobColumns, [jobRow(printedJob)]));
  return jobExitCode;
}

const jobColumns = ['id', 'kind', 'about', 'state', 'progress', 'principal', 'queued'];

function jobRow({
  id,
  kind,
  about,
  state,
  unit: progressUnit,
  done: doneUnits,
  total: totalUnits,
  principal,
  queued_at: queuedAt,
  error,
}: ListedJob): Record<string, string | null> {
  const progressText =
    totalUnits === null || totalUnits === 0
      ? `${doneUnits} ${progressUnit}`
      : `${Math.floor((doneUnits / totalUnits) * 100)} % of ${totalUnits} ${progressUnit}`;
  const stateText = error === null ? state : `${state}: ${error}`;
  return { id, kind, about, state: stateText, progress: progressText, principal, queued: formatInstant(BigInt(queuedAt)) };
}
