/** `annals branch`: forks, lists and deletes branches, of a running server or in a data directory. */
import { ConfigError } from '../errors.ts';
import type { Action, Invocation } from '../governance/gate-contract.ts';
import { mainBranch } from '../log/entries/entry.ts';
import { formatInstant } from '../log/values/timestamp.ts';
import type { Command } from '../projections/command.ts';
import { exitCode } from './exit-codes.ts';
import { operator, withService, type DirectoryOptions } from './local-store.ts';
import { remoteOf, request, type RemoteOptions } from './remote-server.ts';
import { renderTable } from './text-table.ts';

export interface BranchOptions extends DirectoryOptions, RemoteOptions {
  readonly purpose?: string;
  readonly from?: string;
  readonly ontology?: boolean;
  readonly delete?: boolean;
  readonly list?: boolean;
}

interface Listed {
  readonly name: string;
  readonly tenant: string | null;
  readonly source: string | null;
  readonly forked_at: bigint | number | null;
  readonly shares: string;
}

export async function branchCommand(name: string | undefined, options: BranchOptions, version: string): Promise<number> {
  const ways = [options.from !== undefined, options.delete === true, options.list === true].filter(Boolean).length;
  if (ways !== 1) throw new ConfigError('branch: give one of --from <source>, --delete and --list');
  if (options.list) {
    if (name !== undefined) throw new ConfigError('branch: --list takes no name');
    const rows = (await list(options, version)).map(({ forked_at: at, ...branch }) => ({
      ...branch,
      forked_at: at === null ? null : formatInstant(BigInt(at)),
    }));
    process.stdout.write(renderTable(['name', 'tenant', 'source', 'forked_at', 'shares'], rows));
    return exitCode.ok;
  }
  if (name === undefined) throw new ConfigError('branch: name the branch');
  if (options.delete) await remove(name, options, version);
  else await fork(name, options.from!, options, version);
  process.stdout.write(options.delete ? `${name} deleted\n` : `${name} forked from ${options.from}\n`);
  return exitCode.ok;
}

async function list(options: BranchOptions, version: string): Promise<readonly Listed[]> {
  const remote = remoteOf(options, process.env);
  if (remote)
    return ((await request(remote, 'GET', '/schema/branches', ['branches'])) as { branches: readonly Listed[] }).branches;
  return here(options, version, 'inspect', async (invocation) => [
    { name: mainBranch, tenant: null, source: null, forked_at: null, shares: 'everything' },
    ...invocation.branches().map(({ instant, ...branch }) => ({ ...branch, forked_at: instant })),
  ]);
}

async function fork(name: string, source: string, options: BranchOptions, version: string): Promise<void> {
  const remote = remoteOf(options, process.env);
  const shares = options.ontology ? 'ontology' : 'everything';
  if (!remote) return submit({ kind: 'fork-branch', name, source, shares }, options, version);
  const at = encodeURIComponent(name);
  if (options.ontology) await request(remote, 'POST', `/schema/branches/${at}`, [], JSON.stringify({ from: source }));
  else await request(remote, 'POST', `/v1/namespaces/${at}/branch`, [], JSON.stringify({ branch_from: source }));
}

async function remove(name: string, options: BranchOptions, version: string): Promise<void> {
  const remote = remoteOf(options, process.env);
  if (!remote) return submit({ kind: 'delete-branch', name }, options, version);
  await request(remote, 'DELETE', `/schema/branches/${encodeURIComponent(name)}`, []);
}

async function submit(command: Command, options: BranchOptions, version: string): Promise<void> {
  await here(options, version, 'fork', (invocation) => invocation.submit(command));
}

function here<T>(
  options: BranchOptions,
  version: string,
  action: Action,
  run: (invocation: Invocation) => Promise<T>,
): Promise<T> {
  return withService(options, version, (service) => {
    const asking = { action, purpose: options.purpose ?? null, correlationId: service.ids.next() };
    return service.gate.invoke(operator(options.organization ?? null), asking, run);
  });
}
